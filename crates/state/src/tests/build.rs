//! Short ways to write names, specs and requests in tests.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::Context;
use crate::channel::ChannelSpec;
use crate::command::{Command, Request};
use crate::epoch::{Term, Timestamp};
use crate::ids::{Address, ChannelName, CollectionId, Incarnation, NodeName, Text};
use crate::node::{Registration, Role};
use crate::outcome::Outcome;
use crate::state::State;

pub(crate) fn text(text: &str) -> Text {
    Text::new(text).unwrap()
}

pub(crate) fn channel(name: &str) -> ChannelName {
    ChannelName::new(name).unwrap()
}

pub(crate) fn worker(name: &str) -> NodeName {
    NodeName::new(name).unwrap()
}

pub(crate) fn spec(name: &str) -> ChannelSpec {
    ChannelSpec {
        name: channel(name),
        collection: CollectionId(1),
        pchannel: text("p"),
        positions: Vec::from(*b"0"),
        schema_ref: text("s"),
    }
}

pub(crate) fn registration(name: &str) -> Registration {
    Registration {
        name: worker(name),
        address: Address::new(name).unwrap(),
        role: Role::Data,
        version: text("1"),
        labels: BTreeMap::new(),
        incarnation: Incarnation::new("i1").unwrap(),
    }
}

pub(crate) fn request(command: Command) -> Request {
    Request { actor: text("test"), retry: None, command }
}

pub(crate) fn at(term: u64, now: u64) -> Context {
    Context { term: Term(term), now: Timestamp(now) }
}

pub(crate) fn apply(state: &mut State, now: u64, command: Command) -> Outcome {
    state.apply(&at(1, now), &request(command))
}

/// The same, and it must be accepted.
pub(crate) fn accept(state: &mut State, now: u64, command: Command) {
    let outcome = apply(state, now, command);
    assert!(matches!(outcome, Outcome::Accepted(_)), "{outcome}");
}
