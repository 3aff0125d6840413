//! Reads one command of a script. The words are those of Display where that names everything; the
//! rest is written out (see `scripts/README.md`). A wrong line fails the test with the word that
//! does not fit.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::build::{channel, text, worker};
use crate::channel::{AckResult, ChannelSpec, PhaseKind};
use crate::command::{Command, NodeAck, OwnerClaim};
use crate::decision::{Action, Basis, Cause, Decision, Guard, Move};
use crate::epoch::{ChannelTerm, NodeEpoch, Op, Revision, Term};
use crate::ids::{Address, CollectionId, Incarnation, MemberId, NodeId};
use crate::node::{NodeRef, Registration, Role};

/// What a script may leave out.
pub(crate) struct Defaults {
    pub(crate) term: Term,
    pub(crate) revision: Revision,
}

struct Words<'a> {
    line: &'a str,
    rest: Vec<&'a str>,
}

impl<'a> Words<'a> {
    fn new(line: &'a str) -> Self {
        let mut rest: Vec<&str> = line.split_whitespace().collect();
        rest.reverse();
        Self { line, rest }
    }

    fn next(&mut self) -> &'a str {
        self.rest.pop().unwrap_or_else(|| panic!("{:?} ends too early", self.line))
    }

    fn peek(&self) -> Option<&'a str> {
        self.rest.last().copied()
    }

    fn skip(&mut self, word: &str) -> bool {
        let found = self.peek() == Some(word);
        if found {
            self.rest.pop();
        }
        found
    }

    fn number(&mut self, prefix: &str) -> u64 {
        let word = self.next();
        let number = word.strip_prefix(prefix).and_then(raw);
        number.unwrap_or_else(|| panic!("{word:?} in {:?} is no {prefix:?} number", self.line))
    }

    fn node(&mut self) -> NodeRef {
        let node = NodeId(self.number("n"));
        NodeRef { node, epoch: NodeEpoch(self.number("e")) }
    }

    fn term(&mut self) -> ChannelTerm {
        ChannelTerm(self.number("t"))
    }

    fn op(&mut self) -> Op {
        Op(self.number("op"))
    }

    fn claim(&mut self) -> OwnerClaim {
        OwnerClaim { node: self.node(), term: self.term() }
    }

    fn remaining(&mut self) -> String {
        let mut words = core::mem::take(&mut self.rest);
        words.reverse();
        words.join(" ")
    }

    fn pairs(&mut self) -> BTreeMap<String, String> {
        let mut pairs = BTreeMap::new();
        while let Some((key, value)) = self.peek().and_then(|word| word.split_once('=')) {
            pairs.insert(key.to_string(), value.to_string());
            self.rest.pop();
        }
        pairs
    }
}

/// `7`, or `g2.7`.
pub(crate) fn raw(word: &str) -> Option<u64> {
    match word.strip_prefix('g').and_then(|word| word.split_once('.')) {
        Some((generation, count)) => {
            let generation: u16 = generation.parse().ok()?;
            let count: u64 = count.parse().ok()?;
            Some(Revision::first(generation).0 | count)
        }
        None => word.parse().ok(),
    }
}

/// `n1 e2 12000`
pub(crate) fn silence(line: &str) -> (NodeRef, u64) {
    let mut words = Words::new(line);
    (words.node(), words.number(""))
}

pub(crate) fn command(line: &str, defaults: &Defaults) -> Command {
    let mut words = Words::new(line);
    let command = match words.next() {
        "LeaderStart" => {
            words.skip("term");
            Command::LeaderStart {
                term: Term(words.number("")),
                member: MemberId(words.number("m")),
            }
        }
        "RegisterSession" => Command::RegisterSession(registration(&mut words)),
        "SessionsObserved" => observed(&mut words),
        "SetStopping" => Command::SetStopping { node: words.node() },
        "UnsetStopping" => Command::UnsetStopping { node: words.node() },
        "Revoke" => Command::Revoke { node: words.node() },
        "ExpireSession" => {
            let node = words.node();
            let leader_term =
                if words.skip("term") { Term(words.number("")) } else { defaults.term };
            Command::ExpireSession { node, leader_term }
        }
        "SetLevel" => {
            Command::SetLevel { level: u32::try_from(words.number("")).unwrap_or_default() }
        }
        "RegisterCleaner" => Command::RegisterCleaner { name: worker(words.next()) },
        "DeregisterCleaner" => Command::DeregisterCleaner { name: worker(words.next()) },
        "Freeze" => Command::Freeze { name: worker(words.next()) },
        "Thaw" => Command::Thaw { name: worker(words.next()) },
        "SetPolicy" => {
            let values = words.pairs();
            let values = values.iter().map(|(key, value)| (text(key), text(value)));
            Command::SetPolicy { values: values.collect() }
        }
        "Tick" => Command::Tick,
        "Place" => Command::Place(decision(&mut words, defaults)),
        kind => of_channel(kind, &mut words),
    };
    assert!(words.rest.is_empty(), "{:?} goes on after the command in {line:?}", words.rest);
    command
}

fn registration(words: &mut Words<'_>) -> Registration {
    let name = worker(words.next());
    let address = Address::new(words.next()).unwrap();
    let role = match words.next() {
        "data" => Role::Data,
        "query" => Role::Query,
        other => panic!("{other:?} is no role"),
    };
    let incarnation = Incarnation::new(words.next()).unwrap();
    let labels = words.pairs();
    let labels = labels.iter().map(|(key, value)| (text(key), text(value))).collect();
    Registration { name, address, role, version: text("1"), labels, incarnation }
}

