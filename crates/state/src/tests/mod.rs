//! Tests of this crate: scripts, properties, golden bytes, hostile bytes, speed.

mod build;
mod faults;
pub(crate) mod poison;
