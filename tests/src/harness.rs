//! A group of real coordinators in one process: real Raft, real sled, real gRPC, on loopback, in
//! temporary directories. Every test ends with `Group::check`.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use client::proto as v1;
use client::{Endpoints, Operator, Options};
use server::Coordinator;
use server::config::{Backend, Config, LogConfig, LogFormat, RaftConfig};
use tempfile::TempDir;
use tokio::time::{Instant, sleep, timeout};

/// Longest time any single condition may take.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks at a condition.
const LOOK: Duration = Duration::from_millis(10);

struct Seat {
    config: Config,
    _dir: TempDir,
    running: Option<Coordinator>,
}

/// Coordinators that belong together.
pub struct Group {
    seats: Vec<Seat>,
    operator: Operator,
}

/// A configuration on free loopback ports.
pub fn config(member: u64, dir: &Path) -> Config {
    let free: SocketAddr = ([127, 0, 0, 1], 0).into();
    Config {
        member,
        data_dir: dir.to_owned(),
        client_listen: free,
        peer_listen: free,
        http_listen: free,
        advertise_client: None,
        advertise_peer: None,
        insecure: false,
        port_file: None,
        log: LogConfig { format: LogFormat::Text, filter: String::from("warn") },
        raft: RaftConfig {
            heartbeat_ms: 100,
            election_min_ms: 400,
            election_max_ms: 800,
            snapshot_every_entries: 50_000,
            snapshot_every_bytes: 64 << 20,
            backend: Backend::Sled,
        },
    }
}

/// Waits until `condition` gives something; panics with `what` after [`PATIENCE`].
pub async fn wait_for<T, F>(what: &str, mut condition: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = condition().await {
            return found;
        }
        assert!(Instant::now() < until, "not within {PATIENCE:?}: {what}");
        sleep(LOOK).await;
    }
}

impl Group {
    /// Starts and bootstraps a group of this many members.
    pub async fn start(members: u64) -> Self {
        Self::start_with(members, |_| {}).await
    }

    /// The same, with changes to every configuration.
    pub async fn start_with(members: u64, change: impl Fn(&mut Config)) -> Self {
        let group = Self::waiting(members, change).await;
        let listed = group.addresses();
        group.operator.bootstrap(v1::BootstrapRequest { members: listed }).await.unwrap();
        group.leader().await;
        // A new group raises its level by itself: what a test counts begins after that.
        wait_for("the newest level", || async {
            let status = group.operator.get_status(v1::GetStatusRequest::default()).await.ok()?;
            (status.level == state::level::KNOWN).then_some(())
        })
        .await;
        group
    }

    /// Members that are up and not bootstrapped.
    pub async fn waiting(members: u64, change: impl Fn(&mut Config)) -> Self {
        let mut seats = Vec::new();
        for member in 1..=members {
            let dir = tempfile::tempdir().unwrap();
            let mut config = config(member, dir.path());
            change(&mut config);
            let running = Coordinator::start(&config).await.unwrap();
            // Fixed from now on: a member comes back under the addresses the others know.
            let bound = running.bound();
            config.client_listen = bound.client;
            config.peer_listen = bound.peer;
            config.http_listen = bound.http;
            seats.push(Seat { config, _dir: dir, running: Some(running) });
        }
        let clients: Vec<String> =
            seats.iter().map(|seat| seat.config.client_listen.to_string()).collect();
        let endpoints: Endpoints = clients.join(",").parse().unwrap();
        let options = Options { actor: String::from("test"), ..Options::default() };
        Self { operator: Operator::connect(&endpoints, options), seats }
    }

    fn addresses(&self) -> Vec<v1::MemberAddress> {
        self.seats
            .iter()
            .map(|seat| v1::MemberAddress {
                member: seat.config.member,
                peer_address: seat.config.peer_listen.to_string(),
                client_address: seat.config.client_listen.to_string(),
            })
            .collect()
    }

    /// A client of the whole group.
    pub fn operator(&self) -> &Operator {
        &self.operator
    }

    /// A client of one member, by its place from 0.
    pub fn pinned(&self, at: usize) -> Operator {
        self.operator.pinned(&self.client_address(at)).unwrap()
    }

