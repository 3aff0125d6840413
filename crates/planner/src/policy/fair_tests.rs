//! Tables of the fair policies and of what they rest on: worked numbers of section 16, and the
//! search compared with one that leaves nothing out.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use proptest::collection::vec as any_vec;
use proptest::prelude::*;
use state::epoch::ChannelTerm;
use state::ids::{CollectionId, NodeId};

use super::affinity::Profile;
use super::lifecycle::{Former, Lifecycle, Stage};
use super::pchannel_count_fair as count_fair;
use super::vchannel_fair::{FairPlan, Terms, Unit, plan};

/// Channels with the node each is on.
type Present<'a> = &'a [(&'a str, u64)];

fn profile(collections: &[u64]) -> Profile {
    let collections: Vec<CollectionId> = collections.iter().copied().map(CollectionId).collect();
    Profile::new(&collections)
}

fn nodes(ids: &[u64]) -> Vec<NodeId> {
    ids.iter().copied().map(NodeId).collect()
}

/// One line: `p0 1, p1 2`.
fn shown(assignment: &BTreeMap<&str, NodeId>) -> String {
    let pair = |(name, node): (&&str, &NodeId)| alloc::format!("{name} {}", node.0);
    assignment.iter().map(pair).collect::<Vec<_>>().join(", ")
}

#[test]
fn affinity() {
    let rows: &[(&[u64], &[u64], &str)] = &[
        (&[1, 2, 3], &[1, 4], "1/2"),
        (&[1, 4], &[1, 2, 3], "1/2"),
        (&[1, 2, 3], &[5], "1"),
        (&[], &[], "1"),
        (&[], &[3, 3], "-1"),
        (&[1], &[1], "-1"),
        (&[1, 1], &[1], "-2"),
        (&[1, 2], &[1, 2, 3], "-1/3"),
    ];
    for (a, b, expected) in rows {
        let shared = profile(a).shared(&profile(b));
        assert_eq!(shared.affinity().to_string(), *expected, "{a:?} {b:?}");
    }
    assert_eq!(profile(&[1, 2]).shared(&profile(&[1])).to_string(), "2 repeated, 2 different");
}

fn example<'a>(present: Present<'a>) -> Vec<Unit<&'a str>> {
    let of = [("p0", vec![1, 2]), ("p1", vec![1]), ("p2", vec![]), ("p3", vec![3])];
    let unit = |(name, collections): (&'static str, Vec<u64>)| Unit {
        name,
        collections: collections.into_iter().map(CollectionId).collect(),
        at: present.iter().find(|(other, _)| *other == name).map(|(_, node)| NodeId(*node)),
        movable: true,
    };
    of.into_iter().map(unit).collect()
}

fn scored(plan: Option<FairPlan<&str>>) -> String {
    plan.map_or("no node".to_string(), |plan| {
        alloc::format!("{} -> {}: {}", plan.before, plan.after, shown(&plan.assignment))
    })
}

