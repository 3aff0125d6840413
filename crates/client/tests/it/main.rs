//! Tests of the client crate against a scripted coordinator in the same process.
//! The real coordinator is met in the workspace's integration tests.
//! Run by `cargo test -p client`.

mod agent;
mod cleaner;
mod fake;
mod fencing;
mod operator;
mod watch;
mod worker;
