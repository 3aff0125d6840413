//! Event files of this member: the history beyond what memory holds (ruling 16). Derived,
//! size-capped, not synced: they may be cut or deleted at will. Written by one thread behind the
//! history, never by apply.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use state::epoch::Revision;
use state::event::EventRecord;
use tracing::warn;

use crate::history::Recorded;
use crate::limits;

/// Longest record that is read back, in bytes.
const RECORD_BYTES_MAX: u32 = 64 * 1024 * 1024;

#[derive(Debug, Clone)]
struct Segment {
    first: Revision,
    path: PathBuf,
    bytes: u64,
}

#[derive(Debug, Default)]
struct Inner {
    segments: VecDeque<Segment>,
    writer: Option<BufWriter<File>>,
    last: Option<Revision>,
}

/// The event files in one directory.
#[derive(Debug)]
pub struct HistoryFiles {
    dir: PathBuf,
    inner: Mutex<Inner>,
}

impl HistoryFiles {
    /// Opens the files in `dir`, which is created if missing. What cannot be read is left out.
    ///
    /// # Errors
    /// When the directory cannot be created or listed.
    pub fn open(dir: PathBuf) -> io::Result<Self> {
        fs::create_dir_all(&dir)?;
        let mut segments: Vec<Segment> = Vec::new();
        for entry in fs::read_dir(&dir)? {
            let path = entry?.path();
            let name = path.file_stem().and_then(|stem| stem.to_str());
            let first = name.and_then(|name| name.strip_prefix("events-")?.parse().ok());
            if let Some(first) = first.map(Revision) {
                let bytes = fs::metadata(&path)?.len();
                segments.push(Segment { first, path, bytes });
            }
        }
        segments.sort_unstable_by_key(|segment| segment.first);
        let last = segments
            .last()
            .and_then(|last| read_segment(&last.path, Revision::default(), usize::MAX).pop())
            .map(|recorded| recorded.record.revision);
        let inner = Inner { segments: segments.into(), writer: None, last };
        Ok(Self { dir, inner: Mutex::new(inner) })
    }

    fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last revision in the files.
    #[must_use]
    pub fn last(&self) -> Option<Revision> {
        self.inner().last
    }

    /// Adds records; those already there are passed over, and a gap drops what was kept before it.
    ///
    /// # Errors
    /// When a file cannot be written. What was kept stays readable.
    pub fn append(&self, records: &[Recorded]) -> io::Result<()> {
        let mut inner = self.inner();
        for recorded in records {
            let revision = recorded.record.revision;
            match inner.last {
                Some(last) if revision <= last => continue,
                Some(last) if last.next() != Some(revision) => self.clear(&mut inner)?,
                _ => {}
            }
            self.write(&mut inner, recorded)?;
            inner.last = Some(revision);
        }
        if let Some(writer) = &mut inner.writer {
            writer.flush()?;
        }
        Ok(())
    }

    fn clear(&self, inner: &mut Inner) -> io::Result<()> {
        inner.writer = None;
        while let Some(segment) = inner.segments.pop_front() {
            fs::remove_file(segment.path)?;
        }
        Ok(())
    }

    fn write(&self, inner: &mut Inner, recorded: &Recorded) -> io::Result<()> {
        let full =
            inner.segments.back().is_none_or(|last| last.bytes >= limits::HISTORY_FILE_BYTES_MAX);
        if full || inner.writer.is_none() {
            self.begin_segment(inner, recorded.record.revision)?;
        }
        let body = state::codec::encode_record(&recorded.record);
        let Ok(length) = u32::try_from(body.len()) else { return Ok(()) };
        let Some(writer) = &mut inner.writer else { return Ok(()) };
        writer.write_all(&length.to_le_bytes())?;
        writer.write_all(&recorded.index.to_le_bytes())?;
        writer.write_all(&body)?;
        if let Some(last) = inner.segments.back_mut() {
            last.bytes += 12 + u64::from(length);
        }
        Ok(())
    }

    /// A new file for each run and each full one: an old file is never appended to, so that a torn
    /// end of it stays an end.
    fn begin_segment(&self, inner: &mut Inner, first: Revision) -> io::Result<()> {
        inner.writer = None;
        let path = self.dir.join(format!("events-{:020}.bin", first.0));
        let file = OpenOptions::new().create(true).write(true).truncate(true).open(&path)?;
        inner.segments.retain(|segment| segment.path != path);
        inner.segments.push_back(Segment { first, path, bytes: 0 });
        inner.writer = Some(BufWriter::new(file));
        while inner.segments.len() > limits::HISTORY_FILES_MAX {
            if let Some(oldest) = inner.segments.pop_front() {
                fs::remove_file(oldest.path)?;
            }
        }
        Ok(())
    }

    /// First revision in the files.
    #[must_use]
    pub fn oldest(&self) -> Option<Revision> {
        self.inner().segments.front().map(|first| first.first)
    }

    /// Up to `most` records from `from` on, oldest first. Blocks on the disk.
    #[must_use]
    pub fn read(&self, from: Revision, most: usize) -> Vec<Recorded> {
        let segments: Vec<Segment> = self.inner().segments.iter().cloned().collect();
        let start = segments.partition_point(|segment| segment.first <= from).saturating_sub(1);
        let mut found = Vec::new();
        for segment in segments.iter().skip(start) {
            if found.len() >= most {
                break;
            }
            found.extend(read_segment(&segment.path, from, most - found.len()));
        }
        found
    }

    /// The newest `most` records that `wanted` accepts, newest first. Blocks on the disk.
    #[must_use]
    pub fn newest(&self, most: usize, wanted: impl Fn(&EventRecord) -> bool) -> Vec<Recorded> {
        let segments: Vec<Segment> = self.inner().segments.iter().cloned().collect();
        let mut found = Vec::new();
        for segment in segments.iter().rev() {
            let records = read_segment(&segment.path, Revision::default(), usize::MAX);
            found.extend(records.into_iter().rev().filter(|entry| wanted(&entry.record)));
            if found.len() >= most {
                break;
            }
        }
        found.truncate(most);
        found
    }
}

/// Records of one file; stops at the first one that cannot be read, which is the end of an
/// unfinished write.
fn read_segment(path: &Path, from: Revision, most: usize) -> Vec<Recorded> {
    let mut found = Vec::new();
    let Ok(file) = File::open(path) else { return found };
    let mut reader = BufReader::new(file);
    while found.len() < most {
        match read_one(&mut reader) {
            Ok(Some(recorded)) if recorded.record.revision >= from => found.push(recorded),
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(error) => {
                warn!(file = %path.display(), %error, "the rest of an event file is passed over");
                break;
            }
        }
    }
    found
}

fn read_one(reader: &mut impl Read) -> io::Result<Option<Recorded>> {
    let (mut length, mut index) = ([0; 4], [0; 8]);
    match reader.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    reader.read_exact(&mut index)?;
    let length = u32::from_le_bytes(length);
    if length > RECORD_BYTES_MAX {
        return Err(io::Error::other(format!("a record of {length} bytes")));
    }
    let mut body = Vec::new();
    reader.take(u64::from(length)).read_to_end(&mut body)?;
    let record = state::codec::decode_record(&body).map_err(io::Error::other)?;
    Ok(Some(Recorded { index: u64::from_le_bytes(index), record: Arc::new(record) }))
}
