//! Life of a channel that is placed as a whole (16.2), as values: each call gives the next one and
//! leaves the old one as it is. Our own channels live by section 18; this is the model they adopt.

use alloc::vec::Vec;

use state::epoch::ChannelTerm;
use state::ids::NodeId;

/// Where the channel stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It never had a node.
    Uninitialized,
    /// It has a node that has not opened it yet.
    Assigning,
    /// Its node has opened it.
    Assigned,
    /// Its node cannot serve it.
    Unavailable,
}

/// A term that has not been confirmed closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Former {
    /// The term.
    pub term: ChannelTerm,
    /// Its node.
    pub node: NodeId,
}

/// One channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lifecycle {
    /// Rises with every assignment that changes something.
    pub term: ChannelTerm,
    /// The node of this term.
    pub node: Option<NodeId>,
    /// Where it stands.
    pub stage: Stage,
    /// Former terms, oldest first.
    pub histories: Vec<Former>,
}

impl Lifecycle {
    /// A channel that no node ever had.
    #[must_use]
    pub const fn new(term: ChannelTerm) -> Self {
        Self { term, node: None, stage: Stage::Uninitialized, histories: Vec::new() }
    }

    /// Gives it to a node, in a new term. None: it is assigned there already.
    #[must_use]
    pub fn try_assign(&self, node: NodeId) -> Option<Self> {
        if self.node == Some(node) && self.stage == Stage::Assigned {
            return None;
        }
        let mut histories = self.histories.clone();
        histories.extend(self.node.map(|node| Former { term: self.term, node }));
        let term = ChannelTerm(self.term.0.saturating_add(1));
        Some(Self { term, node: Some(node), stage: Stage::Assigning, histories })
    }

    /// The node has opened it, and all former terms are closed. None: it is not being assigned.
    #[must_use]
    pub fn assign_done(&self) -> Option<Self> {
        (self.stage == Stage::Assigning).then(|| Self {
            stage: Stage::Assigned,
            histories: Vec::new(),
            ..self.clone()
        })
    }

    /// Its node cannot serve it in this term. None: another term is meant, or it is not assigned.
    #[must_use]
    pub fn mark_unavailable(&self, term: ChannelTerm) -> Option<Self> {
        let meant = self.stage == Stage::Assigned && self.term == term;
        meant.then(|| Self { stage: Stage::Unavailable, ..self.clone() })
    }
}
