//! Wakes the stream of each node whose directives may have changed. The directives themselves are
//! derived from the state by the stream: nothing is queued here that could be lost (ADR 0004).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use state::State;
use state::epoch::Revision;
use state::ids::NodeId;
use tokio::sync::Notify;

use super::{Parts, Reign, lock};
use crate::history::{After, Recorded};
use crate::limits;

/// The nodes whose streams are open here.
#[derive(Debug, Default)]
pub struct Dispatch {
    waiting: Mutex<BTreeMap<NodeId, Arc<Notify>>>,
}

impl Dispatch {
    /// A stream of this node is open; the handle is notified when its directives may have changed.
    /// A newer stream of the same node takes the place of an older one.
    #[must_use]
    pub fn join(&self, node: NodeId) -> Arc<Notify> {
        let notify = Arc::new(Notify::new());
        lock(&self.waiting).insert(node, Arc::clone(&notify));
        notify
    }

    /// The stream that got this handle has ended.
    pub fn leave(&self, node: NodeId, notify: &Arc<Notify>) {
        let mut waiting = lock(&self.waiting);
        if waiting.get(&node).is_some_and(|held| Arc::ptr_eq(held, notify)) {
            waiting.remove(&node);
        }
    }

    /// Streams that are open.
    #[must_use]
    pub fn streams(&self) -> usize {
        lock(&self.waiting).len()
    }

    fn wake(&self, nodes: &BTreeSet<NodeId>) {
        let waiting = lock(&self.waiting);
        nodes.iter().filter_map(|node| waiting.get(node)).for_each(|notify| notify.notify_one());
    }

    fn wake_all(&self) {
        lock(&self.waiting).values().for_each(|notify| notify.notify_one());
    }
}

/// The nodes that these records speak of, directly or through a channel they own.
fn touched(state: &State, records: &[Recorded]) -> BTreeSet<NodeId> {
    let events = records.iter().flat_map(|entry| &entry.record.events);
    let mut nodes = BTreeSet::new();
    for event in events {
        nodes.extend(event.node());
        // A release names only the channel; a later change of owner has an event of its own.
        let owner = event
            .channel()
            .and_then(|name| state.channel(name))
            .and_then(|channel| channel.phase.owner());
        nodes.extend(owner.map(|owner| owner.node));
    }
    nodes
}

/// The duty: follows the history and wakes who is concerned.
pub async fn run(parts: Parts, reign: Arc<Reign>) {
    let mut views = parts.views.subscribe();
    let mut seen: Revision = views.borrow_and_update().state.revision();
    reign.dispatch.wake_all();
    loop {
        if views.changed().await.is_err() {
            return;
        }
        let state = Arc::clone(&views.borrow_and_update().state);
        while seen < state.revision() {
            match parts.history.after(seen, limits::DUTIES_BATCH_MAX) {
                After::Records(records) => {
                    let Some(last) = records.last() else { break };
                    seen = last.record.revision;
                    reign.dispatch.wake(&touched(&state, &records));
                }
                After::Gone { .. } => {
                    seen = state.revision();
                    reign.dispatch.wake_all();
                }
            }
        }
    }
}
