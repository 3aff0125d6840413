//! A machine that lies is found by the others, and only it stops.

use super::group::{Group, wait_for};
use crate::MemberState;

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
