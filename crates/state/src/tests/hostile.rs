//! Hostile commands: any ids, any epochs, any numbers, lists that are too long. What a faulty or
//! malicious member could put into the log; apply must have an outcome for each.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::build::{channel, registration, spec, text, worker};
use super::dice::Dice;
use crate::channel::{AckResult, PhaseKind};
use crate::command::{Command, NodeAck, OwnerClaim, Request, Retry};
use crate::decision::{Action, Basis, Cause, Decision, Guard, Move};
use crate::epoch::{ChannelTerm, NodeEpoch, Op, Revision, Term, Timestamp};
use crate::ids::{ChannelName, MemberId, NodeId, RequestId};
use crate::limits;
use crate::node::NodeRef;
use crate::{Context, State};

/// An entry that need not make any sense.
pub(crate) fn entry(state: &State, seed: u64) -> (Context, Request) {
    let mut dice = Dice::new(seed);
    let term = Term(small(&mut dice));
    // Mostly near the present: once the clock is at its end, no deadline is ever reached.
    let now = match dice.below(40) {
        0 => Timestamp(number(&mut dice).min(1 << 60)),
        1 => Timestamp(0),
        _ => state.now().plus_ms(dice.below(100_000)),
    };
    let retry = dice.once_in(3).then(|| {
        let id = u8::try_from(dice.below(4)).unwrap();
        Retry { request_id: RequestId([id; 16]), issued_at: Timestamp(number(&mut dice)) }
    });
    let command = command(&mut dice);
    (Context { term, now }, Request { actor: text("nobody"), retry, command })
}

/// Small, near a boundary, or anything.
fn number(dice: &mut Dice) -> u64 {
    match dice.below(8) {
        0 => u64::MAX,
        1 => u64::MAX - dice.below(3),
        2 => 0,
        3 => dice.roll(),
        4 => dice.below(2_000_000),
        _ => dice.below(40),
    }
}

/// Mostly what a short history has, so that some commands get past the first check.
fn small(dice: &mut Dice) -> u64 {
    if dice.once_in(12) { number(dice) } else { dice.below(4) }
}

fn node(dice: &mut Dice) -> NodeRef {
    NodeRef { node: NodeId(small(dice)), epoch: NodeEpoch(number(dice)) }
}

fn name(dice: &mut Dice) -> ChannelName {
    if dice.once_in(30) {
        return channel(&"x".repeat(limits::CHANNEL_NAME_BYTES_MAX));
    }
    channel(&format!("c{:02}", dice.below(6)))
}

fn claim(dice: &mut Dice) -> OwnerClaim {
    OwnerClaim { node: node(dice), term: ChannelTerm(number(dice)) }
}

fn command(dice: &mut Dice) -> Command {
    let (channel, term, op) = (name(dice), ChannelTerm(number(dice)), Op(number(dice)));
    match dice.below(24) {
        0 => Command::LeaderStart { term: Term(small(dice)), member: MemberId(number(dice)) },
        1 | 2 => register(dice),
        3 => observed(dice),
        4 => Command::SetStopping { node: node(dice) },
        5 => Command::UnsetStopping { node: node(dice) },
        6 => Command::Revoke { node: node(dice) },
        7 => Command::ExpireSession { node: node(dice), leader_term: Term(small(dice)) },
        8 | 9 => announce(dice),
        10 => {
            let claim = dice.once_in(2).then(|| claim(dice));
            Command::MarkDropped { channel, claim }
        }
        11 => Command::RemoveChannel { channel },
        12 => Command::Release { channel, term },
        13 => {
            let result = dice.pick(&[AckResult::Ok, AckResult::Failed, AckResult::Conflict]);
            let (node, result) = (node(dice), result.unwrap_or(AckResult::FailedStopped));
            let reason = text(&"why ".repeat(60));
            Command::NodeAck(NodeAck { node, channel, term, op, result, reason })
        }
        14 => Command::OpTimeout { channel, term, op },
        15 => Command::ExtendDeadline { channel, term, op, progress: number(dice) },
        16 => {
            let bytes = if dice.once_in(3) { limits::POSITIONS_BYTES_MAX + 1 } else { 9 };
            Command::CommitMeta { channel, claim: claim(dice), positions: vec![7; bytes] }
        }
        17 => Command::EffectDone { channel, former: claim(dice) },
        18 => Command::Place(decision(dice)),
        19 => Command::RegisterCleaner { name: worker(&format!("k{}", dice.below(40))) },
        20 => Command::Freeze { name: worker(&format!("w{}", dice.below(9))) },
        21 => Command::Thaw { name: worker(&format!("w{}", dice.below(9))) },
        22 => settings(dice),
        _ => Command::SetLevel { level: u32::try_from(number(dice)).unwrap_or(u32::MAX) },
    }
}

