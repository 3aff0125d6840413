//! Which acknowledgements a leader may answer from its own view, and which only the log can judge.

use proto::v1::Verdict;
use state::channel::{AckResult, PhaseKind};
use state::command::{Command, NodeAck};
use state::decision::{Action, Basis, Cause, Decision, Guard, Move};
use state::epoch::{ChannelTerm, Op};
use state::ids::Text;

use super::samples::{TERM, accept, led, register, watch};
use crate::api::session::settled;

#[test]
fn only_what_this_view_must_know_is_called_stale() {
    let mut state = led();
    let node = register(&mut state, 1, "a");
    let channel = watch(&mut state, 2, "c");
    let guard = Guard { term: state.channel(&channel).unwrap().term, phase: PhaseKind::Buffered };
    let place = Move {
        channel: channel.clone(),
        guard,
        action: Action::Assign { to: node },
        cause: Cause::Unassigned,
    };
    let basis = Basis { term: TERM, revision: state.revision() };
    let place = Decision { basis, moves: vec![place], atomic: false };
    accept(&mut state, 5_000, Command::Place(place));
    let placed = state.channel(&channel).unwrap();
    let ack = NodeAck {
        node,
        channel: channel.clone(),
        term: placed.term,
        op: placed.phase.op().unwrap(),
        result: AckResult::Ok,
        reason: Text::cut(""),
    };
    assert_eq!(settled(&state, &ack), None, "in force: the log judges");
    let old = NodeAck { term: ChannelTerm(guard.term.0), op: Op(guard.term.0), ..ack.clone() };
    assert_eq!(settled(&state, &old), Some(Verdict::Stale));
    // A directive of a newer leader: a deposed one has not heard of it and must not deny it.
    let next = state.revision().0 + 1;
    let newer = NodeAck { term: ChannelTerm(next), op: Op(next), ..ack.clone() };
    assert_eq!(settled(&state, &newer), None);
    accept(&mut state, 6_000, Command::NodeAck(ack.clone()));
    assert_eq!(settled(&state, &ack), Some(Verdict::Recorded));
}
