//! The forecast of a drain is what the drain then does.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use state::channel::AckResult;
use state::command::Command;
use state::epoch::Timestamp;
use state::node::Role;

use super::fixture::{Fixture, TERM};
use crate::{Emptying, Forecast, View, Why, emptying, forecast_drain};

fn forecast(fixture: &Fixture, node: &str) -> Forecast {
    let view = View { state: &fixture.state, term: TERM, now: fixture.now };
    forecast_drain(&view, fixture.node(node)).unwrap()
}

fn progress(fixture: &Fixture, node: &str) -> Option<Emptying> {
    let view = View { state: &fixture.state, term: TERM, now: fixture.now };
    emptying(&view, fixture.node(node))
}

fn steps(forecast: &Forecast) -> String {
    let step = |step: &crate::Step| format!("{}->{}@{}", step.channel, step.to.node.0, step.round);
    forecast.steps.iter().map(step).collect::<Vec<_>>().join(" ")
}

/// Three nodes, the first with five channels; two move at a time.
fn group() -> Fixture {
    let mut fixture = Fixture::new();
    for node in ["n1", "n2", "n3"] {
        fixture.register(node, Role::Data);
    }
    fixture.watched("n1", &["a", "b", "c", "d", "e"]);
    fixture.watched("n2", &["x"]);
    fixture.policy("balance_moves_max", "2");
    fixture
}

#[test]
fn the_drain_does_what_was_forecast() {
    let mut fixture = group();
    let before = (fixture.state.digest(), fixture.state.revision());
    let told = forecast(&fixture, "n1");
    assert_eq!((fixture.state.digest(), fixture.state.revision()), before);
    assert_eq!((told.rounds, told.stays.len()), (3, 0));
    fixture.accept(Command::SetStopping { node: fixture.node("n1") });
    let mut done = Vec::new();
    loop {
        let plan = fixture.plan();
        let leaving = plan.report.choices.iter().filter(|choice| choice.from.is_some());
        done.extend(leaving.map(|choice| (choice.channel.to_string(), choice.to)));
        fixture.carry_out(&plan);
        if !fixture.answer_all() {
            break;
        }
    }
    let told: Vec<_> = told.steps.iter().map(|step| (step.channel.to_string(), step.to)).collect();
    assert_eq!(done, told);
    assert_eq!(progress(&fixture, "n1").unwrap().watched, 0);
}

#[test]
fn what_cannot_leave_is_named_with_its_reason() {
    let mut fixture = Fixture::new();
    fixture.register("n1", Role::Data);
    fixture.watched("n1", &["a", "b"]);
    let told = forecast(&fixture, "n1");
    assert_eq!((told.rounds, steps(&told).as_str()), (0, ""));
    let stays: Vec<_> =
        told.stays.iter().map(|stay| (stay.channel.to_string(), stay.why)).collect();
    assert_eq!(stays, [("a".into(), Why::NoTarget), ("b".into(), Why::NoTarget)]);
    assert_eq!(progress(&fixture, "n1"), None);
    fixture.accept(Command::SetStopping { node: fixture.node("n1") });
    let waits = progress(&fixture, "n1").unwrap();
    assert_eq!((waits.watched, waits.why), (2, Some(Why::NoTarget)));
    fixture.register("n2", Role::Data);
    assert_eq!(progress(&fixture, "n1").unwrap().why, None);
}

#[test]
fn one_that_cools_down_stays_and_the_others_go() {
    let mut fixture = group();
    fixture.accept(Command::Revoke { node: fixture.node("n3") });
    fixture.buffer(&["z"]);
    fixture.place("z", "n2");
    fixture.ack("z", AckResult::FailedStopped);
    fixture.place("z", "n1");
    fixture.ack("z", AckResult::Ok);
    let until: Timestamp = *fixture
        .state
        .channel(&super::fixture::name("z"))
        .unwrap()
        .cooldowns
        .values()
        .next()
        .unwrap();
    let told = forecast(&fixture, "n1");
    assert_eq!(told.steps.len(), 5);
    let stays: Vec<_> =
        told.stays.iter().map(|stay| (stay.channel.to_string(), stay.why)).collect();
    assert_eq!(stays, [("z".into(), Why::CoolingDown { until })]);
}
