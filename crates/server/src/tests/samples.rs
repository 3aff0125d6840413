//! Small states made through `apply`, as any history would make them.

use std::collections::BTreeMap;

use state::channel::{ChannelSpec, PhaseKind};
use state::command::{Command, Request};
use state::decision::{Action, Basis, Cause, Decision, Guard, Move};
use state::epoch::{Term, Timestamp};
use state::event::Event;
use state::ids::{Address, ChannelName, CollectionId, Incarnation, MemberId, NodeName, Text};
use state::node::{NodeRef, Registration, Role};
use state::outcome::Outcome;
use state::{Context, State};

pub(crate) const TERM: Term = Term(1);

/// A state that a leader of term 1 has begun to use.
pub(crate) fn led() -> State {
    let mut state = State::new(0);
    accept(&mut state, 1, Command::LeaderStart { term: TERM, member: MemberId(1) });
    state
}

pub(crate) fn apply(state: &mut State, now_ms: u64, command: Command) -> Outcome {
    apply_in(state, TERM.0, now_ms, command)
}

/// Applies an entry of this Raft term.
pub(crate) fn apply_in(state: &mut State, term: u64, now_ms: u64, command: Command) -> Outcome {
    let request = Request { actor: Text::cut("test"), retry: None, command };
    state.apply(&Context { term: Term(term), now: Timestamp(now_ms) }, &request)
}

/// A leader of this term takes over.
pub(crate) fn lead(state: &mut State, now_ms: u64, term: u64) {
    let start = Command::LeaderStart { term: Term(term), member: MemberId(1) };
    let outcome = apply_in(state, term, now_ms, start);
    assert!(matches!(outcome, Outcome::Accepted(_)), "{outcome}");
}

/// Gives a buffered channel to a node.
pub(crate) fn place(state: &mut State, now_ms: u64, channel: &ChannelName, to: NodeRef) {
    let guard = Guard { term: state.channel(channel).unwrap().term, phase: PhaseKind::Buffered };
    let action = Action::Assign { to };
    let chosen = Move { channel: channel.clone(), guard, action, cause: Cause::Unassigned };
    let basis = Basis { term: state.leader().term, revision: state.revision() };
    let decision = Decision { basis, moves: vec![chosen], atomic: false };
    let outcome = apply_in(state, basis.term.0, now_ms, Command::Place(decision));
    assert!(matches!(outcome, Outcome::Accepted(_)), "{outcome}");
}

pub(crate) fn accept(state: &mut State, now_ms: u64, command: Command) -> Vec<Event> {
    match apply(state, now_ms, command) {
        Outcome::Accepted(receipt) => receipt.record.events.clone(),
        other => panic!("not accepted: {other:?}"),
    }
}

/// Registers a data worker.
pub(crate) fn register(state: &mut State, now_ms: u64, name: &str) -> NodeRef {
    let registration = Registration {
        name: NodeName::new(name).unwrap(),
        address: Address::new(&format!("{name}:1")).unwrap(),
        role: Role::Data,
        version: Text::cut("1"),
        labels: BTreeMap::new(),
        incarnation: Incarnation::new("i1").unwrap(),
    };
    accept(state, now_ms, Command::RegisterSession(registration))
        .iter()
        .find_map(|event| match event {
            Event::NodeCameUp { node, .. } => Some(*node),
            _ => None,
        })
        .unwrap()
}

/// A channel of collection 1.
pub(crate) fn spec(name: &str) -> ChannelSpec {
    ChannelSpec {
        name: ChannelName::new(name).unwrap(),
        collection: CollectionId(1),
        pchannel: Text::cut("p"),
        positions: Vec::new(),
        schema_ref: Text::cut(""),
    }
}

/// Announces a channel.
pub(crate) fn watch(state: &mut State, now_ms: u64, name: &str) -> ChannelName {
    let spec = spec(name);
    let channel = spec.name.clone();
    accept(state, now_ms, Command::WatchChannels(vec![spec]));
    channel
}
