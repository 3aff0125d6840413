//! The quiet: healthy sessions that renew, and nothing to do. Counts log entries, and the processor
//! time of coordinator processes that this command started.

use std::time::Duration;

use client::proto::GetStatusRequest;
use client::{CancellationToken, Operator};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::owner::{Idle, agent, run_name};
use super::report::{Cost, Quiet};
use crate::exit::Failure;
use crate::group::{Group, wait};

const PATIENCE: Duration = Duration::from_secs(60);
/// After the last registration, before the measurement: everything has been placed and told.
const SETTLE: Duration = Duration::from_secs(3);

/// Measures it.
pub(super) async fn run(
    sessions: u32,
    length: Duration,
    group: Option<&Group>,
    addresses: &[String],
    operators: &[Operator],
) -> Result<Quiet, Failure> {
    let Some(operator) = operators.first() else {
        return Err(Failure::usage("--connections: at least 1 is needed"));
    };
    let before = status(operator).await?;
    let run = run_name()?;
    let stop = CancellationToken::new();
    let mut agents = JoinSet::new();
    for number in 0..sessions {
        let options = agent(addresses, format!("bench-{run}-quiet-{number}"))?;
        let (idle, _) = Idle::new();
        agents.spawn(client::agent::run(options, idle, stop.clone()));
    }
    let until = Instant::now() + PATIENCE;
    while status(operator).await?.0 < before.0 + sessions {
        wait(until, "all sessions to be registered").await?;
    }
    still(operator).await?;
    let first = status(operator).await?;
    let (costs, begun) = (costs(group), Instant::now());
    sleep(length).await;
    let (later, took) = (self::costs(group), begun.elapsed());
    let last = status(operator).await?;
    stop.cancel();
    while agents.join_next().await.is_some() {}
    let ticks_per_second = rustix::param::clock_ticks_per_second();
    let ticks_per_second = u32::try_from(ticks_per_second).map_or(100.0, f64::from);
    let cost = |((member, before), (_, after)): (&(u64, u32), &(u64, u32))| Cost {
        member: *member,
        cpu_percent: 100.0 * f64::from(after.saturating_sub(*before))
            / ticks_per_second
            / took.as_secs_f64().max(f64::EPSILON),
    };
    Ok(Quiet {
        sessions,
        seconds: took.as_secs_f64(),
        log_entries: last.1.saturating_sub(first.1),
        coordinators: costs.iter().zip(&later).map(cost).collect(),
    })
}

/// Nodes that are up, and the last log index.
async fn status(operator: &Operator) -> Result<(u32, u64), Failure> {
    let status = operator.get_status(GetStatusRequest { read: None }).await?;
    Ok((status.nodes_up, status.last_log_index))
}

/// Waits until the log stands still.
async fn still(operator: &Operator) -> Result<(), Failure> {
    let until = Instant::now() + PATIENCE;
    loop {
        let before = status(operator).await?.1;
        sleep(SETTLE).await;
        if status(operator).await?.1 == before {
            return Ok(());
        }
        wait(until, "the log to stand still").await?;
    }
}

/// Ticks of processor time used so far, by member.
fn costs(group: Option<&Group>) -> Vec<(u64, u32)> {
    let Some(group) = group else { return Vec::new() };
    let ticks = |pid: u32| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in parentheses may hold spaces; utime and stime are the 12th and 13th after it.
        let fields = text.rsplit_once(") ")?.1;
        let mut fields = fields.split(' ').skip(11).map(str::parse::<u32>);
        Some(fields.next()?.ok()? + fields.next()?.ok()?)
    };
    let of = |one: &crate::group::Coordinator| Some((one.member, ticks(one.process.pid()?)?));
    group.coordinators.iter().filter_map(of).collect()
}
