//! Each invariant has a state that breaks it: a check that can't fail proves nothing.

use alloc::format;
use alloc::vec::Vec;

use super::build::{accept, channel, registration, spec};
use crate::channel::{FormerOwner, Phase, PhaseKind};
use crate::check;
use crate::command::Command;
use crate::decision::{Action, Basis, Cause, Decision, Guard, Move};
use crate::digest::Sum;
use crate::epoch::{ChannelTerm, NodeEpoch, Revision, Term, Timestamp};
use crate::ids::{MemberId, NodeId};
use crate::limits;
use crate::node::{NodeRef, NodeStatus};
use crate::snapshot;
use crate::state::{Scalars, State, Tables};

const NODE: NodeRef = NodeRef { node: NodeId(1), epoch: NodeEpoch(2) };

/// One node; `a` told to watch, `b` told to release, `c` and `d` without owner.
fn sound() -> State {
    let mut state = State::new(0);
    let term = Term(1);
    accept(&mut state, 5, Command::LeaderStart { term, member: MemberId(1) });
    accept(&mut state, 5, Command::RegisterSession(registration("w")));
    let specs = ["a", "b", "c", "d"].map(spec);
    accept(&mut state, 5, Command::WatchChannels(Vec::from(specs)));
    let assign = |name: &str| Move {
        channel: channel(name),
        guard: Guard { term: ChannelTerm(3), phase: PhaseKind::Buffered },
        action: Action::Assign { to: NODE },
        cause: Cause::Unassigned,
    };
    let basis = Basis { term, revision: Revision(3) };
    let moves = Vec::from([assign("a"), assign("b")]);
    accept(&mut state, 5, Command::Place(Decision { basis, moves, atomic: false }));
    accept(&mut state, 5, Command::Release { channel: channel("b"), term: ChannelTerm(4) });
    state
}

/// What is found after `change` of the records.
fn found(change: impl FnOnce(&mut Tables, &mut Scalars)) -> Vec<&'static str> {
    let state = sound();
    let (mut tables, mut scalars) = (state.to_tables(), state.scalars().clone());
    change(&mut tables, &mut scalars);
    names(&State::from_tables(scalars, state.witness(), tables))
}

fn found_derived(change: impl FnOnce(&mut State)) -> Vec<&'static str> {
    let mut state = sound();
    change(&mut state);
    names(&state)
}

fn names(state: &State) -> Vec<&'static str> {
    check(state).into_iter().map(|violation| violation.invariant).collect()
}

#[test]
fn a_sound_state_breaks_nothing() {
    assert_eq!(check(&sound()), []);
}

#[test]
fn channel_is_kept_under_its_name() {
    let found = found(|tables, _| tables.channels[3].0 = channel("e"));
    assert!(found.contains(&"channel_is_kept_under_its_name"), "{found:?}");
}

#[test]
fn owner_is_a_live_session() {
    let found = found(|tables, _| tables.nodes[0].1.status = NodeStatus::Down);
    assert!(found.contains(&"owner_is_a_live_session"), "{found:?}");
}

#[test]
fn owner_has_the_epoch_of_its_session() {
    let found = found(|tables, _| tables.nodes[0].1.epoch = NodeEpoch(1));
    assert!(found.contains(&"owner_is_a_live_session"), "{found:?}");
}

#[test]
fn numbers_are_not_ahead() {
    let ahead = found(|tables, _| tables.channels[2].1.term = ChannelTerm(99));
    assert_eq!(ahead, ["numbers_are_not_ahead"]);
    let ahead = found(|_, scalars| scalars.next_node = 1);
    assert_eq!(ahead, ["numbers_are_not_ahead"]);
}

#[test]
fn a_name_is_known_or_removed() {
    let found = found(|tables, _| {
        let dropped = crate::channel::Dropped {
            removed: Revision(3),
            last_term: ChannelTerm(3),
            former_owners: Vec::new(),
        };
        tables.drops.push((channel("a"), dropped));
    });
    assert_eq!(found, ["a_name_is_known_or_removed"]);
}

#[test]
fn dropping_is_only_while_released() {
    let found = found(|tables, _| {
        if let Phase::ToRelease { dropping, planned, .. } = &mut tables.channels[1].1.phase {
            (*dropping, *planned) = (true, Some(NODE));
        }
    });
    assert_eq!(found, ["dropping_is_only_while_released"]);
}

