//! What must never happen. Keeps a record of its own, made from the log and from what nodes do, and
//! compares everything with it. What counts as covered is in `judge`.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use state::channel::{AckResult, UnassignCause};
use state::command::{Command, NodeAck, Request};
use state::epoch::{ChannelTerm, Op, Timestamp};
use state::event::Event;
use state::ids::{ChannelName, Text};
use state::node::{DownCause, NodeRef};
use state::outcome::{Facts, Outcome};
use state::{Context, State};

use super::coverage::Coverage;
use super::job::Job;
use super::judge;
use super::log::Log;
use super::replica::Applied;
use super::rng::Rng;
use super::world::TTL_MS;

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
#[derive(Debug, Clone, Copy, Default)]
struct Shadow {
    owner: Option<NodeRef>,
    term: ChannelTerm,
    op: Op,
}

/// A channel, its owner, a term and a directive, as rumour has it.
pub(super) type Gossip = (ChannelName, Option<NodeRef>, ChannelTerm, Op);

#[derive(Debug)]
pub(super) struct Oracle {
    /// Applies every entry at the moment it is committed.
    pub(super) reference: State,
    pub(super) record: Vec<Applied>,
    pub(super) violations: Vec<Violation>,
    channels: BTreeMap<ChannelName, Shadow>,
    last_terms: BTreeMap<ChannelName, ChannelTerm>,
    placed: BTreeMap<(ChannelName, ChannelTerm), NodeRef>,
    ended: BTreeMap<(ChannelName, ChannelTerm), End>,
    down: BTreeMap<NodeRef, DownCause>,
    acks: BTreeSet<(NodeRef, ChannelName, ChannelTerm, Op, AckResult)>,
    started: BTreeMap<(usize, ChannelName), ChannelTerm>,
    positions: BTreeMap<ChannelName, Vec<u8>>,
    replied: Vec<(usize, Command, Rc<Outcome>)>,
    rumours: Vec<Gossip>,
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
            acks: BTreeSet::new(),
            started: BTreeMap::new(),
            positions: BTreeMap::new(),
            replied: Vec::new(),
            rumours: Vec::new(),
        }
    }

    pub(super) fn violated(&mut self, rule: &'static str, detail: String) {
        self.violations.push(Violation { rule, detail });
    }

    fn demand(&mut self, holds: bool, rule: &'static str, detail: impl FnOnce() -> String) {
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

    /// An entry was committed: judges what it does.
    pub(super) fn committed(&mut self, log: &Log, index: usize, seen: &mut Coverage) {
        let entry = log.get(index);
        let context = Context { term: entry.term, now: entry.stamp };
        let mut outcomes = Vec::new();
        for request in &entry.requests() {
            let before = self.reference.clone();
            let outcome = Rc::new(self.reference.apply(&context, request));
            judge::count(&before, request, &outcome, seen);
            self.judge(&before, request, &outcome);
            outcomes.push(outcome);
        }
        for violation in state::check(&self.reference) {
            self.violated("invariants hold", format!("{violation:?}"));
        }
        let (witness, digest) = (self.reference.witness(), self.reference.digest());
        let again = self.reference.recompute_digest();
        self.demand(digest == again, "the digest is that of the records", || format!("at {index}"));
        self.record.push(Applied { witness, digest, outcomes });
    }

    fn judge(&mut self, before: &State, request: &Request, outcome: &Outcome) {
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
            self.judge_event(request, event);
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

    fn judge_event(&mut self, request: &Request, event: &Event) {
        match event {
            Event::NodeWentDown { node, cause } => {
                self.down.insert(*node, *cause);
            }
            Event::ChannelAdded { spec, term, .. } => {
                self.rises(&spec.name, *term);
                let shadow = Shadow { term: *term, ..Shadow::default() };
                self.channels.insert(spec.name.clone(), shadow);
                self.positions.remove(&spec.name);
            }
            Event::ChannelPlaced { channel, to, term, op, .. } => {
                self.rises(channel, *term);
                let shadow = self.shadow(channel);
                self.demand(shadow.owner.is_none(), "one owner per channel and term", || {
                    format!("{channel} goes to {to} while {:?} owns it", shadow.owner)
                });
                self.change(channel, Shadow { owner: Some(*to), term: *term, op: *op });
                self.placed.insert((channel.clone(), *term), *to);
            }
            Event::ReleaseStarted { channel, op, .. } => {
                let shadow = self.shadow(channel);
                self.change(channel, Shadow { op: *op, ..shadow });
                self.judge_ack(request, channel, shadow);
            }
            Event::WatchCompleted { channel, .. } => {
                self.judge_ack(request, channel, self.shadow(channel));
            }
            Event::ChannelUnassigned { channel, from, term, cause, .. } => {
                let shadow = self.shadow(channel);
                self.judge_ack(request, channel, shadow);
                self.demand(shadow.owner == Some(*from), "only the owner loses a channel", || {
                    format!("{channel} is taken from {from}, its owner is {:?}", shadow.owner)
                });
                self.ended.insert((channel.clone(), shadow.term), self.end(*from, *cause));
                self.rises(channel, *term);
                self.change(channel, Shadow { term: *term, ..Shadow::default() });
            }
            Event::ChannelRemoved { channel, .. } => {
                let shadow = self.shadow(channel);
                let acked = match &request.command {
                    Command::NodeAck(ack) => ack.result == AckResult::Ok,
                    _ => false,
                };
                let end = if acked { End::Stopped } else { End::GivenUp };
                self.ended.insert((channel.clone(), shadow.term), end);
                self.channels.remove(channel);
            }
            Event::MetaCommitted { channel, positions, .. } => {
                self.judge_commit(request, channel);
                self.positions.insert(channel.clone(), positions.clone());
            }
            _ => {}
        }
    }

    fn shadow(&self, channel: &ChannelName) -> Shadow {
        self.channels.get(channel).copied().unwrap_or_default()
    }

    fn change(&mut self, channel: &ChannelName, shadow: Shadow) {
        let old = self.channels.insert(channel.clone(), shadow).unwrap_or_default();
        if self.rumours.len() < 512 {
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
        let in_force = shadow.owner == Some(ack.node) && shadow.term == ack.term;
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
    pub(super) fn judge_lease(&mut self, session: NodeRef, age_ms: u64) {
        let expired = self.down.get(&session) == Some(&DownCause::Expired);
        self.demand(!expired || age_ms >= TTL_MS, "only the silent expire", || {
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
