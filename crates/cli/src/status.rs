//! `status`: the group in one page. Unhealthy groups and differing members end with their exit
//! code, after the page is shown.

use clap::Args;
use client::proto::{GetStatusRequest, GetStatusResponse, ListMembersRequest};
use serde::Serialize;

use crate::args::{Consistency, Global};
use crate::exit::{Code, Failure};
use crate::member::{self, Witnesses};
use crate::operator::connect;
use crate::output::{Output, pairs, table};
use crate::progress::Progress;
use crate::render;

/// Arguments of `status`.
#[derive(Debug, Args)]
pub(crate) struct Status {}

#[derive(Serialize)]
struct Shown {
    cluster_id: String,
    asked_member: u64,
    leader: u64,
    leader_address: String,
    term: u64,
    revision: u64,
    level: u32,
    ready: bool,
    has_quorum: bool,
    applied_index: u64,
    committed_index: u64,
    last_log_index: u64,
    log_bytes: u64,
    snapshot_index: u64,
    restored_from_index: u64,
    started_ms: u64,
    nodes: Nodes,
    channels: Channels,
    members: Vec<MemberRow>,
    witnesses_equal: bool,
    last_decisions: Vec<Decision>,
    violations: Vec<String>,
}

#[derive(Serialize)]
struct Nodes {
    up: u32,
    stopping: u32,
    down: u32,
}

#[derive(Serialize)]
struct Channels {
    total: u32,
    buffered: u32,
    to_watch: u32,
    watched: u32,
    to_release: u32,
}

#[derive(Serialize)]
struct MemberRow {
    member: u64,
    state: &'static str,
    reachable: bool,
    client_address: String,
    applied_index: u64,
    witness_index: u64,
    witness: String,
    digest: String,
}

#[derive(Serialize)]
struct Decision {
    revision: u64,
    at_ms: u64,
    text: String,
}

/// Shows it.
pub(crate) async fn run(
    _arguments: Status,
    global: &Global,
    output: &Output,
) -> Result<(), Failure> {
    let progress = Progress::spinner(output, "asking the group");
    let operator = connect(global)?;
    // The page must come also when there is no quorum.
    let read = global.read_or(Consistency::Stale);
    let status = operator.get_status(GetStatusRequest { read }).await?;
    // A member that belongs to no group yet, or sees no quorum, can say no more than its status.
    let (members, witnesses) = if status.has_quorum {
        let request = ListMembersRequest { read };
        let members = operator.list_members(request).await?.members;
        (members, member::witnesses(&operator, 0).await?)
    } else {
        (Vec::new(), Witnesses { equal: false, witnesses: Vec::new() })
    };
    drop(progress);
    let rows = members.into_iter().map(|member| row(member, &witnesses)).collect();
    let shown = shown(status, rows, witnesses.equal);
    output.show(&shown, text)?;
    judge(&shown, &witnesses)
}

fn row(member: client::proto::Member, witnesses: &Witnesses) -> MemberRow {
    let witness = witnesses.witnesses.iter().find(|witness| witness.member == member.member);
    MemberRow {
        member: member.member,
        state: render::member_state(member.state),
        reachable: member.reachable,
        client_address: member.client_address,
        applied_index: member.applied_index,
        witness_index: witness.map_or(0, |witness| witness.index),
        witness: witness.map_or_else(String::new, |witness| witness.witness.clone()),
        digest: witness.map_or_else(String::new, |witness| witness.digest.clone()),
    }
}