#[test]
fn deadline_goes_with_operation() {
    let found = found_derived(|state| {
        state.index_mut().watching.clear();
        state.index_mut().releasing.clear();
    });
    assert_eq!(found, ["deadline_goes_with_operation", "indexes_equal_recomputation"]);
}

#[test]
fn indexes_equal_recomputation() {
    let found = found_derived(|state| state.index_mut().moving = 9);
    assert_eq!(found, ["indexes_equal_recomputation"]);
}

#[test]
fn digest_equals_recomputation() {
    let found = found_derived(|state| *state.sum_mut() = Sum::default());
    assert_eq!(found, ["digest_equals_recomputation"]);
}

#[test]
fn former_owners_exist() {
    let gone = NodeRef { node: NodeId(9), epoch: NodeEpoch(1) };
    let former = FormerOwner { node: gone, term: ChannelTerm(1) };
    let found = found(|tables, _| tables.channels[2].1.former_owners.push(former));
    assert_eq!(found, ["former_owners_exist"]);
}

#[test]
fn every_channel_is_counted_once() {
    let found = found_derived(|state| state.index_mut().buffered.clear());
    assert_eq!(found, ["every_channel_is_counted_once", "indexes_equal_recomputation"]);
}

#[test]
fn times_are_not_ahead() {
    let found = found(|tables, _| tables.channels[2].1.placed_at = Timestamp(6));
    assert_eq!(found, ["times_are_not_ahead"]);
}

#[test]
fn one_live_session_per_worker() {
    let found = found(|tables, scalars| {
        let mut twin = tables.nodes[0].1.clone();
        twin.node = NodeId(2);
        tables.nodes.push((NodeId(2), twin));
        scalars.next_node = 3;
    });
    // Once by name, once by address.
    assert_eq!(found, ["one_live_session_per_worker"; 2]);
}

#[test]
fn down_sessions_are_kept_for_a_reason() {
    let down = found(|tables, scalars| {
        let mut old = tables.nodes[0].1.clone();
        (old.node, old.status) = (NodeId(2), NodeStatus::Down);
        tables.nodes.push((NodeId(2), old));
        scalars.next_node = 3;
    });
    assert_eq!(down, ["down_sessions_are_kept_for_a_reason"]);
    let cooling = found(|tables, _| {
        tables.channels[2].1.cooldowns.insert(NodeId(9), Timestamp(7));
    });
    assert_eq!(cooling, ["down_sessions_are_kept_for_a_reason"]);
}

#[test]
fn bounds_hold() {
    let found = found(|tables, _| {
        let count = u64::try_from(limits::FORMER_OWNERS_MAX).unwrap() + 1;
        // Terms that are as high as the channel's are another breach; what counts here is the
        // number.
        let former = |term| FormerOwner { node: NODE, term: ChannelTerm(term) };
        tables.channels[2].1.former_owners = (0..count).map(former).collect();
    });
    assert!(found.contains(&"bounds_hold"), "{found:?}");
}

#[test]
fn directives_cover_owned_channels() {
    let found = found_derived(|state| {
        if let Some(load) = state.index_mut().by_node.get_mut(&NODE.node) {
            load.channels.insert(channel("c"));
        }
    });
    assert!(found.contains(&"directives_cover_owned_channels"), "{found:?}");
}

/// what comes out of a snapshot was checked: an owner without a session is refused.
#[test]
fn a96_a_state_with_an_owner_that_has_no_session_is_not_restored() {
    let restored = |change: fn(&mut Tables)| {
        let state = sound();
        let mut tables = state.to_tables();
        change(&mut tables);
        let state = State::from_tables(state.scalars().clone(), state.witness(), tables);
        let mut restore = snapshot::Restore::new();
        let mut sections = Vec::new();
        let mut keep = |kind: u16, bytes: &[u8]| {
            sections.push((kind, Vec::from(bytes)));
            Ok::<(), snapshot::DigestMismatch>(())
        };
        snapshot::write(&state, &mut keep).unwrap();
        for (kind, bytes) in &sections {
            restore.section(*kind, bytes)?;
        }
        restore.finish().map(|state| state.revision())
    };
    assert!(restored(|_| ()).is_ok());
    let gone = restored(|tables| tables.nodes.clear()).unwrap_err();
    assert!(format!("{gone}").contains("owner_is_a_live_session"), "{gone}");
    let down = restored(|tables| tables.nodes[0].1.status = NodeStatus::Down).unwrap_err();
    assert!(format!("{down}").contains("owner_is_a_live_session"), "{down}");
}
