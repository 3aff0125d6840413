//! All integration tests, in one binary: one link, one list.

mod sim;
