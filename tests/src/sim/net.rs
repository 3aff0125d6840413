//! The net between coordinators, workers and clients: delays, drops, duplicates, reorders, cuts
//! links. What the messages mean is in `leader` and `agent`.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use state::Directive;
use state::channel::AckResult;
use state::command::{Command, NodeAck, OwnerClaim, Retry};
use state::epoch::{ChannelTerm, Op, Revision, Term};
use state::ids::ChannelName;
use state::node::{NodeRef, Registration};
use state::outcome::Outcome;

use super::coverage::{Coverage, Kind};
use super::rng::Rng;

/// Who sends or receives; numbers are positions in the world's lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Endpoint {
    Member(usize),
    Agent(usize),
    Client(usize),
}

/// Progress of one running watch.
#[derive(Debug, Clone)]
pub(super) struct Progress {
    pub(super) channel: ChannelName,
    pub(super) term: ChannelTerm,
    pub(super) op: Op,
    pub(super) progress: u64,
}

#[derive(Debug, Clone)]
pub(super) enum Message {
    Register { registration: Registration, sent_ms: u64 },
    Report { session: NodeRef, sent_ms: u64, acks: Vec<NodeAck>, progress: Vec<Progress> },
    Commit { channel: ChannelName, claim: OwnerClaim, positions: Vec<u8> },
    Request { id: u64, retry: Option<Retry>, command: Command },
    NotLeader { hint: Option<usize> },
    Registered { session: NodeRef, registration: Registration, ttl_ms: u64, sent_ms: u64 },
    Renewed { session: NodeRef, sent_ms: u64 },
    SessionOver { session: NodeRef },
    Directives { session: NodeRef, leader_term: Term, revision: Revision, set: Rc<Vec<Directive>> },
    Recorded { session: NodeRef, channel: ChannelName, op: Op, result: AckResult },
    Committed { index: usize, command: Command, outcome: Rc<Outcome> },
    Reply { id: u64, index: usize, outcome: Rc<Outcome> },
}

#[derive(Debug, Clone)]
pub(super) struct Envelope {
    pub(super) from: Endpoint,
    pub(super) to: Endpoint,
    pub(super) message: Message,
}

/// Messages under way.
#[derive(Debug, Default)]
pub(super) struct Net {
    under_way: BTreeMap<(u64, u64), Envelope>,
    sent: u64,
    last_delivered: BTreeMap<(Endpoint, Endpoint), u64>,
    /// Chances in a thousand.
    pub(super) drop: u64,
    pub(super) duplicate: u64,
    pub(super) straggle: u64,
    /// Ways that lead nowhere: from, to. A link may be cut in one direction only.
    pub(super) cut: BTreeSet<(Endpoint, Endpoint)>,
}

impl Net {
    pub(super) fn send(
        &mut self,
        now: u64,
        envelope: Envelope,
        rng: &mut Rng,
        seen: &mut Coverage,
    ) {
        if self.cut.contains(&(envelope.from, envelope.to)) {
            seen.hit(Kind::Fault, "link_cut");
            return;
        }
        if rng.permille(self.drop) {
            seen.hit(Kind::Fault, "message_dropped");
            return;
        }
        if rng.permille(self.duplicate) {
            seen.hit(Kind::Fault, "message_duplicated");
            self.post(now + rng.between(1, 400), envelope.clone());
        }
        let delay = if rng.permille(self.straggle) {
            seen.hit(Kind::Fault, "message_delayed");
            rng.between(100, 3_000)
        } else {
            rng.between(1, 30)
        };
        self.post(now + delay, envelope);
    }

    fn post(&mut self, at: u64, envelope: Envelope) {
        self.sent += 1;
        self.under_way.insert((at, self.sent), envelope);
    }

    /// Gives back what cannot be received now: its receiver stands still.
    pub(super) fn defer(&mut self, until: u64, envelope: Envelope) {
        self.post(until, envelope);
    }

    /// The next message that has arrived.
    pub(super) fn next(&mut self, now: u64, seen: &mut Coverage) -> Option<Envelope> {
        let first = self.under_way.first_entry()?;
        if first.key().0 > now {
            return None;
        }
        let ((_, number), envelope) = first.remove_entry();
        let last = self.last_delivered.entry((envelope.from, envelope.to)).or_default();
        if number < *last {
            seen.hit(Kind::Fault, "message_reordered");
        }
        *last = number.max(*last);
        Some(envelope)
    }
}
