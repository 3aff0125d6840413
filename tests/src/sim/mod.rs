//! Simulator of our own layer: one thread, one seed, no Raft library, no IO, no clock.
//! `world` runs it; `oracle` says what must never happen; `coverage` says what did happen.

mod agent;
mod breach;
mod churn;
mod client;
mod coverage;
mod faults;
mod fences;
mod intents;
mod job;
mod judge;
mod leader;
mod log;
mod net;
mod oracle;
mod reign;
mod replica;
mod rest;
mod restart;
mod rng;
mod rolling;
mod story;
mod world;

pub use breach::Broken;
pub use coverage::{Coverage, Kind};
pub use oracle::Violation;
pub use rolling::{Rolled, roll};
pub use story::{Failure, Story};
pub use world::{run, run_broken};
