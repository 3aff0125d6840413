//! sessions over time, leaders that change, restarts, size.

use alloc::collections::BTreeSet;
use alloc::vec;

use state::channel::{AckResult, ChannelSpec, Phase};
use state::codec;
use state::command::{Command, Request};
use state::epoch::{Revision, Timestamp};
use state::event::Event;
use state::ids::Text;
use state::node::NodeStatus;
use state::outcome::Outcome;
use state::{Context, desired_digest};

use super::*;

const KIB: usize = 1_024;

#[test]
fn a85_node_ids_are_unique_and_rise_over_restarts_and_restores() {
    let mut world = Fixture::new();
    let mut seen = BTreeSet::new();
    let mut last = NodeRef { node: state::ids::NodeId(0), epoch: state::epoch::NodeEpoch(0) };
    for at in 0..1_000 {
        // Every third one is a restart of a worker that was there before.
        let worker = if at % 3 == 2 { at / 2 } else { at };
        let node = world.register(&format!("D{worker}"), Role::Data);
        assert!(node.node > last.node && node.epoch > last.epoch);
        assert!(seen.insert(node.node));
        last = node;
        if at % 250 == 0 {
            // Those that left are forgotten; their ids are not.
            world.accept(Command::Revoke { node });
            world.state = world.restored();
        }
    }
    let node = world.register("one more", Role::Data);
    assert!(node.node > last.node && node.epoch > last.epoch);
    // A restored backup counts in a higher generation: whatever it hands out is above.
    let restored = Revision::first(1).next().unwrap();
    assert!(state::epoch::NodeEpoch::at(restored) > node.epoch);
    assert_eq!((restored.generation(), node.epoch.revision().generation()), (1, 0));
}

#[test]
fn a86_the_old_session_cannot_mark_its_successor() {
    let mut world = with_nodes(&["D1"]);
    let old = world.node("D1");
    let new = world.register("D1", Role::Data);
    world.rejects(Command::SetStopping { node: old }, "STALE_NODE");
    assert_eq!(world.state.live(new).unwrap().status, NodeStatus::Up);
}

/// a ToWatch, b Watched, c ToRelease, d dropping, e Buffered; all at D1 but e.
fn in_all_phases() -> Fixture {
    let mut world = with_nodes(&["D1"]);
    world.watched("D1", &["b", "c", "d"]);
    world.release("c");
    let command = world.drop_command("d", None);
    world.accept(command);
    world.buffer(&["a", "e"]);
    world.place("a", "D1");
    world
}

#[test]
fn a90_a_new_leader_derives_the_same() {
    let mut world = in_all_phases();
    let before: Vec<_> = world.state.channels().cloned().collect();
    let (desired, node) = (world.directives("D1"), world.node("D1"));
    let in_flight: Vec<Command> = ["a", "c", "d"]
        .iter()
        .map(|channel| said(node, channel, world.in_force(channel), AckResult::Ok))
        .collect();
    world.lead(2);
    assert_eq!(world.state.channels().cloned().collect::<Vec<_>>(), before);
    assert_eq!(desired_digest(&world.directives("D1")), desired_digest(&desired));
    assert_eq!(world.shown(), "e->1", "what is buffered is planned at once");
    for ack in in_flight {
        world.accept(ack);
    }
    let at = ["a", "b", "c", "d"].map(|channel| world.at(channel));
    assert_eq!(at, ["D1 Watched", "D1 Watched", "Buffered", "unknown"]);
}

/// c@D1/TW since 290 s of 300 s, under a leader that has just started.
fn nearly_timed_out(grace_ms: u64) -> (Fixture, Command) {
    let mut world = with_nodes(&["D1"]);
    world.policy("leader_grace_ms", &grace_ms.to_string());
    world.later(60_000);
    world.buffer(&["c"]);
    world.place("c", "D1");
    assert_eq!(world.state.policy().watch_timeout_ms, 300_000);
    let ack = said(world.node("D1"), "c", world.in_force("c"), AckResult::Ok);
    world.later(290_000);
    world.lead(2);
    (world, ack)
}

