//! Tests of this crate: scripts, properties, golden bytes, hostile bytes, speed.

#![expect(clippy::arithmetic_side_effects, reason = "a test may panic")]

mod build;
mod bytes;
mod coverage;
mod dice;
mod faults;
mod generate;
mod golden;
mod hostile;
mod invariants;
mod limits;
mod parse;
pub(crate) mod poison;
mod properties;
mod samples;
mod script;
mod speed;
