//! The behaviour version of the group: what all members agree to understand. Handler of SetLevel. A
//! change of what a command means needs a new level, so that members of two versions never differ.

use alloc::format;

use crate::apply::{Handled, Tx, Verdict};
use crate::event::Event;
use crate::outcome::Rejection;

/// Level of a new group.
pub const FIRST: u32 = 1;

/// The highest level this program knows; tests know one more, to have something to raise to.
pub const KNOWN: u32 = if cfg!(test) { 2 } else { 1 };

pub(crate) fn set_level(tx: &mut Tx<'_>, level: u32) -> Handled {
    let present = tx.state().level();
    if level <= present || level > KNOWN {
        let allowed = format!("the group is at {present}, this program knows up to {KNOWN}");
        return Err(Rejection::Level { named: level, allowed });
    }
    tx.emit(Event::LevelRaised { level });
    Ok(Verdict::Done)
}
