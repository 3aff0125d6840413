//! What runs here against what is desired: what to start, to stop, to release, to acknowledge.
//! Pure (N-3 to N-6): no IO, no clock, no tasks; engine.rs carries the actions out.
//! Called by engine.rs after every change of the desired set and every finished operation.

use std::collections::BTreeMap;

use crate::agent::acks::Acks;
use crate::agent::desired::Desired;
use crate::proto::{AckResult, AckVerdict, Directive, DirectiveKind, Progress, Running};

/// What engine.rs must do now. `serial` comes back with the result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    /// Start a watch.
    Watch { serial: u64, directive: Directive },
    /// Finish in good order, the channel still belongs to this worker.
    Release { serial: u64, channel: String, term: u64 },
    /// End whatever runs for it, also a watch that is under way.
    Stop { serial: u64, channel: String, term: u64 },
}

/// How an action ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    /// `stopped`: nothing of it runs any more.
    Failed {
        reason: String,
        stopped: bool,
    },
}

/// What happened to a channel, for the observer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    Watched,
    WatchFailed(String),
    Released,
    Stopped,
    StopFailed(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Phase {
    Watching,
    Running,
    /// A failed watch is being undone before it is reported (N-5).
    Undoing(String),
    Releasing,
    Stopping,
    /// Ending it failed; something may still run.
    Stuck,
}

#[derive(Debug)]
struct Local {
    term: u64,
    op: u64,
    phase: Phase,
    /// Of the action under way; results of earlier ones are ignored.
    serial: u64,
}

/// Everything this worker runs, and what it has to say about it.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    locals: BTreeMap<String, Local>,
    pub(crate) acks: Acks,
    serial: u64,
}

impl Ledger {
    /// Nothing runs and nothing waits for a verdict.
    pub(crate) fn is_idle(&self) -> bool {
        self.locals.is_empty() && !self.acks.has_pending()
    }

    /// Number of channels of which something runs or may run.
    pub(crate) fn len(&self) -> usize {
        self.locals.len()
    }

    pub(crate) fn running(&self) -> Vec<Running> {
        let one = |(channel, local): (&String, &Local)| Running {
            channel: channel.clone(),
            term: local.term,
        };
        self.locals.iter().map(one).collect()
    }

    /// The watches under way; `read` gives the progress of one.
    pub(crate) fn progress(&self, read: impl Fn(&str, u64) -> Option<u64>) -> Vec<Progress> {
        let watching = self.locals.iter().filter(|(_, local)| local.phase == Phase::Watching);
        watching
            .filter_map(|(channel, local)| {
                let progress = read(channel, local.term)?;
                let (channel, term, op) = (channel.clone(), local.term, local.op);
                Some(Progress { channel, term, op, progress })
            })
            .collect()
    }

    /// A new session begins with nothing (N-8, N-9).
    pub(crate) fn clear(&mut self) {
        self.locals.clear();
        self.acks.clear();
    }

    /// Compares one channel with what is desired of it.
    pub(crate) fn reconcile(&mut self, channel: &str, desired: &Desired) -> Option<Action> {
        if !desired.is_known() {
            return None;
        }
        let want = desired.get(channel);
        let Some(local) = self.locals.get_mut(channel) else {
            let Some(want) = want else {
                self.acks.forget(channel);
                return None;
            };
            return self.begin(channel, want.clone());
        };
        match want {
            Some(want) if want.term == local.term => {
                if want.kind() == DirectiveKind::Release {
                    return self.release(channel, want.op);
                }
                let renamed = local.op != want.op;
                local.op = want.op;
                if renamed && local.phase == Phase::Running {
                    self.acks.give(channel, (want.term, want.op), AckResult::Ok, "");
                }
                None
            }
            // Desired.take lets no lower term through, so another term is a higher one.
            Some(_) | None => self.stop(channel),
        }
    }

    /// Tries again to end what could not be ended.
    pub(crate) fn retry_stuck(&mut self, desired: &Desired) -> Vec<Action> {
        let stuck = self.locals.iter().filter(|(_, local)| local.phase == Phase::Stuck);
        let names: Vec<String> = stuck.map(|(name, _)| name.clone()).collect();
        names.iter().filter_map(|name| self.reconcile(name, desired)).collect()
    }

