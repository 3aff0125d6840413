//! The only file that makes a gRPC status. Every error carries `google.rpc.ErrorInfo` with a stable
//! reason, bad fields also `BadRequest`, what may be tried again also `RetryInfo` (docs/errors.md).

use std::collections::HashMap;
use std::time::Duration;

use raft::{Member, ProposeError, ReadError};
use state::State;
use state::ids::InvalidText;
use state::outcome::Rejection;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use crate::view::WaitError;

const DOMAIN: &str = "quorate";

/// A status with a reason and what goes with it.
fn with_reason(
    code: Code,
    reason: &str,
    message: impl Into<String>,
    metadata: Vec<(&str, String)>,
) -> Status {
    let metadata: HashMap<String, String> =
        metadata.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    let details = ErrorDetails::with_error_info(reason, DOMAIN, metadata);
    Status::with_error_details(code, message, details)
}

/// Adds that the same call may be tried again after `wait`.
fn retriable(code: Code, reason: &str, message: String, wait: Duration) -> Status {
    let mut details = ErrorDetails::with_error_info(reason, DOMAIN, HashMap::new());
    details.set_retry_info(Some(wait));
    Status::with_error_details(code, message, details)
}

/// A field of the request has no permitted value.
pub fn bad_field(field: &str, value: impl std::fmt::Display, allowed: &str) -> Status {
    let message = format!("{field} = {value}: {allowed}");
    let mut details = ErrorDetails::with_error_info("INVALID_ARGUMENT", DOMAIN, HashMap::new());
    details.add_bad_request_violation(field, format!("{value}: {allowed}"));
    Status::with_error_details(Code::InvalidArgument, message, details)
}

/// A text field is empty, too long or not printable.
pub fn bad_text(field: &str, error: &InvalidText) -> Status {
    let mut details = ErrorDetails::with_error_info("INVALID_ARGUMENT", DOMAIN, HashMap::new());
    details.add_bad_request_violation(field, &error.problem);
    let message = format!("{field} {}", error.problem);
    Status::with_error_details(Code::InvalidArgument, message, details)
}

/// Something named does not exist.
pub fn not_found(reason: &str, message: impl Into<String>) -> Status {
    with_reason(Code::NotFound, reason, message, Vec::new())
}

/// Asked of a member that does not lead (ruling 17).
pub fn not_leader(hint: Option<&Member>) -> Status {
    match hint {
        Some(leader) => with_reason(
            Code::Unavailable,
            "NOT_LEADER",
            format!("the leader is member {} at {}", leader.member, leader.client_address),
            vec![
                ("leader_address", leader.client_address.clone()),
                ("leader_member", leader.member.to_string()),
            ],
        ),
        None => retriable(
            Code::Unavailable,
            "NO_LEADER",
            String::from("no leader is known here; an election may be going on"),
            Duration::from_millis(50),
        ),
    }
}

/// The group has not been bootstrapped, or this member waits to join it. Another member may belong
/// to the group already.
pub fn waiting() -> Status {
    with_reason(
        Code::Unavailable,
        "NOT_BOOTSTRAPPED",
        "this member is not part of a group yet: run `quorate member bootstrap` once",
        Vec::new(),
    )
}

/// Why a member that knows no leader cannot serve.
pub fn no_leader(raft: &raft::Handle) -> Status {
    if raft.place().cluster_id.is_none() { waiting() } else { not_leader(None) }
}

/// A write that was proposed and whose outcome is not known.
pub fn unknown_outcome(message: &str) -> Status {
    retriable(Code::Unavailable, "UNKNOWN_OUTCOME", message.to_owned(), Duration::ZERO)
}

/// This coordinator stops.
pub fn stopping() -> Status {
    retriable(
        Code::Unavailable,
        "STOPPING",
        String::from("this coordinator is stopping; ask another"),
        Duration::ZERO,
    )
}

/// What the Raft crate says of a proposal.
pub fn propose(error: &ProposeError) -> Status {
    match error {
        ProposeError::NotLeader { hint } => not_leader(hint.as_ref()),
        ProposeError::Unknown => {
            unknown_outcome("proposed, but not known to be committed; a retry is safe")
        }
        ProposeError::Overloaded => retriable(
            Code::ResourceExhausted,
            "OVERLOADED",
            format!("more than {} writes are waiting", crate::limits::SUBMISSIONS_MAX),
            Duration::from_millis(100),
        ),
        ProposeError::DiskLow => with_reason(
            Code::ResourceExhausted,
            "DISK_LOW",
            "the data directory of the leader is nearly full; free space there",
            Vec::new(),
        ),
        ProposeError::TooLarge { bytes, limit } => bad_field(
            "the request",
            format!("{bytes} bytes"),
            &format!("at most {limit} bytes fit in one log entry"),
        ),
        ProposeError::Stopped => stopping(),
    }
}

