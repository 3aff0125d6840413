//! The only writer: one arm per event. Total: an event that names what is not there changes
//! nothing. No choice is made here and nothing is refused; what an event says is what happens.
//! Called by `apply::Tx` alone, which has set revision and clock of the command before.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::{Leader, Mark, Remembered, State};
use crate::channel::{
    Channel, ChannelSpec, Committed, Dropped, FormerOwner, LastDone, Phase, PlacedBy, ReleaseCause,
    UnassignCause,
};
use crate::epoch::{ChannelTerm, NodeEpoch, Op};
use crate::event::Event;
use crate::ids::{ChannelName, Text};
use crate::level;
use crate::limits;
use crate::node::{Node, NodeRef, NodeStatus, Registration};

impl State {
    pub(crate) fn evolve(&mut self, event: &Event) {
        #[cfg(test)]
        if self.poison.drops(event) {
            return;
        }
        match event {
            Event::LeaderStarted { .. }
            | Event::SilenceReported { .. }
            | Event::PolicyChanged { .. }
            | Event::LevelRaised { .. } => self.evolve_scalar(event),
            Event::ChoiceChanged { setting, value } => self.put_choice(setting, value),
            Event::CleanerRegistered { name } => self.put_cleaner(name),
            Event::CleanerDeregistered { name } => self.take_cleaner(name),
            Event::NodeCameUp { .. }
            | Event::NodeBeganStopping { .. }
            | Event::NodeStoppedStopping { .. }
            | Event::NodeWentDown { .. }
            | Event::NodeForgotten { .. }
            | Event::SessionSilenceChanged { .. }
            | Event::NodeFroze { .. }
            | Event::NodeThawed { .. } => self.evolve_node(event),
            Event::RequestRemembered { request_id, issued_at } => {
                self.forget_old_requests();
                let remembered =
                    Remembered { issued_at: *issued_at, revision: self.scalars.revision };
                self.put_request(*request_id, remembered);
            }
            _ => self.evolve_channel(event),
        }
    }

    fn evolve_scalar(&mut self, event: &Event) {
        let now = self.now();
        let scalars = self.scalars_mut();
        match event {
            Event::LeaderStarted { term, member } => {
                scalars.leader =
                    Leader { term: *term, member: *member, started_at: now, observed_seq: 0 };
            }
            Event::SilenceReported { seq } => scalars.leader.observed_seq = *seq,
            Event::PolicyChanged { policy } => scalars.policy = policy.clone(),
            Event::LevelRaised { level } => {
                if scalars.level < level::SHORT_COOLDOWN && *level >= level::SHORT_COOLDOWN {
                    scalars.policy.shorten_cooldown();
                }
                scalars.level = *level;
            }
            _ => {}
        }
    }

    fn evolve_node(&mut self, event: &Event) {
        match event {
            Event::NodeCameUp { node, registration } => self.came_up(*node, registration),
            Event::NodeBeganStopping { node } => self.set_status(*node, NodeStatus::Stopping),
            Event::NodeStoppedStopping { node } => self.set_status(*node, NodeStatus::Up),
            Event::NodeWentDown { node, .. } => self.set_status(*node, NodeStatus::Down),
            Event::NodeForgotten { node } => self.take_node(node.node),
            Event::SessionSilenceChanged { node, silent_ms } => {
                self.change_node(*node, |node| node.silent_ms = *silent_ms);
            }
            Event::NodeFroze { name } => self.put_frozen(name),
            Event::NodeThawed { name } => self.take_frozen(name),
            _ => {}
        }
    }

    fn came_up(&mut self, node: NodeRef, registration: &Registration) {
        let now = self.now();
        let scalars = self.scalars_mut();
        scalars.next_node = node.node.0.saturating_add(1).max(scalars.next_node);
        scalars.first_registered.get_or_insert(now);
        let ttl_ms = scalars.policy.ttl_ms;
        self.put_node(Node {
            node: node.node,
            epoch: NodeEpoch::at(self.revision()),
            registration: registration.clone(),
            status: NodeStatus::Up,
            registered_at: now,
            ttl_ms,
            silent_ms: 0,
        });
    }

