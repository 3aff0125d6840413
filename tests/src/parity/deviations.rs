//! Where our policies differ on purpose: predicates on the input of a case, each with its rule.
//! Asked only when an expectation is not met; the canonical answer must be met in any case.

use planner::policy::Layout;
use serde_json::Value;

use super::expect::{Asked, only_order_differs};
use super::ops::{NamedOp, channels, layout};

/// The rule by which ours may differ, if one of them is about such an input.
pub(crate) fn reason(asked: Asked<'_>, came: &[NamedOp<'_>]) -> Option<&'static str> {
    let layout = layout(asked.input).ok()?;
    if order_of_counts_shows(asked.policy, &layout) && only_order_differs(asked, came) {
        return Some("C7: operations are ordered by node id, not by how full nodes are");
    }
    match asked.policy {
        "assign.average" | "assign.consistent_hash" if some_known(&layout, asked.input) => {
            Some("C9: without a node only new channels go to the buffer")
        }
        "balance.v2" if some_node_is_below_the_mean(&layout) => {
            Some("C10: a node below the mean lets nothing go")
        }
        "balance.v2" if someone_has_to_choose(&layout) => {
            Some("C13: the fullest nodes keep the remainder, the lower id first")
        }
        _ => None,
    }
}

/// The policy takes nodes by count, and that is another order than by id.
fn order_of_counts_shows(policy: &str, layout: &Layout<&str>) -> bool {
    let by_count = matches!(
        policy,
        "assign.average"
            | "assign.by_count"
            | "deregister.average"
            | "reassign.average"
            | "reassign.round_robin"
            | "register.avg_assign"
            | "balance.v1"
            | "balance.v2"
    );
    by_count && !layout.nodes().is_sorted_by_key(|held| held.count())
}

/// There is no node, and of the channels given some are known and some are not.
fn some_known(layout: &Layout<&str>, input: &Value) -> bool {
    let given = input.get("channels").and_then(|given| channels(given).ok()).unwrap_or_default();
    let new = layout.unknown(&given).len();
    layout.nodes().is_empty() && new > 0 && new < given.len()
}

fn mean(layout: &Layout<&str>) -> Option<(usize, usize)> {
    let nodes = layout.nodes().len();
    layout.total().checked_div(nodes).zip(layout.total().checked_rem(nodes))
}

fn some_node_is_below_the_mean(layout: &Layout<&str>) -> bool {
    let below = |mean| layout.nodes().iter().any(|held| (1..mean).contains(&held.count()));
    mean(layout).is_some_and(|(mean, _)| below(mean))
}

/// More nodes are above the mean than there is remainder to keep.
fn someone_has_to_choose(layout: &Layout<&str>) -> bool {
    mean(layout).is_some_and(|(mean, remainder)| {
        let above = layout.nodes().iter().filter(|held| held.count() > mean).count();
        remainder > 0 && above > remainder
    })
}
