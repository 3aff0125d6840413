//! Rules for Cargo.toml files: versions in one place and exact, lints taken from the workspace.
//! Which crate may depend on which is the business of `walls`.
//! Called by tidy for every manifest.

use toml::{Table, Value};

use super::finding::Finding;
use super::tree::SourceFile;

const SECTIONS: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

/// Adds what breaks a rule in this manifest.
pub(crate) fn examine(file: &SourceFile, findings: &mut Vec<Finding>) {
    let manifest: Table = match file.text.parse() {
        Ok(manifest) => manifest,
        Err(error) => {
            findings.push(Finding::new(&file.path, 0, "manifest", error.to_string()));
            return;
        }
    };
    match manifest.get("workspace") {
        Some(workspace) => exact_versions(&file.path, workspace, findings),
        None => member(&file.path, &manifest, findings),
    }
}

fn exact_versions(path: &str, workspace: &Value, findings: &mut Vec<Finding>) {
    let dependencies = workspace.get("dependencies").and_then(Value::as_table);
    for (name, dependency) in dependencies.into_iter().flatten() {
        let version = dependency.as_str().or_else(|| dependency.get("version")?.as_str());
        let ours = dependency.get("path").is_some();
        if !ours && !version.is_some_and(|version| version.starts_with('=')) {
            let text = format!("{name}: pin an exact version (\"=1.2.3\") from the registry");
            findings.push(Finding::new(path, 0, "manifest", text));
        }
    }
}

fn member(path: &str, manifest: &Table, findings: &mut Vec<Finding>) {
    let inherits = |value: Option<&Value>| {
        value.and_then(|value| value.get("workspace")).and_then(Value::as_bool) == Some(true)
    };
    if !inherits(manifest.get("lints")) {
        let text = "add `[lints] workspace = true`";
        findings.push(Finding::new(path, 0, "manifest", text));
    }
    for section in SECTIONS {
        let dependencies = manifest.get(section).and_then(Value::as_table);
        for (name, dependency) in dependencies.into_iter().flatten() {
            if !inherits(Some(dependency)) {
                let text = format!("{name}: give the version in the root, here `workspace = true`");
                findings.push(Finding::new(path, 0, "manifest", text));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> usize {
        let file = SourceFile { path: "Cargo.toml".to_owned(), text: text.to_owned() };
        let mut findings = Vec::new();
        examine(&file, &mut findings);
        findings.len()
    }

    #[test]
    fn the_root_pins_exact_versions() {
        assert_eq!(count("[workspace.dependencies]\na = \"=1.0.0\"\nb = { path = \"b\" }\n"), 0);
        assert_eq!(count("[workspace.dependencies]\na = \"1\"\nb = { git = \"x\" }\n"), 2);
    }

    #[test]
    fn members_inherit_versions_and_lints() {
        let good = "[dependencies]\na.workspace = true\n[lints]\nworkspace = true\n";
        assert_eq!(count(good), 0);
        assert_eq!(count("[dependencies]\na = \"=1.0.0\"\n"), 2);
        assert_eq!(count("not toml"), 1);
    }
}
