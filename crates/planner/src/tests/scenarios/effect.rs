//! ownership where data is written.

use state::channel::AckResult;
use state::outcome::{Outcome, Rejection};

use super::*;

#[test]
fn a62_of_two_writers_only_the_owner_gets_through() {
    let mut world = to_release(&["D1", "D2"]);
    let former = world.claim("c");
    world.ack("c", AckResult::Ok);
    assert_eq!(world.plan_and_apply(), "c->2");
    world.ack("c", AckResult::Ok);
    let owner = world.claim("c");
    let expected = Outcome::Rejected(Rejection::NotOwner {
        channel: name("c"),
        owner: Some(owner.node),
        term: owner.term,
    });
    let (mut dice, mut applied) = (7_u32, 0);
    for round in 0..1_000_u32 {
        let owners = commits("c", owner, &[b"D2".as_slice(), &round.to_le_bytes()].concat());
        let formers = commits("c", former, &[b"D1".as_slice(), &round.to_le_bytes()].concat());
        dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if dice >> 31 == 0 {
            assert_eq!(world.apply(formers), expected);
            world.accept(owners);
        } else {
            world.accept(owners);
            assert_eq!(world.apply(formers), expected);
        }
        applied += u32::from(world.channel("c").positions().starts_with(b"D2"));
    }
    assert_eq!(applied, 1_000);
}

#[test]
fn a63_an_old_task_of_the_present_owner_is_refused() {
    let mut world = to_release(&["D1"]);
    let old = world.claim("c");
    world.ack("c", AckResult::Failed);
    world.later(world.state.policy().cooldown_max_ms);
    assert_eq!(world.plan_and_apply(), "c->1");
    let new = world.claim("c");
    assert_eq!(new.node, old.node, "the same node, even the same session");
    world.rejects(commits("c", old, b"late"), "NOT_OWNER");
    world.accept(commits("c", new, b"present"));
    assert_eq!(world.channel("c").positions(), b"present");
}

#[test]
fn a64_the_last_flush_of_a_releasing_owner_is_accepted() {
    let mut world = to_release(&["D1", "D2"]);
    let claim = world.claim("c");
    world.accept(commits("c", claim, b"last flush"));
    world.ack("c", AckResult::Ok);
    world.rejects(commits("c", claim, b"too late"), "NOT_OWNER");
    assert_eq!(world.plan_and_apply(), "c->2");
    let directives = world.directives("D2");
    let positions = directives[0].committed.as_ref().map(|committed| &committed.positions);
    assert_eq!(positions.unwrap(), b"last flush", "the next owner begins there");
}
