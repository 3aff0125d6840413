//! `worker`: a demo worker on the client library, with settable slowness and faults, that may be a
//! cleaner too. Shows what happens to its session, its channels and its clean-ups.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::{Args, ValueEnum};
use client::agent::{AgentEvent, AgentOptions, Observer};
use client::cleaner::{CleanerObserver, CleanerOptions};
use client::demo::{DemoCleaner, DemoEvent, DemoFault, DemoOptions, DemoWorker};
use client::{CancellationToken, Endpoints, proto};
use serde::Serialize;

use crate::args::{Global, duration};
use crate::exit::Failure;
use crate::output::Output;
use crate::stop;

/// Arguments of `worker`.
#[derive(Debug, Args)]
pub(crate) struct Worker {
    /// What it serves.
    #[arg(long, value_enum, default_value_t = Role::Data)]
    role: Role,
    /// Stable and unique name; without it one from host and process.
    #[arg(long)]
    name: Option<String>,
    /// Where others would reach it; without it its name.
    #[arg(long)]
    address: Option<String>,
    /// Labels.
    #[arg(long, value_parser = label, value_name = "NAME=VALUE")]
    label: Vec<(String, String)>,
    /// Time until a channel is consumed.
    #[arg(long, default_value = "100ms", value_parser = duration)]
    watch_time: Duration,
    /// Time to release one.
    #[arg(long, default_value = "50ms", value_parser = duration)]
    release_time: Duration,
    /// Commit a position of every channel this often; 0s: never.
    #[arg(long, default_value = "0s", value_parser = duration)]
    commit_every: Duration,
    /// Memory held for each channel, in bytes.
    #[arg(long, default_value_t = 0)]
    channel_bytes: usize,
    /// Let every N-th watch fail; 0: none.
    #[arg(long, default_value_t = 0, value_name = "N")]
    fail_every: u64,
    /// What it does wrong, on purpose.
    #[arg(long, value_enum, default_value_t = Fault::None)]
    fault: Fault,
    /// Also be the cleaner of this name, which stays registered when the worker ends.
    #[arg(long, value_name = "NAME")]
    cleaner: Option<String>,
    /// Time for one clean-up.
    #[arg(long, default_value = "50ms", value_parser = duration, requires = "cleaner")]
    clean_time: Duration,
    /// Let every N-th clean-up fail; 0: none.
    #[arg(long, default_value_t = 0, value_name = "N", requires = "cleaner")]
    clean_fail_every: u64,
    /// When told to stop: how long to wait until everything was moved elsewhere.
    #[arg(long, default_value = "30s", value_parser = duration)]
    drain_timeout: Duration,
    /// Also stop when standard input closes: whoever started this one is gone.
    #[arg(long, hide = true)]
    stop_with_stdin: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Role {
    Data,
    Query,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Fault {
    /// Nothing.
    None,
    /// No watch ever ends.
    HangWatch,
    /// No release ever ends.
    HangRelease,
    /// Every watch fails.
    FailWatch,
    /// Every release fails.
    FailRelease,
    /// Claims what it no longer has.
    Lie,
}

#[derive(Serialize)]
struct Line {
    event: String,
}

/// Works until it is told to stop; told again, it stops at once.
pub(crate) async fn run(
    arguments: Worker,
    global: &Global,
    output: &Output,
) -> Result<(), Failure> {
    let stop = CancellationToken::new();
    let (options, worker) = build(&arguments, global, output)?;
    let endpoints = options.endpoints.clone();
    let working = client::agent::run_apart(options, worker, stop.clone());
    let cleaning = clean(&arguments, endpoints, global, output);
    let mut running = std::pin::pin!(async move {
        // What a worker leaves behind when it goes is cleaned up while it still drains.
        tokio::select! {
            ended = working => ended,
            ended = cleaning => ended,
        }
    });
    tokio::select! {
        ended = &mut running => return Ok(ended?),
        stopped = stop::requested(arguments.stop_with_stdin) => stopped?,
    }
    stop.cancel();
    tokio::select! {
        ended = running => Ok(ended?),
        stopped = stop::requested(false) => stopped,
    }
}

/// Cleans up, if that was asked for, until the group will not have this cleaner.
async fn clean(
    arguments: &Worker,
    endpoints: Endpoints,
    global: &Global,
    output: &Output,
) -> Result<(), client::Error> {
    let Some(name) = &arguments.cleaner else { return std::future::pending().await };
    let mut options = CleanerOptions::new(endpoints, name);
    options.calls.deadline = global.timeout;
    let shown = output.clone();
    options.observer = CleanerObserver::new(move |event| say(&shown, event.to_string()));
    let cleaner = DemoCleaner::new(arguments.clean_time, arguments.clean_fail_every);
    client::cleaner::run(options, cleaner, CancellationToken::new()).await
}

fn build(
    arguments: &Worker,
    global: &Global,
    output: &Output,
) -> Result<(AgentOptions, DemoWorker), Failure> {
    let endpoints = Endpoints::from_addresses(&global.coordinators)
        .map_err(|error| Failure::usage(format!("--coordinators: {error}")))?;
    let role = match arguments.role {
        Role::Data => proto::Role::Data,
        Role::Query => proto::Role::Query,
    };
    let name = arguments.name.clone().unwrap_or_else(|| format!("worker-{}", std::process::id()));
    let mut options = AgentOptions::new(endpoints, name, role);
    if let Some(address) = &arguments.address {
        options.address.clone_from(address);
    }
    options.labels = arguments.label.iter().cloned().collect::<BTreeMap<_, _>>();
    options.drain_timeout = arguments.drain_timeout;
    options.calls.deadline = global.timeout;
    let shown = output.clone();
    options.observer = Observer::new(move |event: &AgentEvent| say(&shown, event.to_string()));
    let demo = DemoOptions {
        watch: arguments.watch_time,
        release: arguments.release_time,
        commit_every: arguments.commit_every,
        channel_bytes: arguments.channel_bytes,
        fail_every: arguments.fail_every,
        fault: match arguments.fault {
            Fault::None => DemoFault::None,
            Fault::HangWatch => DemoFault::HangWatch,
            Fault::HangRelease => DemoFault::HangRelease,
            Fault::FailWatch => DemoFault::FailWatch,
            Fault::FailRelease => DemoFault::FailRelease,
            Fault::Lie => DemoFault::Lie,
        },
    };
    let shown = output.clone();
    let worker = DemoWorker::new(demo, move |event: &DemoEvent| say(&shown, event.to_string()));
    Ok((options, worker))
}

/// A worker goes on when nobody reads what it says.
fn say(output: &Output, event: String) {
    let _unread = output.element(&Line { event }, |line| line.event.clone());
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("must be NAME=VALUE".to_owned()),
    }
}
