//! All integration tests, in one binary: one link, one list. One module a goal.

mod api;
mod cluster;
mod history;
mod process;
mod python;
mod sim;
