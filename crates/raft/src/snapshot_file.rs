//! One snapshot file: a head, framed sections compressed with zstd, and a foot with the counts and
//! the checksum of everything before it. `snapshot_store.rs` names, keeps and deletes files.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::log::record::{self, HEADER, Kind, RecordError, decode_small, encode_small};
use crate::machine::{RestoreError, SectionReader, SectionWriter, SnapshotError};
use crate::status::SnapshotInfo;
use crate::wire::MetaRecord;

const LEVEL: i32 = 1;
/// Largest section before compression.
const SECTION_MAX: usize = 64 << 20;
const STORED_MAX: usize = SECTION_MAX + (SECTION_MAX >> 4);
const HEAD_MAX: usize = 1 << 20;
const PREFIX: usize = 6;

/// The head of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    pub(crate) cluster: String,
    pub(crate) meta: MetaRecord,
    pub(crate) digest: [u8; 16],
    pub(crate) witness: [u8; 16],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Foot {
    sections: u64,
    raw_bytes: u64,
    file_bytes: u64,
    checksum: u32,
}

/// A snapshot file that was verified. It stays readable when its name is gone.
#[derive(Clone, Debug)]
pub(crate) struct SnapshotFile {
    pub(crate) info: SnapshotInfo,
    pub(crate) head: Head,
    file: Arc<File>,
}

impl SnapshotFile {
    /// Opens a file and compares every checksum in it.
    pub(crate) fn open(path: &Path) -> Result<Self, RestoreError> {
        let file = Arc::new(File::open(path)?);
        let mut sections = Sections::new(Arc::clone(&file))?;
        while sections.stored()?.is_some() {}
        let head = sections.head.clone();
        let last = head.meta.last;
        let info = SnapshotInfo {
            index: last.map_or(0, |last| last.index),
            term: last.map_or(0, |last| last.term),
            path: path.to_owned(),
            bytes: file.metadata()?.len(),
            digest: head.digest,
        };
        Ok(Self { info, head, file })
    }

    /// The same file under another name.
    pub(crate) fn renamed(mut self, path: PathBuf) -> Self {
        self.info.path = path;
        self
    }

    /// Reads the sections from the start.
    pub(crate) fn sections(&self) -> Result<Sections, RestoreError> {
        Sections::new(Arc::clone(&self.file))
    }

    /// Reads a piece of the file; shorter than asked only at its end.
    pub(crate) fn piece(&self, offset: u64, max: usize) -> io::Result<Vec<u8>> {
        let mut piece = Vec::with_capacity(max);
        let limit = u64::try_from(max).unwrap_or(u64::MAX);
        FileFrom { file: Arc::clone(&self.file), at: offset }
            .take(limit)
            .read_to_end(&mut piece)?;
        Ok(piece)
    }
}

fn damaged(what: impl Into<String>) -> RestoreError {
    RestoreError::Damaged(what.into())
}

impl From<RecordError> for RestoreError {
    fn from(error: RecordError) -> Self {
        Self::Damaged(error.to_string())
    }
}

/// Reads a shared file from a place of its own.
struct FileFrom {
    file: Arc<File>,
    at: u64,
}

impl Read for FileFrom {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(out, self.at)?;
        self.at = self.at.saturating_add(u64::try_from(read).unwrap_or(0));
        Ok(read)
    }
}

/// The sections of a file, one after the other.
pub(crate) struct Sections {
    pub(crate) head: Head,
    from: BufReader<FileFrom>,
    sum: crc32fast::Hasher,
    counted: Foot,
    ended: bool,
}

impl Sections {
    fn new(file: Arc<File>) -> Result<Self, RestoreError> {
        let mut from = BufReader::with_capacity(1 << 18, FileFrom { file, at: 0 });
        let bytes = next_record(&mut from, Kind::SNAPSHOT_HEAD, HEAD_MAX)?;
        let head = decode_small::<Head>(Kind::SNAPSHOT_HEAD, &bytes)?;
        let mut sum = crc32fast::Hasher::new();
        sum.update(&bytes);
        let file_bytes = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let counted = Foot { sections: 0, raw_bytes: 0, file_bytes, checksum: 0 };
        Ok(Self { head, from, sum, counted, ended: false })
    }

