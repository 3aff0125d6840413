//! every command in every phase, as it should be and wrong in each of its parts. One row says
//! where the channel is afterwards, or why not; `Fixture::apply` feeds each a second time.

use alloc::collections::BTreeMap;
use alloc::vec;

use state::channel::{AckResult, ChannelSpec};
use state::command::Command;
use state::decision::{Action, Basis, Cause, Decision, Guard, Move};
use state::epoch::NodeEpoch;
use state::ids::{Address, CollectionId, Incarnation, NodeName};
use state::node::Registration;
use state::outcome::{Facts, Outcome};

use super::*;

/// What a command names, in the part that is wrong or right.
#[derive(Clone, Copy)]
struct Named {
    node: NodeRef,
    term: ChannelTerm,
    op: Op,
    phase: PhaseKind,
    to: NodeRef,
    leader: Term,
    basis: Basis,
}

/// In which part a command is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    Nothing,
    Owner,
    Epoch,
    PastTerm,
    FutureTerm,
    PastOp,
    FutureOp,
}

const WRONG: [Part; 6] =
    [Part::Owner, Part::Epoch, Part::PastTerm, Part::FutureTerm, Part::PastOp, Part::FutureOp];

const PHASES: [&str; 4] = ["Buffered", "D1 ToWatch", "D1 Watched", "D1 ToRelease"];

/// c in this phase, its deadline passed; `D1` is or was the owner.
fn world_in(phase: &str) -> Fixture {
    let nodes = &["D1", "D2"];
    let mut world = match phase {
        "Buffered" => {
            let mut world = to_release(nodes);
            world.ack("c", AckResult::Ok);
            world
        }
        "D1 ToWatch" => to_watch(nodes),
        "D1 Watched" => watched(nodes),
        _ => to_release(nodes),
    };
    world.later(600_000);
    assert_eq!(world.at("c"), phase);
    world
}

fn named(world: &Fixture, wrong: Part) -> Named {
    let channel = world.channel("c");
    let (one, two) = (world.node("D1"), world.node("D2"));
    let (term, op) = (channel.term, channel.phase.op().unwrap_or(Op(channel.term.0)));
    let old = |node: NodeRef| NodeRef { epoch: NodeEpoch(node.epoch.0 - 1), ..node };
    let mut named = Named {
        node: one,
        term,
        op,
        phase: channel.phase.kind(),
        to: two,
        leader: world.term,
        basis: Basis { term: world.term, revision: world.state.revision() },
    };
    match wrong {
        Part::Nothing => {}
        Part::Owner => named.node = two,
        Part::Epoch => (named.node, named.to) = (old(one), old(two)),
        Part::PastTerm => named.term = ChannelTerm(term.0 - 1),
        Part::FutureTerm => named.term = ChannelTerm(term.0 + 100),
        Part::PastOp => named.op = Op(op.0 - 1),
        Part::FutureOp => named.op = Op(op.0 + 100),
    }
    named
}

/// Where the channel is after an accepted command; otherwise what was said.
fn verdict(world: &mut Fixture, command: Command) -> String {
    match world.apply(command) {
        Outcome::Accepted(receipt) if receipt.refused.is_empty() => world.at("c"),
        Outcome::Accepted(receipt) => String::from(receipt.refused[0].refusal.reason()),
        Outcome::NoChange(Facts::AllRefused(refused)) => String::from(refused[0].refusal.reason()),
        Outcome::NoChange(_) => String::from("no change"),
        Outcome::Rejected(rejection) => String::from(rejection.reason()),
    }
}

type Make = fn(&Named) -> Command;

struct Row {
    what: &'static str,
    make: Make,
    /// As it should be, in each phase.
    right: [&'static str; 4],
    /// Wrong in this part; parts that are not listed do not occur in the command.
    wrong: &'static [(Part, [&'static str; 4])],
}

fn ack(named: &Named, result: AckResult) -> Command {
    said(named.node, "c", (named.term, named.op), result)
}

fn place(named: &Named, action: Action) -> Command {
    let guard = Guard { term: named.term, phase: named.phase };
    let moves = vec![Move { channel: name("c"), guard, action, cause: Cause::Balance }];
    Command::Place(Decision { basis: named.basis, moves, atomic: false })
}

const fn claim(named: &Named) -> OwnerClaim {
    OwnerClaim { node: named.node, term: named.term }
}

/// What failed is released, and what was being released is free.
const RELEASED: [&str; 4] = ["STALE", "D1 ToRelease", "D1 ToRelease", "Buffered"];
const STALE: [&str; 4] = ["STALE"; 4];
const NOT_OWNER: [&str; 4] = ["NOT_OWNER"; 4];
const NOT_FORMER: [&str; 4] = ["NOT_FORMER_OWNER"; 4];
const CHANGED: [&str; 4] = ["ASSIGNMENT_CHANGED"; 4];
const STALE_NODE: [&str; 4] = ["STALE_NODE"; 4];
const NO_CHANGE: [&str; 4] = ["no change"; 4];
const GONE: [&str; 4] = ["unknown"; 4];
const FREED: [&str; 4] = ["Buffered"; 4];
const TERM_CHANGED: [&str; 4] = ["NOT_OWNED", "TERM_CHANGED", "TERM_CHANGED", "TERM_CHANGED"];
const DROPPED: [&str; 4] = ["NOT_OWNER", "D1 ToRelease", "D1 ToRelease", "D1 ToRelease"];
const MOVED: [&str; 4] =
    ["ASSIGNMENT_CHANGED", "ASSIGNMENT_CHANGED", "D1 ToRelease", "ASSIGNMENT_CHANGED"];

