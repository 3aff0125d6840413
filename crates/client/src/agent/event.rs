//! What an agent tells its observer: one value per thing that happened, one line of text each.
//! Nothing is decided from these.
//! Read by the command line's output, the drills and the tests.

use std::fmt;

use crate::listener::Listener;

/// Why a session ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FenceCause {
    /// No renewal was acknowledged in time, or this process was stopped for too long.
    Silence,
    /// The coordinator said that the session is over.
    Told(String),
}

/// Something that happened to a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentEvent {
    /// A new session began.
    Registered {
        /// Id of this session.
        node_id: u64,
        /// Epoch of this session.
        node_epoch: u64,
        /// Coordinator that leads.
        coordinator: String,
        /// Its Raft term.
        leader_term: u64,
    },
    /// The session goes on over a new stream.
    Reconnected {
        /// Coordinator that leads.
        coordinator: String,
        /// Its Raft term.
        leader_term: u64,
    },
    /// The stream broke; the session may live on.
    Disconnected {
        /// Coordinator it led to.
        coordinator: String,
        /// What happened.
        error: String,
    },
    /// A watch was begun.
    Starting {
        /// Name of the channel.
        channel: String,
        /// Term of the channel.
        term: u64,
    },
    /// The channel is being consumed.
    Watching {
        /// Name of the channel.
        channel: String,
        /// Term of the channel.
        term: u64,
    },
    /// A watch failed, or a consumer died.
    WatchFailed {
        /// Name of the channel.
        channel: String,
        /// Term of the channel.
        term: u64,
        /// Why.
        reason: String,
    },
    /// The channel was given up as asked.
    Released {
        /// Name of the channel.
        channel: String,
        /// Term of the channel.
        term: u64,
    },
    /// The channel was stopped because it is not desired under this term any more.
    Stopped {
        /// Name of the channel.
        channel: String,
        /// Term of the channel.
        term: u64,
    },
    /// A channel could not be ended.
    StopFailed {
        /// Name of the channel.
        channel: String,
        /// Term of the channel.
        term: u64,
        /// Why.
        reason: String,
    },
    /// An acknowledgement is in the log, or is of the past.
    AckSettled {
        /// Name of the channel.
        channel: String,
        /// Term of the channel.
        term: u64,
        /// True: recorded. False: stale.
        recorded: bool,
    },
    /// A directive of a lower term was refused (fence F9).
    LowerTermRefused {
        /// Name of the channel.
        channel: String,
        /// Term of the directive.
        term: u64,
        /// Highest term seen.
        highest: u64,
    },
    /// A message of a deposed leader was dropped (fence F10).
    DeposedLeaderRefused {
        /// Coordinator that sent it.
        coordinator: String,
        /// Its Raft term.
        leader_term: u64,
        /// Highest term seen.
        highest: u64,
    },
    /// The session is over: everything was stopped, a new session follows.
    Fenced {
        /// Id of the session that is over.
        node_id: u64,
        /// Epoch of the session that is over.
        node_epoch: u64,
        /// Why.
        cause: FenceCause,
        /// Channels of which something ran.
        stopped: usize,
    },
    /// A graceful stop began: everything is to be moved elsewhere.
    Draining,
    /// The worker left. `drained`: nothing was left to it.
    Left {
        /// Whether everything was moved elsewhere in time.
        drained: bool,
    },
}

impl fmt::Display for FenceCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silence => f.write_str("no renewal was acknowledged in time"),
            Self::Told(reason) => write!(f, "told by the coordinator: {reason}"),
        }
    }
}

impl fmt::Display for AgentEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Registered { node_id, node_epoch, coordinator, leader_term } => write!(
                f,
                "registered n{node_id} epoch {node_epoch} at {coordinator} leader term \
                 {leader_term}"
            ),
            Self::Reconnected { coordinator, leader_term } => {
                write!(f, "reconnected to {coordinator} leader term {leader_term}")
            }
            Self::Disconnected { coordinator, error } => {
                write!(f, "disconnected from {coordinator}: {error}")
            }
            Self::Starting { channel, term } => write!(f, "starting {channel} t{term}"),
            Self::Watching { channel, term } => write!(f, "watching {channel} t{term}"),
            Self::WatchFailed { channel, term, reason } => {
                write!(f, "watch failed {channel} t{term}: {reason}")
            }
            Self::Released { channel, term } => write!(f, "released {channel} t{term}"),
            Self::Stopped { channel, term } => write!(f, "stopped {channel} t{term}"),
            Self::StopFailed { channel, term, reason } => {
                write!(f, "cannot stop {channel} t{term}: {reason}")
            }
            Self::AckSettled { channel, term, recorded } => {
                let verdict = if *recorded { "recorded" } else { "stale" };
                write!(f, "{verdict} {channel} t{term}")
            }
            Self::LowerTermRefused { channel, term, highest } => {
                write!(f, "refused {channel} t{term}: t{highest} was seen")
            }
            Self::DeposedLeaderRefused { coordinator, leader_term, highest } => {
                write!(f, "refused leader term {leader_term} of {coordinator}: {highest} was seen")
            }
            Self::Fenced { node_id, node_epoch, cause, stopped } => {
                write!(f, "fenced n{node_id} epoch {node_epoch}, {stopped} stopped: {cause}")
            }
            Self::Draining => f.write_str("draining"),
            Self::Left { drained: true } => f.write_str("left, drained"),
            Self::Left { drained: false } => f.write_str("left before it was drained"),
        }
    }
}

/// Told what happens to a worker.
pub type Observer = Listener<AgentEvent>;
