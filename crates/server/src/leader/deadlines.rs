//! Proposes the timeouts of directives when they are due. Deadlines are in the state; only the
//! waiting is here.

use std::time::Duration;

use tokio::time::sleep;
use tracing::warn;

use super::Parts;
use crate::limits;

/// Without a deadline, look again after this long; a change of the state wakes earlier.
const REST: Duration = Duration::from_secs(3_600);
/// After a refusal by the group, before the next try.
const RETRY: Duration = Duration::from_millis(100);

/// The duty: sleeps until the next deadline, proposes what is due.
pub async fn run(parts: Parts) {
    let mut views = parts.views.subscribe();
    loop {
        let state = std::sync::Arc::clone(&views.borrow_and_update().state);
        let wait = state.next_deadline().map_or(REST, |due| parts.clock.until(due));
        if wait.is_zero() {
            let due = state.due(parts.clock.stamp(), limits::DUTIES_BATCH_MAX);
            let requests: Vec<_> =
                due.into_iter().map(|command| parts.request("deadlines", command)).collect();
            if !requests.is_empty() {
                if let Err(error) = parts.record(requests).await {
                    warn!(%error, "timeouts were not recorded");
                    sleep(RETRY).await;
                }
                continue;
            }
        }
        // A deadline inside this millisecond is judged in the next one.
        let wait = wait.max(Duration::from_millis(1));
        tokio::select! {
            changed = views.changed() => if changed.is_err() { return },
            () = sleep(wait) => {}
        }
    }
}
