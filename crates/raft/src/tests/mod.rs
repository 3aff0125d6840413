//! Tests of the crate: storage, crashes and damage below, whole groups in one process above.

mod cluster;
mod counter;
mod group;
mod storage;
