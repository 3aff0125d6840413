//! One Quorate coordinator: configuration, composition, gRPC and HTTP surface, leader duties.
//! Knows neither the command line nor the terminal. Started by `cli` and by the tests.

use std::fs;

use tracing::error;

pub mod api;
pub mod clock;
pub mod config;
mod error;
mod health;
pub mod history;
pub mod history_files;
mod http;
pub mod leader;
pub mod limits;
mod machine;
mod node;
pub mod offline;
pub mod proposer;
mod records;
pub mod shutdown;
mod telemetry;
#[cfg(test)]
mod tests;
pub mod view;

pub use error::Error;
pub use health::{READ_SERVICE, WRITE_SERVICE};
pub use node::{Bound, Coordinator};

use config::Config;

/// Runs one coordinator until `shutdown` resolves, then stops it in order.
///
/// # Errors
/// When it cannot start, or had to stop by itself ([`Error::Fault`]).
pub async fn run(config: &Config, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
    let coordinator = Coordinator::start(config).await?;
    if let Some(path) = &config.port_file {
        write_ports(path, coordinator.bound())
            .map_err(|source| Error::Io { path: path.clone(), source })?;
    }
    let mut fault = coordinator.fault();
    tokio::select! {
        () = shutdown => {
            coordinator.stop().await;
            Ok(())
        }
        fault = broken(&mut fault) => {
            error!(%fault, "this coordinator stops");
            coordinator.stop().await;
            Err(Error::Fault(fault))
        }
    }
}

/// Resolves when the member has a fault; never when it stops in order.
async fn broken(fault: &mut tokio::sync::watch::Receiver<Option<raft::Fault>>) -> raft::Fault {
    if let Ok(found) = fault.wait_for(Option::is_some).await
        && let Some(fault) = found.clone()
    {
        return fault;
    }
    std::future::pending().await
}

/// Written whole or not at all: who waits for the file must not read half of it.
fn write_ports(path: &std::path::Path, bound: Bound) -> std::io::Result<()> {
    let text = format!(
        "{{\"client\":\"{}\",\"peer\":\"{}\",\"http\":\"{}\"}}\n",
        bound.client, bound.peer, bound.http
    );
    let unfinished = path.with_extension("unfinished");
    fs::write(&unfinished, text)?;
    fs::rename(&unfinished, path)
}
