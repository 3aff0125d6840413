//! What must never happen. Keeps a record of its own, made from the log and from what nodes do, and
//! compares everything with it. Fences of decisions and sessions are in `fences`; what counts as
//! covered, in `judge`.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use state::channel::{AckResult, FormerOwner, PhaseKind, UnassignCause};
use state::command::{Command, NodeAck, Request, Retry};
use state::epoch::{ChannelTerm, Op, Revision, Timestamp};
use state::event::Event;
use state::ids::{ChannelName, RequestId, Text};
use state::node::{DownCause, NodeRef, Registration};
use state::outcome::{Facts, Outcome};
use state::policy::Policy;
use state::{Context, State};

use super::coverage::Coverage;
use super::fences::counts;
use super::job::Job;
use super::judge;
use super::log::Log;
use super::replica::Applied;
use super::rng::Rng;

/// Something that must never happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which rule.
    pub rule: &'static str,
    /// What was seen.
    pub detail: String,
}

/// Whether the owner of a term that ended may still run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// It said that it stopped, or its lease was over before.
    Stopped,
    /// It was given up: its commits are refused, and it stops when it hears of it.
    GivenUp,
}

/// The oracle's own idea of a channel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shadow {
    pub(super) owner: Option<NodeRef>,
    pub(super) term: ChannelTerm,
    op: Op,
    pub(super) phase: PhaseKind,
    /// First term of this life of the channel.
    pub(super) added: ChannelTerm,
    /// Its release counts against the limit of moves.
    moving: bool,
    /// Of its watch, as it last moved the deadline.
    pub(super) progress: u64,
}

/// A channel, its owner, a term and a directive, as rumour has it.
pub(super) type Gossip = (ChannelName, Option<NodeRef>, ChannelTerm, Op);

#[derive(Debug)]
pub(super) struct Oracle {
    /// Applies every entry at the moment it is committed.
    pub(super) reference: State,
    pub(super) record: Vec<Applied>,
    pub(super) violations: Vec<Violation>,
    pub(super) channels: BTreeMap<ChannelName, Shadow>,
    last_terms: BTreeMap<ChannelName, ChannelTerm>,
    placed: BTreeMap<(ChannelName, ChannelTerm), NodeRef>,
    ended: BTreeMap<(ChannelName, ChannelTerm), End>,
    pub(super) down: BTreeMap<NodeRef, DownCause>,
    /// Owners that may have left traces, until they are cleaned up.
    pub(super) formers: BTreeSet<(ChannelName, FormerOwner)>,
    acks: BTreeSet<(NodeRef, ChannelName, ChannelTerm, Op, AckResult)>,
    started: BTreeMap<(usize, ChannelName), ChannelTerm>,
    positions: BTreeMap<ChannelName, Vec<u8>>,
    /// Everyone who ever had a session.
    pub(super) sessions: BTreeMap<NodeRef, Registration>,
    /// Limit of moves in flight, as clients set it.
    pub(super) moves_max: u32,
    /// Requests that count once, with the revision at which they did.
    once: BTreeMap<RequestId, Revision>,
    replied: Vec<(usize, Command, Rc<Outcome>)>,
    rumours: Vec<Gossip>,
}

impl Shadow {
    /// A channel that got this term without an owner.
    const fn added(term: ChannelTerm) -> Self {
        let phase = PhaseKind::Buffered;
        Self { owner: None, term, op: Op(0), phase, added: term, moving: false, progress: 0 }
    }
}

impl Oracle {
    pub(super) fn new() -> Self {
        Self {
            reference: State::new(0),
            record: Vec::new(),
            violations: Vec::new(),
            channels: BTreeMap::new(),
            last_terms: BTreeMap::new(),
            placed: BTreeMap::new(),
            ended: BTreeMap::new(),
            down: BTreeMap::new(),
            formers: BTreeSet::new(),
            acks: BTreeSet::new(),
            started: BTreeMap::new(),
            positions: BTreeMap::new(),
            sessions: BTreeMap::new(),
            moves_max: Policy::default().balance_moves_max,
            once: BTreeMap::new(),
            replied: Vec::new(),
            rumours: Vec::new(),
        }
    }

    pub(super) fn violated(&mut self, rule: &'static str, detail: String) {
        self.violations.push(Violation { rule, detail });
    }

    pub(super) fn demand(
        &mut self,
        holds: bool,
        rule: &'static str,
        detail: impl FnOnce() -> String,
    ) {
        if !holds {
            self.violated(rule, detail());
        }
    }

    /// A node sends an acknowledgement.
    pub(super) fn acked(&mut self, ack: &NodeAck) {
        self.acks.insert((ack.node, ack.channel.clone(), ack.term, ack.op, ack.result));
    }

