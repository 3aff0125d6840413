//! The loop of an agent: waits for whatever comes next, asks the clock first, then acts.
//! What follows from a coordinator's message is in incoming.rs; what to run in ledger.rs.
//! Called by `agent::run`.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::agent::AgentOptions;
use crate::agent::desired::Desired;
use crate::agent::dialer::Dialer;
use crate::agent::event::{AgentEvent, FenceCause};
use crate::agent::fence::{Guard, Lease};
use crate::agent::handle::{Death, SessionHandle};
use crate::agent::ledger::{Action, Change, Ledger};
use crate::agent::operations::{Finished, Operations};
use crate::agent::session::Link;
use crate::channel::ChannelPool;
use crate::error::{Error, ErrorKind};
use crate::operator::Operator;
use crate::proto::session_request::Body;
use crate::proto::{Goodbye, Register, Report, SessionResponse};
use crate::request_id::random16;
use crate::worker::Worker;

/// Dead consumers waiting to be reported.
const DEATHS: usize = 256;
/// The level of the workers' protocol that this agent speaks.
const PROTOCOL_LEVEL: u32 = 1;
/// Least time for one try to open a stream.
const DIAL_MIN: Duration = Duration::from_millis(300);
/// A list of what runs is left out of a message above this many bytes of names.
const RUNNING_BYTES_MAX: usize = 2 << 20;

type Dialed = Result<Link, (String, Error)>;

/// One worker's agent. Fields are grouped as: who, what runs, session, stream, stop.
pub(crate) struct Engine<W: Worker> {
    pub(crate) options: AgentOptions,
    pool: ChannelPool,
    operator: Operator,
    pub(crate) guard: Arc<Guard>,

    operations: Operations<W>,
    pub(crate) ledger: Ledger,
    pub(crate) desired: Desired,
    deaths: (mpsc::Sender<Death>, mpsc::Receiver<Death>),

    pub(crate) node: Option<(u64, u64)>,
    pub(crate) lease: Option<Lease>,
    pub(crate) born_at: Instant,
    pub(crate) ttl: Duration,
    pub(crate) leader_term: u64,
    incarnation: String,

    pub(crate) dialer: Dialer,
    dial: Option<BoxFuture<'static, Dialed>>,
    pub(crate) link: Option<Link>,
    pub(crate) is_registered: bool,
    pub(crate) renew_every: Duration,
    pub(crate) next_report: Instant,
    pub(crate) tell_running: bool,
    /// The report that carries acknowledgements never sent before, until it is answered.
    pub(crate) ack_seq: Option<u64>,
    seq: u64,

    drain_until: Option<Instant>,
    /// The first report on this stream that said that the worker stops.
    pub(crate) stopping_seq: Option<u64>,
    pub(crate) stopping_heard: bool,
}

enum Wake {
    /// Some time came; the loop looks which.
    Clock,
    Stop,
    Dialed(Box<Dialed>),
    Message(Result<SessionResponse, Error>),
    Finished(Finished),
    Death(Death),
}

impl<W: Worker> Engine<W> {
    /// The worker's calls run on `home`, whoever runs the engine.
    pub(crate) fn new(options: AgentOptions, worker: W, home: Handle) -> Result<Self, Error> {
        let now = Instant::now();
        Ok(Self {
            pool: ChannelPool::new(options.calls.transport.clone()),
            operator: Operator::connect(&options.endpoints, options.calls.clone()),
            guard: Arc::default(),
            operations: Operations::new(Arc::new(worker), home),
            ledger: Ledger::default(),
            desired: Desired::default(),
            deaths: mpsc::channel(DEATHS),
            node: None,
            lease: None,
            born_at: now,
            ttl: Duration::ZERO,
            leader_term: 0,
            incarnation: incarnation()?,
            dialer: Dialer::new(&options.endpoints, options.calls.pause_min),
            dial: None,
            link: None,
            is_registered: false,
            renew_every: options.calls.attempt_timeout,
            next_report: now,
            tell_running: false,
            ack_seq: None,
            seq: 0,
            drain_until: None,
            stopping_seq: None,
            stopping_heard: false,
            options,
        })
    }

