//! Outcomes: what a command led to. Expected results are values, never panics (ruling 2).

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::channel::PhaseKind;
use crate::decision::Move;
use crate::epoch::{ChannelTerm, Op, Revision, Term, Timestamp};
use crate::event::EventRecord;
use crate::ids::{ChannelName, NodeName};
use crate::node::NodeRef;

/// What a command led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// At least one event; the revision rose by one.
    Accepted(Receipt),
    /// Already so: no event, the revision stays.
    NoChange(Facts),
    /// Not possible: no event, nothing changed but the clock.
    Rejected(Rejection),
}

/// What an accepted command did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The events with their revision and cause.
    pub record: Arc<EventRecord>,
    /// Moves of a Place that were not taken.
    pub refused: Vec<RefusedMove>,
}

/// The present facts, for a caller whose command changed nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Facts {
    /// Nothing to say beside "already so".
    Already,
    /// The session that this registration already has.
    Session(NodeRef),
    /// The outcome of this request was recorded at this revision.
    Repeated(Revision),
    /// Every move of a Place was refused.
    AllRefused(Vec<RefusedMove>),
}

/// One move of a decision that was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedMove {
    /// The move.
    pub chosen: Move,
    /// Why.
    pub refusal: Refusal,
}

/// Why a move was not taken (fences F3 to F6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// F3: term, phase or owner of the channel are not those the move was computed from.
    AssignmentChanged,
    /// F4: the target is unknown, of another session, down, stopping, frozen or of another role.
    NodeChanged,
    /// F5: no such channel.
    Gone,
    /// F6: a limit would be exceeded by this move after the earlier ones of the batch.
    Capacity,
    /// F6: the target cools down for this channel.
    CoolingDown,
    /// The channel is being dropped.
    Dropping,
    /// The decision asked for all or none, and another move was refused.
    Atomic,
}

/// Why a command has no effect. Deterministic, part of the outcome.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// F1: of a leader that no longer leads.
    #[error("the command carries leader term {named}; the group is at term {current}")]
    StaleTerm {
        /// What it carries.
        named: Term,
        /// What holds.
        current: Term,
    },
    /// F2: computed from a state that is not in this history.
    #[error("the decision was computed from revision {named}; the state is at {current}")]
    FutureBasis {
        /// What it carries.
        named: Revision,
        /// What holds.
        current: Revision,
    },
    /// F7: no such session; it ended or was replaced.
    #[error("node {node} has no such session")]
    StaleNode {
        /// What was named.
        node: NodeRef,
    },
    /// F8: the acknowledgement or timeout names what is not in force.
    #[error("{channel} {term} {op} is not in force for this node")]
    Stale {
        /// Channel named.
        channel: ChannelName,
        /// Term named.
        term: ChannelTerm,
        /// Directive named.
        op: Op,
    },
    /// No channel of this name.
    #[error("channel {channel} is unknown")]
    UnknownChannel {
        /// Name given.
        channel: ChannelName,
    },
    /// No worker of this name is registered or frozen.
    #[error("worker {name} is unknown")]
    UnknownName {
        /// Name given.
        name: NodeName,
    },
    /// The channel was removed.
    #[error("channel {channel} was dropped under term {last_term}")]
    Dropped {
        /// Name given.
        channel: ChannelName,
        /// Its last term.
        last_term: ChannelTerm,
    },
    /// A channel of this name with other content is known, or named earlier in the same command.
    #[error("channel {channel} is known with another {field}")]
    Conflict {
        /// Name given.
        channel: ChannelName,
        /// The first field that differs.
        field: &'static str,
    },
    /// The channel is being dropped.
    #[error("channel {channel} is being dropped")]
    ChannelDropping {
        /// Name given.
        channel: ChannelName,
    },
    /// The caller does not own the channel under the term it names.
    #[error("the caller does not own {channel}: its owner is {}, {term}", show_owner(.owner))]
    NotOwner {
        /// Name given.
        channel: ChannelName,
        /// Present owner.
        owner: Option<NodeRef>,
        /// Present term.
        term: ChannelTerm,
    },
    /// The channel has no owner to take it from.
    #[error("channel {channel} has no owner: it is {phase}")]
    NotOwned {
        /// Name given.
        channel: ChannelName,
        /// Its phase.
        phase: PhaseKind,
    },
    /// The channel has another term than the caller means.
    #[error("channel {channel} is at {current}, not at {named}")]
    TermChanged {
        /// Name given.
        channel: ChannelName,
        /// What it named.
        named: ChannelTerm,
        /// What holds.
        current: ChannelTerm,
    },
    /// Too early: the deadline has not passed, or the session was not silent for long enough.
    #[error("not due before {due}; log time is {now}")]
    NotDue {
        /// When it will be due.
        due: Timestamp,
        /// Log time.
        now: Timestamp,
    },
    /// Not silent for long enough.
    #[error("node {node} was silent for {silent_ms} ms; it expires at {needed_ms} ms")]
    NotSilent {
        /// Which session.
        node: NodeRef,
        /// Accounted.
        silent_ms: u64,
        /// Ttl and grace.
        needed_ms: u64,
    },
    /// No such former owner is waiting for clean-up.
    #[error("{node} {term} is not a former owner of {channel}")]
    NotFormerOwner {
        /// Name given.
        channel: ChannelName,
        /// Node named.
        node: NodeRef,
        /// Term named.
        term: ChannelTerm,
    },
    /// A bound of `limits` would be exceeded.
    #[error("{what}: {value} exceeds {max}")]
    Limit {
        /// What is bounded.
        what: &'static str,
        /// What was asked for.
        value: u64,
        /// What is allowed.
        max: u64,
    },
    /// A field has no permitted value.
    #[error("{field} = {value:?}: {allowed}")]
    Invalid {
        /// Which field.
        field: String,
        /// What was given.
        value: String,
        /// What is allowed.
        allowed: String,
    },
    /// The level is not above the present one, or not known to this binary.
    #[error("level {named} is refused: {allowed}")]
    Level {
        /// What was asked for.
        named: u32,
        /// What is allowed.
        allowed: String,
    },
    /// The group has not agreed to understand this yet.
    #[error("{what} needs level {needed}; the group is at {present}")]
    LevelTooLow {
        /// What was asked for.
        what: &'static str,
        /// From which level on it is understood.
        needed: u32,
        /// The level of the group.
        present: u32,
    },
    /// No cleaner of this name is registered.
    #[error("cleaner {name} is unknown")]
    UnknownCleaner {
        /// Name given.
        name: NodeName,
    },
    /// The request id is older than [`crate::limits::REQUEST_AGE_MS_MAX`].
    #[error("the request of {issued} is too old to be told from a new one; log time is {now}")]
    RequestTooOld {
        /// When it was made.
        issued: Timestamp,
        /// Log time.
        now: Timestamp,
    },
}

