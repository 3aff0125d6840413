//! The automation of the repository: `cargo xtask COMMAND`.
//! Each command lives in a file of its own; no crate of the product is linked here.
//! Called by developers and by `.ci/run`.
#![expect(clippy::print_stdout, reason = "a command line tool speaks on its standard output")]

mod codegen;
mod workspace;

use clap::{Parser, Subcommand};

use workspace::Workspace;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Automation of the Quorate repository")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Writes crates/proto/src/gen from proto/
    Codegen {
        /// Write nothing; fail when the committed files are not what would be written
        #[arg(long)]
        check: bool,
    },
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let workspace = Workspace::find()?;
    match arguments.command {
        Command::Codegen { check: false } => codegen::write(&workspace),
        Command::Codegen { check: true } => codegen::check(&workspace),
    }
}
