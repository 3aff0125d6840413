//! Stage 2: nodes that are stopping or frozen are emptied, a bounded number of channels at a time,
//! and only while another candidate can take them. Called by `plan`.

use alloc::sync::Arc;
use alloc::vec::Vec;

use state::channel::{Channel, PhaseKind};
use state::decision::{Action, Cause, Guard, Move};
use state::node::Node;

use crate::report::{Choice, Report, Stage, Why};
use crate::targets::{Constraint, Excluded, Targets, node_constraint};
use crate::view::View;

/// Whether a node is to be emptied.
pub(crate) fn drains(view: &View<'_>, node: &Node) -> bool {
    matches!(node_constraint(view, node), Some(Constraint::Stopping | Constraint::Frozen))
}

/// How many more channels drain and balance may have in ToRelease.
pub(crate) fn room(view: &View<'_>) -> usize {
    let left = view.state.policy().balance_moves_max.saturating_sub(view.state.moving());
    usize::try_from(left).unwrap_or(usize::MAX)
}

/// Releases watched channels of nodes that are to be emptied, each with its next owner.
pub(crate) fn drain(
    view: &View<'_>,
    targets: &mut Targets,
    moves_max: usize,
    report: &mut Report,
) -> Vec<Move> {
    let room = room(view).min(moves_max);
    let mut moves = Vec::new();
    for node in view.state.nodes().filter(|node| drains(view, node)) {
        let watched = view.state.counts_of(node.node).watched;
        if watched == 0 {
            continue;
        }
        if targets.is_empty() {
            let from = Some(node.node_ref());
            report.all_wait(Stage::Drain, from, u64::from(watched), Why::NoTarget);
            continue;
        }
        empty(view, node, targets, room, &mut moves, report);
    }
    moves
}

/// Watched channels of one node, in name order.
fn empty(
    view: &View<'_>,
    node: &Node,
    targets: &mut Targets,
    room: usize,
    moves: &mut Vec<Move>,
    report: &mut Report,
) {
    let mut left = u64::from(view.state.counts_of(node.node).watched);
    let channels = view.state.channels_of(node.node).filter_map(|name| view.state.channel(name));
    for channel in channels.filter(|channel| channel.phase.kind() == PhaseKind::Watched) {
        if moves.len() >= room {
            let why = Why::MovesInFlight { max: view.state.policy().balance_moves_max };
            report.all_wait(Stage::Drain, Some(node.node_ref()), left, why);
            return;
        }
        left = left.saturating_sub(1);
        moves.extend(release(view, node, channel, targets, report));
    }
}

fn release(
    view: &View<'_>,
    node: &Node,
    channel: &Arc<Channel>,
    targets: &mut Targets,
    report: &mut Report,
) -> Option<Move> {
    let now = view.time();
    let name = &channel.spec.name;
    let Some(excluded) = Excluded::of(channel, targets, now) else {
        let until = targets.cooled_at(channel, now).unwrap_or(now);
        report.waits(Stage::Drain, name, Why::CoolingDown { until });
        return None;
    };
    let at = targets.least(&excluded.positions, None)?;
    let to = targets.node(at)?;
    let from = node.node_ref();
    let candidates = targets.len().saturating_sub(excluded.positions.len());
    report.chose(Choice {
        channel: name.clone(),
        from: Some(from),
        to,
        cause: Cause::Drain,
        had: targets.count(at),
        candidates: u32::try_from(candidates).unwrap_or(u32::MAX),
    });
    targets.add(at);
    let guard = Guard { term: channel.term, phase: PhaseKind::Watched };
    let action = Action::Move { from, to };
    Some(Move { channel: name.clone(), guard, action, cause: Cause::Drain })
}
