//! Reads the text files of the repository that people write. Generated and built files stay out.
//! Used by tidy only.

use std::fs;
use std::path::Path;

use anyhow::Context;

/// Folders nobody writes by hand.
const SKIPPED_FOLDERS: [&str; 6] =
    [".git", "target", "gen", "__pycache__", "quorate-dev", "quorate-bench"];
/// What counts as text.
const EXTENSIONS: [&str; 9] = ["rs", "toml", "md", "proto", "py", "sh", "txt", "service", "yml"];

/// A text file.
pub(crate) struct SourceFile {
    /// From the root, with forward slashes.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl SourceFile {
    pub(crate) fn is_rust(&self) -> bool {
        self.has_extension("rs")
    }

    pub(crate) fn has_extension(&self, extension: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|found| found == extension)
    }
}

/// Every text file under the root, by path.
pub(crate) fn read(root: &Path) -> anyhow::Result<Vec<SourceFile>> {
    let mut files = Vec::new();
    descend(root, "", &mut files)?;
    files.sort_by(|left, right| left.path.cmp(&right.path));
    Ok(files)
}

fn descend(folder: &Path, prefix: &str, files: &mut Vec<SourceFile>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        let kind = entry.file_type()?;
        if kind.is_dir() && !SKIPPED_FOLDERS.contains(&name.as_str()) {
            descend(&entry.path(), &format!("{path}/"), files)?;
        } else if kind.is_file() && is_text(&path) {
            let text = fs::read_to_string(entry.path())
                .with_context(|| format!("{path} cannot be read as text"))?;
            files.push(SourceFile { path, text });
        }
    }
    Ok(())
}

fn is_text(path: &str) -> bool {
    path == ".ci/run"
        || EXTENSIONS
            .iter()
            .any(|extension| Path::new(path).extension().is_some_and(|found| found == *extension))
}
