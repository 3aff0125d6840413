//! Simulator of our own layer: one thread, one seed, no Raft library, no IO, no clock.
//! `world` runs it; `oracle` says what must never happen; `coverage` says what did happen.

mod agent;
mod client;
mod coverage;
mod faults;
mod job;
mod judge;
mod leader;
mod log;
mod net;
mod oracle;
mod reign;
mod replica;
mod rest;
mod rng;
mod world;

pub use coverage::{Coverage, Kind};
pub use oracle::Violation;
pub use world::{Broken, Failure, Story, run, run_broken};
