//! What a worker's stream is sent: the whole set once, differences afterwards, nothing when nothing
//! differs.

use proto::v1;
use state::channel::PhaseKind;
use state::command::Command;
use state::decision::{Action, Basis, Cause, Decision, Guard, Move};
use state::directives_for;

use super::samples::{TERM, accept, led, register, watch};
use crate::api::outbox::Outbox;

#[test]
fn full_once_then_differences() {
    let mut state = led();
    let node = register(&mut state, 1, "a");
    let mut outbox = Outbox::default();
    let update = |outbox: &mut Outbox, state: &state::State| {
        outbox.update(state.revision(), &directives_for(state, node.node))
    };
    let first = update(&mut outbox, &state);
    assert!(matches!(&first[..], [v1::Directives { full: true, last_chunk: true, set, .. }]
        if set.is_empty()));
    assert!(update(&mut outbox, &state).is_empty());

    let channel = watch(&mut state, 2, "c");
    let term = state.channel(&channel).unwrap().term;
    let place = Move {
        channel: channel.clone(),
        guard: Guard { term, phase: PhaseKind::Buffered },
        action: Action::Assign { to: node },
        cause: Cause::Unassigned,
    };
    let basis = Basis { term: TERM, revision: state.revision() };
    accept(
        &mut state,
        5_000,
        Command::Place(Decision { basis, moves: vec![place], atomic: false }),
    );
    let placed = update(&mut outbox, &state);
    assert!(matches!(&placed[..], [v1::Directives { full: false, set, gone, .. }]
        if set.len() == 1 && gone.is_empty()));

    accept(&mut state, 6_000, Command::RemoveChannel { channel });
    let removed = update(&mut outbox, &state);
    assert!(matches!(&removed[..], [v1::Directives { full: false, set, gone, .. }]
        if set.is_empty() && gone == &vec![String::from("c")]));
}
