//! Makes a release: changelog, version, commit, tag. Publishing is left to people.
//! Called by `cargo xtask release X.Y.Z`.

use std::fs;

use anyhow::{Context, ensure};

use crate::changelog;
use crate::workspace::{Workspace, output, run as run_command};

/// Assembles the changelog, sets the version of every crate, commits and tags.
pub(crate) fn run(workspace: &Workspace, version: &str) -> anyhow::Result<()> {
    let wanted = parse(version)?;
    let changes = output(workspace.command("git").args(["status", "--porcelain"]))?;
    ensure!(changes.is_empty(), "commit or stash first:\n{changes}");

    let path = workspace.root.join("Cargo.toml");
    let manifest = fs::read_to_string(&path)?;
    let present = present_version(&manifest)?;
    ensure!(wanted >= parse(present)?, "{version} is below the present version {present}");
    let tag = format!("v{version}");
    let tags = output(workspace.command("git").args(["tag", "--list", &tag]))?;
    ensure!(tags.is_empty(), "the tag {tag} exists");

    changelog::assemble(workspace, version)?;
    let old = format!("version = \"{present}\"");
    fs::write(&path, manifest.replacen(&old, &format!("version = \"{version}\""), 1))?;
    run_command(workspace.cargo().args(["update", "--workspace", "--offline"]))?;
    run_command(workspace.command("git").args(["add", "--all"]))?;
    let message = format!("xtask: release {version}");
    run_command(workspace.command("git").args(["commit", "--message", &message]))?;
    run_command(workspace.command("git").args(["tag", "--annotate", &tag, "--message", &message]))?;
    println!("committed and tagged {tag}; push it when you are sure");
    Ok(())
}

/// The version in `[workspace.package]`.
fn present_version(manifest: &str) -> anyhow::Result<&str> {
    manifest
        .lines()
        .find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"'))
        .context("Cargo.toml has no version")
}

fn parse(version: &str) -> anyhow::Result<[u64; 3]> {
    let parts: Vec<u64> = version
        .split('.')
        .map(str::parse)
        .collect::<Result<_, _>>()
        .with_context(|| format!("{version} is not of the form X.Y.Z"))?;
    parts.try_into().ok().with_context(|| format!("{version} is not of the form X.Y.Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_three_numbers() {
        assert_eq!(parse("1.20.3").expect("parses"), [1, 20, 3]);
        for wrong in ["1.2", "1.2.3.4", "v1.2.3", "1.2.x", ""] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_version_is_read_from_the_workspace() {
        let manifest = "[workspace.package]\nversion = \"0.1.0\"\n";
        assert_eq!(present_version(manifest).expect("is there"), "0.1.0");
        assert!(present_version("[workspace]\n").is_err());
    }
}
