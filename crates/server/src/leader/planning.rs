//! What becomes of a plan: one decision in flight, back-off after refusals. When to plan is in
//! `look`. The choices are made by the planner crate on the applied state; apply judges them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use planner::{Budget, Plan, Report, View};
use state::State;
use state::command::Command;
use state::decision::{Cause, Move};
use state::epoch::Revision;
use state::outcome::{Facts, Outcome, RefusedMove};
use tokio::time::{Instant, sleep};
use tracing::{debug, warn};

use super::look::{Look, plan_at};
use super::{Parts, Reign, lock};
use crate::limits;

/// First and longest wait after a decision of which nothing was taken.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));
/// Without anything to wake for, look again after this long; a change of the state wakes earlier.
const REST: Duration = Duration::from_secs(3_600);
/// Decisions whose times are kept.
const TIMES_KEPT: usize = 64;

/// What the planner last said.
#[derive(Debug, Default)]
pub struct Planning {
    report: Mutex<Option<(Revision, Arc<Report>)>>,
    times: Mutex<VecDeque<PlanTime>>,
}

/// How long one decision took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanTime {
    /// Revision of the decision.
    pub revision: Revision,
    /// Moves that were taken.
    pub moves: u64,
    /// Moves among those planned that were made only to even out load.
    pub balance_moves: u64,
    /// Time of the planner.
    pub planned: Duration,
    /// From the beginning of the plan until the decision was applied here.
    pub decided: Duration,
}

impl Planning {
    /// The last report and the revision it was made at.
    #[must_use]
    pub fn report(&self) -> Option<(Revision, Arc<Report>)> {
        lock(&self.report).clone()
    }

    /// The last decisions of this leadership, oldest first.
    #[must_use]
    pub fn times(&self) -> Vec<PlanTime> {
        lock(&self.times).iter().copied().collect()
    }

    fn took(&self, time: PlanTime) {
        let mut times = lock(&self.times);
        if times.len() >= TIMES_KEPT {
            times.pop_front();
        }
        times.push_back(time);
    }
}

/// Totals over all leaderships of this process.
#[derive(Debug, Default)]
pub struct Totals {
    /// Rounds of planning.
    pub rounds: AtomicU64,
    /// Decisions proposed.
    pub decisions: AtomicU64,
    /// Moves taken.
    pub moves: AtomicU64,
    /// Moves refused, by reason.
    pub refusals: Mutex<BTreeMap<&'static str, u64>>,
    /// Revisions that were applied between planning and judging, added up.
    pub lag_revisions: AtomicU64,
    /// Microseconds spent planning, added up.
    pub plan_us: AtomicU64,
    /// Microseconds of the longest plan.
    pub plan_max_us: AtomicU64,
}

/// The duty: plans on every change that leaves work, proposes, waits for the outcome.
pub async fn run(parts: Parts, reign: Arc<Reign>) {
    let mut views = parts.views.subscribe();
    let mut backoff = BACKOFF.0;
    let mut looked = None;
    loop {
        let state = Arc::clone(&views.borrow_and_update().state);
        let mut wake_at = plan_at(&state, looked);
        let now = parts.clock.stamp();
        if wake_at.is_some_and(|at| at <= now) {
            let begun = Instant::now();
            let Some((plan, planned)) = plan(&parts, &reign, &state).await else { return };
            looked = Some(Look { revision: state.revision(), at: now, wake_at: plan.wake_at });
            wake_at = plan.wake_at;
            *lock(&reign.planning.report) = Some((state.revision(), Arc::new(plan.report)));
            if let Some(decision) = plan.decision {
                let balance = |chosen: &&Move| chosen.cause == Cause::Balance;
                let balance_moves = decision.moves.iter().filter(balance).count();
                let taken = propose(&parts, &state, Command::Place(decision)).await;
                if let Some((revision, moves)) = taken {
                    let balance_moves = u64::try_from(balance_moves).unwrap_or(u64::MAX);
                    let decided = begun.elapsed();
                    reign.planning.took(PlanTime {
                        revision,
                        moves,
                        balance_moves,
                        planned,
                        decided,
                    });
                    backoff = BACKOFF.0;
                } else {
                    looked = None;
                    sleep(backoff).await;
                    backoff = (backoff * 2).min(BACKOFF.1);
                }
                continue;
            }
        }
        let wait = wake_at.map_or(REST, |at| parts.clock.until(at));
        tokio::select! {
            changed = views.changed() => if changed.is_err() { return },
            () = sleep(wait.max(Duration::from_millis(1))) => {}
        }
    }
}

/// Plans off the async threads: a large state takes milliseconds.
async fn plan(parts: &Parts, reign: &Reign, state: &Arc<State>) -> Option<(Plan, Duration)> {
    parts.totals.rounds.fetch_add(1, Ordering::Relaxed);
    let (state, term, now) = (Arc::clone(state), reign.term, parts.clock.stamp());
    let budget = Budget { moves_max: limits::DECISION_MOVES_MAX };
    let (plan, took) = tokio::task::spawn_blocking(move || {
        let begun = Instant::now();
        let plan = planner::plan(&View { state: &state, term, now }, &budget);
        (plan, begun.elapsed())
    })
    .await
    .ok()?;
    let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    parts.totals.plan_us.fetch_add(us, Ordering::Relaxed);
    parts.totals.plan_max_us.fetch_max(us, Ordering::Relaxed);
    Some((plan, took))
}

/// Proposes a decision; its revision and the moves taken, if any were.
async fn propose(parts: &Parts, basis: &State, decision: Command) -> Option<(Revision, u64)> {
    let totals = &parts.totals;
    totals.decisions.fetch_add(1, Ordering::Relaxed);
    let done = match parts.record(vec![parts.request("planner", decision)]).await {
        Ok(done) => done,
        Err(error) => {
            warn!(%error, "a decision was not recorded");
            return None;
        }
    };
    match done.outcomes.first() {
        Some(Outcome::Accepted(receipt)) => {
            let moves = u64::try_from(receipt.record.events.len()).unwrap_or(u64::MAX);
            totals.moves.fetch_add(moves, Ordering::Relaxed);
            let lag = receipt.record.revision.0.saturating_sub(basis.revision().0 + 1);
            totals.lag_revisions.fetch_add(lag, Ordering::Relaxed);
            count(totals, &receipt.refused);
            Some((receipt.record.revision, moves))
        }
        Some(Outcome::NoChange(Facts::AllRefused(refused))) => {
            count(totals, refused);
            None
        }
        other => {
            debug!(?other, "a decision had no effect");
            None
        }
    }
}

fn count(totals: &Totals, refused: &[RefusedMove]) {
    let mut refusals = lock(&totals.refusals);
    for each in refused {
        *refusals.entry(each.refusal.reason()).or_default() += 1;
    }
}
