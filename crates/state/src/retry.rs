//! Memory of requests that a retry must not apply twice (ruling 12). Only intents that are not
//! idempotent by nature are remembered; elsewhere the request id is for the history alone.
//! Called by `apply` around the handler.

use crate::apply::Tx;
use crate::command::{Command, Request, Retry};
use crate::epoch::Revision;
use crate::event::Event;
use crate::limits;
use crate::outcome::{Rejection, limit};

/// The request's id, if this command is one to remember.
pub(crate) fn applies(request: &Request) -> Option<Retry> {
    match request.command {
        Command::RemoveChannel { .. }
        | Command::MarkDropped { claim: None, .. }
        | Command::DeregisterCleaner { .. }
        | Command::SetPolicy { .. } => request.retry,
        _ => None,
    }
}

/// The revision at which it was applied, if it was.
pub(crate) fn recall(tx: &Tx<'_>, retry: Retry) -> Result<Option<Revision>, Rejection> {
    if let Some(remembered) = tx.state().remembered(&retry.request_id) {
        return Ok(Some(remembered.revision));
    }
    let (issued, now) = (retry.issued_at, tx.now());
    if now.since(issued) > limits::REQUEST_AGE_MS_MAX {
        return Err(Rejection::RequestTooOld { issued, now });
    }
    // From the far future it would be remembered for ever.
    let ahead = issued.since(now);
    limit("milliseconds that the request is ahead", ahead, limits::REQUEST_AGE_MS_MAX)?;
    let index = &tx.state().index().requests;
    let oldest_ended = index
        .get_min()
        .is_some_and(|(issued_at, _)| now.since(*issued_at) > limits::REQUEST_AGE_MS_MAX);
    if index.len() >= limits::REQUESTS_MAX && !oldest_ended {
        return Err(Rejection::too_many("remembered requests", index.len(), limits::REQUESTS_MAX));
    }
    Ok(None)
}

/// Keeps the outcome, after the handler emitted.
pub(crate) fn remember(tx: &mut Tx<'_>, retry: Retry) {
    let Retry { request_id, issued_at } = retry;
    tx.emit(Event::RequestRemembered { request_id, issued_at });
}
