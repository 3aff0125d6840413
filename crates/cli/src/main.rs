//! The binary `quorate`: parses the command line, runs one command, ends with its exit code.
//! What each command does is in the file of its noun; no rule of the domain lives here.

mod args;
mod bench;
mod channel;
mod cleaner;
mod completions;
mod config;
mod dev;
mod drain;
mod events;
mod exit;
mod explain;
mod group;
mod key_flags;
mod level;
mod log;
mod member;
mod node;
mod offline;
mod operator;
mod output;
mod progress;
mod render;
mod serve;
mod settings;
mod shape;
mod snapshot;
mod status;
mod stop;
mod version;
mod worker;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use args::{Arguments, Command};
use exit::Failure;
use output::Output;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return finish(args::refuse(&error)),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(run(arguments)),
        Err(error) => Err(Failure::failed(format!("cannot start the async runtime: {error}"))),
    };
    finish(result)
}

async fn run(arguments: Arguments) -> Result<(), Failure> {
    let global = arguments.global;
    let output = Output::new(&global);
    match arguments.command {
        Command::Serve(serve) => serve::run(*serve).await,
        Command::Dev(dev) => dev::run(dev, &global, &output).await,
        Command::Worker(worker) => worker::run(worker, &global, &output).await,
        Command::Status(status) => status::run(status, &global, &output).await,
        Command::Node(node) => node::run(node, &global, &output).await,
        Command::Channel(channel) => channel::run(channel, &global, &output).await,
        Command::Cleaner(cleaner) => cleaner::run(cleaner, &global, &output).await,
        Command::Explain(explain) => explain::run(explain, &global, &output).await,
        Command::Events(events) => events::run(events, &global, &output).await,
        Command::Member(member) => member::run(member, &global, &output).await,
        Command::Snapshot(snapshot) => snapshot::run(snapshot, &global, &output).await,
        Command::Log(log) => log::run(&log, &output),
        Command::Settings(settings) => settings::run(settings, &global, &output).await,
        Command::Bench(bench) => bench::run(bench, &global, &output).await,
        Command::Config(config) => config::run(config, &output),
        Command::Completions(shell) => completions::run(&shell, &output),
        Command::Version(version) => version::run(version, &global, &output).await,
    }
}

fn finish(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(reason) = failure.reason() {
                // A closed standard error leaves nobody to tell; the exit code still does.
                let _unheard = writeln!(std::io::stderr(), "quorate: {reason}");
            }
            failure.code()
        }
    }
}
