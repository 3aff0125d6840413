//! Tests of this crate: scripts, properties, golden bytes, hostile bytes, speed.

#![expect(clippy::arithmetic_side_effects, reason = "a test may panic")]

mod build;
mod faults;
mod parse;
pub(crate) mod poison;
mod script;
