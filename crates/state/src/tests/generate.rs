//! Sensible histories: abstract actions made concrete against the present state, now and then with
//! one thing wrong, and with old requests sent again. Hostile ones are in `hostile`.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use super::build::{at, channel, registration, spec, text, worker};
use super::dice::Dice;
use crate::Context;
use crate::channel::{AckResult, Channel, Phase, PhaseKind};
use crate::command::{Command, NodeAck, OwnerClaim, Request, Retry};
use crate::decision::{Action, Basis, Cause, Decision, Guard, Move};
use crate::epoch::{ChannelTerm, NodeEpoch, Revision, Term, Timestamp};
use crate::ids::{Address, Incarnation, MemberId, RequestId};
use crate::node::{NodeRef, Role};
use crate::state::State;

/// What a generator knows beside the state.
#[derive(Default)]
pub(crate) struct World {
    pub(crate) term: u64,
    pub(crate) now: u64,
    past: Vec<Command>,
    serial: u64,
}

impl World {
    /// The next entry of a sensible history.
    pub(crate) fn next(&mut self, state: &State, seed: u64) -> (Context, Request) {
        let mut dice = Dice::new(seed);
        if dice.once_in(3) {
            self.now += dice.below(400);
        }
        if dice.once_in(80) {
            self.now += 700_000;
        }
        let command = match dice.below(26) {
            0 => dice.pick(&self.past).unwrap_or(Command::Tick),
            24 | 25 => self.again(&mut dice),
            1 if self.term == 0 || dice.once_in(4) => self.lead(),
            2 | 3 => self.register(&mut dice),
            4 => announce(&mut dice),
            5..=8 => self.place(state, &mut dice),
            9..=12 => acknowledge(state, &mut dice),
            13 => self.overdue(state, &mut dice),
            14 => extend(state, &mut dice),
            15 | 16 => self.silence(state, &mut dice),
            17 => session(state, &mut dice),
            18 => intent(state, &mut dice),
            19 => commit(state, &mut dice),
            20 | 21 => clean(state, &mut dice),
            22 if dice.once_in(4) => cleaner(&mut dice),
            22 => freeze(&mut dice),
            _ => settings(state, &mut dice),
        };
        self.past.push(command.clone());
        let retry = dice.once_in(4).then(|| self.retry(&mut dice));
        (at(self.term, self.now), Request { actor: text("test"), retry, command })
    }

    /// An acknowledgement that was on its way for a while.
    fn again(&self, dice: &mut Dice) -> Command {
        let is_ack = |command: &&Command| matches!(command, Command::NodeAck(_));
        let latest: Vec<Command> =
            self.past.iter().rev().filter(is_ack).take(12).cloned().collect();
        dice.pick(&latest).unwrap_or(Command::Tick)
    }

    fn lead(&mut self) -> Command {
        self.term += 1;
        Command::LeaderStart { term: Term(self.term), member: MemberId(self.term % 3) }
    }

    fn retry(&mut self, dice: &mut Dice) -> Retry {
        let id = u8::try_from(dice.below(20)).unwrap();
        let old = if dice.once_in(8) { 700_000 } else { 100 };
        let issued_at = Timestamp(self.now.saturating_sub(old));
        let ahead = if dice.once_in(20) { 700_000 } else { 0 };
        Retry { request_id: RequestId([id; 16]), issued_at: issued_at.plus_ms(ahead) }
    }

    fn register(&mut self, dice: &mut Dice) -> Command {
        let number = dice.below(6);
        let mut registration = registration(&format!("w{number}"));
        if number == 5 {
            registration.role = Role::Query;
        }
        if dice.once_in(5) {
            registration.address = Address::new(&format!("w{}", dice.below(6))).unwrap();
        }
        if dice.once_in(2) {
            self.serial += 1;
            registration.incarnation = Incarnation::new(&self.serial.to_string()).unwrap();
        }
        Command::RegisterSession(registration)
    }

    fn place(&self, state: &State, dice: &mut Dice) -> Command {
        let mut moves = Vec::new();
        for channel in state.channels() {
            if dice.once_in(3) {
                moves.extend(one_move(state, channel, dice));
            }
        }
        if dice.once_in(6) {
            moves.extend(stray_move(state, dice));
        }
        let mut basis = Basis { term: Term(self.term), revision: state.revision() };
        if dice.once_in(12) {
            basis.term = Term(self.term + 1);
        } else if dice.once_in(12) {
            basis.revision = Revision(state.revision().0 + 1);
        }
        Command::Place(Decision { basis, moves, atomic: dice.once_in(5) })
    }

