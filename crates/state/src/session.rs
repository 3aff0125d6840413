//! Handlers of leaders and sessions: start, register, silence, stopping, the end of a session.
//! `leave` is the one place that ends a session; it cannot fail (NodeLeave).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use crate::apply::{ALREADY, Handled, Tx, Verdict};
use crate::channel::{Channel, Phase, UnassignCause};
use crate::epoch::{ChannelTerm, NodeEpoch, Term};
use crate::event::Event;
use crate::ids::{ChannelName, MemberId, NodeId};
use crate::limits;
use crate::node::{DownCause, NodeRef, NodeStatus, Registration};
use crate::outcome::{Facts, Rejection, limit_len};
use crate::state::keep_former;

pub(crate) fn leader_start(tx: &mut Tx<'_>, term: Term, member: MemberId) -> Handled {
    let current = tx.state().leader().term;
    if term <= current {
        return Err(Rejection::StaleTerm { named: term, current });
    }
    // A term that no entry has yet would shut out every leader to come.
    if term != tx.term() {
        return Err(Rejection::StaleTerm { named: term, current: tx.term() });
    }
    tx.emit(Event::LeaderStarted { term, member });
    Ok(Verdict::Done)
}

pub(crate) fn register(tx: &mut Tx<'_>, registration: &Registration) -> Handled {
    limit_len("labels", registration.labels.len(), limits::LABELS_MAX)?;
    let state = tx.state();
    let index = state.index();
    let named = index.by_name.get(&registration.name).copied();
    if let Some(node) = named.and_then(|node| state.node(node)) {
        let old = &node.registration;
        if old.incarnation == registration.incarnation && old.address == registration.address {
            return Ok(Verdict::NoChange(Facts::Session(node.node_ref())));
        }
    }
    let addressed = index.by_address.get(&registration.address).copied();
    let replaced: BTreeSet<NodeId> = named.into_iter().chain(addressed).collect();
    if state.node_count() >= limits::NODES_MAX {
        return Err(Rejection::too_many("nodes", state.node_count(), limits::NODES_MAX));
    }
    let node = NodeId(state.scalars().next_node);
    if node.0 == u64::MAX {
        return Err(Rejection::Limit { what: "node ids", value: node.0, max: node.0 });
    }
    for node in replaced {
        if let Some(node) = tx.state().node(node).map(|node| node.node_ref()) {
            leave(tx, node, DownCause::Replaced);
        }
    }
    let node = NodeRef { node, epoch: NodeEpoch::at(tx.revision()) };
    tx.emit(Event::NodeCameUp { node, registration: registration.clone() });
    Ok(Verdict::Done)
}

pub(crate) fn observed(
    tx: &mut Tx<'_>,
    leader_term: Term,
    seq: u64,
    silent: &[(NodeRef, u64)],
    renewed: &[NodeRef],
) -> Handled {
    limit_len("silent sessions", silent.len(), limits::OBSERVED_MAX)?;
    limit_len("renewed sessions", renewed.len(), limits::OBSERVED_MAX)?;
    check_leader(tx, leader_term)?;
    if seq <= tx.state().leader().observed_seq {
        return ALREADY;
    }
    // A session named twice counts once, and one that came back is not silent.
    let mut found: BTreeMap<NodeRef, u64> = BTreeMap::new();
    for (node, added_ms) in silent {
        if let Some(session) = tx.state().live(*node) {
            found.entry(*node).or_insert(session.silent_ms.saturating_add(*added_ms));
        }
    }
    found.extend(renewed.iter().map(|node| (*node, 0)));
    let changed = |(node, silent_ms): &(NodeRef, u64)| {
        tx.state().live(*node).is_some_and(|session| session.silent_ms != *silent_ms)
    };
    let changes: Vec<(NodeRef, u64)> = found.into_iter().filter(changed).collect();
    if changes.is_empty() {
        return ALREADY;
    }
    for (node, silent_ms) in changes {
        tx.emit(Event::SessionSilenceChanged { node, silent_ms });
    }
    tx.emit(Event::SilenceReported { seq });
    Ok(Verdict::Done)
}

