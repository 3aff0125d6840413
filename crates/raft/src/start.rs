//! Starts a member: opens and judges its directory before anything else, then the machine, the
//! listener, the core of raft and the tasks around it. The only place that wires them together.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use openraft::{Config, SnapshotPolicy};
use proto::raft::v1::raft_service_server::RaftServiceServer;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

use crate::applier::{self, Applier, Task};
use crate::counters::{Counter, Meters};
use crate::data_dir::{self, DataDir};
use crate::disk::DiskWatch;
use crate::diverge::Court;
use crate::error::{Fault, StartError};
use crate::evidence::{Heard, Transfers};
use crate::handle::Handle;
use crate::log::backend::{LogBackend, MarkStore};
use crate::log::high_water::HighWater;
use crate::log::open::{open_log, start_error};
use crate::log::record::Position;
use crate::log::sled::SledLog;
use crate::log::store::LogStore;
use crate::machine::Machine;
use crate::member::Member;
use crate::network::Network;
use crate::options::{BackendKind, Options};
use crate::peers::Peers;
use crate::reads::{Rounds, Scope};
use crate::replica::Replica;
use crate::service::Service;
use crate::sight::Sight;
use crate::snapshot_file::SnapshotFile;
use crate::snapshot_store::SnapshotStore;
use crate::state_machine::{self, StateMachine};
use crate::status::Leadership;
use crate::types::Raft;
use crate::verdict::Verdicts;
use crate::wire::MESSAGE_MAX;
use crate::{failover, leadership, tend};

const INSTALL_TIMEOUT_MS: u64 = 30_000;
const LOCK_DEADLINE: Duration = Duration::from_secs(3);
const LOCK_PAUSE: Duration = Duration::from_millis(20);
const SERVER_KEEP_ALIVE: Duration = Duration::from_secs(2);
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 8 << 20;
const STREAMS_MAX: u32 = 4096;

/// Starts a member. It answers the others as soon as this returns; whether it belongs to a group
/// and who leads comes later, see [`Handle::leadership`].
///
/// # Errors
/// See [`StartError`]; each names the file or the address and what to do.
pub async fn start(options: Options, machine: Box<dyn Machine>) -> Result<Handle, StartError> {
    check(&options)?;
    let (path, member) = (options.data_dir.clone(), options.member);
    let dir = unlocked(move || DataDir::open(&path, member)).await?;
    let dir = Arc::new(dir);
    let listener = listen(options.peer_listen).await?;
    let address = listener.local_addr().map_err(StartError::io("cannot listen"))?;
    let parts = Parts::open(&options, &dir, machine).await?;
    let replica = Arc::new(parts.replica(options, dir, address));
    serve(&replica, listener)?;
    let config = config(&replica.options)?;
    let network = Network { peers: Arc::clone(&replica.peers) };
    let log = replica.log.clone();
    let raft = Raft::new(member, Arc::new(config), network, log, parts.machine).await;
    let raft = raft.map_err(|fatal| {
        replica.service_end.cancel();
        let fault = replica.sight.fault.borrow().clone();
        fault.unwrap_or_else(|| Fault::Log(fatal.to_string()))
    })?;
    let _ = replica.raft.set(raft.clone());
    let _ = replica.local_reads.set(Rounds::start(&replica, Scope::Local));
    let _ = replica.remote_reads.set(Rounds::start(&replica, Scope::Remote));
    tokio::spawn(leadership::follow(Arc::clone(&replica), raft));
    tokio::spawn(failover::watch_leader(Arc::clone(&replica)));
    tokio::spawn(tend::catch_up(Arc::clone(&replica)));
    tokio::spawn(tend::grow(Arc::clone(&replica)));
    tokio::spawn(tend::fault(Arc::clone(&replica)));
    Ok(Handle::new(replica, address))
}

fn check(options: &Options) -> Result<(), StartError> {
    let timers = &options.timers;
    let refuse = |what: &str| Err(StartError::Options(what.to_owned()));
    if options.member == 0 {
        return refuse("a member's number begins at 1");
    }
    if timers.heartbeat_ms == 0 || timers.election_min_ms <= timers.heartbeat_ms * 2 {
        return refuse("the election timeout must be over two heartbeats");
    }
    if timers.election_max_ms <= timers.election_min_ms {
        return refuse("the longest election timeout must be over the shortest");
    }
    if options.body_max_bytes == 0 || options.body_max_bytes > 32 << 20 {
        return refuse("a body may have up to 32 MiB");
    }
    Ok(())
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StartError> + Send + 'static,
) -> Result<T, StartError> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(Fault::Log(error.to_string()).into()))
}

/// The same, again while the last owner of a directory is just ending.
async fn unlocked<T: Send + 'static>(
    work: impl Fn() -> Result<T, StartError> + Send + Sync + 'static,
) -> Result<T, StartError> {
    let work = Arc::new(work);
    let deadline = Instant::now() + LOCK_DEADLINE;
    loop {
        let once = Arc::clone(&work);
        match blocking(move || once()).await {
            Err(StartError::Locked { .. }) if Instant::now() < deadline => {
                tokio::time::sleep(LOCK_PAUSE).await;
            }
            done => return done,
        }
    }
}

