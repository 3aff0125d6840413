//! The table of who may depend on whom. ARCHITECTURE.md explains each line.
//! How the workspace is read stands in mod.rs.
//! Used by walls.

use std::fs;
use std::path::Path;

use anyhow::Context;

use crate::workspace::Workspace;

/// Our crates, and which of our crates each may name. `None`: any.
const OURS: [(&str, Option<&[&str]>); 9] = [
    ("state", Some(&[])),
    ("planner", Some(&["state"])),
    ("proto", Some(&[])),
    ("raft", Some(&["proto"])),
    ("server", Some(&["state", "planner", "proto", "raft"])),
    ("client", Some(&["proto"])),
    ("cli", Some(&["client", "server"])),
    ("tests", None),
    ("xtask", Some(&[])),
];

/// Everything else that the deterministic crates may name.
const ALLOWED: [(&str, &[&str]); 3] = [
    ("state", &["bincode", "blake3", "imbl", "serde", "thiserror"]),
    ("planner", &["crc32fast"]),
    ("proto", &["bytes", "prost", "tonic", "tonic-prost"]),
];

/// Packages that only some crates may name.
const RESERVED: [(&str, &[&str]); 6] = [
    ("openraft", &["raft"]),
    ("sled", &["raft"]),
    ("bincode", &["state", "raft"]),
    ("axum", &["server"]),
    ("prometheus-client", &["server"]),
    ("clap", &["cli", "xtask"]),
];

/// Why `package` may not depend on `dependency`, if so.
pub(crate) fn judge(package: &str, dependency: &str) -> Option<String> {
    let Some((_, ours)) = OURS.iter().find(|(name, _)| *name == package) else {
        return Some(format!("{package} is not in the table of xtask/src/walls/table.rs"));
    };
    let breach = || Some(format!("{package} may not depend on {dependency}"));
    let Some(ours) = ours else {
        return None;
    };
    if OURS.iter().any(|(name, _)| *name == dependency) {
        return if ours.contains(&dependency) { None } else { breach() };
    }
    let listed = |table: &[(&str, &[&str])], key: &str, value: &str| {
        let row = table.iter().find(|(name, _)| *name == key);
        row.is_none_or(|(_, values)| values.contains(&value))
    };
    let permitted = listed(&ALLOWED, package, dependency) && listed(&RESERVED, dependency, package);
    if permitted { None } else { breach() }
}

/// Lines of crates/raft that name the client's protocol: raft may use its own package only.
pub(crate) fn raft_sources(workspace: &Workspace) -> anyhow::Result<Vec<String>> {
    let mut breaches = Vec::new();
    descend(&workspace.root.join("crates/raft/src"), &mut breaches)?;
    Ok(breaches)
}

fn descend(folder: &Path, breaches: &mut Vec<String>) -> anyhow::Result<()> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            descend(&path, breaches)?;
        } else if fs::read_to_string(&path).is_ok_and(|text| text.contains("proto::v1")) {
            breaches.push(format!("{}: raft may use proto::raft only", path.display()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arrows_point_one_way() {
        assert_eq!(judge("planner", "state"), None);
        assert_eq!(judge("server", "planner"), None);
        assert_eq!(judge("tests", "state"), None);
        for (package, dependency) in [
            ("state", "planner"),
            ("state", "tokio"),
            ("planner", "raft"),
            ("planner", "rand"),
            ("raft", "state"),
            ("client", "server"),
            ("cli", "raft"),
            ("server", "openraft"),
            ("server", "sled"),
            ("xtask", "state"),
            ("newcomer", "serde"),
        ] {
            assert!(judge(package, dependency).is_some(), "{package} -> {dependency}");
        }
    }
}
