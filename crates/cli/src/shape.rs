//! What `-o json` shows for the messages of the API: names as in the proto files, enums in words,
//! bytes in hex. Made by the commands out of the messages.

use client::proto;
use serde::Serialize;

use crate::render;

/// An owner, present or former.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Owner {
    pub(crate) node_id: u64,
    pub(crate) node_epoch: u64,
    pub(crate) node_name: String,
    pub(crate) address: String,
}

/// A former owner with the term it had.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct FormerOwner {
    pub(crate) owner: Option<Owner>,
    pub(crate) term: u64,
}

/// A node that may not get the channel yet.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Cooldown {
    pub(crate) node_id: u64,
    pub(crate) until_ms: u64,
}

/// A channel.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Channel {
    pub(crate) name: String,
    pub(crate) collection: u64,
    pub(crate) pchannel: String,
    pub(crate) positions: String,
    pub(crate) schema_ref: String,
    pub(crate) phase: &'static str,
    pub(crate) owner: Option<Owner>,
    pub(crate) term: u64,
    pub(crate) op: u64,
    pub(crate) deadline_ms: u64,
    pub(crate) attempts: u32,
    pub(crate) last_failure: String,
    pub(crate) cooldowns: Vec<Cooldown>,
    pub(crate) former_owners: Vec<FormerOwner>,
    pub(crate) dropping: bool,
    pub(crate) placed_by: u64,
    pub(crate) placed_cause: String,
    pub(crate) added_revision: u64,
    pub(crate) committed_positions: String,
    pub(crate) committed_revision: u64,
}

/// A worker node.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Node {
    pub(crate) node_id: u64,
    pub(crate) node_epoch: u64,
    pub(crate) name: String,
    pub(crate) address: String,
    pub(crate) role: &'static str,
    pub(crate) version: String,
    pub(crate) labels: std::collections::BTreeMap<String, String>,
    pub(crate) incarnation: String,
    pub(crate) status: &'static str,
    pub(crate) frozen: bool,
    pub(crate) registered_ms: u64,
    pub(crate) silent_ms: u64,
    pub(crate) to_watch: u32,
    pub(crate) watched: u32,
    pub(crate) to_release: u32,
}

/// One event of a record.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Event {
    pub(crate) kind: String,
    pub(crate) text: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) channel: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) node_id: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) term: u64,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) cause: String,
}

/// What one accepted command did.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct EventRecord {
    pub(crate) revision: u64,
    pub(crate) index: u64,
    pub(crate) term: u64,
    pub(crate) at_ms: u64,
    pub(crate) caused_by: String,
    pub(crate) actor: String,
    pub(crate) request_id: String,
    pub(crate) events: Vec<Event>,
}

/// The answer to a write.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Receipt {
    pub(crate) outcome: &'static str,
    pub(crate) revision: u64,
    pub(crate) index: u64,
    pub(crate) events: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

impl From<proto::Owner> for Owner {
    fn from(owner: proto::Owner) -> Self {
        Self {
            node_id: owner.node_id,
            node_epoch: owner.node_epoch,
            node_name: owner.node_name,
            address: owner.address,
        }
    }
}

impl From<proto::Channel> for Channel {
    fn from(channel: proto::Channel) -> Self {
        let spec = channel.spec.unwrap_or_default();
        let former = |former: proto::FormerOwner| FormerOwner {
            owner: former.owner.map(Owner::from),
            term: former.term,
        };
        let cooldown = |cooldown: proto::Cooldown| Cooldown {
            node_id: cooldown.node_id,
            until_ms: cooldown.until_ms,
        };
        Self {
            name: spec.name,
            collection: spec.collection,
            pchannel: spec.pchannel,
            positions: render::hex(&spec.positions),
            schema_ref: spec.schema_ref,
            phase: render::phase(channel.phase),
            owner: channel.owner.map(Owner::from),
            term: channel.term,
            op: channel.op,
            deadline_ms: channel.deadline_ms,
            attempts: channel.attempts,
            last_failure: channel.last_failure,
            cooldowns: channel.cooldowns.into_iter().map(cooldown).collect(),
            former_owners: channel.former_owners.into_iter().map(former).collect(),
            dropping: channel.dropping,
            placed_by: channel.placed_by,
            placed_cause: channel.placed_cause,
            added_revision: channel.added_revision,
            committed_positions: render::hex(&channel.committed_positions),
            committed_revision: channel.committed_revision,
        }
    }
}

impl From<proto::Node> for Node {
    fn from(node: proto::Node) -> Self {
        Self {
            node_id: node.node_id,
            node_epoch: node.node_epoch,
            name: node.name,
            address: node.address,
            role: render::role(node.role),
            version: node.version,
            labels: node.labels.into_iter().collect(),
            incarnation: node.incarnation,
            status: render::node_status(node.status),
            frozen: node.frozen,
            registered_ms: node.registered_ms,
            silent_ms: node.silent_ms,
            to_watch: node.to_watch,
            watched: node.watched,
            to_release: node.to_release,
        }
    }
}

impl From<proto::Event> for Event {
    fn from(event: proto::Event) -> Self {
        Self {
            kind: event.kind,
            text: event.text,
            channel: event.channel,
            node_id: event.node_id,
            term: event.term,
            cause: event.cause,
        }
    }
}

impl From<proto::EventRecord> for EventRecord {
    fn from(record: proto::EventRecord) -> Self {
        Self {
            revision: record.revision,
            index: record.index,
            term: record.term,
            at_ms: record.at_ms,
            caused_by: record.caused_by,
            actor: record.actor,
            request_id: render::hex(&record.request_id),
            events: record.events.into_iter().map(Event::from).collect(),
        }
    }
}

impl From<proto::WriteReceipt> for Receipt {
    fn from(receipt: proto::WriteReceipt) -> Self {
        let outcome = match proto::WriteOutcome::try_from(receipt.outcome) {
            Ok(proto::WriteOutcome::Accepted) => "accepted",
            Ok(proto::WriteOutcome::NoChange) => "no_change",
            Ok(proto::WriteOutcome::Unspecified) | Err(_) => "unknown",
        };
        Self { outcome, revision: receipt.revision, index: receipt.index, events: receipt.events }
    }
}

impl Receipt {
    /// For people: the outcome, then one line for each event.
    pub(crate) fn text(&self) -> String {
        let mut lines = match self.outcome {
            "accepted" => vec![format!("accepted at revision {}", self.revision)],
            _ => vec![format!("nothing to do: already so at revision {}", self.revision)],
        };
        lines.extend(self.events.iter().map(|event| format!("  {event}")));
        lines.join("\n")
    }
}
