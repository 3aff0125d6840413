//! Judges a log at open: reads every entry, compares the mark, the vote and the snapshot, and
//! refuses rather than start with less than was acknowledged. Called by `start.rs` only.

use std::path::Path;

use bytes::Bytes;

use crate::error::StartError;
use crate::log::backend::{LogBackend, LogError, Mark, MarkStore, MetaKey};
use crate::log::cache::Cache;
use crate::log::record::{Ballot, Kind, Position, decode_entry, decode_small};

/// A log that was read completely and found whole.
pub(crate) struct Opened {
    pub(crate) vote: Option<Ballot>,
    pub(crate) committed: Option<Position>,
    pub(crate) purged: Option<Position>,
    pub(crate) last: Option<Position>,
    pub(crate) mark: Mark,
    pub(crate) cache: Cache,
}

/// Reads and judges the log under `dir`. `snapshot` is the newest snapshot that was restored.
///
/// A snapshot ahead of the log means that a crash came between installing and purging: the purge
/// is finished here.
pub(crate) fn open_log(
    dir: &Path,
    backend: &dyn LogBackend,
    marks: &mut dyn MarkStore,
    snapshot: Option<Position>,
    cache_bytes: usize,
) -> Result<Opened, StartError> {
    let fail = |error| start_error(dir, error);
    let mark = marks.read().map_err(fail)?;
    let mut opened = read_all(backend, mark, snapshot, cache_bytes).map_err(fail)?;
    if mark.is_none() {
        if opened.vote.is_some() || opened.last.is_some() {
            return Err(damaged(dir, "the high-water mark beside it is missing"));
        }
        opened.mark.sequence = 1;
        marks.write(&opened.mark).map_err(fail)?;
    }
    judge_purge(dir, &opened, snapshot)?;
    if let Some(snapshot) = snapshot {
        finish_purge(backend, marks, &mut opened, snapshot).map_err(fail)?;
    }
    judge_end(dir, &opened, snapshot)?;
    if let Some(purged) = opened.purged {
        backend.free(purged.index).map_err(fail)?;
    }
    Ok(opened)
}

/// What the walk over all entries remembers.
struct Walk {
    next: u64,
    last: Option<Position>,
    at_mark: Option<Position>,
    at_snapshot: Option<Position>,
    cache: Cache,
}

impl Walk {
    fn visit(
        &mut self,
        index: u64,
        record: &Bytes,
        mark: Option<u64>,
        snapshot: Option<u64>,
    ) -> Result<(), LogError> {
        let bad = |what: String| Err(LogError::Damaged(what));
        let entry = match decode_entry(record) {
            Ok(entry) => entry,
            Err(error) => return bad(format!("entry {index}: {error}")),
        };
        let position = Position::of(&entry.log_id);
        if position.index != index {
            return bad(format!("entry {index} says it is {}", position.index));
        }
        if index != self.next {
            return bad(format!("entry {} is missing before entry {index}", self.next));
        }
        if self.last.is_some_and(|last| last.term > position.term) {
            return bad(format!("entry {index} is of an older term than the one before"));
        }
        if mark == Some(index) {
            self.at_mark = Some(position);
        }
        if snapshot == Some(index) {
            self.at_snapshot = Some(position);
        }
        self.next = index.saturating_add(1);
        self.last = Some(position);
        self.cache.push(entry);
        self.cache.written(self.next);
        Ok(())
    }
}

fn read_all(
    backend: &dyn LogBackend,
    mark: Option<Mark>,
    snapshot: Option<Position>,
    cache_bytes: usize,
) -> Result<Opened, LogError> {
    let vote = meta::<Ballot>(backend, MetaKey::Vote, Kind::BALLOT)?;
    let committed = meta::<Position>(backend, MetaKey::Committed, Kind::POSITION)?;
    let purged = meta::<Position>(backend, MetaKey::Purged, Kind::POSITION)?;
    let next = purged.map_or(0, |purged| purged.index.saturating_add(1));
    let cache = Cache::new(cache_bytes);
    let mut walk = Walk { next, last: purged, at_mark: None, at_snapshot: None, cache };
    let mark_at = mark.and_then(|mark| mark.position);
    let mark_index = mark_at.map(|at| at.index);
    let snapshot_index = snapshot.map(|at| at.index);
    backend
        .scan(next, &mut |index, record| walk.visit(index, &record, mark_index, snapshot_index))?;
    // A log whose entry at the snapshot is another one is a left-over of an install.
    let stale = walk.at_snapshot.is_some() && walk.at_snapshot != snapshot;
    if !stale && walk.at_mark.is_some() && walk.at_mark != mark_at {
        return Err(LogError::Damaged(format!(
            "entry {} is not the one that the high-water mark names",
            mark_index.unwrap_or_default()
        )));
    }
    Ok(Opened {
        vote,
        committed,
        purged,
        last: if stale { None } else { walk.last },
        mark: mark.unwrap_or_default(),
        cache: walk.cache,
    })
}

