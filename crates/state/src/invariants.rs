//! What must hold after every command: one function per invariant (I-1 to I-11 and
//! some more). Called by tests after each step and once after each restore.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::channel::{Channel, Phase};
use crate::directive::{DirectiveKind, directives_for};
use crate::epoch::Revision;
use crate::ids::NodeId;
use crate::limits;
use crate::node::{NodeRef, NodeStatus};
use crate::state::State;

/// An invariant that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Name of the function that found it.
    pub invariant: &'static str,
    /// Where, and what is wrong.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.invariant, self.detail)
    }
}

type Check = fn(&State, &mut Vec<String>);

const OF_RECORDS: [(&str, Check); 12] = [
    ("channel_is_kept_under_its_name", channel_is_kept_under_its_name),
    ("owner_is_a_live_session", owner_is_a_live_session),
    ("numbers_are_not_ahead", numbers_are_not_ahead),
    ("a_name_is_known_or_removed", a_name_is_known_or_removed),
    ("dropping_is_only_while_released", dropping_is_only_while_released),
    ("deadline_goes_with_operation", deadline_goes_with_operation),
    ("former_owners_exist", former_owners_exist),
    ("every_channel_is_counted_once", every_channel_is_counted_once),
    ("times_are_not_ahead", times_are_not_ahead),
    ("one_live_session_per_worker", one_live_session_per_worker),
    ("down_sessions_are_kept_for_a_reason", down_sessions_are_kept_for_a_reason),
    ("bounds_hold", bounds_hold),
];

const OF_DERIVED: [(&str, Check); 3] = [
    ("indexes_equal_recomputation", indexes_equal_recomputation),
    ("digest_equals_recomputation", digest_equals_recomputation),
    ("directives_cover_owned_channels", directives_cover_owned_channels),
];

/// All invariants that do not hold; empty for every state that commands can lead to. O(n log n).
#[must_use]
pub fn check(state: &State) -> Vec<Violation> {
    let mut violations = check_records(state);
    violations.extend(run(state, &OF_DERIVED));
    violations
}

/// Those of the records alone; what is derived was just computed from them.
pub(crate) fn check_records(state: &State) -> Vec<Violation> {
    run(state, &OF_RECORDS)
}

