//! Handlers of what is done for a channel outside: CommitMeta (an owner records positions, R-7) and
//! EffectDone (the traces of a former owner were cleaned up, ruling 14).

use crate::apply::{ALREADY, Handled, Tx, Verdict};
use crate::channel::FormerOwner;
use crate::command::OwnerClaim;
use crate::event::Event;
use crate::ids::ChannelName;
use crate::limits;
use crate::outcome::{Rejection, limit_len};
use crate::release::check_owner;
use crate::session;
use crate::watch::find;

pub(crate) fn commit_meta(
    tx: &mut Tx<'_>,
    name: &ChannelName,
    claim: OwnerClaim,
    positions: &[u8],
) -> Handled {
    limit_len("positions", positions.len(), limits::POSITIONS_BYTES_MAX)?;
    let channel = find(tx.state(), name)?;
    check_owner(channel, claim)?;
    if let Some(committed) = &channel.committed
        && committed.term == claim.term
        && committed.positions == positions
    {
        return ALREADY;
    }
    let positions = positions.to_vec();
    tx.emit(Event::MetaCommitted { channel: name.clone(), term: claim.term, positions });
    Ok(Verdict::Done)
}

pub(crate) fn done(tx: &mut Tx<'_>, name: &ChannelName, claim: OwnerClaim) -> Handled {
    let OwnerClaim { node, term } = claim;
    let former = FormerOwner { node, term };
    let state = tx.state();
    if state.channel(name).is_none() && state.dropped(name).is_none() {
        return Err(Rejection::UnknownChannel { channel: name.clone() });
    }
    if !state.former_owners(name).contains(&former) {
        return Err(Rejection::NotFormerOwner { channel: name.clone(), node, term });
    }
    tx.emit(Event::FormerOwnerCleared { channel: name.clone(), former });
    session::forget(tx, node.node);
    Ok(Verdict::Done)
}
