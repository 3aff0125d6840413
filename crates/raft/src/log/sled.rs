//! The log in sled, with the guards it needs: a tree for 10,000 entries, every flush followed by
//! fdatasync, values small enough to stay out of its blob files, panics turned into errors.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use sled::{Batch, Db, Mode, Tree};

use crate::log::backend::{LogBackend, LogError, MetaKey, Visit};
use crate::log::record::{ENTRY_MAX, HEADER, Kind, head};

/// Entries in one tree. Dropping a tree is what makes a purge cheap.
const TREE_ENTRIES: u64 = 10_000;
/// Larger records are split: sled keeps a page of up to 17 such values inside its log, whereas a
/// page over 128 KiB goes to a file of its own that it never syncs.
const PART: usize = 4096;
const CACHE_BYTES: u64 = 64 << 20;
const META: &str = "meta";
const PREFIX: &str = "log-";

/// sled in a directory of its own.
pub(crate) struct SledLog {
    db: Db,
    meta: Tree,
    trees: Mutex<BTreeMap<u64, Tree>>,
    file: File,
}

impl SledLog {
    /// Opens or creates the store. Blocks; sled panics on damage, which comes back as an error.
    pub(crate) fn open(dir: &Path) -> Result<Self, LogError> {
        let dir = dir.to_owned();
        let opener = std::thread::Builder::new()
            .name("raft-log-open".into())
            .spawn(move || catch_unwind(AssertUnwindSafe(|| Self::open_inside(&dir))))?;
        match opener.join() {
            Ok(Ok(opened)) => opened,
            Ok(Err(panic)) | Err(panic) => Err(LogError::Panicked(panic_text(panic.as_ref()))),
        }
    }

    fn open_inside(dir: &PathBuf) -> Result<Self, LogError> {
        let opened = sled::Config::new()
            .path(dir)
            .mode(Mode::LowSpace)
            .flush_every_ms(None)
            .cache_capacity(CACHE_BYTES)
            .open();
        let db = opened.map_err(|error| match error {
            sled::Error::Io(error) if is_lock(&error) => LogError::Busy,
            other => store_error(other),
        })?;
        let file = OpenOptions::new().read(true).write(true).open(dir.join("db"))?;
        let meta = db.open_tree(META).map_err(store_error)?;
        let mut trees = BTreeMap::new();
        for name in db.tree_names() {
            if let Some(first) = tree_first(&name) {
                trees.insert(first, db.open_tree(&name).map_err(store_error)?);
            }
        }
        let log = Self { db, meta, trees: Mutex::new(trees), file };
        log.sync()?;
        File::open(dir)?.sync_all()?;
        if let Some(parent) = dir.parent() {
            File::open(parent)?.sync_all()?;
        }
        Ok(log)
    }

    fn tree(&self, first: u64) -> Result<Tree, LogError> {
        let mut trees = self.trees.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tree) = trees.get(&first) {
            return Ok(tree.clone());
        }
        let tree = self.db.open_tree(format!("{PREFIX}{first:020}")).map_err(store_error)?;
        trees.insert(first, tree.clone());
        Ok(tree)
    }

    fn trees_from(&self, first: u64) -> Vec<(u64, Tree)> {
        let trees = self.trees.lock().unwrap_or_else(PoisonError::into_inner);
        trees.range(first..).map(|(first, tree)| (*first, tree.clone())).collect()
    }
}

impl LogBackend for SledLog {
    fn read_meta(&self, key: MetaKey) -> Result<Option<Vec<u8>>, LogError> {
        let value = self.meta.get(key.as_str()).map_err(store_error)?;
        Ok(value.map(|value| value.to_vec()))
    }

    fn save_meta(&self, key: MetaKey, record: &[u8]) -> Result<(), LogError> {
        self.meta.insert(key.as_str(), record).map_err(store_error)?;
        Ok(())
    }

    fn append(&self, records: &[(u64, Vec<u8>)]) -> Result<(), LogError> {
        let mut rest = records;
        while let Some((index, _)) = rest.first() {
            let first = tree_of(*index);
            let count = rest.iter().take_while(|(index, _)| tree_of(*index) == first).count();
            let (now, later) = rest.split_at(count);
            let mut batch = Batch::default();
            for (index, record) in now {
                for (part, bytes) in record.chunks(PART).enumerate() {
                    batch.insert(key(*index, part), bytes);
                }
            }
            self.tree(first)?.apply_batch(batch).map_err(store_error)?;
            rest = later;
        }
        Ok(())
    }