const OF_ACKS: &[(Part, [&str; 4])] = &[
    (Part::Owner, STALE),
    (Part::Epoch, STALE_NODE),
    (Part::PastTerm, STALE),
    (Part::FutureTerm, STALE),
    (Part::PastOp, STALE),
    (Part::FutureOp, STALE),
];
const OF_DIRECTIVES: &[(Part, [&str; 4])] = &[
    (Part::PastTerm, STALE),
    (Part::FutureTerm, STALE),
    (Part::PastOp, STALE),
    (Part::FutureOp, STALE),
];
const OF_CLAIMS: &[(Part, [&str; 4])] = &[
    (Part::Owner, NOT_OWNER),
    (Part::Epoch, NOT_OWNER),
    (Part::PastTerm, NOT_OWNER),
    (Part::FutureTerm, NOT_OWNER),
];
const OF_FORMER: &[(Part, [&str; 4])] = &[
    (Part::Owner, NOT_FORMER),
    (Part::Epoch, NOT_FORMER),
    (Part::PastTerm, NOT_FORMER),
    (Part::FutureTerm, NOT_FORMER),
];
const OF_MOVES: &[(Part, [&str; 4])] = &[
    (Part::Owner, CHANGED),
    (Part::Epoch, CHANGED),
    (Part::PastTerm, CHANGED),
    (Part::FutureTerm, CHANGED),
];
const OF_ASSIGN: &[(Part, [&str; 4])] = &[
    (
        Part::Epoch,
        ["NODE_CHANGED", "ASSIGNMENT_CHANGED", "ASSIGNMENT_CHANGED", "ASSIGNMENT_CHANGED"],
    ),
    (Part::PastTerm, CHANGED),
    (Part::FutureTerm, CHANGED),
];
const OF_SESSIONS: &[(Part, [&str; 4])] = &[(Part::Epoch, STALE_NODE)];
const OF_TERMS: &[(Part, [&str; 4])] =
    &[(Part::PastTerm, TERM_CHANGED), (Part::FutureTerm, TERM_CHANGED)];

fn of_channels() -> Vec<Row> {
    let row = |what, right, wrong, make: Make| Row { what, make, right, wrong };
    vec![
        row("watched", ["STALE", PHASES[2], "no change", "Buffered"], OF_ACKS, |n| {
            ack(n, AckResult::Ok)
        }),
        row("failed", RELEASED, OF_ACKS, |n| ack(n, AckResult::Failed)),
        row("conflict", RELEASED, OF_ACKS, |n| ack(n, AckResult::Conflict)),
        row("stopped", ["STALE", "Buffered", "Buffered", "Buffered"], OF_ACKS, |n| {
            ack(n, AckResult::FailedStopped)
        }),
        row("timeout", ["STALE", PHASES[3], "STALE", "Buffered"], OF_DIRECTIVES, |n| {
            Command::OpTimeout { channel: name("c"), term: n.term, op: n.op }
        }),
        row("progress", ["STALE", PHASES[1], "STALE", "STALE"], OF_DIRECTIVES, |n| {
            Command::ExtendDeadline { channel: name("c"), term: n.term, op: n.op, progress: 7 }
        }),
        row("commit", ["NOT_OWNER", PHASES[1], PHASES[2], PHASES[3]], OF_CLAIMS, |n| {
            commits("c", claim(n), b"here")
        }),
        row("drop by its owner", DROPPED, OF_CLAIMS, |n| Command::MarkDropped {
            channel: name("c"),
            claim: Some(claim(n)),
        }),
        row("drop", ["unknown", PHASES[3], PHASES[3], PHASES[3]], &[], |_| Command::MarkDropped {
            channel: name("c"),
            claim: None,
        }),
        row("remove", GONE, &[], |_| Command::RemoveChannel { channel: name("c") }),
        row("release", ["NOT_OWNED", PHASES[3], PHASES[3], "no change"], OF_TERMS, |n| {
            Command::Release { channel: name("c"), term: n.term }
        }),
        row("clean-up", NOT_FORMER, OF_FORMER, |n| Command::EffectDone {
            channel: name("c"),
            former: claim(n),
        }),
        row("announce", NO_CHANGE, &[], |_| Command::WatchChannels(vec![spec("c")])),
        row("announce otherwise", ["CONFLICT"; 4], &[], |_| {
            Command::WatchChannels(vec![ChannelSpec { collection: CollectionId(9), ..spec("c") }])
        }),
        row("assign", ["D2 ToWatch", CHANGED[0], CHANGED[0], CHANGED[0]], OF_ASSIGN, |n| {
            place(n, Action::Assign { to: n.to })
        }),
        row("move", MOVED, OF_MOVES, |n| place(n, Action::Move { from: n.node, to: n.to })),
        row("take away", MOVED, OF_MOVES, |n| place(n, Action::Release { from: n.node })),
    ]
}

