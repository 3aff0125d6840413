//! Whole groups: founding, elections, reads, cut links.

use std::time::{Duration, Instant};

use super::group::{Group, wait_for};
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
