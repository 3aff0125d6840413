//! Whole groups: elections, failures of all kinds, snapshots, reads, divergence.

use std::time::{Duration, Instant};

use super::group::{Group, stays, wait_for};
use crate::{BootstrapError, Leadership, MemberState, ProposeError};

#[test]
fn a_group_elects_commits_and_answers() {
    let group = Group::three(|_| {});
    let leader = group.leader();
    let first = group.propose(3);
    assert_eq!(*first.reply.downcast::<u64>().unwrap(), 3);
    let second = group.propose(4);
    assert_eq!(*second.reply.downcast::<u64>().unwrap(), 7);
    group.converge(second.index);
    let follower = group.alive().into_iter().find(|number| *number != leader).unwrap();
    let Err(ProposeError::NotLeader { hint: Some(hint) }) = group.propose_at(follower, 1) else {
        panic!("a follower took a proposal");
    };
    assert_eq!(hint.member, leader);
    assert_eq!(hint.client_address, format!("client-{leader}"));
    let status = group.handle(leader).status();
    assert_eq!(status.state, MemberState::Leader);
    assert_eq!(status.members.len(), 3);
    assert!(status.cluster_id.is_some());
    let age = group.handle(leader).quorum_age().unwrap();
    assert!(age < Duration::from_secs(1), "{age:?}");
}

#[test]
fn the_death_of_the_leader_is_noticed_at_once() {
    let mut group = Group::three(|_| {});
    let committed = group.propose(5);
    group.converge(committed.index);
    let leader = group.leader();
    let begun = Instant::now();
    group.kill(leader);
    let next = group.leader();
    let took = begun.elapsed();
    assert_ne!(next, leader);
    // The election timeout alone would be over 1.2 s.
    assert!(took < Duration::from_millis(400), "a new leader after {took:?}");
    let committed = group.propose(6);
    group.start(leader).unwrap();
    group.converge(committed.index);
}

#[test]
fn bootstrap_is_refused_where_data_is() {
    let mut group = Group::three(|_| {});
    let members = group.members();
    let again = group.block(2, |handle| async move { handle.bootstrap(members).await });
    assert!(matches!(again, Err(BootstrapError::HasData { .. })), "{again:?}");
    group.add(4);
    let members = group.members();
    let mixed = group.block(4, |handle| async move { handle.bootstrap(members).await });
    assert!(
        matches!(mixed, Err(BootstrapError::HasData { .. } | BootstrapError::HasCluster { .. })),
        "{mixed:?}"
    );
    assert_eq!(group.handle(4).status().state, MemberState::Waiting);
    let unknown = group.handle(4).leadership().borrow().clone();
    assert_eq!(unknown, Leadership::Unknown { term: 0 });
}

#[test]
fn reads_are_linearizable_on_every_member() {
    let group = Group::three(|_| {});
    for value in 1..=20 {
        let committed = group.propose(value);
        for number in group.alive() {
            let read = group.block(number, |handle| async move { handle.read_index().await });
            assert!(read.unwrap() >= committed.index);
            assert!(group.node(number).view.applied() >= committed.index);
        }
    }
    let leader = group.leader();
    let before = group.handle(leader).status().counters;
    group.block(leader, |handle| async move {
        let reads = (0..500).map(|_| handle.read_index());
        for read in futures::future::join_all(reads).await {
            read.unwrap();
        }
    });
    let after = group.handle(leader).status().counters;
    let rounds = after.read_rounds - before.read_rounds;
    assert!(rounds < 20, "500 reads took {rounds} rounds");
}

#[test]
fn a_minority_commits_nothing_and_rejoins() {
    let group = Group::three(|options| options.propose_timeout = Duration::from_secs(1));
    let committed = group.propose(1);
    group.converge(committed.index);
    let old = group.leader();
    group.faults.isolate(old, &[1, 2, 3]);
    let rest: Vec<u64> = group.alive().into_iter().filter(|number| *number != old).collect();
    let next = wait_for("a leader of the majority", || group.leader_among(&rest));
    let refused = group.propose_at(old, 100).unwrap_err();
    assert!(matches!(refused, ProposeError::Unknown | ProposeError::NotLeader { .. }));
    let committed = group.propose_at(next, 10).unwrap();
    let read = group.block(old, |handle| async move { handle.read_index().await });
    assert!(read.is_err(), "a cut off leader answered a read");
    group.faults.heal();
    group.converge(committed.index);
    assert_eq!(group.node(old).view.sum(), 11);
}

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
    assert_eq!(group.handle(lagging).status().counters.snapshots_installed, 1);
    let info = group.block(lagging, |handle| async move { handle.take_snapshot().await });
    assert_eq!(info.unwrap().index, last.index);
    group.stop(lagging);
    group.start(lagging).unwrap();
    assert_eq!(group.handle(lagging).status().restored_from, Some(last.index));
    let more = group.propose(7);
    group.converge(more.index);
}

