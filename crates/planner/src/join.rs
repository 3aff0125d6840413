//! Stage between drain and balance: what is released for a node that has joined, if a register
//! policy is chosen (11.3). Without one a join moves nothing. Called by `plan`.

use alloc::vec::Vec;

use state::channel::PhaseKind;
use state::choices::Choice;
use state::decision::Move;
use state::ids::{ChannelName, NodeId};

use crate::balance::take;
use crate::holdings;
use crate::policy::register::Handover;
use crate::policy::ring::Ring;
use crate::policy::{OpKind, Owner, Register};
use crate::report::{Report, Why};
use crate::spread::{Rest, Spread};
use crate::targets::{Position, Targets};
use crate::view::View;

/// A channel, who has it, and who is to get it.
type Wanted<'a> = (&'a ChannelName, Position, NodeId);

/// Releases channels for a node that has none, or that the ring gives to another node; at most
/// `room` of them. Nothing is done while channels wait for an owner: those go first.
pub(crate) fn join(
    view: &View<'_>,
    targets: &mut Targets,
    room: usize,
    report: &mut Report,
) -> Vec<Move> {
    if room == 0 || view.state.counts().buffered > 0 {
        return Vec::new();
    }
    let wanted = match Register::from_name(view.state.choice(Choice::Register)) {
        Some(Register::AvgAssign) => share_of_newcomer(view, targets),
        Some(Register::ConsistentHash) => off_the_ring(view, targets),
        Some(Register::None | Register::BufferAssign) | None => return Vec::new(),
    };
    let mut spread = Spread::new(view, targets.len());
    let mut moves = Vec::new();
    for (name, donor, to) in wanted {
        if moves.len() >= room {
            break;
        }
        let pick = spread.exactly(targets, name, (donor, to), Rest::Waived);
        moves.extend(pick.map(|pick| take(pick, targets, report)));
    }
    if let Some(until) = spread.cooled_at {
        report.wake(Why::CoolingDown { until });
    }
    moves
}

/// The first candidate without anything gets its share from the fullest.
fn share_of_newcomer<'a>(view: &View<'a>, targets: &Targets) -> Vec<Wanted<'a>> {
    let empty = targets.by_count().next().filter(|(count, _)| *count == 0);
    let Some(newcomer) = empty.and_then(|(_, at)| targets.node(at)) else { return Vec::new() };
    let layout = holdings::layout(view, targets);
    let ops = Register::AvgAssign.run(&layout, newcomer.node, Handover::Release);
    let mut wanted = Vec::new();
    for op in ops.into_iter().filter(|op| op.kind == OpKind::Release) {
        let Owner::Node(from) = op.owner else { continue };
        let Some(donor) = targets.position(from) else { continue };
        wanted.extend(op.channels.into_iter().map(|name| (name, donor, newcomer.node)));
    }
    wanted
}

/// Watched channels whose owner on the ring is another candidate.
fn off_the_ring<'a>(view: &View<'a>, targets: &Targets) -> Vec<Wanted<'a>> {
    let ring = Ring::new(targets.all().iter().map(|target| target.node.node));
    let state = view.state;
    let mut wanted = Vec::new();
    for (donor, target) in targets.all().iter().enumerate() {
        for name in state.channels_of(target.node.node) {
            let phase = state.channel(name).map(|channel| channel.phase.kind());
            let owner = ring.owner(name.as_str()).filter(|owner| *owner != target.node.node);
            if let (Some(PhaseKind::Watched), Some(owner)) = (phase, owner) {
                wanted.push((name, donor, owner));
            }
        }
    }
    wanted
}
