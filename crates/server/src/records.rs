//! Carries event records from memory to the event files, behind everything else. Losing it loses
//! only history.

use std::sync::Arc;
use std::time::Duration;

use state::epoch::Revision;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::history::{After, History};
use crate::history_files::HistoryFiles;
use crate::view::Views;

/// Records written at a time.
const BATCH: usize = 2_048;
/// After a write, others get this long before the next one: the files may lag, the commit path may
/// not.
const PAUSE: Duration = Duration::from_millis(200);

/// Keeps the files up to date until `stop`.
pub(crate) async fn keep(
    history: Arc<History>,
    files: Arc<HistoryFiles>,
    views: Views,
    stop: CancellationToken,
) {
    let mut changes = views.subscribe();
    let mut written = files.last().unwrap_or_default();
    loop {
        let last = changes.borrow_and_update().state.revision();
        let stopping = stop.is_cancelled();
        while written < last {
            match write(&history, &files, written).await {
                Some(next) if next > written => written = next,
                _ => break,
            }
        }
        if stopping {
            return;
        }
        tokio::select! {
            () = stop.cancelled() => continue,
            changed = changes.changed() => if changed.is_err() { return },
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
}

/// Writes what follows `written`; answers how far the files are then. None: the disk refuses.
async fn write(
    history: &Arc<History>,
    files: &Arc<HistoryFiles>,
    written: Revision,
) -> Option<Revision> {
    let records = match history.after(written, BATCH) {
        After::Records(records) => records,
        // Memory no longer reaches back to the files: they begin anew with what memory has.
        After::Gone { oldest } => {
            match history.after(Revision(oldest.0.saturating_sub(1)), BATCH) {
                After::Records(records) => records,
                After::Gone { .. } => return None,
            }
        }
    };
    let last = records.last()?.record.revision;
    let files = Arc::clone(files);
    let done = tokio::task::spawn_blocking(move || files.append(&records)).await.ok()?;
    match done {
        Ok(()) => Some(last),
        Err(error) => {
            warn!(%error, "event files cannot be written; the history beyond memory is cut");
            None
        }
    }
}
