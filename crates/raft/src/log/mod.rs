//! The log of a member: one trait for where it lives, one thread that makes it durable, and the
//! checks at open. Records are of our own layout; openraft sees `store.rs` only.

pub(crate) mod backend;
pub(crate) mod cache;
pub(crate) mod high_water;
pub(crate) mod memory;
pub(crate) mod open;
pub(crate) mod record;
pub(crate) mod sled;
pub(crate) mod store;
pub(crate) mod writer;