    /// The next section as it is stored: kind, size before compression, bytes. At the end the
    /// foot is compared.
    fn stored(&mut self) -> Result<Option<(u16, usize, Vec<u8>)>, RestoreError> {
        if self.ended {
            return Ok(None);
        }
        let mut start = [0_u8; HEADER];
        self.from.read_exact(&mut start)?;
        if record::head(Kind::SNAPSHOT_FOOT, HEAD_MAX, &start).is_ok() {
            let bytes = rest_of(&mut self.from, start, Kind::SNAPSHOT_FOOT, HEAD_MAX)?;
            self.compare(decode_small::<Foot>(Kind::SNAPSHOT_FOOT, &bytes)?)?;
            self.ended = true;
            return Ok(None);
        }
        let bytes = rest_of(&mut self.from, start, Kind::SNAPSHOT_SECTION, STORED_MAX)?;
        let payload = record::open(Kind::SNAPSHOT_SECTION, STORED_MAX, &bytes)?;
        let (prefix, stored) =
            payload.split_at_checked(PREFIX).ok_or_else(|| damaged("a section is too short"))?;
        let (kind, size) = match *prefix {
            [k0, k1, s0, s1, s2, s3] => {
                (u16::from_le_bytes([k0, k1]), u32::from_le_bytes([s0, s1, s2, s3]))
            }
            _ => return Err(damaged("a section is too short")),
        };
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size > SECTION_MAX {
            return Err(damaged(format!("a section of {size} bytes")));
        }
        self.sum.update(&bytes);
        self.counted.sections += 1;
        self.counted.raw_bytes += u64::try_from(size).unwrap_or(0);
        self.counted.file_bytes += u64::try_from(bytes.len()).unwrap_or(0);
        Ok(Some((kind, size, stored.to_vec())))
    }

    fn compare(&mut self, foot: Foot) -> Result<(), RestoreError> {
        let checksum = self.sum.clone().finalize();
        if foot != (Foot { checksum, ..self.counted }) {
            return Err(damaged("the foot does not match the file"));
        }
        let mut behind = [0_u8; 1];
        if self.from.read(&mut behind)? > 0 {
            return Err(damaged("bytes behind the foot"));
        }
        Ok(())
    }
}

impl SectionReader for Sections {
    fn section(&mut self) -> Result<Option<(u16, Vec<u8>)>, RestoreError> {
        let Some((kind, size, stored)) = self.stored()? else { return Ok(None) };
        let bytes = zstd::bulk::decompress(&stored, size)
            .map_err(|error| damaged(format!("a section does not unpack: {error}")))?;
        if bytes.len() != size {
            return Err(damaged("a section has another size than it says"));
        }
        Ok(Some((kind, bytes)))
    }
}

fn next_record(from: &mut impl Read, kind: Kind, max: usize) -> Result<Vec<u8>, RestoreError> {
    let mut start = [0_u8; HEADER];
    from.read_exact(&mut start)?;
    rest_of(from, start, kind, max)
}

fn rest_of(
    from: &mut impl Read,
    start: [u8; HEADER],
    kind: Kind,
    max: usize,
) -> Result<Vec<u8>, RestoreError> {
    let length = record::head(kind, max, &start)?.length;
    let mut bytes = start.to_vec();
    let limit = u64::try_from(length).unwrap_or(u64::MAX);
    if from.take(limit).read_to_end(&mut bytes)? != length {
        return Err(damaged("it ends too early"));
    }
    Ok(bytes)
}

/// Writes one file. Nothing is durable before `finish` returns.
pub(crate) struct FileWriter {
    out: BufWriter<File>,
    sum: crc32fast::Hasher,
    counted: Foot,
}

impl FileWriter {
    pub(crate) fn create(path: &Path, head: &Head) -> Result<Self, SnapshotError> {
        let out = BufWriter::with_capacity(1 << 18, File::create(path)?);
        let counted = Foot { sections: 0, raw_bytes: 0, file_bytes: 0, checksum: 0 };
        let mut writer = Self { out, sum: crc32fast::Hasher::new(), counted };
        writer.put(&encode_small(Kind::SNAPSHOT_HEAD, head))?;
        Ok(writer)
    }

    /// Ends the file and makes it durable.
    pub(crate) fn finish(mut self) -> Result<(), SnapshotError> {
        let foot = Foot { checksum: self.sum.clone().finalize(), ..self.counted };
        self.out.write_all(&encode_small(Kind::SNAPSHOT_FOOT, &foot))?;
        let file = self.out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        self.sum.update(bytes);
        self.counted.file_bytes += u64::try_from(bytes.len()).unwrap_or(0);
        self.out.write_all(bytes)?;
        Ok(())
    }
}

impl SectionWriter for FileWriter {
    fn section(&mut self, kind: u16, bytes: &[u8]) -> Result<(), SnapshotError> {
        let size = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        if bytes.len() > SECTION_MAX {
            return Err(SnapshotError::TooLarge(bytes.len()));
        }
        let packed = zstd::bulk::compress(bytes, LEVEL)?;
        let mut section = record::begin(PREFIX + packed.len());
        section.extend_from_slice(&kind.to_le_bytes());
        section.extend_from_slice(&size.to_le_bytes());
        section.extend_from_slice(&packed);
        self.put(&record::seal(Kind::SNAPSHOT_SECTION, section))?;
        self.counted.sections += 1;
        self.counted.raw_bytes += u64::from(size);
        Ok(())
    }
}
