//! What the integration tests share: an in-process group of real coordinators with its checkers,
//! and the simulator of our own layer. The tests themselves are in `it`, one binary.
#![expect(clippy::unwrap_used, reason = "whoever calls is a test: what is missing fails it")]

pub mod harness;
pub mod sim;
