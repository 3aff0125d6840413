//! Verdicts: attestations that were found to be wrong, written durably before anyone goes on.
//! Replay consults them, so a false attestation in the log cannot stop the group for ever.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::log::record::{self, HEADER, Kind, Position, decode_small, encode_small};

const RECORD_MAX: usize = 4096;

/// Who was wrong about what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Verdict {
    /// The entry that carries the attestation.
    pub(crate) entry: Position,
    /// The entry it speaks of.
    pub(crate) attested: u64,
    /// The member that was wrong.
    pub(crate) wrong: u64,
    pub(crate) mine: [u8; 16],
    pub(crate) theirs: [u8; 16],
}

/// The file of verdicts.
pub(crate) struct Verdicts {
    path: PathBuf,
    me: u64,
    excused: Mutex<BTreeSet<(u64, u64)>>,
    writing: Mutex<()>,
}

impl Verdicts {
    /// Reads the file. A last record that was cut short by a crash counts as never written.
    pub(crate) fn open(path: PathBuf, me: u64) -> io::Result<Self> {
        let mut bytes = Vec::new();
        match File::open(&path) {
            Ok(mut file) => {
                file.read_to_end(&mut bytes)?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let mut excused = BTreeSet::new();
        let mut rest: &[u8] = &bytes;
        while let Ok(head) = record::head(Kind::VERDICT, RECORD_MAX, rest) {
            let Some((one, behind)) = rest.split_at_checked(HEADER + head.length) else { break };
            if let Ok(verdict) = decode_small::<Verdict>(Kind::VERDICT, one)
                && verdict.wrong != me
            {
                excused.insert((verdict.entry.index, verdict.entry.term));
            }
            rest = behind;
        }
        let kept = bytes.len() - rest.len();
        if !rest.is_empty() {
            let file = OpenOptions::new().write(true).open(&path)?;
            file.set_len(u64::try_from(kept).unwrap_or(0))?;
            file.sync_all()?;
        }
        Ok(Self { path, me, excused: Mutex::new(excused), writing: Mutex::new(()) })
    }

    /// Writes a verdict; durable when it returns.
    pub(crate) fn write(&self, verdict: &Verdict) -> io::Result<()> {
        let mut file = OpenOptions::new().append(true).create(true).open(&self.path)?;
        file.write_all(&encode_small(Kind::VERDICT, verdict))?;
        file.sync_all()?;
        if let Some(parent) = self.path.parent() {
            File::open(parent)?.sync_all()?;
        }
        if verdict.wrong != self.me {
            let mut excused = self.excused.lock().unwrap_or_else(PoisonError::into_inner);
            excused.insert((verdict.entry.index, verdict.entry.term));
        }
        Ok(())
    }

    /// True when the attestation in that entry is known to be wrong.
    pub(crate) fn excuses(&self, entry: Position) -> bool {
        let excused = self.excused.lock().unwrap_or_else(PoisonError::into_inner);
        excused.contains(&(entry.index, entry.term))
    }

    /// Writes a text for operators beside the file of verdicts.
    pub(crate) fn diagnose(&self, name: &str, text: &str) -> Option<PathBuf> {
        // Two may find the same fault at once; whoever reads the file must find a whole one.
        let _one = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.path.parent().unwrap_or(Path::new(".")).join(name);
        let temporary = path.with_extension("tmp");
        let written = File::create(&temporary).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&temporary, &path)
        });
        match written {
            Ok(()) => Some(path),
            Err(error) => {
                tracing::error!(%error, path = %path.display(), "cannot write the diagnosis");
                None
            }
        }
    }
}
