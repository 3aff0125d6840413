//! Small texts that several commands show alike: times, hex, names of enum values.

use client::proto::{ChannelPhase, MemberState, NodeStatus, Role};
use jiff::Timestamp;

/// Milliseconds since 1970 as RFC 3339; empty for 0.
pub(crate) fn time(ms: u64) -> String {
    if ms == 0 {
        return String::new();
    }
    let timestamp = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    timestamp.map_or_else(|| format!("{ms} ms"), |timestamp| format!("{timestamp:.3}"))
}

/// Bytes as lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A number for a table cell; empty for 0.
pub(crate) fn number(value: u64) -> String {
    if value == 0 { String::new() } else { value.to_string() }
}

/// A count of bytes for people.
pub(crate) fn bytes(count: u64) -> String {
    indicatif::BinaryBytes(count).to_string()
}

/// The phase in the words of the API.
pub(crate) fn phase(value: i32) -> &'static str {
    match ChannelPhase::try_from(value) {
        Ok(ChannelPhase::Buffered) => "buffered",
        Ok(ChannelPhase::ToWatch) => "to_watch",
        Ok(ChannelPhase::Watched) => "watched",
        Ok(ChannelPhase::ToRelease) => "to_release",
        Ok(ChannelPhase::Unspecified) | Err(_) => "unknown",
    }
}

/// The status of a node in the words of the API.
pub(crate) fn node_status(value: i32) -> &'static str {
    match NodeStatus::try_from(value) {
        Ok(NodeStatus::Up) => "up",
        Ok(NodeStatus::Stopping) => "stopping",
        Ok(NodeStatus::Down) => "down",
        Ok(NodeStatus::Unspecified) | Err(_) => "unknown",
    }
}

/// The role of a node in the words of the API.
pub(crate) fn role(value: i32) -> &'static str {
    match Role::try_from(value) {
        Ok(Role::Data) => "data",
        Ok(Role::Query) => "query",
        Ok(Role::Unspecified) | Err(_) => "unknown",
    }
}

/// The state of a member in the words of the API.
pub(crate) fn member_state(value: i32) -> &'static str {
    match MemberState::try_from(value) {
        Ok(MemberState::Leader) => "leader",
        Ok(MemberState::Follower) => "follower",
        Ok(MemberState::Candidate) => "candidate",
        Ok(MemberState::Learner) => "learner",
        Ok(MemberState::Waiting) => "waiting",
        Ok(MemberState::Suspect) => "suspect",
        Ok(MemberState::Unspecified) | Err(_) => "unknown",
    }
}
