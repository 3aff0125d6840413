//! Rules that look at lines: length, file head, banned words, machine paths, module names.
//! Nothing here parses Rust.
//! Called by tidy for every text file.

use super::finding::Finding;
use super::tree::SourceFile;

const FILE_LINES_MAX: usize = 500;
const LINE_COLUMNS_MAX: usize = 100;
const HEAD_LINES_MAX: usize = 3;
const MODULE_NAMES: [&str; 5] = ["utils", "util", "common", "helpers", "manager"];

/// Words that nobody may write, and why. Split, so that this file does not contain them.
const WORDS: [(&str, &str); 5] = [
    (concat!("FIX", "ME"), "settle it before it lands"),
    (concat!("todo", "!("), "settle it before it lands"),
    (concat!("unimplemented", "!("), "settle it before it lands"),
    (concat!("#[ign", "ore"), "a test that does not run proves nothing"),
    (concat!("thread::", "sleep"), "wait for a condition, or for a timer of the runtime"),
];

/// Beginnings of paths that exist on one machine only.
const MACHINE_PATHS: [&str; 6] = [
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/wo", "rk/"),
    concat!("/fa", "rm/"),
    concat!("/Us", "ers/"),
    concat!("/tm", "p/"),
];

/// Documents that are not part of the repository.
const ABSENT_DOCUMENTS: [&str; 4] = [
    concat!("des", "ign.md"),
    concat!("mod", "els.md"),
    concat!("te", "ch.md"),
    concat!("spec/", "channels.md"),
];

/// Adds what breaks a rule in this file.
pub(crate) fn examine(file: &SourceFile, findings: &mut Vec<Finding>) {
    for (number, line) in (1..).zip(file.text.lines()) {
        words(file, number, line, findings);
        machine_paths(file, number, line, findings);
        absent_documents(file, number, line, findings);
        clock(file, number, line, findings);
        if (file.is_rust() || file.has_extension("py")) && line.chars().count() > LINE_COLUMNS_MAX {
            let text = format!("more than {LINE_COLUMNS_MAX} columns");
            findings.push(Finding::new(&file.path, number, "line-length", text));
        }
        if line.ends_with([' ', '\t']) {
            findings.push(Finding::new(&file.path, number, "trailing-space", "remove it"));
        }
    }
    if file.is_rust() {
        length(file, findings);
        head(file, findings);
        module_name(file, findings);
        standard_library(file, findings);
    }
}

fn words(file: &SourceFile, number: usize, line: &str, findings: &mut Vec<Finding>) {
    let code = file.is_rust() || file.has_extension("py");
    for (word, reason) in WORDS.iter().filter(|(word, _)| code && line.contains(word)) {
        let text = format!("`{word}`: {reason}");
        findings.push(Finding::new(&file.path, number, "banned-word", text));
    }
    let marker = concat!("TO", "DO");
    if code && line.contains(marker) && !line.contains(concat!("TO", "DO(#")) {
        let text = format!("`{marker}` needs the number of an issue: {marker}(#12)");
        findings.push(Finding::new(&file.path, number, "banned-word", text));
    }
    let in_tests = file.path.starts_with("tests/") || file.path.contains("/tests/");
    if in_tests && file.is_rust() && line.contains(concat!("time::", "sleep(")) {
        findings.push(Finding::new(&file.path, number, "sleep", "wait for a condition instead"));
    }
}

fn machine_paths(file: &SourceFile, number: usize, line: &str, findings: &mut Vec<Finding>) {
    for path in MACHINE_PATHS {
        let named = line.match_indices(path).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            !before.is_some_and(|letter| letter.is_alphanumeric() || "/._-}*".contains(letter))
        });
        if named {
            let text = format!("`{path}` exists on one machine only");
            findings.push(Finding::new(&file.path, number, "machine-path", text));
        }
    }
}

fn absent_documents(file: &SourceFile, number: usize, line: &str, findings: &mut Vec<Finding>) {
    for name in ABSENT_DOCUMENTS.iter().filter(|name| line.contains(**name)) {
        let text = format!("{name} is not in the repository; docs/rules.md names the rules");
        findings.push(Finding::new(&file.path, number, "absent-document", text));
    }
}

/// Coordinators read the system clock in one file only.
fn clock(file: &SourceFile, number: usize, line: &str, findings: &mut Vec<Finding>) {
    let coordinator = ["crates/server/src/", "crates/raft/src/"];
    let bound = coordinator.iter().any(|folder| file.path.starts_with(folder));
    if bound && !file.path.ends_with("/clock.rs") && line.contains("SystemTime::now") {
        let text = "only clock.rs of the server reads the system clock";
        findings.push(Finding::new(&file.path, number, "clock", text));
    }
}

