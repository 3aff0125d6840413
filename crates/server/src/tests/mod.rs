//! Tests of the pure parts of the server. What needs a group runs in the `tests` crate.

mod admission;
mod cleaners;
mod history;
mod level;
mod look;
mod outbox;
mod samples;
mod sessions;
mod silence;
mod verdict;
