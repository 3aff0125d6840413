//! A fake data node: one process with its session, its leases and its moods (N-1, N-2, N-6 to N-9).
//! What it runs is in `job`; which moods it gets, in `faults`.

use std::collections::{BTreeMap, BTreeSet};

use state::DirectiveKind;
use state::channel::AckResult;
use state::command::{NodeAck, OwnerClaim};
use state::epoch::{ChannelTerm, Op, Revision, Term};
use state::ids::{Address, ChannelName, Incarnation, NodeName, Text};
use state::node::{NodeRef, Registration, Role};

use super::coverage::{Coverage, Kind};
use super::job::{Job, Stage};
use super::net::{Message, Progress};
use super::oracle::Oracle;
use super::rng::Rng;
use super::world::{MARGIN_MS, TTL_MS};

/// What a node can see and do in one step.
pub(super) struct Scene<'a> {
    pub(super) now: u64,
    pub(super) rng: &'a mut Rng,
    pub(super) seen: &'a mut Coverage,
    pub(super) oracle: &'a mut Oracle,
    /// Whether nodes misbehave at all: false in the phase of convergence.
    pub(super) trouble: bool,
    pub(super) members: usize,
    pub(super) out: Vec<(usize, Message)>,
}

#[derive(Debug)]
pub(super) struct Agent {
    pub(super) slot: usize,
    worker: usize,
    role: Role,
    /// It has two names, of which a new process may choose either.
    other_name: bool,
    pub(super) alive: bool,
    /// It neither runs nor receives between these times.
    pub(super) hangs_from: u64,
    pub(super) hung_until: u64,
    /// Factor on everything it does.
    pub(super) slow: u64,
    /// Watches that fail, in a thousand.
    pub(super) fails: u64,
    /// It also reports what it has no business to report.
    pub(super) lies: bool,
    /// Tests of the tests: nodes without N-4, without N-2, and without N-9.
    pub(super) takes_lower_terms: bool,
    pub(super) takes_lower_leaders: bool,
    pub(super) never_fences: bool,
    /// Its clock against true time, in millionths.
    rate: u64,
    sessions: u64,
    registration: Registration,
    pub(super) session: Option<NodeRef>,
    /// As granted with the session.
    pub(super) ttl_ms: u64,
    lease_from_ms: u64,
    member: usize,
    sent_ms: u64,
    heard_ms: u64,
    seen_leader: (Term, Revision),
    /// Highest term and directive seen of each channel (N-4); outlives a session, not the process.
    pub(super) highest: BTreeMap<ChannelName, (ChannelTerm, Op)>,
    pub(super) jobs: BTreeMap<ChannelName, Job>,
    pub(super) answered: BTreeMap<ChannelName, (Op, DirectiveKind)>,
    pub(super) ignores: BTreeSet<Op>,
    pub(super) acks: Vec<NodeAck>,
    pub(super) acks_from_ms: u64,
    commits: u64,
}

impl Agent {
    pub(super) fn new(slot: usize, worker: usize, role: Role, rate: u64) -> Self {
        Self {
            slot,
            registration: registration(worker, role, false, (slot, 0)),
            worker,
            role,
            other_name: false,
            alive: false,
            hangs_from: 0,
            hung_until: 0,
            slow: 1,
            fails: 0,
            lies: false,
            takes_lower_terms: false,
            takes_lower_leaders: false,
            never_fences: false,
            rate,
            sessions: 0,
            session: None,
            ttl_ms: TTL_MS,
            lease_from_ms: 0,
            member: 0,
            sent_ms: 0,
            heard_ms: 0,
            seen_leader: (Term(0), Revision(0)),
            highest: BTreeMap::new(),
            jobs: BTreeMap::new(),
            answered: BTreeMap::new(),
            ignores: BTreeSet::new(),
            acks: Vec::new(),
            acks_from_ms: 0,
            commits: 0,
        }
    }

    /// Its own monotonic clock, up to two per cent wrong.
    pub(super) const fn local_ms(&self, now: u64) -> u64 {
        now * self.rate / 1_000_000
    }