fn of_nodes_and_the_group() -> Vec<Row> {
    let row = |what, right, wrong, make: Make| Row { what, make, right, wrong };
    vec![
        row("revoke", FREED, OF_SESSIONS, |n| Command::Revoke { node: n.node }),
        row("expire", ["NOT_SILENT"; 4], OF_SESSIONS, |n| Command::ExpireSession {
            node: n.node,
            leader_term: n.leader,
        }),
        row("stop", PHASES, OF_SESSIONS, |n| Command::SetStopping { node: n.node }),
        row("go on", NO_CHANGE, OF_SESSIONS, |n| Command::UnsetStopping { node: n.node }),
        row("silence", PHASES, &[(Part::Epoch, NO_CHANGE)], |n| Command::SessionsObserved {
            leader_term: n.leader,
            seq: 1,
            silent: vec![(n.node, 10)],
            renewed: vec![],
        }),
        row("same leader", ["STALE_TERM"; 4], &[], |n| Command::LeaderStart {
            term: n.leader,
            member: MemberId(1),
        }),
        row("freeze", PHASES, &[], |_| Command::Freeze { name: NodeName::new("D1").unwrap() }),
        row("thaw", NO_CHANGE, &[], |_| Command::Thaw { name: NodeName::new("D1").unwrap() }),
        row("freeze nobody", ["UNKNOWN_NAME"; 4], &[], |_| Command::Freeze {
            name: NodeName::new("nobody").unwrap(),
        }),
        row("cleaner", PHASES, &[], |_| Command::RegisterCleaner {
            name: NodeName::new("k").unwrap(),
        }),
        row("no cleaner", ["UNKNOWN_CLEANER"; 4], &[], |_| Command::DeregisterCleaner {
            name: NodeName::new("k").unwrap(),
        }),
        row("setting", PHASES, &[], |_| set("watch_timeout_ms", "1000")),
        row("unknown setting", ["INVALID"; 4], &[], |_| set("watch_timeout", "1000")),
        row("setting out of range", ["INVALID"; 4], &[], |_| set("watch_timeout_ms", "1")),
        row("level", ["LEVEL"; 4], &[], |_| Command::SetLevel { level: 1 }),
        row("register again", NO_CHANGE, &[], |_| registers("i1")),
        row("register anew", FREED, &[], |_| registers("another")),
        row("tick", NO_CHANGE, &[], |_| Command::Tick),
    ]
}

fn set(setting: &str, value: &str) -> Command {
    let text = |text: &str| Text::new(text).unwrap();
    Command::SetPolicy { values: BTreeMap::from([(text(setting), text(value))]) }
}

/// Feeds one cell of the table; a wrong row must be refused by name.
fn feed(row: &Row, phase: usize, wrong: Part, expected: &str) {
    let mut world = world_in(PHASES[phase]);
    let command = (row.make)(&named(&world, wrong));
    let found = verdict(&mut world, command);
    assert_eq!(found, expected, "{} in {} with a wrong {wrong:?}", row.what, PHASES[phase]);
}

#[test]
fn a61_every_command_in_every_phase_right_and_wrong() {
    let mut cells = 0;
    for row in of_channels().iter().chain(&of_nodes_and_the_group()) {
        for (phase, right) in row.right.iter().enumerate() {
            feed(row, phase, Part::Nothing, right);
            cells += 1;
            for (part, expected) in row.wrong {
                feed(row, phase, *part, expected[phase]);
                cells += 1;
            }
        }
    }
    assert!(cells >= 300, "{cells} cells");
}

/// Parts that a row does not list are not named by its command.
#[test]
fn a61_no_part_is_left_out() {
    let world = world_in(PHASES[2]);
    let differs = |row: &Row, part| {
        (row.make)(&named(&world, part)) != (row.make)(&named(&world, Part::Nothing))
    };
    let listed = |row: &Row, part| row.wrong.iter().any(|(wrong, _)| *wrong == part);
    for part in WRONG {
        for row in of_channels() {
            assert_eq!(listed(&row, part), differs(&row, part), "{} {part:?}", row.what);
        }
        // Of a session every owner is as right as another.
        for row in of_nodes_and_the_group().iter().filter(|_| part != Part::Owner) {
            assert_eq!(listed(row, part), differs(row, part), "{} {part:?}", row.what);
        }
    }
}

fn registers(incarnation: &str) -> Command {
    Command::RegisterSession(Registration {
        name: NodeName::new("D1").unwrap(),
        address: Address::new("D1:1").unwrap(),
        role: Role::Data,
        version: Text::new("1").unwrap(),
        labels: BTreeMap::new(),
        incarnation: Incarnation::new(incarnation).unwrap(),
    })
}
