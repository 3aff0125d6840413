//! Where the workspace is, and how commands are run in it.
//! Nothing here knows what a command is for.
//! Used by every command of xtask.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

/// The root of the repository and its build directory.
pub(crate) struct Workspace {
    /// The folder that holds the workspace's Cargo.toml.
    pub(crate) root: PathBuf,
    /// Cargo's target directory.
    pub(crate) target: PathBuf,
}

impl Workspace {
    /// Finds the workspace this xtask belongs to: the one cargo runs it from.
    pub(crate) fn find() -> anyhow::Result<Workspace> {
        let manifest = env::var_os("CARGO_MANIFEST_DIR").context("run this as `cargo xtask`")?;
        let root = Path::new(&manifest).parent().context("xtask has no parent folder")?;
        Ok(Workspace::at(root.to_path_buf()))
    }

    /// The workspace at `root`.
    pub(crate) fn at(root: PathBuf) -> Workspace {
        let target = match env::var_os("CARGO_TARGET_DIR") {
            Some(folder) => root.join(folder),
            None => root.join("target"),
        };
        Workspace { root, target }
    }

    /// A command that starts in the root.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root);
        command
    }

    /// The cargo that runs us.
    pub(crate) fn cargo(&self) -> Command {
        self.command(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
    }
}

/// Runs the command with our own standard streams; fails unless it exits with 0.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let line = describe(command);
    let status = command.status().with_context(|| format!("cannot start `{line}`"))?;
    ensure!(status.success(), "`{line}` failed: {status}");
    Ok(())
}

/// Runs the command and returns its standard output; fails unless it exits with 0.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<String> {
    let line = describe(command);
    let output = command.output().with_context(|| format!("cannot start `{line}`"))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        bail!("`{line}` failed: {}\n{}", output.status, errors.trim_end());
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{line}` did not print UTF-8"))
}

fn describe(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut line = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    line
}
