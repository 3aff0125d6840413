//! The snapshot files of a member: written beside, made durable, then named; the last two stay.
//! What is inside is `snapshot_file.rs`'s business, when to write one openraft's.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::StartError;
use crate::machine::{RestoreError, SnapshotError, SnapshotJob};
use crate::snapshot_file::{FileWriter, Head, SnapshotFile};
use crate::status::SnapshotInfo;
use crate::wire::MetaRecord;

const SUFFIX: &str = ".snap";
const TEMPORARY: &str = ".tmp";
const KEPT: usize = 2;

/// A directory of snapshot files.
pub(crate) struct SnapshotStore {
    dir: PathBuf,
    newest: Mutex<Option<SnapshotFile>>,
}

impl SnapshotStore {
    /// Opens or makes the directory and removes what a crash left half written.
    pub(crate) fn open(dir: PathBuf) -> Result<Self, StartError> {
        let fail = || format!("cannot use {}", dir.display());
        fs::create_dir_all(&dir).map_err(StartError::io(fail()))?;
        for entry in fs::read_dir(&dir).map_err(StartError::io(fail()))? {
            let path = entry.map_err(StartError::io(fail()))?.path();
            if path.to_string_lossy().ends_with(TEMPORARY) {
                fs::remove_file(&path).map_err(StartError::io(fail()))?;
            }
        }
        Ok(Self { dir, newest: Mutex::new(None) })
    }

    /// The files, newest first, each verified now.
    pub(crate) fn files(
        dir: &Path,
    ) -> io::Result<Vec<(PathBuf, Result<SnapshotFile, RestoreError>)>> {
        let mut paths = names(dir)?;
        paths.sort_by_key(|(place, _)| std::cmp::Reverse(*place));
        Ok(paths
            .into_iter()
            .map(|(_, path)| {
                let file = SnapshotFile::open(&path);
                (path, file)
            })
            .collect())
    }

    /// Where the files are.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The newest file that was written, installed or restored.
    pub(crate) fn newest(&self) -> Option<SnapshotFile> {
        self.lock().clone()
    }

    /// Makes a file the newest one without touching the disk.
    pub(crate) fn set_newest(&self, file: SnapshotFile) {
        *self.lock() = Some(file);
    }

    /// Writes a snapshot. Blocks until it is durable.
    pub(crate) fn write(
        &self,
        cluster: &str,
        meta: MetaRecord,
        job: Box<dyn SnapshotJob>,
    ) -> Result<SnapshotFile, SnapshotError> {
        let head = Head {
            cluster: cluster.to_owned(),
            meta,
            digest: job.digest(),
            witness: job.witness(),
        };
        let temporary = self.dir.join(format!("written{TEMPORARY}"));
        let mut writer = FileWriter::create(&temporary, &head)?;
        job.write(&mut writer)?;
        writer.finish()?;
        // Read back what was written: a purge will rely on it.
        let file = SnapshotFile::open(&temporary)
            .map_err(|error| SnapshotError::Inconsistent(error.to_string()))?;
        Ok(self.keep(file)?)
    }

    /// A name for a file that is being received; a second receiver would get the same.
    pub(crate) fn incoming(&self) -> PathBuf {
        self.dir.join(format!("received{TEMPORARY}"))
    }

    /// Gives a verified file its name, durably, and deletes what is too old.
    pub(crate) fn keep(&self, file: SnapshotFile) -> io::Result<SnapshotFile> {
        let name = format!("snapshot-{:020}-{:020}{SUFFIX}", file.info.term, file.info.index);
        let path = self.dir.join(name);
        fs::rename(&file.info.path, &path)?;
        File::open(&self.dir)?.sync_all()?;
        let file = file.renamed(path);
        {
            let mut newest = self.lock();
            if newest.as_ref().is_none_or(|old| old.info.index <= file.info.index) {
                *newest = Some(file.clone());
            }
        }
        self.prune(&file.info)?;
        Ok(file)
    }

    fn prune(&self, newest: &SnapshotInfo) -> io::Result<()> {
        let mut paths = names(&self.dir)?;
        paths.retain(|(place, _)| *place <= (newest.index, newest.term));
        paths.sort_by_key(|(place, _)| std::cmp::Reverse(*place));
        for (_, path) in paths.into_iter().skip(KEPT) {
            fs::remove_file(path)?;
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Option<SnapshotFile>> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Names of snapshot files with their index and term.
fn names(dir: &Path) -> io::Result<Vec<((u64, u64), PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let place = name.as_deref().and_then(|name| {
            let (term, index) =
                name.strip_prefix("snapshot-")?.strip_suffix(SUFFIX)?.split_once('-')?;
            Some((index.parse().ok()?, term.parse().ok()?))
        });
        if let Some(place) = place {
            found.push((place, path));
        }
    }
    Ok(found)
}
