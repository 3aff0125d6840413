//! Quorate's replicated state machine.
#![no_std]

extern crate alloc;

pub mod channel;
pub mod command;
pub mod decision;
pub mod epoch;
pub mod event;
pub mod ids;
pub mod limits;
pub mod node;
pub mod outcome;
pub mod policy;
