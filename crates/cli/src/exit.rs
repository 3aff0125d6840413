//! How a command ends: exit codes and the one line of reason on standard error. Made everywhere in
//! this crate, turned into the exit of the process by main.

use std::process::ExitCode;

use server::config::ConfigError;

/// Shown at the end of `--help`.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  ok
  1  failed
  2  usage: a flag, argument or configuration value is wrong
  3  not found
  4  precondition not met, or conflict
  5  unavailable, or timeout
  6  unhealthy
  7  integrity: something acknowledged is lost, or members differ
The reason is on standard error, in one line.";

/// The class of an unsuccessful end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    Failed,
    Usage,
    NotFound,
    Conflict,
    Unavailable,
    Unhealthy,
    Integrity,
}

/// An unsuccessful end, or one that nobody listens to any more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Ends with that code; the reason is one line.
    Because(Code, String),
    /// Nobody reads standard output any more.
    Unread,
}

impl Failure {
    pub(crate) fn new(code: Code, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        let one_line: Vec<&str> = reason.split_whitespace().collect();
        Self::Because(code, one_line.join(" "))
    }

    pub(crate) fn failed(reason: impl Into<String>) -> Self {
        Self::new(Code::Failed, reason)
    }

    pub(crate) fn usage(reason: impl Into<String>) -> Self {
        Self::new(Code::Usage, reason)
    }

    pub(crate) fn reason(&self) -> Option<&str> {
        match self {
            Self::Because(_, reason) => Some(reason),
            Self::Unread => None,
        }
    }

    pub(crate) fn code(&self) -> ExitCode {
        let Self::Because(code, _) = self else { return ExitCode::SUCCESS };
        ExitCode::from(match code {
            Code::Failed => 1,
            Code::Usage => 2,
            Code::NotFound => 3,
            Code::Conflict => 4,
            Code::Unavailable => 5,
            Code::Unhealthy => 6,
            Code::Integrity => 7,
        })
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::usage(error.to_string())
    }
}
