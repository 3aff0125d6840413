//! What a worker says it runs although it is not told to: it is told to stop, at each report until
//! it does (B-48, A-45). Pure but for the counter. Used by `session` only.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use proto::v1;
use state::State;
use state::ids::ChannelName;
use state::node::NodeRef;
use tokio::time::Instant;
use tracing::warn;

/// Between two log lines of one session.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// The channels in this list that the node does not own, in the order of the list.
///
/// A channel it owns under another term is not among them: the node has that directive, and stops
/// the old term before it starts the new one (N-3).
#[must_use]
pub fn of(state: &State, node: NodeRef, running: &[v1::Running]) -> Vec<String> {
    let strays = |running: &&v1::Running| {
        let owner = ChannelName::new(&running.channel)
            .ok()
            .and_then(|name| state.channel(&name)?.phase.owner());
        owner != Some(node)
    };
    running.iter().filter(strays).map(|running| running.channel.clone()).collect()
}

/// Tells people of them: a counter for all, a line now and then for each session.
#[derive(Debug, Default)]
pub struct Told {
    last: Option<Instant>,
}

impl Told {
    /// Counts, and logs unless it did so lately. True when it logged.
    pub fn tell(&mut self, counter: &AtomicU64, node: NodeRef, strays: &[String]) -> bool {
        counter.fetch_add(u64::try_from(strays.len()).unwrap_or(u64::MAX), Ordering::Relaxed);
        let now = Instant::now();
        if self.last.is_some_and(|last| now.duration_since(last) < TELL_EVERY) {
            return false;
        }
        self.last = Some(now);
        warn!(%node, count = strays.len(), first = strays.first(), "runs what it is not told to");
        true
    }
}
