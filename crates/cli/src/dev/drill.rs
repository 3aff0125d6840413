//! Plays drills and judges them: what was lost, what moved, what is equal; and whether the drill
//! proved anything at all. The stories are in the files of their names.

use std::collections::HashSet;
use std::time::Duration;

use client::proto::GetSettingsRequest;
use serde::Serialize;
use tokio::time::{Instant, sleep_until};

use super::writer::{Acknowledged, Writer};
use super::{Drill, evidence, failover, node_loss, restart, storm};
use crate::exit::{Code, Failure};
use crate::group::{Group, wait};
use crate::output::{Output, table};

/// A drill with fewer acknowledged writes proves nothing.
const ACKNOWLEDGED_MIN: usize = 500;
const PATIENCE: Duration = Duration::from_secs(60);

/// What one drill showed.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Report {
    pub(super) drill: &'static str,
    pub(super) ok: bool,
    pub(super) acknowledged: usize,
    pub(super) lost: usize,
    /// From the fault to the first acknowledgement of a write begun after it; of several faults the
    /// longest.
    pub(super) failover_ms: Option<u128>,
    pub(super) moves_caused_by_failover: usize,
    pub(super) witnesses_equal: bool,
    pub(super) invariants_ok: bool,
    pub(super) faults: usize,
    pub(super) acknowledged_after_each_fault: bool,
    pub(super) term_before: u64,
    pub(super) term_after: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) channels_moved: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) moved_after_ms: Option<u128>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) former_owner_fenced: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) restored_from_index: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) digest_before: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) digest_after: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) digests_equal: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kills: Option<usize>,
    /// Why it is not ok.
    pub(super) problems: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Summary {
    ok: bool,
    acknowledged: usize,
    lost: usize,
    failover_ms: Option<u128>,
    moves_caused_by_failover: usize,
    witnesses_equal: bool,
    invariants_ok: bool,
    drills: Vec<Report>,
}

/// A drill while it is played.
pub(super) struct Stage<'a> {
    pub(super) group: &'a mut Group,
    pub(super) report: Report,
    output: &'a Output,
    /// How long after a fault a move may still be its consequence.
    window: Duration,
    /// Revision at the beginning.
    revision: u64,
    placed: HashSet<String>,
}

/// Plays what was asked for and shows the summary.
pub(super) async fn run(
    drill: Drill,
    storm_for: Duration,
    group: &mut Group,
    output: &Output,
) -> Result<(), Failure> {
    let window = window(group).await?;
    let mut drills = Vec::new();
    if matches!(drill, Drill::Failover | Drill::All) {
        let mut stage = Stage::begin("failover", group, output, window).await?;
        failover::play(&mut stage).await?;
        drills.push(stage.report);
    }
    if matches!(drill, Drill::NodeLoss | Drill::All) {
        let mut stage = Stage::begin("node-loss", group, output, window).await?;
        node_loss::play(&mut stage).await?;
        drills.push(stage.report);
    }
    if matches!(drill, Drill::Restart | Drill::All) {
        let mut stage = Stage::begin("restart", group, output, window).await?;
        restart::play(&mut stage).await?;
        drills.push(stage.report);
    }
    if drill == Drill::Storm {
        let mut stage = Stage::begin("storm", group, output, window).await?;
        storm::play(&mut stage, storm_for).await?;
        drills.push(stage.report);
    }
    let summary = Summary {
        ok: drills.iter().all(|report| report.ok),
        acknowledged: drills.iter().map(|report| report.acknowledged).sum(),
        lost: drills.iter().map(|report| report.lost).sum(),
        failover_ms: drills.iter().filter_map(|report| report.failover_ms).max(),
        moves_caused_by_failover: drills.iter().map(|one| one.moves_caused_by_failover).sum(),
        witnesses_equal: drills.iter().all(|report| report.witnesses_equal),
        invariants_ok: drills.iter().all(|report| report.invariants_ok),
        drills,
    };
    output.show(&summary, text)?;
    judge(&summary)
}

impl<'a> Stage<'a> {
    async fn begin(
        drill: &'static str,
        group: &'a mut Group,
        output: &'a Output,
        window: Duration,
    ) -> Result<Self, Failure> {
        let revision = evidence::settled(group).await?;
        let placed = evidence::placed(group).await?;
        let (leader, term_before) = group.leader().await?;
        let report = Report { drill, term_before, ..Report::default() };
        let stage = Self { group, report, output, window, revision, placed };
        let channels = stage.placed.len();
        stage.say(&format!("{channels} channels are watched, member {leader} leads"))?;
        Ok(stage)
    }

    /// Tells people what happens.
    pub(super) fn say(&self, what: &str) -> Result<(), Failure> {
        if self.output.json() {
            return Ok(());
        }
        self.output.text(&format!("{}: {what}", self.report.drill))
    }

    pub(super) fn problem(&mut self, what: impl Into<String>) {
        self.report.problems.push(what.into());
    }

    /// Starts the writers of this drill.
    pub(super) fn write(&self) -> Writer {
        Writer::start(&self.group.operator, &format!("drill-{}", self.report.drill))
    }

    /// Waits until the writers have that many acknowledgements.
    pub(super) async fn acknowledged(
        &mut self,
        writer: &mut Writer,
        count: usize,
    ) -> Result<(), Failure> {
        let until = Instant::now() + PATIENCE;
        while writer.count() < count {
            self.group.check()?;
            writer.check()?;
            wait(until, &format!("{count} acknowledged writes")).await?;
        }
        Ok(())
    }

