//! Runs the golden scripts: one command a line, what came of it indented under it.
//! `UPDATE_EXPECT=1` rewrites the indented lines. The language is described in `scripts/README.md`.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use std::path::{Path, PathBuf};
use std::{env, fs};

use super::build::{at, text};
use super::parse::{self, Defaults};
use crate::command::{Command, Request, Retry};
use crate::epoch::{Term, Timestamp};
use crate::event::Event;
use crate::ids::{NodeId, RequestId};
use crate::outcome::{Facts, Outcome};
use crate::state::State;
use crate::{check, directives_for};

/// What the scripts have shown so far, by name.
type Shown = BTreeSet<String>;

struct Run<'a> {
    state: State,
    term: Term,
    now: Timestamp,
    retry: Option<Retry>,
    shown: &'a mut Shown,
}

impl Run<'_> {
    /// What stands under this line.
    fn line(&mut self, line: &str) -> Vec<String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "generation" => self.state = State::new(rest.parse().unwrap()),
            "term" => self.term = Term(rest.parse().unwrap()),
            "at" => self.now = Timestamp(rest.parse().unwrap()),
            "retry" => {
                let (id, issued_at) = rest.split_once(" issued ").unwrap();
                self.retry = Some(Retry {
                    request_id: RequestId([id.parse().unwrap(); 16]),
                    issued_at: Timestamp(issued_at.parse().unwrap()),
                });
            }
            "silent" => {
                let (node, silent_ms) = parse::silence(rest);
                self.state.evolve(&Event::SessionSilenceChanged { node, silent_ms });
            }
            "show" => return self.show(),
            "directives" => {
                let node = NodeId(rest.trim_start_matches('n').parse().unwrap());
                let directives = directives_for(&self.state, node);
                let line =
                    |d: &crate::Directive| format!("{} {} {} {}", d.kind, d.channel, d.term, d.op);
                return directives.iter().map(line).collect();
            }
            "due" => {
                let due = self.state.due(self.now, 100);
                return due.iter().map(ToString::to_string).collect();
            }
            "effects" => {
                let effects = self.state.effects();
                return effects.map(|(name, former)| format!("{name} {former}")).collect();
            }
            _ => {
                let defaults = Defaults { term: self.term, revision: self.state.revision() };
                let outcome = self.apply(parse::command(line, &defaults));
                return self.explain(word, &outcome);
            }
        }
        Vec::new()
    }

    fn apply(&mut self, command: Command) -> Outcome {
        let mut before = self.state.clone();
        let request = Request { actor: text("script"), retry: self.retry.take(), command };
        let context = at(self.term.0, self.now.0);
        let outcome = self.state.apply(&context, &request);
        if !matches!(outcome, Outcome::Accepted(_)) {
            before.advance(context.now);
            assert_eq!(self.state.digest(), before.digest(), "{} changed more", request.command);
            assert_eq!(self.state.witness(), before.witness());
        }
        let violations = check(&self.state);
        assert!(violations.is_empty(), "after {}: {violations:?}", request.command);
        outcome
    }

    fn explain(&mut self, word: &str, outcome: &Outcome) -> Vec<String> {
        let mut lines = Vec::new();
        match outcome {
            Outcome::Accepted(receipt) => {
                self.shown.insert(format!("{word} accepted"));
                for event in &receipt.record.events {
                    self.shown.insert(event.kind().to_string());
                    lines.push(format!("{} {event}", receipt.record.revision));
                }
                for refused in &receipt.refused {
                    self.shown.insert(refused.refusal.to_string());
                    lines.push(refused.to_string());
                }
            }
            Outcome::NoChange(Facts::AllRefused(refused)) => {
                lines.push("NoChange".to_string());
                for refused in refused {
                    self.shown.insert(refused.refusal.to_string());
                    lines.push(refused.to_string());
                }
            }
            Outcome::NoChange(_) => {
                self.shown.insert(format!("{word} no change"));
                lines.push(outcome.to_string());
            }
            Outcome::Rejected(rejection) => {
                self.shown.insert(rejection.reason().to_string());
                lines.push(outcome.to_string());
            }
        }
        lines
    }

    fn show(&self) -> Vec<String> {
        let state = &self.state;
        let mut lines = Vec::new();
        let (revision, level) = (state.revision(), state.level());
        lines.push(format!("revision {revision}, {}, level {level}", state.now()));
        let frozen = |name| if state.is_frozen(name) { " frozen" } else { "" };
        for node in state.nodes() {
            lines.push(format!("{node}{}", frozen(&node.registration.name)));
        }
        for channel in state.channels() {
            let deadline = state.deadline(channel).map(|due| format!(" due {due}"));
            lines.push(format!("{channel}{}", deadline.unwrap_or_default()));
        }
        for (name, dropped) in state.drops() {
            lines.push(format!("{name} {dropped}"));
        }
        for (setting, value) in state.choice_records() {
            lines.push(format!("{setting}={value}"));
        }
        lines.extend(state.cleaners().map(|(name, since)| format!("cleaner {name} {since}")));
        lines.extend(state.balanced_at().map(|at| format!("balanced at {at}")));
        lines
    }
}