    /// Jumps to the next deadline, or asks too early.
    fn overdue(&mut self, state: &State, dice: &mut Dice) -> Command {
        if dice.once_in(3) {
            let running = state.channels().find(|channel| state.deadline(channel).is_some());
            let early = running.and_then(|channel| {
                let (channel, term) = (channel.clone(), channel.term);
                let op = channel.phase.op()?;
                Some(Command::OpTimeout { channel: channel.spec.name.clone(), term, op })
            });
            return early.unwrap_or(Command::Tick);
        }
        self.now = self.now.max(state.next_deadline().map_or(0, |deadline| deadline.0));
        let due = state.due(Timestamp(self.now), 8);
        dice.pick(&due).unwrap_or(Command::Tick)
    }

    fn silence(&self, state: &State, dice: &mut Dice) -> Command {
        let nodes = sessions(state);
        let leader_term = Term(if dice.once_in(10) { 0 } else { self.term });
        if dice.once_in(2) {
            let enough = |node: &NodeRef| state.node(node.node).is_some_and(|n| n.silent_ms > 9000);
            let due: Vec<NodeRef> = nodes.iter().copied().filter(enough).collect();
            let node = dice.pick(&due).or_else(|| dice.pick(&nodes));
            return node.map_or(Command::Tick, |node| Command::ExpireSession { node, leader_term });
        }
        let silent = dice.pick(&nodes).map(|node| (node, 5000 + dice.below(8000)));
        let renewed = dice.once_in(4).then(|| dice.pick(&nodes)).flatten();
        Command::SessionsObserved {
            leader_term,
            seq: state.leader().observed_seq + dice.below(3),
            silent: silent.into_iter().collect(),
            renewed: renewed.into_iter().collect(),
        }
    }
}

/// Sessions by reference; Down ones, too.
fn sessions(state: &State) -> Vec<NodeRef> {
    state.nodes().map(|node| node.node_ref()).collect()
}

fn announce(dice: &mut Dice) -> Command {
    let count = 1 + dice.below(4);
    let mut specs: Vec<_> = (0..count).map(|_| spec(&format!("c{:02}", dice.below(16)))).collect();
    if let Some(last) = specs.last_mut()
        && dice.once_in(8)
    {
        last.schema_ref = text("another");
    }
    Command::WatchChannels(specs)
}

fn one_move(state: &State, channel: &Channel, dice: &mut Dice) -> Option<Move> {
    let mut to = dice.pick(&sessions(state))?;
    if dice.once_in(10) {
        to.epoch = NodeEpoch(to.epoch.0 + 1);
    }
    let mut guard = Guard { term: channel.term, phase: channel.phase.kind() };
    if dice.once_in(10) {
        guard.term = ChannelTerm(guard.term.0 + 1);
    }
    let (action, cause) = match channel.phase {
        Phase::Buffered { planned: Some(to) } => (Action::Assign { to }, Cause::Planned),
        Phase::Buffered { .. } => (Action::Assign { to }, Cause::Unassigned),
        Phase::ToWatch { owner, .. } | Phase::Watched { owner, .. } if dice.once_in(3) => {
            (Action::Release { from: owner }, Cause::Drain)
        }
        Phase::ToWatch { owner: from, .. }
        | Phase::Watched { owner: from, .. }
        | Phase::ToRelease { owner: from, .. } => (Action::Move { from, to }, Cause::Balance),
    };
    Some(Move { channel: channel.spec.name.clone(), guard, action, cause })
}

/// A move for a channel that is not there, or not any more.
fn stray_move(state: &State, dice: &mut Dice) -> Option<Move> {
    let guard = Guard { term: ChannelTerm(1), phase: PhaseKind::Buffered };
    let to = dice.pick(&sessions(state))?;
    let name = state.drops().next().map_or_else(|| channel("c99"), |(name, _)| name.clone());
    Some(Move { channel: name, guard, action: Action::Assign { to }, cause: Cause::GivenBack })
}

/// A channel with an operation running or done, preferably.
fn busy(state: &State, dice: &mut Dice) -> Option<Channel> {
    let owned = state.channels().filter(|channel| channel.phase.owner().is_some());
    let owned: Vec<_> = owned.cloned().collect();
    dice.pick(&owned).map(|channel| Channel::clone(&channel))
}

fn acknowledge(state: &State, dice: &mut Dice) -> Command {
    let Some(channel) = busy(state, dice) else { return Command::Tick };
    let (Some(owner), Some(op)) = (channel.phase.owner(), channel.phase.op()) else {
        return Command::Tick;
    };
    let result = match dice.below(10) {
        0 => AckResult::Failed,
        1 => AckResult::FailedStopped,
        2 => AckResult::Conflict,
        _ => AckResult::Ok,
    };
    let (node, term) = (owner, channel.term);
    let name = channel.spec.name.clone();
    let mut ack = NodeAck { node, channel: name, term, op, result, reason: text("as it is") };
    match dice.below(12) {
        0 => ack.term = ChannelTerm(term.0.saturating_sub(1)),
        1 => ack.node.epoch = NodeEpoch(node.epoch.0 + 1),
        2 => ack.op = crate::epoch::Op(op.0.saturating_sub(1)),
        3 => ack.node = dice.pick(&sessions(state)).unwrap_or(node),
        _ => {}
    }
    Command::NodeAck(ack)
}

