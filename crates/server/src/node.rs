//! The composition root: builds one coordinator, owns its tasks, stops them in order.
//! No rule lives here. Called by `run`, by the tests and by nothing else.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use proto::v1::admin_service_server::AdminServiceServer;
use proto::v1::channel_service_server::ChannelServiceServer;
use proto::v1::event_service_server::EventServiceServer;
use proto::v1::node_service_server::NodeServiceServer;
use raft::{BackendKind, Fault, MemoryDisk, Options, StartError, Timers};
use state::State;
use state::ids::MemberId;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tracing::{info, warn};

use crate::api::{Surface, admin, channels, events, nodes, read, write};
use crate::clock::{self, Clock};
use crate::config::{Backend, Config};
use crate::error::Error;
use crate::history::History;
use crate::history_files::HistoryFiles;
use crate::http::{self, Pages};
use crate::leader::{self, Parts, Phase, effects, planning};
use crate::machine::StateMachine;
use crate::proposer::Proposer;
use crate::view::{Publisher, Views};
use crate::{health, limits, records, shutdown};

/// The addresses a coordinator listens on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// Clients and workers.
    pub client: SocketAddr,
    /// Other members.
    pub peer: SocketAddr,
    /// Metrics and health.
    pub http: SocketAddr,
}

/// One running coordinator.
#[derive(Debug)]
pub struct Coordinator {
    bound: Bound,
    raft: raft::Handle,
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

fn options(config: &Config, client: SocketAddr) -> Options {
    let mut options = Options::new(config.data_dir.clone(), config.member, config.peer_listen);
    options.client_address = config.advertise_client.clone().unwrap_or_else(|| client.to_string());
    options.peer_address = config.advertise_peer.clone().unwrap_or_default();
    options.backend = match config.raft.backend {
        Backend::Sled => BackendKind::Sled,
        Backend::Memory => BackendKind::Memory(MemoryDisk::default()),
    };
    options.timers = Timers {
        heartbeat_ms: config.raft.heartbeat_ms,
        election_min_ms: config.raft.election_min_ms,
        election_max_ms: config.raft.election_max_ms,
    };
    options.snapshot_every_entries = config.raft.snapshot_every_entries;
    options.snapshot_every_bytes = config.raft.snapshot_every_bytes;
    options
}

async fn listen(field: &'static str, address: SocketAddr) -> Result<TcpListener, Error> {
    TcpListener::bind(address).await.map_err(|source| Error::Listen { field, address, source })
}

fn local(field: &'static str, listener: &TcpListener) -> Result<SocketAddr, Error> {
    listener.local_addr().map_err(|source| Error::Listen {
        field,
        address: SocketAddr::from(([0, 0, 0, 0], 0)),
        source,
    })
}

impl Coordinator {
    /// Opens the data, starts every task, and returns once all listeners are up.
    ///
    /// # Errors
    /// [`Error`] names the address, file or directory; nothing keeps running.
    pub async fn start(config: &Config) -> Result<Self, Error> {
        let client = listen("client_listen", config.client_listen).await?;
        let http = listen("http_listen", config.http_listen).await?;
        let client_address = local("client_listen", &client)?;
        let history = Arc::new(History::default());
        let (publisher, views) = Publisher::new(State::new(0));
        let machine = StateMachine::new(State::new(0), publisher, Arc::clone(&history));
        let raft = raft::start(options(config, client_address), Box::new(machine)).await?;
        let events = config.data_dir.join("events");
        let files = HistoryFiles::open(events.clone())
            .map_err(|source| Error::Io { path: events, source })?;
        let bound = Bound {
            client: client_address,
            peer: raft.peer_address(),
            http: local("http_listen", &http)?,
        };
        let stop = CancellationToken::new();
        let mut started = Started { config, raft: &raft, views, history, files: Arc::new(files) };
        let tasks = started.spawn(client, http, &stop);
        let Bound { client, peer, http } = bound;
        info!(member = config.member, %client, %peer, %http, "coordinator started");
        Ok(Self { bound, raft, stop, tasks })
    }

    /// Where it listens.
    #[must_use]
    pub fn bound(&self) -> Bound {
        self.bound
    }

    /// The group, for tests and for the process that hosts this coordinator.
    #[must_use]
    pub fn raft(&self) -> &raft::Handle {
        &self.raft
    }

    /// Set once this member must stop by itself.
    #[must_use]
    pub fn fault(&self) -> watch::Receiver<Option<Fault>> {
        self.raft.fault()
    }