/// The script as it should read.
fn run(script: &str, shown: &mut Shown) -> String {
    let (term, now) = (Term(1), Timestamp(0));
    let mut run = Run { state: State::new(0), term, now, retry: None, shown };
    let mut out = String::new();
    for line in script.lines().filter(|line| !line.starts_with("    ")) {
        out.push_str(line);
        out.push('\n');
        if !line.is_empty() && !line.starts_with('#') {
            for expected in run.line(line) {
                out.push_str(&format!("    {expected}\n"));
            }
        }
    }
    out
}

fn scripts() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut scripts: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|kind| kind == "txt")).collect();
    scripts.sort();
    scripts
}

#[test]
fn scripts_lead_to_what_stands_in_them() {
    let update = env::var_os("UPDATE_EXPECT").is_some();
    let mut shown = Shown::new();
    let mut wrong = Vec::new();
    for path in scripts() {
        let script = fs::read_to_string(&path).unwrap();
        let found = run(&script, &mut shown);
        if found != script && update {
            fs::write(&path, &found).unwrap();
        } else if let Some(line) = first_difference(&script, &found) {
            wrong.push(format!("{}: {line}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "UPDATE_EXPECT=1 rewrites what is meant:\n{}", wrong.join("\n"));
    let missing: Vec<&str> = MUST_SHOW.into_iter().filter(|name| !shown.contains(*name)).collect();
    assert!(missing.is_empty(), "no script shows {missing:?}");
}

fn first_difference(script: &str, found: &str) -> Option<String> {
    let mut pairs = script.lines().zip(found.lines()).enumerate();
    match pairs.find(|(_, (script, found))| script != found) {
        Some((number, (script, found))) => {
            Some(format!("line {}:\n  has   {script}\n  found {found}", number + 1))
        }
        None if script != found => Some("it ends too early or too late".to_string()),
        None => None,
    }
}

/// Every command accepted, every event, every reason to reject a command or refuse a move.
const MUST_SHOW: [&str; 80] = [
    "LeaderStart accepted",
    "RegisterSession accepted",
    "SessionsObserved accepted",
    "SetStopping accepted",
    "UnsetStopping accepted",
    "Revoke accepted",
    "ExpireSession accepted",
    "WatchChannels accepted",
    "MarkDropped accepted",
    "RemoveChannel accepted",
    "Release accepted",
    "NodeAck accepted",
    "OpTimeout accepted",
    "ExtendDeadline accepted",
    "CommitMeta accepted",
    "EffectDone accepted",
    "Place accepted",
    "Freeze accepted",
    "Thaw accepted",
    "SetPolicy accepted",
    "SetLevel accepted",
    "RegisterCleaner accepted",
    "DeregisterCleaner accepted",
    "Tick no change",
    "LeaderStarted",
    "NodeCameUp",
    "NodeBeganStopping",
    "NodeStoppedStopping",
    "NodeWentDown",
    "NodeForgotten",
    "SessionSilenceChanged",
    "SilenceReported",
    "NodeFroze",
    "NodeThawed",
    "ChannelAdded",
    "ChannelPlaced",
    "WatchCompleted",
    "WatchDeadlineExtended",
    "WatchFailed",
    "ReleaseStarted",
    "ChannelUnassigned",
    "ChannelMarkedDropped",
    "ChannelRemoved",
    "FormerOwnerCleared",
    "MetaCommitted",
    "PolicyChanged",
    "LevelRaised",
    "RequestRemembered",
    "CooldownCleared",
    "ChoiceChanged",
    "CleanerRegistered",
    "CleanerDeregistered",
    "STALE_TERM",
    "FUTURE_BASIS",
    "STALE_NODE",
    "STALE",
    "UNKNOWN_CHANNEL",
    "UNKNOWN_NAME",
    "DROPPED",
    "CONFLICT",
    "CHANNEL_DROPPING",
    "NOT_OWNER",
    "NOT_OWNED",
    "TERM_CHANGED",
    "NOT_DUE",
    "NOT_SILENT",
    "NOT_FORMER_OWNER",
    "LIMIT",
    "INVALID",
    "LEVEL",
    "REQUEST_TOO_OLD",
    "LEVEL_TOO_LOW",
    "UNKNOWN_CLEANER",
    "AssignmentChanged",
    "NodeChanged",
    "Gone",
    "Capacity",
    "CoolingDown",
    "Dropping",
    "Atomic",
];
