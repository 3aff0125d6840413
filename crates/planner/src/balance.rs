//! Stage 3: counts are evened out by moving watched channels, each with its next owner, once
//! nothing has changed for a while (12.4). When that is, is in `quiet`; by our own rule, or by the
//! policy chosen by name. Called by `plan`.

use alloc::vec::Vec;

use state::choices::Choice;
use state::decision::Move;
use state::ids::{ChannelName, CollectionId};

use crate::holdings;
use crate::policy::balance::About;
use crate::policy::{Balance, Op, OpKind, Owner};
use crate::quiet::{self, Waits};
use crate::report::{Report, Stage, Why};
use crate::spread::{Pick, Rest, Spread};
use crate::targets::Targets;
use crate::view::View;

/// Moves channels from the fullest candidates to the emptiest, at most `room` of them. `earlier`
/// moves were chosen before in the same plan: while anything moves, nothing is evened out.
pub(crate) fn balance(
    view: &View<'_>,
    targets: &mut Targets,
    room: usize,
    earlier: usize,
    report: &mut Report,
) -> Vec<Move> {
    let name = view.state.choice(Choice::Balance);
    let policy = Balance::from_name(name);
    let uneven = surplus(targets);
    // By number alone there is nothing to do; only affinity looks further.
    if uneven == 0 && policy != Some(Balance::VchannelFair) {
        return Vec::new();
    }
    if let Some(why) = holds_back(view, policy, earlier) {
        wait(uneven, why, report);
        return Vec::new();
    }
    let mut spread = Spread::new(view, targets.len());
    let moves = match policy {
        None => even_out(&mut spread, targets, room, report),
        Some(policy) => {
            if policy == Balance::VchannelFair {
                view.state.channels().for_each(|channel| spread.wait_for(channel));
            }
            let ops = ask(view, targets, policy);
            follow(&ops, &mut spread, targets, room, report)
        }
    };
    if let Some(until) = spread.cooled_at {
        report.wake(Why::CoolingDown { until });
    }
    if policy.is_none() {
        let left = surplus(targets);
        if left > 0 {
            report.all_wait(Stage::Balance, None, left, why_left(view, &spread, &moves, room));
        }
    } else if let (true, Some(until)) = (moves.is_empty(), spread.movable_at) {
        wait(uneven, Why::MovedLately { until }, report);
    }
    moves
}

/// Also with even counts a policy may have something to do once the wait is over.
fn wait(uneven: u64, why: Why, report: &mut Report) {
    if uneven > 0 {
        report.all_wait(Stage::Balance, None, uneven, why);
    } else {
        report.wake(why);
    }
}

/// Why nothing may be moved for balance now, if so.
fn holds_back(view: &View<'_>, policy: Option<Balance>, earlier: usize) -> Option<Why> {
    if policy == Some(Balance::None) {
        return Some(Why::BalanceOff);
    }
    match quiet::waits(view.state) {
        Waits::Off => Some(Why::BalanceOff),
        Waits::Busy { channels } => Some(Why::Busy { channels }),
        Waits::Until(_) if earlier > 0 => {
            Some(Why::Busy { channels: u32::try_from(earlier).unwrap_or(u32::MAX) })
        }
        Waits::Until(until) if until > view.time() => Some(Why::Quiet { until }),
        Waits::Until(_) => None,
    }
}

fn why_left(view: &View<'_>, spread: &Spread<'_>, moves: &[Move], room: usize) -> Why {
    match spread.movable_at {
        _ if moves.len() >= room => {
            Why::MovesInFlight { max: view.state.policy().balance_moves_max }
        }
        Some(until) => Why::MovedLately { until },
        None => spread.cooled_at.map_or(Why::NoBetterNode, |until| Why::CoolingDown { until }),
    }
}

/// Our own rule, `spread`: until no candidate has two channels more than another.
fn even_out(
    spread: &mut Spread<'_>,
    targets: &mut Targets,
    room: usize,
    report: &mut Report,
) -> Vec<Move> {
    let mut moves = Vec::new();
    while moves.len() < room {
        let Some(pick) = spread.next(targets) else { break };
        moves.push(take(pick, targets, report));
    }
    moves
}

fn ask<'a>(view: &View<'a>, targets: &Targets, policy: Balance) -> Vec<Op<&'a ChannelName>> {
    let layout = holdings::layout(view, targets);
    let now = view.time();
    let rest_ms = view.state.policy().min_move_interval_ms;
    policy.run(&layout, |name| {
        let channel = view.state.channel(name);
        let movable = channel.is_some_and(|c| c.placed_at.plus_ms(rest_ms) <= now);
        let collection = channel.map_or(CollectionId(0), |channel| channel.spec.collection);
        About { collection, movable }
    })
}

/// What a policy answers as moves: with the owner it names, else with the emptiest candidate.
fn follow(
    ops: &[Op<&ChannelName>],
    spread: &mut Spread<'_>,
    targets: &mut Targets,
    room: usize,
    report: &mut Report,
) -> Vec<Move> {
    let new_owners = holdings::new_owners(ops);
    let mut moves = Vec::new();
    for op in ops.iter().filter(|op| op.kind == OpKind::Release) {
        let Owner::Node(from) = op.owner else { continue };
        let Some(donor) = targets.position(from) else { continue };
        for name in &op.channels {
            if moves.len() >= room {
                return moves;
            }
            let pick = match new_owners.get(name) {
                Some(to) => spread.exactly(targets, name, (donor, *to), Rest::Needed),
                None => spread.from(targets, donor),
            };
            moves.extend(pick.map(|pick| take(pick, targets, report)));
        }
    }
    moves
}

/// Counts a move as made.
pub(crate) fn take(pick: Pick, targets: &mut Targets, report: &mut Report) -> Move {
    report.moved(&pick, targets);
    targets.remove(pick.donor);
    targets.add(pick.to);
    pick.chosen
}

/// How many channels have to move until no candidate has two more than another.
pub(crate) fn surplus(targets: &Targets) -> u64 {
    let total = targets.total();
    let nodes = u64::try_from(targets.len()).unwrap_or(u64::MAX);
    if nodes == 0 {
        return 0;
    }
    let (average, mut above) = (total / nodes, total % nodes);
    // The fullest keep the remainder (C13).
    let mut surplus = 0_u64;
    for (count, _) in targets.by_count().rev() {
        let mut keep = average;
        if above > 0 && u64::from(count) > average {
            above = above.saturating_sub(1);
            keep = average.saturating_add(1);
        }
        surplus = surplus.saturating_add(u64::from(count).saturating_sub(keep));
    }
    surplus
}