fn register(dice: &mut Dice) -> Command {
    let mut registration = registration(&format!("w{}", dice.below(4)));
    if dice.once_in(10) {
        let count = limits::LABELS_MAX + 1;
        let label = |number| (text(&format!("l{number}")), text("v"));
        registration.labels = (0..count).map(label).collect();
    }
    Command::RegisterSession(registration)
}

fn observed(dice: &mut Dice) -> Command {
    let count = if dice.once_in(20) { limits::OBSERVED_MAX + 1 } else { dice.index(5) };
    Command::SessionsObserved {
        leader_term: Term(small(dice)),
        seq: number(dice),
        silent: (0..count).map(|_| (node(dice), number(dice))).collect(),
        renewed: (0..dice.below(3)).map(|_| node(dice)).collect(),
    }
}

fn announce(dice: &mut Dice) -> Command {
    if dice.once_in(20) {
        return Command::WatchChannels(vec![spec("c00"); limits::WATCH_CHANNELS_MAX + 1]);
    }
    let mut specs: Vec<_> = (0..dice.below(4)).map(|_| spec(name(dice).as_str())).collect();
    if let Some(first) = specs.first_mut()
        && dice.once_in(10)
    {
        first.positions = vec![0; limits::POSITIONS_BYTES_MAX + 1];
    }
    Command::WatchChannels(specs)
}

fn decision(dice: &mut Dice) -> Decision {
    let count = if dice.once_in(30) { limits::MOVES_MAX + 1 } else { dice.index(6) };
    let phases =
        [PhaseKind::Buffered, PhaseKind::ToWatch, PhaseKind::Watched, PhaseKind::ToRelease];
    let moves = (0..count).map(|_| {
        let action = match dice.below(3) {
            0 => Action::Assign { to: node(dice) },
            1 => Action::Move { from: node(dice), to: node(dice) },
            _ => Action::Release { from: node(dice) },
        };
        let phase = dice.pick(&phases).unwrap_or(PhaseKind::Buffered);
        let guard = Guard { term: ChannelTerm(dice.below(40)), phase };
        Move { channel: name(dice), guard, action, cause: Cause::Unassigned }
    });
    let moves = moves.collect();
    let basis = Basis { term: Term(small(dice)), revision: Revision(number(dice)) };
    Decision { basis, moves, atomic: dice.once_in(3) }
}

fn settings(dice: &mut Dice) -> Command {
    let count = if dice.once_in(10) { limits::SETTINGS_MAX + 1 } else { 1 };
    let known = ["ttl_ms", "margin_ms", "cooldown_max_ms", "watch_timeout_ms", "nothing", ""];
    let mut values = BTreeMap::new();
    for place in 0..count {
        let value = format!("{}", number(dice));
        let name = dice.pick(&known).unwrap_or_default();
        let place = if count > 1 { format!("{place}") } else { String::new() };
        let name = format!("{name}{place}");
        values.insert(text(&name), text(&value));
    }
    Command::SetPolicy { values }
}