    pub(super) const fn hung(&self, now: u64) -> bool {
        self.hangs_from <= now && now < self.hung_until
    }

    /// The process starts, maybe under its other name: it knows nothing of an earlier one.
    pub(super) fn boot(&mut self, now: u64, renamed: bool) {
        self.alive = true;
        self.other_name ^= renamed;
        self.highest.clear();
        self.seen_leader = (Term(0), Revision(0));
        self.begin_session(now);
    }

    pub(super) const fn session_count(&self) -> u64 {
        self.sessions
    }

    /// The address that its sessions have in common.
    pub(super) const fn address(&self) -> &Address {
        &self.registration.address
    }

    pub(super) fn crash(&mut self) {
        self.alive = false;
        self.session = None;
        self.stop_all();
    }

    fn stop_all(&mut self) {
        self.jobs.clear();
        self.acks.clear();
        self.answered.clear();
        self.ignores.clear();
    }

    /// Stops everything and asks for a new session under a new incarnation (N-9).
    fn begin_session(&mut self, now: u64) {
        self.stop_all();
        self.session = None;
        self.sessions += 1;
        let incarnation = (self.slot, self.sessions);
        self.registration = registration(self.worker, self.role, self.other_name, incarnation);
        self.sent_ms = 0;
        self.heard_ms = self.local_ms(now);
    }

    /// One step of its life. The fence comes first: a node that was stopped must look at its clock
    /// before it does anything else.
    pub(super) fn step(&mut self, scene: &mut Scene<'_>) {
        if !self.alive || self.hung(scene.now) {
            return;
        }
        self.fence(scene.now);
        let local = self.local_ms(scene.now);
        if local.saturating_sub(self.heard_ms) > self.ttl_ms / 4 + 300 {
            self.member = (self.member + 1) % scene.members;
            self.heard_ms = local;
            self.sent_ms = 0;
        }
        let Some(session) = self.session else {
            if local.saturating_sub(self.sent_ms) >= 300 {
                let registration = self.registration.clone();
                let message = Message::Register { registration, sent_ms: local };
                scene.out.push((self.member, message));
                self.sent_ms = local;
            }
            return;
        };
        self.work(session, scene);
        let acks_due = !self.acks.is_empty() && local >= self.acks_from_ms;
        let pause = if acks_due { 100 } else { self.ttl_ms / 4 };
        if local.saturating_sub(self.sent_ms) >= pause {
            self.report(session, local, scene);
        }
        self.commit(session, scene);
    }

    fn fence(&mut self, now: u64) {
        if self.session.is_some()
            && self.lease_age_ms(now) > self.ttl_ms - MARGIN_MS
            && !self.never_fences
        {
            self.begin_session(now);
        }
    }

    fn report(&mut self, session: NodeRef, local: u64, scene: &mut Scene<'_>) {
        self.sent_ms = local;
        let ready = local >= self.acks_from_ms;
        let mut acks = if ready { self.acks.clone() } else { Vec::new() };
        if self.lies && scene.trouble {
            scene.seen.hit(Kind::Fault, "agent_lied");
            acks.extend(self.lie(session, scene));
        }
        let starting =
            self.jobs.iter().filter(|(_, job)| matches!(job.stage, Stage::Starting { .. }));
        let starting = starting.map(|(channel, job)| Progress {
            channel: channel.clone(),
            term: job.term,
            op: job.op,
            progress: job.progress,
        });
        let mut progress: Vec<Progress> = starting.collect();
        if self.lies && scene.trouble {
            for said in &mut progress {
                said.progress = scene.rng.between(0, said.progress);
            }
        }
        let message = Message::Report { session, sent_ms: local, acks, progress };
        scene.out.push((self.member, message));
    }

