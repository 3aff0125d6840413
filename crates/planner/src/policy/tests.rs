//! Tables of the policies: one test for each kind, with the worked numbers of sections 11 and 12.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use state::choices::{CHOICES, Choice};
use state::ids::{CollectionId, NodeId};

use super::balance::About;
use super::register::Handover;
use super::*;

type Nodes<'a> = &'a [(u64, &'a str)];

fn split(names: &str) -> Vec<&str> {
    names.split_whitespace().collect()
}

fn holdings<'a>(nodes: Nodes<'a>) -> Vec<Holding<&'a str>> {
    nodes.iter().map(|(node, names)| Holding::new(NodeId(*node), split(names))).collect()
}

fn layout<'a>(nodes: Nodes<'a>, buffer: &'a str) -> Layout<&'a str> {
    Layout::new(holdings(nodes), split(buffer))
}

/// One line: `delete n1 a b; watch n2 a b`.
fn shown(ops: &[Op<&str>]) -> String {
    let op = |op: &Op<&str>| format!("{} {} {}", op.kind, op.owner, op.channels.join(" "));
    ops.iter().map(op).collect::<Vec<_>>().join("; ")
}

fn about(_: &str) -> About {
    About { collection: CollectionId(1), movable: true }
}

#[test]
fn names_are_those_of_the_settings() {
    let names = |all: &[&'static str]| all.join(" ");
    let assign: Vec<_> = Assign::ALL.iter().map(|policy| policy.name()).collect();
    let reassign: Vec<_> = Reassign::ALL.iter().map(|policy| policy.name()).collect();
    let deregister: Vec<_> = Deregister::ALL.iter().map(|policy| policy.name()).collect();
    let register: Vec<_> = Register::ALL.iter().map(|policy| policy.name()).collect();
    let balance: Vec<_> = Balance::ALL.iter().map(|policy| policy.name()).collect();
    assert_eq!(names(&assign), "average by_count consistent_hash");
    assert_eq!(names(&reassign), "average round_robin round_robin_unsorted by_count none");
    assert_eq!(names(&deregister), "average consistent_hash none");
    assert_eq!(names(&register), "none buffer_assign avg_assign consistent_hash");
    assert_eq!(names(&balance), "average average_v2 pchannel_count_fair vchannel_fair none");
    let known = |choice: Choice, name: &str| match choice {
        Choice::Assign => Assign::from_name(name).is_some(),
        Choice::Reassign => Reassign::from_name(name).is_some(),
        Choice::Deregister => Deregister::from_name(name).is_some(),
        Choice::Register => Register::from_name(name).is_some(),
        Choice::Balance => Balance::from_name(name).is_some(),
    };
    for choice in CHOICES {
        let ours = ["balanced", "spread"];
        for name in choice.allowed().iter().filter(|name| !ours.contains(name)) {
            assert!(known(choice, name), "{choice:?} {name}");
        }
    }
    assert_eq!(Assign::from_name("by_count"), Some(Assign::ByCount));
    assert_eq!(Assign::from_name("balanced"), None);
    assert_eq!(Balance::from_name("Average"), None);
}

#[test]
fn register() {
    let hashed: Nodes<'_> = &[(1, "ch-1 ch-4 ch-5"), (2, "ch-2 ch-3 ch-6"), (3, "")];
    let rows: &[(Register, Nodes<'_>, &str, u64, &str)] = &[
        (Register::None, &[(9, "")], "c1", 9, ""),
        (Register::BufferAssign, &[(9, "")], "c2 c1", 9, "delete buffer c1 c2; watch n9 c1 c2"),
        (Register::BufferAssign, &[], "c1", 9, "delete buffer c1; watch n9 c1"),
        (Register::BufferAssign, &[(1, "a b c d"), (9, "")], "", 9, ""),
        (Register::AvgAssign, &[(1, "a b c d")], "x", 9, "delete buffer x; watch n9 x"),
        (
            Register::AvgAssign,
            &[(1, "a b c d"), (2, "e f g"), (3, "h"), (9, "")],
            "",
            9,
            "release n1 a; release n2 e",
        ),
        (Register::AvgAssign, &[(1, "a b c"), (2, "d")], "", 9, "release n1 a"),
        (
            Register::AvgAssign,
            &[(1, "c0 c1 c2 c3 c4 c5"), (2, "z")],
            "",
            9,
            "release n1 c0; release n2 z",
        ),
        (Register::AvgAssign, &[(1, "x"), (2, "y")], "", 9, ""),
        (Register::AvgAssign, &[(9, "")], "", 9, ""),
        (Register::ConsistentHash, hashed, "", 3, "release n1 ch-1 ch-5; release n2 ch-6"),
        (Register::ConsistentHash, hashed, "ch-7", 3, "delete buffer ch-7; watch n3 ch-7"),
    ];
    for (policy, nodes, buffer, joining, expected) in rows {
        let ops = policy.run(&layout(nodes, buffer), NodeId(*joining), Handover::Release);
        assert_eq!(shown(&ops), *expected, "{policy:?} {nodes:?} {buffer:?}");
    }
    let ops = Register::ConsistentHash.run(&layout(hashed, ""), NodeId(3), Handover::Direct);
    assert_eq!(shown(&ops), "delete n1 ch-1 ch-5; delete n2 ch-6; watch n3 ch-1 ch-5 ch-6");
}

#[test]
fn assign() {
    let known: Nodes<'_> = &[(1, "y"), (2, ""), (3, "x")];
    let three: Nodes<'_> = &[(1, "a b c"), (2, ""), (3, "z")];
    let rows: &[(Assign, Nodes<'_>, &str, &str, &str)] = &[
        (Assign::Average, known, "q", "a b c d q", "watch n1 b; watch n2 a d; watch n3 c"),
        (Assign::Average, known, "q", "q x y", ""),
        (Assign::Average, &[], "q", "q new new", "watch buffer new"),
        (Assign::Average, &[], "", "", ""),
        (
            Assign::ConsistentHash,
            &[(2, ""), (1, "")],
            "",
            "ch-1 ch-2",
            "watch n1 ch-1; watch n2 ch-2",
        ),
        (Assign::ConsistentHash, &[], "q", "q new", "watch buffer new"),
        (Assign::ByCount, three, "p q r", "p q r", "delete buffer p q r; watch n2 p r; watch n3 q"),
        (Assign::ByCount, three, "", "", ""),
        (Assign::ByCount, &[], "p", "p", ""),
    ];
    for (policy, nodes, buffer, given, expected) in rows {
        let ops = policy.run(&layout(nodes, buffer), &split(given));
        assert_eq!(shown(&ops), *expected, "{policy:?} {nodes:?} {buffer:?} {given:?}");
    }
}

#[test]
fn by_count_in_both_forms() {
    let three = layout(&[(1, "a b c"), (2, ""), (3, "z")], "");
    let from = Owner::Node(NodeId(3));
    let ops = by_count::place(&three, from, &["z"], &[]);
    assert_eq!(shown(&ops), "delete n3 z; watch n2 z");
    let two = layout(&[(1, "a b"), (2, "c d")], "");
    let ops = by_count::place(&two, Owner::Buffer, &["p", "q", "r"], &[NodeId(2)]);
    assert_eq!(shown(&ops), "delete buffer p q r; watch n1 p q r");
    let fixed = layout(&[(1, ""), (2, "a b c"), (3, "d e")], "");
    let ops = by_count::place(&fixed, Owner::Buffer, &["p", "q", "r", "s"], &[]);
    assert_eq!(
        shown(&ops),
        "delete buffer p q r s; watch n1 p r; watch n3 q s",
        "who lacks is fixed"
    );

    assert_eq!(shown(&by_count::spread(&three, &[])), "release n1 b c");
    let ops = by_count::spread(&three, &[NodeId(1)]);
    assert_eq!(shown(&ops), "delete n1 b c; watch buffer b c");
    assert_eq!(shown(&by_count::spread(&three, &[NodeId(2)])), "", "no empty node is left");
    assert_eq!(shown(&by_count::spread(&layout(&[(1, "a"), (2, "")], ""), &[])), "");
}

#[test]
fn deregister() {
    let three: Nodes<'_> = &[(1, "a b c"), (2, "x"), (3, "y")];
    let rows: &[(Deregister, Nodes<'_>, u64, &str)] = &[
        (Deregister::Average, three, 1, "delete n1 a b c; watch n2 a c; watch n3 b"),
        (Deregister::Average, &[(1, "a")], 1, "delete n1 a; watch buffer a"),
        (Deregister::Average, &[(1, ""), (2, "")], 1, ""),
        (Deregister::Average, three, 7, ""),
        (
            Deregister::ConsistentHash,
            &[(1, "ch-4"), (2, "ch-2"), (3, "ch-1 ch-5 ch-6")],
            3,
            "delete n3 ch-1 ch-5 ch-6; watch n1 ch-1 ch-5; watch n2 ch-6",
        ),
        (Deregister::ConsistentHash, &[(3, "ch-1")], 3, "delete n3 ch-1; watch buffer ch-1"),
        (Deregister::ConsistentHash, three, 7, ""),
        (Deregister::None, three, 1, ""),
    ];
    for (policy, nodes, leaving, expected) in rows {
        let ops = policy.run(&layout(nodes, ""), NodeId(*leaving));
        assert_eq!(shown(&ops), *expected, "{policy:?} {nodes:?}");
    }
}

#[test]
fn reassign() {
    let four: Nodes<'_> = &[(1, "a b"), (2, "l m n"), (3, "o"), (4, "")];
    let rows: &[(Reassign, Nodes<'_>, Nodes<'_>, &str)] = &[
        (Reassign::RoundRobin, four, &[(1, "b a")], "delete n1 a b; watch n3 b; watch n4 a"),
        (
            Reassign::RoundRobin,
            four,
            &[(3, "o"), (1, "a b")],
            "delete n1 a b; delete n3 o; watch n2 b; watch n4 a o",
        ),
        (
            Reassign::RoundRobinUnsorted,
            four,
            &[(1, "a b")],
            "delete n1 a b; watch n2 a; watch n3 b",
        ),
        (Reassign::Average, four, &[(1, "a b")], "delete n1 a b; watch n4 a b"),
        (
            Reassign::Average,
            &[(1, "a b c"), (2, "x"), (3, "y z")],
            &[(1, "a b c")],
            "delete n1 a b c; watch n2 a b; watch n3 c",
        ),
        (Reassign::Average, four, &[(1, "a"), (2, "l"), (3, "o"), (4, "")], ""),
        (Reassign::Average, four, &[], ""),
        (
            Reassign::ByCount,
            &[(1, "a b c"), (2, ""), (3, "z")],
            &[(3, "z")],
            "delete n3 z; watch n2 z",
        ),
        (
            Reassign::ByCount,
            four,
            &[(1, "a b"), (3, "o")],
            "delete n1 a b; delete n3 o; watch n4 a b o",
        ),
        (Reassign::None, four, &[(1, "a b")], ""),
    ];
    for (policy, nodes, leaving, expected) in rows {
        let ops = policy.run(&layout(nodes, ""), &holdings(leaving));
        assert_eq!(shown(&ops), *expected, "{policy:?} {nodes:?} {leaving:?}");
    }
}

#[test]
fn balance() {
    let rows: &[(Balance, Nodes<'_>, &str)] = &[
        (Balance::Average, &[(1, "a b c d"), (2, "e"), (3, "")], "release n1 a b"),
        (Balance::Average, &[(1, "a b"), (2, "")], ""),
        (Balance::Average, &[(1, "a b c"), (2, "")], "release n1 a"),
        (Balance::Average, &[(1, "a b c d"), (2, "")], "release n1 a"),
        (Balance::Average, &[], ""),
        (Balance::AverageV2, &[(1, "a b c d"), (2, "e"), (3, "")], "release n1 a b"),
        (Balance::AverageV2, &[(1, "a b"), (2, "")], "release n1 a"),
        (Balance::AverageV2, &[(1, "a b c"), (2, "d e f"), (3, "g")], "release n2 d"),
        (Balance::AverageV2, &[(1, "a b"), (2, "c d"), (3, "e f")], ""),
        (Balance::AverageV2, &[(1, "a"), (2, "b c d e e")], "release n2 b"),
        (Balance::AverageV2, &[], ""),
        (
            Balance::PchannelCountFair,
            &[(1, "a b c d e"), (2, ""), (3, "f")],
            "watch n2 c d; watch n3 e; release n1 c d e",
        ),
        (Balance::PchannelCountFair, &[(1, "a b"), (2, "c")], ""),
        (Balance::PchannelCountFair, &[], ""),
        (Balance::VchannelFair, &[(1, "a b"), (2, "")], "watch n2 b; release n1 b"),
        (Balance::VchannelFair, &[(1, "a b"), (2, "c")], ""),
        (Balance::None, &[(1, "a b c d"), (2, "")], ""),
    ];
    for (policy, nodes, expected) in rows {
        let ops = policy.run(&layout(nodes, ""), about);
        assert_eq!(shown(&ops), *expected, "{policy:?} {nodes:?}");
    }
}

#[test]
fn merging_sorts_and_drops_what_is_empty() {
    let op =
        |kind, owner, channels: &[&'static str]| Op { kind, owner, channels: channels.to_vec() };
    let node = Owner::Node(NodeId(1));
    let ops = vec![
        op(OpKind::Release, node, &["c"]),
        op(OpKind::Watch, node, &["b"]),
        op(OpKind::Watch, Owner::Buffer, &["x"]),
        op(OpKind::Watch, node, &["a"]),
        op(OpKind::Delete, node, &[]),
    ];
    let merged = op::canonical(&ops);
    assert_eq!(shown(&merged), "watch buffer x; watch n1 a b; release n1 c");
    assert_eq!(merged.first().map(|op| op.owner.to_string()), Some("buffer".to_string()));
}