fn observed(words: &mut Words<'_>) -> Command {
    words.skip("term");
    let leader_term = Term(words.number(""));
    words.skip("seq");
    let seq = words.number("");
    let (mut silent, mut renewed) = (Vec::new(), Vec::new());
    if words.skip("silent") {
        while words.peek().is_some_and(|word| word.starts_with('n')) {
            silent.push((words.node(), words.number("")));
        }
    }
    if words.skip("renewed") {
        while words.peek().is_some() {
            renewed.push(words.node());
        }
    }
    Command::SessionsObserved { leader_term, seq, silent, renewed }
}

fn of_channel(kind: &str, words: &mut Words<'_>) -> Command {
    match kind {
        "WatchChannels" => Command::WatchChannels(specs(words)),
        "MarkDropped" => {
            let channel = channel(words.next());
            let claim = words.skip("by").then(|| words.claim());
            Command::MarkDropped { channel, claim }
        }
        "RemoveChannel" => Command::RemoveChannel { channel: channel(words.next()) },
        "Release" => Command::Release { channel: channel(words.next()), term: words.term() },
        "NodeAck" => Command::NodeAck(NodeAck {
            node: words.node(),
            channel: channel(words.next()),
            term: words.term(),
            op: words.op(),
            result: match words.next() {
                "ok" => AckResult::Ok,
                "failed" => AckResult::Failed,
                "failed_stopped" => AckResult::FailedStopped,
                "conflict" => AckResult::Conflict,
                other => panic!("{other:?} is no result"),
            },
            reason: text(&words.remaining()),
        }),
        "OpTimeout" => Command::OpTimeout {
            channel: channel(words.next()),
            term: words.term(),
            op: words.op(),
        },
        "ExtendDeadline" => Command::ExtendDeadline {
            channel: channel(words.next()),
            term: words.term(),
            op: words.op(),
            progress: words.number(""),
        },
        "CommitMeta" => {
            let channel = channel(words.next());
            words.skip("by");
            let claim = words.claim();
            Command::CommitMeta { channel, claim, positions: words.remaining().into_bytes() }
        }
        "EffectDone" => {
            Command::EffectDone { channel: channel(words.next()), former: words.claim() }
        }
        other => panic!("{other:?} is no command"),
    }
}

fn specs(words: &mut Words<'_>) -> Vec<ChannelSpec> {
    let mut specs: Vec<ChannelSpec> = Vec::new();
    while words.peek().is_some() {
        let name = channel(words.next());
        let given = words.pairs();
        let get = |key: &str, default: &str| given.get(key).map_or(default, |v| v).to_string();
        specs.push(ChannelSpec {
            name,
            collection: CollectionId(get("collection", "1").parse().unwrap()),
            pchannel: text(&get("pchannel", "p")),
            positions: get("positions", "0").into_bytes(),
            schema_ref: text(&get("schema", "s")),
        });
    }
    specs
}

/// `Place [atomic] [term N] [basis R] MOVE; MOVE`
fn decision(words: &mut Words<'_>, defaults: &Defaults) -> Decision {
    let atomic = words.skip("atomic");
    let term = if words.skip("term") { Term(words.number("")) } else { defaults.term };
    let basis = words.skip("basis");
    let revision = if basis { Revision(words.number("")) } else { defaults.revision };
    let moves = words.remaining();
    let moves = moves.split(';').filter(|part| !part.trim().is_empty());
    let moves = moves.map(|part| one_move(&mut Words::new(part))).collect();
    Decision { basis: Basis { term, revision }, moves, atomic }
}

/// `CHANNEL TERM [PHASE] [FROM] -> TO|none [CAUSE]`; phase and cause default to what fits.
fn one_move(words: &mut Words<'_>) -> Move {
    let channel = channel(words.next());
    let term = words.term();
    let named = phase(words.peek().unwrap_or_default());
    if named.is_some() {
        words.next();
    }
    let from = (words.peek() != Some("->")).then(|| words.node());
    assert!(words.skip("->"), "no arrow in {:?}", words.line);
    let (action, usual, cause) = match from {
        None => (Action::Assign { to: words.node() }, PhaseKind::Buffered, Cause::Unassigned),
        Some(from) if words.skip("none") => {
            (Action::Release { from }, PhaseKind::Watched, Cause::Drain)
        }
        Some(from) => (Action::Move { from, to: words.node() }, PhaseKind::Watched, Cause::Drain),
    };
    let cause = match words.remaining().as_str() {
        "" => cause,
        "unassigned" => Cause::Unassigned,
        "planned" => Cause::Planned,
        "given_back" => Cause::GivenBack,
        "drain" => Cause::Drain,
        "balance" => Cause::Balance,
        other => panic!("{other:?} is no cause"),
    };
    let guard = Guard { term, phase: named.unwrap_or(usual) };
    Move { channel, guard, action, cause }
}

fn phase(word: &str) -> Option<PhaseKind> {
    match word {
        "Buffered" => Some(PhaseKind::Buffered),
        "ToWatch" => Some(PhaseKind::ToWatch),
        "Watched" => Some(PhaseKind::Watched),
        "ToRelease" => Some(PhaseKind::ToRelease),
        _ => None,
    }
}
