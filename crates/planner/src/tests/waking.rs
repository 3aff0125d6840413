//! A plan says when time alone makes the next one differ: whoever waits until then misses nothing.

use alloc::vec;

use state::channel::{AckResult, ChannelSpec};
use state::command::Command;
use state::ids::CollectionId;
use state::node::Role;

use super::fixture::{Fixture, show, spec};

fn two_nodes(settings: &[(&str, &str)]) -> Fixture {
    let mut fixture = Fixture::new();
    fixture.policies(settings);
    fixture.register("n1", Role::Data);
    fixture.register("n2", Role::Data);
    fixture
}

/// No plan is made while nothing changes; at the time that the plan names, this one.
fn wakes_for(fixture: &mut Fixture, expected: &str) {
    let plan = fixture.plan();
    assert_eq!(show(&plan), "");
    let at = plan.wake_at.expect("time alone ends the wait");
    fixture.now = at;
    assert_eq!(fixture.shown(), expected);
}

const LONG_COOLDOWN: [(&str, &str); 3] =
    [("cooldown_base_ms", "600000"), ("cooldown_max_ms", "600000"), ("balance_silent_ms", "1000")];

#[test]
fn when_a_node_that_could_even_out_load_has_cooled_down() {
    for policy in ["spread", "pchannel_count_fair"] {
        let mut fixture = two_nodes(&LONG_COOLDOWN);
        fixture.policy("channel_balance_policy", policy);
        for channel in ["a", "b"] {
            fixture.buffer(&[channel]);
            fixture.place(channel, "n2");
            fixture.ack(channel, AckResult::FailedStopped);
            fixture.place(channel, "n1");
            fixture.ack(channel, AckResult::Ok);
        }
        fixture.later(300_000);
        let moved = if policy == "spread" { "a:1->2" } else { "b:1->2" };
        wakes_for(&mut fixture, moved);
    }
}

#[test]
fn when_the_owner_on_the_ring_has_cooled_down() {
    let mut fixture = two_nodes(&LONG_COOLDOWN);
    fixture.policies(&[
        ("channel_register_policy", "consistent_hash"),
        ("channel_balance_policy", "none"),
    ]);
    fixture.buffer(&["ch-2"]);
    fixture.place("ch-2", "n2");
    fixture.ack("ch-2", AckResult::FailedStopped);
    fixture.place("ch-2", "n1");
    fixture.ack("ch-2", AckResult::Ok);
    wakes_for(&mut fixture, "ch-2:1->2");
}

/// Counts are even, but the channels of a collection are together.
#[test]
fn when_channels_that_should_be_apart_have_rested() {
    let mut fixture = two_nodes(&[("channel_balance_policy", "vchannel_fair")]);
    for (node, channel, collection) in
        [("n1", "a", 1), ("n1", "b", 1), ("n2", "c", 2), ("n2", "d", 2)]
    {
        let collection = CollectionId(collection);
        fixture.accept(Command::WatchChannels(vec![ChannelSpec { collection, ..spec(channel) }]));
        fixture.place(channel, node);
        fixture.ack(channel, AckResult::Ok);
    }
    wakes_for(&mut fixture, "b:1->2 c:2->1");
    fixture.policies(&[("balance_silent_ms", "0"), ("min_move_interval_ms", "900000")]);
    wakes_for(&mut fixture, "b:1->2 c:2->1");
}
