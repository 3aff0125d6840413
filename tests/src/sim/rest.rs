//! When a world is at rest, and what is demanded of it then: everything where it belongs, nothing
//! left to plan, replicas equal, the log replayed in other batches and restored from snapshots to
//! the same end.

use std::collections::BTreeMap;

use state::State;
use state::choices::{CHOICES, Choice};
use state::epoch::Timestamp;
use state::node::{NodeStatus, Registration, Role};

use super::client::Client;
use super::replica::Replica;
use super::world::{QUIET_STEPS, STEP_MS, WORKERS, World};

impl World {
    /// Everything is where it belongs, and nothing was written for a while.
    pub(super) fn at_rest(&mut self) -> bool {
        if self.quiet_since.0 != self.log.len() {
            self.quiet_since = (self.log.len(), self.now);
        }
        self.now >= self.quiet_since.1 + QUIET_STEPS * STEP_MS && self.unrest().is_empty()
    }

    /// What is not yet as it should be; empty: nothing.
    pub(super) fn unrest(&self) -> String {
        let state = &self.oracle.reference;
        let mut found = Vec::new();
        let mut running = BTreeMap::new();
        for agent in self.agents.iter().filter(|agent| agent.alive) {
            for (channel, job) in &agent.jobs {
                running.entry(channel).or_insert_with(Vec::new).push((agent.session, job.term));
            }
        }
        for channel in state.channels() {
            let owner = channel.phase.owner();
            let watched = matches!(channel.phase, state::channel::Phase::Watched { .. });
            let runs = running.remove(&channel.spec.name).unwrap_or_default();
            if !watched || runs != [(owner, channel.term)] {
                let (name, phase) = (&channel.spec.name, channel.phase.kind());
                found.push(format!("{name} is {phase}, owner {owner:?}, run by {runs:?}"));
            }
        }
        found.extend(running.keys().map(|channel| format!("{channel} runs and is unknown")));
        found.extend(uneven(state));
        // One data worker is gone for good, and one worker serves queries.
        if state.nodes().count() != WORKERS {
            found.push(format!("{} sessions are known", state.nodes().count()));
        }
        let now = Timestamp(state.now().0 + 600_000);
        let view = planner::View { state, term: self.term, now };
        let plan = planner::plan(&view, &planner::Budget { moves_max: 100 });
        if plan.decision.is_some() {
            let names = CHOICES.map(|choice| state.choice(choice));
            found.push(format!("{} under {names:?}", plan.report));
        }
        found.extend(state.effects().map(|(channel, former)| format!("{channel} had {former}")));
        if self.members.iter().any(|member| member.replica.applied < self.log.len()) {
            found.push("a replica is behind".to_owned());
        }
        if !self.clients.iter().all(Client::idle) {
            found.push("a client waits".to_owned());
        }
        found.join("; ")
    }

    /// The whole log once more, in other batches, must give the same.
    pub(super) fn replay_from_nothing(&mut self) {
        let mut replica = Replica::new();
        let (log, record) = (&self.log, &self.oracle.record);
        if let Err(detail) = replica.replay_resplit(log, log.len(), record, &mut self.rng) {
            self.oracle.violated("replicas are equal", format!("replayed: {detail}"));
        }
        for member in &mut self.members {
            member.replica.take_snapshot();
            let snapshot = member.replica.snapshot.clone();
            let restored = member.replica.restart(snapshot);
            let same = member.replica.state.digest() == self.oracle.reference.digest();
            if restored.is_err() || !same {
                self.oracle.violated("snapshots restore", format!("{restored:?}"));
            }
        }
    }
}

/// Counts of candidates that differ by more than one although load is to be evened out.
pub(super) fn uneven(state: &State) -> Option<String> {
    let candidates = state.nodes().filter(|node| {
        let Registration { role, name, .. } = &node.registration;
        node.status == NodeStatus::Up && *role == Role::Data && !state.is_frozen(name)
    });
    let counts: Vec<u32> = candidates.map(|node| state.counts_of(node.node).total()).collect();
    // The other policies may leave counts uneven, or have other aims.
    let evens = ["spread", "average_v2", "pchannel_count_fair"];
    let evened = state.policy().auto_balance && evens.contains(&state.choice(Choice::Balance));
    let spread = counts.iter().max()?.abs_diff(*counts.iter().min()?);
    (evened && spread > 1).then(|| format!("counts are {counts:?}"))
}
