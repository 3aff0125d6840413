//! Trouble: which fault strikes when, and the end of all of it. Faults strike at random, never in a
//! pattern.

use state::command::{Command, Request};
use state::decision::{Action, Basis, Cause, Decision, Move};
use state::epoch::{Revision, Term};
use state::ids::Text;
use state::node::NodeStatus;

use super::breach;
use super::coverage::Kind;
use super::net::Endpoint;
use super::reign::Tag;
use super::world::{DOOMED, MARGIN_MS, MEMBERS, QUERY, TTL_MS, TWIN, WORKERS, World};

impl World {
    /// One step of trouble.
    pub(super) fn meddle(&mut self) {
        if self.rng.permille(4) {
            self.net.drop = self.rng.between(0, 150);
            self.net.duplicate = self.rng.between(0, 100);
            self.net.straggle = self.rng.between(0, 200);
        }
        if self.rng.permille(self.churn.trouble()) {
            self.trouble_leader();
        }
        if self.rng.permille(12) {
            self.trouble_member();
        }
        if self.rng.permille(40) {
            self.trouble_agent();
        }
        if self.rng.permille(15) {
            self.trouble_link();
        }
        if self.rng.permille(10) {
            self.trouble_proposals();
        }
        self.trouble_renewal();
        self.trouble_granted();
        self.end_replacement();
        self.change_leaders();
    }

    /// A process of this worker starts, under a new incarnation, and sometimes under another name.
    pub(super) fn boot(&mut self, slot: usize) {
        let state = &self.oracle.reference;
        let address = self.agents[slot].address();
        let known = |node: &&std::sync::Arc<state::node::Node>| {
            node.status != NodeStatus::Down && node.registration.address == *address
        };
        let came_back = state.nodes().any(|node| known(&node));
        if came_back {
            self.seen.hit(Kind::Fault, "agent_back_before_expiry");
        } else if self.agents[slot].session_count() > 0 {
            self.seen.hit(Kind::Fault, "agent_back_after_expiry");
        }
        let renamed = self.trouble && self.rng.permille(100);
        if renamed && came_back {
            self.seen.hit(Kind::Fault, "agent_renamed");
        }
        self.oracle.booted(slot);
        self.agents[slot].boot(self.now, renamed);
    }

    fn trouble_leader(&mut self) {
        let Some(leader) = self.leader else { return };
        let until = self.now + self.rng.between(300, 4_000);
        let zombie = self.churn.favours_zombies() && self.rng.permille(500);
        match if zombie { 1 } else { self.rng.between(0, 3) } {
            0 => {
                self.seen.hit(Kind::Fault, "leader_crashed");
                self.depose();
                self.crash(leader, until);
            }
            1 => {
                self.seen.hit(Kind::Fault, "leader_zombie");
                let for_ms = self.rng.between(300, 4 * TTL_MS);
                self.members[leader].isolated_until = self.now + for_ms;
                self.depose();
                if self.rng.permille(500) {
                    self.cut_off_with(leader);
                }
            }
            2 => {
                self.seen.hit(Kind::Fault, "leader_stalled");
                self.members[leader].stalled_until = self.now + self.rng.between(300, 2 * TTL_MS);
                // It may come back before anyone noticed, or be deposed meanwhile.
                if self.rng.permille(500) {
                    self.depose();
                }
            }
            _ => {
                self.depose();
                self.step_down(leader);
                self.election_ms = self.now;
            }
        }
    }

    /// A node reaches this member and no other.
    fn cut_off_with(&mut self, member: usize) {
        let agent = Endpoint::Agent(self.rng.index(WORKERS));
        for other in (0..MEMBERS).filter(|other| *other != member).map(Endpoint::Member) {
            self.net.cut.extend([(agent, other), (other, agent)]);
        }
    }

    fn crash(&mut self, member: usize, until: u64) {
        self.step_down(member);
        self.members[member].down_until = until;
        self.restart(member);
    }

    /// It comes back from a snapshot, its own or another's, or from nothing, and replays.
    fn restart(&mut self, index: usize) {
        self.seen.hit(Kind::Fault, "replica_restarted");
        let from = self.rng.index(MEMBERS + 1);
        let snapshot = self.members.get(from).and_then(|member| member.replica.snapshot.clone());
        let (log, record) = (&self.log, &self.oracle.record);
        let replica = &mut self.members[index].replica;
        let done = replica.restart(snapshot).and_then(|()| {
            // Batches of a replay can be split anew only where no entry is cut: to the end of the
            // log.
            replica.replay_resplit(log, log.len(), record, &mut self.rng)
        });
        if let Err(detail) = done {
            self.oracle
                .violated("replicas are equal", format!("member {index} restarted: {detail}"));
        }
    }

