//! The world of a run: members, workers, clients, the log and the net, moved on step by step.
//! A phase of trouble, then a phase of calm in which everything has to come to rest.

use std::collections::{BTreeMap, VecDeque};

use state::command::Request;
use state::epoch::Term;
use state::node::Role;

use super::agent::{Agent, Scene};
use super::breach::{self, Broken, Written};
use super::churn::Churn;
use super::client::{Client, Wish};
use super::coverage::{Coverage, Kind};
use super::intents::{Policies, wished_policies};
use super::log::Log;
use super::net::{Endpoint, Envelope, Message, Net};
use super::oracle::Oracle;
use super::reign::{Desk, Proposal, Reign, Tag};
use super::replica::Replica;
use super::rng::Rng;
use super::story::{Failure, Story};

/// Session times of the simulated group at first; the rest is in `intents`.
pub(super) const TTL_MS: u64 = 3_000;
pub(super) const MARGIN_MS: u64 = 300;
/// Longest election timeout of the simulated Raft.
pub(super) const ELECTION_MAX_MS: u64 = 800;

pub(super) const STEP_MS: u64 = 20;
const TROUBLE_STEPS: u64 = 1_500;
/// Calm has to come within this; it takes a dead session's ttl and grace at least.
const CALM_STEPS_MAX: u64 = 3_000;
/// Nothing may be written for this long at the end.
pub(super) const QUIET_STEPS: u64 = 100;
pub(super) const MEMBERS: usize = 3;
/// Data workers. Two more processes come after theirs.
pub(super) const WORKERS: usize = 5;
/// A second process of the first worker.
pub(super) const TWIN: usize = WORKERS;
/// A worker that serves queries: it has a session and never a channel.
pub(super) const QUERY: usize = WORKERS + 1;
/// The process that stays dead in the phase of calm: its session must expire.
pub(super) const DOOMED: usize = WORKERS - 1;

#[derive(Debug)]
pub(super) struct Member {
    pub(super) replica: Replica,
    pub(super) down_until: u64,
    pub(super) stalled_until: u64,
    pub(super) isolated_until: u64,
    pub(super) lags_until: u64,
    /// Wall clock against true time.
    pub(super) wall_base: u64,
    pub(super) reign: Option<Reign>,
    pub(super) queue: VecDeque<Proposal>,
    waiting: BTreeMap<usize, Tag>,
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) now: u64,
    pub(super) rng: Rng,
    pub(super) seen: Coverage,
    pub(super) oracle: Oracle,
    pub(super) log: Log,
    pub(super) net: Net,
    pub(super) members: Vec<Member>,
    pub(super) agents: Vec<Agent>,
    pub(super) clients: Vec<Client>,
    pub(super) term: Term,
    pub(super) leader: Option<usize>,
    pub(super) election_ms: u64,
    /// What deposed leaders never got into the log.
    pub(super) lost: Vec<Request>,
    pub(super) trouble: bool,
    pub(super) churn: Churn,
    /// Whether clients want load to be evened out.
    pub(super) balance: bool,
    policies: Policies,
    broken: Option<Broken>,
    pub(super) quiet_since: (usize, u64),
}

/// Runs one seed.
///
/// # Errors
/// The first thing that must never happen.
pub fn run(seed: u64) -> Result<Story, Failure> {
    World::new(seed, None).run(seed)
}

/// Runs one seed with a fence left out.
///
/// # Errors
/// What the oracle noticed.
pub fn run_broken(seed: u64, broken: Broken) -> Result<Story, Failure> {
    World::new(seed, Some(broken)).run(seed)
}

