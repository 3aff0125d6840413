//! A bare worker session for the measurement of acknowledgements: unlike the agent of the client
//! library it holds them back until it is told to send them, in reports of the size asked for.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use client::proto::node_service_client::NodeServiceClient;
use client::proto::session_request::Body as Ask;
use client::proto::session_response::Body as Answer;
use client::proto::{
    Ack, AckResult, Directive, DirectiveKind, Goodbye, Register, Registered, Report, Role,
    SessionRequest, SessionResponse, Verdict,
};
use hdrhistogram::Histogram;
use tokio::sync::mpsc;
use tokio::time::{Instant, interval, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::transport::Channel;

use crate::exit::{Code, Failure};

const MESSAGE_BYTES_MAX: usize = 16 << 20;
const PATIENCE: Duration = Duration::from_secs(30);
const STANDSTILL: Duration = Duration::from_secs(3);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// One session.
pub(super) struct Session {
    sender: mpsc::Sender<SessionRequest>,
    answers: Streaming<SessionResponse>,
    seq: u64,
    registered: Registered,
    /// What is to be watched, and was not acknowledged.
    waiting: BTreeMap<String, Directive>,
}

/// What a session acknowledged.
pub(super) struct Acked {
    pub(super) latencies: Histogram<u64>,
    pub(super) acknowledged: u64,
    pub(super) stale: u64,
}

impl Session {
    /// Registers under `name`.
    pub(super) async fn open(channel: Channel, name: &str) -> Result<Self, Failure> {
        let (sender, receiver) = mpsc::channel(4);
        let register = Register {
            name: name.to_owned(),
            address: name.to_owned(),
            role: Role::Data.into(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            incarnation: name.to_owned(),
            ..Register::default()
        };
        send(&sender, 1, Ask::Register(register)).await?;
        let mut client =
            NodeServiceClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX);
        let answers = client
            .session(ReceiverStream::new(receiver))
            .await
            .map_err(|status| Failure::new(Code::Unavailable, format!("{name}: {status}")))?
            .into_inner();
        let mut session = Self {
            sender,
            answers,
            seq: 1,
            registered: Registered::default(),
            waiting: BTreeMap::new(),
        };
        while session.registered.node_id == 0 {
            session.take().await?;
        }
        Ok(session)
    }

    /// Renews, and takes in what is to be watched of the channels with that prefix, until all
    /// sessions together were told `wanted`, or were told nothing more for a while.
    pub(super) async fn collect(
        &mut self,
        prefix: &str,
        wanted: usize,
        told: &AtomicUsize,
    ) -> Result<(), Failure> {
        let mut renew = interval(Duration::from_millis(self.registered.renew_every_ms.max(100)));
        let mut look = interval(LOOK_EVERY);
        let until = Instant::now() + PATIENCE;
        let (mut last, mut since) = (0, Instant::now());
        loop {
            let total = told.load(Ordering::Relaxed);
            if total != last {
                (last, since) = (total, Instant::now());
            }
            // Workers that are not ours may have got the rest.
            if total >= wanted || (total > 0 && since.elapsed() > STANDSTILL) {
                return Ok(());
            }
            if Instant::now() >= until {
                return Err(lost("no session was told to watch anything"));
            }
            let before = self.waiting.len();
            tokio::select! {
                _ = renew.tick() => { self.report(Vec::new()).await?; }
                _ = look.tick() => {}
                taken = self.take() => { taken?; }
            }
            self.waiting.retain(|name, _| name.starts_with(prefix));
            told.fetch_add(self.waiting.len().saturating_sub(before), Ordering::Relaxed);
        }
    }

    /// Acknowledges everything it was told to watch, in reports of `batch`, each sent when the last
    /// one was answered.
    pub(super) async fn acknowledge(
        &mut self,
        batch: usize,
        mut latencies: Histogram<u64>,
    ) -> Result<Acked, Failure> {
        let directives: Vec<Directive> = std::mem::take(&mut self.waiting).into_values().collect();
        let (mut acknowledged, mut stale) = (0, 0);
        for chunk in directives.chunks(batch.max(1)) {
            let ack = |directive: &Directive| Ack {
                channel: directive.channel.clone(),
                term: directive.term,
                op: directive.op,
                result: AckResult::Ok.into(),
                reason: String::new(),
            };
            let sent = Instant::now();
            let seq = self.report(chunk.iter().map(ack).collect()).await?;
            let mut open = chunk.len();
            while open > 0 {
                let Some((answered, verdicts)) = self.take().await? else { continue };
                if answered != seq && answered != 0 {
                    continue;
                }
                for verdict in verdicts {
                    match verdict {
                        Verdict::Recorded => acknowledged += 1,
                        Verdict::Stale => stale += 1,
                        Verdict::Unspecified => continue,
                    }
                    open = open.saturating_sub(1);
                }
            }
            let us = u64::try_from(sent.elapsed().as_micros()).unwrap_or(u64::MAX);
            latencies.saturating_record(us.max(1));
        }
        Ok(Acked { latencies, acknowledged, stale })
    }

    /// Ends the session.
    pub(super) async fn close(mut self) {
        self.seq += 1;
        let Registered { node_id, node_epoch, .. } = self.registered;
        // Without it the session ends by silence.
        let _left =
            send(&self.sender, self.seq, Ask::Goodbye(Goodbye { node_id, node_epoch })).await;
        let _ended = timeout(Duration::from_secs(1), self.answers.message()).await;
    }

    async fn report(&mut self, acks: Vec<Ack>) -> Result<u64, Failure> {
        self.seq += 1;
        let Registered { node_id, node_epoch, .. } = self.registered;
        let report = Report { node_id, node_epoch, acks, ..Report::default() };
        send(&self.sender, self.seq, Ask::Report(report)).await?;
        Ok(self.seq)
    }

    /// Takes one message in; verdicts come back with the seq they answer.
    async fn take(&mut self) -> Result<Option<(u64, Vec<Verdict>)>, Failure> {
        let message = match timeout(PATIENCE, self.answers.message()).await {
            Ok(Ok(Some(message))) => message,
            Ok(Ok(None)) => return Err(lost("the stream of a session ended")),
            Ok(Err(status)) => return Err(lost(&status.to_string())),
            Err(_) => return Err(lost("a session got no answer")),
        };
        match message.body {
            Some(Answer::Registered(registered)) => self.registered = registered,
            Some(Answer::Renewed(renewed)) => {
                let verdicts = renewed.acks.iter().map(client::proto::AckVerdict::verdict);
                return Ok(Some((message.seq, verdicts.collect())));
            }
            Some(Answer::Directives(directives)) => {
                for gone in directives.gone {
                    self.waiting.remove(&gone);
                }
                for directive in directives.set {
                    if directive.kind() == DirectiveKind::Watch {
                        self.waiting.insert(directive.channel.clone(), directive);
                    }
                }
            }
            Some(Answer::Fence(fence)) => return Err(lost(&fence.reason)),
            None => {}
        }
        Ok(None)
    }
}

fn lost(why: &str) -> Failure {
    Failure::new(Code::Unavailable, format!("the benchmark lost a session: {why}"))
}

async fn send(sender: &mpsc::Sender<SessionRequest>, seq: u64, body: Ask) -> Result<(), Failure> {
    let request = SessionRequest { seq, body: Some(body) };
    sender.send(request).await.map_err(|_| lost("its stream is closed"))
}