    /// An action ended. The next one for the channel, if any, comes back with what happened.
    pub(crate) fn finished(
        &mut self,
        channel: &str,
        serial: u64,
        outcome: Outcome,
        desired: &Desired,
    ) -> (Option<Change>, Option<Action>) {
        let Some(local) = self.locals.get_mut(channel).filter(|local| local.serial == serial)
        else {
            return (None, None);
        };
        let key = (local.term, local.op);
        let (change, next) = match (local.phase.clone(), outcome) {
            (Phase::Watching, Outcome::Done) => {
                local.phase = Phase::Running;
                self.acks.give(channel, key, AckResult::Ok, "");
                return (Some(Change::Watched), None);
            }
            (Phase::Watching, Outcome::Failed { reason, stopped: false }) => {
                local.phase = Phase::Undoing(reason);
                let action = self.renew_stop(channel);
                return (None, action);
            }
            (Phase::Watching, Outcome::Failed { reason, stopped: true })
            | (Phase::Undoing(reason), Outcome::Done) => {
                self.acks.give(channel, key, AckResult::FailedStopped, &reason);
                (Change::WatchFailed(reason), None)
            }
            (Phase::Undoing(reason), Outcome::Failed { .. }) => {
                local.phase = Phase::Stuck;
                self.acks.give(channel, key, AckResult::Failed, &reason);
                return (Some(Change::WatchFailed(reason)), None);
            }
            (Phase::Releasing, Outcome::Done) => {
                self.acks.give(channel, key, AckResult::Ok, "");
                (Change::Released, None)
            }
            (Phase::Releasing, Outcome::Failed { reason, .. }) => {
                local.phase = Phase::Stuck;
                self.acks.give(channel, key, AckResult::Failed, &reason);
                return (Some(Change::StopFailed(reason)), None);
            }
            (Phase::Stopping, Outcome::Failed { reason, .. }) => {
                local.phase = Phase::Stuck;
                self.conflict(channel, desired, &reason);
                return (Some(Change::StopFailed(reason)), None);
            }
            (Phase::Stopping, Outcome::Done) => (Change::Stopped, Some(())),
            (Phase::Running | Phase::Stuck, _) => return (None, None),
        };
        self.locals.remove(channel);
        let action = next.and_then(|()| self.reconcile(channel, desired));
        if desired.get(channel).is_none() {
            self.acks.forget(channel);
        }
        (Some(change), action)
    }

    /// The consumer of a watched channel died and nothing of it runs any more.
    pub(crate) fn died(&mut self, channel: &str, term: u64, reason: &str) -> bool {
        let runs = |local: &&Local| local.term == term && local.phase == Phase::Running;
        let Some(op) = self.locals.get(channel).filter(runs).map(|local| local.op) else {
            return false;
        };
        self.locals.remove(channel);
        self.acks.give(channel, (term, op), AckResult::FailedStopped, reason);
        true
    }

    /// A verdict of the coordinator on an acknowledgement. True if it settled one.
    pub(crate) fn verdict(&mut self, seq: u64, verdict: &AckVerdict, desired: &Desired) -> bool {
        let settled = self.acks.verdict(seq, verdict);
        if settled && desired.get(&verdict.channel).is_none() {
            self.acks.forget(&verdict.channel);
        }
        settled
    }

    fn begin(&mut self, channel: &str, want: Directive) -> Option<Action> {
        if self.acks.is_given(channel, want.term, want.op) {
            return None;
        }
        if want.kind() == DirectiveKind::Release {
            // Nothing runs: already released.
            self.acks.give(channel, (want.term, want.op), AckResult::Ok, "");
            return None;
        }
        let serial = self.next_serial();
        let local = Local { term: want.term, op: want.op, phase: Phase::Watching, serial };
        self.locals.insert(channel.to_owned(), local);
        Some(Action::Watch { serial, directive: want })
    }

    fn release(&mut self, channel: &str, op: u64) -> Option<Action> {
        let local = self.locals.get_mut(channel)?;
        let begun = local.op == op;
        local.op = op;
        match local.phase {
            // Under way: its end answers the newest directive.
            Phase::Releasing => None,
            Phase::Undoing(_) | Phase::Stopping => {
                local.phase = Phase::Releasing;
                None
            }
            // A release that failed was answered; it is ended for good once it is not desired.
            Phase::Stuck if begun => None,
            Phase::Running => {
                local.phase = Phase::Releasing;
                let term = local.term;
                let serial = self.renew_serial(channel);
                Some(Action::Release { serial, channel: channel.to_owned(), term })
            }
            Phase::Watching | Phase::Stuck => {
                local.phase = Phase::Releasing;
                self.renew_stop(channel)
            }
        }
    }

    fn stop(&mut self, channel: &str) -> Option<Action> {
        let local = self.locals.get_mut(channel)?;
        match local.phase {
            Phase::Releasing | Phase::Undoing(_) | Phase::Stopping => {
                local.phase = Phase::Stopping;
                None
            }
            Phase::Watching | Phase::Running | Phase::Stuck => {
                local.phase = Phase::Stopping;
                self.renew_stop(channel)
            }
        }
    }

    /// A higher term is desired but the old one cannot be ended: say so instead of starting it.
    fn conflict(&mut self, channel: &str, desired: &Desired, reason: &str) {
        if let Some(want) = desired.get(channel) {
            let key = (want.term, want.op);
            if want.kind() == DirectiveKind::Watch {
                self.acks.give(channel, key, AckResult::Conflict, reason);
            }
        }
    }

    fn renew_stop(&mut self, channel: &str) -> Option<Action> {
        let serial = self.renew_serial(channel);
        let term = self.locals.get(channel)?.term;
        Some(Action::Stop { serial, channel: channel.to_owned(), term })
    }

    fn renew_serial(&mut self, channel: &str) -> u64 {
        let serial = self.next_serial();
        if let Some(local) = self.locals.get_mut(channel) {
            local.serial = serial;
        }
        serial
    }

    fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
