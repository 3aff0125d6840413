//! What nobody should send: refused by name, with the state as it was (`Fixture::apply` compares
//! digests). A-61 has every command with each of its parts wrong; here is the rest.

use alloc::vec;

use state::channel::ChannelSpec;
use state::command::Command;
use state::ids::{ChannelName, CollectionId};
use state::limits;
use state::outcome::{Outcome, Rejection};

use super::*;

#[test]
fn names_are_of_a_length_and_printable() {
    let longest = "x".repeat(limits::CHANNEL_NAME_BYTES_MAX);
    assert!(ChannelName::new(&longest).is_ok());
    for bad in ["", "a\nb", "tab\t", &format!("{longest}x")] {
        let error = ChannelName::new(bad).unwrap_err();
        assert_eq!(error.field, "channel", "{error}");
    }
}

fn rejection(outcome: Outcome) -> Rejection {
    match outcome {
        Outcome::Rejected(rejection) => rejection,
        other => panic!("{other}"),
    }
}

#[test]
fn one_bad_channel_among_a_thousand_is_named_and_none_is_taken() {
    let mut world = watched(&["D1"]);
    world.buffer(&["k"]);
    let command = world.drop_command("c", None);
    world.accept(command);
    let thousand = |bad: ChannelSpec| {
        let mut specs: Vec<_> = (0..1_000).map(|n| spec(&format!("n{n:03}"))).collect();
        specs[500] = bad;
        Command::WatchChannels(specs)
    };
    let other = |name: &str| ChannelSpec { collection: CollectionId(9), ..spec(name) };
    let conflict =
        |channel: &str| Rejection::Conflict { channel: name(channel), field: "collection" };
    let cases = [
        (other("k"), conflict("k")),
        // Announced twice in one command, with different content.
        (other("n007"), conflict("n007")),
        (spec("c"), Rejection::ChannelDropping { channel: name("c") }),
    ];
    for (bad, expected) in cases {
        assert_eq!(rejection(world.apply(thousand(bad))), expected);
        assert_eq!(world.state.channel_count(), 2, "all or none");
    }
    let mut long = spec("n500");
    long.positions = vec![0; limits::POSITIONS_BYTES_MAX + 1];
    assert_eq!(rejection(world.apply(thousand(long))).reason(), "LIMIT");
    world.accept(thousand(spec("n007")));
    assert_eq!(world.state.channel_count(), 2 + 999, "equal content twice is one channel");
}

#[test]
fn too_many_and_too_much_is_refused() {
    let mut world = watched(&["D1"]);
    let claim = world.claim("c");
    let positions = vec![0; limits::POSITIONS_BYTES_MAX + 1];
    world.rejects(commits("c", claim, &positions), "LIMIT");
    let many = (0..=limits::WATCH_CHANNELS_MAX).map(|n| spec(&format!("n{n}"))).collect();
    world.rejects(Command::WatchChannels(many), "LIMIT");
}

#[test]
fn a_clean_up_that_nobody_waits_for_is_refused() {
    let mut world = to_release(&["D1", "D2"]);
    let claim = world.claim("c");
    let done = |channel: &str, former| Command::EffectDone { channel: name(channel), former };
    world.rejects(done("c", claim), "NOT_FORMER_OWNER");
    world.rejects(done("never", claim), "UNKNOWN_CHANNEL");
    world.ack("c", state::channel::AckResult::Failed);
    for wrong in [
        OwnerClaim { node: world.node("D2"), ..claim },
        OwnerClaim { term: ChannelTerm(claim.term.0 - 1), ..claim },
        OwnerClaim { term: ChannelTerm(claim.term.0 + 1), ..claim },
    ] {
        world.rejects(done("c", wrong), "NOT_FORMER_OWNER");
    }
    world.accept(done("c", claim));
    world.rejects(done("c", claim), "NOT_FORMER_OWNER");
}