impl World {
    fn new(seed: u64, broken: Option<Broken>) -> Self {
        let mut rng = Rng::new(seed);
        let mut members: Vec<Member> = (0..MEMBERS).map(|_| Member::new(&mut rng)).collect();
        members[MEMBERS - 1].replica.skips_requests = broken == Some(Broken::SkippedRequests);
        let mut agents = Vec::new();
        for slot in 0..=QUERY {
            let rate = rng.between(990_000, 1_010_000);
            let worker = if slot == TWIN { 0 } else { slot };
            let role = if slot == QUERY { Role::Query } else { Role::Data };
            let mut agent = Agent::new(slot, worker, role, rate);
            agent.takes_lower_terms = broken == Some(Broken::LowerTerms);
            agent.takes_lower_leaders = broken == Some(Broken::LowerLeaders);
            agent.never_fences = broken == Some(Broken::NoSelfFence);
            agents.push(agent);
        }
        let churn = Churn::new(&mut rng);
        let balance = rng.permille(800);
        let policies = wished_policies(&mut rng);
        Self {
            now: 1_000,
            rng,
            seen: Coverage::default(),
            oracle: Oracle::new(),
            log: Log::default(),
            net: Net::default(),
            members,
            agents,
            clients: vec![Client::new(0), Client::new(1)],
            term: Term(0),
            leader: None,
            election_ms: 0,
            lost: Vec::new(),
            trouble: true,
            churn,
            balance,
            policies,
            broken,
            quiet_since: (0, 0),
        }
    }

    fn run(mut self, seed: u64) -> Result<Story, Failure> {
        for slot in (0..=QUERY).filter(|slot| *slot != TWIN) {
            self.boot(slot);
        }
        for _ in 0..TROUBLE_STEPS {
            self.meddle();
            self.step(seed)?;
        }
        self.calm();
        for _ in 0..CALM_STEPS_MAX {
            self.step(seed)?;
            if self.at_rest() {
                self.oracle.judge_end(&self.log);
                self.replay_from_nothing();
                break;
            }
        }
        if !self.at_rest() {
            let last = self.log.get(self.log.len() - 1).requests();
            let detail = format!("{}; last written: {last:?}", self.unrest());
            self.oracle.violated("comes to rest", detail);
        }
        self.check(seed)?;
        let digest = self.oracle.reference.digest().to_string();
        Ok(Story { coverage: self.seen, entries: self.log.len(), end_ms: self.now, digest })
    }

    fn check(&mut self, seed: u64) -> Result<(), Failure> {
        let Some(violation) = self.oracle.violations.first().cloned() else { return Ok(()) };
        Err(Failure { seed, at_ms: self.now, violation })
    }

    fn step(&mut self, seed: u64) -> Result<(), Failure> {
        self.now += STEP_MS;
        self.elect();
        while let Some(envelope) = self.net.next(self.now, &mut self.seen) {
            self.deliver(envelope);
        }
        self.commit();
        for member in 0..MEMBERS {
            self.apply(member);
            self.tick(member);
        }
        self.step_agents();
        self.step_clients();
        self.check(seed)
    }

    pub(super) fn in_quorum(&self, member: usize) -> bool {
        let member = &self.members[member];
        self.now >= member.down_until
            && self.now >= member.isolated_until
            && self.now >= member.stalled_until
    }

    fn has_quorum(&self) -> bool {
        (0..MEMBERS).filter(|member| self.in_quorum(*member)).count() * 2 > MEMBERS
    }

    /// Elects a member that hears a quorum. What Raft promises is assumed: it has every committed
    /// entry.
    fn elect(&mut self) {
        if self.leader.is_some() || self.now < self.election_ms || !self.has_quorum() {
            return;
        }
        let able: Vec<usize> = (0..MEMBERS).filter(|m| self.in_quorum(*m)).collect();
        let Some(member) = self.candidate(&able) else { return };
        self.term = Term(self.term.0 + self.rng.between(1, 2));
        self.leader = Some(member);
        self.step_down(member);
        while self.members[member].replica.applied < self.log.len() {
            self.apply_one(member);
        }
        let wall = self.members[member].wall_base + self.now;
        let term = self.term;
        self.at_desk(member, |_, state, desk| Some(Reign::begin(member, term, state, wall, desk)));
        self.seen.hit(Kind::Note, "leader elected");
        if self.churn.on(self.now) {
            self.commit_first(member);
            self.apply_one(member);
        }
    }