    fn set_status(&mut self, node: NodeRef, status: NodeStatus) {
        self.change_node(node, |node| node.status = status);
    }

    fn change_node(&mut self, node: NodeRef, change: impl FnOnce(&mut Node)) {
        let Some(old) = self.nodes.get(&node.node) else { return };
        let mut new = Node::clone(old);
        change(&mut new);
        self.put_node(new);
    }

    fn forget_old_requests(&mut self) {
        let now = self.now();
        while let Some((issued_at, request_id)) = self.index.requests.get_min().copied() {
            if now.since(issued_at) <= limits::REQUEST_AGE_MS_MAX {
                return;
            }
            self.take_request(request_id);
        }
    }
}

/// Channels.
impl State {
    fn evolve_channel(&mut self, event: &Event) {
        match event {
            Event::ChannelAdded { spec, term, former_owners } => {
                self.added(spec, *term, former_owners);
            }
            Event::ChannelPlaced { channel, to, term, op, placed_by } => {
                self.placed(channel, *to, (*term, *op), placed_by);
            }
            Event::WatchCompleted { channel, done } => self.watch_completed(channel, *done),
            Event::WatchDeadlineExtended { channel, progress } => {
                self.deadline_extended(channel, *progress);
            }
            Event::WatchFailed { .. } => self.watch_failed(event),
            Event::ReleaseStarted { .. } => self.release_started(event),
            Event::ChannelUnassigned { .. } => self.unassigned(event),
            Event::ChannelMarkedDropped { channel } => self.marked_dropped(channel),
            Event::ChannelRemoved { channel, last_term, former_owners } => {
                self.removed(channel, *last_term, former_owners);
            }
            Event::FormerOwnerCleared { channel, former } => self.cleared(channel, *former),
            Event::MetaCommitted { channel, term, positions } => {
                let committed = Committed {
                    positions: positions.clone(),
                    revision: self.revision(),
                    term: *term,
                };
                self.change(channel, |channel| channel.committed = Some(Arc::new(committed)));
            }
            Event::CooldownCleared { channel, node } => {
                self.change(channel, |channel| {
                    channel.cooldowns.remove(node);
                });
            }
            _ => {}
        }
    }

    fn change(&mut self, name: &ChannelName, change: impl FnOnce(&mut Channel)) {
        let Some(old) = self.channels.get(name) else { return };
        let mut new = Channel::clone(old);
        change(&mut new);
        self.put_channel(new);
    }

    fn activity(&mut self) {
        let now = self.now();
        self.scalars_mut().last_activity = now;
    }

    fn added(&mut self, spec: &Arc<ChannelSpec>, term: ChannelTerm, former: &[FormerOwner]) {
        self.activity();
        self.take_drop(&spec.name);
        self.put_channel(Channel {
            spec: Arc::clone(spec),
            added: self.revision(),
            phase: Phase::Buffered { planned: None },
            term,
            attempts: 0,
            last_failure: Text::default(),
            cooldowns: alloc::collections::BTreeMap::new(),
            avoid: None,
            former_owners: Vec::from(former),
            placed_at: crate::epoch::Timestamp::default(),
            placed_by: None,
            last_done: None,
            committed: None,
        });
    }

    fn placed(
        &mut self,
        name: &ChannelName,
        owner: NodeRef,
        (term, op): (ChannelTerm, Op),
        placed_by: &PlacedBy,
    ) {
        self.activity();
        let (now, revision) = (self.now(), self.revision());
        self.scalars_mut().first_placed.get_or_insert(revision);
        self.change(name, |channel| {
            channel.phase = Phase::ToWatch { owner, op, started_at: now, progress: 0 };
            channel.term = term;
            channel.placed_at = now;
            channel.placed_by = Some(placed_by.clone());
        });
    }

    fn watch_completed(&mut self, name: &ChannelName, done: LastDone) {
        self.activity();
        self.change(name, |channel| {
            channel.phase = Phase::Watched { owner: done.node, op: done.op };
            channel.attempts = 0;
            channel.avoid = None;
            channel.cooldowns.remove(&done.node.node);
            channel.last_done = Some(done);
        });
    }