fn length(file: &SourceFile, findings: &mut Vec<Finding>) {
    let lines = file.text.lines().count();
    if lines > FILE_LINES_MAX {
        findings.push(Finding {
            subject: file.path.clone(),
            line: 0,
            rule: "file-length",
            measure: lines,
            text: format!("{lines} lines; at most {FILE_LINES_MAX}"),
        });
    }
}

fn head(file: &SourceFile, findings: &mut Vec<Finding>) {
    let lines = file.text.lines().take_while(|line| line.starts_with("//!")).count();
    let crate_head = file.path.ends_with("/lib.rs");
    if lines == 0 {
        let text = "begin with `//!`: what lives here, what does not, who calls it";
        findings.push(Finding::new(&file.path, 1, "file-head", text));
    } else if lines > HEAD_LINES_MAX && !crate_head {
        let text = format!("the head has {lines} lines; at most {HEAD_LINES_MAX}");
        findings.push(Finding::new(&file.path, 1, "file-head", text));
    }
}

fn module_name(file: &SourceFile, findings: &mut Vec<Finding>) {
    let banned = file.path.split('/').map(|part| part.trim_end_matches(".rs"));
    for name in banned.filter(|part| MODULE_NAMES.contains(part)) {
        let text = format!("`{name}` says nothing; name the module after what it holds");
        findings.push(Finding::new(&file.path, 0, "module-name", text));
    }
}

/// `state` and `planner` are no_std: only their tests may reach the standard library.
fn standard_library(file: &SourceFile, findings: &mut Vec<Finding>) {
    let pure = ["crates/state/src/", "crates/planner/src/"];
    if !pure.iter().any(|folder| file.path.starts_with(folder)) {
        return;
    }
    let mut before = "";
    for (number, line) in (1..).zip(file.text.lines().map(str::trim)) {
        if line.starts_with("extern crate std") && before != "#[cfg(test)]" {
            let text = "only under #[cfg(test)]: this crate may not reach clocks, files or threads";
            findings.push(Finding::new(&file.path, number, "no-std", text));
        }
        before = line;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(path: &str, text: &str) -> Vec<&'static str> {
        let file = SourceFile { path: path.to_owned(), text: text.to_owned() };
        let mut findings = Vec::new();
        examine(&file, &mut findings);
        findings.iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn a_clean_file_has_no_findings() {
        assert!(rules("crates/x/src/a.rs", "//! Head.\nfn a() {}\n").is_empty());
    }

    #[test]
    fn each_rule_of_lines_finds_its_breach() {
        let cases = [
            ("a.rs", "fn a() {}\n".to_owned(), "file-head"),
            ("a.rs", "//! 1\n//! 2\n//! 3\n//! 4\n".to_owned(), "file-head"),
            ("a.rs", format!("//! {}\n", "x".repeat(100)), "line-length"),
            ("a.rs", format!("//! H\n{}", "\n".repeat(500)), "file-length"),
            ("a.rs", "//! H \n".to_owned(), "trailing-space"),
            ("utils.rs", "//! H\n".to_owned(), "module-name"),
            ("common/a.rs", "//! H\n".to_owned(), "module-name"),
            ("a.rs", format!("//! H\n// {} later\n", concat!("FIX", "ME")), "banned-word"),
            ("a.rs", format!("//! H\n// {} later\n", concat!("TO", "DO")), "banned-word"),
            ("a.rs", format!("//! H\n{}]\n", concat!("#[ign", "ore")), "banned-word"),
            ("tests/a.rs", format!("//! H\n{}d)\n", concat!("time::", "sleep(")), "sleep"),
            ("a.md", format!("see {}me/notes\n", concat!("/ho", "me/")), "machine-path"),
            ("crates/state/src/a.rs", "//! H\nextern crate std;\n".to_owned(), "no-std"),
            ("a.rs", format!("//! H\n// {}\n", concat!("te", "ch.md")), "absent-document"),
            ("crates/raft/src/a.rs", "//! H\nSystemTime::now()\n".to_owned(), "clock"),
        ];
        for (path, text, rule) in cases {
            assert_eq!(rules(path, &text), [rule], "{path}: {text}");
        }
    }

    #[test]
    fn exceptions_within_the_rules_pass() {
        let numbered = format!("//! H\n// {}12): later\n", concat!("TO", "DO(#"));
        assert!(rules("a.rs", &numbered).is_empty());
        let tested = "//! H\n#[cfg(test)]\nextern crate std;\n";
        assert!(rules("crates/state/src/lib.rs", tested).is_empty());
        assert!(rules("a.md", "crates/x/root/file and homework\n").is_empty());
    }
}
