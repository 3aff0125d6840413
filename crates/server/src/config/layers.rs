//! Values of configuration keys with their origin: defaults, then file, environment, flags; the
//! later one wins. Knows keys and spelling, not what values mean together. Filled by `cli`.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::error::ConfigError;
use super::keys::{KEYS, Key};

/// Environment variables of the same prefix that are no configuration of a coordinator.
const OTHER_VARIABLES: &[&str] = &["QUORATE_COORDINATORS", "QUORATE_CONFIG"];
const PREFIX: &str = "QUORATE_";

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Built in.
    Default,
    /// Configuration file.
    File(PathBuf),
    /// Environment variable.
    Environment(String),
    /// Command line.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

/// One key as it stands.
#[derive(Debug, Clone)]
pub struct Setting {
    /// The key.
    pub key: &'static Key,
    /// The value as text; unset: none given.
    pub value: Option<String>,
    /// Where the value comes from.
    pub origin: Origin,
}

/// Values by key. Every value in it is well-formed by itself.
#[derive(Debug, Clone)]
pub struct Layers {
    values: BTreeMap<&'static str, (String, Origin)>,
}

impl Default for Layers {
    fn default() -> Self {
        let values = KEYS
            .iter()
            .filter(|key| !key.default.is_empty())
            .map(|key| (key.name, (key.default.to_owned(), Origin::Default)));
        Self { values: values.collect() }
    }
}

impl Layers {
    /// Adds the values of a TOML file.
    ///
    /// # Errors
    /// A file that cannot be read or is not TOML, an unknown key, a value that is not allowed.
    pub fn file(&mut self, path: &Path) -> Result<(), ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            let start = error.span().map_or(0, |span| span.start);
            let line = text.bytes().take(start).filter(|byte| *byte == b'\n').count() + 1;
            let message = error.message().replace('\n', " ");
            ConfigError::Syntax { path: path.to_owned(), line, message }
        })?;
        self.table("", table, &Origin::File(path.to_owned()))
    }

    /// Adds the values of environment variables; those of other prefixes are passed over.
    ///
    /// # Errors
    /// An unknown key, a value that is not allowed.
    pub fn environment(
        &mut self,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<(), ConfigError> {
        for (name, value) in variables {
            let Some(rest) = name.strip_prefix(PREFIX) else { continue };
            if OTHER_VARIABLES.contains(&name.as_str()) {
                continue;
            }
            let key = rest.to_lowercase().replace("__", ".");
            self.set(&key, value, Origin::Environment(name))?;
        }
        Ok(())
    }

    /// Adds one value from the command line; `flag` as the user wrote it.
    ///
    /// # Errors
    /// An unknown key, a value that is not allowed.
    pub fn flag(&mut self, key: &str, flag: &str, value: String) -> Result<(), ConfigError> {
        self.set(key, value, Origin::Flag(flag.to_owned()))
    }

    /// All keys with their values, in the order of `KEYS`.
    #[must_use]
    pub fn settings(&self) -> Vec<Setting> {
        let shown = |key: &'static Key| match self.values.get(key.name) {
            Some((value, origin)) => {
                Setting { key, value: Some(value.clone()), origin: origin.clone() }
            }
            None => Setting { key, value: None, origin: Origin::Default },
        };
        KEYS.iter().map(shown).collect()
    }

    /// An error about the present value of `key`.
    pub(super) fn bad(&self, key: &str, allowed: String) -> ConfigError {
        let (value, place) = match self.values.get(key) {
            Some((value, origin)) => (value.clone(), place(origin)),
            None => (String::new(), place(&Origin::Default)),
        };
        ConfigError::BadValue { place, key: key.to_owned(), value, allowed }
    }

    pub(super) fn text(&self, key: &str) -> Result<String, ConfigError> {
        match self.values.get(key) {
            Some((value, _)) => Ok(value.clone()),
            None => Err(missing(key)),
        }
    }

    pub(super) fn optional(&self, key: &str) -> Result<Option<String>, ConfigError> {
        Ok(self.values.get(key).map(|(value, _)| value.clone()))
    }

    pub(super) fn number(&self, key: &str) -> Result<u64, ConfigError> {
        self.parsed(key)
    }

    pub(super) fn socket(&self, key: &str) -> Result<SocketAddr, ConfigError> {
        self.parsed(key)
    }

    pub(super) fn switch(&self, key: &str) -> Result<bool, ConfigError> {
        self.parsed(key)
    }

    fn parsed<T: std::str::FromStr>(&self, key: &str) -> Result<T, ConfigError> {
        let allowed = Key::named(key).map_or_else(String::new, Key::allowed);
        self.text(key)?.parse().map_err(|_error| self.bad(key, allowed))
    }

    fn table(
        &mut self,
        section: &str,
        table: toml::Table,
        origin: &Origin,
    ) -> Result<(), ConfigError> {
        for (name, value) in table {
            let key = if section.is_empty() { name } else { format!("{section}.{name}") };
            let text = match value {
                toml::Value::Table(inner) => {
                    self.table(&key, inner, origin)?;
                    continue;
                }
                toml::Value::String(text) => text,
                other => other.to_string(),
            };
            self.set(&key, text, origin.clone())?;
        }
        Ok(())
    }

    fn set(&mut self, name: &str, value: String, origin: Origin) -> Result<(), ConfigError> {
        let Some(key) = Key::named(name) else {
            return Err(ConfigError::UnknownKey {
                place: place(&origin),
                key: name.to_owned(),
                hint: hint(name, &origin),
            });
        };
        if !key.accepts(&value) {
            return Err(ConfigError::BadValue {
                place: place(&origin),
                key: key.name.to_owned(),
                value,
                allowed: key.allowed(),
            });
        }
        self.values.insert(key.name, (value, origin));
        Ok(())
    }
}

fn place(origin: &Origin) -> String {
    match origin {
        Origin::Default => "built-in default".to_owned(),
        Origin::File(path) => format!("configuration file {}", path.display()),
        Origin::Environment(name) => format!("environment variable {name}"),
        Origin::Flag(name) => format!("flag {name}"),
    }
}

fn hint(name: &str, origin: &Origin) -> String {
    let last = |key: &str| key.rsplit('.').next().map_or_else(String::new, str::to_owned);
    // A right name in the wrong section is as near as a misspelt one.
    let likeness = |key: &Key| {
        let whole = strsim::jaro_winkler(name, key.name);
        let part = strsim::jaro_winkler(&last(name), &last(key.name));
        whole.max(part)
    };
    let best = KEYS
        .iter()
        .map(|key| (likeness(key), key))
        .max_by(|(left, _), (right, _)| left.total_cmp(right));
    let written = |key: &Key| match origin {
        Origin::Environment(_) => key.env(),
        Origin::Flag(_) => key.flag(),
        _ => key.name.to_owned(),
    };
    match best {
        Some((likeness, key)) if likeness > 0.8 => {
            format!("; did you mean `{}`?", written(key))
        }
        _ => {
            let all: Vec<String> = KEYS.iter().map(written).collect();
            format!("; known are {}", all.join(", "))
        }
    }
}

fn missing(name: &str) -> ConfigError {
    let (allowed, env, flag) = match Key::named(name) {
        Some(key) => (key.allowed(), key.env(), key.flag()),
        None => (String::new(), String::new(), String::new()),
    };
    ConfigError::Missing { key: name.to_owned(), allowed, env, flag }
}
