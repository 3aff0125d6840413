//! A worker of the benchmark that owns the channels whose positions are committed: the agent of the
//! client library keeps its session, and every watch succeeds at once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use client::agent::{AgentOptions, SessionHandle};
use client::proto::{OwnerClaim, RemoveChannelRequest, Role, WatchChannelsRequest};
use client::{
    Assignment, CancellationToken, Endpoints, Operator, ReleaseFailure, WatchFailure, Worker,
};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::load::{Claim, spec};
use crate::exit::Failure;
use crate::group::wait;
use crate::render;

const PATIENCE: Duration = Duration::from_secs(60);
/// More channels than this only make the beginning longer.
const CHANNELS_MAX: u32 = 1024;

type Claims = Arc<Mutex<BTreeMap<String, OwnerClaim>>>;

/// The worker with its channels.
pub(super) struct Owner {
    operator: Operator,
    names: Vec<String>,
    run: String,
    claims: Claims,
    stop: CancellationToken,
    agent: JoinHandle<Result<(), client::Error>>,
}

/// Accepts every channel, and does nothing with it.
pub(super) struct Idle {
    claims: Claims,
}

impl Idle {
    pub(super) fn new() -> (Self, Claims) {
        let claims = Claims::default();
        (Self { claims: Arc::clone(&claims) }, claims)
    }

    fn with<T>(&self, look: impl FnOnce(&mut BTreeMap<String, OwnerClaim>) -> T) -> T {
        look(&mut self.claims.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Worker for Idle {
    async fn watch(
        &self,
        assignment: Assignment,
        session: SessionHandle,
    ) -> Result<(), WatchFailure> {
        let claim = session.claim(assignment.term);
        self.with(|claims| claims.insert(assignment.channel, claim));
        Ok(())
    }

    async fn release(&self, channel: &str, _term: u64) -> Result<(), ReleaseFailure> {
        self.with(|claims| claims.remove(channel));
        Ok(())
    }

    async fn stop(&self, channel: &str, _term: u64) -> Result<(), ReleaseFailure> {
        self.with(|claims| claims.remove(channel));
        Ok(())
    }

    async fn stop_all(&self) {
        self.with(BTreeMap::clear);
    }
}

/// How a worker of the benchmark registers.
pub(super) fn agent(addresses: &[String], name: String) -> Result<AgentOptions, Failure> {
    let endpoints = Endpoints::from_addresses(addresses)
        .map_err(|error| Failure::usage(format!("--coordinators: {error}")))?;
    let mut options = AgentOptions::new(endpoints, name, Role::Data);
    // Nobody takes over what a benchmark leaves: its channels are removed.
    options.drain_timeout = Duration::ZERO;
    Ok(options)
}

/// Eight hex digits that no other run has.
pub(super) fn run_name() -> Result<String, Failure> {
    let mut bytes = [0_u8; 4];
    getrandom::fill(&mut bytes)
        .map_err(|error| Failure::failed(format!("no random numbers from the system: {error}")))?;
    Ok(render::hex(&bytes))
}

impl Owner {
    /// Registers it, announces one channel for each client, and waits until all are owned: by this
    /// worker, or in a group with other workers by those too.
    pub(super) async fn start(
        operator: &Operator,
        addresses: &[String],
        clients: u32,
    ) -> Result<Self, Failure> {
        let run = run_name()?;
        let (idle, claims) = Idle::new();
        let stop = CancellationToken::new();
        let options = agent(addresses, format!("bench-{run}"))?;
        let agent = tokio::spawn(client::agent::run(options, idle, stop.clone()));
        let names: Vec<String> =
            (0..clients.min(CHANNELS_MAX)).map(|number| format!("bench-{run}-{number}")).collect();
        let owner = Self { operator: operator.clone(), names, run, claims, stop, agent };
        owner.acquire().await?;
        Ok(owner)
    }

    pub(super) fn run(&self) -> &str {
        &self.run
    }

    /// The channels it owns now.
    pub(super) fn claims(&self) -> Vec<Claim> {
        let claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        let claim =
            |(name, claim): (&String, &OwnerClaim)| Claim { name: name.clone(), claim: *claim };
        claims.iter().map(claim).collect()
    }

    /// Removes its channels and ends its session.
    pub(super) async fn stop(self) {
        for name in self.names {
            let request = RemoveChannelRequest { write: None, name };
            // What cannot be removed now stays behind under a name that tells where it is from.
            let _left = self.operator.remove_channel(request).await;
        }
        self.stop.cancel();
        let _ended = self.agent.await;
    }

    async fn acquire(&self) -> Result<(), Failure> {
        let channels = self.names.iter().cloned().map(spec).collect();
        self.operator.watch_channels(WatchChannelsRequest { write: None, channels }).await?;
        let until = Instant::now() + PATIENCE;
        let (mut last, mut since) = (0, Instant::now());
        loop {
            let owned = self.claims().len();
            if owned != last {
                (last, since) = (owned, Instant::now());
            }
            // Other workers may have got the rest: enough once nothing comes any more.
            let enough = owned > 0 && since.elapsed() > Duration::from_secs(1);
            if owned >= self.names.len() || enough {
                return Ok(());
            }
            wait(until, "the benchmark's worker to own channels").await?;
        }
    }
}
