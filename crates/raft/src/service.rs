//! What the other members may ask of this one. Every call is checked for group and target first;
//! bytes that are no record of ours get an error and change nothing.

use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use futures::stream::{self, Stream, StreamExt};
use openraft::raft::AppendEntriesResponse;
use proto::raft::v1 as pb;
use tonic::{Request, Response, Status, Streaming};

use crate::evidence::is_gone;
use crate::log::record::RecordError;
use crate::member::ClusterId;
use crate::replica::Replica;
use crate::status::Leadership;
use crate::types::{AppendRequest, Raft, VoteRequest};
use crate::{receive, wire};

/// The service of one member.
#[derive(Clone)]
pub(crate) struct Service {
    pub(crate) replica: Arc<Replica>,
}

const NO_GROUP: &str = "this member belongs to no group: it waits for a bootstrap; if its \
    directory was lost, see \"Replace or repair a member\" in docs/operations.md";

impl Service {
    /// Refuses calls that are not meant for this member of this group.
    fn check(&self, header: Option<pb::PeerHeader>) -> Result<u64, Status> {
        let header = header.ok_or_else(|| Status::invalid_argument("no header"))?;
        let Some(cluster) = self.replica.dir.cluster() else {
            return Err(Status::failed_precondition(NO_GROUP));
        };
        if header.cluster_id != cluster.as_str() {
            return Err(Status::failed_precondition(format!("this is group {cluster}")));
        }
        let me = self.replica.me.member;
        if header.to_member != me {
            return Err(Status::failed_precondition(format!("this is member {me}")));
        }
        if self.replica.peers.faults.is_cut(header.from_member, me) {
            return Err(Status::unavailable("the link is cut"));
        }
        Ok(header.from_member)
    }

    fn raft(&self) -> Result<&Raft, Status> {
        if self.replica.stopping.load(Ordering::Relaxed) {
            return Err(Status::unavailable("this member is stopping"));
        }
        self.replica.raft().ok_or_else(|| Status::unavailable("this member is starting"))
    }

    /// A voter lets a candidate pass its lease only when the leader is gone for this member too,
    /// or hands over. Else anybody could depose a leader at will.
    async fn judge_transfer(&self, request: &mut VoteRequest) {
        if !request.leadership_transfer {
            return;
        }
        let (term, leader) = match &*self.replica.leadership.borrow() {
            Leadership::Leader { term } => (*term, None),
            Leadership::Follower { term, leader } => (*term, Some(leader.clone())),
            Leadership::Unknown { .. } => return,
        };
        let gone = match leader {
            Some(leader) => is_gone(&leader).await,
            None => false,
        };
        request.leadership_transfer = gone || self.replica.transfers.is_on(term);
    }
}

fn bad(error: RecordError) -> Status {
    Status::invalid_argument(error.to_string())
}

fn stopped(error: &impl ToString) -> Status {
    Status::unavailable(error.to_string())
}

type AppendStream = Pin<Box<dyn Stream<Item = Result<pb::AppendResponse, Status>> + Send>>;

#[tonic::async_trait]
impl pb::raft_service_server::RaftService for Service {
    type AppendStream = AppendStream;

    async fn append(
        &self,
        request: Request<Streaming<pb::AppendRequest>>,
    ) -> Result<Response<AppendStream>, Status> {
        let mut inbound = request.into_inner();
        let first = inbound.message().await?.ok_or_else(|| Status::invalid_argument("empty"))?;
        let from = self.check(first.header)?;
        let first = wire::decode_append(&first.record).map_err(bad)?;
        let heard = Arc::clone(&self.replica);
        let raft = self.raft()?;
        // An item that cannot be read ends the stream: skipping it would leave a hole.
        let broken = Arc::new(Mutex::new(None));
        let breaking = Arc::clone(&broken);
        let faults = self.replica.peers.faults.clone();
        let me = self.replica.me.member;
        let requests = stream::once(async { first })
            .chain(inbound.scan(breaking, |breaking, message| {
                let request = read_append(message);
                std::future::ready(match request {
                    Ok(request) => Some(request),
                    Err(status) => {
                        *breaking.lock().unwrap_or_else(PoisonError::into_inner) = Some(status);
                        None
                    }
                })
            }))
            .inspect(move |_| heard.heard.now())
            .take_until(async move { faults.cut_of(from, me).await });
        // A member that stops must not wait for the leader to end an idle stream: until then its
        // directory would stay locked.
        let end = self.replica.service_end.clone();
        let answers = raft
            .stream_append(requests.take_until(end.clone().cancelled_owned()))
            .map(|answer| match answer {
                Ok(result) => {
                    Ok(pb::AppendResponse { record: wire::encode_append_result(&result) })
                }
                Err(fatal) => Err(stopped(&fatal)),
            })
            .take_until(end.cancelled_owned());
        let last =
            stream::once(
                async move { broken.lock().unwrap_or_else(PoisonError::into_inner).take() },
            );
        let ended = last.filter_map(|status| std::future::ready(status.map(Err)));
        Ok(Response::new(Box::pin(answers.chain(ended))))
    }

