//! The Python environment of examples/python: a virtual environment and stubs under target/.
//! The example itself is not run here; the tests do that.
//! Called by `cargo xtask python-env` and by the gate.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::workspace::{Workspace, run};

const REQUIREMENTS: &str = "examples/python/requirements.txt";
const STAMP: &str = "made-from";

/// Where the interpreter and the generated modules are.
pub(crate) struct Environment {
    pub(crate) interpreter: PathBuf,
    pub(crate) stubs: PathBuf,
}

/// Prepares the environment and prints both paths, one a line.
pub(crate) fn print(workspace: &Workspace) -> anyhow::Result<()> {
    let environment = prepare(workspace)?;
    println!("{}", environment.interpreter.display());
    println!("{}", environment.stubs.display());
    Ok(())
}

/// Installs the pinned packages and makes the stubs, unless both are there and up to date.
pub(crate) fn prepare(workspace: &Workspace) -> anyhow::Result<Environment> {
    fs::create_dir_all(&workspace.target)?;
    // Tests may ask at the same time; the second waits and finds everything done.
    let lock = File::create(workspace.target.join("python.lock"))?;
    lock.lock().context("cannot lock target/python.lock")?;
    let interpreter = install(workspace)?;
    let stubs = generate(workspace, &interpreter)?;
    Ok(Environment { interpreter, stubs })
}

fn install(workspace: &Workspace) -> anyhow::Result<PathBuf> {
    let folder = workspace.target.join("python-venv");
    let interpreter = folder.join("bin/python");
    let requirements = workspace.root.join(REQUIREMENTS);
    let wanted = fs::read(&requirements).with_context(|| format!("cannot read {REQUIREMENTS}"))?;
    if is_made_from(&folder, &wanted) {
        return Ok(interpreter);
    }
    clear(&folder)?;
    let mut venv = workspace.command("python3");
    quiet(venv.args(["-m", "venv"]).arg(&folder))?;
    let mut pip = workspace.command(&interpreter);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]);
    quiet(pip.arg("--requirement").arg(&requirements))?;
    fs::write(folder.join(STAMP), wanted)?;
    Ok(interpreter)
}

fn generate(workspace: &Workspace, interpreter: &Path) -> anyhow::Result<PathBuf> {
    let folder = workspace.target.join("python-stubs");
    let include = workspace.root.join("proto");
    let mut files = Vec::new();
    for entry in fs::read_dir(include.join("quorate/v1"))? {
        let path = entry?.path();
        if path.extension() == Some(OsStr::new("proto")) {
            files.push(path);
        }
    }
    files.sort();
    let mut wanted = fs::read(workspace.root.join(REQUIREMENTS))?;
    for file in &files {
        wanted.extend(fs::read(file)?);
    }
    if is_made_from(&folder, &wanted) {
        return Ok(folder);
    }
    clear(&folder)?;
    fs::create_dir_all(&folder)?;
    let mut protoc = workspace.command(interpreter);
    protoc.args(["-m", "grpc_tools.protoc"]).arg("--proto_path").arg(&include);
    protoc.arg("--python_out").arg(&folder).arg("--grpc_python_out").arg(&folder);
    quiet(protoc.args(&files))?;
    fs::write(folder.join(STAMP), wanted)?;
    Ok(folder)
}

/// Runs the command; what it prints must not mix with the paths we print.
fn quiet(command: &mut std::process::Command) -> anyhow::Result<()> {
    run(command.stdout(std::process::Stdio::null()))
}

fn is_made_from(folder: &Path, wanted: &[u8]) -> bool {
    fs::read(folder.join(STAMP)).is_ok_and(|found| found == wanted)
}

fn clear(folder: &Path) -> anyhow::Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot clear {}", folder.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_reused_only_for_the_same_source() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(!is_made_from(folder.path(), b"a"));
        fs::write(folder.path().join(STAMP), "a").expect("writes");
        assert!(is_made_from(folder.path(), b"a"));
        assert!(!is_made_from(folder.path(), b"b"));
    }
}
