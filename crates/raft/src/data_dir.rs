//! The directory of a member: its lock, and the FORMAT file that says what it holds and whose it
//! is. `start.rs` opens it, `bootstrap.rs` writes the group into it, `offline.rs` peeks.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::error::StartError;
use crate::member::ClusterId;

/// Newest format of the directory that is known here.
pub(crate) const FORMAT: u32 = 1;
const TITLE: &str = "quorate data directory";

/// What the FORMAT file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    pub(crate) version: u32,
    pub(crate) member: u64,
    pub(crate) cluster: Option<ClusterId>,
}

/// A locked directory of one member.
pub(crate) struct DataDir {
    path: PathBuf,
    format: Mutex<Format>,
    _lock: File,
}

/// Where things are in a directory.
pub(crate) fn log_dir(dir: &Path) -> PathBuf {
    dir.join("log")
}

pub(crate) fn mark_file(dir: &Path) -> PathBuf {
    dir.join("high-water")
}

pub(crate) fn snapshot_dir(dir: &Path) -> PathBuf {
    dir.join("snapshots")
}

fn format_file(dir: &Path) -> PathBuf {
    dir.join("FORMAT")
}

impl DataDir {
    /// Makes the directory when it is not there, locks it, and compares whose it is.
    pub(crate) fn open(path: &Path, member: u64) -> Result<Self, StartError> {
        fs::create_dir_all(path).map_err(|source| unwritable(path, source))?;
        let lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path.join("LOCK"))
            .map_err(|source| unwritable(path, source))?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => StartError::Locked { dir: path.to_owned() },
            TryLockError::Error(source) => unwritable(path, source),
        })?;
        let format = match read_format(path)? {
            Some(format) => format,
            None if holds_data(path) => {
                return Err(StartError::Damaged {
                    file: format_file(path),
                    detail: "it is missing, though the directory holds data".into(),
                });
            }
            None => {
                let format = Format { version: FORMAT, member, cluster: None };
                write_format(path, &format).map_err(|source| unwritable(path, source))?;
                format
            }
        };
        if format.member != member {
            let dir = path.to_owned();
            return Err(StartError::OtherMember { dir, found: format.member, wanted: member });
        }
        Ok(Self { path: path.to_owned(), format: Mutex::new(format), _lock: lock })
    }

    /// The directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The number of the member.
    pub(crate) fn member(&self) -> u64 {
        self.format.lock().unwrap_or_else(PoisonError::into_inner).member
    }

    /// The group, once there is one.
    pub(crate) fn cluster(&self) -> Option<ClusterId> {
        self.format.lock().unwrap_or_else(PoisonError::into_inner).cluster.clone()
    }

    /// Makes this a member of a group; durable when it returns. The same group twice is fine.
    pub(crate) fn found(&self, cluster: &ClusterId) -> io::Result<()> {
        let mut format = self.format.lock().unwrap_or_else(PoisonError::into_inner);
        match &format.cluster {
            Some(present) if present == cluster => return Ok(()),
            Some(present) => {
                return Err(io::Error::other(format!("it belongs to group {present}")));
            }
            None => {}
        }
        let founded = Format { cluster: Some(cluster.clone()), ..format.clone() };
        write_format(&self.path, &founded)?;
        *format = founded;
        Ok(())
    }
}

/// Reads the FORMAT file without a lock. `None` when it is not there.
pub(crate) fn read_format(dir: &Path) -> Result<Option<Format>, StartError> {
    let file = format_file(dir);
    let text = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) if source.kind() == io::ErrorKind::InvalidData => {
            return Err(StartError::Damaged { file, detail: "it is not a text".into() });
        }
        Err(source) => return Err(unwritable(dir, source)),
    };
    parse_format(&file, &text).map(Some)
}

fn parse_format(file: &Path, text: &str) -> Result<Format, StartError> {
    let damaged =
        |detail: &str| StartError::Damaged { file: file.to_owned(), detail: detail.to_owned() };
    let mut lines = text.lines();
    if lines.next() != Some(TITLE) {
        return Err(damaged("it does not begin as it should"));
    }
    let mut field = |name: &str| {
        lines
            .next()
            .and_then(|line| line.strip_prefix(name))
            .map(|value| value.trim().to_owned())
            .ok_or_else(|| damaged(&format!("it does not say its {name}")))
    };
    let version: u32 =
        field("format")?.parse().map_err(|_| damaged("its format is not a number"))?;
    if version > FORMAT {
        return Err(StartError::NewerFormat {
            file: file.to_owned(),
            found: version,
            known: FORMAT,
        });
    }
    let member = field("member")?.parse().map_err(|_| damaged("its member is not a number"))?;
    let cluster = match field("cluster")?.as_str() {
        "none" => None,
        text => Some(ClusterId::parse(text).ok_or_else(|| damaged("its cluster is not an id"))?),
    };
    let sum = field("checksum")?;
    let format = Format { version, member, cluster };
    if sum != checksum(&body(&format)) {
        return Err(damaged("the checksum does not hold"));
    }
    Ok(format)
}

fn body(format: &Format) -> String {
    let cluster = format.cluster.as_ref().map_or("none", ClusterId::as_str);
    format!("{TITLE}\nformat {}\nmember {}\ncluster {cluster}\n", format.version, format.member)
}

fn checksum(text: &str) -> String {
    format!("{:08x}", crc32fast::hash(text.as_bytes()))
}

fn write_format(dir: &Path, format: &Format) -> io::Result<()> {
    let text = body(format);
    let temporary = dir.join("FORMAT.tmp");
    let mut file = File::create(&temporary)?;
    file.write_all(format!("{text}checksum {}\n", checksum(&text)).as_bytes())?;
    file.sync_all()?;
    fs::rename(&temporary, format_file(dir))?;
    File::open(dir)?.sync_all()?;
    if let Some(parent) = dir.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        File::open(parent)?.sync_all()?;
    }
    Ok(())
}

fn holds_data(dir: &Path) -> bool {
    log_dir(dir).exists() || mark_file(dir).exists()
}

fn unwritable(dir: &Path, source: io::Error) -> StartError {
    match source.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            StartError::ReadOnly { dir: dir.to_owned(), source }
        }
        _ => StartError::Io { what: format!("cannot use {}", dir.display()), source },
    }
}

/// True while another process holds the lock of a directory.
pub(crate) fn is_locked(dir: &Path) -> bool {
    let Ok(lock) = File::open(dir.join("LOCK")) else { return false };
    matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock))
}
