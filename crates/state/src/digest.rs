//! Witness (running hash of what was decided) and digest (hash of the records as they are).
//! The digest is incremental: per record one 128-bit hash, summed mod 2^128 (ruling 9).
//! `state::tables` keeps the sum; `apply` extends the witness; `snapshot` recomputes.

use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::codec;
use crate::epoch::{Revision, Timestamp};
use crate::event::Event;

macro_rules! hash {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub struct $name(pub [u8; 16]);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
    };
}

hash!(
    /// Running hash over revision, log time and events of every accepted command.
    Witness
);
hash!(
    /// Hash of all records and scalars of a state.
    Digest
);

impl Witness {
    /// The witness after one more accepted command.
    pub(crate) fn next(self, revision: Revision, now: Timestamp, events: &[Event]) -> Self {
        let mut bytes = Vec::with_capacity(256);
        bytes.extend_from_slice(&self.0);
        codec::append(&mut bytes, &(revision, now, events));
        Self(hash128(&bytes))
    }
}

/// Which table a record is in; part of its hash, so that equal bytes in two tables differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Table {
    Scalars,
    Nodes,
    Frozen,
    Channels,
    Drops,
    Requests,
    Choices,
    Cleaners,
    Marks,
}

impl Table {
    const fn tag(self) -> u8 {
        match self {
            Self::Scalars => 0,
            Self::Nodes => 1,
            Self::Frozen => 2,
            Self::Channels => 3,
            Self::Drops => 4,
            Self::Requests => 5,
            Self::Choices => 6,
            Self::Cleaners => 7,
            Self::Marks => 8,
        }
    }
}

/// Sum of record hashes; order of records does not matter, each counts once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sum(u128);

impl Sum {
    pub(crate) fn add<T: Serialize>(&mut self, table: Table, record: &T) {
        self.0 = self.0.wrapping_add(hash_record(table, record));
    }

    pub(crate) fn take<T: Serialize>(&mut self, table: Table, record: &T) {
        self.0 = self.0.wrapping_sub(hash_record(table, record));
    }

    /// The digest of the records summed up so far with these scalars.
    pub(crate) fn with_scalars<T: Serialize>(mut self, scalars: &T) -> Digest {
        self.add(Table::Scalars, scalars);
        Digest(self.0.to_le_bytes())
    }
}

fn hash_record<T: Serialize>(table: Table, record: &T) -> u128 {
    let mut bytes = Vec::with_capacity(256);
    bytes.push(table.tag());
    codec::append(&mut bytes, record);
    u128::from_le_bytes(hash128(&bytes))
}

/// The first 16 bytes of blake3.
pub(crate) fn hash128(bytes: &[u8]) -> [u8; 16] {
    let mut out = [0; 16];
    blake3::Hasher::new().update(bytes).finalize_xof().fill(&mut out);
    out
}
