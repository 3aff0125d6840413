//! The stream of one worker: register, renew, report, acknowledge; directives down (walks W1 and
//! W2). Everything sent is derived from the applied state; the stream holds nothing a new leader
//! would miss.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use proto::v1;
use proto::v1::session_request::Body as Up;
use proto::v1::session_response::Body as Down;
use state::State;
use state::channel::{LastDone, Phase};
use state::command::{Command, NodeAck, Request};
use state::event::Event;
use state::ids::Text;
use state::node::{DownCause, NodeRef, NodeStatus};
use state::outcome::{Facts, Outcome};
use state::{desired_digest, directives_for};
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;
use tonic::{Status, Streaming};
use tracing::warn;

use super::outbox::Outbox;
use super::{Surface, convert, status, strays};
use crate::leader::Reign;
use crate::limits;

/// The first message must come, and every message of ours must be taken, within this time.
const PATIENCE: Duration = Duration::from_secs(10);

type Sender = mpsc::Sender<Result<v1::SessionResponse, Status>>;

/// Serves one stream until it ends; the error, if any, goes to the worker as the end of the stream.
pub async fn serve(surface: Arc<Surface>, mut inbound: Streaming<v1::SessionRequest>, out: Sender) {
    let ended = match Session::open(&surface, &mut inbound, &out).await {
        Ok(mut session) => {
            let notify = session.reign.dispatch.join(session.node.node);
            let ended = session.run(&mut inbound, &notify).await;
            session.reign.dispatch.leave(session.node.node, &notify);
            ended
        }
        Err(status) => Err(status),
    };
    if let Err(status) = ended {
        // The worker may be gone already.
        let _ = out.send(Err(status)).await;
    }
}

struct Session<'a> {
    surface: &'a Surface,
    reign: Arc<Reign>,
    node: NodeRef,
    actor: Text,
    outbox: Outbox,
    told: strays::Told,
    out: &'a Sender,
}

impl<'a> Session<'a> {
    async fn open(
        surface: &'a Surface,
        inbound: &mut Streaming<v1::SessionRequest>,
        out: &'a Sender,
    ) -> Result<Self, Status> {
        let first = timeout(PATIENCE, inbound.message()).await.map_err(|_| {
            status::bad_field("body", "none", "a session begins with register within 10 s")
        })??;
        let (seq, register) = match first {
            Some(v1::SessionRequest { seq, body: Some(Up::Register(register)) }) => (seq, register),
            _ => {
                let allowed = "the first message of a session is register";
                return Err(status::bad_field("body", "other", allowed));
            }
        };
        let reign = surface.writes.reign().await?;
        convert::admit(limits::WORKER_LEVEL_MIN, &register)?;
        let registration = convert::registration(&register)?;
        let actor = Text::cut(&format!("worker:{}", registration.name));
        let command = Command::RegisterSession(registration);
        let request = Request { actor: actor.clone(), retry: None, command };
        let done = surface.writes.submit(vec![request]).await?;
        let outcome = done.outcomes.into_iter().next();
        tell_replaced(surface, outcome.as_ref());
        let node = registered(outcome)?;
        let view = surface
            .views
            .at_index(done.index, limits::READ_WAIT_MAX)
            .await
            .map_err(|error| status::wait(&error, "the registration"))?;
        let (outbox, told) = (Outbox::default(), strays::Told::default());
        let mut session = Self { surface, reign, node, actor, outbox, told, out };
        // Registered grants a whole ttl, so it needs what every renewal needs.
        let renewed = session.reign.sessions.renew(&view.state, &surface.clock, node).await;
        let fresh = surface.quorum_is_fresh(&session.reign).await;
        let state = surface.views.now().state;
        let live = state.live(node).map(|live| live.ttl_ms);
        let Some(ttl_ms) = live.filter(|_| renewed && fresh) else {
            return Err(status::not_leader(None));
        };
        let desired = directives_for(&state, node.node);
        if register.desired_digest.as_ref() == desired_digest(&desired) {
            session.outbox.assume(state.revision(), &desired);
        }
        let registered = v1::Registered {
            node_id: node.node.0,
            node_epoch: node.epoch.0,
            ttl_ms,
            // A margin that was raised since must leave the node some time to work.
            margin_ms: state.policy().margin_ms.min(ttl_ms / 2),
            renew_every_ms: (ttl_ms / 4).max(1),
        };
        session.send(seq, &state, Down::Registered(registered)).await?;
        Ok(session)
    }