    pub(crate) async fn run(mut self, stop: CancellationToken) -> Result<(), Error> {
        let ended = self.serve(&stop).await;
        self.guard.close();
        self.operations.stop_all().await;
        ended
    }

    async fn serve(&mut self, stop: &CancellationToken) -> Result<(), Error> {
        loop {
            // This process may have been stopped since the last step: the clock comes first.
            if self.lease_is_over() {
                self.fence(FenceCause::Silence).await?;
                continue;
            }
            if let Some(drained) = self.may_leave() {
                self.leave(drained).await;
                return Ok(());
            }
            self.report_if_due().await?;
            self.dial_if_needed();
            let wake = self.wake(stop).await;
            // What woke us is worth nothing if the session ended meanwhile.
            if !self.lease_is_over() {
                self.handle(wake).await?;
            }
        }
    }

    async fn wake(&mut self, stop: &CancellationToken) -> Wake {
        let fence_at = self.lease.as_ref().map(Lease::fence_at);
        let clock = [fence_at, self.drain_until, self.link.is_some().then_some(self.next_report)];
        let clock = clock.into_iter().flatten().min();
        let is_stopping = self.drain_until.is_some();
        let Self { dial, link, operations, deaths, .. } = self;
        tokio::select! {
            biased;
            () = until(clock) => Wake::Clock,
            () = stop.cancelled(), if !is_stopping => Wake::Stop,
            dialed = dialed(dial) => Wake::Dialed(Box::new(dialed)),
            message = next_message(link) => Wake::Message(message),
            Some(finished) = operations.next() => Wake::Finished(finished),
            Some(death) = deaths.1.recv() => Wake::Death(death),
        }
    }

    async fn handle(&mut self, wake: Wake) -> Result<(), Error> {
        match wake {
            Wake::Clock => {}
            Wake::Stop => {
                self.drain_until = Some(Instant::now() + self.options.drain_timeout);
                self.next_report = Instant::now();
                self.tell(&AgentEvent::Draining);
            }
            Wake::Dialed(dialed) => match *dialed {
                Ok(link) => {
                    self.link = Some(link);
                    // The registration must be answered by then.
                    self.next_report = Instant::now() + self.options.calls.attempt_timeout;
                    self.desired.begin_stream();
                }
                Err((address, error)) => self.lost(&address, error).await?,
            },
            Wake::Message(Ok(message)) => self.incoming(message).await?,
            Wake::Message(Err(error)) => self.lost_link(error).await?,
            Wake::Finished(finished) => self.finished(finished),
            Wake::Death(death) => self.died(&death),
        }
        Ok(())
    }

    /// Ends the session: nothing runs once this returns, and the next one is another (N-9).
    pub(crate) async fn fence(&mut self, cause: FenceCause) -> Result<(), Error> {
        self.guard.close();
        self.link = None;
        self.dial = None;
        self.is_registered = false;
        self.operations.stop_all().await;
        let stopped = self.ledger.len();
        self.ledger.clear();
        self.desired.clear();
        self.lease = None;
        self.ack_seq = None;
        // Only a leader that commits can answer a new registration: its term is the one to trust.
        self.leader_term = 0;
        self.incarnation = incarnation()?;
        self.dialer.session_ended(self.born_at.elapsed() < self.ttl);
        if let Some((node_id, node_epoch)) = self.node.take() {
            self.tell(&AgentEvent::Fenced { node_id, node_epoch, cause, stopped });
        }
        Ok(())
    }

    pub(crate) async fn lost_link(&mut self, error: Error) -> Result<(), Error> {
        let address = self.link.as_ref().map(|link| link.address.clone()).unwrap_or_default();
        self.lost(&address, error).await
    }

