//! Every bound of the state, in one place. Apply refuses what exceeds one with `Rejection::Limit`.

/// Longest channel name, in bytes.
pub const CHANNEL_NAME_BYTES_MAX: usize = 256;
/// Longest worker name, in bytes.
pub const NODE_NAME_BYTES_MAX: usize = 128;
/// Longest worker address, in bytes.
pub const ADDRESS_BYTES_MAX: usize = 256;
/// Longest incarnation, in bytes.
pub const INCARNATION_BYTES_MAX: usize = 64;
/// Longest free text, in bytes.
pub const TEXT_BYTES_MAX: usize = 256;
/// Longest positions of a channel, in bytes.
pub const POSITIONS_BYTES_MAX: usize = 65_536;
/// Labels of one node.
pub const LABELS_MAX: usize = 64;
/// Former owners of one channel that wait for clean-up; a channel with as many gets no owner.
pub const FORMER_OWNERS_MAX: usize = 64;
/// Nodes known at a time, Down ones included.
pub const NODES_MAX: usize = 20_000;
/// Channels known at a time, and removed ones that wait for clean-up.
pub const CHANNELS_MAX: usize = 1_000_000;
/// Channels in one WatchChannels.
pub const WATCH_CHANNELS_MAX: usize = 10_000;
/// Moves in one Place.
pub const MOVES_MAX: usize = 10_000;
/// Sessions in one SessionsObserved.
pub const OBSERVED_MAX: usize = 20_000;
/// Removed channels remembered, beside those that still have former owners.
pub const DROPS_MAX: usize = 4_096;
/// Outcomes of requests remembered.
pub const REQUESTS_MAX: usize = 65_536;
/// How long the outcome of a request is remembered, in milliseconds of log time.
pub const REQUEST_AGE_MS_MAX: u64 = 600_000;
/// Worker names that may be frozen at a time.
pub const FROZEN_MAX: usize = 20_000;
/// Cleaners registered at a time.
pub const CLEANERS_MAX: usize = 16;

/// Settings in one SetPolicy.
pub const SETTINGS_MAX: usize = 64;
/// Encoded batch of one log entry, in bytes; a proposer must stay below it.
pub const BATCH_BYTES_MAX: usize = 16 * MIB;
/// Encoded event record, in bytes: a batch's channels once more, with their events.
pub const RECORD_BYTES_MAX: usize = 64 * MIB;
/// Encoded section of a snapshot, in bytes.
pub const SECTION_BYTES_MAX: usize = 16 * MIB;
/// A section is closed once it has this many bytes.
pub const SECTION_BYTES_AIM: usize = MIB;
/// Longest election timeout of the group, in milliseconds (ruling 8).
pub const ELECTION_TIMEOUT_MS_MAX: u64 = 800;

const MIB: usize = 1024 * 1024;

const _: () = assert!(WATCH_CHANNELS_MAX <= CHANNELS_MAX);
const _: () = assert!(NODES_MAX <= OBSERVED_MAX);