fn extend(state: &State, dice: &mut Dice) -> Command {
    let Some(channel) = busy(state, dice) else { return Command::Tick };
    let (name, term) = (channel.spec.name.clone(), channel.term);
    let Some(op) = channel.phase.op() else { return Command::Tick };
    Command::ExtendDeadline { channel: name, term, op, progress: dice.below(4) }
}

fn session(state: &State, dice: &mut Dice) -> Command {
    let Some(node) = dice.pick(&sessions(state)) else { return Command::Tick };
    match dice.below(4) {
        0 => Command::SetStopping { node },
        1 => Command::UnsetStopping { node },
        2 => Command::Revoke { node },
        _ => Command::Tick,
    }
}

/// An operator or an owner wants something of a channel.
fn intent(state: &State, dice: &mut Dice) -> Command {
    let known: Vec<_> = state.channels().cloned().collect();
    let Some(found) = dice.pick(&known) else { return Command::Tick };
    let (name, term) = (found.spec.name.clone(), found.term);
    match dice.below(8) {
        0 => Command::RemoveChannel { channel: name },
        1 => Command::MarkDropped { channel: name, claim: None },
        2 | 3 => {
            let node = found.phase.owner().or_else(|| dice.pick(&sessions(state)));
            let claim = node.map(|node| OwnerClaim { node, term });
            Command::MarkDropped { channel: name, claim }
        }
        4 => Command::Release { channel: name, term: ChannelTerm(term.0 - 1) },
        5 => Command::MarkDropped { channel: channel("c98"), claim: None },
        _ => Command::Release { channel: name, term },
    }
}

fn commit(state: &State, dice: &mut Dice) -> Command {
    let removed = dice.once_in(6).then(|| state.drops().next()).flatten();
    let node = dice.pick(&sessions(state));
    if let (Some((name, dropped)), Some(node)) = (removed, node) {
        let claim = OwnerClaim { node, term: dropped.last_term };
        return Command::CommitMeta { channel: name.clone(), claim, positions: Vec::new() };
    }
    let Some(channel) = busy(state, dice) else { return Command::Tick };
    let owner = if dice.once_in(3) { node } else { channel.phase.owner() };
    let Some(node) = owner else { return Command::Tick };
    let claim = OwnerClaim { node, term: channel.term };
    let positions = Vec::from([u8::try_from(dice.below(3)).unwrap()]);
    Command::CommitMeta { channel: channel.spec.name.clone(), claim, positions }
}

fn clean(state: &State, dice: &mut Dice) -> Command {
    let effects: Vec<_> = state.effects().map(|(name, former)| (name.clone(), former)).collect();
    let Some((name, former)) = dice.pick(&effects) else { return Command::Tick };
    let mut former = OwnerClaim { node: former.node, term: former.term };
    if dice.once_in(8) {
        former.term = ChannelTerm(former.term.0 + 1);
    }
    Command::EffectDone { channel: name, former }
}

fn freeze(dice: &mut Dice) -> Command {
    let name = worker(&format!("w{}", dice.below(7)));
    if dice.once_in(3) { Command::Freeze { name } } else { Command::Thaw { name } }
}

fn cleaner(dice: &mut Dice) -> Command {
    let name = worker(&format!("cleaner{}", dice.below(3)));
    if dice.once_in(2) {
        Command::RegisterCleaner { name }
    } else {
        Command::DeregisterCleaner { name }
    }
}

fn settings(state: &State, dice: &mut Dice) -> Command {
    let value = match dice.below(13) {
        0 => ("balance_moves_max", "1"),
        1 => ("balance_moves_max", "8"),
        2 => ("ttl_ms", "5000"),
        3 => ("watch_timeout_ms", "2000"),
        4 => ("cooldown_base_ms", "0"),
        5 => ("cooldown_base_ms", "1000"),
        6 => ("margin_ms", "999999"),
        7 => return Command::SetLevel { level: state.level() + 1 },
        8 => ("channel_assign_policy", "average"),
        9 => ("channel_assign_policy", "balanced"),
        10 => ("channel_balance_policy", "upside_down"),
        _ => return Command::Tick,
    };
    let values = BTreeMap::from([(text(value.0), text(value.1))]);
    Command::SetPolicy { values }
}
