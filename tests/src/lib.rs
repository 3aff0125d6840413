//! What the integration tests share: an in-process group of real coordinators with its checkers,
//! and the simulator of our own layer. The tests themselves are in `it`, one binary.

pub mod harness;
pub mod sim;
