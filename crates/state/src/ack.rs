//! Handler of NodeAck: what a node says of a directive (fence F8).
//! Silence of a node is in `deadline`.

use alloc::sync::Arc;

use crate::apply::{ALREADY, Handled, Tx, Verdict};
use crate::channel::{AckResult, Channel, LastDone, Phase, ReleaseCause, UnassignCause};
use crate::command::NodeAck;
use crate::deadline::cooldown_ms;
use crate::epoch::ChannelTerm;
use crate::event::Event;
use crate::ids::Text;
use crate::node::NodeRef;
use crate::outcome::Rejection;
use crate::release;
use crate::watch::find;

pub(crate) fn node_ack(tx: &mut Tx<'_>, ack: &NodeAck) -> Handled {
    let NodeAck { node, term, op, result, .. } = *ack;
    if tx.state().live(node).is_none() {
        return Err(Rejection::StaleNode { node });
    }
    let channel = Arc::clone(find(tx.state(), &ack.channel)?);
    let done = LastDone { node, term, op, result };
    if channel.last_done == Some(done) {
        return ALREADY;
    }
    // 1. A node is told to watch under op 5 and acknowledges, but the answer is slow.
    // 2. The watch times out; op 10 tells it to release.
    // 3. The acknowledgement of op 5 arrives: it must not end op 10.
    let in_force = (channel.phase.owner(), channel.term, channel.phase.op());
    if in_force != (Some(node), term, Some(op)) {
        return Err(Rejection::Stale { channel: ack.channel.clone(), term, op });
    }
    match channel.phase {
        Phase::Buffered { .. } => return ALREADY,
        Phase::ToWatch { .. } | Phase::Watched { .. } => return watched(tx, &channel, done, ack),
        Phase::ToRelease { .. } => {
            let cause = match result {
                AckResult::Ok => UnassignCause::Released,
                _ => UnassignCause::ReleaseFailed,
            };
            release::finish(tx, &channel, node, cause, Some(done));
        }
    }
    Ok(Verdict::Done)
}

/// What the node says of a watch, at its start or later.
fn watched(tx: &mut Tx<'_>, channel: &Channel, done: LastDone, ack: &NodeAck) -> Handled {
    let name = &ack.channel;
    match ack.result {
        AckResult::Ok if matches!(channel.phase, Phase::Watched { .. }) => return ALREADY,
        AckResult::Ok => tx.emit(Event::WatchCompleted { channel: name.clone(), done }),
        AckResult::FailedStopped => {
            failed(tx, channel, ack.node, ack.reason.clone(), Some(done));
            // Nothing runs there: no round trip of a release is needed.
            tx.emit(Event::ChannelUnassigned {
                channel: name.clone(),
                from: ack.node,
                term: ChannelTerm::at(tx.revision()),
                cause: UnassignCause::Stopped,
                former: false,
                planned: None,
                cooldown_until: None,
                done: Some(done),
            });
        }
        AckResult::Failed => {
            failed(tx, channel, ack.node, ack.reason.clone(), Some(done));
            release::start(tx, name, ReleaseCause::WatchFailed, None);
        }
        AckResult::Conflict => release::start(tx, name, ReleaseCause::Conflict, Some(done)),
    }
    Ok(Verdict::Done)
}

/// Counts a failed watch; the node cools down for the channel, longer with each failure in a row.
pub(crate) fn failed(
    tx: &mut Tx<'_>,
    channel: &Channel,
    node: NodeRef,
    reason: Text,
    done: Option<LastDone>,
) {
    let attempts = channel.attempts.saturating_add(1);
    let cooldown_until = tx.now().plus_ms(cooldown_ms(tx.state().policy(), attempts));
    let name = channel.spec.name.clone();
    tx.emit(Event::WatchFailed { channel: name, node, attempts, cooldown_until, reason, done });
}
