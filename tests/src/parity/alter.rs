//! Alters expected values, one at a time: what a test of the runner must notice.
//! Parts of an expectation that allow more than one answer are altered only where none is left.

use serde_json::Value;

/// One altered case, and what was altered.
#[derive(Debug)]
pub struct Altered {
    /// Which value, and what became of it.
    pub what: String,
    /// The whole case with that value altered.
    pub body: Value,
}

/// Lists in which every entry counts, so that one less or one more is another expectation.
const COMPLETE: [&str; 11] = [
    "ops",
    "channels",
    "channels_all",
    "op_kinds",
    "non_buffer_nodes",
    "reallocate",
    "histories",
    "watch",
    "delete",
    "assignment",
    "canonical",
];

/// Every single alteration of what this case expects.
#[must_use]
pub fn all(body: &Value) -> Vec<Altered> {
    let mut altered = Vec::new();
    for part in ["expect", "canonical"] {
        let Some(value) = body.get(part) else { continue };
        for (what, value) in variants(part, value) {
            let mut body = body.clone();
            body[part] = value;
            altered.push(Altered { what, body });
        }
    }
    altered
}

/// Each variant of a value with a note on what is different.
fn variants(path: &str, value: &Value) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    let key = path.rsplit('.').find(|part| part.parse::<usize>().is_err()).unwrap_or_default();
    let complete = COMPLETE.contains(&key);
    match value {
        Value::Null => found.extend(leaf(path, value, [something()])),
        Value::Bool(truth) => found.extend(leaf(path, value, [Value::Bool(!truth)])),
        Value::Number(_) => found.extend(leaf(path, value, numbers(value))),
        Value::String(text) => found.extend(leaf(path, value, texts(key, text))),
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                for (what, item) in variants(&format!("{path}.{at}"), item) {
                    let mut items = items.clone();
                    items[at] = item;
                    found.push((what, Value::Array(items)));
                }
            }
            if complete && let Some((last, others)) = items.split_last() {
                found.extend(leaf(path, value, [Value::Array(others.to_vec())]));
                if items.first() != Some(last) && key == "canonical" {
                    let turned: Vec<Value> = items.iter().rev().cloned().collect();
                    found.extend(leaf(path, value, [Value::Array(turned)]));
                }
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                for (what, field) in variants(&format!("{path}.{name}"), field) {
                    let mut fields = fields.clone();
                    fields.insert(name.clone(), field);
                    found.push((what, Value::Object(fields)));
                }
            }
            if complete && let Some(name) = fields.keys().next() {
                let mut fields = fields.clone();
                fields.remove(&name.clone());
                found.extend(leaf(path, value, [Value::Object(fields)]));
            }
        }
    }
    found
}

fn leaf<const N: usize>(path: &str, old: &Value, new: [Value; N]) -> Vec<(String, Value)> {
    let changed = new.into_iter().filter(|new| new != old);
    changed.map(|new| (format!("{path}: {old} -> {new}"), new)).collect()
}

/// An operation where none is expected.
fn something() -> Value {
    serde_json::json!([{ "op": "watch", "node": 1, "channels": ["chan1"] }])
}

fn numbers(value: &Value) -> [Value; 3] {
    match (value.as_u64(), value.as_f64()) {
        (Some(number), _) => [(number + 1).into(), number.saturating_sub(1).into(), 999.into()],
        (None, Some(number)) => [(number + 0.25).into(), (number - 1.0).into(), 0.75.into()],
        _ => [0.into(), 1.into(), 2.into()],
    }
}

fn texts(key: &str, text: &str) -> [Value; 3] {
    let [a, b, c] = match (key, text) {
        ("match", "none") => ["not_none", "exact_set", "no such kind"],
        ("match", "exact_ordered" | "exact_set") => ["none", "no such kind", ""],
        ("match", _) => ["no such kind", "None", ""],
        ("op" | "op_kind" | "op_kinds", "delete") => ["watch", "release", "no such kind"],
        ("op" | "op_kind" | "op_kinds", _) => ["delete", "no such kind", ""],
        ("returns", "balance_updates") => ["buffered_updates", "nothing", ""],
        ("returns", _) => ["balance_updates", "nothing", ""],
        ("node", "buffer") => ["1", "2", "999"],
        ("rule", _) => return rules(text),
        ("score" | "score_before_rebalance", _) => ["1/7", "0", ""],
        ("state", "ASSIGNED") => ["ASSIGNING", "UNAVAILABLE", ""],
        ("state", _) => ["ASSIGNED", "UNINITIALIZED", ""],
        _ => return [format!("{text}-altered").into(), "".into(), "none-of-these".into()],
    };
    [a.into(), b.into(), c.into()]
}

/// A sentence with another node, another kind, and with a word that means nothing.
fn rules(text: &str) -> [Value; 3] {
    let swapped: Vec<&str> = text
        .split(' ')
        .map(|word| match word {
            "watch" | "watch;" => "delete;",
            "delete" | "delete;" => "watch;",
            other => other,
        })
        .collect();
    let other_node = text.replace(['1', '2', '3'], "9").replace("buffer", "8");
    [swapped.join(" ").into(), other_node.into(), format!("{text} perhaps").into()]
}
