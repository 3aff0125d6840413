//! One Quorate coordinator: configuration, composition, gRPC and HTTP surface, leader duties.
//! Knows neither the command line nor the terminal. Started by `cli` and by the tests.

pub mod config;
