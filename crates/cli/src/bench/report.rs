//! What `bench` found, as a table and as JSON. Times are microseconds unless their name says
//! otherwise.

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::exit::Failure;
use crate::output::table;

/// Longest time told apart: a minute.
const LONGEST_US: u64 = 60_000_000;

/// Everything one run found.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// Whether the group was started for it: three processes on this machine, with fsync.
    pub(super) spawned: bool,
    pub(super) loads: Vec<Measured>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) failover: Option<Failovers>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) quiet: Option<Quiet>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) growth: Vec<Growth>,
}

/// One load.
#[derive(Debug, Serialize)]
pub(super) struct Measured {
    pub(super) kind: &'static str,
    pub(super) clients: u32,
    pub(super) connections: usize,
    /// Operations in one request.
    pub(super) batch: u32,
    pub(super) seconds: f64,
    pub(super) requests: u64,
    pub(super) operations: u64,
    pub(super) errors: u64,
    pub(super) operations_per_second: f64,
    pub(super) p50_us: u64,
    pub(super) p90_us: u64,
    pub(super) p99_us: u64,
    pub(super) p999_us: u64,
    pub(super) max_us: u64,
}

/// Leaders killed one after the other.
#[derive(Debug, Serialize)]
pub(super) struct Failovers {
    /// From the kill to the first acknowledgement of a write begun after it.
    pub(super) trials_ms: Vec<f64>,
    pub(super) min_ms: f64,
    pub(super) median_ms: f64,
    pub(super) max_ms: f64,
    pub(super) terms_raised: u64,
}

/// One size of the growth table. Plan times are those of the planner; decided is from the beginning
/// of the plan until the decision was committed and applied on the leader.
#[derive(Debug, Serialize)]
pub(super) struct Growth {
    pub(super) channels: u32,
    pub(super) nodes: u32,
    /// From the announcement until every channel was watched.
    pub(super) placed_ms: f64,
    pub(super) loss_moves: u64,
    pub(super) loss_plan_ms: f64,
    pub(super) loss_decided_ms: f64,
    /// From the end of the session until a client saw that every channel has an owner again.
    pub(super) loss_seen_ms: f64,
    pub(super) balance_moves: u64,
    pub(super) balance_plan_ms: f64,
    pub(super) balance_decided_ms: f64,
}

/// A group with healthy sessions and nothing to do.
#[derive(Debug, Serialize)]
pub(super) struct Quiet {
    pub(super) sessions: u32,
    pub(super) seconds: f64,
    pub(super) log_entries: u64,
    pub(super) coordinators: Vec<Cost>,
}

/// What one coordinator process cost meanwhile.
#[derive(Debug, Serialize)]
pub(super) struct Cost {
    pub(super) member: u64,
    /// Of one core.
    pub(super) cpu_percent: f64,
}

impl Report {
    pub(super) fn new(spawned: bool) -> Self {
        Self { spawned, loads: Vec::new(), failover: None, quiet: None, growth: Vec::new() }
    }
}

/// An empty histogram of microseconds.
pub(super) fn histogram() -> Result<Histogram<u64>, Failure> {
    Histogram::new_with_bounds(1, LONGEST_US, 3)
        .map_err(|error| Failure::failed(format!("cannot make a histogram: {error}")))
}

/// For people.
pub(super) fn text(report: &Report) -> String {
    let mut parts = Vec::new();
    if !report.loads.is_empty() {
        let mut table = table([
            "kind",
            "clients",
            "batch",
            "operations/s",
            "p50 ms",
            "p90 ms",
            "p99 ms",
            "p99.9 ms",
            "max ms",
            "errors",
        ]);
        for load in &report.loads {
            table.add_row([
                load.kind.to_owned(),
                load.clients.to_string(),
                load.batch.to_string(),
                format!("{:.0}", load.operations_per_second),
                milliseconds(load.p50_us),
                milliseconds(load.p90_us),
                milliseconds(load.p99_us),
                milliseconds(load.p999_us),
                milliseconds(load.max_us),
                load.errors.to_string(),
            ]);
        }
        parts.push(table.to_string());
    }
    if let Some(failover) = &report.failover {
        parts.push(format!(
            "leader killed {} times, first acknowledged write after: min {:.1} ms, \
             median {:.1} ms, max {:.1} ms",
            failover.trials_ms.len(),
            failover.min_ms,
            failover.median_ms,
            failover.max_ms
        ));
    }
    if let Some(quiet) = &report.quiet {
        let costs = quiet.coordinators.iter();
        let costs = costs.map(|cost| format!("member {} {:.2} %", cost.member, cost.cpu_percent));
        parts.push(format!(
            "quiet with {} sessions for {:.0} s: {} log entries, of one core: {}",
            quiet.sessions,
            quiet.seconds,
            quiet.log_entries,
            costs.collect::<Vec<_>>().join(", ")
        ));
    }
    if !report.growth.is_empty() {
        parts.push(growth(&report.growth));
    }
    parts.join("\n\n")
}

fn growth(sizes: &[Growth]) -> String {
    let mut table = table([
        "channels",
        "nodes",
        "all watched ms",
        "lost",
        "plan ms",
        "decided ms",
        "seen ms",
        "balance moves",
        "plan ms",
        "decided ms",
    ]);
    for size in sizes {
        table.add_row([
            size.channels.to_string(),
            size.nodes.to_string(),
            format!("{:.0}", size.placed_ms),
            size.loss_moves.to_string(),
            format!("{:.2}", size.loss_plan_ms),
            format!("{:.2}", size.loss_decided_ms),
            format!("{:.1}", size.loss_seen_ms),
            size.balance_moves.to_string(),
            format!("{:.2}", size.balance_plan_ms),
            format!("{:.2}", size.balance_decided_ms),
        ]);
    }
    table.to_string()
}

fn milliseconds(us: u64) -> String {
    format!("{}.{:03}", us / 1000, us % 1000)
}
