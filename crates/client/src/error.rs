//! What can go wrong for a caller, decoded from `google.rpc.Status` details.
//! Whether and where to try again follows from it (`next_step`); call.rs does the trying.
//! Seen by every caller of this crate.

use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use tonic::{Code, ConnectError, Status};
use tonic_types::StatusExt;

use crate::endpoints::{self, EndpointError};

/// A failed call.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// A coordinator answered with an error.
    #[error("{0}")]
    Refused(Box<Refused>),
    /// No answer came from this coordinator.
    #[error("{address}: {detail}")]
    Unreachable {
        /// Whom we asked.
        address: String,
        /// What happened, in words.
        detail: String,
        /// Whether the request may have reached it and may still take effect.
        sent: bool,
    },
    /// No usable answer within the deadline.
    #[error("no answer within {} ms{}", .after.as_millis(), show_last(.last.as_deref()))]
    Deadline {
        /// The deadline given.
        after: Duration,
        /// What the last attempt met.
        last: Option<Box<Error>>,
    },
    /// An address cannot be used.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The worker's session is not certain to be alive, so nothing was sent.
    #[error("not sent: this worker's session is over or unconfirmed")]
    Fenced,
    /// A coordinator sent what the protocol does not allow.
    #[error("{address} broke the protocol: {detail}")]
    Protocol {
        /// Whom we asked.
        address: String,
        /// What it did.
        detail: &'static str,
    },
    /// The thread of the session could not be started, or died.
    #[error("no thread for the session: {0}")]
    Thread(String),
    /// The system gave no random bytes.
    #[error("no random bytes from the system: {0}")]
    Randomness(String),
}

/// What a coordinator said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The gRPC code.
    pub code: Code,
    /// The sentence for people.
    pub message: String,
    /// Stable reason, such as `NOT_OWNER`; empty if none was given.
    pub reason: String,
    /// Facts that belong to the reason, such as `leader_address`.
    pub metadata: BTreeMap<String, String>,
    /// Fields of the request that are not as they must be.
    pub violations: Vec<FieldViolation>,
    /// Who answered.
    pub address: String,
}

/// One field of a request that was not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldViolation {
    /// Path of the field, such as `channels[3].name`.
    pub field: String,
    /// The value and what is allowed, in words.
    pub description: String,
}

/// What an error means for the caller; the command line turns it into an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorKind {
    /// What was named does not exist.
    NotFound,
    /// The present state does not allow it.
    Precondition,
    /// It contradicts something that is there, or that changed meanwhile.
    Conflict,
    /// The request itself is wrong.
    Invalid,
    /// Nobody could do it now; trying later may help.
    Unavailable,
    /// No answer in time; a write may have taken effect.
    Timeout,
    /// Data is damaged or members differ.
    Integrity,
    /// Anything else.
    Other,
}

/// What call.rs does after a failed attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NextStep {
    /// The answer is final.
    Stop,
    /// Ask the leader at this address.
    Leader(String),
    /// Ask another coordinator. `unknown`: this attempt may still take effect.
    Elsewhere { unknown: bool },
    /// Ask the same one a little later.
    Later,
}

