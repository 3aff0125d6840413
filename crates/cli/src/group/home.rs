//! The directory of a group on this machine: marked as ours, used by one process at a time, emptied
//! unless it is to be kept. Remembers the ports, which are part of the membership.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::ports;
use crate::exit::{Code, Failure};

const MARKER: &str = "quorate-group.json";

/// The directory, locked while it lives.
#[derive(Debug)]
pub(crate) struct Home {
    directory: PathBuf,
    marker: File,
    keep: bool,
    ports: Vec<u16>,
}

#[derive(Serialize, Deserialize)]
struct Marker {
    ports: Vec<u16>,
}

impl Home {
    /// Takes `directory`: made, or emptied, or with `keep` taken as it is. One that holds anything
    /// else is refused.
    pub(crate) fn take(directory: &Path, keep: bool, ports: usize) -> Result<Self, Failure> {
        let broken = |error: std::io::Error| {
            Failure::failed(format!("directory {}: {error}", directory.display()))
        };
        std::fs::create_dir_all(directory).map_err(broken)?;
        let directory = directory.canonicalize().map_err(broken)?;
        let marker_path = directory.join(MARKER);
        let empty = directory.read_dir().map_err(broken)?.next().is_none();
        if !empty && !marker_path.exists() {
            let reason = format!(
                "directory {} holds something else: give another one with --data-dir",
                directory.display()
            );
            return Err(Failure::new(Code::Conflict, reason));
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut marker = options.open(&marker_path).map_err(broken)?;
        if flock(&marker, FlockOperation::NonBlockingLockExclusive).is_err() {
            let reason = format!(
                "directory {} is used by another group: stop it, or give another --data-dir",
                directory.display()
            );
            return Err(Failure::new(Code::Conflict, reason));
        }
        let mut text = String::new();
        marker.read_to_string(&mut text).map_err(broken)?;
        let known = serde_json::from_str::<Marker>(&text).ok().filter(|_| keep);
        let ports = match known {
            Some(marker) if marker.ports.len() == ports => marker.ports,
            _ => {
                empty_out(&directory).map_err(broken)?;
                ports::free(ports)?
            }
        };
        let text = serde_json::to_string(&Marker { ports: ports.clone() }).unwrap_or_default();
        marker.set_len(0).and_then(|()| marker.rewind()).map_err(broken)?;
        marker.write_all(text.as_bytes()).map_err(broken)?;
        Ok(Self { directory, marker, keep, ports })
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// Removes everything unless it is kept. Call it when nothing runs any more.
    pub(crate) fn leave(self) {
        if !self.keep && empty_out(&self.directory).is_ok() {
            // What stays behind would be taken over by the next run: it is marked as ours.
            let _left = std::fs::remove_file(self.directory.join(MARKER))
                .and_then(|()| std::fs::remove_dir(&self.directory));
        }
        drop(self.marker);
    }
}

fn empty_out(directory: &Path) -> std::io::Result<()> {
    for entry in directory.read_dir()? {
        let entry = entry?;
        if entry.file_name() == MARKER {
            continue;
        }
        if entry.file_type()?.is_dir() {
            std::fs::remove_dir_all(entry.path())?;
        } else {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
