//! Who belongs to a group: members, their addresses, and the identity of the group.
//! No membership change happens here; see `bootstrap.rs` and `handle.rs`.

use std::fmt;

/// One member of a group and where it is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    /// Number of the member, unique in the group and never used again.
    pub member: u64,
    /// `host:port` for the other members.
    pub peer_address: String,
    /// `host:port` for clients.
    pub client_address: String,
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.member, self.peer_address)
    }
}

/// Identity of a group: 16 random bytes in hex, made once by the bootstrap.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClusterId(String);

impl ClusterId {
    /// Reads 32 lower case hex digits.
    pub fn parse(text: &str) -> Option<Self> {
        let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        (text.len() == 32 && text.bytes().all(hex)).then(|| Self(text.to_owned()))
    }

    /// The hex digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0_u8; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self(hex(&bytes)))
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Lower case hex digits of some bytes.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
