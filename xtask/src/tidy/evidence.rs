//! Rules for documents that name tests: each test they name is in the sources, and every acceptance
//! scenario has a test of its id.
//! Called by tidy, for all files at once.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::Finding;
use super::tree::SourceFile;

/// The documents whose `path.rs::name` are tests.
const DOCUMENTS: [&str; 3] = ["docs/scenarios.md", "docs/races.md", "docs/field-reports.md"];
/// Where every scenario has a row.
const SCENARIOS: &str = "docs/scenarios.md";
const LAST_SCENARIO: u32 = 100;

/// Adds what is named and not there, and scenarios that nobody tests.
pub(crate) fn examine(files: &[SourceFile], findings: &mut Vec<Finding>) {
    let functions: BTreeMap<&str, BTreeSet<&str>> = files
        .iter()
        .filter(|file| file.is_rust())
        .map(|file| (file.path.as_str(), functions(&file.text).collect()))
        .collect();
    for document in files.iter().filter(|file| DOCUMENTS.contains(&file.path.as_str())) {
        for (number, line) in (1..).zip(document.text.lines()) {
            for (path, name) in named(line) {
                if functions.get(path).is_none_or(|names| !names.contains(name)) {
                    let text = format!("{path} has no test {name}");
                    findings.push(Finding::new(&document.path, number, "evidence", text));
                }
            }
        }
    }
    scenarios(files, &functions, findings);
}

/// Every scenario has a test, and a row that names one.
fn scenarios(
    files: &[SourceFile],
    functions: &BTreeMap<&str, BTreeSet<&str>>,
    findings: &mut Vec<Finding>,
) {
    let Some(document) = files.iter().find(|file| file.path == SCENARIOS) else {
        findings.push(Finding::new(SCENARIOS, 0, "evidence", "it is missing"));
        return;
    };
    for id in 1..=LAST_SCENARIO {
        let prefix = format!("a{id:02}_");
        if !functions.values().flatten().any(|name| name.starts_with(&prefix)) {
            let text = format!("A-{id:02} has no test: no function begins with {prefix}");
            findings.push(Finding::new(SCENARIOS, 0, "evidence", text));
        }
        let row = format!("| A-{id:02} |");
        let told = document.text.lines().filter(|line| line.starts_with(&row));
        if !told.flat_map(named).any(|(_, name)| name.starts_with(&prefix)) {
            let text = format!("A-{id:02} has no row with a test of its id");
            findings.push(Finding::new(SCENARIOS, 0, "evidence", text));
        }
    }
}

/// Names of the functions in this source text, those that a test attribute stands above.
fn functions(text: &str) -> impl Iterator<Item = &str> {
    let mut is_test = false;
    text.lines().filter_map(move |line| {
        let line = line.trim_start();
        if line.starts_with("#[") {
            is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
            return None;
        }
        let name = function(line).filter(|_| is_test);
        // Comments and the end of an attribute of several lines keep it.
        is_test &= line.starts_with("//") || line.starts_with(')');
        name
    })
}

fn function(line: &str) -> Option<&str> {
    let line = line.strip_prefix("async ").unwrap_or(line);
    let name = line.strip_prefix("fn ")?;
    name.split(|letter: char| letter != '_' && !letter.is_ascii_alphanumeric()).next()
}

/// Each `path.rs::name` in backticks.
fn named(line: &str) -> impl Iterator<Item = (&str, &str)> {
    line.split('`').skip(1).step_by(2).filter_map(|code| {
        let (path, name) = code.rsplit_once("::")?;
        path.ends_with(".rs").then_some((path, name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "
#[test]
fn one() {}

fn no_test() {}

/// About it.
#[tokio::test(flavor = \"multi_thread\")]
async fn two() {}
";

    fn file(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.to_owned(), text: text.to_owned() }
    }

    /// A repository in which every scenario has its test and its row.
    fn complete() -> Vec<SourceFile> {
        let ids = 1..=LAST_SCENARIO;
        let tests: String =
            ids.clone().map(|id| format!("#[test]\nfn a{id:02}_holds() {{}}\n")).collect();
        let rows: String =
            ids.map(|id| format!("| A-{id:02} | `t/a.rs::a{id:02}_holds` |\n")).collect();
        vec![file("t/a.rs", &tests), file(SCENARIOS, &rows)]
    }

    fn found(files: &[SourceFile]) -> Vec<String> {
        let mut findings = Vec::new();
        examine(files, &mut findings);
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn tests_are_known_by_their_attribute() {
        assert_eq!(functions(SOURCE).collect::<Vec<_>>(), ["one", "two"]);
    }

    #[test]
    fn a_complete_repository_has_no_finding() {
        assert_eq!(found(&complete()), Vec::<String>::new());
    }

    #[test]
    fn a_test_that_is_not_there_is_found() {
        for code in ["t/a.rs::gone", "t/gone.rs::a01_holds"] {
            let mut files = complete();
            files.push(file("docs/races.md", &format!("| B-01 | `{code}` | `Phase` |")));
            let found = found(&files);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].starts_with("docs/races.md:1: [evidence]"), "{found:?}");
        }
    }

    #[test]
    fn a_function_that_is_no_test_is_no_evidence() {
        let mut files = complete();
        files.push(file("t/b.rs", SOURCE));
        files.push(file("docs/field-reports.md", "`t/b.rs::one` `t/b.rs::no_test`"));
        let found = found(&files);
        assert!(found.len() == 1 && found[0].contains("no_test"), "{found:?}");
    }

    #[test]
    fn a_scenario_without_a_test_or_a_row_is_found() {
        let mut files = complete();
        files[0].text = files[0].text.replace("a07_holds", "renamed");
        let without_test = found(&files);
        assert!(without_test.iter().any(|text| text.contains("A-07 has no test")));
        assert!(without_test.iter().any(|text| text.contains("has no test a07_holds")));
        let mut files = complete();
        files[1].text = files[1].text.replace("| A-100 |", "| A-99 |");
        let without_row = found(&files);
        assert!(without_row.iter().any(|text| text.contains("A-100 has no row")));
        assert!(!found(&[]).is_empty(), "and without the document");
    }
}
