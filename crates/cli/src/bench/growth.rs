//! The growth table: for groups of rising numbers of channels, what the loss of a node and a
//! balance round take, from plan to commit. One group of three processes for each size.

use std::time::Duration;

use client::proto::{
    Consistency, GetStatusRequest, GetStatusResponse, NodeRef, PlanTime, ReadOptions,
    RevokeNodeRequest, SetSettingsRequest, WatchChannelsRequest,
};
use client::{CancellationToken, Operator};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::load::spec;
use super::owner::{Idle, agent};
use super::report::Growth;
use crate::exit::Failure;
use crate::group::wait;
use crate::progress::Progress;

/// Channels announced in one request.
const ANNOUNCED: usize = 5_000;
/// How long a hundred thousand channels may take to be watched on a small machine.
const PATIENCE: Duration = Duration::from_secs(300);

fn worker_name(number: u32) -> String {
    format!("bench-{number:05}")
}

/// Workers that accept everything, each with a stop of its own.
struct Workers {
    running: Vec<(CancellationToken, JoinHandle<Result<(), client::Error>>)>,
}

impl Workers {
    fn start(&mut self, addresses: &[String], number: u32) -> Result<(), Failure> {
        let options = agent(addresses, worker_name(number))?;
        let (idle, _) = Idle::new();
        let stop = CancellationToken::new();
        let running = tokio::spawn(client::agent::run(options, idle, stop.clone()));
        self.running.push((stop, running));
        Ok(())
    }

    async fn stop(self) {
        for (stop, running) in self.running {
            stop.cancel();
            running.abort();
            let _ended = running.await;
        }
    }
}

/// Measures one size on a fresh group.
pub(super) async fn run(
    channels: u32,
    nodes: u32,
    addresses: &[String],
    operator: &Operator,
    progress: &Progress,
) -> Result<Growth, Failure> {
    // The first worker that leaves is not to come back, and its loss is what is measured.
    settle(operator, &[("auto_balance", "false"), ("ttl_ms", "600000")]).await?;
    let mut workers = Workers { running: Vec::new() };
    for number in 0..nodes {
        workers.start(addresses, number)?;
    }
    until(operator, |status| status.nodes_up >= nodes, "all workers").await?;
    let begun = Instant::now();
    announce(operator, channels).await?;
    let all = |status: &GetStatusResponse| {
        progress.set(u64::from(status.channels_watched));
        status.channels_watched >= channels
    };
    until(operator, all, "every channel to be watched").await?;
    let placed = begun.elapsed();

    let victim = NodeRef { node_id: 0, name: worker_name(0) };
    if let Some((stop, running)) = workers.running.first_mut() {
        stop.cancel();
        running.abort();
    }
    let lost = Instant::now();
    let before = last_revision(&status(operator).await?);
    let request = RevokeNodeRequest { write: None, node: Some(victim) };
    let asked = Instant::now();
    operator.revoke_node(request).await?;
    let done = |status: &GetStatusResponse| status.channels_buffered == 0;
    let after = until(operator, done, "the lost channels to be placed").await?;
    let loss = Decided::of(&after, before, |time| time.moves);
    let replanned = asked.elapsed().min(lost.elapsed());
    until(operator, all, "every channel to be watched again").await?;

    workers.start(addresses, nodes)?;
    until(operator, |status| status.nodes_up >= nodes, "the new worker").await?;
    let before = last_revision(&status(operator).await?);
    settle(operator, &NO_REST).await?;
    let balanced = |status: &GetStatusResponse| {
        status.plan_times.iter().any(|time| time.revision > before && time.balance_moves > 0)
    };
    let after = until(operator, balanced, "a balance round").await?;
    let balance = Decided::of(&after, before, |time| time.balance_moves);
    workers.stop().await;
    Ok(Growth {
        channels,
        nodes,
        placed_ms: ms(placed),
        loss_moves: loss.moves,
        loss_plan_ms: loss.planned_ms,
        loss_decided_ms: loss.decided_ms,
        loss_seen_ms: ms(replanned),
        balance_moves: balance.moves,
        balance_plan_ms: balance.planned_ms,
        balance_decided_ms: balance.decided_ms,
    })
}

/// Everything that holds a balance round back, off; and one round may move as much as there is.
const NO_REST: [(&str, &str); 5] = [
    ("balance_silent_ms", "0"),
    ("balance_interval_ms", "100"),
    ("min_move_interval_ms", "0"),
    ("balance_moves_max", "10000"),
    ("auto_balance", "true"),
];

/// The decisions that followed a revision and had moves of one kind, added up.
struct Decided {
    moves: u64,
    planned_ms: f64,
    decided_ms: f64,
}

impl Decided {
    fn of(status: &GetStatusResponse, after: u64, moves: impl Fn(&PlanTime) -> u64) -> Self {
        let mut sum = Self { moves: 0, planned_ms: 0.0, decided_ms: 0.0 };
        let times = status.plan_times.iter().filter(|time| time.revision > after);
        for time in times.filter(|time| moves(time) > 0) {
            sum.moves += moves(time);
            sum.planned_ms += ms(Duration::from_micros(time.planned_us));
            sum.decided_ms += ms(Duration::from_micros(time.decided_us));
        }
        sum
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn last_revision(status: &GetStatusResponse) -> u64 {
    status.header.as_ref().map(|header| header.revision).unwrap_or_default()
}

async fn status(operator: &Operator) -> Result<GetStatusResponse, Failure> {
    // The leader alone knows what it planned.
    let read = ReadOptions { consistency: Consistency::Leader.into(), min_revision: 0 };
    Ok(operator.get_status(GetStatusRequest { read: Some(read) }).await?)
}

async fn until(
    operator: &Operator,
    reached: impl Fn(&GetStatusResponse) -> bool,
    what: &str,
) -> Result<GetStatusResponse, Failure> {
    let end = Instant::now() + PATIENCE;
    loop {
        let status = status(operator).await?;
        if reached(&status) {
            return Ok(status);
        }
        wait(end, what).await?;
    }
}

async fn settle(operator: &Operator, values: &[(&str, &str)]) -> Result<(), Failure> {
    let values = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let request = SetSettingsRequest { write: None, values: values.collect() };
    operator.set_settings(request).await?;
    Ok(())
}

async fn announce(operator: &Operator, channels: u32) -> Result<(), Failure> {
    let names: Vec<String> =
        (0..channels).map(|number| format!("bench-growth-{number:06}v0")).collect();
    for chunk in names.chunks(ANNOUNCED) {
        let channels = chunk.iter().cloned().map(spec).collect();
        operator.watch_channels(WatchChannelsRequest { write: None, channels }).await?;
    }
    Ok(())
}
