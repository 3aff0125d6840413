//! The operator client: any coordinator may be asked, the leader is followed.
//! The calls are in one file per service (nodes, channels, events, admin); retries in call.rs.
//! Used by the command line, the tests and the agent's metadata commits.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::channel::{ChannelPool, TransportOptions};
use crate::endpoints::Endpoints;
use crate::error::Error;
use crate::proto;
use crate::request_id::RequestId;
use crate::route::{Route, Tour};

/// How an operator asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Longest time for one call with all its attempts.
    pub deadline: Duration,
    /// Longest time for one attempt at one coordinator.
    pub attempt_timeout: Duration,
    /// First pause after everyone was asked; doubles, with jitter.
    pub pause_min: Duration,
    /// Longest such pause.
    pub pause_max: Duration,
    /// Who asks, for the history; at most 128 bytes.
    pub actor: String,
    /// For reads that do not say what they need.
    pub read: proto::ReadOptions,
    /// Connections.
    pub transport: TransportOptions,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(10),
            attempt_timeout: Duration::from_secs(2),
            pause_min: Duration::from_millis(5),
            pause_max: Duration::from_millis(100),
            actor: String::new(),
            read: proto::ReadOptions::default(),
            transport: TransportOptions::default(),
        }
    }
}

/// A client of the whole group. Cheap to clone; clones share connections and what is known of
/// the leader.
#[derive(Debug, Clone)]
pub struct Operator {
    pub(crate) options: Arc<Options>,
    pub(crate) pool: Arc<ChannelPool>,
    route: Arc<Mutex<Route>>,
    /// One coordinator only, one attempt only.
    pub(crate) pinned: bool,
}

impl Operator {
    /// Connects lazily: the first call opens the first connection.
    pub fn connect(endpoints: &Endpoints, options: Options) -> Self {
        let pool = Arc::new(ChannelPool::new(options.transport.clone()));
        let route = Arc::new(Mutex::new(Route::new(endpoints.addresses())));
        Self { options: Arc::new(options), pool, route, pinned: false }
    }

    /// A client of one coordinator: asks it once, follows nobody. For calls about that member.
    pub fn pinned(&self, address: &str) -> Result<Self, Error> {
        crate::endpoints::check(address)?;
        let route = Arc::new(Mutex::new(Route::new(&[address.to_owned()])));
        let (options, pool) = (Arc::clone(&self.options), Arc::clone(&self.pool));
        Ok(Self { options, pool, route, pinned: true })
    }

    /// The same with connections of its own.
    pub(crate) fn apart(&self) -> Self {
        let pool = Arc::new(ChannelPool::new(self.options.transport.clone()));
        Self { pool, ..self.clone() }
    }

    /// The same client with another deadline for its calls; connections are shared.
    pub fn with_deadline(&self, deadline: Duration) -> Self {
        let options = Options { deadline, ..(*self.options).clone() };
        Self { options: Arc::new(options), ..self.clone() }
    }

    /// The options in force.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The coordinator that answered last, if any did.
    pub fn preferred(&self) -> Option<String> {
        self.with_route(|route| route.leader().map(str::to_owned))
    }

    pub(crate) fn tour(&self) -> Tour {
        self.with_route(|route| route.tour())
    }

    pub(crate) fn prefer(&self, address: &str) {
        self.with_route(|route| route.prefer(address));
    }

    pub(crate) fn forget(&self, address: &str) {
        self.with_route(|route| route.forget(address));
    }

    fn with_route<T>(&self, use_route: impl FnOnce(&mut Route) -> T) -> T {
        use_route(&mut self.route.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Completes what the caller left open, so that a retry carries the same id.
    pub(crate) fn complete_write(
        &self,
        write: &mut Option<proto::WriteOptions>,
    ) -> Result<(), Error> {
        let write = write.get_or_insert_default();
        if write.request_id.is_empty() {
            let request = RequestId::fresh()?;
            write.request_id = request.bytes();
            write.issued_ms = request.issued_ms();
        }
        if write.actor.is_empty() {
            write.actor.clone_from(&self.options.actor);
        }
        Ok(())
    }

    pub(crate) fn complete_read(&self, read: &mut Option<proto::ReadOptions>) {
        read.get_or_insert(self.options.read);
    }
}
