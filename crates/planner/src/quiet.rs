//! When channels may be moved only to even out load: the silence rule (12.1), derived from the
//! state, so that a new leader waits no longer and no less. Asked by `balance` and by the leader.

use state::State;
use state::choices::Choice;
use state::epoch::Timestamp;

use crate::policy::Register;

/// What balance waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waits {
    /// It is switched off.
    Off,
    /// Operations are running.
    Busy {
        /// In ToWatch or ToRelease.
        channels: u32,
    },
    /// It may act from then on.
    Until(Timestamp),
}

pub(crate) fn waits(state: &State) -> Waits {
    let policy = state.policy();
    if !policy.auto_balance {
        return Waits::Off;
    }
    let counts = state.counts();
    let busy = counts.to_watch.saturating_add(counts.to_release);
    if busy > 0 {
        return Waits::Busy { channels: busy };
    }
    let silent = state.last_activity().plus_ms(policy.balance_silent_ms);
    let spaced = state.balanced_at().map(|at| at.plus_ms(policy.balance_interval_ms));
    Waits::Until(spaced.map_or(silent, |spaced| spaced.max(silent)))
}

/// The earliest log time at which evening out load may be worth a plan; none while it is switched
/// off, operations are running, or no channel is watched. O(1).
#[must_use]
pub fn balance_due(state: &State) -> Option<Timestamp> {
    match waits(state) {
        Waits::Until(at) if state.counts().watched > 0 => Some(at),
        _ => None,
    }
}

/// Whether channels may be released for a node that joins; that waits neither for silence nor for
/// the switch of balance. O(1).
#[must_use]
pub fn moves_at_join(state: &State) -> bool {
    let policy = Register::from_name(state.choice(Choice::Register));
    matches!(policy, Some(Register::AvgAssign | Register::ConsistentHash))
}
