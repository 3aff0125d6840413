//! Picks channels that may leave a full candidate, each at most once, with the emptiest candidate
//! that may have it. Whose turn it is and how many, is for `balance` and `join` to say.

use alloc::boxed::Box;
use alloc::vec::Vec;

use state::channel::{Channel, PhaseKind};
use state::decision::{Action, Cause, Guard, Move};
use state::epoch::Timestamp;
use state::ids::{ChannelName, NodeId};
use state::node::NodeRef;

use crate::targets::{Position, Targets};
use crate::view::View;

/// A channel that is moved for balance.
pub(crate) struct Pick {
    pub(crate) donor: Position,
    pub(crate) to: Position,
    pub(crate) chosen: Move,
}

/// Whether a channel that was moved lately may be picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    Needed,
    Waived,
}

type Channels<'a> = Box<dyn Iterator<Item = &'a Channel> + 'a>;

/// Takes channels from candidates, each only once.
pub(crate) struct Spread<'a> {
    view: View<'a>,
    /// Channels of each candidate that were not looked at yet, in name order. Most candidates give
    /// one or none of their many, so they are not collected.
    unseen: Vec<Option<Channels<'a>>>,
    /// When the first of the channels that were moved too lately may be moved again.
    pub(crate) movable_at: Option<Timestamp>,
    /// When the first of the candidates that cool down for a channel may have it again.
    pub(crate) cooled_at: Option<Timestamp>,
}

impl<'a> Spread<'a> {
    pub(crate) fn new(view: &View<'a>, candidates: usize) -> Self {
        Self {
            view: *view,
            unseen: (0..candidates).map(|_| None).collect(),
            movable_at: None,
            cooled_at: None,
        }
    }

    /// The next move that lowers the difference between the fullest and the emptiest; among equally
    /// full ones the highest id gives (C13).
    pub(crate) fn next(&mut self, targets: &Targets) -> Option<Pick> {
        let (lowest, _) = targets.by_count().next()?;
        let full = targets.by_count().rev();
        let mut full = full.take_while(|(count, _)| *count > lowest.saturating_add(1));
        full.find_map(|(_, donor)| self.from(targets, donor))
    }

    /// The next channel of this candidate that may go to one with at least two channels less.
    pub(crate) fn from(&mut self, targets: &Targets, donor: Position) -> Option<Pick> {
        self.load(targets, donor);
        while let Some(channel) = self.unseen.get_mut(donor)?.as_mut()?.next() {
            if !self.rested(channel) {
                continue;
            }
            let barred = self.barred(targets, channel);
            let Some(to) = targets.least(&barred, None) else { continue };
            if targets.count(to).saturating_add(1) < targets.count(donor) {
                let chosen = moved(channel, targets.node(donor)?, targets.node(to)?);
                return Some(Pick { donor, to, chosen });
            }
        }
        None
    }

    /// This channel from its owner to this node, if the node may have it.
    pub(crate) fn exactly(
        &mut self,
        targets: &Targets,
        name: &ChannelName,
        (donor, to): (Position, NodeId),
        rest: Rest,
    ) -> Option<Pick> {
        let channel = self.view.state.channel(name)?;
        let watched = channel.phase.kind() == PhaseKind::Watched;
        let to = targets.position(to).filter(|to| watched && *to != donor)?;
        let barred = self.barred(targets, channel);
        if barred.binary_search(&to).is_ok() || (rest == Rest::Needed && !self.rested(channel)) {
            return None;
        }
        let chosen = moved(channel, targets.node(donor)?, targets.node(to)?);
        Some(Pick { donor, to, chosen })
    }

    /// The candidates that cool down for the channel; remembers when the first of them is done.
    fn barred(&mut self, targets: &Targets, channel: &Channel) -> Vec<Position> {
        let now = self.view.time();
        let cooled_at = targets.cooled_at(channel, now);
        self.cooled_at = self.cooled_at.into_iter().chain(cooled_at).min();
        targets.cooling(channel, now)
    }

    /// Remembers when the channel may be moved, if it was moved lately.
    pub(crate) fn wait_for(&mut self, channel: &Channel) {
        if channel.phase.kind() == PhaseKind::Watched {
            self.rested(channel);
        }
    }

    /// Whether the channel was not moved lately; remembers when the first of the others will be.
    fn rested(&mut self, channel: &Channel) -> bool {
        let rest_ms = self.view.state.policy().min_move_interval_ms;
        let free_at = channel.placed_at.plus_ms(rest_ms);
        if free_at <= self.view.time() {
            return true;
        }
        self.movable_at = Some(self.movable_at.map_or(free_at, |at| at.min(free_at)));
        false
    }

    fn load(&mut self, targets: &Targets, donor: Position) {
        let (Some(slot), Some(node)) = (self.unseen.get_mut(donor), targets.node(donor)) else {
            return;
        };
        if slot.is_none() {
            let state = self.view.state;
            let watched = state
                .channels_of(node.node)
                .filter_map(|name| state.channel(name))
                .map(AsRef::as_ref)
                .filter(|channel: &&Channel| channel.phase.kind() == PhaseKind::Watched);
            *slot = Some(Box::new(watched));
        }
    }
}

fn moved(channel: &Channel, from: NodeRef, to: NodeRef) -> Move {
    let guard = Guard { term: channel.term, phase: PhaseKind::Watched };
    let action = Action::Move { from, to };
    Move { channel: channel.spec.name.clone(), guard, action, cause: Cause::Balance }
}
