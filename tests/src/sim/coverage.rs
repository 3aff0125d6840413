//! What happened in a run: faults injected, transitions of 18.5, refusals F1 to F10, and more. A
//! run that never meets a case proves nothing about it: the tests print these counts and assert
//! them.

use std::collections::BTreeMap;
use std::fmt;

/// Which table a case belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Injected trouble.
    Fault,
    /// A row of rules 18.5.
    Transition,
    /// A fence (F1 to F10).
    Refusal,
    /// Worth counting, not demanded.
    Note,
}

/// Every fault the simulator injects.
const FAULTS: [&str; 32] = [
    "agent_acks_late",
    "agent_back_after_expiry",
    "agent_back_before_expiry",
    "agent_conflict",
    "agent_consumer_died",
    "agent_crashed",
    "agent_hung",
    "agent_lied",
    "agent_release_failed",
    "agent_release_ignored",
    "agent_renamed",
    "agent_replaced",
    "agent_slow",
    "agent_watch_failed",
    "clock_jumped",
    "forged_decision",
    "forged_old_guards",
    "leader_changed_every_few_steps",
    "leader_crashed",
    "leader_lost_renewal",
    "leader_of_one_step_acted",
    "leader_stalled",
    "leader_zombie",
    "link_cut",
    "message_delayed",
    "message_dropped",
    "message_duplicated",
    "message_reordered",
    "proposal_lost",
    "replica_lagged",
    "replica_restarted",
    "stale_proposal",
];

/// Every row of 18.5 that channels can go through.
const TRANSITIONS: [&str; 30] = [
    "to_release dropping: failed -> removed",
    "to_release dropping: node left -> removed",
    "to_release dropping: ok -> removed",
    "to_release dropping: timeout -> removed",
    "to_release: failed -> buffered, former",
    "to_release: node left -> buffered",
    "to_release: ok -> buffered",
    "to_release: timeout -> buffered, former",
    "to_watch: conflict -> to_release",
    "to_watch: failed -> to_release",
    "to_watch: failed stopped -> buffered",
    "to_watch: node left -> buffered",
    "to_watch: ok -> watched",
    "to_watch: progress -> deadline moved",
    "to_watch: timeout -> to_release",
    "watched: failed stopped -> buffered",
    "watched: node left -> buffered",
    "watched: older -> stale",
    "any: cleaner registered",
    "any: cool-down of a node that left removed",
    "any: former owner cleared",
    "any: level raised",
    "any: load uneven, planner releases",
    "any: node stopping, planner releases",
    "any: policy chosen",
    "any: session expired",
    "any: session replaced",
    "any: session revoked",
    "any: settings changed",
    "buffered: given back",
];

/// The fences.
const REFUSALS: [&str; 13] = [
    "F1 stale term",
    "F2 future basis",
    "F3 assignment changed",
    "F4 node changed",
    "F5 gone",
    "F6 capacity",
    "F6 cooling down",
    "F7 stale node",
    "F8 stale ack",
    "F9 node refused a lower channel term",
    "F10 node refused a lower leader term",
    "R-7 commit of a former owner",
    "ruling 12 request repeated",
];

/// Counts by case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage(BTreeMap<(Kind, &'static str), u64>);

impl Coverage {
    pub(super) fn hit(&mut self, kind: Kind, case: &'static str) {
        *self.0.entry((kind, case)).or_default() += 1;
    }

    /// How often the case occurred.
    #[must_use]
    pub fn count(&self, kind: Kind, case: &'static str) -> u64 {
        self.0.get(&(kind, case)).copied().unwrap_or(0)
    }

    /// Adds the counts of another run.
    pub fn add(&mut self, other: &Self) {
        for (key, count) in &other.0 {
            *self.0.entry(*key).or_default() += count;
        }
    }

    /// The demanded cases that never occurred.
    #[must_use]
    pub fn missing(&self) -> Vec<&'static str> {
        let demanded = FAULTS.iter().map(|case| (Kind::Fault, *case));
        let demanded = demanded.chain(TRANSITIONS.iter().map(|case| (Kind::Transition, *case)));
        let demanded = demanded.chain(REFUSALS.iter().map(|case| (Kind::Refusal, *case)));
        demanded.filter(|(kind, case)| self.count(*kind, case) == 0).map(|(_, case)| case).collect()
    }

    /// Cases counted under a name that no table lists: a typing error in the simulator.
    #[must_use]
    pub fn unlisted(&self) -> Vec<&'static str> {
        let listed = |kind: Kind, case: &str| match kind {
            Kind::Fault => FAULTS.contains(&case),
            Kind::Transition => TRANSITIONS.contains(&case),
            Kind::Refusal => REFUSALS.contains(&case),
            Kind::Note => true,
        };
        let unlisted = self.0.keys().filter(|(kind, case)| !listed(*kind, case));
        unlisted.map(|(_, case)| *case).collect()
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ((kind, case), count) in &self.0 {
            let kind = format!("{kind:?}").to_lowercase();
            writeln!(f, "{count:>9}  {kind:<10}  {case}")?;
        }
        Ok(())
    }
}
