//! What others link to talk to Quorate: the operator client, the worker agent, the cleaner agent.
//! No rule of the state lives here; the coordinator judges, this crate asks, follows and retries.
//! Used by the command line, by the tests, and by programs of their own.

mod admin;
pub mod agent;
mod call;
mod channel;
mod channels;
pub mod cleaner;
pub mod demo;
mod endpoints;
mod error;
mod events;
mod listener;
mod nodes;
mod operator;
mod request_id;
mod route;
mod worker;

pub use channel::TransportOptions;
pub use endpoints::{EndpointError, Endpoints};
pub use error::{Error, ErrorKind, FieldViolation, Refused};
pub use events::{EventWatch, WatchItem, WatchOptions};
pub use listener::Listener;
pub use nodes::{node_named, node_numbered};
pub use operator::{Operator, Options};
pub use proto::v1 as proto;
pub use request_id::RequestId;
pub use tokio_util::sync::CancellationToken;
pub use worker::{Assignment, ReleaseFailure, WatchFailure, Worker};