    /// Acknowledges what it does not own, an old term, another's channel.
    fn lie(&self, session: NodeRef, scene: &mut Scene<'_>) -> Option<NodeAck> {
        let (channel, owner, term, op) = scene.oracle.gossip(scene.rng)?;
        if owner == Some(session) {
            return None;
        }
        let results =
            [AckResult::Ok, AckResult::FailedStopped, AckResult::Failed, AckResult::Conflict];
        let result = *scene.rng.pick(&results)?;
        let reason = Text::cut("a lie");
        Some(NodeAck { node: session, channel, term, op, result, reason })
    }

    /// Records positions for a channel it runs, now and then.
    fn commit(&mut self, session: NodeRef, scene: &mut Scene<'_>) {
        if self.jobs.is_empty() || !scene.trouble || !scene.rng.permille(20) {
            return;
        }
        let running: Vec<_> = self.jobs.iter().map(|(channel, job)| (channel, job.term)).collect();
        let Some((channel, term)) = scene.rng.pick(&running) else { return };
        self.commits += 1;
        let positions = format!("{} {} {}", self.slot, self.sessions, self.commits).into_bytes();
        let claim = OwnerClaim { node: session, term: *term };
        let channel = (*channel).clone();
        scene.out.push((self.member, Message::Commit { channel, claim, positions }));
    }

    /// Takes a message from this coordinator.
    pub(super) fn receive(&mut self, from: usize, message: Message, scene: &mut Scene<'_>) {
        if !self.alive {
            return;
        }
        self.fence(scene.now);
        match message {
            Message::NotLeader { hint } => {
                if let (true, Some(hint)) = (from == self.member, hint) {
                    self.member = hint;
                    self.sent_ms = 0;
                }
            }
            Message::Registered { session, registration, ttl_ms, sent_ms }
                if self.session.is_none() && registration == self.registration =>
            {
                self.session = Some(session);
                self.ttl_ms = ttl_ms;
                self.lease_from_ms = sent_ms;
                self.heard_ms = self.local_ms(scene.now);
                self.fence(scene.now);
            }
            Message::Renewed { session, sent_ms } if self.session == Some(session) => {
                self.lease_from_ms = self.lease_from_ms.max(sent_ms);
                self.heard_ms = self.local_ms(scene.now);
            }
            Message::SessionOver { session } if self.session == Some(session) => {
                self.begin_session(scene.now);
            }
            Message::Directives { session, leader_term, revision, set }
                if self.session == Some(session) =>
            {
                if leader_term < self.seen_leader.0 && !self.takes_lower_leaders {
                    scene.seen.hit(Kind::Refusal, "F10 node refused a lower leader term");
                    return;
                }
                // Without F10 whoever speaks last is the leader, and sets are ordered by revision
                // only among those of one leader.
                let newest = leader_term != self.seen_leader.0 || revision >= self.seen_leader.1;
                if newest {
                    self.seen_leader = (leader_term, revision);
                }
                self.obey(session, &set, newest.then_some((leader_term, revision)), scene);
            }
            Message::Recorded { session, channel, op, result } if self.session == Some(session) => {
                self.acks
                    .retain(|ack| (&ack.channel, ack.op, ack.result) != (&channel, op, result));
            }
            Message::Committed { index, command, outcome } => {
                scene.oracle.replied(index, command, outcome);
            }
            _ => {}
        }
    }

    /// Milliseconds of its own clock since it sent the last renewal that was acknowledged.
    pub(super) const fn lease_age_ms(&self, now: u64) -> u64 {
        self.local_ms(now).saturating_sub(self.lease_from_ms)
    }
}

/// Two names and one address for each worker; each session is another incarnation.
fn registration(
    worker: usize,
    role: Role,
    other_name: bool,
    (slot, session): (usize, u64),
) -> Registration {
    let letter = if other_name { 'v' } else { 'w' };
    Registration {
        name: NodeName::new(&format!("{letter}{worker}")).expect("a valid name"),
        address: Address::new(&format!("10.0.0.{worker}:7000")).expect("a valid address"),
        role,
        version: Text::cut("1"),
        labels: BTreeMap::new(),
        incarnation: Incarnation::new(&format!("{slot}-{session}")).expect("a valid incarnation"),
    }
}
