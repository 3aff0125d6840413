//! What openraft sends to another member, over the connections of `peers.rs`. Appends go over one
//! stream, everything that must not wait goes over calls of its own, snapshots over a third.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use futures::{Stream, future::BoxFuture};
use openraft::error::{NetworkError, ReplicationClosed, StreamingError, Timeout, Unreachable};
use openraft::network::{RPCOption, RPCTypes, RaftNetworkFactory};
use openraft::raft::{AppendEntriesResponse, SnapshotResponse, TransferLeaderResponse};
use openraft::{OptionalSend, RaftNetworkV2};
use proto::raft::v1 as pb;
use tonic::{Code, Status};

use crate::member::Member;
use crate::peers::{Client, Peers, Purpose};
use crate::snapshot_file::SnapshotFile;
use crate::state_machine::RaftSnapshot;
use crate::types::{
    AppendRequest, AppendResult, RpcError, TransferRequest, TypeConfig, Vote, VoteRequest,
    VoteResponse,
};
use crate::wire;

/// A stream that owes an answer for that long is broken.
const STREAM_STALL: Duration = Duration::from_secs(3);
/// Bytes of a snapshot in one message.
const CHUNK: usize = 1 << 20;
/// A snapshot that makes no progress for that long has failed.
const SNAPSHOT_STALL: Duration = Duration::from_secs(60);
/// Least time for a call, whatever the heartbeat interval asks for.
const CALL_MIN: Duration = Duration::from_millis(50);

/// Makes links to members.
pub(crate) struct Network {
    pub(crate) peers: Arc<Peers>,
}

impl RaftNetworkFactory<TypeConfig> for Network {
    type Network = Link;

    async fn new_client(&mut self, target: u64, node: &Member) -> Link {
        Link::new(Arc::clone(&self.peers), target, node, Purpose::Append)
    }

    async fn new_heartbeat_client(&mut self, target: u64, node: &Member) -> Link {
        Link::new(Arc::clone(&self.peers), target, node, Purpose::Control)
    }

    async fn new_snapshot_client(&mut self, target: u64, node: &Member) -> Link {
        Link::new(Arc::clone(&self.peers), target, node, Purpose::Snapshot)
    }
}

/// What one task of openraft uses to reach one member.
pub(crate) struct Link {
    peers: Arc<Peers>,
    to: Member,
    purpose: Purpose,
}

type ResponseStream<'s> = BoxStream<'s, Result<AppendResult, RpcError>>;

impl Link {
    fn new(peers: Arc<Peers>, target: u64, node: &Member, purpose: Purpose) -> Self {
        Self { peers, to: Member { member: target, ..node.clone() }, purpose }
    }

    fn client(&self, purpose: Purpose) -> Result<Client, RpcError> {
        self.peers.client(&self.to, purpose).map_err(|status| rpc_error(&status))
    }

    async fn call<T>(
        &self,
        option: &RPCOption,
        kind: RPCTypes,
        call: impl Future<Output = Result<tonic::Response<T>, Status>>,
    ) -> Result<T, RpcError> {
        let deadline = option.soft_ttl().max(CALL_MIN);
        let answer = self.peers.call(self.to.member, deadline, call).await;
        answer.map_err(|status| match status.code() {
            Code::DeadlineExceeded => RpcError::Timeout(Timeout {
                action: kind,
                id: self.peers.me(),
                target: self.to.member,
                timeout: deadline,
            }),
            _ => rpc_error(&status),
        })
    }

    async fn heartbeat(
        &self,
        request: &AppendRequest,
        option: &RPCOption,
    ) -> Result<AppendResult, RpcError> {
        let mut client = self.client(Purpose::Control)?;
        let header = Some(self.peers.header(self.to.member));
        let message = pb::AppendRequest { header, record: wire::encode_append(request) };
        let call = client.heartbeat(message);
        let answer = self.call(option, RPCTypes::AppendEntries, call).await?;
        wire::decode_append_result(&answer.record).map_err(|error| network_error(&error))
    }

