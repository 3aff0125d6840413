//! Wire types from and to the types of the state. Shape is checked here; meaning is judged by
//! apply.

use std::collections::BTreeMap;

use proto::v1;
use state::State;
use state::channel::{AckResult, Channel, ChannelSpec, FormerOwner, Phase, PhaseKind};
use state::command::{NodeAck, OwnerClaim};
use state::epoch::{ChannelTerm, NodeEpoch, Op};
use state::event::Event;
use state::ids::{Address, ChannelName, CollectionId, Incarnation, NodeId, NodeName, Text};
use state::limits;
use state::node::{Node, NodeRef, NodeStatus, Registration, Role};
use state::{Directive, DirectiveKind};
use tonic::Status;

use super::status;
use crate::history::Recorded;

/// A channel name.
pub fn channel_name(field: &str, text: &str) -> Result<ChannelName, Status> {
    ChannelName::new(text).map_err(|error| status::bad_text(field, &error))
}

/// A worker name.
pub fn node_name(field: &str, text: &str) -> Result<NodeName, Status> {
    NodeName::new(text).map_err(|error| status::bad_text(field, &error))
}

fn text(field: &str, text: &str) -> Result<Text, Status> {
    Text::new(text).map_err(|error| status::bad_text(field, &error))
}

/// Positions within the limit.
pub fn positions(field: &str, bytes: &bytes::Bytes) -> Result<Vec<u8>, Status> {
    if bytes.len() > limits::POSITIONS_BYTES_MAX {
        let allowed = format!("at most {} bytes are allowed", limits::POSITIONS_BYTES_MAX);
        return Err(status::bad_field(field, format!("{} bytes", bytes.len()), &allowed));
    }
    Ok(bytes.to_vec())
}

/// A channel as announced; a missing pchannel is the name up to its last underscore.
pub fn channel_spec(at: usize, spec: &v1::ChannelSpec) -> Result<ChannelSpec, Status> {
    let field = |name: &str| format!("channels[{at}].{name}");
    let name = channel_name(&field("name"), &spec.name)?;
    let pchannel = match spec.pchannel.as_str() {
        "" => spec.name.rsplit_once('_').map_or(spec.name.as_str(), |(physical, _)| physical),
        given => given,
    };
    Ok(ChannelSpec {
        name,
        collection: CollectionId(spec.collection),
        pchannel: text(&field("pchannel"), pchannel)?,
        positions: positions(&field("positions"), &spec.positions)?,
        schema_ref: text(&field("schema_ref"), &spec.schema_ref)?,
    })
}

/// A claim of ownership; it must be there, and complete.
pub fn claim(field: &str, claim: Option<v1::OwnerClaim>) -> Result<OwnerClaim, Status> {
    let claim = claim.ok_or_else(|| status::bad_field(field, "none", "a claim is required"))?;
    let numbers =
        [("node_id", claim.node_id), ("node_epoch", claim.node_epoch), ("term", claim.term)];
    if let Some((name, _)) = numbers.iter().find(|(_, number)| *number == 0) {
        return Err(status::bad_field(&format!("{field}.{name}"), 0, "it begins with 1"));
    }
    Ok(OwnerClaim {
        node: NodeRef { node: NodeId(claim.node_id), epoch: NodeEpoch(claim.node_epoch) },
        term: ChannelTerm(claim.term),
    })
}

/// Refuses a worker that would not understand what it is told (B-51). Workers that name no level
/// are of the first.
pub fn admit(needed: u32, register: &v1::Register) -> Result<(), Status> {
    let present = register.level.max(1);
    if present < needed {
        return Err(status::worker_too_old(needed, present));
    }
    Ok(())
}