#[test]
fn a_member_that_lies_stops_and_the_group_goes_on() {
    let group = Group::three(|_| {});
    let committed = group.propose(1);
    group.converge(committed.index);
    let leader = group.leader();
    let liar = group.alive().into_iter().find(|number| *number != leader).unwrap();
    group.node(liar).view.lie_at.store(3, std::sync::atomic::Ordering::Relaxed);
    for value in 0..6 {
        group.propose(value);
    }
    let fault = wait_for("the fault", || group.handle(liar).fault().borrow().clone());
    assert!(matches!(fault, crate::Fault::Diverged { .. }), "{fault}");
    assert!(fault.is_integrity());
    let crate::Fault::Diverged { diagnosis: Some(file), .. } = fault else { panic!("no file") };
    assert!(std::fs::read_to_string(file).unwrap().contains("differs from its group"));
    assert_eq!(group.handle(liar).status().state, MemberState::Stopped);
    group.propose(8);
    let honest = group.alive().into_iter().filter(|number| *number != liar);
    for number in honest {
        assert!(group.handle(number).fault().borrow().is_none());
    }
}

#[test]
fn a_leader_that_lies_stops_and_the_others_go_on() {
    let mut group = Group::three(|_| {});
    let committed = group.propose(1);
    group.converge(committed.index);
    let liar = group.leader();
    group.node(liar).view.lie_at.store(3, std::sync::atomic::Ordering::Relaxed);
    for value in 0..6 {
        group.propose(value);
    }
    let fault = wait_for("the fault", || group.handle(liar).fault().borrow().clone());
    assert!(matches!(fault, crate::Fault::Diverged { .. }), "{fault}");
    group.kill(liar);
    let committed = group.propose(8);
    group.converge(committed.index);
    // The false attestations are in the log; a restart must pass them by its verdicts.
    for number in group.alive() {
        group.stop(number);
        group.start(number).unwrap();
    }
    let committed = group.propose(9);
    group.converge(committed.index);
}

#[test]
fn a_wrong_record_is_found_by_the_digest() {
    let group = Group::three(|_| {});
    let committed = group.propose(1);
    group.converge(committed.index);
    let leader = group.leader();
    let bad = group.alive().into_iter().find(|number| *number != leader).unwrap();
    group.node(bad).view.forget_at.store(3, std::sync::atomic::Ordering::Relaxed);
    let mut index = 0;
    while index < 1100 {
        let bodies = 0..200_u64;
        index = group.block(group.leader(), |handle| async move {
            let proposals = bodies.map(|value| {
                let handle = handle.clone();
                let body = bytes::Bytes::copy_from_slice(&value.to_le_bytes());
                async move { handle.propose(1, body).await }
            });
            let all = futures::future::join_all(proposals).await;
            all.into_iter().filter_map(Result::ok).map(|done| done.index).max().unwrap_or(0)
        });
    }
    group.propose(1);
    let fault = wait_for("the fault", || group.handle(bad).fault().borrow().clone());
    assert!(matches!(fault, crate::Fault::Diverged { index: 1024, .. }), "{fault}");
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
fn the_leadership_is_handed_over() {
    let group = Group::three(|_| {});
    group.propose(1);
    let leader = group.leader();
    let to = group.alive().into_iter().find(|number| *number != leader).unwrap();
    let (new, term) = group
        .block(leader, |handle| async move { handle.transfer_leader(Some(to)).await })
        .unwrap();
    assert_eq!(new, to);
    assert!(term >= 2);
    let committed = group.propose(2);
    group.converge(committed.index);
    let refused = group.block(leader, |handle| async move { handle.transfer_leader(None).await });
    assert!(matches!(refused, Err(crate::TransferError::NotLeader { .. })), "{refused:?}");
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
