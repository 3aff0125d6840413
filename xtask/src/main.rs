//! The automation of the repository: `cargo xtask COMMAND`.
//! Each command lives in a file of its own; no crate of the product is linked here.
//! Called by developers and by `.ci/run`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a tool speaks on its terminal")]

mod changelog;
mod ci;
mod codegen;
mod documented;
mod python;
mod release;
mod tidy;
mod walls;
mod workspace;

use std::process::ExitCode;

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
    /// The gate: everything that must hold before a change lands
    Ci,
    /// Checks the house rules that a compiler does not know
    Tidy {
        /// Lower the recorded exceptions to what is there now, instead of failing
        #[arg(long)]
        shrink: bool,
    },
    /// Checks which crate depends on which
    Walls {
        /// Also build `state` in a copy of the workspace that has no planner
        #[arg(long)]
        without_planner: bool,
    },
    /// Writes crates/proto/src/gen from proto/
    Codegen {
        /// Write nothing; fail when the committed files are not what would be written
        #[arg(long)]
        check: bool,
    },
    /// Writes the code map of ARCHITECTURE.md from the heads of the files
    CodeMap,
    /// Installs what examples/python needs; prints the interpreter, then the folder of the stubs
    PythonEnv,
    /// Prints what the fragments in changelog.d say about the next release
    Changelog,
    /// Assembles the changelog, sets the version, commits and tags
    Release {
        /// Such as 0.2.0; above the present one
        version: String,
    },
}

fn main() -> ExitCode {
    match run(&Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: &Command) -> anyhow::Result<()> {
    let workspace = Workspace::find()?;
    match command {
        Command::Ci => ci::run(&workspace),
        Command::Tidy { shrink: false } => tidy::check(&workspace),
        Command::Tidy { shrink: true } => tidy::shrink(&workspace),
        Command::Walls { without_planner: false } => walls::check(&workspace),
        Command::Walls { without_planner: true } => {
            walls::check(&workspace)?;
            walls::without_planner(&workspace)
        }
        Command::Codegen { check: false } => codegen::write(&workspace),
        Command::Codegen { check: true } => codegen::check(&workspace),
        Command::CodeMap => tidy::code_map::write(&workspace),
        Command::PythonEnv => python::print(&workspace),
        Command::Changelog => changelog::print(&workspace),
        Command::Release { version } => release::run(&workspace, version),
    }
}
