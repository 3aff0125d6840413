//! What a cleaner is told of a state, and what a leader completes by itself.

use state::channel::{FormerOwner, PhaseKind};
use state::command::{Command, OwnerClaim};
use state::decision::{Action, Basis, Cause, Decision, Guard, Move};
use state::epoch::ChannelTerm;
use state::ids::{ChannelName, NodeName};
use state::node::NodeRef;
use state::{State, level};

use super::samples::{TERM, accept, led, register, watch};
use crate::api::cleaners::{Difference, Told};
use crate::leader::effects::at_once;

/// A channel that this node had when its session ended.
fn lost(state: &mut State, name: &str, now_ms: u64) -> (ChannelName, FormerOwner) {
    let node: NodeRef = register(state, now_ms, &format!("w-{name}"));
    let channel = watch(state, now_ms, name);
    let guard = Guard { term: state.channel(&channel).unwrap().term, phase: PhaseKind::Buffered };
    let action = Action::Assign { to: node };
    let place = Move { channel: channel.clone(), guard, action, cause: Cause::Unassigned };
    let basis = Basis { term: TERM, revision: state.revision() };
    accept(state, now_ms, Command::Place(Decision { basis, moves: vec![place], atomic: false }));
    let term: ChannelTerm = state.channel(&channel).unwrap().term;
    accept(state, now_ms, Command::Revoke { node });
    (channel, FormerOwner { node, term })
}

fn done((channel, former): &(ChannelName, FormerOwner)) -> Command {
    let former = OwnerClaim { node: former.node, term: former.term };
    Command::EffectDone { channel: channel.clone(), former }
}

#[test]
fn a_cleaner_is_told_what_waits_and_then_what_changed() {
    let mut state = led();
    let (first, second) = (lost(&mut state, "a", 1), lost(&mut state, "b", 2));
    let mut told = Told::default();
    let found = told.update(&state);
    assert_eq!(found.added, [first.clone(), second.clone()]);
    assert_eq!(told.update(&state), Difference::default());
    accept(&mut state, 3, done(&first));
    let third = lost(&mut state, "c", 4);
    let found = told.update(&state);
    assert_eq!((found.added, found.gone), (vec![third], vec![first]));
    assert_eq!(Told::default().update(&state).added.len(), 2, "a new stream is told everything");
}

#[test]
fn a_leader_completes_nothing_while_a_cleaner_is_registered() {
    let mut state = led();
    let lost = lost(&mut state, "a", 1);
    assert_eq!(at_once(&state), [done(&lost)]);
    accept(&mut state, 2, Command::SetLevel { level: level::CLEANERS });
    let name = NodeName::new("k").unwrap();
    accept(&mut state, 2, Command::RegisterCleaner { name: name.clone() });
    assert_eq!(at_once(&state), []);
    accept(&mut state, 3, Command::DeregisterCleaner { name });
    assert_eq!(at_once(&state), [done(&lost)]);
}
