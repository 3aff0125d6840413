//! Turns what the core of raft tells into who leads. A leader counts as such only once the first
//! entry of its own term is applied: before, it may not know all that was committed.

use std::sync::Arc;

use openraft::ServerState;
use openraft::async_runtime::watch::WatchReceiver;

use crate::log::record::Position;
use crate::replica::Replica;
use crate::status::Leadership;
use crate::types::{Metrics, Raft, term_of};

/// Runs until the member stops.
pub(crate) async fn follow(replica: Arc<Replica>, raft: Raft) {
    let mut metrics = raft.metrics();
    let mut applied = replica.sight.applied.subscribe();
    let mut members_at = None;
    loop {
        let now = metrics.borrow_and_update().clone();
        if members_at.as_ref() != Some(now.membership_config.log_id()) {
            members_at = Some(*now.membership_config.log_id());
            replica.sight.learn(&now.membership_config);
        }
        let leadership = judge(&replica, &now, *applied.borrow_and_update());
        let waits =
            matches!((&leadership, now.state), (Leadership::Unknown { .. }, ServerState::Leader));
        replica.leadership.send_if_modified(|present| {
            let changed = *present != leadership;
            if changed {
                tracing::info!(?leadership, "leadership");
                *present = leadership;
            }
            changed
        });
        tokio::select! {
            biased;
            () = replica.tasks_end.cancelled() => return,
            changed = metrics.changed() => if changed.is_err() { break },
            changed = applied.changed(), if waits => if changed.is_err() { break },
        }
        if now.running_state.is_err() {
            break;
        }
    }
    replica.leadership.send_if_modified(|present| {
        let term = term(present);
        let changed = *present != Leadership::Unknown { term };
        *present = Leadership::Unknown { term };
        changed
    });
}

fn term(leadership: &Leadership) -> u64 {
    match leadership {
        Leadership::Leader { term }
        | Leadership::Follower { term, .. }
        | Leadership::Unknown { term } => *term,
    }
}

fn judge(replica: &Replica, metrics: &Metrics, applied: Option<Position>) -> Leadership {
    let term = metrics.current_term;
    let own = applied.is_some_and(|applied| applied.term == term)
        || metrics.last_applied.as_ref().is_some_and(|last| term_of(last) == term);
    match metrics.current_leader {
        Some(leader) if leader == replica.me.member => {
            if metrics.state == ServerState::Leader && own {
                Leadership::Leader { term }
            } else {
                Leadership::Unknown { term }
            }
        }
        Some(leader) => match replica.sight.member(leader) {
            Some(leader) => Leadership::Follower { term, leader },
            None => Leadership::Unknown { term },
        },
        None => Leadership::Unknown { term },
    }
}