    /// A stream could not be opened or broke. The session may live on over another one.
    async fn lost(&mut self, address: &str, error: Error) -> Result<(), Error> {
        self.link = None;
        self.ack_seq = None;
        self.stopping_seq = None;
        if let Some(lease) = self.lease.as_mut() {
            lease.forget_sent();
        }
        let was_registered = std::mem::take(&mut self.is_registered);
        match error.kind() {
            ErrorKind::Invalid => return Err(error),
            ErrorKind::Precondition if self.node.is_some() => {
                self.dialer.refused(address, &error);
                return self.fence(FenceCause::Told(error.to_string())).await;
            }
            _ => {}
        }
        if was_registered {
            self.dialer.broke(address, &error);
            let (coordinator, error) = (address.to_owned(), error.to_string());
            self.tell(&AgentEvent::Disconnected { coordinator, error });
        } else {
            tracing::debug!(address, %error, "no session here");
            self.dialer.refused(address, &error);
        }
        Ok(())
    }

    fn dial_if_needed(&mut self) {
        if self.link.is_some() || self.dial.is_some() {
            return;
        }
        let (pause, address) = self.dialer.next();
        let seq = self.next_seq();
        let register = Register {
            name: self.options.name.clone(),
            address: self.options.address.clone(),
            role: self.options.role.into(),
            version: self.options.version.clone(),
            labels: self.options.labels.clone().into_iter().collect(),
            incarnation: self.incarnation.clone(),
            running: self.running().unwrap_or_default(),
            desired_digest: self.desired.digest(),
            level: PROTOCOL_LEVEL,
        };
        let channel = self.pool.channel(&address);
        // A coordinator that hangs must not cost the time in which the others could be asked.
        let limit = self.options.calls.attempt_timeout.min(self.renew_every / 2).max(DIAL_MIN);
        self.dial = Some(Box::pin(async move {
            sleep(pause).await;
            match channel {
                Ok(channel) => Link::open(address, channel, seq, register, limit).await,
                Err(error) => Err((address, error)),
            }
        }));
    }

    async fn report_if_due(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        if self.link.is_none() {
            return Ok(());
        }
        if !self.is_registered {
            if now >= self.next_report {
                return self.lost_link(self.silent("no answer to a registration")).await;
            }
            return Ok(());
        }
        let unanswered = self.lease.as_ref().and_then(Lease::unanswered_since);
        if unanswered.is_some_and(|since| now >= since + self.renew_every) {
            return self.lost_link(self.silent("no answer to a renewal")).await;
        }
        let acks_wait = self.ledger.acks.has_unsent() && self.ack_seq.is_none();
        if now >= self.next_report || acks_wait {
            return self.report(now).await;
        }
        Ok(())
    }

    async fn report(&mut self, now: Instant) -> Result<(), Error> {
        let (Some((node_id, node_epoch)), Some(_)) = (self.node, &self.link) else {
            return Ok(());
        };
        let actions = self.ledger.retry_stuck(&self.desired);
        self.begin(actions);
        let seq = self.next_seq();
        if self.ledger.acks.has_unsent() {
            self.ack_seq = Some(seq);
        }
        let running = if std::mem::take(&mut self.tell_running) { self.running() } else { None };
        let stopping = self.drain_until.is_some();
        if stopping && self.stopping_seq.is_none() {
            self.stopping_seq = Some(seq);
        }
        let report = Report {
            node_id,
            node_epoch,
            acks: self.ledger.acks.report(seq),
            running_complete: running.is_some(),
            running: running.unwrap_or_default(),
            stopping,
            progress: self.ledger.progress(|channel, term| self.operations.progress(channel, term)),
        };
        if let Some(lease) = self.lease.as_mut() {
            lease.sent(seq, now);
        }
        self.next_report = now + self.renew_every;
        if self.link.as_ref().is_some_and(|link| link.send(seq, Body::Report(report))) {
            return Ok(());
        }
        self.lost_link(self.silent("the coordinator does not read")).await
    }

