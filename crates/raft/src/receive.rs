//! Receives a snapshot from a leader: pieces into a temporary file, verified as a whole, and only
//! then handed to raft. One at a time. Called by `service.rs`.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use proto::raft::v1::InstallSnapshotRequest;
use tonic::{Status, Streaming};

use crate::replica::Replica;
use crate::snapshot_file::SnapshotFile;
use crate::state_machine::raft_snapshot;
use crate::types::{Raft, Vote};
use crate::wire::{self, MetaRecord};

const STALL: Duration = Duration::from_secs(30);

/// Takes a whole snapshot and installs it; answers the vote of this member.
pub(crate) async fn receive(
    replica: &Arc<Replica>,
    raft: &Raft,
    first: InstallSnapshotRequest,
    mut inbound: Streaming<InstallSnapshotRequest>,
) -> Result<Vote, Status> {
    let _one = replica
        .receiving
        .try_acquire()
        .map_err(|_| Status::resource_exhausted("another snapshot is being received"))?;
    let vote = wire::decode_ballot(&first.vote)
        .map_err(|error| Status::invalid_argument(error.to_string()))?;
    let meta = wire::decode_meta(&first.meta)
        .map_err(|error| Status::invalid_argument(error.to_string()))?;
    if replica.disk.is_low() {
        return Err(Status::resource_exhausted("the disk is nearly full"));
    }
    let path = replica.snapshots.incoming();
    let mut file = File::create(&path).map_err(|error| internal(&error))?;
    let total = first.total_bytes;
    let mut next = Some(first).filter(|message| !message.chunk.is_empty());
    let mut offset = 0_u64;
    loop {
        let message = match next.take() {
            Some(message) => message,
            None => match tokio::time::timeout(STALL, inbound.message()).await {
                Ok(message) => match message? {
                    Some(message) => message,
                    None => break,
                },
                Err(_) => return Err(Status::deadline_exceeded("the snapshot stalled")),
            },
        };
        if message.offset != offset || crc32fast::hash(&message.chunk) != message.chunk_crc32 {
            return Err(Status::data_loss(format!("a bad piece at offset {offset}")));
        }
        offset = offset.saturating_add(u64::try_from(message.chunk.len()).unwrap_or(u64::MAX));
        if offset > total {
            return Err(Status::invalid_argument("more than was announced"));
        }
        file = tokio::task::spawn_blocking(move || file.write_all(&message.chunk).map(|()| file))
            .await
            .map_err(|error| internal(&error))?
            .map_err(|error| internal(&error))?;
    }
    if offset != total {
        return Err(Status::data_loss(format!("{offset} bytes of {total} came")));
    }
    let opened = tokio::task::spawn_blocking(move || {
        file.sync_all()?;
        SnapshotFile::open(&path)
    });
    let snapshot = opened
        .await
        .map_err(|error| internal(&error))?
        .map_err(|error| Status::data_loss(error.to_string()))?;
    let cluster = replica.dir.cluster().map(|id| id.to_string()).unwrap_or_default();
    if snapshot.head.cluster != cluster || snapshot.head.meta != MetaRecord::of(&meta) {
        return Err(Status::invalid_argument("the file is not the one that was announced"));
    }
    let snapshot = raft_snapshot(snapshot).map_err(|error| internal(&error))?;
    let answer = raft.install_full_snapshot(vote, snapshot).await;
    answer.map(|answer| answer.vote).map_err(|error| Status::unavailable(error.to_string()))
}

fn internal(error: &impl ToString) -> Status {
    Status::internal(error.to_string())
}
