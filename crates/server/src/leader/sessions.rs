//! Keeps the sessions of workers while this member leads: hears renewals, logs silence, expires the
//! dead. The arithmetic is in `silence`; streams are in `api::session`.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use state::State;
use state::command::Command;
use state::node::NodeRef;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};
use tracing::{info, warn};

use super::silence::{Observation, SilenceMeter};
use super::{Parts, Reign, lock};
use crate::clock::Clock;
use crate::limits;

/// A worker came back from accounted silence and waits for the entry that says so.
#[derive(Debug)]
pub struct Renewal {
    node: NodeRef,
    done: oneshot::Sender<()>,
}

/// The sessions as this leadership hears them.
#[derive(Debug)]
pub struct Sessions {
    meter: Mutex<SilenceMeter>,
    renewals: mpsc::Sender<Renewal>,
}

impl Sessions {
    /// Measures every live session from now, on top of its accounted silence.
    #[must_use]
    pub fn start(state: &State, clock: &Clock) -> (Self, mpsc::Receiver<Renewal>) {
        let (renewals, receiver) = mpsc::channel(limits::SUBMISSIONS_MAX);
        let meter = Mutex::new(SilenceMeter::start(state, clock.local_ms()));
        (Self { meter, renewals }, receiver)
    }

    /// The session was heard now. True: its renewal may be acknowledged. Waits for the log when
    /// silence of this session is, or may be, in it (ruling 6).
    pub async fn renew(&self, state: &State, clock: &Clock, node: NodeRef) -> bool {
        let must_log = {
            let mut meter = lock(&self.meter);
            meter.touch(node, clock.local_ms());
            meter.must_log_renewal(state, node)
        };
        if !must_log {
            return true;
        }
        let (done, recorded) = oneshot::channel();
        self.renewals.send(Renewal { node, done }).await.is_ok() && recorded.await.is_ok()
    }
}

/// The duty: observes every tenth of the ttl, logs renewals as they come, expires.
pub async fn run(parts: Parts, reign: Arc<Reign>, mut renewals: mpsc::Receiver<Renewal>) {
    let mut next = Instant::now();
    loop {
        let interval = SilenceMeter::interval_ms(&parts.views.now().state);
        tokio::select! {
            biased;
            Some(first) = renewals.recv() => {
                let mut waiting = vec![first];
                while let Ok(more) = renewals.try_recv() {
                    waiting.push(more);
                }
                record_renewals(&parts, &reign, waiting).await;
            }
            () = sleep_until(next) => {
                observe(&parts, &reign).await;
                expire(&parts, &reign).await;
                next = Instant::now() + Duration::from_millis(interval);
            }
        }
    }
}

async fn record_renewals(parts: &Parts, reign: &Reign, waiting: Vec<Renewal>) {
    let mut renewed: Vec<NodeRef> = waiting.iter().map(|renewal| renewal.node).collect();
    renewed.sort_unstable();
    renewed.dedup();
    if report(parts, reign, Observation { silent: Vec::new(), renewed }).await {
        for renewal in waiting {
            // The stream may have ended meanwhile.
            let _ = renewal.done.send(());
        }
    }
}

async fn observe(parts: &Parts, reign: &Reign) {
    let view = parts.views.now();
    let found = lock(&reign.sessions.meter).observe(&view.state, parts.clock.local_ms());
    report(parts, reign, found).await;
}

/// Proposes a report; true once it is applied.
async fn report(parts: &Parts, reign: &Reign, found: Observation) -> bool {
    let renewed = found.renewed.clone();
    let command = lock(&reign.sessions.meter).report(reign.term, found);
    let Some(command) = command else { return true };
    match parts.record(vec![parts.request("sessions", command)]).await {
        Ok(_) => {
            lock(&reign.sessions.meter).settled(&renewed);
            true
        }
        Err(error) => {
            warn!(%error, "silence of sessions was not recorded");
            false
        }
    }
}

async fn expire(parts: &Parts, reign: &Reign) {
    let view = parts.views.now();
    let due = lock(&reign.sessions.meter).expired(&view.state, reign.term, parts.clock.local_ms());
    for expiry in due.into_iter().take(limits::DUTIES_BATCH_MAX) {
        if let Command::ExpireSession { node, .. } = &expiry {
            info!(%node, "session expires");
        }
        if let Err(error) = parts.record(vec![parts.request("sessions", expiry)]).await {
            warn!(%error, "an expiry was not recorded");
            return;
        }
    }
}
