//! A log in memory for simulations: it outlives the member that uses it, is durable only after a
//! sync, and loses everything else in a crash. Never for production.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use crate::log::backend::{LogBackend, LogError, Mark, MarkStore, MetaKey, Visit};

#[derive(Clone, Default)]
struct Image {
    entries: BTreeMap<u64, Bytes>,
    meta: BTreeMap<MetaKey, Vec<u8>>,
}

enum Change {
    Append(u64, Bytes),
    Truncate(u64),
    Free(u64),
    Meta(MetaKey, Vec<u8>),
}

impl Image {
    fn apply(&mut self, change: &Change) {
        match change {
            Change::Append(index, record) => {
                self.entries.insert(*index, record.clone());
            }
            Change::Truncate(from) => {
                self.entries.split_off(from);
            }
            Change::Free(upto) => {
                self.entries = self.entries.split_off(&upto.saturating_add(1));
            }
            Change::Meta(key, record) => {
                self.meta.insert(*key, record.clone());
            }
        }
    }
}

#[derive(Default)]
struct Disk {
    durable: Image,
    current: Image,
    unsynced: Vec<Change>,
    mark: Option<Mark>,
    sync_delay: Duration,
    broken: bool,
}

impl Disk {
    fn change(&mut self, change: Change) -> Result<(), LogError> {
        if self.broken {
            return Err(std::io::Error::other("the disk is broken on purpose").into());
        }
        self.current.apply(&change);
        self.unsynced.push(change);
        Ok(())
    }
}

/// Memory that survives a restart of the member; clones share it.
#[derive(Clone, Default)]
pub struct MemoryDisk {
    disk: Arc<Mutex<Disk>>,
    awake: Arc<Condvar>,
}

impl fmt::Debug for MemoryDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryDisk")
    }
}

impl MemoryDisk {
    /// Loses what was not synced, as a power failure does. Call it while no member runs on it.
    pub fn crash(&self) {
        let mut disk = self.lock();
        disk.unsynced.clear();
        disk.current = disk.durable.clone();
        disk.broken = false;
    }

    /// The same, but the first `kept` of the writes that were not synced reached the disk.
    #[cfg(test)]
    pub(crate) fn crash_keeping(&self, kept: usize) {
        {
            let mut disk = self.lock();
            let changes = std::mem::take(&mut disk.unsynced);
            changes.iter().take(kept).for_each(|change| disk.durable.apply(change));
        }
        self.crash();
    }

    /// Makes every sync take that long.
    pub fn set_sync_delay(&self, delay: Duration) {
        self.lock().sync_delay = delay;
    }

    /// Makes every further write and sync fail until the next crash.
    pub fn break_writes(&self) {
        self.lock().broken = true;
        self.awake.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LogBackend for MemoryDisk {
    fn read_meta(&self, key: MetaKey) -> Result<Option<Vec<u8>>, LogError> {
        Ok(self.lock().current.meta.get(&key).cloned())
    }

    fn save_meta(&self, key: MetaKey, record: &[u8]) -> Result<(), LogError> {
        self.lock().change(Change::Meta(key, record.to_vec()))
    }

    fn append(&self, records: &[(u64, Vec<u8>)]) -> Result<(), LogError> {
        let mut disk = self.lock();
        for (index, record) in records {
            disk.change(Change::Append(*index, record.clone().into()))?;
        }
        Ok(())
    }

    fn read(&self, from: u64, to: u64, max_bytes: usize) -> Result<Vec<(u64, Bytes)>, LogError> {
        let disk = self.lock();
        let mut found = Vec::new();
        let mut bytes = 0_usize;
        for (index, record) in disk.current.entries.range(from..to.max(from)) {
            bytes = bytes.saturating_add(record.len());
            if !found.is_empty() && bytes > max_bytes {
                break;
            }
            found.push((*index, record.clone()));
        }
        Ok(found)
    }

    fn truncate(&self, from: u64) -> Result<(), LogError> {
        self.lock().change(Change::Truncate(from))
    }

    fn free(&self, index: u64) -> Result<(), LogError> {
        self.lock().change(Change::Free(index))
    }

    fn scan(&self, from: u64, visit: &mut Visit<'_>) -> Result<(), LogError> {
        let entries = self.lock().current.entries.clone();
        entries.range(from..).try_for_each(|(index, record)| visit(*index, record.clone()))
    }

    fn sync(&self) -> Result<(), LogError> {
        let disk = self.lock();
        let delay = disk.sync_delay;
        let waited = self.awake.wait_timeout_while(disk, delay, |disk| !disk.broken);
        let (mut disk, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if disk.broken {
            return Err(std::io::Error::other("the disk is broken on purpose").into());
        }
        let changes = std::mem::take(&mut disk.unsynced);
        changes.iter().for_each(|change| disk.durable.apply(change));
        Ok(())
    }

    fn size_bytes(&self) -> u64 {
        let disk = self.lock();
        let bytes: usize = disk.current.entries.values().map(Bytes::len).sum();
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

impl MarkStore for MemoryDisk {
    fn read(&mut self) -> Result<Option<Mark>, LogError> {
        Ok(self.lock().mark)
    }

    fn write(&mut self, mark: &Mark) -> Result<(), LogError> {
        let mut disk = self.lock();
        if disk.broken {
            return Err(std::io::Error::other("the disk is broken on purpose").into());
        }
        disk.mark = Some(*mark);
        Ok(())
    }
}