    fn deadline_extended(&mut self, name: &ChannelName, reported: u64) {
        let now = self.now();
        self.change(name, |channel| {
            if let Phase::ToWatch { started_at, progress, .. } = &mut channel.phase {
                *started_at = now;
                *progress = reported;
            }
        });
    }

    fn watch_failed(&mut self, event: &Event) {
        let Event::WatchFailed { channel, node, attempts, cooldown_until, reason, done } = event
        else {
            return;
        };
        let now = self.now();
        self.change(channel, |channel| {
            channel.attempts = *attempts;
            channel.last_failure = reason.clone();
            // Those that ended say nothing any more; dropping them here keeps the list short.
            channel.cooldowns.retain(|_, until| now < *until);
            channel.cooldowns.insert(node.node, *cooldown_until);
            channel.last_done = done.or(channel.last_done);
        });
    }

    fn release_started(&mut self, event: &Event) {
        let Event::ReleaseStarted { channel, op, cause, planned, done } = event else { return };
        self.activity();
        if *cause == ReleaseCause::Balance && self.level() >= level::BALANCED_MARK {
            self.put_mark(Mark::Balanced);
        }
        let now = self.now();
        self.change(channel, |channel| {
            let Some(owner) = channel.phase.owner() else { return };
            channel.phase = Phase::ToRelease {
                owner,
                op: *op,
                started_at: now,
                cause: *cause,
                planned: *planned,
                dropping: *cause == ReleaseCause::Drop,
            };
            channel.last_done = done.or(channel.last_done);
        });
    }

    fn unassigned(&mut self, event: &Event) {
        let Event::ChannelUnassigned {
            channel,
            from,
            term,
            cause,
            former,
            planned,
            cooldown_until,
            done,
        } = event
        else {
            return;
        };
        self.activity();
        let now = self.now();
        self.change(channel, |channel| {
            if *former {
                keep_former(&mut channel.former_owners, *from, channel.term);
            }
            channel.phase = Phase::Buffered { planned: *planned };
            channel.term = *term;
            channel.last_done = done.or(channel.last_done);
            match cause {
                UnassignCause::Released
                | UnassignCause::ReleaseFailed
                | UnassignCause::ReleaseTimeout => channel.avoid = Some(from.node),
                UnassignCause::NodeDown => {
                    channel.cooldowns.remove(&from.node);
                }
                UnassignCause::Stopped => {}
            }
            if let Some(until) = cooldown_until {
                channel.cooldowns.retain(|_, until| now < *until);
                channel.cooldowns.insert(from.node, *until);
            }
        });
    }

    fn marked_dropped(&mut self, name: &ChannelName) {
        self.change(name, |channel| {
            // A channel not yet being released becomes so by the ReleaseStarted that follows (I-5).
            if let Phase::ToRelease { dropping, planned, .. } = &mut channel.phase {
                *dropping = true;
                *planned = None;
            }
        });
    }

    fn removed(&mut self, name: &ChannelName, last_term: ChannelTerm, former: &[FormerOwner]) {
        self.activity();
        self.take_channel(name);
        let (removed, former_owners) = (self.revision(), Vec::from(former));
        self.put_drop(name, Dropped { removed, last_term, former_owners });
        self.forget_old_drops();
    }

    fn cleared(&mut self, name: &ChannelName, former: FormerOwner) {
        if let Some(dropped) = self.drops.get(name) {
            let mut dropped = Dropped::clone(dropped);
            dropped.former_owners.retain(|kept| *kept != former);
            self.put_drop(name, dropped);
            self.forget_old_drops();
        } else {
            self.change(name, |channel| channel.former_owners.retain(|kept| *kept != former));
        }
    }

    fn forget_old_drops(&mut self) {
        while self.index.drops_done.len() > limits::DROPS_MAX {
            let Some((_, name)) = self.index.drops_done.get_min().cloned() else { return };
            self.take_drop(&name);
        }
    }
}

/// Adds a former owner, keeping the list ascending and without repetition.
pub(crate) fn keep_former(list: &mut Vec<FormerOwner>, node: NodeRef, term: ChannelTerm) {
    let former = FormerOwner { node, term };
    if let Err(place) = list.binary_search(&former) {
        list.insert(place, former);
    }
}
