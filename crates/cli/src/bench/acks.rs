//! Acknowledgements per second: sessions are told to watch new channels, hold their
//! acknowledgements back until all were told, and then send them in reports. Only the sending is
//! measured.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use client::Operator;
use client::proto::{
    GetStatusRequest, RemoveChannelRequest, SetSettingsRequest, WatchChannelsRequest,
};
use futures::StreamExt;
use hdrhistogram::Histogram;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tonic::transport::{Channel, Endpoint};

use super::Bench;
use super::load::{measured, spec};
use super::owner::run_name;
use super::report::{Measured, histogram};
use super::session::Session;
use crate::exit::{Code, Failure};

/// Acknowledgements in one report.
const BATCH: u32 = 100;
/// Channels of one round, over all sessions.
const CHANNELS: usize = 10_000;
/// More rounds than this are not made, however short they are: the removal of each channel is a
/// remembered request, and three measurements of a run must fit into that table.
const ROUNDS_MAX: usize = 2;
/// Unread bytes of one session, and of one connection with all its sessions.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 64 << 20;
/// Removals under way at a time.
const REMOVALS: usize = 64;

/// Measures with one session for each client.
pub(super) async fn run(
    arguments: &Bench,
    clients: u32,
    operators: &[Operator],
) -> Result<Measured, Failure> {
    let Some(operator) = operators.first() else {
        return Err(Failure::usage("--connections: at least 1 is needed"));
    };
    let batch = arguments.batch.unwrap_or(BATCH);
    let run = run_name()?;
    if arguments.spawn {
        // The sessions renew only while they report; a round of a thousand of them takes longer.
        set_ttl(operator, "600000").await?;
    }
    let channels = connections(operator, operators.len()).await?;
    let mut sessions = Vec::new();
    for (number, channel) in (0..clients).zip(channels.iter().cycle()) {
        sessions.push(Session::open(channel.clone(), &format!("bench-{run}-{number}")).await?);
    }
    let mut total =
        Total { latencies: histogram()?, acknowledged: 0, stale: 0, took: Duration::ZERO };
    for round in 0..ROUNDS_MAX {
        let prefix = format!("bench-{run}-{round}-");
        let names: Vec<String> = (0..CHANNELS).map(|number| format!("{prefix}{number}")).collect();
        let announced = names.iter().cloned().map(spec).collect();
        let request = WatchChannelsRequest { write: None, channels: announced };
        operator.watch_channels(request).await?;
        sessions = told(sessions, prefix).await?;
        sessions = total.send(sessions, batch).await?;
        remove(operators, names).await;
        if total.took >= arguments.duration {
            break;
        }
    }
    for session in sessions {
        session.close().await;
    }
    if arguments.spawn {
        set_ttl(operator, "10000").await?;
    }
    let shape = (clients, operators.len(), batch);
    let counts = (total.acknowledged, total.stale);
    Ok(measured("acks", shape, total.took, &total.latencies, counts))
}

async fn set_ttl(operator: &Operator, ms: &str) -> Result<(), Failure> {
    let values = [(String::from("ttl_ms"), ms.to_owned())].into();
    operator.set_settings(SetSettingsRequest { write: None, values }).await?;
    Ok(())
}

/// What all sessions acknowledged so far.
struct Total {
    latencies: Histogram<u64>,
    acknowledged: u64,
    stale: u64,
    took: Duration,
}

impl Total {
    /// Lets every session send what it holds.
    async fn send(&mut self, sessions: Vec<Session>, batch: u32) -> Result<Vec<Session>, Failure> {
        let batch = usize::try_from(batch).unwrap_or(1);
        let mut sending = JoinSet::new();
        let begun = Instant::now();
        for mut session in sessions {
            let latencies = histogram()?;
            sending.spawn(async move {
                let acked = session.acknowledge(batch, latencies).await;
                acked.map(|acked| (session, acked))
            });
        }
        let mut back = Vec::new();
        while let Some(ended) = sending.join_next().await {
            let (session, acked) = ended.map_err(broken)??;
            self.latencies
                .add(&acked.latencies)
                .map_err(|error| Failure::failed(format!("cannot add histograms: {error}")))?;
            self.acknowledged += acked.acknowledged;
            self.stale += acked.stale;
            back.push(session);
        }
        self.took += begun.elapsed();
        Ok(back)
    }
}

/// Lets the sessions take in what they shall watch, until all was told.
async fn told(sessions: Vec<Session>, prefix: String) -> Result<Vec<Session>, Failure> {
    let told = Arc::new(AtomicUsize::new(0));
    let mut collecting = JoinSet::new();
    for mut session in sessions {
        let (prefix, told) = (prefix.clone(), Arc::clone(&told));
        collecting.spawn(async move {
            session.collect(&prefix, CHANNELS, &told).await.map(|()| session)
        });
    }
    let mut back = Vec::new();
    while let Some(ended) = collecting.join_next().await {
        back.push(ended.map_err(broken)??);
    }
    Ok(back)
}

fn broken(error: tokio::task::JoinError) -> Failure {
    Failure::failed(format!("a session of the benchmark: {error}"))
}

/// Removes what a round announced. What cannot be removed stays under a name that tells its origin.
async fn remove(operators: &[Operator], names: Vec<String>) {
    let removals = names.into_iter().zip(operators.iter().cycle()).map(|(name, operator)| {
        operator.remove_channel(RemoveChannelRequest { write: None, name })
    });
    futures::stream::iter(removals).buffer_unordered(REMOVALS).for_each(|_| async {}).await;
}

/// Connections to the leader, which alone keeps sessions.
async fn connections(operator: &Operator, count: usize) -> Result<Vec<Channel>, Failure> {
    let status = operator.get_status(GetStatusRequest { read: None }).await?;
    let address = status.leader_client_address;
    let unreachable = |error: tonic::transport::Error| {
        Failure::new(Code::Unavailable, format!("the leader at {address}: {error}"))
    };
    let mut channels = Vec::new();
    for _ in 0..count.max(1) {
        // Sessions leave what they are told unread between the rounds: the windows must hold it.
        let endpoint = Endpoint::from_shared(format!("http://{address}"))
            .map_err(unreachable)?
            .tcp_nodelay(true)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW);
        channels.push(endpoint.connect().await.map_err(unreachable)?);
    }
    Ok(channels)
}
