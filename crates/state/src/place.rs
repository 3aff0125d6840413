//! Handler of Place: judges what the planner chose, move by move, against the state as the moves
//! before left it (fences F1 to F6). Chooses nothing.

use alloc::vec::Vec;

use crate::apply::{Handled, Tx, Verdict};
use crate::channel::{Channel, Phase, PlacedBy, ReleaseCause};
use crate::decision::{Action, Basis, Cause, Decision, Move};
use crate::epoch::{ChannelTerm, Op};
use crate::event::Event;
use crate::limits;
use crate::node::NodeRef;
use crate::outcome::{Facts, Refusal, RefusedMove, Rejection, limit_len};
use crate::state::{NotCandidate, State};

pub(crate) fn place(tx: &mut Tx<'_>, decision: &Decision) -> Handled {
    limit_len("moves", decision.moves.len(), limits::MOVES_MAX)?;
    check_basis(tx, decision.basis)?;
    if decision.atomic
        && let Some(refused) = try_all(tx, decision)
    {
        return Ok(Verdict::NoChange(Facts::AllRefused(refused)));
    }
    let refused = take(tx, decision);
    if tx.is_empty() {
        return Ok(Verdict::NoChange(Facts::AllRefused(refused)));
    }
    Ok(Verdict::DoneExcept(refused))
}

fn check_basis(tx: &Tx<'_>, basis: Basis) -> Result<(), Rejection> {
    // F1: of a leader that was deposed between planning and this entry.
    if basis.term != tx.term() {
        return Err(Rejection::StaleTerm { named: basis.term, current: tx.term() });
    }
    // F2: of a state that this history does not have.
    let current = tx.state().revision();
    if basis.revision > current {
        return Err(Rejection::FutureBasis { named: basis.revision, current });
    }
    Ok(())
}

/// Takes all moves on a copy, which costs next to nothing; if one is refused, none may be taken.
fn try_all(tx: &Tx<'_>, decision: &Decision) -> Option<Vec<RefusedMove>> {
    let mut copy = tx.state().clone();
    let mut trial = tx.on(&mut copy);
    let refused = take(&mut trial, decision);
    if refused.is_empty() {
        return None;
    }
    let mut refused = refused.into_iter().peekable();
    let explain = |chosen: &Move| {
        let own = refused.next_if(|refused| refused.chosen == *chosen);
        own.unwrap_or_else(|| RefusedMove { chosen: chosen.clone(), refusal: Refusal::Atomic })
    };
    Some(decision.moves.iter().map(explain).collect())
}

/// Takes each move that holds; returns the others.
fn take(tx: &mut Tx<'_>, decision: &Decision) -> Vec<RefusedMove> {
    let mut refused = Vec::new();
    for chosen in &decision.moves {
        match judge(tx, decision.basis, chosen) {
            Ok(event) => tx.emit(event),
            Err(refusal) => refused.push(RefusedMove { chosen: chosen.clone(), refusal }),
        }
    }
    refused
}

fn judge(tx: &Tx<'_>, basis: Basis, chosen: &Move) -> Result<Event, Refusal> {
    let state = tx.state();
    // F5: the channel is gone; a later one of the same name has another term.
    let channel = state.channel(&chosen.channel).ok_or(Refusal::Gone)?;
    if channel.dropping() {
        return Err(Refusal::Dropping);
    }
    // F3: acknowledged, lost, moved or released since.
    if (channel.term, channel.phase.kind()) != (chosen.guard.term, chosen.guard.phase) {
        return Err(Refusal::AssignmentChanged);
    }
    let name = chosen.channel.clone();
    let op = Op::at(tx.revision());
    match (chosen.action, &channel.phase) {
        (Action::Assign { to }, Phase::Buffered { .. }) => {
            check_target(state, channel, to)?;
            if channel.former_owners.len() >= limits::FORMER_OWNERS_MAX {
                return Err(Refusal::Capacity);
            }
            let placed_by =
                PlacedBy { revision: tx.revision(), basis: basis.revision, cause: chosen.cause };
            let term = ChannelTerm::at(tx.revision());
            Ok(Event::ChannelPlaced { channel: name, to, term, op, placed_by })
        }
        (Action::Move { from, to }, Phase::Watched { owner, .. }) if *owner == from => {
            if from.node == to.node {
                return Err(Refusal::NodeChanged);
            }
            check_target(state, channel, to)?;
            check_capacity(state)?;
            let (cause, planned) = (release_cause(chosen.cause), Some(to));
            Ok(Event::ReleaseStarted { channel: name, op, cause, planned, done: None })
        }
        (Action::Release { from }, Phase::Watched { owner, .. }) if *owner == from => {
            check_capacity(state)?;
            let cause = release_cause(chosen.cause);
            Ok(Event::ReleaseStarted { channel: name, op, cause, planned: None, done: None })
        }
        _ => Err(Refusal::AssignmentChanged),
    }
}

/// F4: exactly the session the planner saw, and still one that may get the channel.
fn check_target(state: &State, channel: &Channel, to: NodeRef) -> Result<(), Refusal> {
    let node = state.live(to).ok_or(Refusal::NodeChanged)?;
    state.is_candidate(channel, node, state.now()).map_err(|reason| match reason {
        NotCandidate::NotUp | NotCandidate::WrongRole | NotCandidate::Frozen => {
            Refusal::NodeChanged
        }
        NotCandidate::CoolingDown { .. } => Refusal::CoolingDown,
    })
}

/// F6: each move is good alone, but together with those before it there are too many.
fn check_capacity(state: &State) -> Result<(), Refusal> {
    if state.moving() < state.policy().balance_moves_max { Ok(()) } else { Err(Refusal::Capacity) }
}

/// Whatever the planner says that is not drain counts as balance: no cause evades the limit of
/// moves.
const fn release_cause(cause: Cause) -> ReleaseCause {
    match cause {
        Cause::Drain => ReleaseCause::Drain,
        Cause::Unassigned | Cause::Planned | Cause::GivenBack | Cause::Balance => {
            ReleaseCause::Balance
        }
    }
}