#[test]
fn worked_examples_of_the_fair_policy() {
    let terms = Terms::default();
    let all_on_1: Present<'_> = &[("p0", 1), ("p1", 1), ("p2", 1), ("p3", 1)];
    let apart: Present<'_> = &[("p0", 1), ("p1", 2), ("p2", 1), ("p3", 2)];
    let rows: &[(Present<'_>, &[u64], &str)] = &[
        (&[], &[1, 2], "0 -> 0: p0 1, p1 2, p2 1, p3 2"),
        (all_on_1, &[2, 1], "141/100 -> 0: p0 2, p1 1, p2 2, p3 1"),
        (apart, &[1, 2], "0 -> 0: p0 1, p1 2, p2 1, p3 2"),
        (apart, &[1], "1/100 -> 1/100: p0 1, p1 1, p2 1, p3 1"),
        (apart, &[], "no node"),
    ];
    for (present, ids, expected) in rows {
        let plan = plan(&nodes(ids), example(present), &terms);
        assert_eq!(scored(plan), *expected, "{present:?} {ids:?}");
    }
}

#[test]
fn what_may_not_move_stays() {
    let all_on_1: Present<'_> = &[("p0", 1), ("p1", 1), ("p2", 1), ("p3", 1)];
    let mut units = example(all_on_1);
    units.iter_mut().for_each(|unit| unit.movable = unit.name == "p2");
    let plan = plan(&nodes(&[1, 2]), units, &Terms::default()).unwrap();
    assert_eq!(shown(&plan.assignment), "p0 1, p1 1, p2 2, p3 1");
    let units = example(all_on_1);
    let still = Terms { tolerance: 2_000_000, ..Terms::default() };
    let plan = super::vchannel_fair::plan(&nodes(&[1, 2]), units, &still).unwrap();
    assert_eq!(shown(&plan.assignment), "p0 1, p1 1, p2 1, p3 1");
}

#[test]
fn count_fair_keeps_what_it_can() {
    let rows: &[(Present<'_>, &[u64], &str)] = &[
        (&[("a", 1), ("b", 1), ("c", 1)], &[1, 2], "a 1, b 1, c 2"),
        (&[("a", 1), ("b", 1), ("c", 1), ("d", 1)], &[1, 2], "a 1, b 1, c 2, d 2"),
        (&[("a", 7), ("b", 7), ("c", 7)], &[1, 2], "a 1, b 2, c 1"),
        (&[("a", 2), ("b", 2), ("c", 1)], &[1, 2], "a 2, b 2, c 1"),
        (&[], &[1], ""),
    ];
    for (present, ids, expected) in rows {
        let channels: Vec<_> =
            present.iter().map(|(name, node)| (*name, Some(NodeId(*node)))).collect();
        let assignment = count_fair::plan(&nodes(ids), &channels).unwrap();
        assert_eq!(shown(&assignment), *expected, "{present:?} {ids:?}");
    }
    assert_eq!(count_fair::plan(&[], &[("a", None)]), None);
}

#[test]
fn life_of_a_channel() {
    let (first, second) = (NodeId(456), NodeId(789));
    let new = Lifecycle::new(ChannelTerm(1));
    let assigned = new.try_assign(first).and_then(|channel| channel.try_assign(second)).unwrap();
    assert_eq!((assigned.term, assigned.stage), (ChannelTerm(3), Stage::Assigning));
    assert_eq!(assigned.histories, [Former { term: ChannelTerm(2), node: first }]);
    let done = assigned.assign_done().unwrap();
    assert_eq!((done.stage, done.histories.len()), (Stage::Assigned, 0));
    assert_eq!(done.try_assign(second), None);
    assert_eq!(done.mark_unavailable(ChannelTerm(2)), None);
    let lost = done.mark_unavailable(ChannelTerm(3)).unwrap();
    assert_eq!((lost.stage, lost.assign_done()), (Stage::Unavailable, None));
    assert_eq!(lost.try_assign(second).map(|again| again.term), Some(ChannelTerm(4)));
    assert_eq!(new, Lifecycle::new(ChannelTerm(1)), "values are not changed in place");
}

/// The least total that any placement of at most `moves` channels of the layout reaches.
fn least(ids: &[NodeId], units: &[Unit<&'static str>], moved: &[usize]) -> (Vec<NodeId>, String) {
    let mut best: Option<(Vec<NodeId>, FairPlan<&str>)> = None;
    let still = Terms { moves_max: 0, ..Terms::default() };
    let choices = ids.len().pow(u32::try_from(moved.len()).unwrap());
    for choice in 0..choices {
        let mut units = units.to_vec();
        let mut rest = choice;
        let mut places = Vec::new();
        // The first channel changes slowest: the order of a depth-first search.
        for item in moved.iter().rev() {
            units[*item].at = Some(ids[rest % ids.len()]);
            places.insert(0, ids[rest % ids.len()]);
            rest /= ids.len();
        }
        let plan = plan(ids, units, &still).unwrap();
        if best.as_ref().is_none_or(|(_, least)| less(&plan, least)) {
            best = Some((places, plan));
        }
    }
    let (places, plan) = best.unwrap();
    (places, plan.after.to_string())
}

fn less(a: &FairPlan<&str>, b: &FairPlan<&str>) -> bool {
    a.after.numerator() * b.after.denominator() < b.after.numerator() * a.after.denominator()
}

const NAMES: [&str; 7] = ["a", "b", "c", "d", "e", "f", "g"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Trying the cheapest places only finds what trying all of them finds.
    #[test]
    fn the_search_leaves_nothing_out(
        collections in any_vec(any_vec(1_u64..4, 0..4), 3..7),
        at in any_vec(1_u64..5, 7),
    ) {
        let ids = nodes(&[1, 2, 3, 4]);
        let unit = |((name, collections), node): ((&&'static str, &Vec<u64>), &u64)| Unit {
            name: *name,
            collections: collections.iter().copied().map(CollectionId).collect(),
            at: Some(NodeId(*node)),
            movable: true,
        };
        let mut units: Vec<Unit<&str>> =
            NAMES.iter().zip(&collections).zip(&at).map(unit).collect();
        // Three channels may move, so exactly these three are taken up.
        units.iter_mut().skip(3).for_each(|unit| unit.movable = false);
        let free = Terms { tolerance: 0, ..Terms::default() };
        let found = plan(&ids, units.clone(), &free).unwrap();
        let (places, total) = least(&ids, &units, &[0, 1, 2]);
        prop_assert_eq!(found.after.to_string(), total);
        if found.before != found.after {
            let chosen: Vec<NodeId> = found.assignment.values().copied().take(3).collect();
            prop_assert_eq!(chosen, places);
        }
    }
}