    fn trouble_member(&mut self) {
        let member = self.rng.index(MEMBERS);
        let until = self.now + self.rng.between(200, 2_500);
        match self.rng.between(0, 2) {
            0 if self.leader != Some(member) && self.members[member].reign.is_none() => {
                self.crash(member, until);
            }
            1 if self.leader != Some(member) => {
                self.seen.hit(Kind::Fault, "replica_lagged");
                self.members[member].lags_until = until;
            }
            2 => {
                self.seen.hit(Kind::Fault, "clock_jumped");
                let base = self.members[member].wall_base;
                let jump = self.rng.between(0, 1_200_000);
                self.members[member].wall_base = (base + jump).saturating_sub(600_000);
            }
            _ => {}
        }
    }

    fn trouble_agent(&mut self) {
        let slot = if self.rng.permille(100) { QUERY } else { self.rng.index(WORKERS) };
        let until = self.now + self.rng.between(200, 2 * TTL_MS);
        if !self.agents[slot].alive {
            if self.rng.permille(700) {
                return;
            }
            self.boot(slot);
            return;
        }
        match self.rng.between(0, 6) {
            0 => {
                self.seen.hit(Kind::Fault, "agent_crashed");
                self.agents[slot].crash();
            }
            1 => {
                self.seen.hit(Kind::Fault, "agent_hung");
                // It may come back just in time: its silence stands in the log by then.
                let just_in_time = self.rng.permille(400);
                let until = if just_in_time {
                    self.now + self.rng.between(TTL_MS * 2 / 3, TTL_MS - MARGIN_MS)
                } else {
                    until
                };
                self.agents[slot].hung_until = until;
                self.agents[slot].hangs_from = self.now;
            }
            2 => {
                self.agents[slot].slow = self.rng.between(1, 40);
                if self.agents[slot].slow > 1 {
                    self.seen.hit(Kind::Fault, "agent_slow");
                }
            }
            3 => self.agents[slot].fails = self.rng.between(0, 400),
            4 => self.agents[slot].lies = !self.agents[slot].lies,
            5 => self.agents[slot].slow = 1,
            _ if slot == 0 && !self.agents[TWIN].alive => {
                self.seen.hit(Kind::Fault, "agent_replaced");
                self.boot(TWIN);
            }
            _ => {}
        }
    }

    /// Two processes of one worker replace each other: one of them goes soon.
    fn end_replacement(&mut self) {
        let both = self.agents[0].alive && self.agents[TWIN].alive;
        if both && self.rng.permille(15) {
            let slot = if self.rng.permille(500) { 0 } else { TWIN };
            self.agents[slot].crash();
        }
    }

    /// Cuts a node from one member or from all, both ways or one, or mends everything.
    fn trouble_link(&mut self) {
        if self.net.cut.len() > 9 {
            self.net.cut.clear();
            return;
        }
        let agent = Endpoint::Agent(self.rng.index(QUERY + 1));
        let one = self.rng.index(MEMBERS);
        let all = self.rng.permille(400);
        let (up, down) = (self.rng.permille(700), self.rng.permille(800));
        for member in (0..MEMBERS).filter(|member| all || *member == one).map(Endpoint::Member) {
            if up {
                self.net.cut.insert((agent, member));
            }
            if down {
                self.net.cut.insert((member, agent));
            }
        }
    }

    /// The worst moment for a leader to go is when a session that was silent has just come back;
    /// the worst thing for that session is to fall silent again.
    fn trouble_renewal(&mut self) {
        let Some(leader) = self.leader else { return };
        let held = self.members[leader].queue.iter().find_map(|proposal| match &proposal.tag {
            Tag::Held { waiting } => waiting.first().map(|renewal| (renewal.slot, renewal.session)),
            _ => None,
        });
        let Some((slot, session)) = held else { return };
        let silent_ms = self.oracle.reference.live(session).map_or(0, |node| node.silent_ms);
        if !self.rng.permille(if silent_ms > TTL_MS / 2 { 700 } else { 50 }) {
            return;
        }
        self.seen.hit(Kind::Fault, "leader_lost_renewal");
        self.step_down(leader);
        self.depose();
        self.election_ms = self.now;
        let for_ms = self.rng.between(500, 2 * TTL_MS);
        self.agents[slot].hung_until = self.now + 60 + for_ms;
        self.agents[slot].hangs_from = self.now + 60;
    }

