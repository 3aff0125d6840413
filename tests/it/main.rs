//! All integration tests, in one binary: one link, one list. One module a goal.
#![expect(clippy::unwrap_used, reason = "these are tests: what is missing fails them")]

mod api;
mod bad_input;
mod cleaners;
mod cluster;
mod drains;
mod field_reports;
mod history;
mod levels;
mod ownership;
mod parity;
mod process;
mod python;
mod sessions;
mod sim;
