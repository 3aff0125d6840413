//! Connections to the other members: one for each member and purpose, made when first used.
//! Knows addresses and headers, not what is said; `network.rs` and others speak.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use proto::raft::v1::raft_service_client::RaftServiceClient;
use proto::raft::v1::{PeerHeader, ProbeRequest, ProbeResponse, WitnessRequest, WitnessResponse};
use tonic::Status;
use tonic::transport::{Channel, Endpoint};

use crate::data_dir::DataDir;
use crate::faults::Faults;
use crate::member::{ClusterId, Member};
use crate::wire::MESSAGE_MAX;

const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);
const KEEP_ALIVE: Duration = Duration::from_secs(2);
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 8 << 20;

/// What a connection is for: a full window of one must not hold up another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Purpose {
    Append,
    Control,
    Snapshot,
}

/// A client of one member.
pub(crate) type Client = RaftServiceClient<Channel>;

/// All connections of this member.
pub(crate) struct Peers {
    me: u64,
    dir: Arc<DataDir>,
    pub(crate) faults: Faults,
    channels: Mutex<BTreeMap<(String, Purpose), Channel>>,
}

impl Peers {
    pub(crate) fn new(dir: Arc<DataDir>, faults: Faults) -> Self {
        Self { me: dir.member(), dir, faults, channels: Mutex::default() }
    }

    pub(crate) fn me(&self) -> u64 {
        self.me
    }

    /// The identity of a call to a member.
    pub(crate) fn header(&self, to: u64) -> PeerHeader {
        let cluster = self.dir.cluster();
        PeerHeader {
            cluster_id: cluster.map(|cluster| cluster.to_string()).unwrap_or_default(),
            from_member: self.me,
            to_member: to,
        }
    }

    /// A client of a member; connects when it is used.
    pub(crate) fn client(&self, to: &Member, purpose: Purpose) -> Result<Client, Status> {
        if self.faults.is_cut(self.me, to.member) {
            return Err(Status::unavailable("the link is cut"));
        }
        let key = (to.peer_address.clone(), purpose);
        let mut channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner);
        let channel = match channels.get(&key) {
            Some(channel) => channel.clone(),
            None => {
                let channel = endpoint(&to.peer_address)?.connect_lazy();
                channels.insert(key, channel.clone());
                channel
            }
        };
        Ok(RaftServiceClient::new(channel)
            .max_decoding_message_size(MESSAGE_MAX)
            .max_encoding_message_size(MESSAGE_MAX))
    }

    /// Makes a call with a deadline; a cut link answers nothing.
    pub(crate) async fn call<T>(
        &self,
        to: u64,
        deadline: Duration,
        call: impl Future<Output = Result<tonic::Response<T>, Status>>,
    ) -> Result<T, Status> {
        let answer = tokio::time::timeout(deadline, call)
            .await
            .map_err(|_| Status::deadline_exceeded("no answer in time"))??;
        if self.faults.is_cut(to, self.me) {
            return Err(Status::unavailable("the link is cut"));
        }
        Ok(answer.into_inner())
    }

    /// Asks who is there. With a group, asks it to belong to that group from now on.
    pub(crate) async fn probe(
        &self,
        to: &Member,
        found: Option<&ClusterId>,
        deadline: Duration,
    ) -> Result<ProbeResponse, Status> {
        let header = PeerHeader {
            cluster_id: found.map(ToString::to_string).unwrap_or_default(),
            from_member: self.me,
            to_member: to.member,
        };
        let mut client = self.client(to, Purpose::Control)?;
        let request = ProbeRequest { header: Some(header), found: found.is_some() };
        self.call(to.member, deadline, client.probe(request)).await
    }

    /// Asks what a member had at an index; tells what this member had, when `mine` is not empty.
    pub(crate) async fn witness(
        &self,
        to: &Member,
        index: u64,
        mine: Vec<u8>,
        deadline: Duration,
    ) -> Result<WitnessResponse, Status> {
        let header = Some(self.header(to.member));
        let mut client = self.client(to, Purpose::Control)?;
        let request = WitnessRequest { header, index, witness: mine.into() };
        self.call(to.member, deadline, client.witness(request)).await
    }
}

fn endpoint(address: &str) -> Result<Endpoint, Status> {
    let endpoint = Endpoint::from_shared(format!("http://{address}"))
        .map_err(|error| Status::invalid_argument(format!("bad address {address}: {error}")))?;
    Ok(endpoint
        .tcp_nodelay(true)
        .connect_timeout(CONNECT_TIMEOUT)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW))
}
