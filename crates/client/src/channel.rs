//! Transport settings, and one lazily connected channel per coordinator.
//! Which coordinator to ask is decided in route.rs; retries in call.rs.
//! Called by call.rs, events.rs and the agent.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tonic::transport::{Channel, Endpoint};

use crate::endpoints;
use crate::error::Error;

/// Largest message accepted from a coordinator, in bytes.
pub(crate) const DECODE_BYTES_MAX: usize = 16 << 20;
/// Channels kept at once; more are only met when a group changes its addresses again and again.
const POOLED_MAX: usize = 64;

/// How connections are made and kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransportOptions {
    /// Longest time to wait for a connection.
    pub connect_timeout: Duration,
    /// A connection without traffic is probed this often.
    pub keepalive_interval: Duration,
    /// A probe without answer for this long ends the connection.
    pub keepalive_timeout: Duration,
}

impl Default for TransportOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_millis(500),
            keepalive_interval: Duration::from_secs(2),
            keepalive_timeout: Duration::from_secs(2),
        }
    }
}

/// One channel for each address asked so far.
#[derive(Debug)]
pub(crate) struct ChannelPool {
    options: TransportOptions,
    channels: Mutex<BTreeMap<String, Channel>>,
}

impl ChannelPool {
    pub(crate) fn new(options: TransportOptions) -> Self {
        Self { options, channels: Mutex::default() }
    }

    /// The channel to this address; it connects with its first call, and again after a break.
    pub(crate) fn channel(&self, address: &str) -> Result<Channel, Error> {
        let mut channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(channel) = channels.get(address) {
            return Ok(channel.clone());
        }
        let channel = endpoint(address, &self.options)?.connect_lazy();
        if channels.len() >= POOLED_MAX {
            channels.clear();
        }
        channels.insert(address.to_owned(), channel.clone());
        Ok(channel)
    }
}

fn endpoint(address: &str, options: &TransportOptions) -> Result<Endpoint, Error> {
    endpoints::check(address)?;
    let endpoint = Endpoint::from_shared(format!("http://{address}"))
        .map_err(|error| Error::unreachable(address, error.to_string()))?
        .connect_timeout(options.connect_timeout)
        .tcp_nodelay(true)
        .tcp_keepalive(Some(options.keepalive_interval))
        .http2_keep_alive_interval(options.keepalive_interval)
        .keep_alive_timeout(options.keepalive_timeout)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(4 << 20)
        .initial_connection_window_size(8 << 20);
    Ok(endpoint)
}
