//! Tests of the crate: storage, crashes and damage below, whole groups in one process above.

mod cluster;
mod counter;
mod crash;
mod damage;
mod diverge;
mod garbage;
mod group;
mod noise;
mod restart;
mod startup;
mod storage;
