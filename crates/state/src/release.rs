//! Handlers that take a channel away on request: Release, MarkDropped, RemoveChannel.
//! The owner's answer is in `ack`, its silence in `deadline`; both end a release with `finish`.

use alloc::sync::Arc;

use crate::apply::{ALREADY, Handled, Tx, Verdict};
use crate::channel::{Channel, LastDone, Phase, ReleaseCause, UnassignCause};
use crate::command::OwnerClaim;
use crate::epoch::{ChannelTerm, Op};
use crate::event::Event;
use crate::ids::ChannelName;
use crate::node::NodeRef;
use crate::outcome::Rejection;
use crate::state::{State, keep_former};
use crate::watch::find;

pub(crate) fn release(tx: &mut Tx<'_>, name: &ChannelName, term: ChannelTerm) -> Handled {
    let channel = find(tx.state(), name)?;
    let (phase, current) = (channel.phase.kind(), channel.term);
    if channel.phase.owner().is_none() {
        return Err(Rejection::NotOwned { channel: name.clone(), phase });
    }
    if current != term {
        return Err(Rejection::TermChanged { channel: name.clone(), named: term, current });
    }
    if matches!(channel.phase, Phase::ToRelease { .. }) {
        return ALREADY;
    }
    start(tx, name, ReleaseCause::Requested, None);
    Ok(Verdict::Done)
}

pub(crate) fn mark_dropped(
    tx: &mut Tx<'_>,
    name: &ChannelName,
    claim: Option<OwnerClaim>,
) -> Handled {
    let channel = Arc::clone(find(tx.state(), name)?);
    if let Some(claim) = claim {
        check_owner(&channel, claim)?;
    }
    match channel.phase {
        Phase::ToRelease { dropping: true, .. } => return ALREADY,
        Phase::Buffered { .. } => remove_now(tx, &channel, None),
        Phase::ToRelease { .. } => {
            tx.emit(Event::ChannelMarkedDropped { channel: name.clone() });
        }
        Phase::ToWatch { .. } | Phase::Watched { .. } => {
            tx.emit(Event::ChannelMarkedDropped { channel: name.clone() });
            start(tx, name, ReleaseCause::Drop, None);
        }
    }
    Ok(Verdict::Done)
}

pub(crate) fn remove(tx: &mut Tx<'_>, name: &ChannelName) -> Handled {
    let Some(channel) = tx.state().channel(name).cloned() else { return ALREADY };
    // The owner was never told: it stays on the list until it reports.
    remove_now(tx, &channel, channel.phase.owner());
    Ok(Verdict::Done)
}

/// the caller owns the channel under the term it names, in whatever phase.
pub(crate) fn check_owner(channel: &Channel, claim: OwnerClaim) -> Result<(), Rejection> {
    let owner = channel.phase.owner();
    if owner == Some(claim.node) && channel.term == claim.term {
        return Ok(());
    }
    Err(Rejection::NotOwner { channel: channel.spec.name.clone(), owner, term: channel.term })
}

impl State {
    /// Whether a claim holds now: exactly the answer that a commit under it would get.
    ///
    /// # Errors
    /// [`Rejection::UnknownChannel`], [`Rejection::Dropped`] or [`Rejection::NotOwner`].
    pub fn check_owner(
        &self,
        name: &ChannelName,
        claim: OwnerClaim,
    ) -> Result<&Arc<Channel>, Rejection> {
        let channel = find(self, name)?;
        check_owner(channel, claim)?;
        Ok(channel)
    }
}

/// Tells the owner to release.
pub(crate) fn start(
    tx: &mut Tx<'_>,
    name: &ChannelName,
    cause: ReleaseCause,
    done: Option<LastDone>,
) {
    let op = Op::at(tx.revision());
    tx.emit(Event::ReleaseStarted { channel: name.clone(), op, cause, planned: None, done });
}

/// Ends a release: the channel goes if it is being dropped, else it is free. An owner that did not
/// release as told is kept as a former owner, and may not get the channel back for the longest
/// cool-down.
pub(crate) fn finish(
    tx: &mut Tx<'_>,
    channel: &Channel,
    from: NodeRef,
    cause: UnassignCause,
    done: Option<LastDone>,
) {
    let as_told = cause == UnassignCause::Released;
    let planned = match channel.phase {
        Phase::ToRelease { dropping: true, .. } => {
            return remove_now(tx, channel, (!as_told).then_some(from));
        }
        Phase::ToRelease { planned, .. } => planned,
        _ => None,
    };
    let until = tx.now().plus_ms(tx.state().policy().cooldown_max_ms);
    tx.emit(Event::ChannelUnassigned {
        channel: channel.spec.name.clone(),
        from,
        term: ChannelTerm::at(tx.revision()),
        cause,
        former: !as_told,
        planned: planned.filter(|planned| tx.state().live(*planned).is_some()),
        cooldown_until: (!as_told).then_some(until),
        done,
    });
}

fn remove_now(tx: &mut Tx<'_>, channel: &Channel, kept: Option<NodeRef>) {
    let mut former_owners = channel.former_owners.clone();
    if let Some(node) = kept {
        keep_former(&mut former_owners, node, channel.term);
    }
    let name = channel.spec.name.clone();
    tx.emit(Event::ChannelRemoved { channel: name, last_term: channel.term, former_owners });
}
