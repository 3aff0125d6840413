//! Bounds: what exceeds one is refused with the number that is allowed, and nothing changes.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use super::build::{accept, apply, at, channel, registration, request, spec, text};
use crate::channel::PhaseKind;
use crate::check;
use crate::command::{Command, OwnerClaim, Request, Retry};
use crate::decision::{Action, Basis, Cause, Decision, Guard, Move};
use crate::epoch::{ChannelTerm, NodeEpoch, Revision, Term, Timestamp};
use crate::ids::{MemberId, NodeId, RequestId};
use crate::limits;
use crate::node::NodeRef;
use crate::outcome::{Facts, Outcome, Refusal, Rejection};
use crate::state::State;

fn refused(state: &mut State, command: Command) -> (&'static str, u64) {
    match apply(state, 0, command) {
        Outcome::Rejected(Rejection::Limit { what, max, .. }) => (what, max),
        outcome => panic!("{outcome}"),
    }
}

fn number(value: usize) -> u64 {
    u64::try_from(value).unwrap()
}

#[test]
fn lists_and_bytes_of_a_command_are_bounded() {
    let mut state = State::new(0);
    let node = NodeRef { node: NodeId(1), epoch: NodeEpoch(1) };
    let claim = OwnerClaim { node, term: ChannelTerm(1) };

    let specs = (0..=limits::WATCH_CHANNELS_MAX).map(|place| spec(&format!("c{place}"))).collect();
    let max = number(limits::WATCH_CHANNELS_MAX);
    assert_eq!(
        refused(&mut state, Command::WatchChannels(specs)),
        ("channels in one command", max)
    );

    let mut large = spec("c");
    large.positions = vec![0; limits::POSITIONS_BYTES_MAX + 1];
    let max = number(limits::POSITIONS_BYTES_MAX);
    let positions = large.positions.clone();
    assert_eq!(refused(&mut state, Command::WatchChannels(vec![large])), ("positions", max));
    let commit = Command::CommitMeta { channel: channel("c"), claim, positions };
    assert_eq!(refused(&mut state, commit), ("positions", max));

    let mut labelled = registration("w");
    let label = |place| (text(&format!("{place}")), text(""));
    labelled.labels = (0..=limits::LABELS_MAX).map(label).collect();
    let max = number(limits::LABELS_MAX);
    assert_eq!(refused(&mut state, Command::RegisterSession(labelled)), ("labels", max));

    let silent = vec![(node, 1); limits::OBSERVED_MAX + 1];
    let observed =
        Command::SessionsObserved { leader_term: Term(0), seq: 1, silent, renewed: vec![] };
    let max = number(limits::OBSERVED_MAX);
    assert_eq!(refused(&mut state, observed), ("silent sessions", max));

    let setting = |place| (text(&format!("s{place}")), text("1"));
    let values: BTreeMap<_, _> = (0..=limits::SETTINGS_MAX).map(setting).collect();
    let max = number(limits::SETTINGS_MAX);
    assert_eq!(
        refused(&mut state, Command::SetPolicy { values }),
        ("settings in one command", max)
    );

    let one = assign("c", ChannelTerm(1), node);
    let basis = Basis { term: Term(1), revision: Revision(0) };
    let moves = vec![one; limits::MOVES_MAX + 1];
    let place = Command::Place(Decision { basis, moves, atomic: false });
    assert_eq!(refused(&mut state, place), ("moves", number(limits::MOVES_MAX)));

    assert_eq!(state.revision().count(), 0);
    assert!(check(&state).is_empty());
}

fn assign(name: &str, term: ChannelTerm, to: NodeRef) -> Move {
    let guard = Guard { term, phase: PhaseKind::Buffered };
    let action = Action::Assign { to };
    Move { channel: channel(name), guard, action, cause: Cause::Unassigned }
}

#[test]
fn nodes_are_bounded() {
    let mut state = State::new(0);
    for place in 0..limits::NODES_MAX {
        accept(&mut state, 0, Command::RegisterSession(registration(&format!("w{place}"))));
    }
    let one_more = Command::RegisterSession(registration("one more"));
    assert_eq!(refused(&mut state, one_more), ("nodes", number(limits::NODES_MAX)));
    // The session that is there already is still answered.
    let known = apply(&mut state, 0, Command::RegisterSession(registration("w0")));
    assert!(matches!(known, Outcome::NoChange(Facts::Session(_))), "{known}");
}

