//! `config show`: the configuration a coordinator would run with, and where each value comes from.

use clap::Subcommand;
use serde::Serialize;
use server::config::{Config as ServerConfig, Setting};

use crate::exit::Failure;
use crate::key_flags::KeyFlags;
use crate::output::{Output, table};

/// Commands about configuration.
#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Check the configuration and show each value with its origin.
    Show(Box<KeyFlags>),
}

#[derive(Serialize)]
struct Row {
    key: &'static str,
    value: Option<String>,
    origin: String,
    allowed: String,
    about: &'static str,
}

impl From<Setting> for Row {
    fn from(setting: Setting) -> Self {
        Self {
            key: setting.key.name,
            value: setting.value,
            origin: setting.origin.to_string(),
            allowed: setting.key.allowed(),
            about: setting.key.about,
        }
    }
}

/// Runs one of them.
pub(crate) fn run(command: Config, output: &Output) -> Result<(), Failure> {
    let Config::Show(flags) = command;
    let layers = flags.layers()?;
    let rows: Vec<Row> = layers.settings().into_iter().map(Row::from).collect();
    output.show(&rows, |rows| {
        let mut table = table(["key", "value", "origin", "about"]);
        for row in rows {
            let value = row.value.clone().unwrap_or_else(|| "-".to_owned());
            table.add_row([row.key, &value, &row.origin, row.about]);
        }
        table.to_string()
    })?;
    ServerConfig::from_layers(&layers)?;
    Ok(())
}