    async fn heartbeat(
        &self,
        request: Request<pb::AppendRequest>,
    ) -> Result<Response<pb::AppendResponse>, Status> {
        let message = request.into_inner();
        self.check(message.header)?;
        let request = wire::decode_append(&message.record).map_err(bad)?;
        let (prev, last) = (request.prev_log_id, request.entries.last().map(|last| last.log_id));
        let answer = self.raft()?.append_entries(request).await.map_err(|error| stopped(&error))?;
        let result = match answer {
            AppendEntriesResponse::Conflict if prev.is_none() => {
                return Err(Status::internal("a conflict with nothing"));
            }
            answer => answer.into_stream_result(prev, last.or(prev)),
        };
        if result.is_ok() {
            self.replica.heard.now();
        }
        Ok(Response::new(pb::AppendResponse { record: wire::encode_append_result(&result) }))
    }

    async fn vote(
        &self,
        request: Request<pb::VoteRequest>,
    ) -> Result<Response<pb::VoteResponse>, Status> {
        let message = request.into_inner();
        self.check(message.header)?;
        let mut request = wire::decode_vote(&message.record).map_err(bad)?;
        self.judge_transfer(&mut request).await;
        let answer = self.raft()?.vote(request).await.map_err(|error| stopped(&error))?;
        Ok(Response::new(pb::VoteResponse { record: wire::encode_vote_reply(&answer) }))
    }

    async fn pre_vote(
        &self,
        request: Request<pb::VoteRequest>,
    ) -> Result<Response<pb::VoteResponse>, Status> {
        let message = request.into_inner();
        self.check(message.header)?;
        let request = wire::decode_vote(&message.record).map_err(bad)?;
        let answer = self.raft()?.pre_vote(request).await.map_err(|error| stopped(&error))?;
        Ok(Response::new(pb::VoteResponse { record: wire::encode_vote_reply(&answer) }))
    }

    async fn transfer_leader(
        &self,
        request: Request<pb::TransferLeaderRequest>,
    ) -> Result<Response<pb::TransferLeaderResponse>, Status> {
        let message = request.into_inner();
        let from = self.check(message.header)?;
        let request = wire::decode_transfer(&message.record).map_err(bad)?;
        let leader = request.from_leader().leader_id;
        if leader.voted_for != from {
            return Err(Status::failed_precondition("only a leader hands over"));
        }
        self.replica.transfers.begin(leader.term);
        let answer = self.raft()?.handle_transfer_leader(request).await;
        answer
            .map_err(|error| stopped(&error))?
            .map_err(|error| Status::failed_precondition(error.to_string()))?;
        Ok(Response::new(pb::TransferLeaderResponse {}))
    }

    async fn install_snapshot(
        &self,
        request: Request<Streaming<pb::InstallSnapshotRequest>>,
    ) -> Result<Response<pb::InstallSnapshotResponse>, Status> {
        let mut inbound = request.into_inner();
        let first = inbound.message().await?.ok_or_else(|| Status::invalid_argument("empty"))?;
        self.check(first.header.clone())?;
        let raft = self.raft()?;
        let answer = receive::receive(&self.replica, raft, first, inbound).await?;
        Ok(Response::new(pb::InstallSnapshotResponse { record: wire::encode_ballot(&answer) }))
    }