async fn listen(address: SocketAddr) -> Result<TcpListener, StartError> {
    TcpListener::bind(address).await.map_err(|source| match source.kind() {
        std::io::ErrorKind::AddrInUse => StartError::AddressInUse { address },
        _ => StartError::Io { what: format!("cannot listen on {address}"), source },
    })
}

/// What is opened before the network.
struct Parts {
    machine: StateMachine,
    peers: Arc<Peers>,
    restored_from: Option<u64>,
}

impl Parts {
    async fn open(
        options: &Options,
        dir: &Arc<DataDir>,
        machine: Box<dyn Machine>,
    ) -> Result<Self, StartError> {
        let sight = Arc::new(Sight::default());
        let meters = Arc::new(Meters::default());
        let verdicts = Verdicts::open(dir.path().join("verdicts"), dir.member())
            .map_err(StartError::io("cannot read the verdicts"))?;
        let verdicts = Arc::new(verdicts);
        let snapshots = Arc::new(SnapshotStore::open(data_dir::snapshot_dir(dir.path()))?);
        let tasks = spawn_applier(machine, &sight, &meters, &verdicts)?;
        let restored = restore_newest(dir, &snapshots, &tasks).await?;
        let restored_at =
            restored.as_ref().map(|file| Position { index: file.info.index, term: file.info.term });
        let log = open_store(options, dir, restored_at, &meters, &sight).await?;
        let peers = Arc::new(Peers::new(Arc::clone(dir), options.faults.clone()));
        let court = Arc::new(Court {
            sight: Arc::clone(&sight),
            peers: Arc::clone(&peers),
            verdicts,
            patience: options.suspect_timeout,
            examining: AtomicBool::new(false),
        });
        let disk = Arc::new(DiskWatch::new(dir.path().to_owned(), options.disk_low_bytes));
        let dir = Arc::clone(dir);
        let machine = StateMachine { tasks, snapshots, sight, court, meters, dir, log, disk };
        Ok(Self { machine, peers, restored_from: restored_at.map(|at| at.index) })
    }

    fn replica(&self, options: Options, dir: Arc<DataDir>, address: SocketAddr) -> Replica {
        let machine = self.machine.clone();
        let advertised = Some(options.peer_address.clone()).filter(|text| !text.is_empty());
        let me = Member {
            member: options.member,
            peer_address: advertised.unwrap_or_else(|| address.to_string()),
            client_address: options.client_address.clone(),
        };
        Replica {
            me,
            dir,
            raft: OnceLock::new(),
            log: machine.log,
            snapshots: machine.snapshots,
            sight: machine.sight,
            court: machine.court,
            peers: Arc::clone(&self.peers),
            meters: machine.meters,
            disk: machine.disk,
            leadership: watch::Sender::new(Leadership::Unknown { term: 0 }),
            transfers: Transfers::default(),
            heard: Heard::default(),
            caught_up: AtomicBool::new(false),
            local_reads: OnceLock::new(),
            remote_reads: OnceLock::new(),
            proposals: Semaphore::new(options.proposals_max),
            attested: Counter::default(),
            restored_from: self.restored_from,
            receiving: Semaphore::new(1),
            changing: Semaphore::new(1),
            stopping: AtomicBool::new(false),
            tasks_end: CancellationToken::new(),
            service_end: CancellationToken::new(),
            service_ended: watch::Sender::new(false),
            options,
        }
    }
}

fn spawn_applier(
    machine: Box<dyn Machine>,
    sight: &Arc<Sight>,
    meters: &Arc<Meters>,
    verdicts: &Arc<Verdicts>,
) -> Result<mpsc::Sender<Task>, StartError> {
    let (tasks, queue) = mpsc::channel(applier::QUEUE);
    let applier = Applier {
        machine,
        sight: Arc::clone(sight),
        meters: Arc::clone(meters),
        verdicts: Arc::clone(verdicts),
        last: None,
        membership: crate::types::StoredMembership::default(),
    };
    std::thread::Builder::new()
        .name("raft-apply".into())
        .spawn(move || applier.run(queue))
        .map_err(StartError::io("cannot start the machine's thread"))?;
    Ok(tasks)
}

/// Restores the newest snapshot that is whole and that the machine takes.
async fn restore_newest(
    dir: &Arc<DataDir>,
    snapshots: &Arc<SnapshotStore>,
    tasks: &mpsc::Sender<Task>,
) -> Result<Option<SnapshotFile>, StartError> {
    let place = snapshots.dir().to_owned();
    let shown = place.clone();
    let files = blocking(move || {
        SnapshotStore::files(&place)
            .map_err(StartError::io(format!("cannot read {}", place.display())))
    })
    .await?;
    let cluster = dir.cluster().map(|id| id.to_string()).unwrap_or_default();
    for (path, file) in files {
        let file = match file {
            Ok(file) => file,
            Err(error) => {
                tracing::error!(path = %path.display(), %error, "a snapshot is not usable");
                continue;
            }
        };
        if file.head.cluster != cluster {
            let found = file.head.cluster;
            return Err(StartError::OtherCluster { file: path, found, wanted: cluster });
        }
        match state_machine::restore(tasks, file.clone()).await {
            Ok(()) => {
                tracing::info!(path = %path.display(), index = file.info.index, "restored");
                snapshots.set_newest(file.clone());
                return Ok(Some(file));
            }
            Err(error) => {
                tracing::error!(path = %path.display(), %error, "a snapshot was not restored");
            }
        }
    }
    tracing::debug!(dir = %shown.display(), "no snapshot to begin with");
    Ok(None)
}

