//! How commands talk to the group: the operator client, built from the global flags, and what its
//! errors mean for the exit code.

use client::proto::{self, NodeRef, ReadOptions, WriteReceipt};
use client::{Endpoints, ErrorKind, Operator, Options};

use crate::args::{Consistency, Global};
use crate::exit::{Code, Failure};
use crate::output::Output;
use crate::shape::Receipt;

/// Connects lazily: nothing is sent before the first call.
pub(crate) fn connect(global: &Global) -> Result<Operator, Failure> {
    connect_to(&global.coordinators, global)
}

/// The same with other coordinators.
pub(crate) fn connect_to(coordinators: &[String], global: &Global) -> Result<Operator, Failure> {
    let endpoints = Endpoints::from_addresses(coordinators)
        .map_err(|error| Failure::usage(format!("--coordinators: {error}")))?;
    let options = Options {
        deadline: global.timeout,
        actor: "cli".to_owned(),
        read: global.read().unwrap_or_default(),
        ..Options::default()
    };
    Ok(Operator::connect(&endpoints, options))
}

impl Global {
    /// The read options the flags ask for.
    pub(crate) fn read(&self) -> Option<ReadOptions> {
        self.read_or(Consistency::Linearizable)
    }

    /// The same with another default.
    pub(crate) fn read_or(&self, default: Consistency) -> Option<ReadOptions> {
        let consistency = match self.consistency.unwrap_or(default) {
            Consistency::Linearizable => proto::Consistency::Linearizable,
            Consistency::Leader => proto::Consistency::Leader,
            Consistency::Stale => proto::Consistency::Stale,
        };
        Some(ReadOptions { consistency: consistency.into(), min_revision: 0 })
    }
}

impl From<client::Error> for Failure {
    fn from(error: client::Error) -> Self {
        let code = match error.kind() {
            ErrorKind::NotFound => Code::NotFound,
            ErrorKind::Precondition | ErrorKind::Conflict => Code::Conflict,
            ErrorKind::Invalid => Code::Usage,
            ErrorKind::Unavailable | ErrorKind::Timeout => Code::Unavailable,
            ErrorKind::Integrity => Code::Integrity,
            ErrorKind::Other => Code::Failed,
        };
        Self::new(code, error.to_string())
    }
}

/// A node by id when `text` is a number, else by name.
pub(crate) fn node_ref(text: &str) -> NodeRef {
    match text.parse() {
        Ok(node_id) => NodeRef { node_id, name: String::new() },
        Err(_) => NodeRef { node_id: 0, name: text.to_owned() },
    }
}

/// Shows the answer to a write.
pub(crate) fn show_receipt(output: &Output, receipt: Option<WriteReceipt>) -> Result<(), Failure> {
    let receipt = Receipt::from(receipt.unwrap_or_default());
    output.show(&receipt, Receipt::text)
}
