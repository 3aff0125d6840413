//! Golden bytes: what was ever written must decode, and encode to the same bytes again.
//! `UPDATE_EXPECT=1` adds files that are missing; it never changes one.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Write;
use std::path::PathBuf;
use std::{env, fs};

use serde::Serialize;

use super::build::{channel, spec, text};
use super::dice::Dice;
use super::properties::{entries, replay, restore, sections};
use super::samples::{command_place, commands, event_place, events, events_of_level_2};
use crate::channel::{AckResult, PhaseKind, ReleaseCause, UnassignCause};
use crate::codec;
use crate::command::{Command, Request, Retry};
use crate::decision::{Action, Cause};
use crate::epoch::{ChannelTerm, NodeEpoch, Op, Revision, Term, Timestamp};
use crate::event::{Event, EventRecord};
use crate::ids::{NodeId, RequestId};
use crate::node::{DownCause, NodeRef, NodeStatus, Role};
use crate::state::State;
use crate::{Directive, DirectiveKind, desired_digest};

/// The lines of a golden file; added if it is not there and that is asked for.
fn golden(name: &str, fresh: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden").join("v1");
    let path = folder.join(format!("{name}.hex"));
    if !path.exists() && env::var_os("UPDATE_EXPECT").is_some() {
        let text: String = fresh.iter().map(|bytes| hex(bytes) + "\n").collect();
        fs::write(&path, text).unwrap();
    }
    let text = fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; UPDATE_EXPECT=1 adds it", path.display()));
    text.lines().map(unhex).collect()
}

fn hex(bytes: &[u8]) -> String {
    let mut out = String::new();
    bytes.iter().for_each(|byte| write!(out, "{byte:02x}").unwrap());
    out
}

