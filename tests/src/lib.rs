//! What the integration tests share: an in-process group of real coordinators with its checkers,
//! the simulator of our own layer, and the runner of known answers. The tests themselves are in
//! `it`, one binary.
#![expect(clippy::unwrap_used, reason = "whoever calls is a test: what is missing fails it")]

pub mod harness;
pub mod parity;
pub mod sim;
