//! Clean-up after former owners. The list is derived from the state and repeated until EffectDone
//! is applied. While no cleaner is registered there is nothing to wait for: EffectDone is proposed
//! at once (ruling 14).

use std::sync::Arc;
use std::time::Duration;

use state::command::{Command, OwnerClaim};
use tokio::time::sleep;
use tracing::warn;

use super::Parts;
use crate::limits;

/// After a refusal by the group, before the next try.
const RETRY: Duration = Duration::from_millis(100);

/// The duty: proposes EffectDone for what waits to be cleaned up.
pub async fn run(parts: Parts) {
    let mut views = parts.views.subscribe();
    loop {
        let state = Arc::clone(&views.borrow_and_update().state);
        let requests: Vec<_> = state
            .effects()
            .take(limits::DUTIES_BATCH_MAX)
            .map(|(channel, former)| {
                let former = OwnerClaim { node: former.node, term: former.term };
                Command::EffectDone { channel: channel.clone(), former }
            })
            .map(|command| parts.request("effects", command))
            .collect();
        if requests.is_empty() {
            if views.changed().await.is_err() {
                return;
            }
        } else if let Err(error) = parts.record(requests).await {
            warn!(%error, "clean-ups were not recorded");
            sleep(RETRY).await;
        }
    }
}
