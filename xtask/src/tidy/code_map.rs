//! The code map of ARCHITECTURE.md: one line for each source file, taken from the file's head.
//! What a head says is for the author and the reviewer.
//! Written by `cargo xtask code-map`, compared by tidy.

use std::collections::BTreeMap;
use std::fs;

use anyhow::Context;

use super::finding::Finding;
use super::tree::{self, SourceFile};
use crate::workspace::Workspace;

const DOCUMENT: &str = "ARCHITECTURE.md";
const BEGIN: &str = "<!-- code map: written by `cargo xtask code-map` -->\n";
const END: &str = "<!-- end of the code map -->";

/// Folders with a table of their own, in reading order; a file belongs to the first that holds it.
const FOLDERS: [&str; 10] = [
    "crates/state/src",
    "crates/planner/src",
    "crates/proto/src",
    "crates/raft/src",
    "crates/server/src",
    "crates/client/src",
    "crates/cli/src",
    "crates",
    "tests",
    "xtask/src",
];

/// Writes the map into ARCHITECTURE.md.
pub(crate) fn write(workspace: &Workspace) -> anyhow::Result<()> {
    let files = tree::read(&workspace.root)?;
    let document = document(&files).context("ARCHITECTURE.md is missing")?;
    let (head, _, tail) = split(&document.text)
        .with_context(|| format!("{DOCUMENT} has no place for the map: {BEGIN}"))?;
    let text = format!("{head}{BEGIN}{}{END}{tail}", render(&files));
    fs::write(workspace.root.join(DOCUMENT), text)?;
    Ok(())
}

/// Adds a finding when the map is not what `write` would write.
pub(crate) fn examine(files: &[SourceFile], findings: &mut Vec<Finding>) {
    let Some(document) = document(files) else { return };
    let fresh = render(files);
    if split(&document.text).is_none_or(|(_, map, _)| map != fresh) {
        let text = "the code map is stale: run `cargo xtask code-map`";
        findings.push(Finding::new(DOCUMENT, 0, "code-map", text));
    }
}

fn document(files: &[SourceFile]) -> Option<&SourceFile> {
    files.iter().find(|file| file.path == DOCUMENT)
}

/// What stands before the map, the map, and what stands after it.
fn split(text: &str) -> Option<(&str, &str, &str)> {
    let (head, rest) = text.split_once(BEGIN)?;
    let (map, tail) = rest.split_once(END)?;
    Some((head, map, tail))
}

fn render(files: &[SourceFile]) -> String {
    let mut tables: BTreeMap<usize, Vec<(&str, String)>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.is_rust() && !is_test(&file.path)) {
        let inside = |folder: &&str| file.path.starts_with(&format!("{folder}/"));
        let Some(table) = FOLDERS.iter().position(inside) else { continue };
        let name = file.path.split_at(FOLDERS[table].len() + 1).1;
        tables.entry(table).or_default().push((name, about(&file.text)));
    }
    let mut map = String::new();
    for (table, mut rows) in tables {
        let root = |name: &str| ["lib.rs", "main.rs"].contains(&name);
        rows.sort_by_key(|(name, _)| (!root(name), *name));
        map.push_str(&format!("\n### `{}`\n\n| file | holds |\n|---|---|\n", FOLDERS[table]));
        for (name, about) in rows {
            map.push_str(&format!("| `{name}` | {about} |\n"));
        }
    }
    map.push('\n');
    map
}

/// Tests beside the code they test need no line of their own.
fn is_test(path: &str) -> bool {
    path.starts_with("crates/") && (path.contains("/tests/") || path.ends_with("/tests.rs"))
}

/// The first sentence of the head.
fn about(text: &str) -> String {
    let lines = text.lines().map_while(|line| line.strip_prefix("//!"));
    let head = lines.map(str::trim).collect::<Vec<_>>().join(" ");
    let sentence = match head.split_once(". ") {
        Some((sentence, _)) => sentence,
        None => &head,
    };
    sentence.trim_end_matches('.').replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.to_owned(), text: text.to_owned() }
    }

    fn stale(map: &str) -> bool {
        let document = format!("# A\n{BEGIN}{map}{END}\n");
        let files = [file(DOCUMENT, &document), file("crates/state/src/a.rs", "//! A. B.\n")];
        let mut findings = Vec::new();
        examine(&files, &mut findings);
        !findings.is_empty()
    }

    #[test]
    fn the_map_must_be_what_the_heads_say() {
        let map = "\n### `crates/state/src`\n\n| file | holds |\n|---|---|\n| `a.rs` | A |\n\n";
        assert!(!stale(map));
        assert!(stale(""));
        assert!(stale(&map.replace("| A |", "| B |")));
    }

    #[test]
    fn roots_come_first_and_tests_are_left_out() {
        let files = [
            file("crates/cli/src/a.rs", "//! A\n//! goes on. More.\n"),
            file("crates/cli/src/main.rs", "//! Main.\n"),
            file("crates/cli/src/log/tests.rs", "//! T.\n"),
            file("crates/cli/tests/cli.rs", "//! T.\n"),
        ];
        let map = render(&files);
        assert!(map.ends_with("| `main.rs` | Main |\n| `a.rs` | A goes on |\n\n"), "{map}");
    }
}
