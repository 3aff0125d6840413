//! Rules for documents: links lead somewhere, changelog fragments have a kind.
//! Whether a sentence is true is for the reviewer.
//! Called by tidy for every text file.

use std::path::Path;

use super::finding::Finding;
use super::tree::SourceFile;
use crate::changelog::Kind;

/// Adds what breaks a rule in this document.
pub(crate) fn examine(file: &SourceFile, root: &Path, findings: &mut Vec<Finding>) {
    if !file.has_extension("md") {
        return;
    }
    let folder = root.join(&file.path).parent().unwrap_or(root).to_path_buf();
    for (number, line) in (1..).zip(file.text.lines()) {
        for target in targets(line) {
            let local = target.split('#').next().unwrap_or_default();
            let remote = target.contains("://") || target.starts_with("mailto:");
            if !remote && !local.is_empty() && !folder.join(local).exists() {
                let text = format!("{target} does not exist");
                findings.push(Finding::new(&file.path, number, "dead-link", text));
            }
        }
    }
    let fragment = file.path.strip_prefix("changelog.d/").filter(|name| *name != "README.md");
    if fragment.is_some_and(|name| Kind::of_file(name).is_none()) {
        let text = "name it KIND-WHAT.md, KIND one of added, changed, fixed, removed, security";
        findings.push(Finding::new(&file.path, 0, "changelog", text));
    }
}

/// The targets of `[text](target)` in this line.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("](").filter_map(|(at, _)| {
        let rest = line.get(at + 2..)?;
        rest.split_once(')').map(|(target, _)| target)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(path: &str, text: &str) -> Vec<&'static str> {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("there.md"), "").expect("writes");
        let file = SourceFile { path: path.to_owned(), text: text.to_owned() };
        let mut findings = Vec::new();
        examine(&file, folder.path(), &mut findings);
        findings.iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn links_within_the_repository_lead_somewhere() {
        assert!(rules("a.md", "[a](there.md#part) [b](https://example.org) [c](#x)").is_empty());
        assert_eq!(rules("a.md", "[a](gone.md)"), ["dead-link"]);
    }

    #[test]
    fn fragments_are_named_after_their_kind() {
        assert!(rules("changelog.d/added-drills.md", "Text.").is_empty());
        assert_eq!(rules("changelog.d/drills.md", "Text."), ["changelog"]);
    }
}