    async fn run(
        &mut self,
        inbound: &mut Streaming<v1::SessionRequest>,
        notify: &Notify,
    ) -> Result<(), Status> {
        loop {
            // Derived anew each time: a wake-up that is lost costs nothing but time.
            if !self.push().await? {
                return Ok(());
            }
            tokio::select! {
                () = self.reign.over.cancelled() => return Err(self.surface.leadership_over()),
                () = notify.notified() => {}
                message = inbound.message() => match message? {
                    Some(message) => self.handle(message).await?,
                    None => return Ok(()),
                },
            }
        }
    }

    async fn send(&self, seq: u64, state: &State, body: Down) -> Result<(), Status> {
        let message = v1::SessionResponse {
            seq,
            leader_term: self.reign.term.0,
            revision: state.revision().0,
            body: Some(body),
        };
        match timeout(PATIENCE, self.out.send(Ok(message))).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Status::cancelled("the worker does not read its stream")),
        }
    }

    /// Sends what changed of the desired set. False: the session is over and the worker was told.
    async fn push(&mut self) -> Result<bool, Status> {
        let state = self.surface.views.now().state;
        if state.live(self.node).is_none() {
            let reason = format!("session {} is over", self.node);
            self.send(0, &state, Down::Fence(v1::Fence { reason })).await?;
            return Ok(false);
        }
        let desired = directives_for(&state, self.node.node);
        for piece in self.outbox.update(state.revision(), &desired) {
            self.send(0, &state, Down::Directives(piece)).await?;
        }
        Ok(true)
    }

    async fn handle(&mut self, message: v1::SessionRequest) -> Result<(), Status> {
        match message.body {
            Some(Up::Report(report)) => {
                self.must_be_mine(report.node_id, report.node_epoch)?;
                self.report(message.seq, report).await
            }
            Some(Up::Goodbye(goodbye)) => {
                self.must_be_mine(goodbye.node_id, goodbye.node_epoch)?;
                self.submit(vec![Command::Revoke { node: self.node }]).await?;
                Ok(())
            }
            Some(Up::Register(_)) => {
                let allowed = "register is only the first message of a stream";
                Err(status::bad_field("body", "register", allowed))
            }
            None => Err(status::bad_field("body", "none", "report and goodbye are allowed")),
        }
    }

    fn must_be_mine(&self, node: u64, epoch: u64) -> Result<(), Status> {
        if (node, epoch) == (self.node.node.0, self.node.epoch.0) {
            return Ok(());
        }
        let message = format!("this stream is of {}, not of n{node} with epoch {epoch}", self.node);
        Err(status::stale_session(&message))
    }

    async fn submit(&self, commands: Vec<Command>) -> Result<Vec<Outcome>, Status> {
        let requests = commands
            .into_iter()
            .map(|command| Request { actor: self.actor.clone(), retry: None, command })
            .collect();
        let done = self.surface.writes.submit(requests).await?;
        self.surface
            .views
            .at_index(done.index, limits::READ_WAIT_MAX)
            .await
            .map_err(|error| status::wait(&error, "the report"))?;
        Ok(done.outcomes)
    }

    async fn report(&mut self, seq: u64, report: v1::Report) -> Result<(), Status> {
        if report.acks.len() > limits::REPORT_ACKS_MAX {
            let allowed = format!("at most {} in one report", limits::REPORT_ACKS_MAX);
            return Err(status::bad_field("report.acks", report.acks.len(), &allowed));
        }
        let state = self.surface.views.now().state;
        // Heard before any work is queued: a long queue must not expire a healthy node (walk W1).
        let renewed = self.reign.sessions.renew(&state, &self.surface.clock, self.node).await;
        let verdicts = self.record_acks(&state, &report).await?;
        self.follow_up(&state, &report).await?;
        let fresh = self.surface.quorum_is_fresh(&self.reign).await;
        let state = self.surface.views.now().state;
        if renewed && fresh && state.live(self.node).is_some() {
            self.send(seq, &state, Down::Renewed(v1::Renewed { acks: verdicts })).await?;
        }
        self.stop_strays(&report.running).await
    }

    /// The set it holds does not have them: without a word it would run them for ever.
    async fn stop_strays(&mut self, running: &[v1::Running]) -> Result<(), Status> {
        let state = self.surface.views.now().state;
        let strays = strays::of(&state, self.node, running);
        if strays.is_empty() {
            return Ok(());
        }
        self.told.tell(&self.surface.strays, self.node, &strays);
        for piece in self.outbox.again(strays) {
            self.send(0, &state, Down::Directives(piece)).await?;
        }
        Ok(())
    }

    /// Logs the acknowledgements whose effect is not already in the view, and gives a verdict on
    /// each.
    async fn record_acks(
        &self,
        state: &State,
        report: &v1::Report,
    ) -> Result<Vec<v1::AckVerdict>, Status> {
        let mut verdicts = Vec::with_capacity(report.acks.len());
        let mut open = Vec::new();
        for (at, wire) in report.acks.iter().enumerate() {
            let ack = convert::ack(at, self.node, wire)?;
            let verdict = settled(state, &ack);
            if verdict.is_none() {
                open.push((at, Command::NodeAck(ack)));
            }
            verdicts.push(v1::AckVerdict {
                channel: wire.channel.clone(),
                term: wire.term,
                op: wire.op,
                verdict: verdict.unwrap_or(v1::Verdict::Unspecified).into(),
            });
        }
        if open.is_empty() {
            return Ok(verdicts);
        }
        let (places, commands): (Vec<usize>, Vec<Command>) = open.into_iter().unzip();
        let outcomes = self.submit(commands).await?;
        for (at, outcome) in places.into_iter().zip(outcomes) {
            if let Some(verdict) = verdicts.get_mut(at) {
                verdict.set_verdict(match outcome {
                    Outcome::Accepted(_) | Outcome::NoChange(_) => v1::Verdict::Recorded,
                    Outcome::Rejected(_) => v1::Verdict::Stale,
                });
            }
        }
        Ok(verdicts)
    }

    /// What a report says beside acknowledgements: the node stops, a watch makes progress.
    async fn follow_up(&self, state: &State, report: &v1::Report) -> Result<(), Status> {
        let mut commands = Vec::new();
        let up = state.live(self.node).is_some_and(|node| node.status == NodeStatus::Up);
        if report.stopping && up {
            commands.push(Command::SetStopping { node: self.node });
        }
        let half = state.policy().watch_timeout_ms / 2;
        for (at, wire) in report.progress.iter().take(limits::REPORT_ACKS_MAX).enumerate() {
            let name = convert::channel_name(&format!("progress[{at}].channel"), &wire.channel)?;
            let Some(channel) = state.channel(&name) else { continue };
            let Phase::ToWatch { owner, op, started_at, progress } = &channel.phase else {
                continue;
            };
            let current = *owner == self.node && channel.term.0 == wire.term && op.0 == wire.op;
            // The log hears of progress at most twice per timeout.
            let late = self.surface.clock.stamp().since(*started_at) >= half;
            if current && late && wire.progress > *progress {
                let (term, op, progress) = (channel.term, *op, wire.progress);
                commands.push(Command::ExtendDeadline { channel: name, term, op, progress });
            }
        }
        if !commands.is_empty() {
            self.submit(commands).await?;
        }
        Ok(())
    }
}

