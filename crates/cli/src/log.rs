//! `log inspect`: the Raft log of a stopped coordinator, every entry in words. Only reads.

use std::path::PathBuf;

use clap::Subcommand;

use crate::exit::Failure;
use crate::offline;
use crate::output::Output;

/// Commands about the log.
#[derive(Debug, Subcommand)]
pub(crate) enum Log {
    /// Print every entry in words.
    Inspect {
        /// Data directory of a coordinator that is not running.
        #[arg(value_name = "DIR")]
        data_dir: PathBuf,
    },
}

/// Runs one of them.
pub(crate) fn run(command: &Log, output: &Output) -> Result<(), Failure> {
    let Log::Inspect { data_dir } = command;
    offline::log_inspect(data_dir, output)
}
