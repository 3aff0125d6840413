//! The grammar of the command line: global flags and the list of commands. The arguments of a
//! command are in its own file. Parsed by main.

use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::exit::{EXIT_CODES, Failure};
use crate::{
    bench, channel, cleaner, completions, config, dev, events, explain, log, member, node, output,
    serve, settings, snapshot, status, version, worker,
};

/// A Raft-replicated coordinator for vector-database clusters.
#[derive(Debug, Parser)]
#[command(name = "quorate", version, about, after_help = EXIT_CODES, propagate_version = false)]
#[command(disable_help_subcommand = true)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flags of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Coordinators to ask, host:port separated by commas; any of them will do.
    #[arg(long, global = true, env = "QUORATE_COORDINATORS", value_delimiter = ',')]
    #[arg(default_value = "127.0.0.1:7420", value_parser = address, value_name = "HOST:PORT,...")]
    pub(crate) coordinators: Vec<String>,
    /// How results are written.
    #[arg(short, long, global = true, value_enum, default_value_t = Format::Table)]
    pub(crate) output: Format,
    /// How long one request may take, retries included.
    #[arg(long, global = true, default_value = "10s", value_parser = timeout)]
    pub(crate) timeout: Duration,
    /// How fresh reads must be; without it linearizable, and stale for `status`.
    #[arg(long, global = true, value_enum)]
    pub(crate) consistency: Option<Consistency>,
    /// No colours; so does a non-empty NO_COLOR.
    #[arg(long, global = true)]
    pub(crate) no_color: bool,
}

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Table,
    /// For machines.
    Json,
}

/// How fresh a read must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Consistency {
    /// Sees every write acknowledged before it.
    Linearizable,
    /// What the leader has applied.
    Leader,
    /// What the asked coordinator has applied.
    Stale,
}

/// The commands, noun first.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run one coordinator.
    Serve(Box<serve::Serve>),
    /// Run a whole group on this machine, and play what breaks it.
    Dev(dev::Dev),
    /// Run a demo worker.
    Worker(worker::Worker),
    /// Show the group: leader, members, nodes, channels, last decisions.
    Status(status::Status),
    /// Worker nodes.
    #[command(subcommand)]
    Node(node::Node),
    /// Data-node channels.
    #[command(subcommand)]
    Channel(channel::Channel),
    /// Who removes the traces of former owners.
    #[command(subcommand)]
    Cleaner(cleaner::Cleaner),
    /// Why something is where it is, and what would change it.
    #[command(subcommand)]
    Explain(explain::Explain),
    /// The history of the group.
    Events(events::Events),
    /// Members of the coordinator group.
    #[command(subcommand)]
    Member(member::Member),
    /// Snapshots, online and offline.
    #[command(subcommand)]
    Snapshot(snapshot::Snapshot),
    /// The Raft log of a stopped coordinator.
    #[command(subcommand)]
    Log(log::Log),
    /// Replicated settings.
    #[command(subcommand)]
    Settings(settings::Settings),
    /// Measure a group: load, failover, the quiet.
    Bench(bench::Bench),
    /// Configuration of a coordinator.
    #[command(subcommand)]
    Config(config::Config),
    /// Completions for a shell.
    Completions(completions::Completions),
    /// Version of this binary, or of the coordinators.
    Version(version::Version),
}

/// What clap refused, as one line; what it was asked to print, printed.
pub(crate) fn refuse(error: &clap::Error) -> Result<(), Failure> {
    let text = error.render().to_string();
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return output::plain(&text);
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return Err(Failure::usage("a command is missing; `--help` lists them"));
    }
    let lines = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"))
        .filter(|line| !line.is_empty());
    let line = lines.collect::<Vec<_>>().join("; ").replace(":; ", ": ");
    Err(Failure::usage(line.strip_prefix("error: ").unwrap_or(&line)))
}

/// Accepts `host:port`.
pub(crate) fn address(text: &str) -> Result<String, String> {
    let allowed = || "must be host:port with a port from 1 to 65535".to_owned();
    let (host, port) = text.rsplit_once(':').ok_or_else(allowed)?;
    let port: u16 = port.parse().map_err(|_error| allowed())?;
    let plain = |char: char| char.is_ascii_graphic() && !"/@,?#".contains(char);
    if host.is_empty() || port == 0 || !host.chars().all(plain) {
        return Err(allowed());
    }
    Ok(text.to_owned())
}

/// Accepts durations such as `500ms`, `10s` or `2m`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text)
        .map_err(|_error| "must be a duration such as 500ms, 10s or 2m".to_owned())
}

fn timeout(text: &str) -> Result<Duration, String> {
    let value = duration(text)?;
    let longest = Duration::from_secs(3600);
    if value < Duration::from_millis(1) || value > longest {
        return Err("must be a duration from 1ms to 1h".to_owned());
    }
    Ok(value)
}
