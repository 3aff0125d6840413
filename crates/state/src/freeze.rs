//! Handlers of Freeze and Thaw: a worker name gets nothing new and is emptied, over all its
//! sessions (ruling 5). What follows from it is the planner's choice.

use crate::apply::{ALREADY, Handled, Tx, Verdict};
use crate::event::Event;
use crate::ids::NodeName;
use crate::limits;
use crate::outcome::{Rejection, limit_len};

pub(crate) fn freeze(tx: &mut Tx<'_>, name: &NodeName) -> Handled {
    if is_frozen(tx, name)? {
        return ALREADY;
    }
    let count = tx.state().frozen_count().saturating_add(1);
    limit_len("frozen workers", count, limits::FROZEN_MAX)?;
    tx.emit(Event::NodeFroze { name: name.clone() });
    Ok(Verdict::Done)
}

pub(crate) fn thaw(tx: &mut Tx<'_>, name: &NodeName) -> Handled {
    if !is_frozen(tx, name)? {
        return ALREADY;
    }
    tx.emit(Event::NodeThawed { name: name.clone() });
    Ok(Verdict::Done)
}

fn is_frozen(tx: &Tx<'_>, name: &NodeName) -> Result<bool, Rejection> {
    let frozen = tx.state().is_frozen(name);
    if !frozen && tx.state().node_by_name(name).is_none() {
        return Err(Rejection::UnknownName { name: name.clone() });
    }
    Ok(frozen)
}
