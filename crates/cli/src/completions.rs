//! `completions SHELL`: what a shell needs to complete this command line.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::args::Arguments;
use crate::exit::Failure;
use crate::output::Output;

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell.
    shell: Shell,
}

/// Prints the script.
pub(crate) fn run(arguments: &Completions, output: &Output) -> Result<(), Failure> {
    let mut script = Vec::new();
    let mut command = Arguments::command();
    clap_complete::generate(arguments.shell, &mut command, "quorate", &mut script);
    output.bytes(&script)
}
