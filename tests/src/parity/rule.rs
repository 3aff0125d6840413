//! Expectations written as a sentence, such as "every op on the buffer is watch; all other ops are
//! on node 3". A sentence that cannot be read is failed, and so is one that speaks of nothing.

use std::collections::BTreeSet;

use planner::policy::{OpKind, Owner};
use state::ids::NodeId;

use super::json::Read;
use super::ops::{NamedOp, kind};

/// Words that only join the others.
const FILLERS: [&str; 19] = [
    "a",
    "all",
    "and",
    "any",
    "are",
    "be",
    "each",
    "every",
    "is",
    "must",
    "node",
    "nodes",
    "of",
    "on",
    "op",
    "operation",
    "ops",
    "or",
    "the",
];

/// One part of a sentence.
#[derive(Debug, Default)]
struct Clause {
    nodes: BTreeSet<Owner>,
    kinds: BTreeSet<OpKind>,
    /// The kind is what is spoken of, the nodes are what is said of it.
    kinds_first: bool,
    /// It speaks of what the parts before did not speak of.
    other: bool,
    /// It speaks of what must not be.
    never: bool,
}

/// Whether the operations are as the sentence says.
pub(crate) fn check(sentence: &str, ops: &[NamedOp<'_>], added: OpKind) -> Read<()> {
    let mut spoken_of = BTreeSet::new();
    for part in sentence.split(';') {
        let clause = read(part, added).map_err(|word| {
            format!("cannot read the rule `{}`: `{word}` is not known", part.trim())
        })?;
        if !holds(&clause, ops, &spoken_of) {
            return Err(format!("the rule `{}` does not hold", part.trim()));
        }
        spoken_of.extend(clause.nodes);
    }
    Ok(())
}

/// The error is the word that cannot be read.
fn read(part: &str, added: OpKind) -> Result<Clause, String> {
    let mut clause = Clause::default();
    for word in part.split([' ', ',']).filter(|word| !word.is_empty()) {
        let stem = word.strip_suffix("es").filter(|stem| *stem == "watch");
        let stem = stem.or_else(|| word.strip_suffix('s')).unwrap_or(word);
        if let Ok(kind) = kind(word, added).or_else(|_| kind(stem, added)) {
            clause.kinds_first |= clause.nodes.is_empty();
            clause.kinds.insert(kind);
        } else if word == "buffer" {
            clause.nodes.insert(Owner::Buffer);
        } else if let Ok(id) = word.parse() {
            clause.nodes.insert(Owner::Node(NodeId(id)));
        } else if ["other", "others", "rest"].contains(&word) {
            clause.other = true;
        } else if ["no", "never", "none"].contains(&word) {
            clause.never = true;
        } else if word != "only" && !FILLERS.contains(&word) {
            return Err(word.to_owned());
        }
    }
    if clause.kinds.is_empty() && clause.nodes.is_empty() {
        return Err(part.trim().to_owned());
    }
    Ok(clause)
}

fn holds(clause: &Clause, ops: &[NamedOp<'_>], spoken_of: &BTreeSet<Owner>) -> bool {
    let on = |op: &&NamedOp<'_>| clause.nodes.contains(&op.owner);
    let of = |op: &&NamedOp<'_>| clause.kinds.contains(&op.kind);
    if clause.never {
        let on = |op: &&NamedOp<'_>| clause.nodes.is_empty() || on(op);
        let of = |op: &&NamedOp<'_>| clause.kinds.is_empty() || of(op);
        return !ops.iter().filter(on).any(|op| of(&op));
    }
    let subjects: Vec<&NamedOp<'_>> = if clause.other {
        ops.iter().filter(|op| !spoken_of.contains(&op.owner)).collect()
    } else if clause.nodes.is_empty() || clause.kinds.is_empty() {
        ops.iter().collect()
    } else if clause.kinds_first {
        ops.iter().filter(of).collect()
    } else {
        ops.iter().filter(on).collect()
    };
    // Nodes and kinds that do not occur would make a wrong sentence true.
    let owners: BTreeSet<Owner> = subjects.iter().map(|op| op.owner).collect();
    let kinds: BTreeSet<OpKind> = subjects.iter().map(|op| op.kind).collect();
    (clause.nodes.is_empty() || owners == clause.nodes)
        && (clause.kinds.is_empty() || kinds == clause.kinds)
}

#[cfg(test)]
mod tests {
    use planner::policy::Op;

    use super::*;

    #[test]
    fn sentences_are_read_and_judged() {
        let op = |kind, owner, name| Op { kind, owner, channels: vec![name] };
        let node = |id| Owner::Node(NodeId(id));
        let ops = [
            op(OpKind::Delete, node(1), "a"),
            op(OpKind::Delete, node(2), "b"),
            op(OpKind::Watch, Owner::Buffer, "a"),
        ];
        for (sentence, expected) in [
            ("every op on the buffer is watch; every op on 1 or 2 is delete", true),
            ("every op on the buffer is delete", false),
            ("every op on 1 or 3 is delete", false),
            ("buffer ops are watch; all other ops are on node 1 or 2", true),
            ("buffer ops are watch; all other ops are on node 1", false),
            ("buffer ops are watch; all other ops are delete", true),
            ("watch only on the buffer; deletes only on 1, 2", true),
            ("delete only on buffer", false),
            ("every op is watch or delete", true),
            ("every op is release", false),
            ("no op on 3; no release; no watch on 1", true),
            ("no op on 2", false),
            ("no delete", false),
            ("something else", false),
            ("", false),
        ] {
            let result = check(sentence, &ops, OpKind::Watch);
            assert_eq!(result.is_ok(), expected, "{sentence}: {result:?}");
        }
    }
}
