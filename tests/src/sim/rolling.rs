//! Rolling restarts: for an hour of virtual time workers are restarted one after the other, again
//! and again, at the settings of a new group; leaders change in between. Counts how often channels
//! change their owner. There are no other faults; those are in `world`.

use std::collections::BTreeMap;
use std::fmt;

use planner::{Budget, View};
use server::leader::look::{Look, plan_at};
use server::leader::silence::{Observation, SilenceMeter};
use state::channel::{AckResult, ChannelSpec, ReleaseCause};
use state::command::{Command, NodeAck, OwnerClaim, Request};
use state::decision::Decision;
use state::epoch::{Term, Timestamp};
use state::event::Event;
use state::ids::{ChannelName, CollectionId, MemberId, Text};
use state::outcome::Outcome;
use state::{Context, State};

use super::rest::uneven;
use super::restart::{Restart, Worker};
use super::rng::Rng;

pub(super) const WORKERS: usize = 12;
const CHANNELS: usize = 240;
const STEP_MS: u64 = 100;
const HOUR_MS: u64 = 3_600_000;
/// Balance has this long to even out what the last restart left.
const AFTERMATH_MS: u64 = HOUR_MS;
/// Wall clock at the start.
const START_MS: u64 = 1_700_000_000_000;

/// What an hour of restarts led to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rolled {
    /// Restarts: drained first; killed and back before its session expired; killed and back after.
    pub restarts: [u64; 3],
    /// Leaders.
    pub leaders: u64,
    /// Placements beyond the first of each channel.
    pub made: u64,
    /// Channels that a worker owned when its restart began, over all restarts.
    pub necessary: u64,
    /// Moves of the planner's balance, which no restart asked for.
    pub balanced: u64,
    /// What is wrong at the end, if anything: not watched, or uneven.
    pub unrest: Option<String>,
}

/// The leader and what it keeps in memory.
#[derive(Debug)]
struct Leader {
    meter: SilenceMeter,
    observe_ms: u64,
    looked: Option<Look>,
    decision: Option<Decision>,
    until_ms: u64,
}

#[derive(Debug)]
pub(super) struct Rolling {
    pub(super) now: u64,
    pub(super) rng: Rng,
    pub(super) state: State,
    term: Term,
    leader: Option<Leader>,
    elect_ms: u64,
    pub(super) workers: Vec<Worker>,
    pub(super) restart: Restart,
    placed: BTreeMap<ChannelName, u64>,
    pub(super) end: Rolled,
}

/// Restarts all workers again and again for an hour.
#[must_use]
pub fn roll(seed: u64) -> Rolled {
    let mut rolling = Rolling::new(seed);
    rolling.found();
    while rolling.now < HOUR_MS {
        rolling.step();
        rolling.restart_workers();
    }
    while rolling.now < HOUR_MS + AFTERMATH_MS {
        rolling.step();
        rolling.finish_restart();
        if rolling.settled() && uneven(&rolling.state).is_none() {
            break;
        }
    }
    let unrest = if rolling.settled() {
        uneven(&rolling.state)
    } else {
        Some("a channel is not watched".to_owned())
    };
    Rolled { unrest, ..rolling.end }
}

impl Rolling {
    fn new(seed: u64) -> Self {
        Self {
            now: 0,
            rng: Rng::new(seed),
            state: State::new(0),
            term: Term(0),
            leader: None,
            elect_ms: 0,
            workers: (0..WORKERS).map(Worker::new).collect(),
            restart: Restart::Pause { until_ms: 60_000 },
            placed: BTreeMap::new(),
            end: Rolled::default(),
        }
    }

    /// All workers register, then the channels are announced.
    fn found(&mut self) {
        self.step();
        self.apply("operator", Command::SetLevel { level: 2 });
        for worker in 0..WORKERS {
            self.register(worker);
        }
        let spec = |number: usize| ChannelSpec {
            name: ChannelName::new(&format!("c{number:03}")).expect("a valid name"),
            collection: CollectionId(u64::try_from(number / 8).expect("it is small")),
            pchannel: Text::cut(&format!("p{}", number % 16)),
            positions: vec![1],
            schema_ref: Text::cut("s"),
        };
        self.apply("operator", Command::WatchChannels((0..CHANNELS).map(spec).collect()));
    }

    /// Every channel is watched and nothing else goes on.
    pub(super) fn settled(&self) -> bool {
        usize::try_from(self.state.counts().watched) == Ok(CHANNELS)
    }

    fn step(&mut self) {
        self.now += STEP_MS;
        self.lead();
        for worker in 0..WORKERS {
            self.work(worker);
        }
    }

    pub(super) fn apply(&mut self, actor: &str, command: Command) -> Outcome {
        let context = Context { term: self.term, now: Timestamp(START_MS + self.now) };
        let request = Request { actor: Text::cut(actor), retry: None, command };
        let outcome = self.state.apply(&context, &request);
        let Outcome::Accepted(receipt) = &outcome else { return outcome };
        for event in &receipt.record.events {
            match event {
                Event::ChannelPlaced { channel, .. } => {
                    let times = self.placed.entry(channel.clone()).or_default();
                    self.end.made += u64::from(*times > 0);
                    *times += 1;
                }
                Event::ReleaseStarted { cause: ReleaseCause::Balance, .. } => {
                    self.end.balanced += 1;
                }
                _ => {}
            }
        }
        outcome
    }

