//! `bench`: the load generator of the project. Closed loops of clients against a running group, or
//! one that it starts itself; time to recover from a killed leader; what a quiet group costs.

mod acks;
mod failover;
mod growth;
mod load;
mod owner;
mod quiet;
mod report;
mod session;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use client::Operator;

use crate::args::{Global, duration};
use crate::exit::Failure;
use crate::group::Group;
use crate::operator::connect_to;
use crate::output::Output;
use crate::progress::Progress;
use crate::stop;
use load::{Load, Work};
use owner::Owner;
use report::Report;

/// The log of a benchmark's coordinators: a line for every event would be measured too.
const LOG_FILTER: [(&str, &str); 1] = [("--log-filter", "warn")];

/// Arguments of `bench`.
#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// What the clients do, one after the other.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "writes")]
    kind: Vec<Kind>,
    /// Numbers of clients to measure with, one after the other.
    #[arg(long, value_delimiter = ',', default_value = "64", value_name = "N,...")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    clients: Vec<u32>,
    /// How long each measurement takes.
    #[arg(long, default_value = "10s", value_parser = duration)]
    duration: Duration,
    /// How long the clients run before each measurement.
    #[arg(long, default_value = "1s", value_parser = duration)]
    warm_up: Duration,
    /// Operations in one request: for writes above 1 new channels in one announcement instead of
    /// a commit of positions; for acks the acknowledgements in one report (without it 100).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    batch: Option<u32>,
    /// HTTP/2 connections the clients share.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    connections: u16,
    /// Bytes of a committed position.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(0..=65_536))]
    position_bytes: u32,
    /// Start a group of three processes with fsync for it, and end it afterwards.
    #[arg(long)]
    spawn: bool,
    /// Directory of that group; emptied first.
    #[arg(long, default_value = "quorate-bench", value_name = "DIR", requires = "spawn")]
    data_dir: PathBuf,
    /// Kill the leader so often, and take the time to the first acknowledged write.
    #[arg(long, default_value_t = 0, hide_default_value = true, value_name = "N")]
    #[arg(requires = "spawn")]
    failover_trials: u32,
    /// Register so many workers, and measure what the group does while nothing happens.
    #[arg(long, default_value_t = 0, hide_default_value = true, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=10_000))]
    quiet_sessions: u32,
    /// How long that takes.
    #[arg(long, default_value = "60s", value_parser = duration)]
    quiet_duration: Duration,
    /// For each of these numbers of channels, on a fresh group: what the loss of a node and a
    /// balance round take.
    #[arg(long, value_delimiter = ',', value_name = "CHANNELS,...", requires = "spawn")]
    #[arg(num_args = 0..=1, default_missing_value = "1000,10000,100000")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    growth: Vec<u32>,
    /// Workers of those groups.
    #[arg(long, default_value_t = 200, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(2..=5_000))]
    growth_nodes: u32,
    /// Only failover trials, growth and the quiet, no load.
    #[arg(long)]
    no_load: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Durable writes: commits of positions by the owner of a channel.
    Writes,
    /// Acknowledgements of workers, in reports.
    Acks,
    /// Linearizable reads of who owns a channel.
    Reads,
}

/// Runs it.
pub(crate) async fn run(arguments: Bench, global: &Global, output: &Output) -> Result<(), Failure> {
    if !arguments.spawn {
        return tokio::select! {
            ended = measure(&arguments, None, &global.coordinators, global, output) => ended,
            stopped = stop::requested(false) => stopped,
        };
    }
    if !arguments.growth.is_empty() {
        return tokio::select! {
            ended = grow(&arguments, global, output) => ended,
            stopped = stop::requested(false) => stopped,
        };
    }
    let progress = Progress::spinner(output, "starting three coordinators");
    let mut group = tokio::select! {
        group = Group::found(&arguments.data_dir, false, &LOG_FILTER, global) => group?,
        stopped = stop::requested(false) => return stopped,
    };
    drop(progress);
    let addresses = group.addresses();
    let ended = tokio::select! {
        ended = measure(&arguments, Some(&mut group), &addresses, global, output) => ended,
        stopped = stop::requested(false) => stopped,
    };
    group.stop().await;
    ended
}

/// One fresh group for each size: what one leaves behind is not to be measured with the next.
async fn grow(arguments: &Bench, global: &Global, output: &Output) -> Result<(), Failure> {
    let mut report = Report::new(true);
    for channels in &arguments.growth {
        let directory = arguments.data_dir.join(channels.to_string());
        let group = Group::found(&directory, false, &LOG_FILTER, global).await?;
        let what = format!("{channels} channels on {} workers", arguments.growth_nodes);
        let progress = Progress::bar(output, &what, u64::from(*channels));
        let addresses = group.addresses();
        let operator = group.operator.clone();
        let nodes = arguments.growth_nodes;
        let measured = growth::run(*channels, nodes, &addresses, &operator, &progress).await;
        drop(progress);
        group.stop().await;
        report.growth.push(measured?);
    }
    output.show(&report, report::text)
}

async fn measure(
    arguments: &Bench,
    mut group: Option<&mut Group>,
    addresses: &[String],
    global: &Global,
    output: &Output,
) -> Result<(), Failure> {
    let connect = |_| connect_to(addresses, global);
    let operators: Vec<Operator> =
        (0..arguments.connections).map(connect).collect::<Result<_, _>>()?;
    let mut report = Report::new(arguments.spawn);
    let loads = if arguments.no_load { &[][..] } else { &arguments.kind };
    for kind in loads {
        for clients in &arguments.clients {
            let progress = Progress::spinner(output, &format!("{kind:?} with {clients} clients"));
            let measured = match kind {
                Kind::Acks => acks::run(arguments, *clients, &operators).await?,
                Kind::Writes => one_load(arguments, true, *clients, addresses, &operators).await?,
                Kind::Reads => one_load(arguments, false, *clients, addresses, &operators).await?,
            };
            drop(progress);
            report.loads.push(measured);
        }
    }
    if let (1.., Some(group)) = (arguments.failover_trials, group.as_deref_mut()) {
        let progress =
            Progress::bar(output, "killing leaders", u64::from(arguments.failover_trials));
        report.failover = Some(failover::run(arguments.failover_trials, group, &progress).await?);
    }
    if arguments.quiet_sessions > 0 {
        let progress = Progress::spinner(output, "watching the quiet");
        let sessions = arguments.quiet_sessions;
        let length = arguments.quiet_duration;
        let group = group.as_deref();
        report.quiet = Some(quiet::run(sessions, length, group, addresses, &operators).await?);
        drop(progress);
    }
    output.show(&report, report::text)
}

async fn one_load(
    arguments: &Bench,
    writes: bool,
    clients: u32,
    addresses: &[String],
    operators: &[Operator],
) -> Result<report::Measured, Failure> {
    let batch = arguments.batch.unwrap_or(1);
    let Some(operator) = operators.first() else {
        return Err(Failure::usage("--connections: at least 1 is needed"));
    };
    let owner = Owner::start(operator, addresses, clients).await?;
    let work = match (writes, batch) {
        (true, 1) => Work::Commit { position_bytes: arguments.position_bytes },
        (true, _) => Work::Announce { batch },
        (false, _) => Work::Find,
    };
    let load = Load {
        work,
        clients,
        warm_up: arguments.warm_up,
        duration: arguments.duration,
        claims: owner.claims(),
        run: owner.run().to_owned(),
    };
    let measured = load.run(operators).await;
    owner.stop().await;
    measured
}
