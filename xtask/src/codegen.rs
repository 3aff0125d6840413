//! Makes crates/proto/src/gen from proto/: Rust types, services, and the descriptor set.
//! Needs no protoc: protox compiles the files. The result is committed.
//! Called by `cargo xtask codegen`, and with `--check` by the gate.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use prost::Message;

use crate::workspace::{Workspace, run};

const DESCRIPTOR_FILE: &str = "quorate.v1.bin";

/// Writes the generated files; removes those that are generated no more.
pub(crate) fn write(workspace: &Workspace) -> anyhow::Result<()> {
    let folder = committed(workspace);
    let fresh = generate(workspace)?;
    fs::create_dir_all(&folder)?;
    for name in read_folder(&folder)?.keys().filter(|name| !fresh.contains_key(*name)) {
        fs::remove_file(folder.join(name))?;
    }
    for (name, bytes) in &fresh {
        fs::write(folder.join(name), bytes)?;
        println!("wrote {}", folder.join(name).display());
    }
    Ok(())
}

/// Fails when the committed files are not what `write` would write.
pub(crate) fn check(workspace: &Workspace) -> anyhow::Result<()> {
    let fresh = generate(workspace)?;
    let folder = committed(workspace);
    let kept = read_folder(&folder)?;
    let stale: Vec<&str> = fresh
        .keys()
        .chain(kept.keys())
        .filter(|name| fresh.get(*name) != kept.get(*name))
        .map(String::as_str)
        .collect();
    if !stale.is_empty() {
        bail!(
            "stale in {}: {}; run `cargo xtask codegen` and commit the result",
            folder.display(),
            stale.join(", ")
        );
    }
    Ok(())
}

fn committed(workspace: &Workspace) -> PathBuf {
    workspace.root.join("crates/proto/src/gen")
}

/// Every generated file by name.
fn generate(workspace: &Workspace) -> anyhow::Result<BTreeMap<String, Vec<u8>>> {
    let include = workspace.root.join("proto");
    let client_api = proto_files(&include.join("quorate/v1"))?;
    let peer_api = proto_files(&include.join("quorate/raft/v1"))?;
    let scratch = workspace.target.join("codegen");
    if scratch.exists() {
        fs::remove_dir_all(&scratch)?;
    }
    fs::create_dir_all(&scratch)?;

    let all: Vec<PathBuf> = client_api.iter().chain(&peer_api).cloned().collect();
    let descriptors = protox::compile(all, [&include]).context("cannot compile proto/")?;
    tonic_prost_build::configure()
        .bytes(".")
        .emit_rerun_if_changed(false)
        .out_dir(&scratch)
        .compile_fds(descriptors)?;
    let sources = files_with(&scratch, "rs")?;
    let configuration = workspace.root.join("rustfmt.toml");
    let mut rustfmt = workspace.command("rustfmt");
    rustfmt.args(["--edition", "2024", "--config-path"]).arg(configuration).args(sources);
    run(&mut rustfmt)?;

    // Reflection is served beside the client API only, so the peers' service stays out of it.
    let mut reflected = protox::compile(client_api, [&include])?;
    for file in &mut reflected.file {
        file.source_code_info = None;
    }
    fs::write(scratch.join(DESCRIPTOR_FILE), reflected.encode_to_vec())?;
    read_folder(&scratch)
}

fn proto_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    files_with(folder, "proto")
}

fn files_with(folder: &Path, extension: &str) -> anyhow::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.extension() == Some(OsStr::new(extension)) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn read_folder(folder: &Path) -> anyhow::Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    if !folder.exists() {
        return Ok(files);
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        files.insert(name, fs::read(entry.path())?);
    }
    Ok(files)
}
