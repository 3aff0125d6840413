//! A worker's view of its session: whether it is certain to be alive, and commits under it.
//! The session itself is kept by engine.rs.
//! Given to `Worker::watch`; used by the worker's own tasks.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::agent::fence::Guard;
use crate::error::Error;
use crate::operator::Operator;
use crate::proto;

/// A consumer that died, on its way to the agent.
#[derive(Debug)]
pub(crate) struct Death {
    pub(crate) node: (u64, u64),
    pub(crate) channel: String,
    pub(crate) term: u64,
    pub(crate) reason: String,
}

/// One session of this worker. It stays of that session: after fencing every check fails.
#[derive(Debug, Clone)]
pub struct SessionHandle {
    pub(crate) node: (u64, u64),
    pub(crate) guard: Arc<Guard>,
    pub(crate) operator: Operator,
    pub(crate) deaths: mpsc::Sender<Death>,
}

impl SessionHandle {
    /// Node id of this session.
    pub fn node_id(&self) -> u64 {
        self.node.0
    }

    /// Epoch of this session.
    pub fn node_epoch(&self) -> u64 {
        self.node.1
    }

    /// Whether the session is certain to be alive now. Reads the clock: right also when this
    /// process was stopped and the agent has not run since.
    pub fn may_commit(&self) -> bool {
        self.time_left().is_some()
    }

    /// How long the session is certain to live without another renewal.
    pub fn time_left(&self) -> Option<Duration> {
        self.guard.left(self.node, Instant::now())
    }

    /// Whom this worker says it is, for stores that check ownership themselves.
    pub fn claim(&self, term: u64) -> proto::OwnerClaim {
        proto::OwnerClaim { node_id: self.node.0, node_epoch: self.node.1, term }
    }

    /// Records positions under the claim. Nothing is sent, and nothing tried again, once the
    /// session is not certain to be alive; `Error::Fenced` says so.
    pub async fn commit_meta(
        &self,
        channel: &str,
        term: u64,
        positions: Bytes,
    ) -> Result<proto::WriteReceipt, Error> {
        let left = self.time_left().ok_or(Error::Fenced)?;
        let deadline = left.min(self.operator.options().deadline);
        let request = proto::CommitMetaRequest {
            write: None,
            name: channel.to_owned(),
            claim: Some(self.claim(term)),
            positions,
        };
        match self.operator.with_deadline(deadline).commit_meta(request).await {
            Ok(answer) => Ok(answer.receipt.unwrap_or_default()),
            Err(_) if !self.may_commit() => Err(Error::Fenced),
            Err(error) => Err(error),
        }
    }

    /// Asks the group whether this session still owns the channel under this term: for stores that
    /// hold what a commit is about. An answer is of the past when it arrives, so such a store must
    /// compare terms by itself, too. `NOT_OWNER`, `DROPPED` and `UNKNOWN_CHANNEL` are final.
    pub async fn check_owner(
        &self,
        channel: &str,
        term: u64,
    ) -> Result<proto::CheckOwnerResponse, Error> {
        let request = proto::CheckOwnerRequest {
            read: Some(proto::ReadOptions::default()),
            name: channel.to_owned(),
            claim: Some(self.claim(term)),
        };
        self.operator.check_owner(request).await
    }

    /// Tells the agent that the consumer of a watched channel died and that nothing of it runs
    /// any more; the channel is placed again.
    pub async fn consumer_died(&self, channel: &str, term: u64, reason: &str) {
        let (node, channel, reason) = (self.node, channel.to_owned(), reason.to_owned());
        // The agent is gone: so is the session, and its end takes the channel away.
        let _ = self.deaths.send(Death { node, channel, term, reason }).await;
    }
}