/// Two processes under one name take the session from each other, and all its channels with it.
/// One restart looks the same: what tells them apart is that it goes on.
fn tell_replaced(surface: &Surface, outcome: Option<&Outcome>) {
    let Some(Outcome::Accepted(receipt)) = outcome else { return };
    for event in &receipt.record.events {
        if let Event::NodeWentDown { node, cause: DownCause::Replaced } = event {
            surface.replaced.fetch_add(1, Ordering::Relaxed);
            let by = &receipt.record.caused_by;
            warn!(%node, %by, "a session ended: another process took its name or address");
        }
    }
}

fn registered(outcome: Option<Outcome>) -> Result<NodeRef, Status> {
    match outcome {
        Some(Outcome::Accepted(receipt)) => receipt
            .record
            .events
            .iter()
            .find_map(|event| match event {
                Event::NodeCameUp { node, .. } => Some(*node),
                _ => None,
            })
            .ok_or_else(|| status::internal("a registration without a session")),
        Some(Outcome::NoChange(Facts::Session(node))) => Ok(node),
        Some(Outcome::Rejected(rejection)) => Err(status::rejection(&rejection)),
        Some(Outcome::NoChange(_)) | None => {
            Err(status::internal("a registration without outcome"))
        }
    }
}

/// The verdict that the present state already gives: done, or of the past. None: apply must judge.
///
/// A directive is made by the command at revision `op`. Once that revision is applied here, what is
/// not in force here never will be again. A later one is of a newer leader, of which this one has
/// not heard.
pub(crate) fn settled(state: &State, ack: &NodeAck) -> Option<v1::Verdict> {
    if ack.op.revision() > state.revision() {
        return None;
    }
    let Some(channel) = state.channel(&ack.channel) else { return Some(v1::Verdict::Stale) };
    let done = LastDone { node: ack.node, term: ack.term, op: ack.op, result: ack.result };
    if channel.last_done == Some(done) {
        return Some(v1::Verdict::Recorded);
    }
    let in_force = channel.phase.owner() == Some(ack.node)
        && channel.term == ack.term
        && channel.phase.op() == Some(ack.op);
    if in_force { None } else { Some(v1::Verdict::Stale) }
}
