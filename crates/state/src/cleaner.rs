//! Handlers of RegisterCleaner and DeregisterCleaner: who removes the traces of former owners.
//! While at least one cleaner is registered, only EffectDone ends a clean-up (ruling 14); who
//! tells the cleaners is the leader's duty.

use alloc::format;
use alloc::string::String;

use crate::apply::{ALREADY, Handled, Tx, Verdict};
use crate::epoch::ChannelTerm;
use crate::event::Event;
use crate::ids::{ChannelName, NodeName};
use crate::level;
use crate::limits;
use crate::outcome::{Rejection, limit_len};

/// The name of the subscription under which the owner of a term consumes a channel: the one place
/// that makes it (B-08). No term is ever used again, so a clean-up that comes late, even to
/// the session that owns the channel again, never removes what the present owner uses.
#[must_use]
pub fn subscription_name(channel: &ChannelName, term: ChannelTerm) -> String {
    format!("quorate-{}-{channel}", term.0)
}

pub(crate) fn register(tx: &mut Tx<'_>, name: &NodeName) -> Handled {
    level::need(tx.state(), "a cleaner", level::CLEANERS)?;
    if tx.state().cleaner(name).is_some() {
        return ALREADY;
    }
    let count = tx.state().cleaners().count().saturating_add(1);
    limit_len("cleaners", count, limits::CLEANERS_MAX)?;
    tx.emit(Event::CleanerRegistered { name: name.clone() });
    Ok(Verdict::Done)
}

pub(crate) fn deregister(tx: &mut Tx<'_>, name: &NodeName) -> Handled {
    level::need(tx.state(), "a cleaner", level::CLEANERS)?;
    if tx.state().cleaner(name).is_none() {
        return Err(Rejection::UnknownCleaner { name: name.clone() });
    }
    tx.emit(Event::CleanerDeregistered { name: name.clone() });
    Ok(Verdict::Done)
}
