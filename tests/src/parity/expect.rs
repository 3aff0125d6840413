//! Judges operations by what a case expects: one attribute after the other, under its match kind.
//! An attribute or a match kind that is not known is failed.

use std::collections::{BTreeMap, BTreeSet};

use planner::policy::{Op, OpKind, Owner};
use serde_json::Value;

use super::json::{Read, get, list, map, need, node, nodes, same, size, text, texts};
use super::ops::{self, NamedOp, channel, counts, kind, merged, owner, shown};
use super::rule;

/// What the judge needs to know of a case.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'v> {
    /// Which policy.
    pub(crate) policy: &'v str,
    /// Its input.
    pub(crate) input: &'v Value,
    /// What is expected of it.
    pub(crate) expect: &'v Value,
}

/// Whether the operations are as expected.
pub(crate) fn check(asked: Asked<'_>, came: &[NamedOp<'_>]) -> Read<()> {
    check_as(text(need(asked.expect, "match")?)?, asked, came)
}

/// Whether only the order of operations differs from what is expected.
pub(crate) fn only_order_differs(asked: Asked<'_>, came: &[NamedOp<'_>]) -> bool {
    let ordered = asked.expect.get("match").and_then(Value::as_str) == Some("exact_ordered");
    ordered && check_as("exact_set", asked, came).is_ok()
}

fn check_as(kind: &str, asked: Asked<'_>, came: &[NamedOp<'_>]) -> Read<()> {
    match kind {
        "none" if came.is_empty() => {}
        "none" => return Err(format!("expected nothing, came {}", shown(came))),
        "not_none" if !came.is_empty() => {}
        "not_none" => return Err("expected something, came nothing".to_owned()),
        "exact_ordered" | "exact_set" => {
            if get(asked.expect, "ops").or_else(|| get(asked.expect, "reallocate")).is_none() {
                return Err("no operations stand in what is expected".to_owned());
            }
        }
        "counts" | "counts_per_node" | "constraints" | "rule" => {}
        other => return Err(format!("the match kind `{other}` is not known")),
    }
    for (key, value) in map(asked.expect)? {
        attribute(asked, kind == "exact_ordered", key, value, came)
            .map_err(|problem| format!("{problem}; came {}", shown(came)))?;
    }
    Ok(())
}

fn attribute(
    asked: Asked<'_>,
    ordered: bool,
    key: &str,
    value: &Value,
    came: &[NamedOp<'_>],
) -> Read<()> {
    let list_of_ops = get(asked.expect, "ops").unwrap_or(&Value::Null);
    let added = ops::meaning_of_add(asked.policy, list_of_ops);
    match key {
        "match" => Ok(()),
        "ops" if value.is_array() => exact(ordered, &ops::ops(value, added)?, came),
        "ops" => same("number of operations", size(value)?, came.len()),
        "reallocate" => reallocate(asked, ordered, value, came),
        "reallocated_nodes" => {
            let released = came.iter().filter(|op| op.kind == OpKind::Release);
            same("nodes that release", size(value)?, released.count())
        }
        "returns" => same("returns", text(value)?, returned(came)),
        "rule" => rule::check(text(value)?, came, added),
        "channels" if value.is_array() => same("channels", names(asked, value)?, moved(came)),
        "channels" => same("number of channels", size(value)?, moved(came).len()),
        "channels_all" => same("channels", names(asked, value)?, moved(came)),
        "channels_any_of" => {
            let allowed = names(asked, value)?;
            let within = moved(came).is_subset(&allowed) && !came.is_empty();
            within.then_some(()).ok_or_else(|| format!("expected any of {allowed:?}"))
        }
        "op_kind" => same("kinds", BTreeSet::from([kind(text(value)?, added)?]), kinds(came)),
        "op_kinds" => {
            let expected: Read<_> =
                texts(value)?.into_iter().map(|word| kind(word, added)).collect();
            same("kinds", expected?, kinds(came))
        }
        "op_node" => same("owners", BTreeSet::from([owner(value)?]), owners(came)),
        "op_nodes" | "nodes" => {
            let expected: Read<_> = list(value)?.iter().map(owner).collect();
            same("owners", expected?, owners(came))
        }
        "non_buffer_nodes" => {
            let expected = nodes(value)?.into_iter().map(Owner::Node).collect();
            let mut owners = owners(came);
            owners.remove(&Owner::Buffer);
            same("nodes", expected, owners)
        }
        "delete" | "watch" | "release" | "add" => {
            per_node(value, counts(came, kind(key, OpKind::Watch)?))
        }
        other => Err(format!("what `{other}` expects is not known")),
    }
}

fn exact(ordered: bool, expected: &[NamedOp<'_>], came: &[NamedOp<'_>]) -> Read<()> {
    let equal = if ordered {
        merged(expected) == merged(came)
    } else {
        planner::policy::op::canonical(expected) == came
    };
    equal.then_some(()).ok_or_else(|| format!("expected {}", shown(expected)))
}

/// A list of nodes with the channels that they are to let go, as channels with their collections.
fn reallocate(asked: Asked<'_>, ordered: bool, value: &Value, came: &[NamedOp<'_>]) -> Read<()> {
    let mut expected = Vec::new();
    for entry in list(value)? {
        let id = node(need(entry, "id")?)?;
        let mut channels = Vec::new();
        for one in list(need(entry, "channels")?)? {
            if !stands_there(asked.input, id.0, one) {
                return Err(format!("{one} is not on node {} in the input", id.0));
            }
            channels.push(channel(one)?);
        }
        expected.push(Op { kind: OpKind::Release, owner: Owner::Node(id), channels });
    }
    exact(ordered, &expected, came)
}