    fn read(&self, from: u64, to: u64, max_bytes: usize) -> Result<Vec<(u64, Bytes)>, LogError> {
        let mut found: Vec<(u64, Bytes)> = Vec::new();
        let mut bytes = 0_usize;
        for (first, tree) in self.trees_from(tree_of(from)) {
            if first >= to {
                break;
            }
            let mut parts = Parts::default();
            for item in tree.range(from.to_be_bytes()..to.max(from).to_be_bytes()) {
                let (key, value) = item.map_err(store_error)?;
                if let Some((index, record)) = parts.take(&key, &value)? {
                    bytes = bytes.saturating_add(record.len());
                    if !found.is_empty() && bytes > max_bytes {
                        return Ok(found);
                    }
                    found.push((index, record));
                }
            }
            parts.finish()?;
        }
        Ok(found)
    }

    fn truncate(&self, from: u64) -> Result<(), LogError> {
        for (_, tree) in self.trees_from(tree_of(from)).into_iter().rev() {
            let mut behind = tree.range(from.to_be_bytes()..);
            while let Some(item) = behind.next_back() {
                let (key, _) = item.map_err(store_error)?;
                tree.remove(key).map_err(store_error)?;
            }
        }
        Ok(())
    }

    fn free(&self, index: u64) -> Result<(), LogError> {
        let whole = |first: &u64| first.saturating_add(TREE_ENTRIES - 1) <= index;
        let gone: Vec<u64> = {
            let mut trees = self.trees.lock().unwrap_or_else(PoisonError::into_inner);
            let gone = trees.keys().copied().filter(whole).collect();
            trees.retain(|first, _| !whole(first));
            gone
        };
        for first in gone {
            self.db.drop_tree(format!("{PREFIX}{first:020}")).map_err(store_error)?;
        }
        Ok(())
    }

    fn scan(&self, from: u64, visit: &mut Visit<'_>) -> Result<(), LogError> {
        for (_, tree) in self.trees_from(tree_of(from)) {
            let mut parts = Parts::default();
            for item in tree.range(from.to_be_bytes()..) {
                let (key, value) = item.map_err(store_error)?;
                if let Some((index, record)) = parts.take(&key, &value)? {
                    visit(index, record)?;
                }
            }
            parts.finish()?;
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), LogError> {
        self.db.flush().map_err(store_error)?;
        // sled only asks the kernel to write; this also makes the drive keep it.
        self.file.sync_data()?;
        Ok(())
    }

    fn size_bytes(&self) -> u64 {
        self.db.size_on_disk().unwrap_or(0)
    }
}

/// Puts split records together again.
#[derive(Default)]
struct Parts {
    index: u64,
    wanted: usize,
    next: u16,
    bytes: Vec<u8>,
}

impl Parts {
    fn take(&mut self, key: &[u8], value: &[u8]) -> Result<Option<(u64, Bytes)>, LogError> {
        let (index, part) = split_key(key)?;
        if part == 0 {
            self.finish()?;
            let head = head(Kind::ENTRY, ENTRY_MAX, value)
                .map_err(|error| LogError::Damaged(format!("entry {index}: {error}")))?;
            let wanted = HEADER + head.length;
            *self = Self { index, wanted, next: 1, bytes: Vec::with_capacity(wanted) };
        } else if index != self.index || part != self.next || self.bytes.is_empty() {
            return Err(LogError::Damaged(format!("entry {index}: a part is missing")));
        } else {
            self.next = self.next.saturating_add(1);
        }
        self.bytes.extend_from_slice(value);
        if self.bytes.len() < self.wanted {
            return Ok(None);
        }
        Ok(Some((index, std::mem::take(&mut self.bytes).into())))
    }

    fn finish(&self) -> Result<(), LogError> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        Err(LogError::Damaged(format!("entry {}: its end is missing", self.index)))
    }
}

fn key(index: u64, part: usize) -> Vec<u8> {
    let mut key = index.to_be_bytes().to_vec();
    if part > 0 {
        key.extend_from_slice(&u16::try_from(part).unwrap_or(u16::MAX).to_be_bytes());
    }
    key
}

fn split_key(key: &[u8]) -> Result<(u64, u16), LogError> {
    let bad = || LogError::Damaged("a key is not an index".into());
    let (index, part) = key.split_at_checked(8).ok_or_else(bad)?;
    let index = u64::from_be_bytes(index.try_into().map_err(|_| bad())?);
    if part.is_empty() {
        return Ok((index, 0));
    }
    Ok((index, u16::from_be_bytes(part.try_into().map_err(|_| bad())?)))
}

fn tree_of(index: u64) -> u64 {
    index / TREE_ENTRIES * TREE_ENTRIES
}

fn tree_first(name: &[u8]) -> Option<u64> {
    std::str::from_utf8(name).ok()?.strip_prefix(PREFIX)?.parse().ok()
}

fn is_lock(error: &std::io::Error) -> bool {
    error.to_string().contains("could not acquire lock")
}

fn store_error(error: sled::Error) -> LogError {
    match error {
        sled::Error::Io(error) => LogError::Io(error),
        other => LogError::Damaged(other.to_string()),
    }
}

/// The message of a panic, when it has one.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}
