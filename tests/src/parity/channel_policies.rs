//! Runs the cases of channel-policies: policies of data channels, against `planner::policy`.
//! Cases of whole channels on nodes are in `fair`.

use planner::policy::balance::About;
use planner::policy::register::Handover;
use planner::policy::{
    Assign, Balance, Deregister, Owner, Reassign, Register, by_count, op::canonical,
};
use serde_json::Value;
use state::ids::CollectionId;

use super::case::{Case, Runner};
use super::deviations;
use super::expect::{self, Asked};
use super::fair;
use super::json::{Read, get, list, need, node, nodes, text};
use super::ops::{self, NamedOp, channels, holdings, layout, owner, shown};
use super::verdict::Verdict;

/// The generation that moved channels at once.
const FIRST_ERA: &str = "v1-2.1";

/// Kinds of policies that count; the others are of the old protocol and its store.
const KINDS: [&str; 6] =
    ["register.", "assign.", "reassign.", "deregister.", "balance.", "pchannel."];

/// The runner of channel-policies.
#[derive(Debug, Clone, Copy)]
pub struct ChannelPolicies;

impl Runner for ChannelPolicies {
    fn file(&self) -> &'static str {
        "channel-policies"
    }

    fn select(&self, document: &Value) -> Read<Vec<Case>> {
        let mut cases = Vec::new();
        for body in list(need(document, "vectors")?)? {
            let operation = text(need(body, "policy")?)?.to_owned();
            let id = text(need(body, "id")?)?.to_owned();
            let skipped = body.get("upstream_status").and_then(Value::as_str) == Some("skipped");
            let history = skipped || get(body, "superseded_by").is_some();
            if !history && KINDS.iter().any(|kind| operation.starts_with(kind)) {
                cases.push(Case { id, operation, body: body.clone() });
            }
        }
        Ok(cases)
    }

    fn run(&self, case: &Case) -> Verdict {
        let judged = match case.operation.strip_prefix("pchannel.") {
            Some(operation) => fair::run(operation, &case.body),
            None => run(&case.operation, &case.body),
        };
        judged.unwrap_or_else(Verdict::Failed)
    }
}

fn run(policy: &str, body: &Value) -> Read<Verdict> {
    let input = need(body, "input")?;
    let came = answer(policy, body, input)?;
    if let Some(list) = body.get("canonical") {
        compare(list, &came)?;
    }
    let asked = Asked { policy, input, expect: need(body, "expect")? };
    match expect::check(asked, &came) {
        Ok(()) => Ok(Verdict::Passed),
        Err(problem) => deviations::reason(asked, &came).map(Verdict::Deviation).ok_or(problem),
    }
}

/// What our policy of this name says.
fn answer<'v>(policy: &str, body: &'v Value, input: &'v Value) -> Read<Vec<NamedOp<'v>>> {
    let unknown = || format!("the policy `{policy}` is not known");
    let (kind, name) = policy.split_once('.').ok_or_else(unknown)?;
    // What does nothing is called empty upstream.
    let name = if name == "empty" { "none" } else { name };
    let layout = layout(input)?;
    match kind {
        "register" => {
            let policy = Register::from_name(name).ok_or_else(unknown)?;
            let first = get(body, "era").and_then(Value::as_str) == Some(FIRST_ERA);
            let handover = if first { Handover::Direct } else { Handover::Release };
            Ok(policy.run(&layout, node(need(input, "node")?)?, handover))
        }
        "assign" if name == Assign::ByCount.name() => by_count(&layout, input),
        "assign" => {
            let policy = Assign::from_name(name).ok_or_else(unknown)?;
            Ok(policy.run(&layout, &channels(need(input, "channels")?)?))
        }
        "reassign" => {
            let policy = Reassign::from_name(name).ok_or_else(unknown)?;
            Ok(policy.run(&layout, &holdings(need(input, "reassign")?)?))
        }
        "deregister" => {
            let policy = Deregister::from_name(name).ok_or_else(unknown)?;
            Ok(policy.run(&layout, node(need(input, "node")?)?))
        }
        "balance" => {
            let policy = match name {
                "v1" => Balance::Average,
                "v2" => Balance::AverageV2,
                "none" => Balance::None,
                _ => return Err(unknown()),
            };
            let about = |_| About { collection: CollectionId(0), movable: true };
            Ok(policy.run(&layout, about))
        }
        _ => Err(unknown()),
    }
}

/// Both forms of 11.7: with channels to be placed, or with none.
fn by_count<'v>(
    layout: &planner::policy::Layout<&'v str>,
    input: &'v Value,
) -> Read<Vec<NamedOp<'v>>> {
    let exclusive = get(input, "exclusive").map_or(Ok(Vec::new()), nodes)?;
    let Some(given) = get(input, "to_assign") else {
        let on = get(input, "auto_balance").is_none_or(|on| on == &Value::Bool(true));
        return Ok(if on { by_count::spread(layout, &exclusive) } else { Vec::new() });
    };
    let origin: Owner = owner(need(given, "from")?)?;
    let channels = channels(need(given, "channels")?)?;
    Ok(by_count::place(layout, origin, &channels, &exclusive))
}

/// The canonical answer must come exactly, in the order of C7; null is nothing.
fn compare(expected: &Value, came: &[NamedOp<'_>]) -> Read<()> {
    let none = Value::Array(Vec::new());
    let expected = if expected.is_null() { &none } else { expected };
    if list(expected)?.iter().any(|op| op.get("op").and_then(Value::as_str) == Some("add")) {
        return Err("the canonical answer says `add`, which may mean two things".to_owned());
    }
    let expected = ops::ops(expected, planner::policy::OpKind::Watch)?;
    let wrong = || format!("canonical: expected {}, came {}", shown(&expected), shown(came));
    let place = |op: &NamedOp<'_>| (op.kind, op.owner);
    let sorted = expected.is_sorted_by_key(place)
        && expected.iter().all(|op| op.channels.is_sorted_by(|a, b| a < b));
    // Operations of one kind and owner may stand there one by one (C8).
    let equal = sorted && canonical(&expected) == came;
    equal.then_some(()).ok_or_else(wrong)
}
