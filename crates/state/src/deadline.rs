//! Deadlines: which are due, and the handlers of OpTimeout and ExtendDeadline. All from log time
//! . Who proposes the timeouts is the leader's concern.

use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::ack::failed;
use crate::apply::{ALREADY, Handled, Tx, Verdict};
use crate::channel::{Channel, Phase, ReleaseCause, UnassignCause};
use crate::command::Command;
use crate::epoch::{ChannelTerm, Op, Timestamp};
use crate::event::Event;
use crate::ids::{ChannelName, Text};
use crate::level;
use crate::outcome::Rejection;
use crate::policy::Policy;
use crate::release;
use crate::state::State;
use crate::watch::find;

impl State {
    /// The earliest deadline of all; O(log n).
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let policy = self.policy();
        let first = |timeout_ms: u64, started: Option<&(Timestamp, ChannelName)>| {
            started.map(|(started_at, _)| started_at.plus_ms(timeout_ms))
        };
        let watch = first(policy.watch_timeout_ms, self.index().watching.get_min());
        let release = first(policy.release_timeout_ms, self.index().releasing.get_min());
        let earliest = watch.into_iter().chain(release).min()?;
        Some(earliest.max(self.grace_until()))
    }

    /// The timeouts that are due at this log time, at most `max`, releases before watches, oldest
    /// first.
    #[must_use]
    pub fn due(&self, now: Timestamp, max: usize) -> Vec<Command> {
        if now < self.grace_until() {
            return Vec::new();
        }
        let policy = self.policy();
        let past = |timeout_ms: u64| {
            move |entry: &&(Timestamp, ChannelName)| entry.0.plus_ms(timeout_ms) <= now
        };
        let releasing = self.index().releasing.iter().take_while(past(policy.release_timeout_ms));
        let watching = self.index().watching.iter().take_while(past(policy.watch_timeout_ms));
        let due = releasing.chain(watching).take(max);
        due.filter_map(|(_, name)| timeout_of(self.channel(name)?)).collect()
    }
}

fn timeout_of(channel: &Channel) -> Option<Command> {
    let (channel, term, op) = (channel.spec.name.clone(), channel.term, channel.phase.op()?);
    Some(Command::OpTimeout { channel, term, op })
}

pub(crate) fn timed_out(tx: &mut Tx<'_>, name: &ChannelName, term: ChannelTerm, op: Op) -> Handled {
    let channel = Arc::clone(find(tx.state(), name)?);
    let stale = || Rejection::Stale { channel: name.clone(), term, op };
    if (channel.term, channel.phase.op()) != (term, Some(op)) {
        return Err(stale());
    }
    let due = tx.state().deadline(&channel).ok_or_else(stale)?;
    let now = tx.now();
    if now < due {
        return Err(Rejection::NotDue { due, now });
    }
    match channel.phase {
        Phase::Buffered { .. } | Phase::Watched { .. } => return Err(stale()),
        Phase::ToWatch { owner, .. } => {
            let waited_ms = tx.state().policy().watch_timeout_ms;
            let reason = Text::cut(&format!("not acknowledged within {waited_ms} ms"));
            failed(tx, &channel, owner, reason, None);
            release::start(tx, name, ReleaseCause::WatchTimeout, None);
        }
        Phase::ToRelease { owner, .. } => {
            release::finish(tx, &channel, owner, UnassignCause::ReleaseTimeout, None);
        }
    }
    Ok(Verdict::Done)
}

pub(crate) fn extend(
    tx: &mut Tx<'_>,
    name: &ChannelName,
    (term, op): (ChannelTerm, Op),
    reported: u64,
) -> Handled {
    let channel = find(tx.state(), name)?;
    match channel.phase {
        Phase::ToWatch { op: present, progress, .. } if (channel.term, present) == (term, op) => {
            // Less than was reported before is no progress either: a count that falls must not keep
            // a watch alive.
            let falls = reported < progress && tx.state().level() >= level::RISING_PROGRESS;
            if reported == progress || falls {
                return ALREADY;
            }
        }
        _ => return Err(Rejection::Stale { channel: name.clone(), term, op }),
    }
    tx.emit(Event::WatchDeadlineExtended { channel: name.clone(), progress: reported });
    Ok(Verdict::Done)
}

/// Cool-down after this many failed watches in a row: doubles from the base up to the longest.
pub(crate) fn cooldown_ms(policy: &Policy, attempts: u32) -> u64 {
    let doublings = attempts.saturating_sub(1).min(63);
    let factor = 1_u64.checked_shl(doublings).unwrap_or(u64::MAX);
    policy.cooldown_base_ms.saturating_mul(factor).min(policy.cooldown_max_ms)
}
