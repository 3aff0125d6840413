//! Members that lag, restart, lose their directory.

use std::time::Duration;

use super::group::{Group, stays, wait_for};
use crate::MemberState;

#[test]
fn a_follower_that_lags_gets_a_snapshot_and_a_restart_begins_with_one() {
    let mut group = Group::three(|options| {
        options.snapshot_every_entries = 50;
        options.keep_log_entries = 10;
    });
    let first = group.propose(1);
    group.converge(first.index);
    let leader = group.leader();
    let lagging = group.alive().into_iter().find(|number| *number != leader).unwrap();
    group.stop(lagging);
    let mut last = first;
    for value in 0..200 {
        last = group.propose(value);
    }
    wait_for("the log to be purged", || group.handle(leader).status().purged);
    group.start(lagging).unwrap();
    group.converge(last.index);
    assert!(group.handle(lagging).status().counters.snapshots_installed > 0);
    let info = group.block(lagging, |handle| async move { handle.take_snapshot().await });
    assert_eq!(info.unwrap().index, last.index);
    group.stop(lagging);
    group.start(lagging).unwrap();
    assert_eq!(group.handle(lagging).status().restored_from, Some(last.index));
    let more = group.propose(7);
    group.converge(more.index);
}

#[test]
fn a_wiped_member_never_votes_and_rejoins_under_a_new_number() {
    let mut group = Group::three(|_| {});
    let committed = group.propose(1);
    group.converge(committed.index);
    let leader = group.leader();
    let wiped = group.alive().into_iter().find(|number| *number != leader).unwrap();
    let other = group.alive().into_iter().find(|n| *n != leader && *n != wiped).unwrap();
    group.stop(wiped);
    std::fs::remove_dir_all(&group.node(wiped).dir).unwrap();
    group.start(wiped).unwrap();
    group.kill(leader);
    // Two of three run, but one of them is empty: no quorum.
    stays("no leader", Duration::from_millis(2500), || {
        group.leader_among(&[wiped, other]).is_none()
    });
    assert_eq!(group.handle(wiped).status().state, MemberState::Waiting);
    assert_eq!(group.handle(wiped).status().cluster_id, None);
    group.start(leader).unwrap();
    group.propose(2);
    group.add(4);
    let joining = group.member(4);
    group.block(group.leader(), |handle| async move { handle.add_member(joining).await }).unwrap();
    group.block(group.leader(), |handle| async move { handle.remove_member(wiped).await }).unwrap();
    group.stop(wiped);
    let committed = group.propose(3);
    group.converge(committed.index);
    let members = group.handle(group.leader()).status().members;
    let numbers: Vec<u64> = members.iter().map(|seat| seat.member.member).collect();
    assert_eq!(numbers.len(), 3);
    assert!(numbers.contains(&4) && !numbers.contains(&wiped));
}

#[test]
fn all_members_restart_with_what_was_acknowledged() {
    let mut group = Group::three(|_| {});
    let mut last = group.propose(0);
    for value in 1..50 {
        last = group.propose(value);
    }
    for number in [1, 2, 3] {
        group.kill(number);
    }
    for number in [1, 2, 3] {
        group.start(number).unwrap();
    }
    let next = group.propose(1000);
    assert!(next.index > last.index);
    group.converge(next.index);
    assert_eq!(group.node(1).view.sum(), (0..50).sum::<u64>() + 1000);
    let witnesses = group.block(1, |handle| async move { handle.witnesses(0).await });
    assert_eq!(witnesses.len(), 3);
    let first = witnesses[0].witness;
    assert!(first.is_some() && witnesses.iter().all(|one| one.witness == first), "{witnesses:?}");
}

#[test]
fn large_bodies_go_through() {
    let group = Group::three(|_| {});
    let mut body = vec![1_u8; 12 << 20];
    body[..8].copy_from_slice(&5_u64.to_le_bytes());
    let leader = group.leader();
    let proposed = group.block(leader, |handle| async move {
        let one = || handle.propose(1, body.clone().into());
        futures::future::join_all([one(), one(), one()]).await
    });
    let last = proposed.into_iter().map(|done| done.unwrap().index).max().unwrap();
    group.converge(last);
    let refused = group.block(leader, |handle| async move {
        handle.propose(1, vec![0; (16 << 20) + 1].into()).await
    });
    assert!(matches!(refused, Err(crate::ProposeError::TooLarge { .. })));
}

#[test]
fn a_group_on_memory_survives_the_loss_of_what_was_not_synced() {
    use crate::{BackendKind, MemoryDisk};
    let disks: Vec<MemoryDisk> = (0..3).map(|_| MemoryDisk::default()).collect();
    let mut group = Group::bare(0, |_| {});
    group.disks = disks.clone();
    (1..=3).for_each(|number| group.add(number));
    assert!(matches!(group.options(1).backend, BackendKind::Memory(_)));
    let members = group.members();
    group.block(1, |handle| async move { handle.bootstrap(members).await }).unwrap();
    let mut last = group.propose(0);
    for value in 1..30 {
        last = group.propose(value);
    }
    for number in [1, 2, 3] {
        group.kill(number);
    }
    disks.iter().for_each(MemoryDisk::crash);
    for number in [1, 2, 3] {
        group.start(number).unwrap();
    }
    let next = group.propose(100);
    assert!(next.index > last.index);
    group.converge(next.index);
    assert_eq!(group.node(2).view.sum(), (0..30).sum::<u64>() + 100);
}
