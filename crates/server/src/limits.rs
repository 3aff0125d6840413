//! Every bound of the server in one place; relations between them are asserted at compile time.

use std::time::Duration;

/// Largest message a client may send, in bytes.
pub const CLIENT_MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Commands in one log entry.
pub const BATCH_COMMANDS_MAX: usize = 4_096;
/// Encoded bytes of one log entry at which no further command is added. One command may be larger.
pub const BATCH_BYTES_MAX: usize = 1024 * 1024;
/// Log entries proposed and not yet answered.
pub const ENTRIES_IN_FLIGHT_MAX: usize = 8;
/// Submissions waiting for a place in an entry.
pub const SUBMISSIONS_MAX: usize = 16_384;
/// Longest time a write may wait for its outcome.
pub const WRITE_WAIT_MAX: Duration = Duration::from_secs(10);
/// Longest time a read may wait for its index or revision.
pub const READ_WAIT_MAX: Duration = Duration::from_secs(10);
/// Longest time a request waits for a leader that is being established here.
pub const ESTABLISH_WAIT_MAX: Duration = Duration::from_secs(2);
/// Event records kept in memory.
pub const HISTORY_RECORDS_MAX: usize = 32_768;
/// Size at which an event file is closed and the next one begun, in bytes.
pub const HISTORY_FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Event files kept.
pub const HISTORY_FILES_MAX: usize = 8;
/// Rows in one page of a list.
pub const PAGE_ROWS_MAX: usize = 1_000;
/// Rows in one page when the caller names none.
pub const PAGE_ROWS_DEFAULT: usize = 200;
/// Directives in one message.
pub const DIRECTIVES_CHUNK_MAX: usize = 1_000;
/// Lowest level of the workers' protocol that the group still speaks.
pub const WORKER_LEVEL_MIN: u32 = 1;
/// Clean-ups in one message.
pub const CLEANUPS_CHUNK_MAX: usize = 500;
/// Clean-ups shown in the list of cleaners.
pub const CLEANUPS_SHOWN_MAX: usize = 200;
/// Acknowledgements in one report.
pub const REPORT_ACKS_MAX: usize = 10_000;
/// Deadlines, effects or expiries proposed in one entry.
pub const DUTIES_BATCH_MAX: usize = 1_000;
/// An idle watch hears from us this often.
pub const WATCH_IDLE: Duration = Duration::from_secs(5);
/// Unread bytes of one stream.
pub const STREAM_WINDOW_BYTES: u32 = 1024 * 1024;
/// Unread bytes of one connection. The HTTP/2 library ends a connection whose unread small frames
/// exceed a share of this, and a hundred sessions may share one connection.
pub const CONNECTION_WINDOW_BYTES: u32 = 16 * 1024 * 1024;
/// Streams of one client connection.
pub const STREAMS_MAX: u32 = 16_384;
/// Moves in one decision.
pub const DECISION_MOVES_MAX: usize = 1_000;
/// Replay and hot path share the longest election timeout this server configures by default.
pub const ELECTION_TIMEOUT_MS_MAX: u64 = 800;

const _: () = assert!(DECISION_MOVES_MAX <= state::limits::MOVES_MAX);
const _: () = assert!(REPORT_ACKS_MAX * 64 <= CLIENT_MESSAGE_BYTES_MAX);
const _: () = assert!(BATCH_BYTES_MAX + state::limits::POSITIONS_BYTES_MAX < 64 * 1024 * 1024);
const _: () = assert!(2_000 + 1_000 > ELECTION_TIMEOUT_MS_MAX);