    /// Leaders last for some minutes; it takes a moment until there is the next one.
    fn lead(&mut self) {
        if self.leader.as_ref().is_some_and(|leader| leader.until_ms <= self.now) {
            self.leader = None;
            self.elect_ms = self.now + self.rng.between(200, 2_000);
        }
        let Some(mut leader) = self.leader.take() else {
            if self.now >= self.elect_ms {
                self.elect();
            }
            return;
        };
        self.sessions(&mut leader);
        for command in self.state.due(self.stamp(), 64) {
            self.apply("deadlines", command);
        }
        let done = |(channel, former): (&ChannelName, state::channel::FormerOwner)| {
            let former = OwnerClaim { node: former.node, term: former.term };
            Command::EffectDone { channel: channel.clone(), former }
        };
        let cleaned: Vec<_> = self.state.effects().map(done).collect();
        for command in cleaned {
            self.apply("effects", command);
        }
        self.plan(&mut leader);
        self.leader = Some(leader);
    }

    const fn stamp(&self) -> Timestamp {
        Timestamp(START_MS + self.now)
    }

    fn elect(&mut self) {
        self.term = Term(self.term.0 + 1);
        let command = Command::LeaderStart { term: self.term, member: MemberId(1) };
        self.apply("leader", command);
        self.end.leaders += 1;
        self.leader = Some(Leader {
            meter: SilenceMeter::start(&self.state, self.now),
            observe_ms: self.now,
            looked: None,
            decision: None,
            until_ms: self.now + self.rng.between(60_000, 600_000),
        });
    }

    fn sessions(&mut self, leader: &mut Leader) {
        if self.now < leader.observe_ms {
            return;
        }
        leader.observe_ms = self.now + SilenceMeter::interval_ms(&self.state);
        let found = leader.meter.observe(&self.state, self.now);
        let expired = leader.meter.expired(&self.state, self.term, self.now);
        self.observed(leader, found);
        for command in expired {
            self.apply("sessions", command);
        }
    }

    fn observed(&mut self, leader: &mut Leader, found: Observation) {
        let renewed = found.renewed.clone();
        if let Some(command) = leader.meter.report(self.term, found) {
            self.apply("sessions", command);
        }
        leader.meter.settled(&renewed);
    }

    /// What was decided one step ago is judged now.
    fn plan(&mut self, leader: &mut Leader) {
        if let Some(decision) = leader.decision.take() {
            let outcome = self.apply("planner", Command::Place(decision));
            if !matches!(outcome, Outcome::Accepted(_)) {
                leader.looked = None;
            }
        }
        let (revision, now) = (self.state.revision(), self.stamp());
        if plan_at(&self.state, leader.looked).is_none_or(|at| at > now) {
            return;
        }
        let view = View { state: &self.state, term: self.term, now };
        let plan = planner::plan(&view, &Budget { moves_max: state::limits::MOVES_MAX });
        leader.looked = Some(Look { revision, at: now, wake_at: plan.wake_at });
        leader.decision = plan.decision;
    }

    /// A worker does what it is told to, says so, and renews its session.
    fn work(&mut self, index: usize) {
        let worker = &mut self.workers[index];
        let Some(session) = worker.session.filter(|_| worker.alive) else { return };
        let Some(mut leader) = self.leader.take() else { return };
        worker.learn(&self.state, session, self.now, &mut self.rng);
        for (channel, term, op) in worker.done(self.now) {
            let (result, reason) = (AckResult::Ok, Text::cut(""));
            let ack = NodeAck { node: session, channel, term, op, result, reason };
            self.apply("node", Command::NodeAck(ack));
        }
        if self.workers[index].renews(self.now, self.state.policy().ttl_ms) {
            leader.meter.touch(session, self.now);
            if leader.meter.must_log_renewal(&self.state, session) {
                let found = Observation { silent: Vec::new(), renewed: vec![session] };
                self.observed(&mut leader, found);
            }
        }
        self.leader = Some(leader);
    }

    /// A worker asks for a session under a new incarnation.
    pub(super) fn register(&mut self, index: usize) {
        let registration = self.workers[index].begin();
        let outcome = self.apply("node", Command::RegisterSession(registration));
        let Outcome::Accepted(receipt) = outcome else { panic!("not registered: {outcome:?}") };
        self.workers[index].session = receipt.record.events.iter().find_map(|event| match event {
            Event::NodeCameUp { node, .. } => Some(*node),
            _ => None,
        });
    }
}

impl fmt::Display for Rolled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { made, necessary, .. } = self;
        let ratio = made * 1_000 / necessary.max(&1);
        write!(f, "rolling restarts: {made} moves made, {necessary} necessary, ratio ")?;
        write!(f, "{}.{:03}", ratio / 1_000, ratio % 1_000)
    }
}
