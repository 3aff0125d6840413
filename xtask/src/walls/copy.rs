//! Proves that a crate does not need another: deletes that one in a copy, and builds.
//! Used by walls for state without planner.

use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use toml::{Table, Value};

use super::table;
use crate::workspace::{Workspace, run};

const CRATES: [&str; 7] = ["state", "planner", "proto", "raft", "server", "client", "cli"];

/// Copies the workspace without `deleted` and everything that may need it, and builds `built`.
pub(crate) fn build_without(
    workspace: &Workspace,
    deleted: &str,
    built: &str,
) -> anyhow::Result<()> {
    let folder = workspace.target.join(format!("without-{deleted}"));
    let copy = folder.join("workspace");
    if copy.exists() {
        fs::remove_dir_all(&copy)?;
    }
    fs::create_dir_all(&copy)?;
    fs::copy(workspace.root.join("Cargo.lock"), copy.join("Cargo.lock"))?;
    let manifest = fs::read_to_string(workspace.root.join("Cargo.toml"))?;
    fs::write(copy.join("Cargo.toml"), reduce(&manifest, deleted)?)?;
    for name in survivors(deleted) {
        let from = Path::new("crates").join(name);
        copy_folder(&workspace.root.join(&from), &copy.join(&from))?;
    }
    ensure!(!copy.join("crates").join(deleted).exists(), "{deleted} is still there");

    // A build directory of its own: the copy must not find what the real workspace built.
    let mut cargo = workspace.cargo();
    cargo.current_dir(&copy).env("CARGO_TARGET_DIR", folder.join("target"));
    run(cargo.args(["build", "--quiet", "--offline", "--package", built]))
}

/// Crates that cannot need the deleted one, as the walls stand.
fn survivors(deleted: &str) -> impl Iterator<Item = &'static str> {
    // Only the crates below server are asked: whoever may name server reaches everything.
    let deleted = deleted.to_owned();
    CRATES.into_iter().filter(move |name| {
        let above = ["server", "cli"].contains(name);
        *name != deleted && !above && table::judge(name, &deleted).is_some()
    })
}

/// The root manifest with the crates that are left.
fn reduce(manifest: &str, deleted: &str) -> anyhow::Result<String> {
    let mut manifest: Table = manifest.parse().context("cannot parse Cargo.toml")?;
    let workspace = manifest
        .get_mut("workspace")
        .and_then(Value::as_table_mut)
        .context("Cargo.toml has no workspace")?;
    let members = vec![Value::String("crates/*".to_owned())];
    workspace.insert("members".to_owned(), Value::Array(members));
    workspace.remove("default-members");
    let dependencies = workspace
        .get_mut("dependencies")
        .and_then(Value::as_table_mut)
        .context("Cargo.toml has no workspace.dependencies")?;
    let left: Vec<&str> = survivors(deleted).collect();
    dependencies.retain(|name, value| value.get("path").is_none() || left.contains(&name));
    Ok(toml::to_string(&manifest)?)
}

fn copy_folder(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    let entries = fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))?;
    for entry in entries {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_the_planner_goes_with_it() {
        let left: Vec<&str> = survivors("planner").collect();
        assert_eq!(left, ["state", "proto", "raft", "client"]);
    }

    #[test]
    fn the_reduced_manifest_names_no_deleted_crate() {
        let manifest = "[workspace]\nmembers = [\"crates/*\", \"tests\"]\n\
            default-members = [\"crates/cli\"]\n[workspace.dependencies]\n\
            state = { path = \"crates/state\" }\nplanner = { path = \"crates/planner\" }\n\
            serde = \"=1.0.0\"\n";
        let reduced = reduce(manifest, "planner").expect("reduces");
        assert!(!reduced.contains("planner") && !reduced.contains("cli"), "{reduced}");
        assert!(reduced.contains("serde") && reduced.contains("crates/state"), "{reduced}");
    }
}