fn run(state: &State, checks: &[(&'static str, Check)]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (invariant, check) in checks {
        let mut details = Vec::new();
        check(state, &mut details);
        violations.extend(details.into_iter().map(|detail| Violation { invariant, detail }));
    }
    violations
}

/// I-1. That Buffered and only Buffered has no owner is a property of the type `Phase`.
fn channel_is_kept_under_its_name(state: &State, out: &mut Vec<String>) {
    for (name, channel) in state.channel_records() {
        if *name != channel.spec.name {
            out.push(format!("{} is kept as {name}", channel.spec.name));
        }
    }
    for (node, session) in state.node_records() {
        if *node != session.node {
            out.push(format!("{} is kept as {node}", session.node));
        }
    }
}

/// I-2 and I-3.
fn owner_is_a_live_session(state: &State, out: &mut Vec<String>) {
    for channel in state.channels() {
        if let Some(owner) = channel.phase.owner()
            && state.live(owner).is_none()
        {
            out.push(format!("{} is owned by {owner}, which is not live", channel.spec.name));
        }
    }
}

/// I-4, and the same for sessions.
fn numbers_are_not_ahead(state: &State, out: &mut Vec<String>) {
    let revision = state.revision();
    for channel in state.channels() {
        let name = &channel.spec.name;
        let (term, op) = (channel.term, channel.phase.op());
        if term.revision() > revision || channel.added > term.revision() {
            out.push(format!("{name} has {term}, added {}, state {revision}", channel.added));
        }
        if op.is_some_and(|op| op.revision() > revision || op.revision() < term.revision()) {
            out.push(format!("{name} has {op:?} under {term}, state {revision}"));
        }
        for former in &channel.former_owners {
            if former.term >= channel.term {
                out.push(format!("{name} at {term} has the former owner {former}"));
            }
        }
    }
    for node in state.nodes() {
        if node.epoch.revision() > revision || node.node.0 >= state.scalars().next_node {
            out.push(format!("{} is ahead of the state at {revision}", node.node_ref()));
        }
    }
    for (name, dropped) in state.drops() {
        let (removed, term) = (dropped.removed, dropped.last_term);
        if removed > revision || term.revision() > removed {
            out.push(format!("{name} removed at {removed} under {term}, state {revision}"));
        }
    }
}

/// I-4: a removed name that is announced again has left the list of removed ones, with a higher
/// term.
fn a_name_is_known_or_removed(state: &State, out: &mut Vec<String>) {
    for (name, _) in state.drops() {
        if state.channel(name).is_some() {
            out.push(format!("{name} is both known and removed"));
        }
    }
}

/// I-5. In other phases it cannot be written down; here a target would say that it goes on.
fn dropping_is_only_while_released(state: &State, out: &mut Vec<String>) {
    for channel in state.channels() {
        if let Phase::ToRelease { dropping: true, planned: Some(planned), .. } = channel.phase {
            out.push(format!("{} is being dropped and planned for {planned}", channel.spec.name));
        }
    }
}

/// I-6.
fn deadline_goes_with_operation(state: &State, out: &mut Vec<String>) {
    let running = |channel: &Channel| {
        matches!(channel.phase, Phase::ToWatch { .. } | Phase::ToRelease { .. })
    };
    let mut earliest = None;
    for channel in state.channels() {
        let deadline = state.deadline(channel);
        if deadline.is_some() != running(channel) {
            out.push(format!("{} is {} with {deadline:?}", channel.spec.name, channel.phase));
        }
        earliest = earliest.into_iter().chain(deadline).min();
    }
    if state.next_deadline() != earliest {
        out.push(format!("next is {:?}, earliest is {earliest:?}", state.next_deadline()));
    }
}

/// I-7.
fn indexes_equal_recomputation(state: &State, out: &mut Vec<String>) {
    if *state.index() != state.index_of_records() {
        out.push(String::from("an index differs from its recomputation"));
    }
}

/// Ruling 9; with it, I-8 is a comparison of digests around a command.
fn digest_equals_recomputation(state: &State, out: &mut Vec<String>) {
    let (kept, recomputed) = (state.digest(), state.recompute_digest());
    if kept != recomputed {
        out.push(format!("kept {kept}, recomputed {recomputed}"));
    }
}

/// I-9.
fn former_owners_exist(state: &State, out: &mut Vec<String>) {
    let of_channels = state.channels().map(|channel| (&channel.spec.name, &channel.former_owners));
    let of_drops = state.drops().map(|(name, dropped)| (name, &dropped.former_owners));
    for (name, former_owners) in of_channels.chain(of_drops) {
        for former in former_owners {
            let session = state.node(former.node.node);
            if session.is_none_or(|session| session.epoch != former.node.epoch) {
                out.push(format!("{name} has the former owner {former}, which is gone"));
            }
        }
        if !former_owners.is_sorted_by(|a, b| a < b) {
            out.push(format!("{name} has former owners out of order"));
        }
    }
}

/// I-10.
fn every_channel_is_counted_once(state: &State, out: &mut Vec<String>) {
    let owned: usize = state.nodes().map(|node| state.channels_of(node.node).count()).sum();
    let (buffered, count) = (state.buffered().count(), state.channel_count());
    if owned.saturating_add(buffered) != count {
        out.push(format!("{owned} owned and {buffered} buffered of {count}"));
    }
}

/// I-11: nothing is stamped later than the clock, so nothing is judged by an older one.
fn times_are_not_ahead(state: &State, out: &mut Vec<String>) {
    let now = state.now();
    if state.leader().started_at > now || state.last_activity() > now {
        out.push(format!("leader or activity is ahead of {now}"));
    }
    for channel in state.channels() {
        let started = match channel.phase {
            Phase::Buffered { .. } | Phase::Watched { .. } => channel.placed_at,
            Phase::ToWatch { started_at, .. } | Phase::ToRelease { started_at, .. } => started_at,
        };
        if started > now || channel.placed_at > now {
            out.push(format!("{} started at {started}, now {now}", channel.spec.name));
        }
    }
    for node in state.nodes() {
        if node.registered_at > now {
            out.push(format!("{} registered at {}, now {now}", node.node, node.registered_at));
        }
    }
}

/// Ruling 5: one live session per name and per address.
fn one_live_session_per_worker(state: &State, out: &mut Vec<String>) {
    let (mut names, mut addresses) = (BTreeMap::new(), BTreeMap::new());
    for node in state.nodes().filter(|node| node.status != NodeStatus::Down) {
        let registration = &node.registration;
        let same_name: Option<NodeId> = names.insert(&registration.name, node.node);
        let same_address: Option<NodeId> = addresses.insert(&registration.address, node.node);
        for other in same_name.into_iter().chain(same_address) {
            out.push(format!("{other} and {} are the same worker", node.node));
        }
    }
}

/// Ruling 14: a Down session stays while a channel names it, and no longer; it cools down for none.
fn down_sessions_are_kept_for_a_reason(state: &State, out: &mut Vec<String>) {
    let named: BTreeSet<NodeRef> = state.effects().map(|(_, former)| former.node).collect();
    for node in state.nodes() {
        if node.status == NodeStatus::Down && !named.contains(&node.node_ref()) {
            out.push(format!("{} is Down and nothing names it", node.node_ref()));
        }
    }
    for channel in state.channels() {
        for node in channel.cooldowns.keys() {
            if state.node(*node).is_none_or(|node| node.status == NodeStatus::Down) {
                out.push(format!("{} cools down for {}, but is gone", node, channel.spec.name));
            }
        }
    }
}

fn bounds_hold(state: &State, out: &mut Vec<String>) {
    let mut bound = |what: &str, value: usize, max: usize| {
        if value > max {
            out.push(format!("{value} {what}, at most {max}"));
        }
    };
    bound("nodes", state.node_count(), limits::NODES_MAX);
    bound("channels", state.channel_count(), limits::CHANNELS_MAX);
    bound("frozen workers", state.frozen_count(), limits::FROZEN_MAX);
    bound("remembered requests", state.requests().count(), limits::REQUESTS_MAX);
    let done = state.drops().filter(|(_, dropped)| dropped.former_owners.is_empty());
    bound("removed channels", done.count(), limits::DROPS_MAX);
    for channel in state.channels() {
        bound("former owners", channel.former_owners.len(), limits::FORMER_OWNERS_MAX);
    }
    if state.scalars().first_placed.is_some_and(|first: Revision| first > state.revision()) {
        out.push(String::from("the first placement is ahead of the revision"));
    }
}

/// What a node is told covers exactly what it owns, and is the same when derived twice.
fn directives_cover_owned_channels(state: &State, out: &mut Vec<String>) {
    for node in state.nodes() {
        let directives = directives_for(state, node.node);
        if directives != directives_for(state, node.node) {
            out.push(format!("directives of {} differ when derived again", node.node));
        }
        let told = directives.iter().map(|directive| &directive.channel);
        if !told.eq(state.channels_of(node.node)) {
            out.push(format!("{} is not told of all it owns", node.node));
        }
        for directive in &directives {
            let phase = state.channel(&directive.channel).map(|channel| &channel.phase);
            let released = matches!(phase, Some(Phase::ToRelease { .. }));
            if released != (directive.kind == DirectiveKind::Release) {
                out.push(format!("{} is told the wrong thing", node.node));
            }
        }
    }
}
