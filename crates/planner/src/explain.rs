//! Why a channel is where it is and what it waits for, for `quorate explain channel`.
//! Reads a state and asks the planner; decides nothing.

use alloc::vec::Vec;
use core::fmt;

use state::channel::{Channel, Phase, PhaseKind, PlacedBy, ReleaseCause};
use state::epoch::{ChannelTerm, Revision, Timestamp};
use state::ids::{ChannelName, NodeName, Text};
use state::limits;
use state::node::{NodeRef, NodeStatus};

use crate::drain;
use crate::report::Why;
use crate::targets::{Constraint, Excluded, Targets, cools_until, node_constraint};
use crate::view::{Budget, View};

/// Where a channel stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Never announced, or removed so long ago that it is forgotten.
    Unknown,
    /// Removed.
    Dropped {
        /// Revision that removed it.
        removed: Revision,
        /// Its last term.
        last_term: ChannelTerm,
    },
    /// Known.
    Known {
        /// Its phase.
        phase: PhaseKind,
        /// Its owner.
        owner: Option<NodeRef>,
        /// Its term.
        term: ChannelTerm,
    },
}

/// What a channel waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitFor {
    /// The planner left it where it is.
    Planner(Why),
    /// The next decision gives it to this node.
    Decision {
        /// Its next owner.
        to: NodeRef,
    },
    /// Its owner says that it watches.
    WatchAck {
        /// Its owner.
        node: NodeRef,
    },
    /// Its owner says that it released.
    ReleaseAck {
        /// Its owner.
        node: NodeRef,
        /// Why it is released.
        cause: ReleaseCause,
        /// Where it goes next; none: the planner will choose, or it is dropped.
        next: Option<NodeRef>,
    },
}

/// A wait with its bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// For what.
    pub what: WaitFor,
    /// Since when, where the state knows it.
    pub since: Option<Timestamp>,
    /// When it ends by itself at the latest; none: not by time.
    pub until: Option<Timestamp>,
    /// What would end it.
    pub unblock: &'static str,
}

/// One live node, seen from this channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Considered {
    /// Which node.
    pub node: NodeRef,
    /// Its worker's name.
    pub name: NodeName,
    /// Channels it has or is about to get.
    pub count: u32,
    /// Why it may not get the channel; none: it is a candidate.
    pub refused: Option<Constraint>,
}

/// Everything there is to say about the place of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// Which channel.
    pub channel: ChannelName,
    /// Where it stands.
    pub standing: Standing,
    /// The decision that gave it its last owner.
    pub placed_by: Option<PlacedBy>,
    /// Log time of that decision, once there was one.
    pub placed_at: Option<Timestamp>,
    /// Watches that failed since one last succeeded.
    pub attempts: u32,
    /// What the last failure said; empty: none.
    pub last_failure: Text,
    /// What it waits for; none: it is where it should be.
    pub wait: Option<Wait>,
    /// Live nodes by ascending id.
    pub candidates: Vec<Considered>,
}

/// Says why this channel is where it is.
#[must_use]
pub fn explain(view: &View<'_>, name: &ChannelName) -> Explanation {
    let Some(channel) = view.state.channel(name) else { return explain_absent(view, name) };
    let standing = Standing::Known {
        phase: channel.phase.kind(),
        owner: channel.phase.owner(),
        term: channel.term,
    };
    Explanation {
        channel: name.clone(),
        standing,
        placed_by: channel.placed_by.clone(),
        placed_at: channel.placed_by.is_some().then_some(channel.placed_at),
        attempts: channel.attempts,
        last_failure: channel.last_failure.clone(),
        wait: wait(view, channel),
        candidates: considered(view, channel),
    }
}

fn explain_absent(view: &View<'_>, name: &ChannelName) -> Explanation {
    let dropped = view.state.dropped(name);
    let standing = dropped.map_or(Standing::Unknown, |dropped| Standing::Dropped {
        removed: dropped.removed,
        last_term: dropped.last_term,
    });
    Explanation {
        channel: name.clone(),
        standing,
        placed_by: None,
        placed_at: None,
        attempts: 0,
        last_failure: Text::cut(""),
        wait: None,
        candidates: Vec::new(),
    }
}