impl Error {
    /// What it means for the caller.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Refused(refused) => refused.kind(),
            Self::Unreachable { .. } => ErrorKind::Unavailable,
            Self::Deadline { .. } => ErrorKind::Timeout,
            Self::Endpoint(_) => ErrorKind::Invalid,
            Self::Fenced => ErrorKind::Precondition,
            Self::Protocol { .. } | Self::Thread(_) | Self::Randomness(_) => ErrorKind::Other,
        }
    }

    /// The stable reason a coordinator gave, such as `NOT_OWNER`; for a deadline that of the last
    /// attempt.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Refused(refused) => Some(refused.reason.as_str()).filter(|text| !text.is_empty()),
            Self::Deadline { last, .. } => last.as_deref().and_then(Self::reason),
            _ => None,
        }
    }

    /// Whether the same request may well succeed later: nobody could answer it now.
    pub fn is_passing(&self) -> bool {
        matches!(self.kind(), ErrorKind::Unavailable | ErrorKind::Timeout)
    }

    /// What a coordinator said, if one answered.
    pub fn refused(&self) -> Option<&Refused> {
        match self {
            Self::Refused(refused) => Some(refused),
            _ => None,
        }
    }

    pub(crate) fn unreachable(address: &str, detail: impl Into<String>) -> Self {
        Self::Unreachable { address: address.to_owned(), detail: detail.into(), sent: true }
    }

    pub(crate) fn from_status(address: &str, status: &Status) -> Self {
        let refused = Refused::from_status(address, status);
        let lost = matches!(
            status.code(),
            Code::Unavailable | Code::Unknown | Code::Internal | Code::Cancelled
        );
        // Only a status made on our side has a cause: the connection failed, nobody answered.
        if let (true, true, Some(cause)) = (refused.reason.is_empty(), lost, status.source()) {
            let (address, detail) = (address.to_owned(), chain(cause));
            return Self::Unreachable { address, detail, sent: !never_connected(cause) };
        }
        Self::Refused(Box::new(refused))
    }

    pub(crate) fn next_step(&self) -> NextStep {
        match self {
            Self::Unreachable { sent, .. } => NextStep::Elsewhere { unknown: *sent },
            Self::Refused(refused) => refused.next_step(),
            _ => NextStep::Stop,
        }
    }
}

impl Refused {
    fn from_status(address: &str, status: &Status) -> Self {
        let details = status.get_error_details();
        let info = details.error_info();
        let violations = details.bad_request().map(|bad| bad.field_violations.as_slice());
        Self {
            code: status.code(),
            message: status.message().to_owned(),
            reason: info.map(|info| info.reason.clone()).unwrap_or_default(),
            metadata: info
                .map(|info| info.metadata.clone().into_iter().collect())
                .unwrap_or_default(),
            violations: violations
                .unwrap_or_default()
                .iter()
                .map(|violation| FieldViolation {
                    field: violation.field.clone(),
                    description: violation.description.clone(),
                })
                .collect(),
            address: address.to_owned(),
        }
    }

    /// What it means for the caller.
    pub fn kind(&self) -> ErrorKind {
        match self.code {
            Code::NotFound => ErrorKind::NotFound,
            Code::FailedPrecondition => ErrorKind::Precondition,
            Code::Aborted | Code::AlreadyExists => ErrorKind::Conflict,
            Code::InvalidArgument | Code::OutOfRange => ErrorKind::Invalid,
            Code::ResourceExhausted if self.reason == "LIMIT" => ErrorKind::Precondition,
            Code::Unavailable | Code::ResourceExhausted => ErrorKind::Unavailable,
            Code::DeadlineExceeded | Code::Cancelled => ErrorKind::Timeout,
            Code::DataLoss => ErrorKind::Integrity,
            _ => ErrorKind::Other,
        }
    }

    /// The client address of the leader, if the answer names a usable one.
    pub fn leader_address(&self) -> Option<&str> {
        let named = self.metadata.get("leader_address").map(String::as_str);
        named.filter(|address| endpoints::check(address).is_ok())
    }

    fn next_step(&self) -> NextStep {
        match (self.reason.as_str(), self.code) {
            ("NOT_LEADER", _) => match self.leader_address() {
                Some(address) => NextStep::Leader(address.to_owned()),
                None => NextStep::Elsewhere { unknown: false },
            },
            ("NO_LEADER" | "NOT_BOOTSTRAPPED", _) => NextStep::Elsewhere { unknown: false },
            ("OVERLOADED", _) => NextStep::Later,
            ("UNKNOWN_OUTCOME", _) => NextStep::Elsewhere { unknown: true },
            (_, Code::Unavailable) => NextStep::Elsewhere { unknown: true },
            ("", Code::DeadlineExceeded | Code::Cancelled) => NextStep::Elsewhere { unknown: true },
            _ => NextStep::Stop,
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.message.is_empty() { "refused" } else { &self.message })?;
        // The sentence of a single violation usually says it all; said twice it reads like two
        // faults.
        let untold = |violation: &&FieldViolation| !self.message.contains(&violation.description);
        for violation in self.violations.iter().filter(untold) {
            write!(f, "; {}: {}", violation.field, violation.description)?;
        }
        match self.reason.as_str() {
            "" => write!(f, " ({:?})", self.code)?,
            reason => write!(f, " ({reason})")?,
        }
        for (name, value) in &self.metadata {
            write!(f, " {name}={value}")?;
        }
        Ok(())
    }
}

