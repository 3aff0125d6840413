//! What the integration tests share: the simulator of our own layer.
//! The tests themselves are in `it`, one binary.

pub mod sim;
