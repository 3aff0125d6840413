//! Commands in one line. Lists are counted, not spelt out: a line is for reading.

use core::fmt;

use crate::command::{Command, NodeAck, OwnerClaim};
use crate::decision::{Action, Decision};
use crate::node::Registration;

use super::Tail;

impl fmt::Display for OwnerClaim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.node, self.term)
    }
}

impl fmt::Display for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {}", self.name, self.address, self.role, self.incarnation)
    }
}

impl fmt::Display for NodeAck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, channel, term, op, result, reason } = self;
        write!(f, "{node} {channel} {term} {op} {result}")?;
        let reason = reason.as_str();
        write!(f, "{}", Tail(": ", (!reason.is_empty()).then_some(reason)))
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Assign { to } => write!(f, "-> {to}"),
            Self::Move { from, to } => write!(f, "{from} -> {to}"),
            Self::Release { from } => write!(f, "{from} -> none"),
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let atomic = if self.atomic { " atomic" } else { "" };
        write!(f, "term {} basis {}{atomic}", self.basis.term, self.basis.revision)?;
        match self.moves.as_slice() {
            [] => f.write_str(" []"),
            [only] => write!(f, " [{only}]"),
            [first, rest @ ..] => write!(f, " [{first} and {} more]", rest.len()),
        }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LeaderStart { term, member } => write!(f, "LeaderStart term {term} {member}"),
            Self::RegisterSession(registration) => write!(f, "RegisterSession {registration}"),
            Self::SessionsObserved { leader_term, seq, silent, renewed } => {
                let (silent, renewed) = (silent.len(), renewed.len());
                write!(f, "SessionsObserved term {leader_term} seq {seq}: ")?;
                write!(f, "{silent} silent, {renewed} renewed")
            }
            Self::SetStopping { node } => write!(f, "SetStopping {node}"),
            Self::UnsetStopping { node } => write!(f, "UnsetStopping {node}"),
            Self::Revoke { node } => write!(f, "Revoke {node}"),
            Self::ExpireSession { node, leader_term } => {
                write!(f, "ExpireSession {node} term {leader_term}")
            }
            Self::WatchChannels(specs) => match specs.as_slice() {
                [] => f.write_str("WatchChannels none"),
                [only] => write!(f, "WatchChannels {}", only.name),
                [first, rest @ ..] => {
                    write!(f, "WatchChannels {} and {} more", first.name, rest.len())
                }
            },
            Self::MarkDropped { channel, claim } => {
                write!(f, "MarkDropped {channel}{}", Tail(" by ", *claim))
            }
            Self::RemoveChannel { channel } => write!(f, "RemoveChannel {channel}"),
            Self::Release { channel, term } => write!(f, "Release {channel} {term}"),
            Self::NodeAck(ack) => write!(f, "NodeAck {ack}"),
            Self::OpTimeout { channel, term, op } => write!(f, "OpTimeout {channel} {term} {op}"),
            Self::ExtendDeadline { channel, term, op, progress } => {
                write!(f, "ExtendDeadline {channel} {term} {op} progress {progress}")
            }
            Self::CommitMeta { channel, claim, positions } => {
                write!(f, "CommitMeta {channel} by {claim}, {} bytes", positions.len())
            }
            Self::EffectDone { channel, former } => write!(f, "EffectDone {channel} {former}"),
            Self::Place(decision) => write!(f, "Place {decision}"),
            Self::Freeze { name } => write!(f, "Freeze {name}"),
            Self::Thaw { name } => write!(f, "Thaw {name}"),
            Self::SetPolicy { values } => {
                f.write_str("SetPolicy")?;
                values.iter().try_for_each(|(name, value)| write!(f, " {name}={value}"))
            }
            Self::SetLevel { level } => write!(f, "SetLevel {level}"),
            Self::Tick => f.write_str("Tick"),
            Self::RegisterCleaner { name } => write!(f, "RegisterCleaner {name}"),
            Self::DeregisterCleaner { name } => write!(f, "DeregisterCleaner {name}"),
        }
    }
}
