//! Small tasks of a running member: one notices that it has caught up, one asks for a snapshot when
//! the log has grown by bytes, one takes the member out of the group when it must stop.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::replica::Replica;
use crate::status::Leadership;
use crate::{operate, reads};

const ASK_AGAIN: Duration = Duration::from_millis(100);
const HAND_OVER: Duration = Duration::from_millis(500);
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Reads once through the leader: then all that was committed at the start is applied.
pub(crate) async fn catch_up(replica: Arc<Replica>) {
    let mut leadership = replica.leadership.subscribe();
    let caught_up = async {
        loop {
            let known =
                leadership.wait_for(|now| !matches!(now, Leadership::Unknown { .. })).await.is_ok();
            if !known {
                return false;
            }
            if let Ok(index) = reads::read_index(&replica).await {
                let mut applied = replica.sight.applied.subscribe();
                let reached = applied.wait_for(|at| at.is_some_and(|at| at.index >= index)).await;
                return reached.is_ok();
            }
            tokio::time::sleep(ASK_AGAIN).await;
        }
    };
    tokio::select! {
        biased;
        () = replica.tasks_end.cancelled() => {}
        reached = caught_up => replica.caught_up.store(reached, Ordering::Relaxed),
    }
}

/// Asks for a snapshot after enough bytes; openraft itself counts entries only.
pub(crate) async fn grow(replica: Arc<Replica>) {
    let mut applied = replica.sight.applied.subscribe();
    let limit = replica.options.snapshot_every_bytes;
    loop {
        tokio::select! {
            biased;
            () = replica.tasks_end.cancelled() => return,
            changed = applied.changed() => if changed.is_err() { return },
        }
        if replica.log.grown_bytes() >= limit
            && let Some(raft) = replica.raft()
        {
            replica.log.forget_growth();
            if raft.trigger().snapshot().await.is_err() {
                return;
            }
        }
        // Nothing here is urgent, and a busy log should not wake this for every batch.
        tokio::select! {
            biased;
            () = replica.tasks_end.cancelled() => return,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}

/// Waits for a fault, then hands over and takes the core out of the group.
pub(crate) async fn fault(replica: Arc<Replica>) {
    let mut fault = replica.sight.fault.subscribe();
    let raised = fault.wait_for(Option::is_some);
    tokio::select! {
        biased;
        () = replica.tasks_end.cancelled() => return,
        raised = raised => if raised.is_err() { return },
    }
    let _ = operate::transfer(&replica, None, HAND_OVER).await;
    replica.stopping.store(true, Ordering::Relaxed);
    if let Some(raft) = replica.raft() {
        let _ = raft.shutdown().await;
    }
}
