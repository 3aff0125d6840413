//! `dev`: a whole group on this machine that bootstraps itself, serves the channels of a catalogue,
//! and is shown live or plays a drill. Ends with everything it started.

mod catalog;
mod drill;
mod evidence;
mod failover;
mod live;
mod node_loss;
mod picture;
mod plain;
mod restart;
mod storm;
mod writer;

use std::collections::HashMap;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use client::proto::{ChannelSpec, SetSettingsRequest, WatchChannelsRequest};

use crate::args::{Global, duration};
use crate::exit::Failure;
use crate::group::Group;
use crate::output::Output;
use crate::progress::Progress;
use crate::stop;

/// Channels in one request.
const BATCH: usize = 1000;
/// Shorter than the defaults, so that a lost worker is noticed while one watches.
const SETTINGS: [(&str, &str); 2] = [("ttl_ms", "3000"), ("settle_ms", "300")];

/// The first worker is this cleaner.
const CLEANER: [&str; 4] = ["--cleaner", "dev", "--clean-time", "5ms"];

/// Arguments of `dev`.
#[derive(Debug, Args)]
pub(crate) struct Dev {
    /// Directory for data and logs of all processes; emptied first.
    #[arg(long, default_value = "quorate-dev", value_name = "DIR")]
    data_dir: PathBuf,
    /// Neither empty the directory first nor remove it in the end.
    #[arg(long)]
    keep: bool,
    /// Catalogue of collections with their channels (JSON); without it a built-in one.
    #[arg(long, value_name = "FILE")]
    catalog: Option<PathBuf>,
    /// Demo workers.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    workers: u16,
    /// Play a story that breaks something, and check that nothing was lost.
    #[arg(long, value_enum)]
    drill: Option<Drill>,
    /// How long the storm lasts.
    #[arg(long, default_value = "60s", value_parser = duration, requires = "drill")]
    storm_for: Duration,
}

/// The stories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Drill {
    /// Kill the leader: another takes over, no channel moves.
    Failover,
    /// Stop a worker: its channels move, and it is fenced.
    NodeLoss,
    /// Kill each coordinator: it comes back from its snapshot with an equal state.
    Restart,
    /// Kill a coordinator every two seconds, and start it again. Not part of `all`.
    Storm,
    /// All of them.
    All,
}

/// Runs it.
pub(crate) async fn run(arguments: Dev, global: &Global, output: &Output) -> Result<(), Failure> {
    let channels = catalog::channels(arguments.catalog.as_deref())?;
    let progress = Progress::spinner(output, "starting three coordinators");
    let mut group = tokio::select! {
        group = Group::found(&arguments.data_dir, arguments.keep, &[], global) => group?,
        stopped = stop::requested(false) => return stopped,
    };
    drop(progress);
    let ended = tokio::select! {
        ended = work(&arguments, channels, &mut group, output) => ended,
        stopped = stop::requested(false) => stopped,
    };
    group.stop().await;
    ended
}

async fn work(
    arguments: &Dev,
    channels: Vec<ChannelSpec>,
    group: &mut Group,
    output: &Output,
) -> Result<(), Failure> {
    let values: HashMap<String, String> =
        SETTINGS.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    group.operator.set_settings(SetSettingsRequest { write: None, values }).await?;
    for batch in channels.chunks(BATCH) {
        let request = WatchChannelsRequest { write: None, channels: batch.to_vec() };
        group.operator.watch_channels(request).await?;
    }
    for number in 1..=arguments.workers {
        // Whoever it cleans up after, the events say so: `cleaner:dev` in place of the leader.
        let cleaner: &[&str] = if number == 1 { &CLEANER } else { &[] };
        group.start_worker(&format!("worker-{number}"), cleaner)?;
    }
    match arguments.drill {
        Some(drill) => drill::run(drill, arguments.storm_for, group, output).await,
        None if !output.json() && std::io::stdout().is_terminal() => live::run(group).await,
        None => plain::run(group, output).await,
    }
}
