//! The code map of ARCHITECTURE.md names every source file, and none that is gone.
//! What it says of a file is for the reviewer.
//! Called by tidy.

use std::collections::BTreeMap;

use super::finding::Finding;
use super::tree::SourceFile;

const DOCUMENT: &str = "ARCHITECTURE.md";

/// Adds files that the map misses, and lines of the map without a file.
pub(crate) fn examine(files: &[SourceFile], findings: &mut Vec<Finding>) {
    let Some(document) = files.iter().find(|file| file.path == DOCUMENT) else {
        return;
    };
    let mapped = mapped(&document.text);
    let mapped_crates = ["crates/", "tests/", "xtask/"];
    let sources = files.iter().map(|file| file.path.as_str()).filter(|path| {
        let ours = mapped_crates.iter().any(|folder| path.starts_with(folder));
        ours && path.ends_with(".rs") && !is_test(path)
    });
    for path in sources.clone().filter(|path| !mapped.contains_key(*path)) {
        let text = format!("the code map does not name {path}");
        findings.push(Finding::new(DOCUMENT, 0, "code-map", text));
    }
    for (path, line) in &mapped {
        if !sources.clone().any(|source| source == path) {
            let text = format!("the code map names {path}, which does not exist");
            findings.push(Finding::new(DOCUMENT, *line, "code-map", text));
        }
    }
}

/// Unit tests beside the code they test need no line of their own.
fn is_test(path: &str) -> bool {
    let inside = path.starts_with("crates/") && path.contains("/tests/");
    inside || path.ends_with("/tests.rs")
}

/// Paths in the map with their line: rows "| `file.rs` |" under headings "### `folder`".
fn mapped(text: &str) -> BTreeMap<String, usize> {
    let mut folder = None;
    let mut paths = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.starts_with('#') {
            folder = line.strip_prefix("### `").and_then(|rest| rest.strip_suffix('`'));
        }
        let cell = line.strip_prefix("| `").and_then(|rest| rest.split_once('`'));
        if let (Some(folder), Some((name, _))) = (folder, cell) {
            paths.insert(format!("{folder}/{name}"), number);
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(map: &str, path: &str) -> Vec<String> {
        let file =
            |path: &str, text: &str| SourceFile { path: path.to_owned(), text: text.to_owned() };
        let mut findings = Vec::new();
        examine(&[file(DOCUMENT, map), file(path, "")], &mut findings);
        findings.into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn the_map_and_the_tree_agree() {
        let map = "### `crates/x/src`\n\n| file | holds |\n|---|---|\n| `a.rs` | A |\n";
        assert!(texts(map, "crates/x/src/a.rs").is_empty());
        let both = texts(map, "crates/x/src/b.rs");
        assert_eq!(both.len(), 2, "{both:?}");
    }

    #[test]
    fn unit_tests_need_no_line() {
        assert!(texts("", "crates/x/src/tests/a.rs").is_empty());
        assert!(texts("", "crates/x/src/log/tests.rs").is_empty());
        assert_eq!(texts("", "tests/it/main.rs").len(), 1);
    }
}
