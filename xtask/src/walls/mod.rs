//! The walls between the crates: who may depend on whom (ARCHITECTURE.md), made executable.
//! The rules are in table.rs; here the workspace is read and asked.
//! Called by `cargo xtask walls` and by the gate.

mod copy;
mod table;

use anyhow::{Context, bail, ensure};
use cargo_metadata::{DependencyKind, MetadataCommand};

use crate::workspace::{Workspace, output};

/// What may never be linked into the deterministic crates, by whatever way.
const UNREACHABLE: [&str; 12] = [
    "async-trait",
    "futures",
    "getrandom",
    "log",
    "openraft",
    "prost",
    "rand",
    "sled",
    "tokio",
    "tonic",
    "tracing",
    "uuid",
];

/// Fails and lists every dependency that crosses a wall.
pub(crate) fn check(workspace: &Workspace) -> anyhow::Result<()> {
    let mut breaches = edges(workspace)?;
    for name in ["state", "planner"] {
        let tree = ["tree", "--locked", "-e", "normal", "--prefix", "none", "-p", name];
        let linked = output(workspace.cargo().args(tree))?;
        breaches.extend(reached(name, &linked)?);
    }
    breaches.extend(table::raft_sources(workspace)?);
    for breach in &breaches {
        println!("{breach}");
    }
    match breaches.len() {
        0 => Ok(()),
        count => bail!("{count} dependencies cross a wall; ARCHITECTURE.md says why they stand"),
    }
}

/// Builds `state` in a copy of the workspace from which planner, and what needs it, is deleted.
pub(crate) fn without_planner(workspace: &Workspace) -> anyhow::Result<()> {
    copy::build_without(workspace, "planner", "state")
}

/// Direct edges that the table does not allow.
fn edges(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    let metadata = MetadataCommand::new()
        .manifest_path(workspace.root.join("Cargo.toml"))
        .no_deps()
        .exec()
        .context("cargo metadata failed")?;
    let mut breaches = Vec::new();
    for package in &metadata.packages {
        for dependency in &package.dependencies {
            if dependency.kind == DependencyKind::Normal {
                breaches.extend(table::judge(&package.name, &dependency.name));
            }
        }
    }
    Ok(breaches)
}

/// Packages of a `cargo tree` that may not be linked into the crate.
fn reached(name: &str, tree: &str) -> anyhow::Result<Vec<String>> {
    let linked: Vec<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    ensure!(linked.contains(&name), "cargo tree -p {name} does not show {name} itself");
    let found = UNREACHABLE.iter().filter(|banned| linked.contains(banned));
    Ok(found.map(|banned| format!("{name} links {banned}, which it may not reach")).collect())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_state_that_depends_on_tokio_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("makes folders");
            std::fs::write(path, text).expect("writes");
        };
        write("Cargo.toml", "[workspace]\nresolver = \"3\"\nmembers = [\"crates/*\"]\n");
        write("crates/state/src/lib.rs", "");
        let clean = "[package]\nname = \"state\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
        write("crates/state/Cargo.toml", clean);
        let workspace = Workspace::at(folder.path().to_path_buf());
        assert_eq!(edges(&workspace).expect("reads"), Vec::<String>::new());

        write("crates/state/Cargo.toml", &format!("{clean}[dependencies]\ntokio = \"1\"\n"));
        let breaches = edges(&workspace).expect("reads");
        assert_eq!(breaches.len(), 1, "{breaches:?}");
        assert!(breaches[0].contains("tokio"), "{breaches:?}");
    }

    #[test]
    fn an_indirect_way_to_tokio_is_refused() {
        let tree = "state v0.1.0\nimbl v7.0.2\ntokio v1.0.0 (*)\n";
        assert_eq!(reached("state", tree).expect("has state").len(), 1);
        assert!(reached("state", "error\n").is_err());
    }

    #[test]
    fn this_workspace_keeps_its_walls() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a parent");
        let workspace = Workspace::at(root.to_path_buf());
        assert_eq!(edges(&workspace).expect("reads"), Vec::<String>::new());
    }
}
