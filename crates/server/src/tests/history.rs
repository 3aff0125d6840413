//! The ring and the event files: contiguous, bounded, and honest about what they no longer hold.

use std::sync::Arc;

use state::command::Command;
use state::epoch::{Revision, Timestamp};
use state::event::EventRecord;
use state::outcome::Outcome;

use super::samples::{apply, led, spec};
use crate::history::{After, History, Recorded};
use crate::history_files::HistoryFiles;
use crate::limits;

/// Real records: one for each channel announced.
fn records(count: u64) -> Vec<Arc<EventRecord>> {
    let mut state = led();
    (0..count)
        .map(|at| {
            let specs = vec![spec(&format!("c{at}"))];
            match apply(&mut state, at, Command::WatchChannels(specs)) {
                Outcome::Accepted(receipt) => receipt.record,
                other => panic!("{other:?}"),
            }
        })
        .collect()
}

fn revisions(records: &[Recorded]) -> Vec<u64> {
    records.iter().map(|entry| entry.record.revision.0).collect()
}

#[test]
fn the_ring_gives_what_follows_a_revision_and_says_when_it_cannot() {
    let history = History::default();
    history.restored(Revision(1));
    for (at, record) in records(10).into_iter().enumerate() {
        history.push(u64::try_from(at).unwrap(), record);
    }
    let After::Records(all) = history.after(Revision(1), 100) else { panic!("gone") };
    assert_eq!(revisions(&all), (2..=11).collect::<Vec<_>>());
    let After::Records(some) = history.after(Revision(8), 2) else { panic!("gone") };
    assert_eq!(revisions(&some), vec![9, 10]);
    assert!(matches!(history.after(Revision(11), 5), After::Records(none) if none.is_empty()));
    assert!(
        matches!(history.after(Revision(0), 5), After::Gone { oldest } if oldest == Revision(2))
    );
    history.restored(Revision(500));
    assert!(matches!(history.after(Revision(11), 5), After::Gone { .. }));
}

#[test]
fn the_ring_is_bounded() {
    let history = History::default();
    let template = records(1).remove(0);
    let most = u64::try_from(limits::HISTORY_RECORDS_MAX).unwrap();
    for at in 1..=most + 10 {
        let mut record = (*template).clone();
        record.revision = Revision(at);
        record.at = Timestamp(at);
        history.push(at, Arc::new(record));
    }
    assert_eq!(history.bounds(), (Revision(most + 10), Some(Revision(11))));
}

#[test]
fn files_give_back_what_was_appended_over_a_restart_and_a_torn_end() {
    let dir = tempfile::tempdir().unwrap();
    let all: Vec<Recorded> = records(20)
        .into_iter()
        .map(|record| Recorded { index: record.revision.0 + 100, record })
        .collect();
    let files = HistoryFiles::open(dir.path().to_owned()).unwrap();
    files.append(&all[..10]).unwrap();
    files.append(&all[5..12]).unwrap();
    drop(files);
    // The process died while it wrote: half a record at the end.
    let last = std::fs::read_dir(dir.path()).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&last).unwrap();
    bytes.truncate(bytes.len() - 3);
    std::fs::write(&last, bytes).unwrap();
    let files = HistoryFiles::open(dir.path().to_owned()).unwrap();
    assert_eq!(files.last(), Some(Revision(12)));
    files.append(&all).unwrap();
    assert_eq!(revisions(&files.read(Revision(2), 100)), (2..=21).collect::<Vec<_>>());
    assert_eq!(files.read(Revision(7), 1)[0].index, 107);
    let newest = files.newest(3, |_| true);
    assert_eq!(revisions(&newest), vec![21, 20, 19]);
}

#[test]
fn a_gap_drops_what_was_kept_before_it() {
    let dir = tempfile::tempdir().unwrap();
    let all: Vec<Recorded> =
        records(20).into_iter().map(|record| Recorded { index: 1, record }).collect();
    let files = HistoryFiles::open(dir.path().to_owned()).unwrap();
    files.append(&all[..3]).unwrap();
    files.append(&all[10..]).unwrap();
    assert_eq!(files.oldest(), Some(Revision(12)));
    assert_eq!(revisions(&files.read(Revision(0), 100)), (12..=21).collect::<Vec<_>>());
}