#[test]
fn a91_a_new_leader_gives_running_operations_its_grace() {
    let (mut world, ack) = nearly_timed_out(30_000);
    let started = world.now;
    assert_eq!(world.state.next_deadline(), Some(started.plus_ms(30_000)));
    world.later(20_000);
    assert_eq!(world.state.due(world.now, 10), vec![]);
    let timeout = world.timeout("c");
    world.rejects(timeout, "NOT_DUE");
    world.accept(ack);
    assert_eq!(world.at("c"), "D1 Watched");
    // A grace shorter than what is left of the timeout takes nothing from it.
    let (world, _) = nearly_timed_out(5_000);
    assert_eq!(world.state.next_deadline(), Some(world.now.plus_ms(10_000)));
}

#[test]
fn a92_an_acknowledgement_lost_with_the_old_leader_is_repeated() {
    let mut world = to_watch(&["D1", "D2"]);
    let (term, ack) =
        (world.term("c"), said(world.node("D1"), "c", world.in_force("c"), AckResult::Ok));
    world.lead(2);
    world.accept(ack);
    assert_eq!((world.at("c").as_str(), world.term("c")), ("D1 Watched", term));
}

/// A log with everything in it: nodes that leave, drops, timeouts, leaders.
fn eventful() -> Fixture {
    let mut world = in_all_phases();
    world.register("D2", Role::Data);
    world.ack("c", AckResult::Failed);
    world.settle();
    world.expire(world.node("D1"));
    world.lead(3);
    world.now = world.now.plus_ms(1_000);
    world.settle();
    world.accept(Command::RemoveChannel { channel: name("b") });
    let claim = world.claim("a");
    world.accept(commits("a", claim, b"p"));
    world.policy("ttl_ms", "20000");
    world
}

/// Applies the log from `at` on, in entries of this many requests each.
fn catch_up(mut state: State, log: &[(Context, Request)], split: usize) -> State {
    for entry in log.chunks(split) {
        let requests: Vec<Request> = entry.iter().map(|(_, request)| request.clone()).collect();
        let body = codec::encode_batch(&requests);
        let decoded = codec::decode_batch(&body).unwrap();
        for ((context, _), request) in entry.iter().zip(&decoded) {
            state.apply(context, request);
        }
    }
    state
}

#[test]
fn a93_replicas_are_equal_whatever_the_batches_and_restarts() {
    let world = eventful();
    let end = (world.state.digest(), world.state.witness());
    for split in [1, 2, 3, 7, world.log.len()] {
        let replica = catch_up(State::new(0), &world.log, split);
        assert_eq!((replica.digest(), replica.witness()), end, "entries of {split}");
    }
    let mut walker = with_nodes(&[]);
    walker.state = State::new(0);
    for at in 0..world.log.len() {
        let restarted = catch_up(walker.restored(), &world.log[at..], at % 4 + 1);
        assert_eq!((restarted.digest(), restarted.witness()), end, "restarted at {at}");
        let (context, request) = &world.log[at];
        walker.state.apply(context, request);
    }
}

#[test]
fn a94_a_decision_of_an_isolated_leader_dies_on_its_term() {
    let mut world = with_nodes(&["D1", "D2"]);
    world.buffer(&["c"]);
    let isolated = Command::Place(world.plan().decision.unwrap());
    world.lead(2);
    assert_eq!(world.plan_and_apply(), "c->1");
    let before = world.desired("D1");
    world.rejects(isolated, "STALE_TERM");
    assert_eq!(world.desired("D1"), before);
}

#[test]
fn a95_a_restart_of_all_replicas_moves_nothing() {
    let mut world = with_nodes(&["D1", "D2"]);
    world.watched("D1", &["a", "b"]);
    world.watched("D2", &["c"]);
    world.buffer(&["w"]);
    world.place("w", "D2");
    let before: Vec<_> = world.state.channels().cloned().collect();
    world.later(3_600_000);
    world.state = world.restored();
    world.lead(5);
    assert_eq!(world.plan().decision, None);
    let grace = world.state.policy().leader_grace_ms;
    assert_eq!(world.state.due(world.now.plus_ms(grace - 1), 10), vec![]);
    for node in ["D1", "D2"] {
        let node = world.node(node);
        let leader_term = world.term;
        world.rejects(Command::ExpireSession { node, leader_term }, "NOT_SILENT");
    }
    assert_eq!(world.state.channels().cloned().collect::<Vec<_>>(), before);
}