fn finish_purge(
    backend: &dyn LogBackend,
    marks: &mut dyn MarkStore,
    opened: &mut Opened,
    snapshot: Position,
) -> Result<(), LogError> {
    if opened.purged.is_some_and(|purged| purged.index >= snapshot.index)
        || opened.last.is_some_and(|last| last.index >= snapshot.index)
    {
        return Ok(());
    }
    let from = opened.purged.map_or(0, |purged| purged.index.saturating_add(1));
    let above = opened.mark.position.is_none_or(|at| at.index < snapshot.index);
    if above || opened.last.is_none() {
        // Before entries vanish the mark must not ask for them.
        opened.mark.sequence = opened.mark.sequence.saturating_add(1);
        opened.mark.position = Some(snapshot);
        marks.write(&opened.mark)?;
    }
    backend.truncate(from)?;
    backend
        .save_meta(MetaKey::Purged, &crate::log::record::encode_small(Kind::POSITION, &snapshot))?;
    backend.sync()?;
    opened.cache.truncate(0);
    opened.purged = Some(snapshot);
    opened.last = Some(snapshot);
    Ok(())
}

fn judge_purge(dir: &Path, opened: &Opened, snapshot: Option<Position>) -> Result<(), StartError> {
    let Some(purged) = opened.purged else { return Ok(()) };
    if snapshot.is_some_and(|snapshot| snapshot.index >= purged.index) {
        return Ok(());
    }
    let detail = match snapshot {
        Some(snapshot) => format!(
            "the log begins behind entry {}, but the newest whole snapshot ends at entry {}",
            purged.index, snapshot.index
        ),
        None => format!(
            "the log begins behind entry {}, and no whole snapshot is left to begin with",
            purged.index
        ),
    };
    Err(damaged(dir, &detail))
}

fn judge_end(dir: &Path, opened: &Opened, snapshot: Option<Position>) -> Result<(), StartError> {
    let end = opened.last.max_by_index(snapshot);
    let reaches = |wanted: Option<Position>| {
        wanted.is_none_or(|wanted| end.is_some_and(|end| end.index >= wanted.index))
    };
    let end_text = end.map_or("nowhere".into(), |end| format!("at entry {}", end.index));
    if let Some(position) = opened.mark.position.filter(|at| !reaches(Some(*at))) {
        let index = position.index;
        return Err(damaged(
            dir,
            &format!("it ends {end_text}, but entry {index} was written and acknowledged"),
        ));
    }
    if let Some(position) = opened.committed.filter(|at| !reaches(Some(*at))) {
        let index = position.index;
        return Err(damaged(dir, &format!("it ends {end_text}, but entry {index} was committed")));
    }
    let votes = |wanted: Ballot| opened.vote.is_some_and(|vote| vote.covers(wanted));
    if opened.mark.ballot.is_some_and(|ballot| !votes(ballot)) {
        return Err(damaged(dir, "the newest vote is missing"));
    }
    let newest_term = opened.last.map_or(0, |last| last.term);
    if opened.vote.map_or(0, |vote| vote.term) < newest_term {
        return Err(damaged(dir, "the vote is older than the last entry"));
    }
    Ok(())
}

trait MaxByIndex {
    fn max_by_index(self, other: Self) -> Self;
}

impl MaxByIndex for Option<Position> {
    fn max_by_index(self, other: Self) -> Self {
        [self, other].into_iter().flatten().max_by_key(|position| position.index)
    }
}

fn meta<T: for<'a> serde::Deserialize<'a>>(
    backend: &dyn LogBackend,
    key: MetaKey,
    kind: Kind,
) -> Result<Option<T>, LogError> {
    let Some(record) = backend.read_meta(key)? else { return Ok(None) };
    decode_small(kind, &record)
        .map(Some)
        .map_err(|error| LogError::Damaged(format!("the {} record: {error}", key.as_str())))
}

fn damaged(dir: &Path, detail: &str) -> StartError {
    StartError::Damaged { file: dir.to_owned(), detail: detail.to_owned() }
}

/// The error of a start for one of the log.
pub(crate) fn start_error(dir: &Path, error: LogError) -> StartError {
    match error {
        LogError::Io(source) => {
            StartError::Io { what: format!("cannot use {}", dir.display()), source }
        }
        LogError::Busy => StartError::Locked { dir: dir.to_owned() },
        other => damaged(dir, &other.to_string()),
    }
}