fn unhex(line: &str) -> Vec<u8> {
    let pairs = line.as_bytes().chunks(2).map(|pair| core::str::from_utf8(pair).unwrap());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

fn kind(command: &Command) -> String {
    let words = command.to_string();
    words.split(' ').next().unwrap_or_default().to_string()
}

#[test]
fn every_command_keeps_its_bytes() {
    for command in commands() {
        let retry =
            Retry { request_id: RequestId([0xab; 16]), issued_at: Timestamp(1_700_000_000_000) };
        let name = format!("command-{}", kind(&command));
        let request = Request { actor: text("operator"), retry: Some(retry), command };
        let plain = Request { retry: None, ..request.clone() };
        let requests = [request, plain];
        let bytes = codec::encode_batch(&requests);
        let kept = golden(&name, &[bytes]);
        let decoded = codec::decode_batch(&kept[0]).unwrap();
        assert_eq!(decoded, requests, "{name}");
        assert_eq!(codec::encode_batch(&decoded), kept[0], "{name}");
    }
}

#[test]
fn every_event_keeps_its_bytes() {
    let younger = events_of_level_2();
    let mut first = events();
    first.truncate(first.len() - younger.len());
    keeps_its_bytes("record", first);
    keeps_its_bytes("record-level-2", younger);
}

fn keeps_its_bytes(file: &str, events: Vec<Event>) {
    let record = EventRecord {
        revision: Revision(300),
        at: Timestamp(1_700_000_000_000),
        term: Term(3),
        caused_by: text("Tick"),
        actor: text("operator"),
        request_id: Some(RequestId([0xab; 16])),
        events,
    };
    let kept = golden(file, &[codec::encode_record(&record)]);
    let decoded = codec::decode_record(&kept[0]).unwrap();
    assert_eq!(decoded, record);
    assert_eq!(codec::encode_record(&decoded), kept[0]);
}

/// A snapshot written once must be restored by every later version of this program, and lead to the
/// digest and witness that it had: this holds the hash functions, too.
#[test]
fn a_snapshot_keeps_its_bytes() {
    let state = snapshot_keeps_its_bytes("snapshot", |_| true);
    assert!(state.choice_records().count() == 0 && state.cleaners().count() == 0);
}

/// The same with the tables that came with level 2.
#[test]
fn a_snapshot_of_level_2_keeps_its_bytes() {
    let full = |state: &State| {
        state.choice_records().count() > 0
            && state.cleaners().count() > 0
            && state.balanced_at().is_some()
    };
    assert!(full(&snapshot_keeps_its_bytes("snapshot-level-2", full)));
}

/// A state worth keeping: something in every table.
fn rich(state: &State) -> bool {
    state.channel_count() > 0
        && state.drops().count() > 0
        && state.effects().count() > 0
        && state.requests().count() > 0
        && state.frozen_names().count() > 0
}

fn snapshot_keeps_its_bytes(file: &str, wanted: impl Fn(&State) -> bool) -> State {
    let history = |seed| {
        let mut dice = Dice::new(seed);
        let seeds: Vec<u64> = (0..400).map(|_| dice.roll()).collect();
        replay(&entries(&seeds, false))
    };
    let fresh = (1..).map(history).find(|state| rich(state) && wanted(state)).unwrap();
    let line = |(kind, bytes): (u16, Vec<u8>)| [kind.to_le_bytes().as_slice(), &bytes].concat();
    let fresh: Vec<Vec<u8>> = sections(&fresh).into_iter().map(line).collect();
    let kept = golden(file, &fresh);
    let kept: Vec<(u16, Vec<u8>)> = kept
        .iter()
        .map(|line| (u16::from_le_bytes([line[0], line[1]]), line[2..].to_vec()))
        .collect();
    let state = restore(&kept).unwrap();
    assert!(crate::check(&state).is_empty());
    assert!(rich(&state));
    assert_eq!(sections(&state), kept);
    let hashes = [state.digest().0.to_vec(), state.witness().0.to_vec()];
    assert_eq!(golden(&format!("{file}-hashes"), &hashes), hashes);
    state
}

/// Workers in any language compute this digest themselves: it never changes.
#[test]
fn the_digest_of_a_desired_set_is_fixed() {
    let one = |name: &str, term, kind| Directive {
        channel: channel(name),
        term: ChannelTerm(term),
        op: Op(term + 1),
        kind,
        spec: Arc::new(spec(name)),
        committed: None,
    };
    let set = [one("a", 5, DirectiveKind::Watch), one("bc", 1 << 48, DirectiveKind::Release)];
    let digests = [desired_digest(&[]).to_vec(), desired_digest(&set).to_vec()];
    assert_eq!(golden("desired-digests", &digests), digests);
}

fn first_byte<T: Serialize>(value: &T) -> u8 {
    let mut bytes = Vec::new();
    codec::append(&mut bytes, value);
    bytes[0]
}

#[test]
fn variants_keep_their_places() {
    for (place, command) in commands().iter().enumerate() {
        assert_eq!(usize::from(command_place(command)), place, "{command}");
        assert_eq!(first_byte(command), command_place(command), "{command}");
    }
    for (place, event) in events().iter().enumerate() {
        assert_eq!(usize::from(event_place(event)), place, "{event}");
        assert_eq!(first_byte(event), event_place(event), "{event}");
    }
    assert_eq!((commands().len(), events().len()), (24, 28), "a new variant has no sample");
}

fn in_order<T: Serialize>(values: &[T]) {
    for (place, value) in values.iter().enumerate() {
        assert_eq!(usize::from(first_byte(value)), place, "a variant has moved");
    }
}

#[test]
fn variants_of_small_enums_keep_their_places() {
    in_order(&[Role::Data, Role::Query]);
    in_order(&[NodeStatus::Up, NodeStatus::Stopping, NodeStatus::Down]);
    in_order(&[DownCause::Expired, DownCause::Revoked, DownCause::Replaced]);
    in_order(&[
        ReleaseCause::Requested,
        ReleaseCause::WatchFailed,
        ReleaseCause::WatchTimeout,
        ReleaseCause::Conflict,
        ReleaseCause::Balance,
        ReleaseCause::Drain,
        ReleaseCause::Drop,
    ]);
    in_order(&[
        UnassignCause::Released,
        UnassignCause::ReleaseFailed,
        UnassignCause::ReleaseTimeout,
        UnassignCause::Stopped,
        UnassignCause::NodeDown,
    ]);
    in_order(&[PhaseKind::Buffered, PhaseKind::ToWatch, PhaseKind::Watched, PhaseKind::ToRelease]);
    in_order(&[AckResult::Ok, AckResult::FailedStopped, AckResult::Failed, AckResult::Conflict]);
    in_order(&[Cause::Unassigned, Cause::Planned, Cause::GivenBack, Cause::Drain, Cause::Balance]);
    let node = NodeRef { node: NodeId(1), epoch: NodeEpoch(1) };
    in_order(&[
        Action::Assign { to: node },
        Action::Move { from: node, to: node },
        Action::Release { from: node },
    ]);
}
