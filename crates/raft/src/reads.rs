//! Linearizable reads: a quorum confirms that the leader still leads, and that round serves all
//! readers who came before it began. Leases are never used: clocks may lie.

use std::sync::{Arc, Weak};
use std::time::Duration;

use openraft::error::{LinearizableReadError, RaftError};
use openraft::{LinearizerOption, ReadPolicy};
use proto::raft::v1::ReadIndexRequest;
use tokio::sync::{mpsc, oneshot};

use crate::error::ReadError;
use crate::peers::Purpose;
use crate::replica::Replica;

const QUEUE: usize = 65_536;
const ASK_DEADLINE: Duration = Duration::from_millis(1000);
const CONFIRM_DEADLINE: Duration = Duration::from_millis(800);
const AGAIN: Duration = Duration::from_millis(20);
const REMOTE_DEADLINE: Duration = Duration::from_millis(1500);

type Answer = Result<u64, ReadError>;

/// Readers that wait for the next round.
pub(crate) struct Rounds {
    readers: mpsc::Sender<oneshot::Sender<Answer>>,
}

/// Whose rounds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// This member confirms that it leads.
    Local,
    /// This member asks the leader.
    Remote,
}

impl Rounds {
    /// Starts the task that runs one round after the other.
    pub(crate) fn start(replica: &Arc<Replica>, scope: Scope) -> Self {
        let (readers, queue) = mpsc::channel(QUEUE);
        tokio::spawn(run(Arc::downgrade(replica), scope, queue));
        Self { readers }
    }

    /// Joins the next round.
    pub(crate) async fn join(&self) -> Answer {
        let (reader, answer) = oneshot::channel();
        self.readers.try_send(reader).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => ReadError::Timeout,
            mpsc::error::TrySendError::Closed(_) => ReadError::Stopped,
        })?;
        answer.await.unwrap_or(Err(ReadError::Stopped))
    }
}

async fn run(
    replica: Weak<Replica>,
    scope: Scope,
    mut queue: mpsc::Receiver<oneshot::Sender<Answer>>,
) {
    let mut readers = Vec::new();
    while queue.recv_many(&mut readers, QUEUE).await > 0 {
        let Some(replica) = replica.upgrade() else { return };
        let answer = match scope {
            Scope::Local => confirm(&replica).await,
            Scope::Remote => ask(&replica).await,
        };
        replica.meters.read_rounds.add(1);
        replica.meters.reads.add(u64::try_from(readers.len()).unwrap_or(0));
        for reader in readers.drain(..) {
            let _ = reader.send(answer.clone());
        }
    }
}

/// Confirms by a quorum that this member leads.
async fn confirm(replica: &Replica) -> Answer {
    let raft = replica.raft().ok_or(ReadError::NoLeader)?;
    let option = LinearizerOption::from(ReadPolicy::ReadIndex).with_wait_timeout(CONFIRM_DEADLINE);
    match raft.get_read_log_id(option).await {
        Ok((at, _)) => Ok(at.index()),
        Err(RaftError::APIError(LinearizableReadError::ForwardToLeader(_))) => {
            Err(ReadError::NoLeader)
        }
        Err(RaftError::APIError(LinearizableReadError::QuorumNotEnough(_))) => {
            Err(ReadError::Timeout)
        }
        Err(RaftError::Fatal(_)) => Err(ReadError::Stopped),
    }
}

/// Asks the leader; while it changes, for a while.
async fn ask(replica: &Replica) -> Answer {
    let asked = async {
        loop {
            match replica.leader() {
                Some(leader) if leader.member == replica.me.member => {
                    if let Ok(index) = confirm(replica).await {
                        return index;
                    }
                }
                Some(leader) => {
                    let header = Some(replica.peers.header(leader.member));
                    if let Ok(mut client) = replica.peers.client(&leader, Purpose::Control) {
                        let call = client.read_index(ReadIndexRequest { header });
                        let answer = replica.peers.call(leader.member, ASK_DEADLINE, call).await;
                        if let Ok(answer) = answer {
                            return answer.index;
                        }
                    }
                }
                None => {}
            }
            tokio::time::sleep(AGAIN).await;
        }
    };
    let known = replica.leader().is_some();
    let failed = if known { ReadError::Timeout } else { ReadError::NoLeader };
    tokio::time::timeout(REMOTE_DEADLINE, asked).await.map_err(|_| failed)
}

/// An index that was committed when this was called; see `Handle::read_index`.
pub(crate) async fn read_index(replica: &Replica) -> Answer {
    let leads = replica.leader().is_some_and(|leader| leader.member == replica.me.member);
    if let Some(rounds) = replica.local_reads.get().filter(|_| leads)
        && let Ok(index) = rounds.join().await
    {
        return Ok(index);
    }
    replica.remote_reads.get().ok_or(ReadError::NoLeader)?.join().await
}

/// The same for another member: this one must lead.
pub(crate) async fn leader_index(replica: &Replica) -> Answer {
    replica.local_reads.get().ok_or(ReadError::NoLeader)?.join().await
}