    /// A process begins anew.
    pub(super) fn booted(&mut self, slot: usize) {
        self.started.retain(|(other, _), _| *other != slot);
    }

    /// A process starts to consume a channel.
    pub(super) fn started(
        &mut self,
        slot: usize,
        session: NodeRef,
        channel: &ChannelName,
        term: ChannelTerm,
    ) {
        let last = self.started.insert((slot, channel.clone()), term).unwrap_or_default();
        self.demand(term >= last, "nodes start terms in order", || {
            format!("process {slot} starts {channel} {term} after {last}")
        });
        let owner = self.placed.get(&(channel.clone(), term)).copied();
        self.demand(owner == Some(session), "nodes run what they were given", || {
            format!("{session} starts {channel} {term}, which was given to {owner:?}")
        });
    }

    /// A client was told the outcome of its command.
    pub(super) fn replied(&mut self, index: usize, command: Command, outcome: Rc<Outcome>) {
        self.replied.push((index, command, outcome));
    }

    /// A channel, its present or an earlier owner, term and directive.
    pub(super) fn gossip(&self, rng: &mut Rng) -> Option<Gossip> {
        if rng.permille(400) {
            return rng.pick(&self.rumours).cloned();
        }
        let known: Vec<_> = self.channels.iter().collect();
        let (channel, shadow) = *rng.pick(&known)?;
        Some((channel.clone(), shadow.owner, shadow.term, shadow.op))
    }

    /// An earlier term of this channel, or of one of the same name.
    pub(super) fn earlier(&self, channel: &ChannelName, rng: &mut Rng) -> Option<ChannelTerm> {
        let of = |rumour: &&Gossip| rumour.0 == *channel;
        let terms: Vec<_> = self.rumours.iter().filter(of).map(|rumour| rumour.2).collect();
        rng.pick(&terms).copied()
    }

    /// An entry was committed: judges what it does. `meant` is what was asked for, request by
    /// request; nobody asked for what is none.
    pub(super) fn committed(
        &mut self,
        log: &Log,
        index: usize,
        meant: &[Option<Request>],
        seen: &mut Coverage,
    ) {
        let entry = log.get(index);
        let context = Context { term: entry.term, now: entry.stamp };
        let mut outcomes = Vec::new();
        for (request, meant) in entry.requests().iter().zip(meant) {
            let before = self.reference.clone();
            let outcome = Rc::new(self.reference.apply(&context, request));
            judge::count(&before, request, &outcome, seen);
            if let Some(meant) = meant {
                self.judge_once(meant, &outcome);
                if matches!(*outcome, Outcome::Accepted(_)) {
                    self.judge_basis(&before, &context, &meant.command);
                    self.note_settings(&meant.command);
                }
                self.judge(&before, request, meant, &outcome);
            }
            outcomes.push(outcome);
        }
        let moving = self.moving();
        self.demand(moving == self.reference.moving(), "moves in flight are counted", || {
            format!("{moving} at {index}")
        });
        self.judge_formers();
        // This recomputes the digest too.
        for violation in state::check(&self.reference) {
            self.violated("invariants hold", format!("{violation:?}"));
        }
        let (witness, digest) = (self.reference.witness(), self.reference.digest());
        self.record.push(Applied { witness, digest, outcomes });
    }

    /// Ruling 12: a request of which a repetition would do harm counts once.
    fn judge_once(&mut self, meant: &Request, outcome: &Outcome) {
        let repeatable = !matches!(
            meant.command,
            Command::RemoveChannel { .. }
                | Command::MarkDropped { claim: None, .. }
                | Command::SetPolicy { .. }
        );
        let (Some(Retry { request_id, .. }), false) = (meant.retry, repeatable) else { return };
        let counted = self.once.get(&request_id).copied();
        match outcome {
            Outcome::Accepted(receipt) => {
                self.demand(counted.is_none(), "a request counts once", || {
                    format!("{} at {counted:?} and again", meant.command)
                });
                self.once.insert(request_id, receipt.record.revision);
            }
            Outcome::NoChange(Facts::Repeated(revision)) => {
                self.demand(counted == Some(*revision), "a request counts once", || {
                    format!("{} is told {revision}, not {counted:?}", meant.command)
                });
            }
            _ => {}
        }
    }

