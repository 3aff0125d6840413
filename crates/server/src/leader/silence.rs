//! How long each session was silent in this leadership: pure bookkeeping, no IO and no clock of its
//! own. What is decided from it goes through the log (SessionsObserved, ExpireSession). `sessions`
//! drives it. Rules: ruling 6.

use std::collections::BTreeMap;

use state::epoch::Term;
use state::ids::NodeId;
use state::node::{NodeRef, NodeStatus};
use state::{State, command::Command};

/// What this leader heard from one session. Times are local monotonic milliseconds.
#[derive(Debug, Clone, Copy)]
struct Heard {
    node: NodeRef,
    last_heard_ms: u64,
    /// Whether it was heard in this leadership at all.
    here: bool,
    /// Silence up to here is in the log already, or proposed.
    counted_to_ms: u64,
    /// Silence of this session is or may be in the log: a renewal must be committed before it is
    /// acknowledged, even while the entry that carries the silence is still in flight.
    in_log: bool,
}

impl Heard {
    fn new(node: NodeRef, now_ms: u64, in_log: bool) -> Self {
        Self { node, last_heard_ms: now_ms, here: false, counted_to_ms: now_ms, in_log }
    }

    /// Silent for long enough to count. A session that this leader never heard has been silent for
    /// longer than it knows: where leaders change often, waiting for as long as with others would
    /// let the dead live for ever (FR-010).
    const fn is_silent(&self, ttl_ms: u64, now_ms: u64) -> bool {
        let threshold_ms = if self.here { ttl_ms / 3 } else { ttl_ms / 5 };
        now_ms.saturating_sub(self.last_heard_ms) >= threshold_ms
    }
}

/// Measures silence on top of what is accounted in the log.
#[derive(Debug)]
pub struct SilenceMeter {
    sessions: BTreeMap<NodeId, Heard>,
    last_observed_ms: u64,
    seq: u64,
}

/// What one observation found.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Observation {
    /// Sessions with the silence to add, in milliseconds.
    pub silent: Vec<(NodeRef, u64)>,
    /// Sessions with accounted silence that were heard again.
    pub renewed: Vec<NodeRef>,
}

impl SilenceMeter {
    /// Starts to measure every live session of `state` from `now_ms` on.
    #[must_use]
    pub fn start(state: &State, now_ms: u64) -> Self {
        let mut meter = Self {
            sessions: BTreeMap::new(),
            last_observed_ms: now_ms,
            seq: state.leader().observed_seq,
        };
        meter.follow(state, now_ms);
        meter
    }

    /// Takes in sessions that began and forgets those that ended.
    pub fn follow(&mut self, state: &State, now_ms: u64) {
        self.sessions.retain(|_, heard| state.live(heard.node).is_some());
        for node in state.nodes().filter(|node| node.status != NodeStatus::Down) {
            let heard = Heard::new(node.node_ref(), now_ms, node.silent_ms > 0);
            self.sessions.entry(node.node).or_insert(heard);
        }
    }

    /// The session was heard. Unknown sessions are taken in; an older epoch is ignored.
    pub fn touch(&mut self, node: NodeRef, now_ms: u64) {
        let heard = self.sessions.entry(node.node).or_insert(Heard::new(node, now_ms, false));
        if heard.node == node {
            heard.here = true;
            heard.last_heard_ms = heard.last_heard_ms.max(now_ms);
            heard.counted_to_ms = heard.counted_to_ms.max(now_ms);
        }
    }

    /// Time between two observations: a tenth of the ttl.
    #[must_use]
    pub fn interval_ms(state: &State) -> u64 {
        (state.policy().ttl_ms / 10).max(1)
    }

    /// Most that one observation adds to a session: two fifths of the ttl, more than passes until a
    /// session that was heard counts as silent.
    #[must_use]
    pub fn step_max_ms(state: &State) -> u64 {
        state.policy().ttl_ms / 5 * 2
    }

    /// What to report now. Sessions silent for at least a third of the ttl count, a fifth if this
    /// leader never heard them; one step never adds more than [`Self::step_max_ms`], so a leader
    /// that was itself stalled adds little (FR-009).
    pub fn observe(&mut self, state: &State, now_ms: u64) -> Observation {
        self.follow(state, now_ms);
        let cap = Self::step_max_ms(state);
        let mut found = Observation::default();
        for heard in self.sessions.values_mut() {
            let Some(node) = state.live(heard.node) else { continue };
            if heard.is_silent(node.ttl_ms, now_ms) {
                let add = now_ms.saturating_sub(heard.counted_to_ms).min(cap);
                heard.counted_to_ms = now_ms;
                if add > 0 {
                    heard.in_log = true;
                    found.silent.push((heard.node, add));
                }
            } else if node.silent_ms > 0 && heard.last_heard_ms > self.last_observed_ms {
                found.renewed.push(heard.node);
            }
        }
        self.last_observed_ms = now_ms;
        found
    }

    /// Whether a renewal of this session must be in the log before it is acknowledged (18.5, rule
    /// 3).
    #[must_use]
    pub fn must_log_renewal(&self, state: &State, node: NodeRef) -> bool {
        state.live(node).is_some_and(|live| live.silent_ms > 0)
            || self.sessions.get(&node.node).is_some_and(|heard| heard.node == node && heard.in_log)
    }

    /// The entry that resets the silence of these sessions is applied.
    pub fn settled(&mut self, renewed: &[NodeRef]) {
        for node in renewed {
            if let Some(heard) = self.sessions.get_mut(&node.node) {
                heard.in_log &= heard.node != *node;
            }
        }
    }

    /// The command that reports an observation; none when there is nothing to report.
    pub fn report(&mut self, leader_term: Term, found: Observation) -> Option<Command> {
        if found.silent.is_empty() && found.renewed.is_empty() {
            return None;
        }
        self.seq += 1;
        Some(Command::SessionsObserved {
            leader_term,
            seq: self.seq,
            silent: found.silent,
            renewed: found.renewed,
        })
    }

    /// The sessions whose accounted silence has reached ttl and grace and that are still silent
    /// here.
    #[must_use]
    pub fn expired(&self, state: &State, leader_term: Term, now_ms: u64) -> Vec<Command> {
        let due = |heard: &&Heard| {
            state.live(heard.node).is_some_and(|node| {
                heard.is_silent(node.ttl_ms, now_ms)
                    && node.silent_ms >= state.expires_after_ms(node)
            })
        };
        self.sessions
            .values()
            .filter(due)
            .map(|heard| Command::ExpireSession { node: heard.node, leader_term })
            .collect()
    }
}
