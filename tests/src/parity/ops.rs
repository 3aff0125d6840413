//! Layouts and operations as cases write them.

use std::collections::BTreeMap;

use planner::policy::{Holding, Layout, Op, OpKind, Owner};
use serde_json::Value;
use state::ids::NodeId;

use super::json::{Read, get, list, need, node, number, text};

/// How upstream wrote the pseudo node that holds channels without an owner.
const BUFFER_ID: i64 = i64::MIN;

/// An operation as ours, borrowed from the case.
pub(crate) type NamedOp<'v> = Op<&'v str>;

/// A name, or an object with a name.
pub(crate) fn channel(value: &Value) -> Read<&str> {
    value.as_str().map_or_else(|| text(need(value, "name")?), Ok)
}

pub(crate) fn channels(value: &Value) -> Read<Vec<&str>> {
    list(value)?.iter().map(channel).collect()
}

/// What stands in a list of `{id, channels}`.
pub(crate) fn holdings(value: &Value) -> Read<Vec<Holding<&str>>> {
    let mut all = Vec::new();
    for one in list(value)? {
        let id = node(need(one, "id")?)?;
        all.push(Holding::new(id, channels(need(one, "channels")?)?));
    }
    Ok(all)
}

/// The layout of an input. `all_known`: the channels to be placed stand somewhere already.
pub(crate) fn layout(input: &Value) -> Read<Layout<&str>> {
    let nodes = holdings(need(input, "nodes")?)?;
    let mut buffer = get(input, "buffer").map_or(Ok(Vec::new()), channels)?;
    if get(input, "all_known").is_some_and(|known| known == &Value::Bool(true)) {
        buffer.extend(channels(need(input, "channels")?)?);
    }
    Ok(Layout::new(nodes, buffer))
}

pub(crate) fn owner(value: &Value) -> Read<Owner> {
    match value.as_str() {
        Some("buffer") => Ok(Owner::Buffer),
        Some(other) => other
            .parse()
            .map(|id| Owner::Node(NodeId(id)))
            .map_err(|_| format!("`{other}` is not a node")),
        None if value.as_i64() == Some(BUFFER_ID) => Ok(Owner::Buffer),
        None => number(value).map(|id| Owner::Node(NodeId(id))),
    }
}

/// `added` is what "add" means in this list.
pub(crate) fn kind(word: &str, added: OpKind) -> Read<OpKind> {
    match word {
        "delete" => Ok(OpKind::Delete),
        "watch" => Ok(OpKind::Watch),
        "release" => Ok(OpKind::Release),
        "add" => Ok(added),
        other => Err(format!("`{other}` is not a kind of operation")),
    }
}

/// Operations in the order of the list; those without channels are nothing (C6).
pub(crate) fn ops(value: &Value, added: OpKind) -> Read<Vec<NamedOp<'_>>> {
    let mut all = Vec::new();
    for op in list(value)? {
        let kind = kind(text(need(op, "op")?)?, added)?;
        let owner = owner(need(op, "node")?)?;
        let channels = channels(need(op, "channels")?)?;
        if !channels.is_empty() {
            all.push(Op { kind, owner, channels });
        }
    }
    Ok(all)
}

/// The first generations wrote "add" and let the caller decide: a channel that is taken from nobody
/// is asked back from its owner.
pub(crate) fn meaning_of_add(policy: &str, list: &Value) -> OpKind {
    let asks_back = policy.starts_with("register.") || policy.starts_with("balance.");
    let deletes = list
        .as_array()
        .into_iter()
        .flatten()
        .any(|op| op.get("op").and_then(Value::as_str) == Some("delete"));
    if asks_back && !deletes { OpKind::Release } else { OpKind::Watch }
}

/// Operations of the same kind and owner that follow each other, as one (C8).
pub(crate) fn merged(ops: &[NamedOp<'_>]) -> Vec<Op<String>> {
    let mut all: Vec<Op<String>> = Vec::new();
    for op in ops {
        let channels = op.channels.iter().map(|name| (*name).to_owned());
        match all.last_mut().filter(|last| (last.kind, last.owner) == (op.kind, op.owner)) {
            Some(last) => last.channels.extend(channels),
            None => all.push(Op { kind: op.kind, owner: op.owner, channels: channels.collect() }),
        }
    }
    all
}

/// How many channels each owner has in operations of this kind.
pub(crate) fn counts(ops: &[NamedOp<'_>], kind: OpKind) -> BTreeMap<Owner, usize> {
    let of_kind = ops.iter().filter(|op| op.kind == kind);
    of_kind.map(|op| (op.owner, op.channels.len())).collect()
}

/// One line for a list of operations.
pub(crate) fn shown<C: AsRef<str>>(ops: &[Op<C>]) -> String {
    if ops.is_empty() {
        return "nothing".to_owned();
    }
    let op = |op: &Op<C>| {
        let channels: Vec<&str> = op.channels.iter().map(AsRef::as_ref).collect();
        format!("{} {} [{}]", op.kind, op.owner, channels.join(" "))
    };
    ops.iter().map(op).collect::<Vec<_>>().join(", ")
}