fn shown(status: GetStatusResponse, members: Vec<MemberRow>, witnesses_equal: bool) -> Shown {
    let header = status.header.unwrap_or_default();
    let decision = |decision: client::proto::DecisionSummary| Decision {
        revision: decision.revision,
        at_ms: decision.at_ms,
        text: decision.text,
    };
    Shown {
        cluster_id: header.cluster_id,
        asked_member: header.member,
        leader: header.leader,
        leader_address: status.leader_client_address,
        term: header.term,
        revision: header.revision,
        level: status.level,
        ready: status.ready,
        has_quorum: status.has_quorum,
        applied_index: header.index,
        committed_index: status.committed_index,
        last_log_index: status.last_log_index,
        log_bytes: status.log_bytes,
        snapshot_index: status.snapshot_index,
        restored_from_index: status.restored_from_index,
        started_ms: status.started_ms,
        nodes: Nodes {
            up: status.nodes_up,
            stopping: status.nodes_stopping,
            down: status.nodes_down,
        },
        channels: Channels {
            total: status.channels,
            buffered: status.channels_buffered,
            to_watch: status.channels_to_watch,
            watched: status.channels_watched,
            to_release: status.channels_to_release,
        },
        members,
        witnesses_equal,
        last_decisions: status.last_decisions.into_iter().map(decision).collect(),
        violations: status.violations,
    }
}

fn judge(shown: &Shown, witnesses: &Witnesses) -> Result<(), Failure> {
    if let Some(violation) = shown.violations.first() {
        let reason = format!("an invariant does not hold: {violation}");
        return Err(Failure::new(Code::Integrity, reason));
    }
    if !shown.has_quorum {
        let reason = match shown.cluster_id.as_str() {
            "" => "this coordinator belongs to no group yet: `quorate member bootstrap` makes one",
            _ => "no quorum: the group takes no writes until most members are back",
        };
        return Err(Failure::new(Code::Unhealthy, reason));
    }
    if !shown.ready {
        let reason = format!("member {} is not ready", shown.asked_member);
        return Err(Failure::new(Code::Unhealthy, reason));
    }
    member::judge(witnesses)
}

fn text(shown: &Shown) -> String {
    let leader = match shown.leader {
        0 => "none known".to_owned(),
        leader => format!("member {leader} at {}", shown.leader_address),
    };
    let yes_no = |value| if value { "yes" } else { "no" }.to_owned();
    let (nodes, channels) = (&shown.nodes, &shown.channels);
    let mut parts = vec![pairs([
        ("group", shown.cluster_id.clone()),
        ("leader", leader),
        ("term", shown.term.to_string()),
        ("revision", shown.revision.to_string()),
        ("quorum", yes_no(shown.has_quorum)),
        ("asked", format!("member {}, ready: {}", shown.asked_member, yes_no(shown.ready))),
        ("applied", format!("{} of {}", shown.applied_index, shown.last_log_index)),
        ("log", render::bytes(shown.log_bytes)),
        ("snapshot", render::number(shown.snapshot_index)),
        ("restored from", render::number(shown.restored_from_index)),
        ("nodes", format!("{} up, {} stopping, {} down", nodes.up, nodes.stopping, nodes.down)),
        (
            "channels",
            format!(
                "{}: {} buffered, {} to watch, {} watched, {} to release",
                channels.total,
                channels.buffered,
                channels.to_watch,
                channels.watched,
                channels.to_release
            ),
        ),
        (
            "witnesses",
            if shown.witnesses_equal { "equal" } else { "not known to be equal" }.to_owned(),
        ),
        ("violations", shown.violations.join("; ")),
    ])];
    if !shown.members.is_empty() {
        let mut table = table(["member", "state", "client", "applied", "witness", "at"]);
        for member in &shown.members {
            table.add_row([
                member.member.to_string(),
                if member.reachable { member.state } else { "unreachable" }.to_owned(),
                member.client_address.clone(),
                member.applied_index.to_string(),
                member.witness.clone(),
                member.witness_index.to_string(),
            ]);
        }
        parts.push(table.to_string());
    }
    if !shown.last_decisions.is_empty() {
        let mut table = table(["revision", "at", "decision"]);
        for decision in &shown.last_decisions {
            table.add_row([
                decision.revision.to_string(),
                render::time(decision.at_ms),
                decision.text.clone(),
            ]);
        }
        parts.push(table.to_string());
    }
    parts.join("\n\n")
}
