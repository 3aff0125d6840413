//! Clean-up after former owners. The list is derived from the state and repeated until EffectDone
//! is applied. While no cleaner is registered there is nothing to wait for: EffectDone is proposed
//! at once (ruling 14). Cleaners are told by their streams (`api::cleaners`).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use state::State;
use state::command::{Command, OwnerClaim};
use state::ids::NodeName;
use state::outcome::Outcome;
use tokio::time::sleep;
use tracing::warn;

use super::{Parts, Reign, lock};
use crate::limits;

/// After a refusal by the group, before the next try.
const RETRY: Duration = Duration::from_millis(100);

/// Clean-ups that were completed here, over all leaderships of this process.
#[derive(Debug, Default)]
pub struct Counters {
    /// At once, because no cleaner was registered.
    pub at_once: AtomicU64,
    /// On the word of a cleaner, or of an operator.
    pub told: AtomicU64,
}

/// The streams of cleaners that are open in this leadership.
#[derive(Debug, Default)]
pub struct Streams {
    open: Mutex<BTreeMap<NodeName, u32>>,
}

impl Streams {
    /// How many streams of this cleaner are open.
    #[must_use]
    pub fn of(&self, name: &NodeName) -> u32 {
        lock(&self.open).get(name).copied().unwrap_or_default()
    }

    /// How many are open at all.
    #[must_use]
    pub fn count(&self) -> u64 {
        lock(&self.open).values().copied().map(u64::from).sum()
    }
}

/// One open stream; it counts until this is dropped.
#[derive(Debug)]
pub struct Open {
    reign: Arc<Reign>,
    name: NodeName,
}

impl Open {
    /// A stream of this cleaner begins.
    #[must_use]
    pub fn begin(reign: &Arc<Reign>, name: &NodeName) -> Self {
        *lock(&reign.cleaners.open).entry(name.clone()).or_default() += 1;
        Self { reign: Arc::clone(reign), name: name.clone() }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut open = lock(&self.reign.cleaners.open);
        if let Some(count) = open.get_mut(&self.name) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                open.remove(&self.name);
            }
        }
    }
}

/// What the leader completes by itself: nothing while anyone is there to do it.
pub(crate) fn at_once(state: &State) -> Vec<Command> {
    if state.cleaners().next().is_some() {
        return Vec::new();
    }
    let done = |(channel, former): (&state::ids::ChannelName, state::channel::FormerOwner)| {
        let former = OwnerClaim { node: former.node, term: former.term };
        Command::EffectDone { channel: channel.clone(), former }
    };
    state.effects().take(limits::DUTIES_BATCH_MAX).map(done).collect()
}

/// The duty: proposes EffectDone for what nobody has to clean up.
pub async fn run(parts: Parts) {
    let mut views = parts.views.subscribe();
    loop {
        let commands = at_once(&views.borrow_and_update().state);
        if commands.is_empty() {
            if views.changed().await.is_err() {
                return;
            }
            continue;
        }
        let requests = commands.into_iter().map(|command| parts.request("effects", command));
        match parts.record(requests.collect()).await {
            Ok(done) => {
                let accepted = |outcome: &&Outcome| matches!(outcome, Outcome::Accepted(_));
                let accepted = done.outcomes.iter().filter(accepted).count();
                let accepted = u64::try_from(accepted).unwrap_or(u64::MAX);
                parts.cleanups.at_once.fetch_add(accepted, Ordering::Relaxed);
            }
            Err(error) => {
                warn!(%error, "clean-ups were not recorded");
                sleep(RETRY).await;
            }
        }
    }
}
