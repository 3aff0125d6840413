//! Tests of the tests: a replica with a fault must differ, in the hash that is there to show it.

use alloc::vec::Vec;

use super::build::{accept, channel, registration, spec};
use super::poison::Poison;
use crate::channel::PhaseKind;
use crate::check;
use crate::command::Command;
use crate::decision::{Action, Basis, Cause, Decision, Guard, Move};
use crate::epoch::{NodeEpoch, Revision, Term};
use crate::ids::{MemberId, NodeId};
use crate::node::NodeRef;
use crate::state::State;

fn history() -> Vec<Command> {
    let to = NodeRef { node: NodeId(1), epoch: NodeEpoch(2) };
    let assign = |name: &str| Move {
        channel: channel(name),
        guard: Guard { term: crate::epoch::ChannelTerm(3), phase: PhaseKind::Buffered },
        action: Action::Assign { to },
        cause: Cause::Unassigned,
    };
    let basis = Basis { term: Term(1), revision: Revision(3) };
    Vec::from([
        Command::LeaderStart { term: Term(1), member: MemberId(1) },
        Command::RegisterSession(registration("a")),
        Command::WatchChannels(Vec::from([spec("x"), spec("y")])),
        Command::Place(Decision {
            basis,
            moves: Vec::from([assign("x"), assign("y")]),
            atomic: true,
        }),
        Command::Revoke { node: to },
    ])
}

fn run(poison: Poison) -> State {
    let mut state = State::new(0);
    state.poison = poison;
    history().into_iter().for_each(|command| accept(&mut state, 10, command));
    state
}

#[test]
fn a_replica_that_drops_an_event_differs_by_digest() {
    let (sound, faulty) = (run(Poison::None), run(Poison::Drop("NodeWentDown")));
    assert!(check(&sound).is_empty(), "{:?}", check(&sound));
    assert_ne!(sound.digest(), faulty.digest());
    assert_eq!(sound.witness(), faulty.witness(), "the same was decided");
}

#[test]
fn a_replica_that_sorts_differently_differs_by_witness() {
    let (sound, faulty) = (run(Poison::None), run(Poison::SortBackwards));
    assert_ne!(sound.witness(), faulty.witness());
    assert_eq!(sound.digest(), faulty.digest(), "the result is the same");
}
