//! Free ports on loopback for processes that must keep theirs over restarts.

use std::net::TcpListener;

use crate::exit::Failure;

/// Below the range from which systems take ports for outgoing connections: while a member is down,
/// no such connection may take its place.
const FIRST: u16 = 17_000;
const COUNT: u16 = 14_000;

/// That many ports that nobody listens on now. Begins at a random one, so that groups started at
/// the same time rarely meet.
pub(super) fn free(count: usize) -> Result<Vec<u16>, Failure> {
    let random = getrandom::u32()
        .map_err(|error| Failure::failed(format!("no random numbers from the system: {error}")))?;
    let start = u16::try_from(random % u32::from(COUNT)).unwrap_or(0);
    let candidates = (0..COUNT).map(|step| FIRST + (start + step) % COUNT);
    let free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let ports: Vec<u16> = candidates.filter(free).take(count).collect();
    if ports.len() < count {
        return Err(Failure::failed(format!("fewer than {count} free ports on 127.0.0.1")));
    }
    Ok(ports)
}
