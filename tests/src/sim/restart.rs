//! The workers of `rolling`, and how they are restarted: drained first, or killed and back before
//! or after their session expires.

use std::collections::BTreeMap;

use state::command::Command;
use state::epoch::{ChannelTerm, Op};
use state::ids::{Address, ChannelName, Incarnation, NodeName, Text};
use state::node::{NodeRef, Registration, Role};
use state::outcome::Outcome;
use state::{DirectiveKind, State, directives_for};

use super::rng::Rng;
use super::rolling::{Rolling, WORKERS};

/// Where the present restart stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Restart {
    /// None goes on until then.
    Pause { until_ms: u64 },
    /// The worker is asked to stop and loses its channels one by one.
    Draining { worker: usize },
    /// It is gone until then.
    Gone { worker: usize, back_ms: u64 },
    /// It is back; channels without an owner find one.
    Settling,
}

/// One directive that a worker works on or has answered.
#[derive(Debug, Clone, Copy)]
struct Task {
    term: ChannelTerm,
    op: Op,
    done_ms: u64,
    answered: bool,
}

#[derive(Debug)]
pub(super) struct Worker {
    index: usize,
    pub(super) alive: bool,
    pub(super) session: Option<NodeRef>,
    incarnations: u64,
    renewed_ms: u64,
    learned: Option<state::epoch::Revision>,
    tasks: BTreeMap<ChannelName, Task>,
}

impl Worker {
    pub(super) const fn new(index: usize) -> Self {
        Self {
            index,
            alive: false,
            session: None,
            incarnations: 0,
            renewed_ms: 0,
            learned: None,
            tasks: BTreeMap::new(),
        }
    }

    fn stop(&mut self) {
        self.alive = false;
        self.session = None;
        self.learned = None;
        self.tasks.clear();
    }

    /// A new process of this worker.
    pub(super) fn begin(&mut self) -> Registration {
        self.stop();
        self.alive = true;
        self.incarnations += 1;
        let (index, incarnation) = (self.index, self.incarnations);
        Registration {
            name: NodeName::new(&format!("w{index:02}")).expect("a valid name"),
            address: Address::new(&format!("10.0.0.{index}:7000")).expect("a valid address"),
            role: Role::Data,
            version: Text::cut("1"),
            labels: BTreeMap::new(),
            incarnation: Incarnation::new(&incarnation.to_string()).expect("a valid incarnation"),
        }
    }

    /// Takes in directives: a watch takes some seconds, a release about one.
    pub(super) fn learn(&mut self, state: &State, session: NodeRef, now: u64, rng: &mut Rng) {
        if self.learned.replace(state.revision()) == Some(state.revision()) {
            return;
        }
        for directive in directives_for(state, session.node) {
            let known = self.tasks.get(&directive.channel).map(|task| task.op);
            if known == Some(directive.op) {
                continue;
            }
            let takes_ms = match directive.kind {
                DirectiveKind::Watch => rng.between(1_000, 5_000),
                DirectiveKind::Release => rng.between(200, 1_500),
            };
            let (term, op, done_ms) = (directive.term, directive.op, now + takes_ms);
            self.tasks.insert(directive.channel, Task { term, op, done_ms, answered: false });
        }
    }

    /// What is done and not yet answered.
    pub(super) fn done(&mut self, now: u64) -> Vec<(ChannelName, ChannelTerm, Op)> {
        let mut done = Vec::new();
        for (channel, task) in &mut self.tasks {
            if !task.answered && task.done_ms <= now {
                task.answered = true;
                done.push((channel.clone(), task.term, task.op));
            }
        }
        done
    }

    pub(super) fn renews(&mut self, now: u64, ttl_ms: u64) -> bool {
        let due = now >= self.renewed_ms + ttl_ms / 4;
        if due {
            self.renewed_ms = now;
        }
        due
    }
}

impl Rolling {
    /// Begins the next restart after the last one, and carries on the present one.
    pub(super) fn restart_workers(&mut self) {
        if let Restart::Pause { until_ms } = self.restart
            && self.now >= until_ms
        {
            self.begin_restart();
        }
        self.finish_restart();
    }

    fn begin_restart(&mut self) {
        let begun: u64 = self.end.restarts.iter().sum();
        let worker = usize::try_from(begun).expect("restarts are few") % WORKERS;
        let Some(session) = self.workers[worker].session else { return };
        self.end.necessary += u64::from(self.state.counts_of(session.node).total());
        let kind = [0, 0, 1, 2][self.rng.index(4)];
        self.end.restarts[kind] += 1;
        if kind == 0 {
            self.apply("node", Command::SetStopping { node: session });
            self.restart = Restart::Draining { worker };
            return;
        }
        self.workers[worker].stop();
        let (low, high) = if kind == 1 { (2_000, 8_000) } else { (15_000, 40_000) };
        let back_ms = self.now + self.rng.between(low, high);
        self.restart = Restart::Gone { worker, back_ms };
    }

    /// Carries on the present restart and begins none.
    pub(super) fn finish_restart(&mut self) {
        match self.restart {
            Restart::Pause { .. } => {}
            Restart::Draining { worker } => {
                let Some(node) = self.workers[worker].session else { return };
                if self.state.counts_of(node.node).total() == 0 {
                    let outcome = self.apply("node", Command::Revoke { node });
                    assert!(
                        matches!(outcome, Outcome::Accepted(_)),
                        "it says goodbye: {outcome:?}"
                    );
                    self.workers[worker].stop();
                    let back_ms = self.now + self.rng.between(3_000, 10_000);
                    self.restart = Restart::Gone { worker, back_ms };
                }
            }
            Restart::Gone { worker, back_ms } if self.now >= back_ms => {
                self.register(worker);
                self.restart = Restart::Settling;
            }
            Restart::Gone { .. } => {}
            Restart::Settling => {
                if self.settled() {
                    let until_ms = self.now + self.rng.between(10_000, 30_000);
                    self.restart = Restart::Pause { until_ms };
                }
            }
        }
    }
}
