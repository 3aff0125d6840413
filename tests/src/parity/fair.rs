//! Runs the cases of whole channels on nodes: affinity, the two fair policies, the life of a
//! channel. `channel_policies` calls it.

use std::collections::{BTreeMap, BTreeSet};

use planner::policy::affinity::Profile;
use planner::policy::lifecycle::{Former, Lifecycle, Stage};
use planner::policy::pchannel_count_fair;
use planner::policy::score::Ratio;
use planner::policy::vchannel_fair::{self, FairPlan, Terms, Unit};
use serde_json::{Map, Value};
use state::epoch::ChannelTerm;
use state::ids::{CollectionId, NodeId};

use super::json::{
    Read, decimal, get, list, map, millionths, need, node, node_key, nodes, number, same, size,
    text, texts, truth,
};
use super::verdict::Verdict;

/// A node for each channel; none: the policy refuses.
type Assignment<'v> = Option<BTreeMap<&'v str, NodeId>>;

pub(crate) fn run(operation: &str, body: &Value) -> Read<Verdict> {
    let (input, expect) = (need(body, "input")?, need(body, "expect")?);
    let canonical = body.get("canonical");
    match operation {
        "affinity" => return affinity(input, expect),
        "lifecycle" => lifecycle(input, expect)?,
        "count_fair" => {
            let assignment = count_fair(input)?;
            judge(expect, &assignment)?;
            if let Some(canonical) = canonical {
                exact(canonical, &assignment, None)?;
            }
        }
        "vchannel_fair" => {
            let plan = fair_plan(input)?;
            let assignment = plan.as_ref().map(|plan| plan.assignment.clone());
            judge(expect, &assignment)?;
            if let Some(canonical) = canonical {
                exact(canonical, &assignment, plan.as_ref())?;
            }
        }
        other => return Err(format!("the policy `pchannel.{other}` is not known")),
    }
    Ok(Verdict::Passed)
}

fn affinity(input: &Value, expect: &Value) -> Read<Verdict> {
    let all = map(need(input, "channels")?)?;
    let [a, b] = texts(need(input, "pair")?)?[..] else {
        return Err("a pair has two channels".to_owned());
    };
    let profile = |name: &str| {
        let channel = all.get(name).ok_or_else(|| format!("`{name}` is not in the input"))?;
        Ok::<_, String>(Profile::new(&collections(channel)?))
    };
    let came = profile(a)?.shared(&profile(b)?).affinity();
    let (mut residue, mut judged) = (false, false);
    for (key, value) in map(expect)? {
        match key.as_str() {
            "match" => kind(value, &["rule"])?,
            "affinity" => {
                let (numerator, denominator) = decimal(value)?;
                let expected = Ratio::new(numerator, denominator);
                residue = expected != came && near(expected, came) && !is_decimal(came);
                judged = true;
                if expected != came && !residue {
                    return Err(format!("affinity: expected {expected}, came {came}"));
                }
            }
            other => return Err(format!("what `{other}` expects is not known")),
        }
    }
    match (judged, residue) {
        (false, _) => Err("no affinity is expected".to_owned()),
        (true, false) => Ok(Verdict::Passed),
        (true, true) => Ok(Verdict::Deviation("floating-point residue: ours is an exact ratio")),
    }
}

/// Less than a thousand-millionth apart.
fn near(a: Ratio, b: Ratio) -> bool {
    let off = a.numerator() * b.denominator() - b.numerator() * a.denominator();
    off.abs() * 1_000_000_000 < a.denominator() * b.denominator()
}

/// Can be written with finitely many decimals.
fn is_decimal(ratio: Ratio) -> bool {
    10_i128.pow(30) % ratio.denominator() == 0
}

fn kind(value: &Value, allowed: &[&str]) -> Read<()> {
    let name = text(value)?;
    let known = allowed.contains(&name);
    known.then_some(()).ok_or_else(|| format!("the match kind `{name}` is not known here"))
}