fn considered(view: &View<'_>, channel: &alloc::sync::Arc<Channel>) -> Vec<Considered> {
    let targets = Targets::new(view);
    let now = view.time();
    let avoided = Excluded::of(channel, &targets, now)
        .filter(|excluded| !excluded.given_back)
        .and(channel.avoid);
    let live = view.state.nodes().filter(|node| node.status != NodeStatus::Down);
    live.map(|node| {
        let cools = || cools_until(channel, node.node, now);
        let refused = node_constraint(view, node)
            .or_else(|| cools().map(|until| Constraint::CoolingDown { until }))
            .or_else(|| (avoided == Some(node.node)).then_some(Constraint::Avoided));
        let counts = view.state.counts_of(node.node);
        let owned = counts.to_watch.saturating_add(counts.watched);
        let count = targets.position(node.node).map_or(owned, |at| targets.count(at));
        let name = node.registration.name.clone();
        Considered { node: node.node_ref(), name, count, refused }
    })
    .collect()
}

fn wait(view: &View<'_>, channel: &alloc::sync::Arc<Channel>) -> Option<Wait> {
    match channel.phase {
        Phase::Buffered { .. } => Some(ask_planner(view, channel)),
        Phase::Watched { owner, .. } => {
            let node = view.state.live(owner)?;
            drain::drains(view, node).then(|| ask_planner(view, channel))
        }
        Phase::ToWatch { owner, started_at, .. } => Some(Wait {
            what: WaitFor::WatchAck { node: owner },
            since: Some(started_at),
            until: view.state.deadline(channel),
            unblock: "the node acknowledges the watch, its session ends, or the time is up",
        }),
        Phase::ToRelease { owner, started_at, cause, planned, dropping, .. } => {
            let next = planned.filter(|_| !dropping);
            Some(Wait {
                what: WaitFor::ReleaseAck { node: owner, cause, next },
                since: Some(started_at),
                until: view.state.deadline(channel),
                unblock: "the node acknowledges the release, its session ends, or the time is up",
            })
        }
    }
}

/// What the next plan would do with this channel, and if nothing, why.
fn ask_planner(view: &View<'_>, channel: &alloc::sync::Arc<Channel>) -> Wait {
    let name = &channel.spec.name;
    let plan = crate::plan(view, &Budget { moves_max: limits::MOVES_MAX });
    if let Some(choice) = plan.report.choices.iter().find(|choice| choice.channel == *name) {
        return Wait {
            what: WaitFor::Decision { to: choice.to },
            since: None,
            until: None,
            unblock: "the leader proposes its next decision",
        };
    }
    let why = why_not(view, channel);
    Wait { what: WaitFor::Planner(why), since: None, until: why.until(), unblock: why.unblock() }
}

/// Why a channel that should get a node gets none now.
fn why_not(view: &View<'_>, channel: &alloc::sync::Arc<Channel>) -> Why {
    let targets = Targets::new(view);
    let now = view.time();
    let buffered = channel.phase.kind() == PhaseKind::Buffered;
    if let (true, Some(until)) = (buffered, view.settles_until()) {
        return Why::Settling { until };
    }
    if targets.is_empty() {
        return if buffered { Why::NoNode } else { Why::NoTarget };
    }
    if buffered && channel.former_owners.len() >= limits::FORMER_OWNERS_MAX {
        return Why::FormerOwners;
    }
    match Excluded::of(channel, &targets, now) {
        None => Why::CoolingDown { until: targets.cooled_at(channel, now).unwrap_or(now) },
        Some(_) if buffered => Why::Deferred { moves_max: limits::MOVES_MAX },
        Some(_) => Why::MovesInFlight { max: view.state.policy().balance_moves_max },
    }
}

impl fmt::Display for WaitFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Planner(why) => why.fmt(f),
            Self::Decision { to } => write!(f, "the next decision gives it to {to}"),
            Self::WatchAck { node } => write!(f, "{node} was told to watch it"),
            Self::ReleaseAck { node, next: Some(next), .. } => {
                write!(f, "{node} was told to release it; it goes to {next} next")
            }
            Self::ReleaseAck { node, next: None, .. } => {
                write!(f, "{node} was told to release it")
            }
        }
    }
}

impl fmt::Display for Considered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}) has {} channels", self.node, self.name, self.count)?;
        match self.refused {
            None => f.write_str(" and is a candidate"),
            Some(constraint) => write!(f, ": {constraint}"),
        }
    }
}