    /// Hands leadership over, stops accepting, flushes. Bounded by [`shutdown::PATIENCE`].
    pub async fn stop(mut self) {
        shutdown::hand_over(&self.raft).await;
        self.stop.cancel();
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(shutdown::PATIENCE, ended).await.is_err() {
            warn!("tasks did not end in time; ending them");
            self.tasks.abort_all();
        }
        self.raft.shutdown().await;
    }
}

struct Started<'a> {
    config: &'a Config,
    raft: &'a raft::Handle,
    views: Views,
    history: Arc<History>,
    files: Arc<HistoryFiles>,
}

impl Started<'_> {
    fn spawn(
        &mut self,
        client: TcpListener,
        http: TcpListener,
        stop: &CancellationToken,
    ) -> JoinSet<()> {
        let clock = Arc::new(Clock::new());
        let proposer = Proposer::start(self.raft.clone(), Arc::clone(&clock));
        let totals = Arc::new(planning::Totals::default());
        let cleanups = Arc::new(effects::Counters::default());
        let parts = Parts {
            member: MemberId(self.config.member),
            raft: self.raft.clone(),
            proposer: proposer.clone(),
            views: self.views.clone(),
            history: Arc::clone(&self.history),
            clock: Arc::clone(&clock),
            totals: Arc::clone(&totals),
            cleanups: Arc::clone(&cleanups),
        };
        let (phase, mut tasks) = leader::start(parts, stop.child_token());
        let surface = Arc::new(self.surface(&proposer, &phase, &clock, cleanups, stop));
        tasks.spawn(records::keep(
            Arc::clone(&self.history),
            Arc::clone(&self.files),
            self.views.clone(),
            stop.clone(),
        ));
        tasks.spawn(serve_clients(client, Arc::clone(&surface), stop.clone()));
        let pages = Pages { surface, proposer, totals, phase };
        let stop = stop.clone();
        tasks.spawn(async move {
            if let Err(error) = http::serve(http, pages, stop).await {
                warn!(%error, "the HTTP port failed");
            }
        });
        tasks
    }

    fn surface(
        &self,
        proposer: &Proposer,
        phase: &watch::Receiver<Phase>,
        clock: &Arc<Clock>,
        cleanups: Arc<effects::Counters>,
        stop: &CancellationToken,
    ) -> Surface {
        Surface {
            reads: read::Reads::new(self.raft.clone(), self.views.clone()),
            writes: write::Writes::new(
                self.raft.clone(),
                proposer.clone(),
                phase.clone(),
                self.views.clone(),
                Arc::clone(clock),
            ),
            raft: self.raft.clone(),
            views: self.views.clone(),
            history: Arc::clone(&self.history),
            files: Arc::clone(&self.files),
            clock: Arc::clone(clock),
            cleanups,
            quorum_fresh: Duration::from_millis(self.config.raft.election_max_ms),
            strays: AtomicU64::new(0),
            replaced: AtomicU64::new(0),
            stop: stop.clone(),
            started_ms: clock::wall_ms(),
        }
    }
}

/// Serves the client port until `stop`.
async fn serve_clients(listener: TcpListener, surface: Arc<Surface>, stop: CancellationToken) {
    let max = limits::CLIENT_MESSAGE_BYTES_MAX;
    let (health_reporter, health_service) = tonic_health::server::health_reporter();
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(proto::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1();
    let reflection = match reflection {
        Ok(service) => service,
        Err(error) => {
            warn!(%error, "the descriptor set is not readable; the client port stays closed");
            return;
        }
    };
    let follow = tokio::spawn(health::follow(health_reporter, Arc::clone(&surface), stop.clone()));
    let nodes = NodeServiceServer::new(nodes::Nodes(Arc::clone(&surface)));
    let channels = ChannelServiceServer::new(channels::Channels(Arc::clone(&surface)));
    let events = EventServiceServer::new(events::Events(Arc::clone(&surface)));
    let served = Server::builder()
        .http2_keepalive_interval(Some(Duration::from_secs(5)))
        .http2_keepalive_timeout(Some(Duration::from_secs(5)))
        .initial_stream_window_size(limits::STREAM_WINDOW_BYTES)
        .initial_connection_window_size(limits::CONNECTION_WINDOW_BYTES)
        .max_concurrent_streams(Some(limits::STREAMS_MAX))
        .add_service(nodes.max_decoding_message_size(max))
        .add_service(channels.max_decoding_message_size(max))
        .add_service(events.max_decoding_message_size(max))
        .add_service(AdminServiceServer::new(admin::Admin(surface)).max_decoding_message_size(max))
        .add_service(health_service)
        .add_service(reflection)
        .serve_with_incoming_shutdown(
            TcpIncoming::from(listener).with_nodelay(Some(true)),
            stop.cancelled_owned(),
        )
        .await;
    if let Err(error) = served {
        warn!(%error, "the client port failed");
    }
    follow.abort();
}

impl From<StartError> for Error {
    fn from(error: StartError) -> Self {
        Self::Start(error)
    }
}
