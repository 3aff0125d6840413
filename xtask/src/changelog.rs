//! Assembles the fragments of changelog.d into a section of CHANGELOG.md.
//! Versions, commits and tags are made in release.rs.
//! Called by `cargo xtask changelog` and by release.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::workspace::Workspace;

/// What kind of change a fragment tells of; sections stand in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Added,
    Changed,
    Fixed,
    Removed,
    Security,
}

impl Kind {
    /// The kind that the name of a fragment begins with: `added-drills.md`.
    pub(crate) fn of_file(name: &str) -> Option<Kind> {
        let (kind, rest) = name.split_once('-')?;
        if rest == ".md" || !rest.ends_with(".md") {
            return None;
        }
        match kind {
            "added" => Some(Kind::Added),
            "changed" => Some(Kind::Changed),
            "fixed" => Some(Kind::Fixed),
            "removed" => Some(Kind::Removed),
            "security" => Some(Kind::Security),
            _ => None,
        }
    }
}

/// Prints the section that the next release would get.
pub(crate) fn print(workspace: &Workspace) -> anyhow::Result<()> {
    let (section, _) = section(workspace, "next")?;
    print!("{section}");
    Ok(())
}

/// Moves the fragments into CHANGELOG.md under the version; fails when there is none.
pub(crate) fn assemble(workspace: &Workspace, version: &str) -> anyhow::Result<()> {
    let (section, fragments) = section(workspace, version)?;
    if fragments.is_empty() {
        bail!("changelog.d has no fragment: a release without a change");
    }
    let path = workspace.root.join("CHANGELOG.md");
    let text = fs::read_to_string(&path).context("cannot read CHANGELOG.md")?;
    fs::write(&path, insert(&text, &section))?;
    for fragment in fragments {
        fs::remove_file(fragment)?;
    }
    Ok(())
}

fn section(workspace: &Workspace, version: &str) -> anyhow::Result<(String, Vec<PathBuf>)> {
    let mut fragments = BTreeMap::new();
    for entry in fs::read_dir(workspace.root.join("changelog.d"))? {
        let path = entry?.path();
        if let Some(kind) = file_name(&path).and_then(Kind::of_file) {
            let text = fs::read_to_string(&path)?;
            fragments.insert((kind, path), text);
        }
    }
    let texts = fragments.iter().map(|((kind, _), text)| (*kind, text.as_str()));
    let section = render(version, texts);
    Ok((section, fragments.into_keys().map(|(_, path)| path).collect()))
}

fn file_name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

fn render<'a>(version: &str, fragments: impl Iterator<Item = (Kind, &'a str)>) -> String {
    let mut section = format!("## {version}\n");
    let mut last = None;
    for (kind, text) in fragments {
        if last != Some(kind) {
            section.push_str(&format!("\n### {kind:?}\n\n"));
            last = Some(kind);
        }
        section.push_str(&format!("- {}\n", text.trim().replace('\n', "\n  ")));
    }
    section
}

/// The changelog with the section above the newest one.
fn insert(changelog: &str, section: &str) -> String {
    match changelog.find("\n## ") {
        Some(at) => {
            let (head, rest) = changelog.split_at(at);
            format!("{head}\n{section}{rest}")
        }
        None => format!("{}\n\n{section}", changelog.trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_become_sections_by_kind() {
        let fragments =
            [(Kind::Added, "One.\n"), (Kind::Added, "Two\nlines."), (Kind::Fixed, "X.")];
        let expected = "## 0.2.0\n\n### Added\n\n- One.\n- Two\n  lines.\n\n### Fixed\n\n- X.\n";
        assert_eq!(render("0.2.0", fragments.into_iter()), expected);
    }

    #[test]
    fn the_newest_section_comes_first() {
        let once = insert("# Changelog\n\nText.\n", "## 0.1.0\n\n- A\n");
        let twice = insert(&once, "## 0.2.0\n\n- B\n");
        assert_eq!(twice, "# Changelog\n\nText.\n\n## 0.2.0\n\n- B\n\n## 0.1.0\n\n- A\n");
    }

    #[test]
    fn names_without_a_kind_are_no_fragments() {
        assert_eq!(Kind::of_file("fixed-x.md"), Some(Kind::Fixed));
        for name in ["README.md", "fixed.md", "fixed-.md", "other-x.md", "fixed-x.txt"] {
            assert_eq!(Kind::of_file(name), None, "{name}");
        }
    }
}
