//! Licences and banned packages among everything we link. deny.toml says the same to cargo-deny.
//! It is repeated here because the gate must hold where cargo-deny is not installed.
//! Called by tidy.

use anyhow::Context;
use cargo_metadata::{CargoOpt, MetadataCommand};

use super::finding::Finding;
use crate::workspace::{Workspace, output};

const LICENCES: [&str; 13] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Packages under another licence, each allowed by name with a reason.
const EXCEPTIONS: [(&str, &str); 2] = [
    // Weak copyleft per file; we link them unchanged. The persistent maps of `state`.
    ("imbl", "MPL-2.0+"),
    ("imbl-sized-chunks", "MPL-2.0+"),
];

/// Packages that may not be linked, and why.
const BANNED: [(&str, &str); 4] = [
    ("openssl-sys", "needs a C library on the build machine"),
    ("native-tls", "needs a C library on the build machine"),
    ("protoc-bin-vendored", "ships a binary; protox compiles the protocol files"),
    ("rocksdb", "needs a C++ tool chain; the log lives in sled (ADR 0008)"),
];

/// Adds every package that may not be linked on this platform.
pub(crate) fn examine(workspace: &Workspace, findings: &mut Vec<Finding>) -> anyhow::Result<()> {
    let version = output(workspace.command("rustc").arg("-vV"))?;
    let host = version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .context("rustc -vV names no host")?;
    let metadata = MetadataCommand::new()
        .manifest_path(workspace.root.join("Cargo.toml"))
        .features(CargoOpt::AllFeatures)
        .other_options(["--locked".to_owned(), format!("--filter-platform={host}")])
        .exec()
        .context("cargo metadata failed; is Cargo.lock up to date?")?;
    for package in &metadata.packages {
        judge(&package.name, package.license.as_deref(), findings);
    }
    Ok(())
}

fn judge(name: &str, licence: Option<&str>, findings: &mut Vec<Finding>) {
    if let Some((_, reason)) = BANNED.iter().find(|(banned, _)| *banned == name) {
        let text = format!("{name} is banned: {reason}");
        findings.push(Finding::new("Cargo.lock", 0, "package", text));
    }
    let licence = licence.unwrap_or("none");
    if !allowed(licence) && !EXCEPTIONS.contains(&(name, licence)) {
        let text = format!("{name} has licence {licence}; xtask/src/tidy/packages.rs lists ours");
        findings.push(Finding::new("Cargo.lock", 0, "licence", text));
    }
}

/// Whether one alternative of the expression consists of allowed licences only.
fn allowed(expression: &str) -> bool {
    let plain = expression.replace(['(', ')'], " ").replace('/', " OR ");
    // Strictly, AND binds closer than OR. Read the other way round, an expression without
    // parentheses passes only when each part of its union offers something allowed.
    let part = |part: &str| part.split(" OR ").any(|licence| LICENCES.contains(&licence.trim()));
    plain.split(" AND ").all(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(name: &str, licence: Option<&str>) -> usize {
        let mut findings = Vec::new();
        judge(name, licence, &mut findings);
        findings.len()
    }

    #[test]
    fn licences_are_judged_by_expression() {
        assert!(allowed("MIT OR Apache-2.0"));
        assert!(allowed("MIT/Apache-2.0"));
        assert!(allowed("(MIT OR Apache-2.0) AND Unicode-3.0"));
        assert!(allowed("GPL-3.0-only OR MIT"));
        assert!(!allowed("GPL-3.0-only"));
        assert!(!allowed("MIT AND GPL-3.0-only"));
    }

    #[test]
    fn exceptions_hold_for_their_package_only() {
        assert_eq!(count("imbl", Some("MPL-2.0+")), 0);
        assert_eq!(count("other", Some("MPL-2.0")), 1);
        assert_eq!(count("other", None), 1);
    }

    #[test]
    fn banned_packages_are_found() {
        assert_eq!(count("openssl-sys", Some("MIT")), 1);
    }
}
