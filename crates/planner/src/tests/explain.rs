//! What `explain` says of a channel in each situation.

use alloc::string::ToString;

use state::channel::{AckResult, PhaseKind};
use state::command::Command;
use state::decision::Cause;
use state::node::Role;

use super::fixture::{Fixture, TERM, name};
use crate::report::Why;
use crate::{Constraint, Explanation, Standing, View, WaitFor, explain};

fn ask(fixture: &Fixture, channel: &str) -> Explanation {
    explain(&View { state: &fixture.state, term: TERM, now: fixture.now }, &name(channel))
}

#[test]
fn unknown_and_dropped_are_told_apart() {
    let mut fixture = Fixture::new();
    assert_eq!(ask(&fixture, "a").standing, Standing::Unknown);
    fixture.buffer(&["a"]);
    let last_term = fixture.state.channel(&name("a")).unwrap().term;
    fixture.accept(Command::RemoveChannel { channel: name("a") });
    let removed = fixture.state.revision();
    assert_eq!(ask(&fixture, "a").standing, Standing::Dropped { removed, last_term });
}

#[test]
fn a_channel_at_its_place_waits_for_nothing() {
    let mut fixture = Fixture::new();
    let node = fixture.register("n1", Role::Data);
    fixture.watched("n1", &["a"]);
    let said = ask(&fixture, "a");
    assert_eq!(said.wait, None);
    assert_eq!(said.placed_by.as_ref().map(|placed| placed.cause), Some(Cause::Unassigned));
    let Standing::Known { phase, owner, .. } = said.standing else { panic!("{said:?}") };
    assert_eq!((phase, owner), (PhaseKind::Watched, Some(node)));
}

#[test]
fn each_refused_node_is_named_with_its_constraint() {
    let mut fixture = Fixture::new();
    fixture.register("query", Role::Query);
    let stopping = fixture.register("stopping", Role::Data);
    fixture.register("cools", Role::Data);
    fixture.register("avoided", Role::Data);
    fixture.register("free", Role::Data);
    fixture.buffer(&["a"]);
    fixture.accept(Command::SetStopping { node: stopping });
    fixture.place("a", "cools");
    fixture.ack("a", AckResult::FailedStopped);
    let until = fixture.now.plus_ms(fixture.state.policy().cooldown_base_ms);
    fixture.place("a", "avoided");
    fixture.release("a");
    fixture.ack("a", AckResult::Ok);
    let said = ask(&fixture, "a");
    let refused: alloc::vec::Vec<_> = said.candidates.iter().map(|c| c.refused).collect();
    let expected = [
        Some(Constraint::Role),
        Some(Constraint::Stopping),
        Some(Constraint::CoolingDown { until }),
        Some(Constraint::Avoided),
        None,
    ];
    assert_eq!(refused, expected);
    let to = fixture.node("free");
    assert_eq!(said.wait.map(|wait| wait.what), Some(WaitFor::Decision { to }));
    assert!(said.candidates[2].to_string().contains("cools down"), "{}", said.candidates[2]);
}

#[test]
fn waits_are_bounded_and_say_what_would_end_them() {
    let mut fixture = Fixture::new();
    fixture.buffer(&["a"]);
    let wait = ask(&fixture, "a").wait.unwrap();
    assert_eq!((wait.what, wait.until), (WaitFor::Planner(Why::NoNode), None));
    assert!(wait.unblock.contains("registers"));
    let node = fixture.register("n1", Role::Data);
    fixture.place("a", "n1");
    let wait = ask(&fixture, "a").wait.unwrap();
    assert_eq!((wait.what, wait.since), (WaitFor::WatchAck { node }, Some(fixture.now)));
    assert!(wait.until.unwrap() > fixture.now);
    fixture.ack("a", AckResult::Ok);
    fixture.accept(Command::SetStopping { node });
    let wait = ask(&fixture, "a").wait.unwrap();
    assert_eq!(wait.what, WaitFor::Planner(Why::NoTarget));
    fixture.release("a");
    let wait = ask(&fixture, "a").wait.unwrap();
    assert!(matches!(wait.what, WaitFor::ReleaseAck { next: None, .. }), "{wait:?}");
}
