//! AdminService: the coordinator group itself. Status never waits for a quorum.

use std::pin::Pin;
use std::sync::Arc;

use std::time::Duration;

use bytes::Bytes;
use proto::v1;
use proto::v1::admin_service_server::AdminService;
use raft::{
    BootstrapError, MemberState, ProposeError, SnapshotInfo, TakeSnapshotError, TransferError,
};
use state::command::Command;
use state::event::Event;
use state::ids::Text;
use state::node::NodeStatus;
use tokio::io::AsyncReadExt;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use super::{Surface, status};
use crate::leader::planning::PlanTime;

/// Decisions shown in the status.
const DECISIONS_SHOWN: usize = 5;
/// Longest wait for what the other members say of themselves.
const MEMBERS_WAIT: Duration = Duration::from_secs(1);
/// Bytes of a snapshot in one message.
const SNAPSHOT_CHUNK_BYTES: usize = 1024 * 1024;
/// Invariants are checked for a status only while the state has at most this many channels.
const CHECKED_CHANNELS_MAX: usize = 50_000;

/// Serves AdminService.
#[derive(Debug)]
pub struct Admin(pub Arc<Surface>);

fn wire_state(state: MemberState) -> v1::MemberState {
    match state {
        MemberState::Leader => v1::MemberState::Leader,
        MemberState::Follower | MemberState::Starting => v1::MemberState::Follower,
        MemberState::Candidate => v1::MemberState::Candidate,
        MemberState::Learner => v1::MemberState::Learner,
        MemberState::Waiting => v1::MemberState::Waiting,
        MemberState::Suspect => v1::MemberState::Suspect,
        MemberState::Stopped => v1::MemberState::Unspecified,
    }
}

/// The members as this one knows them, with what each answered of itself.
fn members(status: &raft::Status, answers: &[raft::MemberWitness]) -> Vec<v1::Member> {
    status
        .members
        .iter()
        .map(|peer| {
            let id = peer.member.member;
            let me = id == status.member;
            let state = if me {
                wire_state(status.state)
            } else if status.leader.as_ref().is_some_and(|leader| leader.member == id) {
                v1::MemberState::Leader
            } else if peer.voter {
                v1::MemberState::Follower
            } else {
                v1::MemberState::Learner
            };
            let answer =
                answers.iter().find(|answer| answer.member == id && answer.error.is_none());
            let applied =
                if me { status.applied } else { answer.and_then(|answer| answer.applied) };
            v1::Member {
                member: id,
                client_address: peer.member.client_address.clone(),
                peer_address: peer.member.peer_address.clone(),
                voter: peer.voter,
                state: state.into(),
                reachable: me || answer.is_some(),
                applied_index: applied.unwrap_or_default(),
                last_log_index: if me { status.last_log.unwrap_or_default() } else { 0 },
                matched_index: peer.matched.unwrap_or_default(),
            }
        })
        .collect()
}

impl Admin {
    fn plan_times(&self) -> Vec<v1::PlanTime> {
        let times = self.0.writes.leading().map(|reign| reign.planning.times());
        times.unwrap_or_default().iter().map(plan_time).collect()
    }

    fn last_decisions(&self) -> Vec<v1::DecisionSummary> {
        let placed = |event: &Event| event.kind() == "ChannelPlaced";
        self.0
            .history
            .newest(DECISIONS_SHOWN, |record| record.events.iter().any(placed))
            .iter()
            .map(|recorded| v1::DecisionSummary {
                revision: recorded.record.revision.0,
                at_ms: recorded.record.at.0,
                text: recorded.record.caused_by.to_string(),
            })
            .collect()
    }

    async fn violations(&self, state: Arc<state::State>) -> Result<Vec<String>, Status> {
        if state.channel_count() > CHECKED_CHANNELS_MAX {
            return Ok(Vec::new());
        }
        let check = move || state::check(&state).iter().map(ToString::to_string).collect();
        tokio::task::spawn_blocking(check)
            .await
            .map_err(|_| status::internal("checking the invariants was cut short"))
    }
}

