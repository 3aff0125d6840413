//! What streams that only a leader serves ask of the leadership: whether a quorum still answers,
//! and why the stream has to end. Used by the streams of workers and of cleaners.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use tonic::Status;

use super::{Surface, status};
use crate::leader::Reign;

/// How long an answer waits for a quorum that is late, and how often it looks.
const FRESH_WAIT: Duration = Duration::from_secs(1);
const FRESH_LOOK: Duration = Duration::from_millis(20);

impl Surface {
    /// Whether a quorum answered not long ago: a leader that it no longer answers must not keep a
    /// node confident, nor a cleaner waiting (ruling 7). Waits a little for one: an answer that is
    /// dropped costs the other side its stream.
    pub async fn quorum_is_fresh(&self, reign: &Reign) -> bool {
        let fresh = || self.raft.quorum_age().is_some_and(|age| age < self.quorum_fresh);
        let until = Instant::now() + FRESH_WAIT;
        while !fresh() {
            if Instant::now() >= until || reign.over.is_cancelled() {
                return false;
            }
            sleep(FRESH_LOOK).await;
        }
        true
    }

    /// Why a stream that only a leader serves has to end.
    pub fn leadership_over(&self) -> Status {
        if self.stop.is_cancelled() {
            return status::stopping();
        }
        match &*self.raft.leadership().borrow() {
            raft::Leadership::Follower { leader, .. } => status::not_leader(Some(leader)),
            _ => status::not_leader(None),
        }
    }
}