/// Whether the input has this channel on this node, collection included.
fn stands_there(input: &Value, node: u64, channel: &Value) -> bool {
    let nodes = input.get("nodes").and_then(Value::as_array).into_iter().flatten();
    let entry = nodes.filter(|entry| entry.get("id").and_then(Value::as_u64) == Some(node));
    let channels = entry.filter_map(|entry| entry.get("channels")?.as_array()).flatten();
    channels.into_iter().any(|other| other == channel)
}

/// Which of its two lists a register policy filled.
fn returned(came: &[NamedOp<'_>]) -> &'static str {
    let buffered = |op: &NamedOp<'_>| (op.kind, op.owner) == (OpKind::Delete, Owner::Buffer);
    match came {
        [] => "nothing",
        ops if ops.iter().any(buffered) => "buffered_updates",
        _ => "balance_updates",
    }
}

/// Names that are expected. A name that the input does not have can never come, so it is an error
/// where otherwise any of several would do.
fn names<'v>(asked: Asked<'_>, value: &'v Value) -> Read<BTreeSet<&'v str>> {
    let list = texts(value)?;
    let known = BTreeSet::from_iter(all_names(asked.input));
    if let Some(name) = list.iter().find(|name| !known.contains(*name)) {
        return Err(format!("`{name}` is not a channel of the input"));
    }
    let set: BTreeSet<&str> = list.iter().copied().collect();
    if set.len() < list.len() {
        return Err(format!("{value} names a channel twice"));
    }
    Ok(set)
}

/// Every channel that an input names, whatever for.
fn all_names(input: &Value) -> Vec<&str> {
    match input {
        Value::Array(items) => items.iter().flat_map(all_names).collect(),
        Value::Object(fields) => {
            let name = fields.get("name").and_then(Value::as_str);
            name.into_iter().chain(fields.values().flat_map(all_names)).collect()
        }
        Value::String(name) => vec![name],
        _ => Vec::new(),
    }
}

fn per_node(value: &Value, came: BTreeMap<Owner, usize>) -> Read<()> {
    if value.is_number() {
        return same("channels", size(value)?, came.values().sum());
    }
    let mut expected = BTreeMap::new();
    for (key, count) in map(value)? {
        expected.insert(owner(&Value::String(key.clone()))?, size(count)?);
    }
    same("channels per owner", expected, came)
}

fn moved<'v>(came: &[NamedOp<'v>]) -> BTreeSet<&'v str> {
    came.iter().flat_map(|op| op.channels.iter().copied()).collect()
}

fn kinds(came: &[NamedOp<'_>]) -> BTreeSet<OpKind> {
    came.iter().map(|op| op.kind).collect()
}

fn owners(came: &[NamedOp<'_>]) -> BTreeSet<Owner> {
    came.iter().map(|op| op.owner).collect()
}