fn nodes_of(state: &state::State, status: NodeStatus) -> u32 {
    let count = state.nodes().filter(|node| node.status == status).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn bootstrap_error(error: &BootstrapError) -> Status {
    match error {
        BootstrapError::Members(problem) => status::bad_field("members", "the list", problem),
        BootstrapError::Unreachable { .. } => {
            status::precondition("MEMBER_UNREACHABLE", error.to_string())
        }
        BootstrapError::HasCluster { .. } | BootstrapError::HasData { .. } => {
            status::precondition("ALREADY_BOOTSTRAPPED", error.to_string())
        }
        BootstrapError::OtherMember { .. } => {
            status::precondition("OTHER_MEMBER", error.to_string())
        }
        BootstrapError::Failed(_) => status::internal(error.to_string()),
    }
}

fn transfer_error(error: &TransferError) -> Status {
    match error {
        TransferError::NotLeader { hint } => status::not_leader(hint.as_ref()),
        TransferError::NoTarget(_) => status::precondition("NO_TARGET", error.to_string()),
        TransferError::Timeout { .. } => status::precondition("NOT_TRANSFERRED", error.to_string()),
        TransferError::Stopped => status::stopping(),
    }
}

fn snapshot_error(error: &TakeSnapshotError) -> Status {
    match error {
        TakeSnapshotError::Empty => status::precondition("NOTHING_APPLIED", error.to_string()),
        TakeSnapshotError::Timeout => status::unknown_outcome(&error.to_string()),
        TakeSnapshotError::DiskLow => status::propose(&ProposeError::DiskLow),
        TakeSnapshotError::Stopped => status::stopping(),
    }
}

async fn send_file(
    snapshot: SnapshotInfo,
    out: mpsc::Sender<Result<v1::SaveSnapshotResponse, Status>>,
) {
    let name = snapshot.path.display().to_string();
    let failed = |error: std::io::Error| Err(status::internal(format!("{name}: {error}")));
    let mut file = match tokio::fs::File::open(&snapshot.path).await {
        Ok(file) => file,
        Err(error) => {
            // The caller may be gone already; so below.
            let _ = out.send(failed(error)).await;
            return;
        }
    };
    loop {
        let mut chunk = vec![0; SNAPSHOT_CHUNK_BYTES];
        let message = match file.read(&mut chunk).await {
            Ok(0) => return,
            Ok(length) => {
                chunk.truncate(length);
                Ok(v1::SaveSnapshotResponse {
                    index: snapshot.index,
                    total_bytes: snapshot.bytes,
                    chunk: Bytes::from(chunk),
                })
            }
            Err(error) => failed(error),
        };
        let ended = message.is_err();
        if out.send(message).await.is_err() || ended {
            return;
        }
    }
}

fn plan_time(time: &PlanTime) -> v1::PlanTime {
    let us = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    v1::PlanTime {
        revision: time.revision.0,
        moves: time.moves,
        balance_moves: time.balance_moves,
        planned_us: us(time.planned),
        decided_us: us(time.decided),
    }
}

#[tonic::async_trait]
impl AdminService for Admin {
    type SaveSnapshotStream =
        Pin<Box<dyn Stream<Item = Result<v1::SaveSnapshotResponse, Status>> + Send + 'static>>;

    async fn get_status(
        &self,
        request: Request<v1::GetStatusRequest>,
    ) -> Result<Response<v1::GetStatusResponse>, Status> {
        let request = request.into_inner();
        let mut read = request.read.unwrap_or_default();
        if read.consistency() == v1::Consistency::Unspecified {
            // A status must be had where no quorum is: that is when it is asked for.
            read.set_consistency(v1::Consistency::Stale);
        }
        let view = self.0.reads.view(Some(&read)).await?;
        let raft = self.0.raft.status();
        let counts = view.state.counts();
        let leader = raft.leader.clone().unwrap_or_default();
        let health = super::read::health(&self.0.raft, self.0.quorum_fresh);
        Ok(Response::new(v1::GetStatusResponse {
            header: Some(self.0.reads.header(&view)),
            state: wire_state(raft.state).into(),
            ready: health.ready,
            has_quorum: health.writable,
            last_log_index: raft.last_log.unwrap_or_default(),
            committed_index: raft.committed.unwrap_or_default(),
            snapshot_index: raft.snapshot.unwrap_or_default(),
            restored_from_index: raft.restored_from.unwrap_or_default(),
            nodes_up: nodes_of(&view.state, NodeStatus::Up),
            nodes_stopping: nodes_of(&view.state, NodeStatus::Stopping),
            nodes_down: nodes_of(&view.state, NodeStatus::Down),
            channels: u32::try_from(view.state.channel_count()).unwrap_or(u32::MAX),
            channels_buffered: counts.buffered,
            channels_to_watch: counts.to_watch,
            channels_watched: counts.watched,
            channels_to_release: counts.to_release,
            last_decisions: self.last_decisions(),
            violations: self.violations(Arc::clone(&view.state)).await?,
            log_bytes: raft.log_bytes,
            started_ms: self.0.started_ms,
            leader_client_address: leader.client_address,
            level: view.state.level(),
            plan_times: self.plan_times(),
        }))
    }

    async fn bootstrap(
        &self,
        request: Request<v1::BootstrapRequest>,
    ) -> Result<Response<v1::BootstrapResponse>, Status> {
        let members = request
            .into_inner()
            .members
            .into_iter()
            .map(|member| raft::Member {
                member: member.member,
                peer_address: member.peer_address,
                client_address: member.client_address,
            })
            .collect();
        let cluster_id =
            self.0.raft.bootstrap(members).await.map_err(|error| bootstrap_error(&error))?;
        Ok(Response::new(v1::BootstrapResponse { cluster_id: cluster_id.to_string() }))
    }

    async fn list_members(
        &self,
        request: Request<v1::ListMembersRequest>,
    ) -> Result<Response<v1::ListMembersResponse>, Status> {
        let request = request.into_inner();
        let view = self.0.reads.view(request.read.as_ref()).await?;
        // The list is asked for when a member hangs: it is told without what that one would say.
        let answers = timeout(MEMBERS_WAIT, self.0.raft.witnesses(0)).await.unwrap_or_default();
        Ok(Response::new(v1::ListMembersResponse {
            header: Some(self.0.reads.header(&view)),
            members: members(&self.0.raft.status(), &answers),
        }))
    }

    async fn transfer_leader(
        &self,
        request: Request<v1::TransferLeaderRequest>,
    ) -> Result<Response<v1::TransferLeaderResponse>, Status> {
        let to = match request.into_inner().to {
            0 => None,
            member => Some(member),
        };
        let (leader, term) =
            self.0.raft.transfer_leader(to).await.map_err(|error| transfer_error(&error))?;
        Ok(Response::new(v1::TransferLeaderResponse { leader, term }))
    }

    async fn get_witness(
        &self,
        request: Request<v1::GetWitnessRequest>,
    ) -> Result<Response<v1::GetWitnessResponse>, Status> {
        let index = request.into_inner().index;
        let found = self.0.raft.witnesses(index).await;
        let first = found.first().map(|first| (first.witness, first.digest));
        let known = matches!(first, Some((Some(_), Some(_))));
        let equal = known && found.iter().all(|each| Some((each.witness, each.digest)) == first);
        let hash = |bytes: Option<[u8; 16]>| {
            bytes.map(|bytes| Bytes::copy_from_slice(&bytes)).unwrap_or_default()
        };
        let witnesses = found
            .iter()
            .map(|each| v1::Witness {
                member: each.member,
                index: each.index,
                witness: hash(each.witness),
                digest: hash(each.digest),
                reachable: each.error.is_none(),
            })
            .collect();
        Ok(Response::new(v1::GetWitnessResponse { witnesses, equal }))
    }

    async fn take_snapshot(
        &self,
        _request: Request<v1::TakeSnapshotRequest>,
    ) -> Result<Response<v1::TakeSnapshotResponse>, Status> {
        let taken = self.0.raft.take_snapshot().await.map_err(|error| snapshot_error(&error))?;
        let file = taken.path.file_name().map(|name| name.to_string_lossy().into_owned());
        Ok(Response::new(v1::TakeSnapshotResponse {
            index: taken.index,
            term: taken.term,
            file: file.unwrap_or_default(),
            bytes: taken.bytes,
            digest: Bytes::copy_from_slice(&taken.digest),
        }))
    }

    async fn save_snapshot(
        &self,
        _request: Request<v1::SaveSnapshotRequest>,
    ) -> Result<Response<Self::SaveSnapshotStream>, Status> {
        let snapshot = match self.0.raft.latest_snapshot() {
            Some(snapshot) => snapshot,
            None => self.0.raft.take_snapshot().await.map_err(|error| snapshot_error(&error))?,
        };
        let (out, chunks) = mpsc::channel(4);
        tokio::spawn(send_file(snapshot, out));
        Ok(Response::new(Box::pin(ReceiverStream::new(chunks))))
    }

    async fn get_settings(
        &self,
        request: Request<v1::GetSettingsRequest>,
    ) -> Result<Response<v1::GetSettingsResponse>, Status> {
        let request = request.into_inner();
        let view = self.0.reads.view(request.read.as_ref()).await?;
        let settings = view
            .state
            .settings()
            .into_iter()
            .map(|info| v1::Setting {
                name: info.name.to_owned(),
                value: info.value,
                default_value: info.default,
                allowed: info.allowed,
                about: info.about.to_owned(),
            })
            .collect();
        let header = Some(self.0.reads.header(&view));
        Ok(Response::new(v1::GetSettingsResponse { header, settings }))
    }

    async fn set_settings(
        &self,
        request: Request<v1::SetSettingsRequest>,
    ) -> Result<Response<v1::SetSettingsResponse>, Status> {
        let request = request.into_inner();
        if request.values.is_empty() {
            return Err(status::bad_field("values", "none", "at least one setting is required"));
        }
        let text = |field: &str, text: &str| {
            Text::new(text).map_err(|error| status::bad_text(field, &error))
        };
        let mut values = std::collections::BTreeMap::new();
        for (name, value) in &request.values {
            values.insert(text("values", name)?, text(name, value)?);
        }
        let receipt = self.0.writes.write(request.write, Command::SetPolicy { values }).await?;
        Ok(Response::new(v1::SetSettingsResponse { receipt: Some(receipt) }))
    }

    async fn raise_level(
        &self,
        request: Request<v1::RaiseLevelRequest>,
    ) -> Result<Response<v1::RaiseLevelResponse>, Status> {
        let v1::RaiseLevelRequest { write, level } = request.into_inner();
        let receipt = self.0.writes.write_seen(write, Command::SetLevel { level }).await?;
        Ok(Response::new(v1::RaiseLevelResponse { receipt: Some(receipt) }))
    }

    async fn get_version(
        &self,
        _request: Request<v1::GetVersionRequest>,
    ) -> Result<Response<v1::GetVersionResponse>, Status> {
        Ok(Response::new(v1::GetVersionResponse {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            level: self.0.views.now().state.level(),
            log_format: u32::from(state::codec::FORMAT),
            snapshot_format: u32::from(state::codec::FORMAT),
            known_level: state::level::KNOWN,
        }))
    }
}