/// What the Raft crate says of a read.
pub fn read(error: &ReadError) -> Status {
    match error {
        ReadError::NoLeader => not_leader(None),
        ReadError::Timeout => retriable(
            Code::Unavailable,
            "NO_QUORUM",
            String::from("a quorum did not confirm the read in time; a stale read may be served"),
            Duration::from_millis(100),
        ),
        ReadError::Stopped => stopping(),
    }
}

/// What waiting for a view came to.
pub fn wait(error: &WaitError, what: &str) -> Status {
    match error {
        WaitError::Timeout(after) => retriable(
            Code::Unavailable,
            "NOT_REACHED",
            format!("{what} was not applied here within {after:?}"),
            Duration::from_millis(100),
        ),
        WaitError::Stopped => stopping(),
    }
}

fn code(rejection: &Rejection) -> Code {
    match rejection {
        Rejection::StaleTerm { .. }
        | Rejection::FutureBasis { .. }
        | Rejection::Stale { .. }
        | Rejection::TermChanged { .. } => Code::Aborted,
        Rejection::UnknownChannel { .. }
        | Rejection::UnknownName { .. }
        | Rejection::UnknownCleaner { .. }
        | Rejection::Dropped { .. } => Code::NotFound,
        Rejection::Conflict { .. } => Code::AlreadyExists,
        Rejection::Limit { .. } => Code::ResourceExhausted,
        Rejection::Invalid { .. } | Rejection::RequestTooOld { .. } => Code::InvalidArgument,
        _ => Code::FailedPrecondition,
    }
}

/// A command that was refused by the state, with the facts that refused it.
pub fn rejection(rejection: &Rejection) -> Status {
    refused(rejection, Vec::new())
}

/// The same; a present owner is told with the name and address that this state knows.
pub fn rejection_in(state: &State, rejection: &Rejection) -> Status {
    let mut metadata = Vec::new();
    if let Rejection::NotOwner { owner: Some(owner), .. } = rejection
        && let Some(node) = state.node(owner.node)
    {
        metadata.push(("owner_name", node.registration.name.to_string()));
        metadata.push(("owner_address", node.registration.address.to_string()));
    }
    refused(rejection, metadata)
}

fn refused(rejection: &Rejection, mut metadata: Vec<(&str, String)>) -> Status {
    match rejection {
        Rejection::NotOwner { owner, term, .. } => {
            if let Some(owner) = owner {
                metadata.push(("owner_node", owner.node.0.to_string()));
                metadata.push(("owner_epoch", owner.epoch.0.to_string()));
            }
            metadata.push(("term", term.0.to_string()));
        }
        Rejection::Conflict { channel, field } => {
            metadata.push(("channel", channel.to_string()));
            metadata.push(("field", (*field).to_owned()));
        }
        Rejection::ChannelDropping { channel } => {
            metadata.push(("channel", channel.to_string()));
        }
        Rejection::Dropped { last_term, .. } => metadata.push(("term", last_term.0.to_string())),
        Rejection::TermChanged { current, .. } => metadata.push(("term", current.0.to_string())),
        Rejection::LevelTooLow { needed, present, .. } => {
            metadata.push(("needed_level", needed.to_string()));
            metadata.push(("level", present.to_string()));
        }
        Rejection::Invalid { field, value, allowed } => return bad_field(field, value, allowed),
        Rejection::Limit { what, value, max } => {
            metadata.push(("limit", (*what).to_owned()));
            metadata.push(("value", value.to_string()));
            metadata.push(("max", max.to_string()));
        }
        _ => {}
    }
    with_reason(code(rejection), rejection.reason(), rejection.to_string(), metadata)
}

/// A caller that is not the session it says it is.
pub fn stale_session(message: &str) -> Status {
    with_reason(Code::FailedPrecondition, "STALE_NODE", message, Vec::new())
}

/// A worker that does not understand the group's protocol.
pub fn worker_too_old(needed: u32, present: u32) -> Status {
    let metadata = vec![("needed_level", needed.to_string()), ("level", present.to_string())];
    let message = format!(
        "workers of this group need level {needed} of the protocol; this one is at {present}"
    );
    with_reason(Code::FailedPrecondition, "LEVEL_TOO_LOW", message, metadata)
}

/// An operator action on the group that is not possible now.
pub fn precondition(reason: &str, message: impl Into<String>) -> Status {
    with_reason(Code::FailedPrecondition, reason, message, Vec::new())
}

/// Something failed inside this coordinator.
pub fn internal(message: impl Into<String>) -> Status {
    with_reason(Code::Internal, "INTERNAL", message, Vec::new())
}