    async fn ask_vote(
        &self,
        request: &VoteRequest,
        option: &RPCOption,
        only_ask: bool,
    ) -> Result<VoteResponse, RpcError> {
        let mut client = self.client(Purpose::Control)?;
        let header = Some(self.peers.header(self.to.member));
        let message = pb::VoteRequest { header, record: wire::encode_vote(request) };
        let answer = if only_ask {
            self.call(option, RPCTypes::Vote, client.pre_vote(message)).await?
        } else {
            self.call(option, RPCTypes::Vote, client.vote(message)).await?
        };
        wire::decode_vote_reply(&answer.record).map_err(|error| network_error(&error))
    }

    async fn stream<S>(&self, mut input: S) -> Result<ResponseStream<'_>, RpcError>
    where
        S: Stream<Item = AppendRequest> + OptionalSend + Unpin + 'static,
    {
        // The first request is pulled before connecting: openraft backs off only inside it, and
        // a link to a member that is down would otherwise spin.
        let Some(first) = input.next().await else { return Ok(stream::empty().boxed()) };
        let mut client = self.client(Purpose::Append)?;
        let owed = Arc::new(AtomicUsize::new(0));
        let owing = Arc::clone(&owed);
        let mut header = Some(self.peers.header(self.to.member));
        let faults = self.peers.faults.clone();
        let (me, to) = (self.peers.me(), self.to.member);
        let outbound = stream::once(async { first })
            .chain(input)
            .map(move |request| {
                owing.fetch_add(1, Ordering::Relaxed);
                pb::AppendRequest { header: header.take(), record: wire::encode_append(&request) }
            })
            .take_until(async move { faults.cut_of(me, to).await });
        let opened = tokio::time::timeout(STREAM_STALL, client.append(outbound))
            .await
            .map_err(|_| rpc_error(&Status::deadline_exceeded("the stream does not open")))?
            .map_err(|status| rpc_error(&status))?;
        let faults = self.peers.faults.clone();
        let responses = stream::unfold(Some(opened.into_inner()), move |open| {
            let owed = Arc::clone(&owed);
            async move {
                let mut open = open?;
                match next_response(&mut open, &owed).await? {
                    Ok(answer) => Some((Ok(answer), Some(open))),
                    Err(error) => Some((Err(error), None)),
                }
            }
        });
        Ok(responses.take_until(async move { faults.cut_of(to, me).await }).boxed())
    }
}

/// The next answer of a stream. One that owes an answer for too long has failed; an idle one not.
async fn next_response(
    open: &mut tonic::Streaming<pb::AppendResponse>,
    owed: &AtomicUsize,
) -> Option<Result<AppendResult, RpcError>> {
    loop {
        let before = owed.load(Ordering::Relaxed);
        match tokio::time::timeout(STREAM_STALL, open.message()).await {
            Ok(Ok(Some(message))) => {
                owed.fetch_sub(1, Ordering::Relaxed);
                let answer = wire::decode_append_result(&message.record);
                return Some(answer.map_err(|error| network_error(&error)));
            }
            Ok(Ok(None)) => return None,
            Ok(Err(status)) => return Some(Err(rpc_error(&status))),
            Err(_) if before == 0 => {}
            Err(_) => {
                let status = Status::deadline_exceeded("the stream stalled");
                return Some(Err(rpc_error(&status)));
            }
        }
    }
}

/// Everything that ends a connection counts as unreachable, so that openraft backs off.
fn rpc_error(status: &Status) -> RpcError {
    let text = format!("{:?}: {}", status.code(), status.message());
    RpcError::Unreachable(Unreachable::from_string(text))
}

fn network_error(error: &impl ToString) -> RpcError {
    RpcError::Network(NetworkError::from_string(error.to_string()))
}

impl RaftNetworkV2<TypeConfig> for Link {
    type SnapshotData = SnapshotFile;

    async fn append_entries(
        &mut self,
        rpc: AppendRequest,
        option: RPCOption,
    ) -> Result<AppendEntriesResponse<TypeConfig>, RpcError> {
        self.heartbeat(&rpc, &option).await.map(AppendEntriesResponse::from)
    }

