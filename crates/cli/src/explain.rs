//! `explain channel NAME`: the decision that placed it, its revision and cause, and what it waits
//! for.

use clap::Subcommand;
use client::proto::{ExplainChannelRequest, ExplainStep};
use serde::Serialize;

use crate::args::Global;
use crate::exit::Failure;
use crate::operator::connect;
use crate::output::{Output, pairs, table};
use crate::render;
use crate::shape;

/// What can be explained.
#[derive(Debug, Subcommand)]
pub(crate) enum Explain {
    /// Why a channel is where it is, and what would change it.
    Channel {
        /// Name of the channel.
        name: String,
    },
}

#[derive(Serialize)]
struct Explained {
    summary: String,
    channel: shape::Channel,
    decision: Option<Step>,
    waiting_for: String,
    waiting_since_ms: u64,
    waiting_until_ms: u64,
    unblocked_by: String,
    history: Vec<Step>,
    candidates: Vec<Candidate>,
}

#[derive(Serialize)]
struct Step {
    revision: u64,
    at_ms: u64,
    event: String,
    caused_by: String,
    actor: String,
}

#[derive(Serialize)]
struct Candidate {
    node_id: u64,
    node_name: String,
    count: u32,
    refused_because: String,
}

impl From<ExplainStep> for Step {
    fn from(step: ExplainStep) -> Self {
        Self {
            revision: step.revision,
            at_ms: step.at_ms,
            event: step.event,
            caused_by: step.caused_by,
            actor: step.actor,
        }
    }
}

/// Explains it.
pub(crate) async fn run(command: Explain, global: &Global, output: &Output) -> Result<(), Failure> {
    let Explain::Channel { name } = command;
    let request = ExplainChannelRequest { read: global.read(), name };
    let answer = connect(global)?.explain_channel(request).await?;
    let candidates = answer.candidates.into_iter().map(|candidate| Candidate {
        node_id: candidate.node_id,
        node_name: candidate.node_name,
        count: candidate.count,
        refused_because: candidate.refused_because,
    });
    let explained = Explained {
        summary: answer.summary,
        channel: answer.channel.unwrap_or_default().into(),
        decision: answer.decision.filter(|step| step.revision != 0).map(Step::from),
        waiting_for: answer.waiting_for,
        waiting_since_ms: answer.waiting_since_ms,
        waiting_until_ms: answer.waiting_until_ms,
        unblocked_by: answer.unblocked_by,
        history: answer.history.into_iter().map(Step::from).collect(),
        candidates: candidates.collect(),
    };
    output.show(&explained, text)
}

fn text(explained: &Explained) -> String {
    let decision = explained.decision.as_ref();
    let facts = pairs([
        ("channel", explained.channel.name.clone()),
        ("phase", explained.channel.phase.to_owned()),
        ("decision", decision.map_or_else(|| "never placed".to_owned(), |step| step.event.clone())),
        ("revision", decision.map_or_else(String::new, |step| step.revision.to_string())),
        ("decided at", decision.map_or_else(String::new, |step| render::time(step.at_ms))),
        ("caused by", decision.map_or_else(String::new, |step| step.caused_by.clone())),
        ("cause", explained.channel.placed_cause.clone()),
        ("waiting for", explained.waiting_for.clone()),
        ("since", render::time(explained.waiting_since_ms)),
        ("until", render::time(explained.waiting_until_ms)),
        ("unblocked by", explained.unblocked_by.clone()),
    ]);
    let mut parts = vec![explained.summary.clone(), facts];
    if !explained.candidates.is_empty() {
        let mut table = table(["candidate", "name", "channels", "refused because"]);
        for candidate in &explained.candidates {
            table.add_row([
                candidate.node_id.to_string(),
                candidate.node_name.clone(),
                candidate.count.to_string(),
                candidate.refused_because.clone(),
            ]);
        }
        parts.push(table.to_string());
    }
    if !explained.history.is_empty() {
        let mut table = table(["revision", "at", "event", "caused by", "actor"]);
        for step in &explained.history {
            table.add_row([
                step.revision.to_string(),
                render::time(step.at_ms),
                step.event.clone(),
                step.caused_by.clone(),
                step.actor.clone(),
            ]);
        }
        parts.push(table.to_string());
    }
    parts.join("\n\n")
}
