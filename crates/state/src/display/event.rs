//! Events in one line, and what they are about: kind, channel, node, cause.

use alloc::string::{String, ToString};
use core::fmt;

use crate::epoch::ChannelTerm;
use crate::event::{Event, EventRecord};
use crate::ids::{ChannelName, NodeId};

use super::{Listed, Tail};

impl Event {
    /// The name of the variant.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::LeaderStarted { .. } => "LeaderStarted",
            Self::NodeCameUp { .. } => "NodeCameUp",
            Self::NodeBeganStopping { .. } => "NodeBeganStopping",
            Self::NodeStoppedStopping { .. } => "NodeStoppedStopping",
            Self::NodeWentDown { .. } => "NodeWentDown",
            Self::NodeForgotten { .. } => "NodeForgotten",
            Self::SessionSilenceChanged { .. } => "SessionSilenceChanged",
            Self::SilenceReported { .. } => "SilenceReported",
            Self::NodeFroze { .. } => "NodeFroze",
            Self::NodeThawed { .. } => "NodeThawed",
            Self::ChannelAdded { .. } => "ChannelAdded",
            Self::ChannelPlaced { .. } => "ChannelPlaced",
            Self::WatchCompleted { .. } => "WatchCompleted",
            Self::WatchDeadlineExtended { .. } => "WatchDeadlineExtended",
            Self::WatchFailed { .. } => "WatchFailed",
            Self::ReleaseStarted { .. } => "ReleaseStarted",
            Self::ChannelUnassigned { .. } => "ChannelUnassigned",
            Self::ChannelMarkedDropped { .. } => "ChannelMarkedDropped",
            Self::ChannelRemoved { .. } => "ChannelRemoved",
            Self::FormerOwnerCleared { .. } => "FormerOwnerCleared",
            Self::MetaCommitted { .. } => "MetaCommitted",
            Self::PolicyChanged { .. } => "PolicyChanged",
            Self::LevelRaised { .. } => "LevelRaised",
            Self::RequestRemembered { .. } => "RequestRemembered",
            Self::CooldownCleared { .. } => "CooldownCleared",
            Self::ChoiceChanged { .. } => "ChoiceChanged",
            Self::CleanerRegistered { .. } => "CleanerRegistered",
            Self::CleanerDeregistered { .. } => "CleanerDeregistered",
        }
    }

    /// The channel it is about.
    #[must_use]
    pub fn channel(&self) -> Option<&ChannelName> {
        match self {
            Self::ChannelAdded { spec, .. } => Some(&spec.name),
            Self::ChannelPlaced { channel, .. }
            | Self::WatchCompleted { channel, .. }
            | Self::WatchDeadlineExtended { channel, .. }
            | Self::WatchFailed { channel, .. }
            | Self::ReleaseStarted { channel, .. }
            | Self::ChannelUnassigned { channel, .. }
            | Self::ChannelMarkedDropped { channel }
            | Self::ChannelRemoved { channel, .. }
            | Self::FormerOwnerCleared { channel, .. }
            | Self::MetaCommitted { channel, .. }
            | Self::CooldownCleared { channel, .. } => Some(channel),
            _ => None,
        }
    }

    /// The node it is about, if it names one.
    #[must_use]
    pub fn node(&self) -> Option<NodeId> {
        match self {
            Self::NodeCameUp { node, .. }
            | Self::NodeBeganStopping { node }
            | Self::NodeStoppedStopping { node }
            | Self::NodeWentDown { node, .. }
            | Self::NodeForgotten { node }
            | Self::SessionSilenceChanged { node, .. }
            | Self::WatchFailed { node, .. }
            | Self::ChannelPlaced { to: node, .. }
            | Self::ChannelUnassigned { from: node, .. } => Some(node.node),
            Self::WatchCompleted { done, .. } => Some(done.node.node),
            Self::ReleaseStarted { done, .. } => done.map(|done| done.node.node),
            Self::FormerOwnerCleared { former, .. } => Some(former.node.node),
            Self::CooldownCleared { node, .. } => Some(*node),
            _ => None,
        }
    }

    /// The term of the channel that the event names, after it.
    #[must_use]
    pub const fn term(&self) -> Option<ChannelTerm> {
        match self {
            Self::ChannelAdded { term, .. }
            | Self::ChannelPlaced { term, .. }
            | Self::ChannelUnassigned { term, .. }
            | Self::MetaCommitted { term, .. } => Some(*term),
            Self::WatchCompleted { done, .. } => Some(done.term),
            Self::ChannelRemoved { last_term, .. } => Some(*last_term),
            Self::FormerOwnerCleared { former, .. } => Some(former.term),
            _ => None,
        }
    }

    /// Why it happened, if there are several possible reasons.
    #[must_use]
    pub fn cause(&self) -> Option<String> {
        match self {
            Self::NodeWentDown { cause, .. } => Some(cause.to_string()),
            Self::ChannelPlaced { placed_by, .. } => Some(placed_by.cause.to_string()),
            Self::WatchFailed { reason, .. } => Some(reason.to_string()),
            Self::ReleaseStarted { cause, .. } => Some(cause.to_string()),
            Self::ChannelUnassigned { cause, .. } => Some(cause.to_string()),
            _ => None,
        }
    }

    fn show_session(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LeaderStarted { term, member } => write!(f, "term {term} {member}"),
            Self::NodeCameUp { node, registration } => write!(f, "{node} {registration}"),
            Self::NodeBeganStopping { node }
            | Self::NodeStoppedStopping { node }
            | Self::NodeForgotten { node } => write!(f, "{node}"),
            Self::NodeWentDown { node, cause } => write!(f, "{node} {cause}"),
            Self::SessionSilenceChanged { node, silent_ms } => write!(f, "{node} {silent_ms} ms"),
            Self::SilenceReported { seq } => write!(f, "seq {seq}"),
            Self::NodeFroze { name }
            | Self::NodeThawed { name }
            | Self::CleanerRegistered { name }
            | Self::CleanerDeregistered { name } => write!(f, "{name}"),
            Self::ChoiceChanged { setting, value } => write!(f, "{setting}={value}"),
            Self::PolicyChanged { policy } => {
                let settings = policy.describe();
                let changed = settings.iter().filter(|info| info.value != info.default);
                f.write_str("to the defaults")?;
                changed.enumerate().try_for_each(|(place, info)| {
                    let but = if place == 0 { " but" } else { "" };
                    write!(f, "{but} {}={}", info.name, info.value)
                })
            }
            Self::LevelRaised { level } => write!(f, "{level}"),
            Self::RequestRemembered { request_id, issued_at } => {
                write!(f, "{request_id} of {issued_at}")
            }
            _ => self.show_channel(f),
        }
    }

    fn show_channel(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ChannelAdded { spec, term, former_owners } => {
                let former = Listed(" former ", former_owners);
                write!(f, "{} {term} in {}{former}", spec.name, spec.collection)
            }
            Self::ChannelPlaced { channel, to, term, op, placed_by } => {
                write!(f, "{channel} {to} {term} {op} {}", placed_by.cause)
            }
            Self::WatchCompleted { channel, done } => {
                write!(f, "{channel} {} {} {}", done.node, done.term, done.op)
            }
            Self::WatchDeadlineExtended { channel, progress } => {
                write!(f, "{channel} progress {progress}")
            }
            Self::WatchFailed { channel, node, attempts, cooldown_until, reason, .. } => {
                let reason = (!reason.as_str().is_empty()).then_some(reason);
                write!(f, "{channel} {node} attempts {attempts} cool-down until {cooldown_until}")?;
                write!(f, "{}", Tail(": ", reason))
            }
            Self::ReleaseStarted { channel, op, cause, planned, .. } => {
                write!(f, "{channel} {op} {cause}{}", Tail(" planned ", *planned))
            }
            Self::ChannelUnassigned {
                channel,
                from,
                term,
                cause,
                former,
                planned,
                cooldown_until,
                ..
            } => {
                write!(f, "{channel} {term} {cause} from {from}")?;
                f.write_str(if *former { " kept as former" } else { "" })?;
                write!(f, "{}", Tail(" planned ", *planned))?;
                write!(f, "{}", Tail(" cool-down until ", *cooldown_until))
            }
            Self::ChannelMarkedDropped { channel } => write!(f, "{channel}"),
            Self::ChannelRemoved { channel, last_term, former_owners } => {
                write!(f, "{channel} {last_term}{}", Listed(" former ", former_owners))
            }
            Self::FormerOwnerCleared { channel, former } => write!(f, "{channel} {former}"),
            Self::MetaCommitted { channel, term, positions } => {
                write!(f, "{channel} {term} {} bytes", positions.len())
            }
            Self::CooldownCleared { channel, node } => write!(f, "{channel} {node}"),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.kind())?;
        self.show_session(f)
    }
}

/// Revision and events; who asked and why are fields.
impl fmt::Display for EventRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.revision)?;
        self.events.iter().try_for_each(|event| write!(f, " {event};"))
    }
}