async fn open_store(
    options: &Options,
    dir: &Arc<DataDir>,
    snapshot: Option<Position>,
    meters: &Arc<Meters>,
    sight: &Arc<Sight>,
) -> Result<LogStore, StartError> {
    let path = data_dir::log_dir(dir.path());
    let mark_path = data_dir::mark_file(dir.path());
    let kind = options.backend.clone();
    let cache_bytes = options.cache_bytes;
    let opened = unlocked(move || {
        let (backend, mut marks) = backend(kind.clone(), &path, &mark_path)?;
        let opened = open_log(&path, &*backend, &mut *marks, snapshot, cache_bytes)?;
        Ok((opened, backend, marks))
    });
    let (opened, backend, marks) = opened.await?;
    let sight = Arc::clone(sight);
    let failed = move |error| sight.raise(Fault::Log(error));
    LogStore::start(opened, backend, marks, Arc::clone(meters), failed)
        .map_err(StartError::io("cannot start the log's thread"))
}

type Store = (Arc<dyn LogBackend>, Box<dyn MarkStore>);

fn backend(kind: BackendKind, path: &Path, mark_path: &Path) -> Result<Store, StartError> {
    match kind {
        BackendKind::Memory(disk) => Ok((Arc::new(disk.clone()), Box::new(disk))),
        BackendKind::Sled => {
            if path.join("db").exists() && !mark_path.exists() {
                return Err(StartError::Damaged {
                    file: mark_path.to_owned(),
                    detail: "it is missing, though there is a log".into(),
                });
            }
            // The mark is made first: a log without one is a log that lost it.
            let marks =
                HighWater::open(mark_path).map_err(|error| start_error(mark_path, error))?;
            let backend = SledLog::open(path).map_err(|error| start_error(path, error))?;
            Ok((Arc::new(backend), Box::new(marks)))
        }
    }
}

fn config(options: &Options) -> Result<Config, StartError> {
    let timers = &options.timers;
    let config = Config {
        cluster_name: "quorate".into(),
        heartbeat_interval: timers.heartbeat_ms,
        heartbeat_min_interval: Some(timers.heartbeat_ms / 2),
        election_timeout_min: timers.election_min_ms,
        election_timeout_max: timers.election_max_ms,
        enable_pre_vote: Some(true),
        // A leader that comes back must be elected: it may not know what was committed.
        enable_leader_restore: Some(false),
        install_snapshot_timeout: INSTALL_TIMEOUT_MS,
        max_payload_entries: 1024,
        max_append_entries: Some(4096),
        api_batch_capacity: 4096,
        snapshot_policy: SnapshotPolicy::LogsSinceLast(options.snapshot_every_entries.max(1)),
        max_in_snapshot_log_to_keep: options.keep_log_entries,
        purge_batch_size: options.keep_log_entries.clamp(1, 1024),
        replication_lag_threshold: options
            .snapshot_every_entries
            .saturating_add(options.keep_log_entries)
            .max(1000),
        backoff: "50ms 100ms 200ms ...500ms".into(),
        ..Config::default()
    };
    config.validate().map_err(|error| StartError::Options(error.to_string()))
}

fn serve(replica: &Arc<Replica>, listener: TcpListener) -> Result<(), StartError> {
    let service = RaftServiceServer::new(Service { replica: Arc::clone(replica) })
        .max_decoding_message_size(MESSAGE_MAX)
        .max_encoding_message_size(MESSAGE_MAX);
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let ended = Arc::clone(replica);
    tokio::spawn(async move {
        let served = Server::builder()
            .http2_keepalive_interval(Some(SERVER_KEEP_ALIVE))
            .http2_keepalive_timeout(Some(SERVER_KEEP_ALIVE))
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_concurrent_streams(STREAMS_MAX)
            .add_service(service)
            .serve_with_incoming_shutdown(incoming, ended.service_end.cancelled())
            .await;
        if let Err(error) = served {
            tracing::error!(%error, "the listener for members has failed");
        }
        ended.service_ended.send_replace(true);
    });
    Ok(())
}

/// The storage of a member without a network, for the storage suite.
#[cfg(test)]
pub(crate) async fn test_parts(
    options: &Options,
    machine: Box<dyn Machine>,
) -> Result<StateMachine, StartError> {
    let dir = Arc::new(DataDir::open(&options.data_dir, options.member)?);
    Parts::open(options, &dir, machine).await.map(|parts| parts.machine)
}
