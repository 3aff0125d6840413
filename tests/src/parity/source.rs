//! Where files of cases are, and how they are read. What is in them is for the runners.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Names another directory of the shape of `tests/data`.
pub const VARIABLE: &str = "QUORATE_SHARED";

/// Why a file of cases cannot be run. Parity is never skipped: whoever gets this fails.
#[derive(Debug)]
pub enum Error {
    /// It cannot be read.
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is not JSON.
    Json {
        /// Which file.
        path: PathBuf,
        /// Why, with line and column.
        source: serde_json::Error,
    },
    /// It has no list of cases, or one of them has no name.
    Shape {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
}

/// The directory with the files: under the given root if there is one, else the committed copy.
#[must_use]
pub fn directory(root: Option<&OsStr>) -> PathBuf {
    let committed = || Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    root.map_or_else(committed, PathBuf::from).join("vectors")
}

/// Where the file of this name, without extension, is.
#[must_use]
pub fn path_of(directory: &Path, file: &str) -> PathBuf {
    directory.join(format!("{file}.json"))
}

/// Reads the file of this name.
///
/// # Errors
/// It is missing or not JSON.
pub fn load(directory: &Path, file: &str) -> Result<Value, Error> {
    let path = path_of(directory, file);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(source) => return Err(Error::Read { path, source }),
    };
    serde_json::from_str(&text).map_err(|source| Error::Json { path, source })
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { path, source } => {
                write!(f, "cannot read {}: {source}; is {VARIABLE} right?", path.display())
            }
            Self::Json { path, source } => write!(f, "{} is not JSON: {source}", path.display()),
            Self::Shape { path, problem } => write!(f, "{}: {problem}", path.display()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read { source, .. } => Some(source),
            Self::Json { source, .. } => Some(source),
            Self::Shape { .. } => None,
        }
    }
}