impl Rejection {
    pub(crate) fn too_many(what: &'static str, value: usize, max: usize) -> Self {
        let number = |value| u64::try_from(value).unwrap_or(u64::MAX);
        Self::Limit { what, value: number(value), max: number(max) }
    }

    /// The name of this reason for programs.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::StaleTerm { .. } => "STALE_TERM",
            Self::FutureBasis { .. } => "FUTURE_BASIS",
            Self::StaleNode { .. } => "STALE_NODE",
            Self::Stale { .. } => "STALE",
            Self::UnknownChannel { .. } => "UNKNOWN_CHANNEL",
            Self::UnknownName { .. } => "UNKNOWN_NAME",
            Self::Dropped { .. } => "DROPPED",
            Self::Conflict { .. } => "CONFLICT",
            Self::ChannelDropping { .. } => "CHANNEL_DROPPING",
            Self::NotOwner { .. } => "NOT_OWNER",
            Self::NotOwned { .. } => "NOT_OWNED",
            Self::TermChanged { .. } => "TERM_CHANGED",
            Self::NotDue { .. } => "NOT_DUE",
            Self::NotSilent { .. } => "NOT_SILENT",
            Self::NotFormerOwner { .. } => "NOT_FORMER_OWNER",
            Self::Limit { .. } => "LIMIT",
            Self::Invalid { .. } => "INVALID",
            Self::Level { .. } => "LEVEL",
            Self::LevelTooLow { .. } => "LEVEL_TOO_LOW",
            Self::UnknownCleaner { .. } => "UNKNOWN_CLEANER",
            Self::RequestTooOld { .. } => "REQUEST_TOO_OLD",
        }
    }
}

impl Refusal {
    /// The name of this reason for programs.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::AssignmentChanged => "ASSIGNMENT_CHANGED",
            Self::NodeChanged => "NODE_CHANGED",
            Self::Gone => "GONE",
            Self::Capacity => "CAPACITY",
            Self::CoolingDown => "COOLING_DOWN",
            Self::Dropping => "DROPPING",
            Self::Atomic => "ATOMIC",
        }
    }
}

/// Refuses what exceeds a bound.
pub(crate) const fn limit(what: &'static str, value: u64, max: u64) -> Result<(), Rejection> {
    if value > max { Err(Rejection::Limit { what, value, max }) } else { Ok(()) }
}

/// The same for a number of things.
pub(crate) fn limit_len(what: &'static str, value: usize, max: usize) -> Result<(), Rejection> {
    if value > max { Err(Rejection::too_many(what, value, max)) } else { Ok(()) }
}

fn show_owner(owner: &Option<NodeRef>) -> String {
    owner.map_or_else(|| String::from("none"), |owner| alloc::format!("{owner}"))
}
