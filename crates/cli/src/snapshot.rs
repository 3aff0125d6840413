//! `snapshot ...`: take and save one online, look into one offline. Offline verbs only read.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use client::proto::TakeSnapshotRequest;
use serde::Serialize;

use crate::args::Global;
use crate::exit::{Code, Failure};
use crate::offline;
use crate::operator::connect;
use crate::output::{Output, pairs};
use crate::progress::Progress;
use crate::render;

/// Commands about snapshots.
#[derive(Debug, Subcommand)]
pub(crate) enum Snapshot {
    /// Build one now on the coordinator asked first.
    Take,
    /// Copy the newest one of a coordinator into a file.
    Save {
        /// The file; must not exist.
        file: PathBuf,
    },
    /// Print every record of a snapshot file in words.
    Inspect {
        /// The file.
        file: PathBuf,
    },
    /// Check every byte of a snapshot file, and that the state in it holds all invariants.
    Verify {
        /// The file.
        file: PathBuf,
    },
}

#[derive(Serialize)]
struct Taken {
    index: u64,
    term: u64,
    file: String,
    bytes: u64,
    digest: String,
}

#[derive(Serialize)]
struct Saved {
    file: String,
    index: u64,
    bytes: u64,
}

/// Runs one of them.
pub(crate) async fn run(
    command: Snapshot,
    global: &Global,
    output: &Output,
) -> Result<(), Failure> {
    match command {
        Snapshot::Take => take(global, output).await,
        Snapshot::Save { file } => save(&file, global, output).await,
        Snapshot::Inspect { file } => offline::snapshot_inspect(&file, output),
        Snapshot::Verify { file } => offline::snapshot_verify(&file, output),
    }
}

async fn take(global: &Global, output: &Output) -> Result<(), Failure> {
    let progress = Progress::spinner(output, "building a snapshot");
    let operator = connect(global)?;
    let answer = match global.coordinators.first() {
        Some(address) => operator.pinned(address)?.take_snapshot(TakeSnapshotRequest {}).await?,
        None => operator.take_snapshot(TakeSnapshotRequest {}).await?,
    };
    drop(progress);
    let taken = Taken {
        index: answer.index,
        term: answer.term,
        file: answer.file,
        bytes: answer.bytes,
        digest: render::hex(&answer.digest),
    };
    output.show(&taken, |taken| {
        pairs([
            ("index", taken.index.to_string()),
            ("term", taken.term.to_string()),
            ("file", taken.file.clone()),
            ("size", render::bytes(taken.bytes)),
            ("digest", taken.digest.clone()),
        ])
    })
}

async fn save(file: &Path, global: &Global, output: &Output) -> Result<(), Failure> {
    let broken = |error: std::io::Error| {
        Failure::failed(format!("file {}: cannot be written: {error}", file.display()))
    };
    if file.exists() {
        let reason = format!("file {} exists: give a new name", file.display());
        return Err(Failure::new(Code::Conflict, reason));
    }
    let progress = Progress::bar(output, "saving", 0);
    let mut stream = connect(global)?.save_snapshot().await?;
    let mut partial_name = file.as_os_str().to_owned();
    partial_name.push(".partial");
    let partial = PathBuf::from(partial_name);
    let mut out = std::fs::File::create(&partial).map_err(broken)?;
    let (mut index, mut bytes, mut total) = (0, 0, 0);
    while let Some(piece) = stream.next().await? {
        out.write_all(&piece.chunk).map_err(broken)?;
        bytes += u64::try_from(piece.chunk.len()).unwrap_or(0);
        (index, total) = (piece.index, piece.total_bytes);
        progress.length(total);
        progress.set(bytes);
    }
    drop(progress);
    if bytes != total || bytes == 0 {
        let reason = format!("the stream ended after {bytes} of {total} bytes: save it again");
        return Err(Failure::new(Code::Unavailable, reason));
    }
    out.sync_all().map_err(broken)?;
    std::fs::rename(&partial, file).map_err(broken)?;
    let saved = Saved { file: file.display().to_string(), index, bytes };
    output.show(&saved, |saved| {
        format!("saved {} up to index {}, {}", saved.file, saved.index, render::bytes(saved.bytes))
    })
}