    fn judge(&mut self, before: &State, request: &Request, meant: &Request, outcome: &Outcome) {
        let after: (Timestamp, _) = (self.reference.now(), self.reference.revision());
        self.demand(after.0 >= before.now(), "log time never runs back", || format!("{request:?}"));
        let accepted = matches!(outcome, Outcome::Accepted(_));
        let quiet = after.1 == before.revision() && self.reference.witness() == before.witness();
        self.demand(accepted || quiet, "what is not accepted changes nothing", || {
            format!("{request:?}")
        });
        self.judge_plan(before, request, outcome);
        let Outcome::Accepted(receipt) = outcome else { return };
        for event in &receipt.record.events {
            if let Command::Place(decision) = &meant.command {
                self.judge_move(decision, event);
            }
            self.judge_session(&meant.command, event);
            self.judge_event(request, meant, event);
            if matches!(meant.command, Command::Place(_)) {
                self.judge_capacity(event);
            }
        }
    }

    /// The planner's moves are all taken where nothing happened in between.
    fn judge_plan(&mut self, before: &State, request: &Request, outcome: &Outcome) {
        let Command::Place(decision) = &request.command else { return };
        if request.actor != Text::cut("planner") || decision.basis.revision != before.revision() {
            return;
        }
        let refused = match outcome {
            Outcome::Accepted(receipt) => receipt.refused.clone(),
            Outcome::NoChange(Facts::AllRefused(refused)) => refused.clone(),
            _ => Vec::new(),
        };
        self.demand(refused.is_empty(), "apply takes a fresh plan whole", || {
            format!("{refused:?}")
        });
    }

    fn judge_event(&mut self, request: &Request, meant: &Request, event: &Event) {
        match event {
            Event::NodeCameUp { node, registration } => {
                self.sessions.insert(*node, registration.clone());
            }
            Event::NodeWentDown { node, cause } => {
                self.down.insert(*node, *cause);
            }
            Event::ChannelAdded { spec, term, .. } => {
                self.rises(&spec.name, *term);
                self.channels.insert(spec.name.clone(), Shadow::added(*term));
                self.positions.remove(&spec.name);
            }
            Event::ChannelPlaced { channel, to, term, op, .. } => {
                self.rises(channel, *term);
                let shadow = self.shadow(channel);
                self.demand(shadow.owner.is_none(), "one owner per channel and term", || {
                    format!("{channel} goes to {to} while {:?} owns it", shadow.owner)
                });
                let (owner, term, phase) = (Some(*to), *term, PhaseKind::ToWatch);
                self.change(channel, Shadow { owner, term, op: *op, phase, ..shadow });
                self.placed.insert((channel.clone(), term), *to);
            }
            Event::ReleaseStarted { channel, op, cause, .. } => {
                let shadow = self.shadow(channel);
                let (phase, moving) = (PhaseKind::ToRelease, counts(*cause));
                self.change(channel, Shadow { op: *op, phase, moving, ..shadow });
                self.judge_ack(request, channel, shadow);
            }
            Event::WatchCompleted { channel, .. } => {
                let shadow = self.shadow(channel);
                self.judge_ack(request, channel, shadow);
                let shadow = Shadow { phase: PhaseKind::Watched, ..shadow };
                self.channels.insert(channel.clone(), shadow);
            }
            Event::ChannelUnassigned { channel, from, term, cause, .. } => {
                let shadow = self.shadow(channel);
                self.judge_ack(request, channel, shadow);
                self.demand(shadow.owner == Some(*from), "only the owner loses a channel", || {
                    format!("{channel} is taken from {from}, its owner is {:?}", shadow.owner)
                });
                self.ended.insert((channel.clone(), shadow.term), self.end(*from, *cause));
                if !matches!(cause, UnassignCause::Released | UnassignCause::Stopped) {
                    self.left(channel, shadow);
                }
                self.rises(channel, *term);
                let added = shadow.added;
                self.change(channel, Shadow { added, ..Shadow::added(*term) });
            }
            Event::ChannelRemoved { channel, .. } => self.removed(request, channel),
            Event::FormerOwnerCleared { channel, former } => self.cleaned(channel, *former),
            Event::WatchDeadlineExtended { channel, progress } => self.extended(channel, *progress),
            Event::MetaCommitted { channel, positions, .. } => {
                self.judge_commit(meant, channel);
                self.positions.insert(channel.clone(), positions.clone());
            }
            _ => {}
        }
    }

    fn removed(&mut self, request: &Request, channel: &ChannelName) {
        let shadow = self.shadow(channel);
        let acked = match &request.command {
            Command::NodeAck(ack) => ack.result == AckResult::Ok,
            _ => false,
        };
        let end = if acked { End::Stopped } else { End::GivenUp };
        if !acked {
            self.left(channel, shadow);
        }
        self.ended.insert((channel.clone(), shadow.term), end);
        self.channels.remove(channel);
    }

    pub(super) fn shadow(&self, channel: &ChannelName) -> Shadow {
        let unknown = Shadow::added(ChannelTerm::default());
        self.channels.get(channel).copied().unwrap_or(unknown)
    }