    /// Waits for an acknowledgement of a write begun after the fault.
    pub(super) async fn after_fault(
        &mut self,
        writer: &mut Writer,
        fault: Instant,
    ) -> Result<(), Failure> {
        let until = Instant::now() + PATIENCE;
        self.report.faults += 1;
        let first = loop {
            if let Some(first) = writer.first_after(fault) {
                break first;
            }
            writer.check()?;
            wait(until, "an acknowledged write after the fault").await?;
        };
        let took_ms = first.duration_since(fault).as_millis();
        self.report.failover_ms = self.report.failover_ms.max(Some(took_ms));
        self.report.acknowledged_after_each_fault = true;
        self.say(&format!("first acknowledged write {took_ms} ms after that"))
    }

    /// Waits until no move can be a consequence of the fault any more.
    pub(super) async fn window(&self, fault: Instant) -> Result<(), Failure> {
        let left = (fault + self.window).saturating_duration_since(Instant::now());
        self.say(&format!("watching for {} ms that nothing moves", left.as_millis()))?;
        sleep_until(fault + self.window).await;
        Ok(())
    }

    /// What happened since the beginning.
    pub(super) async fn history(&self) -> Result<Vec<client::proto::EventRecord>, Failure> {
        evidence::history(self.group, self.revision).await
    }

    /// Ends the load and judges what every drill must show. Moves of channels in `asked` are no
    /// surprise.
    pub(super) async fn end(
        &mut self,
        writer: Writer,
        asked: &HashSet<String>,
    ) -> Result<(), Failure> {
        let written = writer.stop().await?;
        evidence::settled(self.group).await?;
        self.report.acknowledged = written.len();
        self.report.lost = self.lost(&written).await?;
        let moves = evidence::unasked_moves(&self.history().await?, &self.placed, asked);
        self.report.moves_caused_by_failover = moves.len();
        let witness = evidence::witness(self.group).await?;
        self.report.witnesses_equal = witness.equal;
        self.report.invariants_ok = evidence::invariants_ok(self.group).await;
        self.report.term_after = self.group.leader().await?.1;
        if let Some(first) = moves.first() {
            self.problem(format!("{} moves nobody asked for, the first: {first}", moves.len()));
        }
        if written.len() < ACKNOWLEDGED_MIN {
            self.problem(format!("only {} acknowledged writes", written.len()));
        }
        if self.report.lost > 0 {
            self.problem(format!("{} acknowledged writes are lost", self.report.lost));
        }
        if !self.report.witnesses_equal {
            self.problem("members differ");
        }
        if !self.report.invariants_ok {
            self.problem("an invariant does not hold, or a member does not answer");
        }
        self.report.ok = self.report.problems.is_empty();
        let verdict = if self.report.ok { "ok" } else { "NOT OK" };
        self.say(&format!("{verdict}, {} acknowledged, {} lost", written.len(), self.report.lost))
    }

    async fn lost(&self, written: &[Acknowledged]) -> Result<usize, Failure> {
        let channels = evidence::channels(self.group, 0).await?;
        let there: HashSet<String> = channels.iter().map(evidence::name).collect();
        Ok(written.iter().filter(|write| !there.contains(&write.name)).count())
    }
}

/// ttl + grace + leader grace, as the group has them.
async fn window(group: &Group) -> Result<Duration, Failure> {
    let answer = group.operator.get_settings(GetSettingsRequest { read: None }).await?;
    let names = ["ttl_ms", "expiry_grace_ms", "leader_grace_ms"];
    let settings = answer.settings.iter().filter(|one| names.contains(&one.name.as_str()));
    let values: Vec<u64> = settings.filter_map(|one| one.value.parse().ok()).collect();
    if values.len() != names.len() {
        return Err(Failure::failed(format!("the group has no settings {}", names.join(", "))));
    }
    Ok(Duration::from_millis(values.iter().sum()))
}

fn judge(summary: &Summary) -> Result<(), Failure> {
    let problems = summary.drills.iter().flat_map(|report| {
        report.problems.iter().map(|problem| format!("{}: {problem}", report.drill))
    });
    let problems = problems.collect::<Vec<_>>().join("; ");
    let digests_equal = summary.drills.iter().all(|one| one.digests_equal != Some(false));
    let sound = summary.lost == 0 && summary.witnesses_equal && summary.invariants_ok;
    if !sound || !digests_equal {
        return Err(Failure::new(Code::Integrity, problems));
    }
    if summary.ok { Ok(()) } else { Err(Failure::failed(problems)) }
}

fn text(summary: &Summary) -> String {
    let mut table = table([
        "drill",
        "ok",
        "acknowledged",
        "lost",
        "failover ms",
        "moves",
        "witnesses",
        "invariants",
        "term",
        "more",
    ]);
    let word = |value, yes: &str, no: &str| if value { yes } else { no }.to_owned();
    for report in &summary.drills {
        let mut more = Vec::new();
        if let (Some(count), Some(ms)) = (report.channels_moved, report.moved_after_ms) {
            more.push(format!("{count} channels moved within {ms} ms"));
        }
        if let Some(kills) = report.kills {
            more.push(format!("{kills} coordinators killed"));
        }
        if report.former_owner_fenced == Some(true) {
            more.push("former owner fenced".to_owned());
        }
        if let Some(index) = report.restored_from_index {
            more.push(format!("restored from index {index}"));
        }
        if report.digests_equal == Some(true) {
            more.push("digests equal before and after".to_owned());
        }
        table.add_row([
            report.drill.to_owned(),
            word(report.ok, "yes", "NO"),
            report.acknowledged.to_string(),
            report.lost.to_string(),
            report.failover_ms.map_or_else(String::new, |ms| ms.to_string()),
            report.moves_caused_by_failover.to_string(),
            word(report.witnesses_equal, "equal", "DIFFER"),
            word(report.invariants_ok, "hold", "BROKEN"),
            format!("{} to {}", report.term_before, report.term_after),
            more.join(", "),
        ]);
    }
    table.to_string()
}