    /// Lets a leader, or one to be, do something; collects what it sends and proposes.
    pub(super) fn at_desk(
        &mut self,
        index: usize,
        act: impl FnOnce(Option<&mut Reign>, &state::State, &mut Desk<'_>) -> Option<Reign>,
    ) {
        let member = &mut self.members[index];
        let mut desk = Desk {
            now: self.now,
            rng: &mut self.rng,
            sends: Vec::new(),
            proposals: Vec::new(),
            quick: self.churn.on(self.now),
            broken: self.broken,
            log_len: self.log.len(),
        };
        let begun = act(member.reign.as_mut(), &member.replica.state, &mut desk);
        if begun.is_some() {
            member.reign = begun;
        }
        member.queue.extend(desk.proposals);
        for (to, message) in desk.sends {
            let envelope = Envelope { from: Endpoint::Member(index), to, message };
            self.net.send(self.now, envelope, &mut self.rng, &mut self.seen);
        }
    }

    /// The leader is deposed: a prefix of what it proposed gets committed, the rest never does.
    pub(super) fn depose(&mut self) {
        let Some(member) = self.leader.take() else { return };
        self.election_ms = self.now + self.rng.between(20, 1_500);
        let proposed = self.members[member].queue.len();
        let kept = self.rng.index(proposed + 1);
        for _ in 0..kept {
            self.commit_first(member);
        }
    }

    /// A member learns that it does not lead, or forgets that it did.
    pub(super) fn step_down(&mut self, member: usize) {
        let member = &mut self.members[member];
        member.reign = None;
        member.waiting.clear();
        for proposal in member.queue.drain(..) {
            self.seen.hit(Kind::Fault, "proposal_lost");
            self.lost.extend(proposal.batch);
        }
        let surplus = self.lost.len().saturating_sub(64);
        self.lost.drain(..surplus);
    }

    fn commit(&mut self) {
        let Some(leader) = self.leader else { return };
        if !self.in_quorum(leader) || !self.has_quorum() {
            return;
        }
        while self.members[leader].queue.front().is_some_and(|first| first.ready_ms <= self.now) {
            self.commit_first(leader);
        }
    }

    fn commit_first(&mut self, leader: usize) {
        let member = &mut self.members[leader];
        let Some(Proposal { batch, tag, stamp, .. }) = member.queue.pop_front() else { return };
        let Some(reign) = &member.reign else { return };
        let term = reign.term;
        let written = breach::written(batch, self.broken, term, &self.oracle);
        let split = written.into_iter().map(|Written { request, meant }| (request, meant));
        let (batch, meant): (Vec<_>, Vec<_>) = split.unzip();
        let index = self.log.push(term, stamp, &batch);
        self.members[leader].waiting.insert(index, tag);
        self.oracle.committed(&self.log, index, &meant, &mut self.seen);
    }

    fn apply(&mut self, index: usize) {
        let member = &self.members[index];
        if self.now < member.down_until || self.now < member.stalled_until {
            return;
        }
        // A member that is cut off gets no entries, a follower that lags gets them late.
        if self.now < member.isolated_until || self.now < member.lags_until {
            return;
        }
        while self.members[index].replica.applied < self.log.len() {
            self.apply_one(index);
        }
        if self.rng.permille(3) {
            self.members[index].replica.take_snapshot();
        }
    }

    fn apply_one(&mut self, index: usize) {
        let member = &mut self.members[index];
        let at = member.replica.applied;
        if let Err(detail) = member.replica.apply_next(&self.log, &self.oracle.record) {
            self.oracle.violated("replicas are equal", format!("member {index} {detail}"));
        }
        let Some(tag) = member.waiting.remove(&at) else { return };
        let outcomes = self.oracle.record[at].outcomes.clone();
        self.at_desk(index, |reign, state, desk| {
            if let Some(reign) = reign {
                reign.done(tag, at, &outcomes, state, desk);
            }
            None
        });
    }

    fn tick(&mut self, index: usize) {
        let member = &self.members[index];
        if self.now < member.down_until || self.now < member.stalled_until {
            return;
        }
        let deposed = member.reign.as_ref().is_some_and(|reign| reign.term < self.term)
            || (member.reign.is_some() && self.leader != Some(index));
        if deposed && self.now >= member.isolated_until {
            self.step_down(index);
            return;
        }
        let heard = self.leader == Some(index) && self.in_quorum(index) && self.has_quorum();
        let now = self.now;
        self.at_desk(index, |reign, state, desk| {
            if let Some(reign) = reign {
                if heard {
                    reign.quorum_ms = now;
                }
                reign.tick(state, desk);
            }
            None
        });
    }

    fn deliver(&mut self, envelope: Envelope) {
        match envelope.to {
            Endpoint::Member(index) => self.deliver_to_member(index, envelope),
            Endpoint::Agent(slot) => {
                if self.agents[slot].hung(self.now) {
                    self.net.defer(self.agents[slot].hung_until, envelope);
                    return;
                }
                let Endpoint::Member(from) = envelope.from else { return };
                self.with_agent(slot, |agent, scene| agent.receive(from, envelope.message, scene));
            }
            Endpoint::Client(client) => {
                self.clients[client].receive(envelope.message, self.now, &mut self.oracle);
            }
        }
    }

    fn deliver_to_member(&mut self, index: usize, envelope: Envelope) {
        let member = &self.members[index];
        if self.now < member.down_until {
            return;
        }
        if self.now < member.stalled_until {
            self.net.defer(member.stalled_until, envelope);
            return;
        }
        if member.reign.is_none() {
            let hint = self.leader.filter(|_| self.now >= member.isolated_until);
            let message = Message::NotLeader { hint };
            let back = Envelope { from: envelope.to, to: envelope.from, message };
            self.net.send(self.now, back, &mut self.rng, &mut self.seen);
            return;
        }
        self.at_desk(index, |reign, state, desk| {
            if let Some(reign) = reign {
                reign.receive(envelope.from, envelope.message, state, desk);
            }
            None
        });
    }

    fn with_agent(&mut self, slot: usize, act: impl FnOnce(&mut Agent, &mut Scene<'_>)) {
        let mut scene = Scene {
            now: self.now,
            rng: &mut self.rng,
            seen: &mut self.seen,
            oracle: &mut self.oracle,
            trouble: self.trouble,
            members: MEMBERS,
            out: Vec::new(),
        };
        act(&mut self.agents[slot], &mut scene);
        for (member, message) in scene.out {
            let (from, to) = (Endpoint::Agent(slot), Endpoint::Member(member));
            let envelope = Envelope { from, to, message };
            self.net.send(self.now, envelope, &mut self.rng, &mut self.seen);
        }
    }

    fn step_agents(&mut self) {
        for slot in 0..self.agents.len() {
            self.with_agent(slot, Agent::step);
        }
        let now = self.now;
        for agent in self.agents.iter().filter(|agent| agent.alive) {
            if let Some(session) = agent.session {
                self.oracle.judge_lease(session, agent.lease_age_ms(now), agent.ttl_ms);
            }
        }
        let awake = self.agents.iter().filter(|agent| agent.alive && !agent.hung(now));
        self.oracle.observe(awake.map(|agent| (agent.slot, &agent.jobs)));
    }

    fn step_clients(&mut self) {
        for index in 0..self.clients.len() {
            let (state, rng) = (&self.oracle.reference, &mut self.rng);
            let (calm, balance, policies) = (!self.trouble, self.balance, self.policies);
            let wish = Wish { calm, balance, policies };
            let asked = self.clients[index].step(self.now, state, wish, rng);
            if let Some((member, message)) = asked {
                let (from, to) = (Endpoint::Client(index), Endpoint::Member(member));
                let envelope = Envelope { from, to, message };
                self.net.send(self.now, envelope, &mut self.rng, &mut self.seen);
            }
        }
    }
}

impl Member {
    fn new(rng: &mut Rng) -> Self {
        Self {
            replica: Replica::new(),
            down_until: 0,
            stalled_until: 0,
            isolated_until: 0,
            lags_until: 0,
            wall_base: 1_700_000_000_000 + rng.between(0, 2_000),
            reign: None,
            queue: VecDeque::new(),
            waiting: BTreeMap::new(),
        }
    }
}