/// The error and what caused it, each once.
fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        let part = error.to_string();
        if !text.contains(&part) {
            text.push_str(": ");
            text.push_str(&part);
        }
        next = error.source();
    }
    text
}

/// Whether there was no connection on which anything could have been sent.
fn never_connected(error: &(dyn StdError + 'static)) -> bool {
    std::iter::successors(Some(error), |error| (*error).source())
        .any(|one| one.is::<ConnectError>())
}

fn show_last(last: Option<&Error>) -> String {
    last.map(|error| format!("; the last attempt met: {error}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use tonic_types::ErrorDetails;

    use super::*;

    fn refused(code: Code, reason: &str, metadata: &[(&str, &str)]) -> Error {
        let mut details = ErrorDetails::new();
        let metadata: std::collections::HashMap<String, String> =
            metadata.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        details.set_error_info(reason, "quorate", metadata);
        Error::from_status("a:1", &Status::with_error_details(code, "what happened", details))
    }

    #[test]
    fn kinds_follow_code_and_reason() {
        let cases = [
            (Code::NotFound, "DROPPED", ErrorKind::NotFound),
            (Code::FailedPrecondition, "NOT_OWNER", ErrorKind::Precondition),
            (Code::Aborted, "STALE", ErrorKind::Conflict),
            (Code::AlreadyExists, "CONFLICT", ErrorKind::Conflict),
            (Code::InvalidArgument, "INVALID", ErrorKind::Invalid),
            (Code::ResourceExhausted, "LIMIT", ErrorKind::Precondition),
            (Code::ResourceExhausted, "DISK_LOW", ErrorKind::Unavailable),
            (Code::Unavailable, "NO_LEADER", ErrorKind::Unavailable),
            (Code::DeadlineExceeded, "", ErrorKind::Timeout),
            (Code::DataLoss, "DIVERGED", ErrorKind::Integrity),
            (Code::Unimplemented, "", ErrorKind::Other),
        ];
        for (code, reason, kind) in cases {
            assert_eq!(refused(code, reason, &[]).kind(), kind, "{code:?} {reason}");
        }
    }

    #[test]
    fn display_tells_reason_field_and_what_is_allowed() {
        let mut details = ErrorDetails::new();
        details.set_error_info("INVALID_ARGUMENT", "quorate", std::collections::HashMap::new());
        details.add_bad_request_violation("channels[0].name", "300 bytes; allowed: 1 to 256");
        let status = Status::with_error_details(Code::InvalidArgument, "the request", details);
        let text = Error::from_status("a:1", &status).to_string();
        assert_eq!(
            text,
            "the request; channels[0].name: 300 bytes; allowed: 1 to 256 (INVALID_ARGUMENT)"
        );
        let text = refused(Code::FailedPrecondition, "NOT_OWNER", &[("term", "7")]).to_string();
        assert_eq!(text, "what happened (NOT_OWNER) term=7");
    }

    #[test]
    fn what_to_do_next() {
        let hint = refused(Code::Unavailable, "NOT_LEADER", &[("leader_address", "b:2")]);
        assert_eq!(hint.next_step(), NextStep::Leader("b:2".to_owned()));
        let blind = refused(Code::Unavailable, "NOT_LEADER", &[("leader_address", "")]);
        assert_eq!(blind.next_step(), NextStep::Elsewhere { unknown: false });
        let unknown = refused(Code::Unavailable, "UNKNOWN_OUTCOME", &[]);
        assert_eq!(unknown.next_step(), NextStep::Elsewhere { unknown: true });
        let full = refused(Code::ResourceExhausted, "OVERLOADED", &[]);
        assert_eq!(full.next_step(), NextStep::Later);
        for (code, reason) in [(Code::Aborted, "STALE"), (Code::ResourceExhausted, "DISK_LOW")] {
            assert_eq!(refused(code, reason, &[]).next_step(), NextStep::Stop, "{reason}");
        }
    }
}
