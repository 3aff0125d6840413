//! Properties over sensible and over hostile histories: invariants, determinism, snapshots,
//! batches. `SEED=n` runs another set of histories than the fixed one.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use std::env;
use std::sync::Mutex;

use proptest::collection::vec;
use proptest::prelude::any;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::build::at;
use super::coverage::{Coverage, OF_HOSTILE, OF_SENSIBLE};
use super::dice::Dice;
use super::generate::World;
use super::hostile;
use super::poison::Poison;
use crate::Context;
use crate::check;
use crate::codec::{self, CodecError};
use crate::command::{Command, Request};
use crate::epoch::ChannelTerm;
use crate::event::Event;
use crate::ids::ChannelName;
use crate::outcome::Outcome;
use crate::snapshot::{self, DigestMismatch, Restore};
use crate::state::State;

const STEPS: usize = 300;

type Entry = (Context, Request);

/// Calls `test` with the seeds of many histories; a failing one is made shorter.
pub(super) fn histories(cases: u32, test: impl Fn(&[u64])) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut seed = [7; 32];
    if let Some(text) = env::var("SEED").ok().and_then(|text| text.parse::<u64>().ok()) {
        seed[..8].copy_from_slice(&text.to_le_bytes());
    }
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let outcome = runner.run(&vec(any::<u64>(), 1..STEPS), |seeds| {
        test(&seeds);
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

/// The entries of a history, sensible or with every third one hostile.
pub(super) fn entries(seeds: &[u64], hostile: bool) -> Vec<Entry> {
    let (mut state, mut world) = (State::new(1), World::default());
    let mut entries = Vec::new();
    for seed in seeds {
        let entry = if hostile && seed % 3 == 0 {
            hostile::entry(&state, *seed)
        } else {
            world.next(&state, *seed)
        };
        state.apply(&entry.0, &entry.1);
        world.now = world.now.max(state.now().0);
        entries.push(entry);
    }
    entries
}

pub(super) fn replay(entries: &[Entry]) -> State {
    let mut state = State::new(1);
    for (context, request) in entries {
        state.apply(context, request);
    }
    state
}

pub(super) fn same(left: &State, right: &State) {
    assert_eq!(left.digest(), right.digest());
    assert_eq!(left.witness(), right.witness());
    assert_eq!(left.index(), right.index());
}

/// Applies to two replicas, checking everything after every step.
fn run(entries: &[Entry], coverage: &Mutex<Coverage>) {
    let (mut one, mut other) = (State::new(1), State::new(1));
    let mut terms: BTreeMap<ChannelName, ChannelTerm> = BTreeMap::new();
    for (context, request) in entries {
        let mut before = one.clone();
        let outcome = one.apply(context, request);
        assert_eq!(outcome, other.apply(context, request), "{}", request.command);
        assert_eq!((one.digest(), one.witness()), (other.digest(), other.witness()));
        let violations = check(&one);
        assert!(violations.is_empty(), "after {}: {violations:?}", request.command);
        assert!(one.now() >= before.now(), "the clock turned back");
        owners_change_for_a_reason(&before, &request.command, &one);
        coverage.lock().unwrap().see(&before, &request.command, &outcome, &one);
        if let Outcome::Accepted(receipt) = &outcome {
            assert_eq!(Some(one.revision()), before.revision().next());
            assert_ne!(one.witness(), before.witness());
            for event in &receipt.record.events {
                rising(&mut terms, event);
                targets_are_candidates(&one, event);
            }
            let bytes = codec::encode_record(&receipt.record);
            assert_eq!(codec::decode_record(&bytes).as_ref(), Ok(&*receipt.record));
        } else {
            before.advance(context.now);
            same(&one, &before);
        }
    }
}

/// over the whole life of a name, removed and announced again, its term only rises.
fn rising(terms: &mut BTreeMap<ChannelName, ChannelTerm>, event: &Event) {
    let (Event::ChannelAdded { term, .. }
    | Event::ChannelPlaced { term, .. }
    | Event::ChannelUnassigned { term, .. }) = event
    else {
        return;
    };
    let Some(name) = event.channel() else { return };
    let last = terms.insert(name.clone(), *term);
    assert!(last.is_none_or(|last| last < *term), "{name} had {last:?} and gets {term}");
}

/// A stopping, frozen, Down or query node gets nothing new.
fn targets_are_candidates(state: &State, event: &Event) {
    let (Event::ChannelPlaced { channel, to, .. }
    | Event::ReleaseStarted { channel, planned: Some(to), .. }) = event
    else {
        return;
    };
    let (Some(node), Some(channel)) = (state.live(*to), state.channel(channel)) else {
        panic!("{event}: target or channel is not there");
    };
    assert_eq!(state.is_candidate(channel, node, state.now()), Ok(()), "{event}");
}

/// an owner is lost by its own word, by its deadline, with its session, or with the channel.
fn owners_change_for_a_reason(before: &State, command: &Command, after: &State) {
    for old in before.channels() {
        let Some(owner) = old.phase.owner() else { continue };
        let new = after.channel(&old.spec.name);
        if new.is_some_and(|new| new.phase.owner() == Some(owner) && new.term == old.term) {
            continue;
        }
        let by_command = match command {
            Command::NodeAck(ack) => (ack.node, ack.term) == (owner, old.term),
            Command::OpTimeout { op, .. } => old.phase.op() == Some(*op),
            Command::RemoveChannel { channel } => *channel == old.spec.name,
            _ => after.live(owner).is_none(),
        };
        assert!(by_command, "{command} took {} from {owner}", old.spec.name);
    }
}

#[test]
fn sensible_histories_keep_the_invariants() {
    let coverage = Mutex::new(Coverage::default());
    histories(400, |seeds| run(&entries(seeds, false), &coverage));
    coverage.lock().unwrap().require(&OF_SENSIBLE);
}

#[test]
fn mixed_histories_keep_the_invariants() {
    let coverage = Mutex::new(Coverage::default());
    histories(96, |seeds| run(&entries(seeds, true), &coverage));
    coverage.lock().unwrap().require(&OF_HOSTILE);
}

#[test]
fn hostile_histories_keep_the_invariants() {
    let coverage = Mutex::new(Coverage::default());
    histories(256, |seeds| {
        let mut state = State::new(1);
        let hostile = |seed: &u64| {
            let entry = hostile::entry(&state, *seed);
            state.apply(&entry.0, &entry.1);
            entry
        };
        let entries: Vec<Entry> = seeds.iter().map(hostile).collect();
        run(&entries, &coverage);
    });
    coverage.lock().unwrap().require(&OF_HOSTILE);
}

pub(super) fn sections(state: &State) -> Vec<(u16, Vec<u8>)> {
    let mut sections = Vec::new();
    let written: Result<(), DigestMismatch> = snapshot::write(state, &mut |kind, bytes| {
        sections.push((kind, bytes.to_vec()));
        Ok(())
    });
    written.unwrap();
    sections
}

pub(super) fn restore(sections: &[(u16, Vec<u8>)]) -> Result<State, CodecError> {
    let mut restore = Restore::new();
    for (kind, bytes) in sections {
        restore.section(*kind, bytes)?;
    }
    restore.finish()
}

#[test]
fn a_snapshot_at_any_cut_leads_to_the_same_end() {
    histories(96, |seeds| {
        let entries = entries(seeds, true);
        let cut = Dice::new(seeds[0]).index(entries.len());
        let (first, rest) = entries.split_at(cut);
        let mut original = replay(first);
        let bytes = sections(&original);
        let mut restored = restore(&bytes).unwrap();
        same(&original, &restored);
        assert_eq!(bytes, sections(&restored), "written again, it has other bytes");
        for (context, request) in rest {
            assert_eq!(original.apply(context, request), restored.apply(context, request));
            same(&original, &restored);
        }
    });
}

#[test]
fn any_split_into_batches_leads_to_the_same_end() {
    histories(96, |seeds| {
        let entries = entries(seeds, true);
        let mut dice = Dice::new(seeds[0]);
        let mut state = State::new(1);
        let mut rest = entries.as_slice();
        while let Some((context, _)) = rest.first() {
            let alike = rest.iter().take_while(|entry| entry.0 == *context).count();
            let (batch, after) = rest.split_at(1 + dice.index(alike));
            let requests: Vec<Request> = batch.iter().map(|entry| entry.1.clone()).collect();
            let bytes = codec::encode_batch(&requests);
            for request in codec::decode_batch(&bytes).unwrap() {
                state.apply(context, &request);
            }
            rest = after;
        }
        same(&state, &replay(&entries));
    });
}

/// The tests of this file must be able to fail: over some history each fault is seen.
#[test]
fn a_faulty_replica_is_seen_over_a_history() {
    let kinds = ["ChannelPlaced", "WatchCompleted", "NodeWentDown", "FormerOwnerCleared"];
    for kind in kinds {
        let seen = Mutex::new(0_u32);
        histories(24, |seeds| {
            let entries = entries(seeds, false);
            let sound = replay(&entries);
            let mut faulty = State::new(1);
            faulty.poison = Poison::Drop(kind);
            for (context, request) in &entries {
                faulty.apply(context, request);
            }
            *seen.lock().unwrap() += u32::from(sound.digest() != faulty.digest());
        });
        assert!(*seen.lock().unwrap() > 0, "a dropped {kind} was never seen");
    }
}

#[test]
fn the_clock_alone_changes_no_record() {
    let mut state = State::new(0);
    let witness = state.witness();
    let tick = super::build::request(Command::Tick);
    let outcome = state.apply(&at(1, 77), &tick);
    assert!(matches!(outcome, Outcome::NoChange(_)), "{outcome}");
    assert_eq!((state.now().0, state.witness()), (77, witness));
    assert_eq!(state.revision().count(), 0);
}