    /// Where clients reach this member.
    pub fn client_address(&self, at: usize) -> String {
        self.seats[at].config.client_listen.to_string()
    }

    /// Where the HTTP port of this member is.
    pub fn http_address(&self, at: usize) -> SocketAddr {
        self.seats[at].config.http_listen
    }

    /// All client addresses.
    pub fn endpoints(&self) -> Endpoints {
        let all: Vec<String> = (0..self.seats.len()).map(|at| self.client_address(at)).collect();
        all.join(",").parse().unwrap()
    }

    /// The data directory of this member.
    pub fn data_dir(&self, at: usize) -> &Path {
        &self.seats[at].config.data_dir
    }

    /// The Raft handle of a running member.
    pub fn raft(&self, at: usize) -> &raft::Handle {
        self.seats[at].running.as_ref().unwrap().raft()
    }

    /// Places of the members that run.
    pub fn running(&self) -> Vec<usize> {
        (0..self.seats.len()).filter(|at| self.seats[*at].running.is_some()).collect()
    }

    /// The place of the member that leads and takes writes.
    pub async fn leader(&self) -> usize {
        wait_for("a leader that takes writes", || async {
            for at in self.running() {
                let status = self.pinned(at).get_status(v1::GetStatusRequest::default()).await;
                let leads = status.is_ok_and(|status| {
                    status.state() == v1::MemberState::Leader && status.has_quorum
                });
                if leads {
                    return Some(at);
                }
            }
            None
        })
        .await
    }

    /// Stops a member in order.
    pub async fn stop(&mut self, at: usize) {
        if let Some(running) = self.seats[at].running.take() {
            running.stop().await;
        }
    }

    /// Starts a member that was stopped, on the data it left.
    pub async fn restart(&mut self, at: usize) {
        assert!(self.seats[at].running.is_none(), "member {at} runs already");
        let config = self.seats[at].config.clone();
        let started = timeout(PATIENCE, Coordinator::start(&config)).await.unwrap();
        self.seats[at].running = Some(started.unwrap());
    }

    /// Announces channels of these names.
    pub async fn watch(&self, names: &[&str]) -> u64 {
        let channels = names
            .iter()
            .map(|name| v1::ChannelSpec {
                name: (*name).to_owned(),
                collection: 1,
                ..Default::default()
            })
            .collect();
        let request = v1::WatchChannelsRequest { write: None, channels };
        let response = self.operator.watch_channels(request).await.unwrap();
        response.receipt.unwrap().revision
    }

    /// All channels, linearizable.
    pub async fn channels(&self) -> Vec<v1::Channel> {
        self.operator.all_channels(v1::ListChannelsRequest::default()).await.unwrap()
    }

    /// Waits until every running member has applied the same entries, then checks that witnesses
    /// and digests are equal and that no invariant is broken.
    pub async fn check(&self) {
        let mut statuses = Vec::new();
        for at in self.running() {
            let address = self.client_address(at);
            let same = wait_for(&format!("member at {address} catches up"), || async {
                let mine =
                    self.pinned(at).get_status(v1::GetStatusRequest::default()).await.ok()?;
                let leader = self.leader().await;
                let lead =
                    self.pinned(leader).get_status(v1::GetStatusRequest::default()).await.ok()?;
                let (mine_at, lead_at) = (mine.header.clone()?, lead.header?);
                (mine_at.index >= lead_at.index && mine_at.revision == lead_at.revision)
                    .then_some(mine)
            })
            .await;
            statuses.push(same);
        }
        for status in &statuses {
            assert!(status.violations.is_empty(), "{:?}", status.violations);
        }
        let running = self.running();
        wait_for("equal witnesses of all that run", || async {
            let asked = self.operator.get_witness(v1::GetWitnessRequest { index: 0 }).await.ok()?;
            let known: Vec<_> = asked.witnesses.iter().filter(|each| each.reachable).collect();
            let first = known.first()?;
            let equal = known.iter().all(|each| each.witness == first.witness);
            (equal && known.len() >= running.len()).then_some(())
        })
        .await;
    }

    /// Stops everything.
    pub async fn end(mut self) {
        for at in self.running() {
            self.stop(at).await;
        }
    }
}
