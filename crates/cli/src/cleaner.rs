//! `cleaner ...`: who removes the traces of former owners, and what waits for that.

use clap::{Args, Subcommand};
use client::proto::{
    self, CompleteCleanupRequest, DeregisterCleanerRequest, ListCleanersRequest, OwnerClaim,
    RegisterCleanerRequest,
};
use serde::Serialize;

use crate::args::{Consistency, Global};
use crate::exit::Failure;
use crate::operator::{connect, show_receipt};
use crate::output::{Output, table};
use crate::shape::Owner;

/// Commands about cleaners.
#[derive(Debug, Subcommand)]
pub(crate) enum Cleaner {
    /// List the cleaners, and what waits to be cleaned up.
    List,
    /// Announce a cleaner: from now on former owners are kept until they are cleaned up.
    Register {
        /// Its name.
        name: String,
    },
    /// Take a cleaner away; without any, all that waits counts as cleaned up.
    Deregister {
        /// Its name.
        name: String,
    },
    /// Say that the traces of a former owner were cleaned up.
    Complete {
        /// Name of the channel.
        channel: String,
        #[command(flatten)]
        former_owner: Claim,
    },
}

/// Whom somebody was, or says it is.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Claim {
    /// Id of the node.
    #[arg(long, value_name = "ID")]
    node: u64,
    /// Epoch of its session.
    #[arg(long)]
    epoch: u64,
    /// Term of the channel.
    #[arg(long)]
    term: u64,
}

impl From<Claim> for OwnerClaim {
    fn from(claim: Claim) -> Self {
        Self { node_id: claim.node, node_epoch: claim.epoch, term: claim.term }
    }
}

#[derive(Serialize)]
struct Listed {
    cleaners: Vec<Row>,
    waiting: u64,
    cleanups: Vec<Cleanup>,
}

#[derive(Serialize)]
struct Row {
    name: String,
    since_revision: u64,
    streams: u32,
}

#[derive(Serialize)]
struct Cleanup {
    channel: String,
    former_owner: Option<Owner>,
    term: u64,
    subscription: String,
    pchannel: String,
}

/// Runs one of them.
pub(crate) async fn run(command: Cleaner, global: &Global, output: &Output) -> Result<(), Failure> {
    let operator = connect(global)?;
    let receipt = match command {
        Cleaner::List => {
            // Only the leader knows which of them it talks to.
            let read = global.read_or(Consistency::Leader);
            let answer = operator.list_cleaners(ListCleanersRequest { read }).await?;
            return output.show(&Listed::from(answer), text);
        }
        Cleaner::Register { name } => {
            let request = RegisterCleanerRequest { write: None, name };
            operator.register_cleaner(request).await?.receipt
        }
        Cleaner::Deregister { name } => {
            let request = DeregisterCleanerRequest { write: None, name };
            operator.deregister_cleaner(request).await?.receipt
        }
        Cleaner::Complete { channel, former_owner } => {
            let former_owner = Some(former_owner.into());
            let request = CompleteCleanupRequest { write: None, name: channel, former_owner };
            operator.complete_cleanup(request).await?.receipt
        }
    };
    show_receipt(output, receipt)
}

impl From<proto::ListCleanersResponse> for Listed {
    fn from(answer: proto::ListCleanersResponse) -> Self {
        let row = |cleaner: proto::Cleaner| Row {
            name: cleaner.name,
            since_revision: cleaner.since_revision,
            streams: cleaner.streams,
        };
        let cleanup = |cleanup: proto::Cleanup| Cleanup {
            channel: cleanup.channel,
            former_owner: cleanup.former_owner.map(Owner::from),
            term: cleanup.term,
            subscription: cleanup.subscription,
            pchannel: cleanup.pchannel,
        };
        Self {
            cleaners: answer.cleaners.into_iter().map(row).collect(),
            waiting: answer.waiting,
            cleanups: answer.cleanups.into_iter().map(cleanup).collect(),
        }
    }
}

fn text(listed: &Listed) -> String {
    let mut cleaners = table(["cleaner", "since revision", "streams"]);
    for row in &listed.cleaners {
        cleaners.add_row([row.name.clone(), row.since_revision.to_string(), streams(row)]);
    }
    let mut cleanups = table(["channel", "former owner", "node", "epoch", "term", "subscription"]);
    for cleanup in &listed.cleanups {
        let owner = cleanup.former_owner.as_ref();
        let number = |number: Option<u64>| number.map_or_else(String::new, |it| it.to_string());
        cleanups.add_row([
            cleanup.channel.clone(),
            owner.map_or_else(String::new, |owner| owner.node_name.clone()),
            number(owner.map(|owner| owner.node_id)),
            number(owner.map(|owner| owner.node_epoch)),
            cleanup.term.to_string(),
            cleanup.subscription.clone(),
        ]);
    }
    let waiting = match listed.waiting {
        0 => String::from("nothing waits to be cleaned up"),
        1 => format!("1 clean-up waits\n{cleanups}"),
        waiting => format!("{waiting} clean-ups wait\n{cleanups}"),
    };
    if listed.cleaners.is_empty() {
        return format!("no cleaner is registered\n{waiting}");
    }
    format!("{cleaners}\n{waiting}")
}

fn streams(row: &Row) -> String {
    if row.streams == 0 { String::from("not connected") } else { row.streams.to_string() }
}
