//! The house rules that neither rustfmt nor clippy knows (STYLE.md).
//! Each kind of rule lives in a file of its own and returns findings; nothing is repaired here.
//! Called by `cargo xtask tidy` and by the gate.

pub(crate) mod code_map;
mod documents;
mod evidence;
mod finding;
mod manifests;
mod packages;
mod ratchet;
mod shape;
mod text;
pub(crate) mod tree;

use anyhow::bail;

use crate::workspace::Workspace;
use finding::Finding;
use ratchet::Ratchet;

/// Fails and lists every breach that is not a recorded exception.
pub(crate) fn check(workspace: &Workspace) -> anyhow::Result<()> {
    let complaints = Ratchet::read(workspace)?.judge(&findings(workspace)?);
    for complaint in &complaints {
        println!("{complaint}");
    }
    match complaints.len() {
        0 => Ok(()),
        count => bail!("{count} breaches of the house rules; STYLE.md explains them"),
    }
}

/// Lowers the recorded exceptions to what is there now.
pub(crate) fn shrink(workspace: &Workspace) -> anyhow::Result<()> {
    let mut ratchet = Ratchet::read(workspace)?;
    ratchet.shrink(&findings(workspace)?);
    ratchet.write(workspace)
}

fn findings(workspace: &Workspace) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let files = tree::read(&workspace.root)?;
    for file in &files {
        text::examine(file, &mut findings);
        if file.is_rust() {
            shape::examine(file, &mut findings);
        }
        if file.path.ends_with("Cargo.toml") {
            manifests::examine(file, &mut findings);
        }
        documents::examine(file, &workspace.root, &mut findings);
    }
    code_map::examine(&files, &mut findings);
    evidence::examine(&files, &mut findings);
    packages::examine(workspace, &mut findings)?;
    findings.sort();
    Ok(findings)
}
