//! What one leader holds in memory: all of it is lost when the leadership ends.
//! What it does with it is in `leader`.

use std::collections::{BTreeMap, BTreeSet};

use server::leader::look::Look;
use server::leader::silence::SilenceMeter;
use state::State;
use state::command::{Command, NodeAck, Request};
use state::decision::Decision;
use state::epoch::{Op, Revision, Term, Timestamp};
use state::ids::{ChannelName, MemberId, Text};
use state::node::{NodeRef, Registration};

use super::breach::Broken;
use super::net::{Endpoint, Message};
use super::rng::Rng;

/// Who waits for the outcome of a proposal.
#[derive(Debug, Clone)]
pub(super) enum Tag {
    Start,
    Plan,
    Observed { renewed: Vec<NodeRef> },
    Held { waiting: Vec<Renewal> },
    Duty,
    Effects,
    Client { client: usize, id: u64 },
    Register { slot: usize, registration: Registration, sent_ms: u64 },
    Acks { slot: usize, acks: Vec<NodeAck> },
    Commit { slot: usize, command: Command },
    Nobody,
}

/// A batch on its way into the log.
#[derive(Debug, Clone)]
pub(super) struct Proposal {
    pub(super) batch: Vec<Request>,
    pub(super) tag: Tag,
    pub(super) stamp: Timestamp,
    pub(super) ready_ms: u64,
}

/// A renewal that waits for the entry that resets the silence.
#[derive(Debug, Clone)]
pub(super) struct Renewal {
    pub(super) slot: usize,
    pub(super) session: NodeRef,
    pub(super) sent_ms: u64,
    /// Set when the node asked for its session: it may have been silent for long under one it never
    /// heard of, so the answer is a renewal like any other. With it, the ttl it is granted.
    pub(super) registration: Option<(Registration, u64)>,
}

/// What a leader sends and proposes in one step.
pub(super) struct Desk<'a> {
    pub(super) now: u64,
    pub(super) rng: &'a mut Rng,
    pub(super) sends: Vec<(Endpoint, Message)>,
    pub(super) proposals: Vec<Proposal>,
    /// Everything proposed is committed at once: the leader has no time to lose.
    pub(super) quick: bool,
    /// A rule that tests of the tests leave out.
    pub(super) broken: Option<Broken>,
    /// Entries committed so far, for those tests only.
    pub(super) log_len: usize,
}

/// The decision of this leader that was not judged yet; there is at most one.
#[derive(Debug)]
pub(super) enum Deciding {
    Planned { decision: Decision, propose_ms: u64 },
    InFlight,
}

#[derive(Debug)]
pub(super) struct Reign {
    pub(super) term: Term,
    /// True once its LeaderStart is applied.
    pub(super) leading: bool,
    started_ms: u64,
    stamp_base: Timestamp,
    pub(super) meter: Option<SilenceMeter>,
    /// When a quorum last answered.
    pub(super) quorum_ms: u64,
    pub(super) observe_ms: u64,
    pub(super) connected: BTreeMap<usize, NodeRef>,
    pub(super) pushed: BTreeMap<usize, (Revision, u64)>,
    pub(super) held: Vec<Renewal>,
    pub(super) deciding: Option<Deciding>,
    pub(super) looked: Option<Look>,
    pub(super) duty_in_flight: bool,
    pub(super) effects_in_flight: bool,
    pub(super) observed_in_flight: bool,
    pub(super) acks_in_flight: BTreeSet<(usize, ChannelName, Op)>,
    pub(super) extended: BTreeMap<(ChannelName, Op), (u64, u64)>,
}

impl Reign {
    /// A member was elected: it proposes LeaderStart and waits for it.
    pub(super) fn begin(
        member: usize,
        term: Term,
        state: &State,
        wall_ms: u64,
        desk: &mut Desk<'_>,
    ) -> Self {
        let mut reign = Self {
            term,
            leading: false,
            started_ms: desk.now,
            stamp_base: state.now().max(Timestamp(wall_ms)),
            meter: None,
            quorum_ms: desk.now,
            observe_ms: desk.now,
            connected: BTreeMap::new(),
            pushed: BTreeMap::new(),
            held: Vec::new(),
            deciding: None,
            looked: None,
            duty_in_flight: false,
            effects_in_flight: false,
            observed_in_flight: false,
            acks_in_flight: BTreeSet::new(),
            extended: BTreeMap::new(),
        };
        let member = MemberId(u64::try_from(member).expect("a usize fits"));
        reign.propose("leader", vec![Command::LeaderStart { term, member }], Tag::Start, desk);
        reign
    }

    /// Log time as this leader stamps it: monotonic, whatever wall clocks do.
    pub(super) const fn stamp(&self, now: u64) -> Timestamp {
        self.stamp_base.plus_ms(now - self.started_ms)
    }

    pub(super) fn propose(
        &mut self,
        actor: &str,
        commands: Vec<Command>,
        tag: Tag,
        desk: &mut Desk<'_>,
    ) {
        let request = |command| Request { actor: Text::cut(actor), retry: None, command };
        let batch = commands.into_iter().map(request).collect();
        self.submit(batch, tag, desk);
    }

    pub(super) fn submit(&mut self, batch: Vec<Request>, tag: Tag, desk: &mut Desk<'_>) {
        let ready_ms = if desk.quick { desk.now } else { desk.now + desk.rng.between(5, 60) };
        let stamp = self.stamp(desk.now);
        desk.proposals.push(Proposal { batch, tag, stamp, ready_ms });
    }
}
