//! Directives: what a node must do, derived from the state and never stored, so nothing is lost at
//! a failover. The leader sends them; the digest tells whether a node already has them.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::channel::{ChannelSpec, Committed, Phase};
use crate::digest::hash128;
use crate::epoch::{ChannelTerm, Op};
use crate::ids::{ChannelName, NodeId};
use crate::state::State;

/// What to do with a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DirectiveKind {
    /// Consume it, and go on doing so.
    Watch,
    /// Stop consuming it and say so.
    Release,
}

impl DirectiveKind {
    const fn tag(self) -> u8 {
        match self {
            Self::Watch => 1,
            Self::Release => 2,
        }
    }
}

/// One thing a node must do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directive {
    /// With which channel.
    pub channel: ChannelName,
    /// Under which term.
    pub term: ChannelTerm,
    /// Number to acknowledge.
    pub op: Op,
    /// What.
    pub kind: DirectiveKind,
    /// The channel as announced.
    pub spec: Arc<ChannelSpec>,
    /// Positions of an earlier or this owner, if any were committed.
    pub committed: Option<Arc<Committed>>,
}

/// All directives of a node, in name order. What is not among them must not run there.
#[must_use]
pub fn directives_for(state: &State, node: NodeId) -> Vec<Directive> {
    let directive = |name: &ChannelName| {
        let channel = state.channel(name)?;
        let kind = match channel.phase {
            Phase::Buffered { .. } => return None,
            Phase::ToWatch { .. } | Phase::Watched { .. } => DirectiveKind::Watch,
            Phase::ToRelease { .. } => DirectiveKind::Release,
        };
        Some(Directive {
            channel: name.clone(),
            term: channel.term,
            op: channel.phase.op()?,
            kind,
            spec: Arc::clone(&channel.spec),
            committed: channel.committed.clone(),
        })
    };
    state.channels_of(node).filter_map(directive).collect()
}

/// Digest of a desired set, as node and coordinator both compute it: the first 16 bytes of blake3
/// over, for each directive in name order, the length of the name (4 bytes), the name, term and op
/// (8 bytes each) and the kind (1 byte: 1 watch, 2 release); all numbers little endian.
#[must_use]
pub fn desired_digest(directives: &[Directive]) -> [u8; 16] {
    let mut bytes = Vec::with_capacity(directives.len().saturating_mul(64));
    for directive in directives {
        let name = directive.channel.as_str().as_bytes();
        bytes.extend_from_slice(&u32::try_from(name.len()).unwrap_or(u32::MAX).to_le_bytes());
        bytes.extend_from_slice(name);
        bytes.extend_from_slice(&directive.term.0.to_le_bytes());
        bytes.extend_from_slice(&directive.op.0.to_le_bytes());
        bytes.push(directive.kind.tag());
    }
    hash128(&bytes)
}