fn collections(channel: &Value) -> Read<Vec<CollectionId>> {
    map(channel)?.values().map(|id| number(id).map(CollectionId)).collect()
}

fn count_fair(input: &Value) -> Read<Assignment<'_>> {
    let mut at = BTreeMap::new();
    for (key, channels) in map(need(input, "assigned")?)? {
        let id = node_key(key)?;
        at.extend(texts(channels)?.into_iter().map(|name| (name, id)));
    }
    let incoming = texts(need(input, "incoming")?)?;
    let given = texts(need(input, "channels")?)?;
    let names: BTreeSet<&str> =
        given.into_iter().chain(incoming).chain(at.keys().copied()).collect();
    let channels: Vec<_> = names.into_iter().map(|name| (name, at.get(name).copied())).collect();
    Ok(pchannel_count_fair::plan(&nodes(need(input, "nodes")?)?, &channels))
}

fn fair_plan(input: &Value) -> Read<Option<FairPlan<&str>>> {
    let mut terms = Terms::default();
    if let Some(weights) = get(input, "weights") {
        terms.channels = millionths(need(weights, "pchannel")?)?;
        terms.vchannels = millionths(need(weights, "vchannel")?)?;
        terms.anti_affinity = millionths(need(weights, "anti_affinity")?)?;
    }
    if let Some(steps) = get(input, "max_step") {
        terms.moves_max = size(steps)?;
    }
    if let Some(tolerance) = get(input, "tolerance") {
        terms.tolerance = millionths(tolerance)?;
    }
    let current = get(input, "current");
    let mut units = Vec::new();
    for (name, channel) in map(need(input, "channels")?)? {
        let at = current.and_then(|current| get(current, name)).map(node).transpose()?;
        let collections = collections(channel)?;
        units.push(Unit { name: name.as_str(), collections, at, movable: true });
    }
    Ok(vchannel_fair::plan(&nodes(need(input, "nodes")?)?, units, &terms))
}

fn judge(expect: &Value, came: &Assignment<'_>) -> Read<()> {
    let refused = get(expect, "error").map_or(Ok(false), truth)?;
    same("refused", refused, came.is_none())?;
    let (none, mut judged) = (BTreeMap::new(), refused);
    let came = came.as_ref().unwrap_or(&none);
    let mut each: BTreeMap<NodeId, usize> = BTreeMap::new();
    came.values().for_each(|node| *each.entry(*node).or_default() += 1);
    let find = |name: &str| {
        came.get(name).copied().ok_or_else(|| format!("`{name}` is not assigned; is it a channel?"))
    };
    for (key, value) in map(expect)? {
        match key.as_str() {
            "match" => kind(value, &["rule", "constraints", "counts"])?,
            "error" => {}
            "assigned_total" => same(key, size(value)?, came.len())?,
            "nodes_used" => same(key, size(value)?, each.len())?,
            "per_node_min" => same(key, Some(size(value)?), each.values().min().copied())?,
            "per_node_max" => same(key, Some(size(value)?), each.values().max().copied())?,
            "pinned" => {
                for (name, at) in map(value)? {
                    same(&format!("node of {name}"), node(at)?, find(name)?)?;
                }
            }
            "different_node" | "same_node" => {
                for pair in list(value)? {
                    let places: Vec<NodeId> =
                        texts(pair)?.into_iter().map(find).collect::<Read<_>>()?;
                    let [a, b] = places[..] else {
                        return Err(format!("{pair} is not a pair"));
                    };
                    same(&format!("{pair} on the same node"), key == "same_node", a == b)?;
                }
            }
            other => return Err(format!("what `{other}` expects is not known")),
        }
        judged |= key != "match";
    }
    judged.then_some(()).ok_or_else(|| "nothing is expected".to_owned())
}

