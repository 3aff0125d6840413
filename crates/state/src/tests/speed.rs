//! How long things take, printed. The bounds are wide: they catch what is quadratic, not what is
//! slow.

#![expect(clippy::disallowed_types, reason = "only this file measures, and only in tests")]

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use std::println;
use std::time::Instant;

use super::build::{accept, apply, at, channel, registration, request, spec};
use super::properties::{restore, sections};
use crate::channel::{AckResult, ChannelSpec, PhaseKind};
use crate::codec;
use crate::command::{Command, NodeAck, Request};
use crate::decision::{Action, Basis, Cause, Decision, Guard, Move};
use crate::epoch::{ChannelTerm, NodeEpoch, Op, Term};
use crate::ids::{ChannelName, MemberId, NodeId, Text};
use crate::node::NodeRef;
use crate::outcome::Outcome;
use crate::state::State;

/// Far above what any step takes on a slow machine, far below what a quadratic one would.
const SECONDS_MAX: u64 = 20;

fn timed<T>(what: &str, count: usize, work: impl FnOnce() -> T) -> T {
    let begin = Instant::now();
    let result = work();
    let took = begin.elapsed();
    let each = took.as_nanos() / u128::try_from(count).unwrap();
    println!("{what}: {took:?}, {each} ns each");
    assert!(took.as_secs() < SECONDS_MAX, "{what} took {took:?}");
    result
}

fn names(count: usize) -> Vec<ChannelName> {
    (0..count).map(|place| channel(&format!("by-dev-rootcoord-dml_{place:06}_v0"))).collect()
}

fn placed(state: &mut State, names: &[ChannelName], node: NodeRef) -> Command {
    let one = |name: &ChannelName| Move {
        channel: name.clone(),
        guard: Guard { term: state.channel(name).unwrap().term, phase: PhaseKind::Buffered },
        action: Action::Assign { to: node },
        cause: Cause::Unassigned,
    };
    let moves = names.iter().map(one).collect();
    let basis = Basis { term: Term(1), revision: state.revision() };
    Command::Place(Decision { basis, moves, atomic: false })
}

fn started() -> (State, NodeRef) {
    let mut state = State::new(0);
    accept(&mut state, 0, Command::LeaderStart { term: Term(1), member: MemberId(1) });
    accept(&mut state, 0, Command::RegisterSession(registration("w")));
    (state, NodeRef { node: NodeId(1), epoch: NodeEpoch(2) })
}

#[test]
fn ten_thousand_channels_in_one_command() {
    let (mut state, node) = started();
    let names = names(10_000);
    let specs: Vec<ChannelSpec> = names.iter().map(|name| spec(name.as_str())).collect();
    timed("WatchChannels of 10,000", names.len(), || {
        accept(&mut state, 0, Command::WatchChannels(specs));
    });
    let place = placed(&mut state, &names, node);
    timed("Place of 10,000", names.len(), || accept(&mut state, 0, place));
    timed("the end of a session with 10,000 channels", names.len(), || {
        accept(&mut state, 0, Command::Revoke { node });
    });
    assert_eq!(state.effects().count(), names.len());
}

#[test]
fn acknowledgements_in_batches() {
    let (mut state, node) = started();
    let names = names(100_000);
    for part in names.chunks(10_000) {
        let specs = part.iter().map(|name| spec(name.as_str())).collect();
        accept(&mut state, 0, Command::WatchChannels(specs));
        let place = placed(&mut state, part, node);
        accept(&mut state, 0, place);
    }
    let ack = |name: &ChannelName| {
        let term = state.channel(name).unwrap().term;
        let (channel, op) = (name.clone(), Op::at(term.revision()));
        let (result, reason) = (AckResult::Ok, Text::default());
        request(Command::NodeAck(NodeAck { node, channel, term, op, result, reason }))
    };
    let requests: Vec<Request> = names.iter().map(ack).collect();
    let batches: Vec<Vec<u8>> = timed("encode in batches of 100", names.len(), || {
        requests.chunks(100).map(codec::encode_batch).collect()
    });
    let decoded: Vec<Vec<Request>> = timed("decode", names.len(), || {
        batches.iter().map(|bytes| codec::decode_batch(bytes).unwrap()).collect()
    });
    let context = at(1, 0);
    timed("apply 100,000 NodeAck, published after each 100", names.len(), || {
        for batch in &decoded {
            for request in batch {
                let outcome = state.apply(&context, request);
                assert!(matches!(outcome, Outcome::Accepted(_)), "{outcome}");
            }
            // A reader keeps the state as it is now: the next batch must copy what it changes.
            core::hint::black_box(state.clone());
        }
    });
    timed("apply 100,000 NodeAck again, no change", names.len(), || {
        for request in &requests {
            state.apply(&context, request);
        }
    });
    assert_eq!(state.counts().watched, 100_000);
    let written = timed("write a snapshot", names.len(), || sections(&state));
    let bytes: usize = written.iter().map(|(_, bytes)| bytes.len()).sum();
    println!("snapshot: {bytes} bytes in {} sections", written.len());
    let restored = timed("restore it", names.len(), || restore(&written).unwrap());
    assert_eq!(restored.digest(), state.digest());
}

#[test]
fn a_node_that_cools_down_everywhere_leaves() {
    let (mut state, node) = started();
    let names = names(3_000);
    let specs = names.iter().map(|name| spec(name.as_str())).collect();
    accept(&mut state, 0, Command::WatchChannels(specs));
    let place = placed(&mut state, &names, node);
    accept(&mut state, 0, place);
    for name in &names {
        let (term, result) = (ChannelTerm(4), AckResult::FailedStopped);
        let (channel, op, reason) = (name.clone(), Op(4), Text::default());
        let ack = NodeAck { node, channel, term, op, result, reason };
        accept(&mut state, 0, Command::NodeAck(ack));
    }
    timed("the end of a session that cools down for 3,000 channels", names.len(), || {
        accept(&mut state, 0, Command::Revoke { node });
    });
    assert!(state.nodes().next().is_none());
    let outcome = apply(&mut state, 0, Command::WatchChannels(vec![]));
    assert!(matches!(outcome, Outcome::NoChange(_)));
}
