//! Small states made through `apply`, as any history would make them.

use std::collections::BTreeMap;

use state::channel::ChannelSpec;
use state::command::{Command, Request};
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
    let request = Request { actor: Text::cut("test"), retry: None, command };
    state.apply(&Context { term: TERM, now: Timestamp(now_ms) }, &request)
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
