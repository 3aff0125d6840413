//! The log of a member: storage behind one trait, and the thread that makes it durable.

pub(crate) mod memory;