    fn stream_append<'s, S>(
        &'s mut self,
        mut input: S,
        option: RPCOption,
    ) -> BoxFuture<'s, Result<ResponseStream<'s>, RpcError>>
    where
        S: Stream<Item = AppendRequest> + OptionalSend + Unpin + 'static,
    {
        Box::pin(async move {
            if self.purpose != Purpose::Control {
                return self.stream(input).await;
            }
            // A heartbeat is one request; a stream for each would cost more than the call.
            let Some(request) = input.next().await else { return Ok(stream::empty().boxed()) };
            let answer = self.heartbeat(&request, &option).await?;
            Ok(stream::once(async { Ok(answer) }).boxed())
        })
    }

    async fn vote(
        &mut self,
        rpc: VoteRequest,
        option: RPCOption,
    ) -> Result<VoteResponse, RpcError> {
        self.ask_vote(&rpc, &option, false).await
    }

    async fn pre_vote(
        &mut self,
        rpc: VoteRequest,
        option: RPCOption,
    ) -> Result<VoteResponse, RpcError> {
        self.ask_vote(&rpc, &option, true).await
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: RaftSnapshot,
        cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        _option: RPCOption,
    ) -> Result<SnapshotResponse<TypeConfig>, StreamingError<TypeConfig>> {
        let mut client = self.client(Purpose::Snapshot)?;
        let header = self.peers.header(self.to.member);
        let messages = chunks(vote, snapshot, header);
        let (sent, mut progress) = tokio::sync::watch::channel(0_u64);
        let counted = messages.inspect(move |_| {
            sent.send_modify(|count| *count = count.wrapping_add(1));
        });
        let call = client.install_snapshot(counted);
        tokio::pin!(call, cancel);
        let answer = loop {
            tokio::select! {
                biased;
                closed = &mut cancel => return Err(StreamingError::Closed(closed)),
                answer = &mut call => break answer.map_err(|status| rpc_error(&status))?,
                moved = tokio::time::timeout(SNAPSHOT_STALL, progress.changed()) => match moved {
                    Ok(Ok(())) => {}
                    // All is sent: the other side restores, within the same patience.
                    Ok(Err(_)) => break tokio::time::timeout(SNAPSHOT_STALL, &mut call)
                        .await
                        .map_err(|_| rpc_error(&stalled()))?
                        .map_err(|status| rpc_error(&status))?,
                    Err(_) => return Err(rpc_error(&stalled()).into()),
                },
            }
        };
        let vote = wire::decode_ballot(&answer.into_inner().record)
            .map_err(|error| network_error(&error))?;
        Ok(SnapshotResponse::new(vote))
    }

    async fn transfer_leader(
        &mut self,
        req: TransferRequest,
        option: RPCOption,
    ) -> Result<TransferLeaderResponse<TypeConfig>, RpcError> {
        let mut client = self.client(Purpose::Control)?;
        let header = Some(self.peers.header(self.to.member));
        let message = pb::TransferLeaderRequest { header, record: wire::encode_transfer(&req) };
        let call = client.transfer_leader(message);
        self.call(&option, RPCTypes::TransferLeader, call).await?;
        Ok(Ok(()))
    }
}

fn stalled() -> Status {
    Status::deadline_exceeded("the snapshot makes no progress")
}

/// The messages of one snapshot; reading stops at the first error of the file.
fn chunks(
    vote: Vote,
    snapshot: RaftSnapshot,
    header: pb::PeerHeader,
) -> impl Stream<Item = pb::InstallSnapshotRequest> + Send + 'static {
    let file = snapshot.snapshot;
    let first = pb::InstallSnapshotRequest {
        header: Some(header),
        vote: wire::encode_ballot(&vote),
        meta: wire::encode_meta(&snapshot.meta),
        total_bytes: file.info.bytes,
        ..pb::InstallSnapshotRequest::default()
    };
    let rest = stream::unfold((file, 0_u64), |(file, offset)| async move {
        let read = tokio::task::spawn_blocking(move || {
            let piece = file.piece(offset, CHUNK);
            (file, piece)
        });
        let (file, piece) = read.await.ok()?;
        let chunk: Bytes = piece.ok().filter(|piece| !piece.is_empty())?.into();
        let next = offset.saturating_add(u64::try_from(chunk.len()).unwrap_or(0));
        let chunk_crc32 = crc32fast::hash(&chunk);
        let message = pb::InstallSnapshotRequest {
            offset,
            chunk,
            chunk_crc32,
            ..pb::InstallSnapshotRequest::default()
        };
        Some((message, (file, next)))
    });
    stream::once(async { first }).chain(rest)
}
