//! Metrics of one coordinator in the Prometheus text format: read from where the numbers already
//! are, when asked. Nothing is counted here, so a quiet coordinator does no work for its metrics.

use std::fmt::Write;
use std::sync::atomic::Ordering;

use state::node::NodeStatus;

use crate::api::Surface;
use crate::leader::planning::Totals;
use crate::leader::{Phase, lock};
use crate::proposer::Proposer;

/// The numbers of this coordinator, as text.
#[must_use]
pub(crate) fn render(
    surface: &Surface,
    proposer: &Proposer,
    totals: &Totals,
    phase: &Phase,
) -> String {
    let mut page = Page::default();
    raft(&mut page, surface);
    state(&mut page, surface);
    leader(&mut page, totals, surface, phase);
    cleanups(&mut page, surface, phase);
    let counters = proposer.counters();
    let load = |value: &std::sync::atomic::AtomicU64| value.load(Ordering::Relaxed);
    page.counter("quorate_proposer_entries_total", "Log entries proposed", load(&counters.entries));
    page.counter("quorate_proposer_commands_total", "Commands proposed", load(&counters.commands));
    page.counter(
        "quorate_proposer_failed_entries_total",
        "Log entries proposed without an outcome",
        load(&counters.failed),
    );
    page.text
}

#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "# HELP {name} {help}.\n# TYPE {name} {kind}");
    }

    fn one(&mut self, name: &str, labels: &str, value: u64) {
        let _ = writeln!(self.text, "{name}{labels} {value}");
    }

    fn gauge(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, "gauge", help);
        self.one(name, "", value);
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, "counter", help);
        self.one(name, "", value);
    }
}