#[test]
fn a97_an_idle_node_is_known_to_every_leader() {
    let mut world = with_nodes(&["D1", "D2", "D3"]);
    world.watched("D1", &["a"]);
    world.watched("D2", &["b"]);
    world.policy("auto_balance", "true");
    world.lead(2);
    assert_eq!(world.state.live(world.node("D3")).unwrap().status, NodeStatus::Up);
    assert_eq!(world.plan().decision, None);
    world.later(world.state.policy().balance_silent_ms);
    assert_eq!(world.plan().decision, None, "1, 1, 0 is even");
}

#[test]
fn a98_a_large_schema_is_referred_to() {
    let schema = "x".repeat(300 * KIB);
    assert!(Text::new(&schema).is_err(), "a record cannot hold it");
    let mut world = with_nodes(&["D1"]);
    let named = |n: usize| ChannelSpec {
        schema_ref: Text::new(&format!("schemas/{n}")).unwrap(),
        ..spec(&format!("c{n:02}"))
    };
    world.accept(Command::WatchChannels((0..20).map(named).collect()));
    assert_eq!(world.settle(), 20);
    for (_, request) in &world.log {
        let entry = codec::encode_batch(core::slice::from_ref(request));
        assert!(entry.len() <= 1_024 * KIB, "{} bytes: {}", entry.len(), request.command);
    }
    let bytes = |state: &State| {
        let mut bytes = 0;
        let mut count = |_: u16, section: &[u8]| {
            bytes += section.len();
            Ok::<(), snapshot::DigestMismatch>(())
        };
        snapshot::write(state, &mut count).unwrap();
        bytes
    };
    let without = with_nodes(&["D1"]);
    let each = (bytes(&world.state) - bytes(&without.state)) / 20;
    assert!(each <= 4 * KIB, "{each} bytes for a channel");
}

#[test]
fn a99_a_thousand_channels_survive_their_node_and_two_leaders() {
    let mut world = with_nodes(&["D1", "D2", "D3"]);
    let names: Vec<String> = (0..1_000).map(|n| format!("c{n:04}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    world.accept(Command::WatchChannels(names.iter().map(|name| spec(name)).collect()));
    for channel in &names {
        world.state_only_place(channel, "D1");
    }
    let revision = world.state.revision().count();
    let events = world.expire(world.node("D1"));
    assert_eq!(world.state.revision().count(), revision + 2, "silence, and one entry");
    let freed = events.iter().filter(|event| matches!(event, Event::ChannelUnassigned { .. }));
    assert_eq!(freed.count(), 1_000);
    for term in 2.. {
        let plan = world.plan_at_most(300);
        if plan.decision.is_none() {
            break;
        }
        assert!(crate::moves(&plan).len() <= 300);
        assert_eq!(world.carry_out(&plan), vec![]);
        world.lead(term);
    }
    let owned = world.state.channels().filter(|channel| channel.phase.owner().is_some());
    assert_eq!(owned.count(), 1_000, "none is lost");
    assert_eq!(world.state.counts_of(world.node("D2").node).to_watch, 500);
}

impl Fixture {
    /// Gives a channel to a node and lets it watch, without the checks of every command: for many.
    fn state_only_place(&mut self, channel: &str, node: &str) {
        let to = self.node(node);
        let term = self.term(channel);
        let guard = state::decision::Guard { term, phase: PhaseKind::Buffered };
        let action = state::decision::Action::Assign { to };
        let cause = state::decision::Cause::Unassigned;
        let moves = vec![state::decision::Move { channel: name(channel), guard, action, cause }];
        let basis = state::decision::Basis { term: self.term, revision: self.state.revision() };
        let decision = state::decision::Decision { basis, moves, atomic: false };
        for step in 0..2 {
            let command = match step {
                0 => Command::Place(decision.clone()),
                _ => said(to, channel, self.in_force(channel), AckResult::Ok),
            };
            let context = Context { term: self.term, now: Timestamp(self.now.0) };
            let request = Request { actor: Text::default(), retry: None, command };
            let outcome = self.state.apply(&context, &request);
            assert!(matches!(outcome, Outcome::Accepted(_)), "{outcome}");
            self.log.push((context, request));
        }
        assert!(matches!(self.channel(channel).phase, Phase::Watched { .. }));
    }
}
