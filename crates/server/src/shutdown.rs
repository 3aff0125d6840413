//! The orderly end: leadership is handed over before anything is closed, so that writers lose
//! milliseconds.

use std::time::Duration;

use raft::Leadership;
use tokio::time::timeout;
use tracing::{info, warn};

/// Longest time for each step.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// Hands leadership to another member, if this one leads and another can.
pub async fn hand_over(raft: &raft::Handle) {
    let leads = matches!(&*raft.leadership().borrow(), Leadership::Leader { .. });
    if !leads {
        return;
    }
    match timeout(PATIENCE, raft.transfer_leader(None)).await {
        Ok(Ok((leader, term))) => info!(leader, term, "leadership handed over"),
        Ok(Err(error)) => warn!(%error, "leadership was not handed over"),
        Err(_) => warn!("leadership was not handed over in time"),
    }
}