fn raft(page: &mut Page, surface: &Surface) {
    let status = surface.raft.status();
    let age = surface.raft.place().leader_age;
    let leads = u64::from(status.state == raft::MemberState::Leader);
    page.gauge("quorate_raft_is_leader", "1 while this member leads", leads);
    page.gauge(
        "quorate_raft_has_leader",
        "1 while this member knows a leader that a quorum answers",
        u64::from(super::api::read::health(&surface.raft, surface.quorum_fresh).writable),
    );
    page.gauge("quorate_raft_term", "Newest Raft term seen", status.term);
    let indexes = [
        ("quorate_raft_last_log_index", "Newest entry in the log", status.last_log),
        ("quorate_raft_committed_index", "Newest entry known to be committed", status.committed),
        ("quorate_raft_applied_index", "Newest entry applied", status.applied),
        ("quorate_raft_snapshot_index", "Newest entry inside a snapshot", status.snapshot),
        ("quorate_raft_purged_index", "Newest entry no longer in the log", status.purged),
    ];
    for (name, help, index) in indexes {
        page.gauge(name, help, index.unwrap_or_default());
    }
    page.gauge("quorate_raft_log_bytes", "Bytes of the log on disk", status.log_bytes);
    page.gauge(
        "quorate_raft_disk_low",
        "1 while writes are refused because the disk is nearly full",
        u64::from(status.disk_low),
    );
    let age = age.map_or(0, |age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
    page.gauge("quorate_raft_leader_age_milliseconds", "Time since the leader was heard", age);
    counters(page, &status.counters);
}

fn counters(page: &mut Page, counters: &raft::Counters) {
    let rows = [
        ("quorate_raft_applied_entries_total", "Entries applied", counters.applied_entries),
        ("quorate_raft_log_syncs_total", "Syncs of the log", counters.log_syncs),
        (
            "quorate_raft_log_written_bytes_total",
            "Bytes written to the log",
            counters.log_written_bytes,
        ),
        ("quorate_raft_proposals_total", "Proposals made here", counters.proposals),
        (
            "quorate_raft_proposals_refused_total",
            "Proposals refused here",
            counters.proposals_refused,
        ),
        ("quorate_raft_read_rounds_total", "Rounds that confirmed reads", counters.read_rounds),
        ("quorate_raft_reads_total", "Linearizable reads", counters.reads),
        (
            "quorate_raft_attestations_checked_total",
            "Attestations compared",
            counters.attestations_checked,
        ),
        (
            "quorate_raft_attestations_skipped_total",
            "Attestations too old to compare",
            counters.attestations_skipped,
        ),
        ("quorate_raft_snapshots_written_total", "Snapshots written", counters.snapshots_written),
        (
            "quorate_raft_snapshots_installed_total",
            "Snapshots received and installed",
            counters.snapshots_installed,
        ),
        (
            "quorate_raft_fast_elections_total",
            "Elections called because the leader's process was gone",
            counters.fast_elections,
        ),
    ];
    for (name, help, value) in rows {
        page.counter(name, help, value);
    }
    page.gauge(
        "quorate_raft_log_sync_max_microseconds",
        "Longest sync of the log",
        counters.sync_max_us,
    );
}

fn state(page: &mut Page, surface: &Surface) {
    let view = surface.views.now();
    page.gauge("quorate_state_revision", "Accepted commands", view.state.revision().0);
    let counts = view.state.counts();
    page.head("quorate_channels", "gauge", "Channels by phase");
    let phases = [
        ("buffered", counts.buffered),
        ("to_watch", counts.to_watch),
        ("watched", counts.watched),
        ("to_release", counts.to_release),
    ];
    for (phase, count) in phases {
        page.one("quorate_channels", &format!("{{phase=\"{phase}\"}}"), u64::from(count));
    }
    page.head("quorate_nodes", "gauge", "Worker nodes by status");
    let statuses =
        [("up", NodeStatus::Up), ("stopping", NodeStatus::Stopping), ("down", NodeStatus::Down)];
    for (name, status) in statuses {
        let count = view.state.nodes().filter(|node| node.status == status).count();
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        page.one("quorate_nodes", &format!("{{status=\"{name}\"}}"), count);
    }
}

fn leader(page: &mut Page, totals: &Totals, surface: &Surface, phase: &Phase) {
    let load = |value: &std::sync::atomic::AtomicU64| value.load(Ordering::Relaxed);
    let streams = match phase {
        Phase::Leading(reign) => u64::try_from(reign.dispatch.streams()).unwrap_or(u64::MAX),
        Phase::Following | Phase::Establishing(_) => 0,
    };
    page.counter(
        "quorate_sessions_replaced_total",
        "Sessions ended because another process registered under the name or address",
        load(&surface.replaced),
    );
    page.gauge("quorate_session_streams", "Streams of workers open here", streams);
    page.counter(
        "quorate_session_strays_total",
        "Channels that workers said they run without being told to",
        load(&surface.strays),
    );
    page.counter("quorate_plan_rounds_total", "Rounds of planning", load(&totals.rounds));
    page.counter("quorate_plan_microseconds_total", "Time spent planning", load(&totals.plan_us));
    page.gauge(
        "quorate_plan_max_microseconds",
        "Longest plan of this process",
        load(&totals.plan_max_us),
    );
    page.counter("quorate_decisions_total", "Decisions proposed", load(&totals.decisions));
    page.counter("quorate_moves_total", "Moves taken", load(&totals.moves));
    page.counter(
        "quorate_decision_lag_revisions_total",
        "Revisions applied between planning and judging a decision",
        load(&totals.lag_revisions),
    );
    let name = "quorate_moves_refused_total";
    page.head(name, "counter", "Moves refused by apply, by reason");
    for (reason, count) in lock(&totals.refusals).iter() {
        page.one(name, &format!("{{reason=\"{reason}\"}}"), *count);
    }
}

fn cleanups(page: &mut Page, surface: &Surface, phase: &Phase) {
    let state = surface.views.now().state;
    let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    page.gauge("quorate_cleaners", "Cleaners registered", number(state.cleaners().count()));
    let streams = match phase {
        Phase::Leading(reign) => reign.cleaners.count(),
        Phase::Following | Phase::Establishing(_) => 0,
    };
    page.gauge("quorate_cleaner_streams", "Streams of cleaners open here", streams);
    let waiting = number(state.effects().count());
    page.gauge("quorate_cleanups_waiting", "Former owners that wait for clean-up", waiting);
    let name = "quorate_cleanups_done_total";
    page.head(name, "counter", "Clean-ups completed here: at once without a cleaner, or as told");
    let counters = &surface.cleanups;
    for (how, count) in [("at_once", &counters.at_once), ("told", &counters.told)] {
        page.one(name, &format!("{{how=\"{how}\"}}"), count.load(Ordering::Relaxed));
    }
}
