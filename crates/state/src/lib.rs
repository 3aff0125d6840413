//! Quorate's replicated state machine: sessions of workers, data channels, and who watches which.
//!
//! The contract: [`State::apply`] is the only way to change a [`State`]. It is a pure function of
//! the state and one log entry's stamp, term and request: no clock, no randomness, no order of a
//! hash map, no float. It is total: every request, however hostile, has an [`outcome::Outcome`]. It
//! derives consequences and never makes choices: those come in as a [`command::Command::Place`],
//! and are refused where they no longer hold. Equal histories give equal states, seen in
//! [`State::witness`] (what was decided) and [`State::digest`] (what is).
#![no_std]
#![deny(
    missing_docs,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::float_arithmetic,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod ack;
mod apply;
pub mod channel;
mod checksum;
pub mod choices;
mod cleaner;
pub mod codec;
pub mod command;
mod deadline;
pub mod decision;
mod digest;
mod directive;
mod display;
mod effect;
pub mod epoch;
pub mod event;
mod freeze;
pub mod ids;
mod index;
mod invariants;
pub mod level;
pub mod limits;
pub mod node;
mod octets;
pub mod outcome;
mod place;
pub mod policy;
mod release;
mod retry;
mod session;
mod settings;
pub mod snapshot;
mod state;
mod watch;

#[cfg(test)]
mod tests;

pub use apply::Context;
pub use cleaner::subscription_name;
pub use digest::{Digest, Witness};
pub use directive::{Directive, DirectiveKind, desired_digest, directives_for};
pub use index::PhaseCounts;
pub use invariants::{Violation, check};
pub use settings::SettingInfo;
pub use state::{Leader, NotCandidate, Remembered, State};
