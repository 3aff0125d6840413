//! What can be wrong with a configuration. Each message is one line that names the place, the key,
//! the value and what is allowed. Made by `layers` and `config`, shown by `cli`.

use std::path::PathBuf;

use thiserror::Error;

/// A configuration that cannot be used. Nothing was started or changed.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("configuration file {}: cannot be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not TOML.
    #[error("configuration file {}, line {line}: not valid TOML: {message}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// First line of the offending text, from 1.
        line: usize,
        /// What the parser says, on one line.
        message: String,
    },
    /// A key that does not exist.
    #[error("{place}: unknown key `{key}`{hint}")]
    UnknownKey {
        /// Where it stands.
        place: String,
        /// The key as written.
        key: String,
        /// What to do: the nearest known key, or all of them.
        hint: String,
    },
    /// A value that is not allowed.
    #[error("{place}: {key} = {value}: must be {allowed}")]
    BadValue {
        /// Where it stands.
        place: String,
        /// The key.
        key: String,
        /// The value as written.
        value: String,
        /// What is allowed, in words.
        allowed: String,
    },
    /// A key without default that was set nowhere.
    #[error("{key} is not set: give {allowed} as {key} in the file, as {env}, or as {flag}")]
    Missing {
        /// The key.
        key: String,
        /// What is allowed, in words.
        allowed: String,
        /// Its environment variable.
        env: String,
        /// Its flag.
        flag: String,
    },
}
