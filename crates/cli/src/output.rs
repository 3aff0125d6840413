//! The one place that writes to standard output: tables for people, JSON for machines. A reader
//! that went away ends the command quietly. Used by every command.

use std::io::Write;

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

use crate::args::{Format, Global};
use crate::exit::Failure;

/// Where results go.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    format: Format,
}

impl Output {
    pub(crate) fn new(global: &Global) -> Self {
        Self { format: global.output }
    }

    pub(crate) fn json(&self) -> bool {
        self.format == Format::Json
    }

    /// Writes `value` as JSON, or what `people` makes of it.
    pub(crate) fn show<T: Serialize>(
        &self,
        value: &T,
        people: impl FnOnce(&T) -> String,
    ) -> Result<(), Failure> {
        if !self.json() {
            return self.text(&people(value));
        }
        let text = serde_json::to_string_pretty(value)
            .map_err(|error| Failure::failed(format!("cannot write the answer: {error}")))?;
        self.text(&text)
    }

    /// Writes one element of a stream: a line of JSON, or what `people` makes of it.
    pub(crate) fn element<T: Serialize>(
        &self,
        value: &T,
        people: impl FnOnce(&T) -> String,
    ) -> Result<(), Failure> {
        if !self.json() {
            return self.text(&people(value));
        }
        let text = serde_json::to_string(value)
            .map_err(|error| Failure::failed(format!("cannot write the answer: {error}")))?;
        self.text(&text)
    }

    /// Writes `text` and ends the line.
    pub(crate) fn text(&self, text: &str) -> Result<(), Failure> {
        let mut bytes = Vec::with_capacity(text.len() + 1);
        bytes.extend_from_slice(text.as_bytes());
        if !text.ends_with('\n') {
            bytes.push(b'\n');
        }
        self.bytes(&bytes)
    }

    /// Writes `bytes` as they are.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Result<(), Failure> {
        let mut out = std::io::stdout().lock();
        let written = out.write_all(bytes).and_then(|()| out.flush());
        written.map_err(|error| match error.kind() {
            std::io::ErrorKind::BrokenPipe => Failure::Unread,
            _ => Failure::failed(format!("cannot write to standard output: {error}")),
        })
    }
}

/// A table in the house style.
pub(crate) fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(header.map(str::to_uppercase));
    table
}

/// Names and values, one pair a line.
pub(crate) fn pairs<const N: usize>(pairs: [(&str, String); N]) -> String {
    let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines = pairs
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| format!("{name:width$}  {value}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Writes text before there is an `Output`.
pub(crate) fn plain(text: &str) -> Result<(), Failure> {
    Output { format: Format::Table }.text(text)
}
