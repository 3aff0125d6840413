//! Request ids: what makes a retry of a write count once.
//! Which writes are stored by their id is the coordinator's rule, not ours.
//! Called by call.rs for every write, and by callers that retry over restarts of their own.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;

use crate::error::Error;

/// Sixteen random bytes and the time of the first attempt; both stay equal over retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestId {
    id: [u8; 16],
    issued_ms: u64,
}

impl RequestId {
    /// A new id, issued now by this machine's wall clock.
    pub fn fresh() -> Result<Self, Error> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let issued_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        Ok(Self { id: random16()?, issued_ms })
    }

    /// The sixteen bytes.
    pub fn bytes(&self) -> Bytes {
        Bytes::copy_from_slice(&self.id)
    }

    /// When the request was made, in milliseconds of wall time.
    pub fn issued_ms(&self) -> u64 {
        self.issued_ms
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Sixteen bytes from the system's source of randomness.
pub(crate) fn random16() -> Result<[u8; 16], Error> {
    let mut id = [0_u8; 16];
    getrandom::fill(&mut id).map_err(|error| Error::Randomness(error.to_string()))?;
    Ok(id)
}