    async fn read_index(
        &self,
        request: Request<pb::ReadIndexRequest>,
    ) -> Result<Response<pb::ReadIndexResponse>, Status> {
        self.check(request.into_inner().header)?;
        let index = crate::reads::leader_index(&self.replica)
            .await
            .map_err(|error| Status::unavailable(error.to_string()))?;
        let term = match &*self.replica.leadership.borrow() {
            Leadership::Leader { term } | Leadership::Unknown { term } => *term,
            Leadership::Follower { term, .. } => *term,
        };
        Ok(Response::new(pb::ReadIndexResponse { index, term }))
    }

    async fn witness(
        &self,
        request: Request<pb::WitnessRequest>,
    ) -> Result<Response<pb::WitnessResponse>, Status> {
        let message = request.into_inner();
        self.check(message.header)?;
        let sight = &self.replica.sight;
        let applied_index = sight.applied().map_or(0, |at| at.index);
        let seen = {
            let ring = sight.ring();
            if message.index == 0 { ring.newest() } else { ring.at(message.index) }
        };
        let Some(seen) = seen else {
            return Ok(Response::new(pb::WitnessResponse {
                applied_index,
                ..pb::WitnessResponse::default()
            }));
        };
        self.compare(&message.witness, seen);
        Ok(Response::new(pb::WitnessResponse {
            known: true,
            index: seen.index,
            witness: seen.witness.to_vec().into(),
            digest: seen.digest.to_vec().into(),
            applied_index,
        }))
    }

    async fn probe(
        &self,
        request: Request<pb::ProbeRequest>,
    ) -> Result<Response<pb::ProbeResponse>, Status> {
        let message = request.into_inner();
        let header = message.header.unwrap_or_default();
        if self.replica.peers.faults.is_cut(header.from_member, self.replica.me.member) {
            return Err(Status::unavailable("the link is cut"));
        }
        if message.found {
            self.found(&header).await?;
        }
        Ok(Response::new(pb::ProbeResponse {
            cluster_id: self.replica.dir.cluster().map(|id| id.to_string()).unwrap_or_default(),
            member: self.replica.me.member,
            has_data: self.replica.has_data().await,
            client_address: self.replica.me.client_address.clone(),
        }))
    }
}

impl Service {
    /// An empty member becomes one of a group. One that holds data, or belongs elsewhere, refuses.
    async fn found(&self, header: &pb::PeerHeader) -> Result<(), Status> {
        if header.to_member != self.replica.me.member {
            let me = self.replica.me.member;
            return Err(Status::failed_precondition(format!("this is member {me}")));
        }
        let cluster = ClusterId::parse(&header.cluster_id)
            .ok_or_else(|| Status::invalid_argument("not the id of a group"))?;
        if self.replica.has_data().await {
            return Err(Status::failed_precondition("this member holds data"));
        }
        let dir = Arc::clone(&self.replica.dir);
        tokio::task::spawn_blocking(move || dir.found(&cluster))
            .await
            .map_err(|error| Status::internal(error.to_string()))?
            .map_err(|error| Status::failed_precondition(error.to_string()))
    }

    /// Somebody had something else at an entry: look whether the fault is here.
    fn compare(&self, told: &[u8], seen: crate::witness::Seen) {
        let Some((witness, digest)) = told.split_at_checked(16) else { return };
        let Ok(witness) = <[u8; 16]>::try_from(witness) else { return };
        let digest = <[u8; 16]>::try_from(digest).ok();
        let differs = if witness != seen.witness {
            Some((witness, false))
        } else {
            digest.filter(|digest| seen.digest != *digest).map(|digest| (digest, true))
        };
        if let Some((theirs, by_digest)) = differs {
            let court = Arc::clone(&self.replica.court);
            tokio::spawn(async move { court.examine(seen.index, theirs, by_digest).await });
        }
    }
}

fn read_append(message: Result<pb::AppendRequest, Status>) -> Result<AppendRequest, Status> {
    wire::decode_append(&message?.record).map_err(bad)
}
