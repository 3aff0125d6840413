//! The mark in a small file of two slots outside sled: it turns the silent loss of a damaged tail
//! into a refusal to start. `writer.rs` moves it, `open.rs` compares.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::log::backend::{LogError, Mark, MarkStore};
use crate::log::record::{HEADER, Kind, decode_small, encode_small, head};

const SLOT: u64 = 4096;
const SLOT_MAX: usize = 512;

/// The file. The slots are written in turn, so a torn write leaves the older mark intact.
pub(crate) struct HighWater {
    path: PathBuf,
    file: File,
}

impl HighWater {
    /// Opens or makes the file; the directory is synced so that the name survives.
    pub(crate) fn open(path: &Path) -> Result<Self, LogError> {
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        if let Some(parent) = path.parent() {
            File::open(parent)?.sync_all()?;
        }
        Ok(Self { path: path.to_owned(), file })
    }

    /// Reads the mark of a file that may not be there, and never makes it.
    pub(crate) fn peek(path: &Path) -> Result<Option<Mark>, LogError> {
        match File::open(path) {
            Ok(file) => Self { path: path.to_owned(), file }.read(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn slot(&self, slot: u64) -> Result<Option<Mark>, LogError> {
        let mut bytes = vec![0_u8; SLOT_MAX];
        let mut filled = 0;
        while filled < bytes.len() {
            let at = slot * SLOT + u64::try_from(filled).unwrap_or(0);
            match self.file.read_at(bytes.get_mut(filled..).unwrap_or_default(), at)? {
                0 => break,
                read => filled += read,
            }
        }
        let Ok(head) = head(Kind::MARK, SLOT_MAX - HEADER, &bytes) else { return Ok(None) };
        let record = bytes.get(..HEADER + head.length).unwrap_or_default();
        Ok(decode_small(Kind::MARK, record).ok())
    }
}

impl MarkStore for HighWater {
    fn read(&mut self) -> Result<Option<Mark>, LogError> {
        let slots = [self.slot(0)?, self.slot(1)?];
        let newest = slots.into_iter().flatten().max_by_key(|mark| mark.sequence);
        if newest.is_none() && self.file.metadata()?.len() > 0 {
            let detail = format!("{}: no slot holds a mark", self.path.display());
            return Err(LogError::Damaged(detail));
        }
        Ok(newest)
    }

    fn write(&mut self, mark: &Mark) -> Result<(), LogError> {
        let record = encode_small(Kind::MARK, mark);
        self.file.write_all_at(&record, (mark.sequence % 2) * SLOT)?;
        self.file.sync_data()?;
        Ok(())
    }
}