/// The list of removed channels keeps the newest; those that wait for clean-up are beside it.
#[test]
fn removed_channels_are_bounded() {
    let mut state = State::new(0);
    accept(&mut state, 0, Command::LeaderStart { term: Term(1), member: MemberId(1) });
    accept(&mut state, 0, Command::RegisterSession(registration("w")));
    let node = NodeRef { node: NodeId(1), epoch: NodeEpoch(2) };
    accept(&mut state, 0, Command::WatchChannels(vec![spec("waiting")]));
    let basis = Basis { term: Term(1), revision: Revision(3) };
    let moves = vec![assign("waiting", ChannelTerm(3), node)];
    accept(&mut state, 0, Command::Place(Decision { basis, moves, atomic: false }));
    accept(&mut state, 0, Command::RemoveChannel { channel: channel("waiting") });
    let names: Vec<_> = (0..limits::DROPS_MAX + 2).map(|place| format!("c{place:05}")).collect();
    let specs = names.iter().map(|name| spec(name)).collect();
    accept(&mut state, 0, Command::WatchChannels(specs));
    for name in &names {
        accept(&mut state, 0, Command::RemoveChannel { channel: channel(name) });
    }
    assert_eq!(state.drops().count(), limits::DROPS_MAX + 1);
    assert!(state.dropped(&channel("c00000")).is_none());
    assert!(state.dropped(&channel("c00001")).is_none());
    assert!(state.dropped(&channel("c00002")).is_some());
    assert!(state.dropped(&channel("waiting")).is_some());
    // Cleaned up, it is the oldest of all and goes.
    let former = OwnerClaim { node, term: ChannelTerm(4) };
    accept(&mut state, 0, Command::EffectDone { channel: channel("waiting"), former });
    assert!(state.dropped(&channel("waiting")).is_none());
    assert!(check(&state).is_empty());
}

/// A channel whose owners pile up uncleaned gets no further owner.
#[test]
fn former_owners_are_bounded() {
    let mut state = State::new(0);
    accept(&mut state, 0, Command::LeaderStart { term: Term(1), member: MemberId(1) });
    accept(&mut state, 0, Command::WatchChannels(vec![spec("c")]));
    let basis = Basis { term: Term(1), revision: Revision(0) };
    let place = |state: &mut State, number: u64| {
        let mut again = registration("w");
        again.incarnation = crate::ids::Incarnation::new(&format!("{number}")).unwrap();
        accept(state, 0, Command::RegisterSession(again));
        let node = state.nodes().last().unwrap().node_ref();
        let term = state.channel(&channel("c")).unwrap().term;
        let moves = vec![assign("c", term, node)];
        apply(state, 0, Command::Place(Decision { basis, moves, atomic: false }))
    };
    for number in 0..number(limits::FORMER_OWNERS_MAX) {
        let placed = place(&mut state, number);
        assert!(matches!(placed, Outcome::Accepted(_)), "{placed}");
    }
    let Outcome::NoChange(Facts::AllRefused(refused)) = place(&mut state, 1_000) else {
        panic!("placed once too often");
    };
    assert_eq!(refused[0].refusal, Refusal::Capacity);
    assert!(check(&state).is_empty());
}

/// An unexpired outcome is never evicted: the next request is refused until one is too old.
#[test]
fn remembered_requests_are_bounded() {
    let mut state = State::new(0);
    let asked = |state: &mut State, now: u64, number: usize| {
        let id = u128::try_from(number).unwrap().to_le_bytes();
        let value = text(&format!("{}", 10_000 + number));
        let values = BTreeMap::from([(text("ttl_ms"), value)]);
        let retry = Retry { request_id: RequestId(id), issued_at: Timestamp(now) };
        let command = Command::SetPolicy { values };
        let request = Request { retry: Some(retry), ..request(command) };
        state.apply(&at(1, now), &request)
    };
    let last = limits::REQUESTS_MAX;
    for number in 0..last {
        // The first is the oldest.
        let accepted = asked(&mut state, if number == 0 { 0 } else { 1 }, 1 + number);
        assert!(matches!(accepted, Outcome::Accepted(_)), "{accepted}");
    }
    let full = asked(&mut state, limits::REQUEST_AGE_MS_MAX, last + 1);
    assert!(matches!(full, Outcome::Rejected(Rejection::Limit { .. })), "{full}");
    let repeated = asked(&mut state, limits::REQUEST_AGE_MS_MAX, 1);
    assert!(matches!(repeated, Outcome::NoChange(Facts::Repeated(_))), "{repeated}");
    let room = asked(&mut state, limits::REQUEST_AGE_MS_MAX + 1, last + 1);
    assert!(matches!(room, Outcome::Accepted(_)), "{room}");
    assert_eq!(state.requests().count(), last);
}

/// No revision is handed out twice: after the last one nothing is accepted any more.
#[test]
fn revisions_end() {
    let mut state = State::new(0);
    let mut scalars = state.scalars().clone();
    scalars.revision = Revision((1 << 48) - 2);
    state = State::from_tables(scalars, state.witness(), state.to_tables());
    accept(&mut state, 0, Command::WatchChannels(vec![spec("last")]));
    assert_eq!(refused(&mut state, Command::WatchChannels(vec![spec("none")])).0, "revision");
}