pub(crate) fn set_stopping(tx: &mut Tx<'_>, node: NodeRef) -> Handled {
    match check_live(tx, node)? {
        NodeStatus::Up => tx.emit(Event::NodeBeganStopping { node }),
        NodeStatus::Stopping | NodeStatus::Down => return ALREADY,
    }
    Ok(Verdict::Done)
}

pub(crate) fn unset_stopping(tx: &mut Tx<'_>, node: NodeRef) -> Handled {
    match check_live(tx, node)? {
        NodeStatus::Stopping => tx.emit(Event::NodeStoppedStopping { node }),
        NodeStatus::Up | NodeStatus::Down => return ALREADY,
    }
    Ok(Verdict::Done)
}

pub(crate) fn revoke(tx: &mut Tx<'_>, node: NodeRef) -> Handled {
    check_live(tx, node)?;
    leave(tx, node, DownCause::Revoked);
    Ok(Verdict::Done)
}

pub(crate) fn expire(tx: &mut Tx<'_>, node: NodeRef, leader_term: Term) -> Handled {
    check_leader(tx, leader_term)?;
    let session = tx.state().live(node).ok_or(Rejection::StaleNode { node })?;
    let needed_ms = tx.state().expires_after_ms(session);
    let silent_ms = session.silent_ms;
    if silent_ms < needed_ms {
        return Err(Rejection::NotSilent { node, silent_ms, needed_ms });
    }
    leave(tx, node, DownCause::Expired);
    Ok(Verdict::Done)
}

fn check_leader(tx: &Tx<'_>, named: Term) -> Result<(), Rejection> {
    let current = tx.state().leader().term;
    if named == current { Ok(()) } else { Err(Rejection::StaleTerm { named, current }) }
}

/// F7: exactly this session, not a later one of the same worker.
fn check_live(tx: &Tx<'_>, node: NodeRef) -> Result<NodeStatus, Rejection> {
    let session = tx.state().live(node).ok_or(Rejection::StaleNode { node })?;
    Ok(session.status)
}

/// Ends a session with all that follows from it: its channels lose their owner, in name order; its
/// cool-downs go; and it is forgotten unless a channel still names it as a former owner (ruling
/// 14).
fn leave(tx: &mut Tx<'_>, node: NodeRef, cause: DownCause) {
    tx.emit(Event::NodeWentDown { node, cause });
    #[cfg_attr(not(test), expect(unused_mut, reason = "tests change the order on purpose"))]
    let mut owned: Vec<ChannelName> = tx.state().channels_of(node.node).cloned().collect();
    #[cfg(test)]
    tx.state().poison.sort(&mut owned);
    for name in owned {
        if let Some(event) = tx.state().channel(&name).and_then(|channel| lose(tx, channel)) {
            tx.emit(event);
        }
    }
    let cooling = tx.state().index().cooling.get(&node.node).cloned().unwrap_or_default();
    for channel in cooling {
        tx.emit(Event::CooldownCleared { channel, node: node.node });
    }
    forget(tx, node.node);
}

/// What happens to a channel whose owner is gone.
fn lose(tx: &Tx<'_>, channel: &Channel) -> Option<Event> {
    let name = channel.spec.name.clone();
    let from = channel.phase.owner()?;
    let planned = match channel.phase {
        Phase::ToRelease { dropping: true, .. } => {
            let mut former_owners = channel.former_owners.clone();
            keep_former(&mut former_owners, from, channel.term);
            let last_term = channel.term;
            return Some(Event::ChannelRemoved { channel: name, last_term, former_owners });
        }
        Phase::ToRelease { planned, .. } => planned,
        _ => None,
    };
    Some(Event::ChannelUnassigned {
        channel: name,
        from,
        term: ChannelTerm::at(tx.revision()),
        cause: UnassignCause::NodeDown,
        former: true,
        planned: planned.filter(|planned| tx.state().live(*planned).is_some()),
        cooldown_until: None,
        done: None,
    })
}

/// Forgets a Down node that no channel names as a former owner any more.
pub(crate) fn forget(tx: &mut Tx<'_>, node: NodeId) {
    let state = tx.state();
    let Some(session) = state.node(node) else { return };
    if session.status == NodeStatus::Down && !state.index().former.contains_key(&node) {
        let node = session.node_ref();
        tx.emit(Event::NodeForgotten { node });
    }
}