    /// Channels in release that count against the limit of moves.
    pub(super) fn moving(&self) -> u32 {
        let moving = self.channels.values().filter(|shadow| shadow.moving);
        u32::try_from(moving.count()).expect("there are few channels")
    }

    fn change(&mut self, channel: &ChannelName, shadow: Shadow) {
        let old = self.channels.insert(channel.clone(), shadow);
        if let Some(old) = old {
            self.rumours.push((channel.clone(), old.owner, old.term, old.op));
        }
    }

    fn rises(&mut self, channel: &ChannelName, term: ChannelTerm) {
        let last = self.last_terms.insert(channel.clone(), term).unwrap_or_default();
        self.demand(term > last, "terms strictly rise", || {
            format!("{channel}: {term} after {last}")
        });
    }

    /// What an acknowledgement brought about, its owner must have said.
    fn judge_ack(&mut self, request: &Request, channel: &ChannelName, shadow: Shadow) {
        let Command::NodeAck(ack) = &request.command else { return };
        let said = (ack.node, channel.clone(), ack.term, ack.op, ack.result);
        self.demand(self.acks.contains(&said), "acknowledgements are their senders'", || {
            format!("{said:?}")
        });
        let in_force = (shadow.owner, shadow.term, shadow.op) == (Some(ack.node), ack.term, ack.op);
        self.demand(in_force, "only the owner acknowledges", || format!("{ack:?}"));
    }

    fn judge_commit(&mut self, request: &Request, channel: &ChannelName) {
        let Command::CommitMeta { claim, .. } = &request.command else { return };
        let shadow = self.shadow(channel);
        let owns = shadow.owner == Some(claim.node) && shadow.term == claim.term;
        self.demand(owns, "only the owner commits", || format!("{channel}: {claim:?}"));
    }

    fn end(&self, from: NodeRef, cause: UnassignCause) -> End {
        match cause {
            UnassignCause::Released | UnassignCause::Stopped => End::Stopped,
            UnassignCause::ReleaseFailed | UnassignCause::ReleaseTimeout => End::GivenUp,
            UnassignCause::NodeDown => match self.down.get(&from) {
                Some(DownCause::Expired) | None => End::Stopped,
                Some(DownCause::Revoked | DownCause::Replaced) => End::GivenUp,
            },
        }
    }

    /// What processes run at this moment: `running` holds those that are alive and not stopped.
    pub(super) fn observe<'a>(
        &mut self,
        running: impl Iterator<Item = (usize, &'a BTreeMap<ChannelName, Job>)>,
    ) {
        let mut found = Vec::new();
        for (slot, jobs) in running {
            for (channel, job) in jobs {
                if self.ended.get(&(channel.clone(), job.term)) == Some(&End::Stopped) {
                    found.push(format!("process {slot} still runs {channel} {}", job.term));
                }
                let owner = self.channels.get(channel).filter(|shadow| shadow.term >= job.term);
                if owner.is_none() && !self.ended.contains_key(&(channel.clone(), job.term)) {
                    found.push(format!("process {slot} runs {channel} {}, never given", job.term));
                }
            }
        }
        for detail in found {
            self.violated("what ended was stopped before", detail);
        }
    }

    /// A process that was granted its session not long ago is not expired, whoever led meanwhile.
    pub(super) fn judge_lease(&mut self, session: NodeRef, age_ms: u64, ttl_ms: u64) {
        let expired = self.down.get(&session) == Some(&DownCause::Expired);
        self.demand(!expired || age_ms >= ttl_ms, "only the silent expire", || {
            format!("{session} was renewed {age_ms} ms ago")
        });
    }

    /// At the end: nothing a client was told is lost.
    pub(super) fn judge_end(&mut self, log: &Log) {
        let replied = std::mem::take(&mut self.replied);
        for (index, command, outcome) in &replied {
            let kept = *index < log.len()
                && self.record[*index].outcomes.contains(outcome)
                && log.get(*index).requests().iter().any(|request| request.command == *command);
            self.demand(kept, "what was acknowledged is kept", || {
                format!("{command:?} at {index}")
            });
        }
        let wrong: Vec<ChannelName> = self
            .reference
            .channels()
            .filter(|channel| {
                let committed = channel.committed.as_ref().map(|committed| &committed.positions);
                committed != self.positions.get(&channel.spec.name)
            })
            .map(|channel| channel.spec.name.clone())
            .collect();
        self.demand(wrong.is_empty(), "what was acknowledged is kept", || format!("{wrong:?}"));
        let known: BTreeSet<_> = self.channels.keys().collect();
        let there: BTreeSet<_> = self.reference.channels().map(|c| &c.spec.name).collect();
        let equal = known == there;
        self.demand(equal, "what was acknowledged is kept", || "channels differ".to_owned());
    }
}
