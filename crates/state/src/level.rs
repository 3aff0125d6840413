//! The behaviour version of the group: what all members agree to understand. Handler of SetLevel. A
//! change of what a command means needs a new level, so that members of two versions never differ.

use alloc::format;

use crate::apply::{Handled, Tx, Verdict};
use crate::event::Event;
use crate::outcome::Rejection;
use crate::state::State;

/// Level of a new group.
pub const FIRST: u32 = 1;

/// From here on the channel policies can be chosen by name.
pub const CHOICES: u32 = 2;
/// From here on cleaners can be registered.
pub const CLEANERS: u32 = 2;
/// From here on the state remembers when load was last evened out.
pub(crate) const BALANCED_MARK: u32 = 2;
/// From here on only a higher progress moves the deadline of a watch.
pub(crate) const RISING_PROGRESS: u32 = 2;
/// From here on the longest cool-down is shorter, unless an operator had changed it.
pub(crate) const SHORT_COOLDOWN: u32 = 2;

/// The highest level this program knows; tests know one more, to have something to raise to.
pub const KNOWN: u32 = if cfg!(test) { 3 } else { 2 };

pub(crate) fn set_level(tx: &mut Tx<'_>, level: u32) -> Handled {
    let present = tx.state().level();
    if level <= present || level > KNOWN {
        let allowed = format!("the group is at {present}, this program knows up to {KNOWN}");
        return Err(Rejection::Level { named: level, allowed });
    }
    tx.emit(Event::LevelRaised { level });
    Ok(Verdict::Done)
}

/// Refuses what the group has not agreed to understand yet. What would not even decode in a member
/// of an older version must be held back before it is proposed, too.
///
/// # Errors
/// [`Rejection::LevelTooLow`].
pub fn need(state: &State, what: &'static str, needed: u32) -> Result<(), Rejection> {
    let present = state.level();
    if present < needed {
        return Err(Rejection::LevelTooLow { what, needed, present });
    }
    Ok(())
}