fn exact(canonical: &Value, came: &Assignment<'_>, plan: Option<&FairPlan<&str>>) -> Read<()> {
    if canonical.is_null() {
        return same("canonical: refused", true, came.is_none());
    }
    need(canonical, "assignment")?;
    for (key, value) in map(canonical)? {
        let score = |ratio: Option<Ratio>| ratio.map(|ratio| ratio.to_string());
        let written = |value: &Value| text(value).map(|text| Some(text.to_owned()));
        match key.as_str() {
            "assignment" => {
                let mut expected = BTreeMap::new();
                for (name, at) in map(value)? {
                    expected.insert(name.as_str(), node(at)?);
                }
                same("canonical assignment", &Some(expected), came)?;
            }
            "score_before_rebalance" => {
                same("canonical score before", written(value)?, score(plan.map(|p| p.before)))?;
            }
            "score" => same("canonical score", written(value)?, score(plan.map(|p| p.after)))?,
            other => return Err(format!("what the canonical `{other}` means is not known")),
        }
    }
    Ok(())
}

fn lifecycle(input: &Value, expect: &Value) -> Read<()> {
    kind(need(expect, "match")?, &["steps"])?;
    if let Some(key) = map(expect)?.keys().find(|key| !["match", "after_step"].contains(&&***key)) {
        return Err(format!("what `{key}` expects is not known"));
    }
    let given = need(input, "given")?;
    let mut channel = Lifecycle::new(ChannelTerm(number(need(given, "term")?)?));
    channel.node = get(given, "node").map(node).transpose()?;
    channel.stage = stage(text(need(given, "state")?)?)?;
    let (steps, after) = (list(need(input, "steps")?)?, list(need(expect, "after_step")?)?);
    same("number of steps", steps.len(), after.len())?;
    for (number, (step, expected)) in (1..).zip(steps.iter().zip(after)) {
        let next = call(&channel, map(step)?)?;
        let changed = next.is_some();
        channel = next.unwrap_or(channel);
        after_step(expected, &channel, changed)
            .map_err(|problem| format!("after step {number}: {problem}"))?;
    }
    Ok(())
}

fn call(channel: &Lifecycle, step: &Map<String, Value>) -> Read<Option<Lifecycle>> {
    let mut calls = step.iter();
    let (Some((call, value)), None) = (calls.next(), calls.next()) else {
        return Err(format!("{step:?} is not one call"));
    };
    match call.as_str() {
        "try_assign" => Ok(channel.try_assign(node(value)?)),
        "assign_done" => Ok(channel.assign_done()),
        "mark_unavailable_term" => Ok(channel.mark_unavailable(ChannelTerm(number(value)?))),
        other => Err(format!("the call `{other}` is not known")),
    }
}

fn stage(name: &str) -> Read<Stage> {
    match name {
        "UNINITIALIZED" => Ok(Stage::Uninitialized),
        "ASSIGNING" => Ok(Stage::Assigning),
        "ASSIGNED" => Ok(Stage::Assigned),
        "UNAVAILABLE" => Ok(Stage::Unavailable),
        other => Err(format!("the state `{other}` is not known")),
    }
}

fn after_step(expected: &Value, channel: &Lifecycle, changed: bool) -> Read<()> {
    for (key, value) in map(expected)? {
        match key.as_str() {
            "changed" => same(key, truth(value)?, changed)?,
            "term" => same(key, ChannelTerm(number(value)?), channel.term)?,
            "node" => same(key, Some(node(value)?), channel.node)?,
            "state" => same(key, stage(text(value)?)?, channel.stage)?,
            "assigned" => same(key, truth(value)?, channel.stage == Stage::Assigned)?,
            "histories" => {
                let former = |entry: &Value| {
                    let term = ChannelTerm(number(need(entry, "term")?)?);
                    Ok(Former { term, node: node(need(entry, "node")?)? })
                };
                let histories: Read<Vec<Former>> = list(value)?.iter().map(former).collect();
                same(key, &histories?, &channel.histories)?;
            }
            other => return Err(format!("what `{other}` expects is not known")),
        }
    }
    Ok(())
}
