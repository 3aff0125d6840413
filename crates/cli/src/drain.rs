//! `node drain`: what it would do, doing it, and waiting until it is done.

use std::time::Duration;

use client::Operator;
use client::proto;
use client::proto::{DescribeNodeRequest, DrainNodeRequest, ForecastDrainRequest};
use serde::Serialize;
use tokio::time::{Instant, sleep};

use crate::args::Global;
use crate::exit::{Code, Failure};
use crate::operator::{node_ref, show_receipt};
use crate::output::{Output, pairs, table};
use crate::progress::Progress;
use crate::render;

/// Between two looks at a running drain.
const LOOK: Duration = Duration::from_millis(200);

/// How far the emptying of a node is.
#[derive(Debug, Serialize)]
pub(crate) struct Drain {
    drained: bool,
    watched: u32,
    to_watch: u32,
    to_release: u32,
    since_ms: u64,
    waiting_for: String,
    waiting_until_ms: u64,
    unblocked_by: String,
}

#[derive(Serialize)]
struct Forecast {
    rounds: u32,
    moves_at_a_time: u32,
    round_timeout_ms: u64,
    moves: Vec<Move>,
    stays: Vec<Stay>,
}

#[derive(Serialize)]
struct Move {
    channel: String,
    node_id: u64,
    node_name: String,
    round: u32,
}

#[derive(Serialize)]
struct Stay {
    channel: String,
    waiting_for: String,
    waiting_until_ms: u64,
    unblocked_by: String,
}

impl From<proto::Drain> for Drain {
    fn from(drain: proto::Drain) -> Self {
        Self {
            drained: drain.drained,
            watched: drain.watched,
            to_watch: drain.to_watch,
            to_release: drain.to_release,
            since_ms: drain.since_ms,
            waiting_for: drain.waiting_for,
            waiting_until_ms: drain.waiting_until_ms,
            unblocked_by: drain.unblocked_by,
        }
    }
}

impl Drain {
    const fn left(&self) -> u32 {
        self.watched.saturating_add(self.to_watch).saturating_add(self.to_release)
    }

    /// For people, under the facts of the node.
    pub(crate) fn text(&self) -> String {
        let left = match self.left() {
            0 => "nothing: the node is empty".to_owned(),
            _ => format!(
                "{} watched, {} to watch, {} being released",
                self.watched, self.to_watch, self.to_release
            ),
        };
        pairs([
            ("draining since", render::time(self.since_ms)),
            ("left", left),
            ("waiting for", self.waiting_for.clone()),
            ("until", render::time(self.waiting_until_ms)),
            ("unblocked by", self.unblocked_by.clone()),
        ])
    }
}

/// Shows what a drain would do, or drains; with `wait`, returns when the node is empty.
pub(crate) async fn run(
    operator: &Operator,
    node: &str,
    forecast: bool,
    wait: Option<Duration>,
    global: &Global,
    output: &Output,
) -> Result<(), Failure> {
    if forecast {
        return show_forecast(operator, node, global, output).await;
    }
    let request = DrainNodeRequest { node: Some(node_ref(node)), write: None };
    let receipt = operator.drain_node(request).await?.receipt;
    let Some(wait) = wait else { return show_receipt(output, receipt) };
    let drain = until_empty(operator, node, wait, global, output).await?;
    output.show(&drain, Drain::text)
}

async fn until_empty(
    operator: &Operator,
    node: &str,
    wait: Duration,
    global: &Global,
    output: &Output,
) -> Result<Drain, Failure> {
    let end = Instant::now().checked_add(wait);
    let mut progress: Option<(u32, Progress)> = None;
    loop {
        let request = DescribeNodeRequest { read: global.read(), node: Some(node_ref(node)) };
        let Some(drain) = operator.describe_node(request).await?.drain else {
            return Err(Failure::new(
                Code::Conflict,
                format!(
                    "{node} is not being drained: it was taken back, or the session is a new one"
                ),
            ));
        };
        let drain = Drain::from(drain);
        if drain.drained {
            return Ok(drain);
        }
        let left = drain.left();
        let (total, bar) = progress
            .get_or_insert_with(|| (left, Progress::bar(output, "draining", u64::from(left))));
        bar.set(u64::from(total.saturating_sub(left)));
        if end.is_some_and(|end| Instant::now() >= end) {
            let reason = match drain.waiting_for.as_str() {
                "" => String::new(),
                why => format!(": {why}; {}", drain.unblocked_by),
            };
            let text = format!("{left} channels are left on {node}{reason}");
            return Err(Failure::new(Code::Unavailable, text));
        }
        sleep(LOOK).await;
    }
}

async fn show_forecast(
    operator: &Operator,
    node: &str,
    global: &Global,
    output: &Output,
) -> Result<(), Failure> {
    let request = ForecastDrainRequest { read: global.read(), node: Some(node_ref(node)) };
    let answer = operator.forecast_drain(request).await?;
    let moves = answer.moves.into_iter().map(|step| Move {
        channel: step.channel,
        node_id: step.node_id,
        node_name: step.node_name,
        round: step.round,
    });
    let stays = answer.stays.into_iter().map(|stay| Stay {
        channel: stay.channel,
        waiting_for: stay.waiting_for,
        waiting_until_ms: stay.waiting_until_ms,
        unblocked_by: stay.unblocked_by,
    });
    let forecast = Forecast {
        rounds: answer.rounds,
        moves_at_a_time: answer.moves_at_a_time,
        round_timeout_ms: answer.round_timeout_ms,
        moves: moves.collect(),
        stays: stays.collect(),
    };
    output.show(&forecast, forecast_text)
}

fn forecast_text(forecast: &Forecast) -> String {
    let facts = pairs([
        ("channels that leave", forecast.moves.len().to_string()),
        ("channels that stay", forecast.stays.len().to_string()),
        ("rounds", format!("{} of at most {}", forecast.rounds, forecast.moves_at_a_time)),
        ("a round without answer", format!("{} ms at most", forecast.round_timeout_ms)),
    ]);
    let mut parts = vec![facts];
    if !forecast.moves.is_empty() {
        let mut table = table(["round", "channel", "goes to", "name"]);
        for step in &forecast.moves {
            table.add_row([
                step.round.to_string(),
                step.channel.clone(),
                step.node_id.to_string(),
                step.node_name.clone(),
            ]);
        }
        parts.push(table.to_string());
    }
    if !forecast.stays.is_empty() {
        let mut table = table(["stays", "because", "until", "unblocked by"]);
        for stay in &forecast.stays {
            table.add_row([
                stay.channel.clone(),
                stay.waiting_for.clone(),
                render::time(stay.waiting_until_ms),
                stay.unblocked_by.clone(),
            ]);
        }
        parts.push(table.to_string());
    }
    parts.join("\n\n")
}
