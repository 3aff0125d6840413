//! A worker whose calls are written down, and an agent around it.
//! What the coordinator says is scripted in the tests themselves.
//! Used by agent.rs and fencing.rs.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use client::agent::{AgentEvent, AgentOptions, Observer, SessionHandle};
use client::proto::Role;
use client::{
    Assignment, CancellationToken, Endpoints, Error, ReleaseFailure, WatchFailure, Worker, agent,
};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::fake::{Fake, PATIENCE};

/// Calls of the worker, in order, as text.
#[derive(Clone, Default)]
pub(crate) struct Calls(Arc<Mutex<Vec<String>>>);

impl Calls {
    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().expect("no panic").clone()
    }

    fn push(&self, call: String) {
        self.0.lock().expect("no panic").push(call);
    }
}

/// Does everything at once; channels named hang-* never finish a watch, fail-* fail it.
struct Recorder {
    calls: Calls,
    sessions: mpsc::Sender<SessionHandle>,
}

impl Worker for Recorder {
    async fn watch(
        &self,
        assignment: Assignment,
        session: SessionHandle,
    ) -> Result<(), WatchFailure> {
        self.calls.push(format!("watch {} {}", assignment.channel, assignment.term));
        // Nobody may want it.
        let _ = self.sessions.try_send(session);
        if assignment.channel.starts_with("hang") {
            std::future::pending::<()>().await;
        }
        if assignment.channel.starts_with("fail") {
            return Err(WatchFailure { reason: "asked to".to_owned(), stopped: false });
        }
        assert!(!assignment.channel.starts_with("panic"), "asked to");
        Ok(())
    }

    async fn release(&self, channel: &str, term: u64) -> Result<(), ReleaseFailure> {
        self.calls.push(format!("release {channel} {term}"));
        Ok(())
    }

    async fn stop(&self, channel: &str, term: u64) -> Result<(), ReleaseFailure> {
        self.calls.push(format!("stop {channel} {term}"));
        Ok(())
    }

    async fn stop_all(&self) {
        self.calls.push("stop all".to_owned());
    }
}

/// A running agent and what it says.
pub(crate) struct Running {
    pub(crate) calls: Calls,
    pub(crate) events: mpsc::Receiver<AgentEvent>,
    pub(crate) sessions: mpsc::Receiver<SessionHandle>,
    pub(crate) stop: CancellationToken,
    pub(crate) agent: JoinHandle<Result<(), Error>>,
}

impl Running {
    pub(crate) fn start(fakes: &[&Fake]) -> Self {
        Self::start_by(fakes, |options, worker, stop| {
            tokio::spawn(agent::run(options, worker, stop))
        })
    }

    /// With the session on a thread of its own.
    pub(crate) fn start_apart(fakes: &[&Fake]) -> Self {
        Self::start_by(fakes, |options, worker, stop| {
            tokio::spawn(agent::run_apart(options, worker, stop))
        })
    }

    fn start_by(
        fakes: &[&Fake],
        run: fn(AgentOptions, Recorder, CancellationToken) -> JoinHandle<Result<(), Error>>,
    ) -> Self {
        let addresses = fakes.iter().map(|fake| fake.address.as_str());
        let endpoints = Endpoints::from_addresses(addresses).expect("well formed");
        let (event_sender, events) = mpsc::channel(1_024);
        let (session_sender, sessions) = mpsc::channel(64);
        let mut options = AgentOptions::new(endpoints, "w1", Role::Data);
        options.drain_timeout = Duration::from_millis(500);
        options.observer = Observer::new(move |event| {
            event_sender.try_send(event.clone()).expect("the test reads its events");
        });
        let (calls, stop) = (Calls::default(), CancellationToken::new());
        let worker = Recorder { calls: calls.clone(), sessions: session_sender };
        let agent = run(options, worker, stop.clone());
        Self { calls, events, sessions, stop, agent }
    }

    /// The next event for which `pick` gives something; those before are passed over.
    pub(crate) async fn event<T>(&mut self, pick: impl Fn(&AgentEvent) -> Option<T>) -> T {
        let found = async {
            loop {
                let event = self.events.recv().await.expect("the agent runs");
                if let Some(found) = pick(&event) {
                    return found;
                }
            }
        };
        timeout(PATIENCE, found).await.expect("the event comes in time")
    }

    pub(crate) async fn watching(&mut self, channel: &str) -> u64 {
        self.event(|event| match event {
            AgentEvent::Watching { channel: name, term } if name == channel => Some(*term),
            _ => None,
        })
        .await
    }

    pub(crate) async fn session(&mut self) -> SessionHandle {
        timeout(PATIENCE, self.sessions.recv()).await.expect("in time").expect("the agent runs")
    }
}