    /// A node that was granted time while its silence stands in the log falls silent at once, and
    /// maybe its leader goes. There is no such moment unless a rule of 18.5 is broken.
    fn trouble_granted(&mut self) {
        let state = &self.oracle.reference;
        let slot = self.agents.iter().position(|agent| {
            let session = agent.session.and_then(|session| state.live(session));
            let counted = session.is_some_and(|session| session.silent_ms > TTL_MS / 2);
            counted && agent.lease_age_ms(self.now) < 200 && !agent.hung(self.now)
        });
        let Some(slot) = slot.filter(|_| self.rng.permille(300)) else { return };
        self.agents[slot].hangs_from = self.now;
        self.agents[slot].hung_until = self.now + self.rng.between(500, 2 * TTL_MS);
        if let Some(leader) = self.leader.filter(|_| self.rng.permille(500)) {
            self.step_down(leader);
            self.depose();
            self.election_ms = self.now;
        }
    }

    /// What deposed leaders proposed reaches the present one; decisions come from a planner gone
    /// wrong.
    fn trouble_proposals(&mut self) {
        let batch = if self.rng.permille(500) {
            self.seen.hit(Kind::Fault, "forged_decision");
            self.forged_decision().into_iter().collect()
        } else {
            self.stale_batch()
        };
        let Some(leader) = self.leader.filter(|_| !batch.is_empty()) else { return };
        self.at_desk(leader, |reign, _, desk| {
            if let Some(reign) = reign.filter(|reign| reign.leading) {
                reign.submit(batch, Tag::Nobody, desk);
            }
            None
        });
    }

    fn stale_batch(&mut self) -> Vec<Request> {
        let mut batch = Vec::new();
        for _ in 0..self.rng.between(1, 6) {
            if self.lost.is_empty() {
                break;
            }
            let at = self.rng.index(self.lost.len());
            let mut request = self.lost[at].clone();
            // An announcement of the past would be a command of its own, not a stale one.
            if matches!(request.command, Command::WatchChannels(_) | Command::LeaderStart { .. }) {
                continue;
            }
            self.seen.hit(Kind::Fault, "stale_proposal");
            request.actor = Text::cut("stale");
            batch.push(request);
        }
        batch
    }

    /// From a future state, from one that is long past, or regardless of limits, cool-downs and
    /// former sessions.
    fn forged_decision(&mut self) -> Option<Request> {
        let kind = self.rng.between(0, 4);
        let old_guards = kind == 2;
        let state = &self.oracle.reference;
        let nodes: Vec<_> = state.nodes().filter(|node| node.status != NodeStatus::Down).collect();
        let mut moves = Vec::new();
        for channel in state.channels() {
            let to = self.rng.pick(&nodes)?.node_ref();
            let cooling = channel.cooldowns.keys().next().and_then(|node| state.node(*node));
            let to = cooling.map_or(to, |node| node.node_ref());
            let action = match channel.phase.owner() {
                None => Action::Assign { to },
                Some(from) => Action::Move { from, to },
            };
            let mut guard = breach::guard(channel);
            if old_guards && let Some(term) = self.oracle.earlier(&channel.spec.name, &mut self.rng)
            {
                self.seen.hit(Kind::Fault, "forged_old_guards");
                guard.term = term;
            }
            let channel = channel.spec.name.clone();
            moves.push(Move { channel, guard, action, cause: Cause::Balance });
        }
        let mut basis = Basis { term: self.term, revision: state.revision() };
        match kind {
            0 => basis.revision = Revision(basis.revision.0 + 1_000),
            1 => basis.term = Term(basis.term.0.saturating_sub(1)),
            _ => {}
        }
        let atomic = self.rng.permille(200);
        let command = Command::Place(Decision { basis, moves, atomic });
        Some(Request { actor: Text::cut("forger"), retry: None, command })
    }

    /// All trouble ends: members and links are well, nodes behave, one worker is gone for good.
    pub(super) fn calm(&mut self) {
        self.trouble = false;
        (self.net.drop, self.net.duplicate, self.net.straggle) = (0, 0, 0);
        self.net.cut.clear();
        for member in &mut self.members {
            member.down_until = member.down_until.min(self.now);
            member.stalled_until = member.stalled_until.min(self.now);
            member.isolated_until = member.isolated_until.min(self.now);
            member.lags_until = member.lags_until.min(self.now);
        }
        for slot in 0..self.agents.len() {
            let agent = &mut self.agents[slot];
            agent.hung_until = agent.hung_until.min(self.now);
            (agent.slow, agent.fails, agent.lies) = (1, 0, false);
            if slot == DOOMED || slot == TWIN {
                agent.crash();
            } else if !agent.alive {
                self.boot(slot);
            }
        }
    }
}