    fn finished(&mut self, finished: Finished) {
        let Finished { channel, term, serial, outcome } = finished;
        let (change, action) = self.ledger.finished(&channel, serial, outcome, &self.desired);
        if let Some(change) = change {
            self.tell(&match change {
                Change::Watched => AgentEvent::Watching { channel, term },
                Change::WatchFailed(reason) => AgentEvent::WatchFailed { channel, term, reason },
                Change::Released => AgentEvent::Released { channel, term },
                Change::Stopped => AgentEvent::Stopped { channel, term },
                Change::StopFailed(reason) => AgentEvent::StopFailed { channel, term, reason },
            });
        }
        self.begin(action.into_iter().collect());
    }

    fn died(&mut self, death: &Death) {
        let Death { channel, term, reason, .. } = death;
        if self.node == Some(death.node) && self.ledger.died(channel, *term, reason) {
            let (channel, reason) = (channel.clone(), reason.clone());
            self.tell(&AgentEvent::WatchFailed { channel, term: *term, reason });
        }
    }

    pub(crate) fn begin(&mut self, actions: Vec<Action>) {
        let Some(node) = self.node else { return };
        for action in actions {
            if let Action::Watch { directive, .. } = &action {
                let (channel, term) = (directive.channel.clone(), directive.term);
                self.tell(&AgentEvent::Starting { channel, term });
            }
            let session = SessionHandle {
                node,
                guard: Arc::clone(&self.guard),
                operator: self.operator.clone(),
                deaths: self.deaths.0.clone(),
            };
            self.operations.begin(action, session);
        }
    }

    /// Whether a graceful stop is complete, and if so whether everything was moved elsewhere.
    fn may_leave(&self) -> Option<bool> {
        let until = self.drain_until?;
        if self.node.is_none() {
            return Some(true);
        }
        let is_empty = self.desired.is_known() && self.desired.is_empty();
        if self.stopping_heard && is_empty && self.ledger.is_idle() {
            return Some(true);
        }
        (Instant::now() >= until).then_some(false)
    }

    async fn leave(&mut self, drained: bool) {
        self.guard.close();
        self.operations.stop_all().await;
        let seq = self.next_seq();
        if let (Some((node_id, node_epoch)), Some(mut link)) = (self.node, self.link.take())
            && link.send(seq, Body::Goodbye(Goodbye { node_id, node_epoch }))
        {
            // The coordinator ends the stream once the goodbye is in the log.
            let end = async { while link.next().await.is_ok() {} };
            let _ = timeout(self.options.calls.attempt_timeout, end).await;
        }
        self.tell(&AgentEvent::Left { drained });
    }

    fn lease_is_over(&self) -> bool {
        self.lease.as_ref().is_some_and(|lease| lease.is_over(Instant::now()))
    }

    fn running(&self) -> Option<Vec<crate::proto::Running>> {
        let running = self.ledger.running();
        let bytes: usize = running.iter().map(|one| one.channel.len() + 16).sum();
        (bytes <= RUNNING_BYTES_MAX).then_some(running)
    }

    fn silent(&self, detail: &'static str) -> Error {
        let address = self.link.as_ref().map(|link| link.address.as_str());
        Error::unreachable(address.unwrap_or_default(), detail)
    }

    fn next_seq(&mut self) -> u64 {
        self.seq += 1;
        self.seq
    }

    pub(crate) fn tell(&self, event: &AgentEvent) {
        self.options.observer.tell(event);
    }
}

impl<W: Worker> Drop for Engine<W> {
    fn drop(&mut self) {
        self.guard.close();
    }
}

fn incarnation() -> Result<String, Error> {
    Ok(random16()?.iter().map(|byte| format!("{byte:02x}")).collect())
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

async fn dialed(dial: &mut Option<BoxFuture<'static, Dialed>>) -> Dialed {
    match dial.as_mut() {
        Some(future) => {
            let dialed = future.await;
            *dial = None;
            dialed
        }
        None => std::future::pending().await,
    }
}

async fn next_message(link: &mut Option<Link>) -> Result<SessionResponse, Error> {
    match link.as_mut() {
        Some(link) => link.next().await,
        None => std::future::pending().await,
    }
}
