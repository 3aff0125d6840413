//! What a start refuses and what it says; what can be read while nothing runs.

use std::fs;

use super::counter::{Counter, View};
use super::group::Group;
use crate::offline::{LogBody, inspect_log, list_snapshots, open_snapshot};
use crate::{OfflineError, SectionReader, StartError, start};

fn refusal(group: &Group, change: impl FnOnce(&mut crate::Options)) -> StartError {
    let mut options = group.options(1);
    change(&mut options);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let machine = Box::new(Counter::new(View::default()));
    runtime.block_on(start(options, machine)).err().unwrap()
}

#[test]
fn a_start_says_why_it_is_refused() {
    let mut group = Group::three(|_| {});
    group.propose(1);
    let dir = group.node(1).dir.clone();
    let locked = refusal(&group, |_| {});
    assert!(matches!(locked, StartError::Locked { .. }), "{locked}");
    let taken = group.node(2).listen;
    group.stop(1);
    let busy = refusal(&group, |options| options.peer_listen = taken);
    assert!(matches!(busy, StartError::AddressInUse { address } if address == taken), "{busy}");
    let other = refusal(&group, |options| options.member = 7);
    assert!(matches!(other, StartError::OtherMember { found: 1, wanted: 7, .. }), "{other}");
    let format = fs::read_to_string(dir.join("FORMAT")).unwrap();
    fs::write(dir.join("FORMAT"), format.replace("format 1", "format 2")).unwrap();
    let newer = refusal(&group, |_| {});
    assert!(matches!(newer, StartError::NewerFormat { found: 2, known: 1, .. }), "{newer}");
    fs::write(dir.join("FORMAT"), format.replace("member 1", "member 2")).unwrap();
    let damaged = refusal(&group, |_| {});
    assert!(matches!(damaged, StartError::Damaged { .. }), "{damaged}");
    fs::write(dir.join("FORMAT"), &format).unwrap();
    let mark = fs::read(dir.join("high-water")).unwrap();
    fs::remove_file(dir.join("high-water")).unwrap();
    let lost = refusal(&group, |_| {});
    assert!(lost.to_string().contains("high-water"), "{lost}");
    fs::write(dir.join("high-water"), mark).unwrap();
    fs::rename(dir.join("log"), dir.join("gone")).unwrap();
    let empty = refusal(&group, |_| {});
    assert!(empty.to_string().contains("Replace or repair"), "{empty}");
    fs::remove_dir_all(dir.join("log")).unwrap();
    fs::rename(dir.join("gone"), dir.join("log")).unwrap();
    group.start(1).unwrap();
    let committed = group.propose(2);
    group.converge(committed.index);
}

#[test]
fn a_damaged_snapshot_is_passed_over_while_the_log_bridges_the_gap() {
    let mut group = Group::three(|options| options.keep_log_entries = 1000);
    let mut files = Vec::new();
    for value in 0..2 {
        let committed = group.propose(value);
        group.converge(committed.index);
        let taken = group.block(2, |handle| async move { handle.take_snapshot().await });
        files.push(taken.unwrap());
    }
    let committed = group.propose(5);
    group.converge(committed.index);
    group.stop(2);
    let mut bytes = fs::read(&files[1].path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    fs::write(&files[1].path, &bytes).unwrap();
    let listed = list_snapshots(&group.node(2).dir).unwrap();
    assert_eq!(listed.len(), 2);
    assert!(listed[0].1.is_err() && listed[1].1.is_ok());
    assert!(matches!(open_snapshot(&files[1].path), Err(OfflineError::Damaged { .. })));
    group.start(2).unwrap();
    assert_eq!(group.handle(2).status().restored_from, Some(files[0].index));
    group.converge(committed.index);
}

#[test]
fn a_log_that_begins_behind_every_snapshot_is_refused() {
    let mut group = Group::three(|options| {
        options.snapshot_every_entries = 20;
        options.keep_log_entries = 1;
    });
    for value in 0..100 {
        group.propose(value);
    }
    super::group::wait_for("a purge", || group.handle(3).status().purged);
    group.stop(3);
    fs::remove_dir_all(group.node(3).dir.join("snapshots")).unwrap();
    let refused = group.start(3).err().unwrap();
    let text = refused.to_string();
    assert!(text.contains("no whole snapshot is left"), "{text}");
}

#[test]
fn the_files_of_a_stopped_member_can_be_read() {
    let mut group = Group::three(|_| {});
    group.propose(41);
    let last = group.propose(42);
    group.converge(last.index);
    let dir = group.node(1).dir.clone();
    assert!(matches!(inspect_log(&dir), Err(OfflineError::Locked { .. })));
    assert!(matches!(list_snapshots(&dir), Err(OfflineError::Locked { .. })));
    let taken = group.block(1, |handle| async move { handle.take_snapshot().await }).unwrap();
    group.stop(1);
    let before = fs::read(dir.join("log").join("db")).unwrap();
    let report = inspect_log(&dir).unwrap();
    assert_eq!(fs::read(dir.join("log").join("db")).unwrap(), before);
    assert_eq!((report.member, report.range), (1, Some((0, report.high_water.unwrap()))));
    assert!(matches!(&report.entries[0].body, LogBody::Membership(members) if members.len() == 3));
    let bodies = report.entries.iter().filter_map(|entry| match &entry.body {
        LogBody::Proposal { body, .. } => Some(body.clone()),
        _ => None,
    });
    assert!(bodies.eq([41_u64, 42].map(|number| number.to_le_bytes().to_vec())));
    let listed = list_snapshots(&dir).unwrap();
    assert_eq!(listed[0].1.as_ref().unwrap(), &taken);
    let mut snapshot = open_snapshot(&taken.path).unwrap();
    assert_eq!(snapshot.header.index, last.index);
    assert_eq!(snapshot.header.members.len(), 3);
    let mut kinds = Vec::new();
    while let Some((kind, _)) = snapshot.section().unwrap() {
        kinds.push(kind);
    }
    assert_eq!(kinds, [1, 2]);
}