/// What a worker says of itself.
pub fn registration(register: &v1::Register) -> Result<Registration, Status> {
    let role = match register.role() {
        v1::Role::Data => Role::Data,
        v1::Role::Query => Role::Query,
        v1::Role::Unspecified => {
            let allowed = "data and query are allowed";
            return Err(status::bad_field("register.role", register.role, allowed));
        }
    };
    if register.labels.len() > limits::LABELS_MAX {
        let allowed = format!("at most {} labels are allowed", limits::LABELS_MAX);
        return Err(status::bad_field("register.labels", register.labels.len(), &allowed));
    }
    let mut labels = BTreeMap::new();
    for (key, value) in &register.labels {
        labels.insert(text("register.labels", key)?, text("register.labels", value)?);
    }
    Ok(Registration {
        name: node_name("register.name", &register.name)?,
        address: Address::new(&register.address)
            .map_err(|error| status::bad_text("register.address", &error))?,
        role,
        version: text("register.version", &register.version)?,
        labels,
        incarnation: Incarnation::new(&register.incarnation)
            .map_err(|error| status::bad_text("register.incarnation", &error))?,
    })
}

/// An acknowledgement of this session.
pub fn ack(at: usize, node: NodeRef, ack: &v1::Ack) -> Result<NodeAck, Status> {
    let result = match ack.result() {
        v1::AckResult::Ok => AckResult::Ok,
        v1::AckResult::FailedStopped => AckResult::FailedStopped,
        v1::AckResult::Failed => AckResult::Failed,
        v1::AckResult::Conflict => AckResult::Conflict,
        v1::AckResult::Unspecified => {
            let field = format!("acks[{at}].result");
            let allowed = "ok, failed_stopped, failed and conflict are allowed";
            return Err(status::bad_field(&field, ack.result, allowed));
        }
    };
    Ok(NodeAck {
        node,
        channel: channel_name(&format!("acks[{at}].channel"), &ack.channel)?,
        term: ChannelTerm(ack.term),
        op: Op(ack.op),
        result,
        reason: Text::cut(&ack.reason),
    })
}

/// A directive for the wire.
pub fn directive(directive: &Directive) -> v1::Directive {
    let positions =
        directive.committed.as_ref().map_or(&directive.spec.positions, |done| &done.positions);
    v1::Directive {
        channel: directive.channel.as_str().to_owned(),
        term: directive.term.0,
        op: directive.op.0,
        kind: match directive.kind {
            DirectiveKind::Watch => v1::DirectiveKind::Watch,
            DirectiveKind::Release => v1::DirectiveKind::Release,
        }
        .into(),
        collection: directive.spec.collection.0,
        pchannel: directive.spec.pchannel.as_str().to_owned(),
        positions: bytes::Bytes::copy_from_slice(positions),
        schema_ref: directive.spec.schema_ref.as_str().to_owned(),
        subscription: state::subscription_name(&directive.channel, directive.term),
    }
}

/// A phase for the wire.
pub fn phase(kind: PhaseKind) -> v1::ChannelPhase {
    match kind {
        PhaseKind::Buffered => v1::ChannelPhase::Buffered,
        PhaseKind::ToWatch => v1::ChannelPhase::ToWatch,
        PhaseKind::Watched => v1::ChannelPhase::Watched,
        PhaseKind::ToRelease => v1::ChannelPhase::ToRelease,
    }
}

/// An owner with what the state knows of its node.
pub fn owner(state: &State, owner: NodeRef) -> v1::Owner {
    let node = state.node(owner.node);
    v1::Owner {
        node_id: owner.node.0,
        node_epoch: owner.epoch.0,
        node_name: node.map(|node| node.registration.name.to_string()).unwrap_or_default(),
        address: node.map(|node| node.registration.address.to_string()).unwrap_or_default(),
    }
}

fn former(state: &State, former: &FormerOwner) -> v1::FormerOwner {
    v1::FormerOwner { owner: Some(owner(state, former.node)), term: former.term.0 }
}

/// A former owner of a known or removed channel that waits for clean-up.
pub fn cleanup(state: &State, name: &ChannelName, former: FormerOwner) -> v1::Cleanup {
    let channel = state.channel(name);
    v1::Cleanup {
        channel: name.to_string(),
        former_owner: Some(owner(state, former.node)),
        term: former.term.0,
        subscription: state::subscription_name(name, former.term),
        pchannel: channel.map(|channel| channel.spec.pchannel.to_string()).unwrap_or_default(),
    }
}

