//! Damage on the files of sled: bit flips, truncation, zeroed blocks. Every open either refuses
//! with an error that says what to do, or finds everything that was acknowledged.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use openraft::storage::{RaftLogStorage, RaftLogStorageExt};
use tempfile::TempDir;

use super::group::wait_for;
use super::noise::Noise;
use crate::counters::Meters;
use crate::error::StartError;
use crate::log::backend::LogBackend;
use crate::log::high_water::HighWater;
use crate::log::open::{open_log, start_error};
use crate::log::sled::SledLog;
use crate::log::store::LogStore;
use crate::types::{Body, Entry, Payload, log_id, vote};

const ENTRIES: u64 = 2_000;
const TRIALS: usize = 25;

fn open(dir: &Path) -> Result<(Arc<dyn LogBackend>, HighWater, u64), StartError> {
    let log = dir.join("log");
    let mark = dir.join("high-water");
    let mut marks = HighWater::open(&mark).map_err(|error| start_error(&mark, error))?;
    let backend = SledLog::open(&log).map_err(|error| start_error(&log, error))?;
    let opened = open_log(&log, &backend, &mut marks, None, 1 << 20)?;
    let end = opened.last.map_or(0, |last| last.index + 1);
    Ok((Arc::new(backend), marks, end))
}

/// Fills a log; the last entries are large, so that they are stored in parts.
fn fill(dir: &Path) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    fs::create_dir_all(dir).unwrap();
    let log = dir.join("log");
    let mut marks = HighWater::open(&dir.join("high-water")).unwrap();
    let backend = SledLog::open(&log).unwrap();
    let opened = open_log(&log, &backend, &mut marks, None, 1 << 20).unwrap();
    runtime.block_on(async {
        let meters = Arc::new(Meters::default());
        let mut store =
            LogStore::start(opened, Arc::new(backend), Box::new(marks), meters, |_| {}).unwrap();
        store.save_vote(&vote(1, 1, true)).await.unwrap();
        let mut noise = Noise::new(7);
        for from in (0..ENTRIES).step_by(100) {
            let entries: Vec<Entry> = (from..from + 100)
                .map(|index| {
                    let size = if index > ENTRIES - 20 { 30_000 } else { 200 };
                    let body = Body(Bytes::from(noise.bytes(size)));
                    Entry { log_id: log_id(index, 1), payload: Payload::Normal(body) }
                })
                .collect();
            store.blocking_append(entries).await.unwrap();
        }
        store.close().await;
    });
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn sweep(seed: u64, damage: impl Fn(&mut Vec<u8>, &mut Noise)) {
    let home = TempDir::new().unwrap();
    let whole = home.path().join("whole");
    fill(&whole);
    let mut noise = Noise::new(seed);
    let (mut refused, mut complete) = (0, 0);
    for trial in 0..TRIALS {
        let dir: PathBuf = home.path().join(format!("trial-{trial}"));
        copy(&whole, &dir);
        let file = dir.join("log").join("db");
        let mut bytes = fs::read(&file).unwrap();
        damage(&mut bytes, &mut noise);
        fs::write(&file, bytes).unwrap();
        match open(&dir) {
            Ok((_, _, end)) => {
                assert_eq!(end, ENTRIES, "trial {trial}: entries vanished without an error");
                complete += 1;
            }
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains("log"), "no file in: {text}");
                refused += 1;
            }
        }
        fs::remove_dir_all(&dir).unwrap();
    }
    assert_eq!(refused + complete, TRIALS);
    assert!(refused > 0, "nothing was noticed at all");
}

#[test]
fn an_undamaged_log_opens_again_and_again() {
    let home = TempDir::new().unwrap();
    fill(home.path());
    for _ in 0..3 {
        // The lock of the last owner lives on for a moment.
        let end = wait_for("the lock", || match open(home.path()) {
            Err(StartError::Locked { .. }) => None,
            opened => Some(opened.unwrap().2),
        });
        assert_eq!(end, ENTRIES);
    }
}

#[test]
fn bit_flips_are_refused_or_harmless() {
    sweep(1, |bytes, noise| {
        let at = noise.below(bytes.len());
        bytes[at] ^= 1 << noise.below(8);
    });
}

#[test]
fn truncations_are_refused_or_harmless() {
    sweep(2, |bytes, noise| {
        let length = noise.below(bytes.len());
        bytes.truncate(length);
    });
}

#[test]
fn zeroed_blocks_are_refused_or_harmless() {
    sweep(3, |bytes, noise| {
        let block = noise.below(bytes.len() / 4096);
        bytes[block * 4096..(block + 1) * 4096].fill(0);
    });
}