/// A channel for the wire.
pub fn channel(state: &State, channel: &Channel) -> v1::Channel {
    let spec = &channel.spec;
    v1::Channel {
        spec: Some(v1::ChannelSpec {
            name: spec.name.to_string(),
            collection: spec.collection.0,
            pchannel: spec.pchannel.to_string(),
            positions: bytes::Bytes::copy_from_slice(&spec.positions),
            schema_ref: spec.schema_ref.to_string(),
        }),
        phase: phase(channel.phase.kind()).into(),
        owner: channel.phase.owner().map(|node| owner(state, node)),
        term: channel.term.0,
        op: channel.phase.op().map(|op| op.0).unwrap_or_default(),
        deadline_ms: state.deadline(channel).map(|due| due.0).unwrap_or_default(),
        attempts: channel.attempts,
        last_failure: channel.last_failure.to_string(),
        cooldowns: channel
            .cooldowns
            .iter()
            .map(|(node, until)| v1::Cooldown { node_id: node.0, until_ms: until.0 })
            .collect(),
        former_owners: channel.former_owners.iter().map(|each| former(state, each)).collect(),
        dropping: matches!(channel.phase, Phase::ToRelease { dropping: true, .. }),
        placed_by: channel.placed_by.as_ref().map(|by| by.revision.0).unwrap_or_default(),
        placed_cause: channel.placed_by.as_ref().map(|by| by.cause.to_string()).unwrap_or_default(),
        added_revision: channel.added.0,
        committed_positions: channel
            .committed
            .as_ref()
            .map(|done| bytes::Bytes::copy_from_slice(&done.positions))
            .unwrap_or_default(),
        committed_revision: channel
            .committed
            .as_ref()
            .map(|done| done.revision.0)
            .unwrap_or_default(),
    }
}

/// A node for the wire.
pub fn node(state: &State, node: &Node) -> v1::Node {
    let counts = state.counts_of(node.node);
    let about = &node.registration;
    v1::Node {
        node_id: node.node.0,
        node_epoch: node.epoch.0,
        name: about.name.to_string(),
        address: about.address.to_string(),
        role: match about.role {
            Role::Data => v1::Role::Data,
            Role::Query => v1::Role::Query,
        }
        .into(),
        version: about.version.to_string(),
        labels: about
            .labels
            .iter()
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .collect(),
        incarnation: about.incarnation.to_string(),
        status: match node.status {
            NodeStatus::Up => v1::NodeStatus::Up,
            NodeStatus::Stopping => v1::NodeStatus::Stopping,
            NodeStatus::Down => v1::NodeStatus::Down,
        }
        .into(),
        frozen: state.is_frozen(&about.name),
        registered_ms: node.registered_at.0,
        silent_ms: node.silent_ms,
        to_watch: counts.to_watch,
        watched: counts.watched,
        to_release: counts.to_release,
    }
}

fn event(event: &Event) -> v1::Event {
    v1::Event {
        kind: event.kind().to_owned(),
        text: event.to_string(),
        channel: event.channel().map(ToString::to_string).unwrap_or_default(),
        node_id: event.node().map(|node| node.0).unwrap_or_default(),
        term: event.term().map(|term| term.0).unwrap_or_default(),
        cause: event.cause().unwrap_or_default(),
    }
}

/// An event record for the wire.
pub fn record(recorded: &Recorded) -> v1::EventRecord {
    let record = &recorded.record;
    v1::EventRecord {
        revision: record.revision.0,
        index: recorded.index,
        term: record.term.0,
        at_ms: record.at.0,
        caused_by: record.caused_by.to_string(),
        actor: record.actor.to_string(),
        request_id: record
            .request_id
            .map(|id| bytes::Bytes::copy_from_slice(&id.0))
            .unwrap_or_default(),
        events: record.events.iter().map(event).collect(),
    }
}
