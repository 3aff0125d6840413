//! The drill `node-loss`: a worker is stopped with SIGSTOP for longer than its session lives. Its
//! channels move, what it still claims is refused, and when it goes on it comes back as a new
//! session.

use std::time::Duration;

use client::proto::{
    Channel, CommitMetaRequest, DescribeNodeRequest, Node, NodeRef, NodeStatus, OwnerClaim,
};
use tokio::time::Instant;

use super::drill::Stage;
use super::evidence;
use crate::exit::Failure;
use crate::group::wait;

const BEFORE: usize = 200;
const AFTER: usize = 600;
const PATIENCE: Duration = Duration::from_secs(60);

/// Plays it.
pub(super) async fn play(stage: &mut Stage<'_>) -> Result<(), Failure> {
    let mut writer = stage.write();
    stage.acknowledged(&mut writer, BEFORE).await?;
    let (name, owned, victim) = victim(stage).await?;
    let fault = Instant::now();
    if let Some(worker) = stage.group.workers.iter().find(|worker| worker.name() == name) {
        worker.pause()?;
    }
    stage.say(&format!("stopped {name} with SIGSTOP; it has {} channels", owned.len()))?;
    stage.after_fault(&mut writer, fault).await?;
    let moved = moved(stage, &owned, victim.node_id).await?;
    let took_ms = fault.elapsed().as_millis();
    stage.report.channels_moved = Some(moved);
    stage.report.moved_after_ms = Some(took_ms);
    stage.say(&format!("{moved} channels moved within {took_ms} ms"))?;
    if moved == 0 {
        stage.problem("no channel moved");
    }
    let refused = fenced(stage, &owned, &victim).await?;
    stage.acknowledged(&mut writer, AFTER).await?;
    if let Some(worker) = stage.group.workers.iter().find(|worker| worker.name() == name) {
        worker.resume()?;
    }
    let returned = returned(stage, &name, victim.node_id).await?;
    stage.say(&format!("{name} goes on, as node {returned}"))?;
    stage.report.former_owner_fenced = Some(refused && returned != victim.node_id);
    let history = stage.history().await?;
    let mut asked = evidence::placed_on(&history, victim.node_id);
    asked.extend(owned.iter().map(evidence::name));
    stage.end(writer, &asked).await
}

/// The worker with the most channels, and those.
async fn victim(stage: &mut Stage<'_>) -> Result<(String, Vec<Channel>, Node), Failure> {
    let mut best: Option<Node> = None;
    for worker in &stage.group.workers {
        let node = describe(stage, worker.name()).await?;
        if best.as_ref().is_none_or(|best| best.watched < node.watched) {
            best = Some(node);
        }
    }
    let Some(node) = best else { return Err(Failure::failed("the group has no workers")) };
    let owned = evidence::channels(stage.group, node.node_id).await?;
    Ok((node.name.clone(), owned, node))
}

async fn describe(stage: &Stage<'_>, name: &str) -> Result<Node, Failure> {
    let node = Some(NodeRef { node_id: 0, name: name.to_owned() });
    let request = DescribeNodeRequest { read: None, node };
    Ok(stage.group.operator.describe_node(request).await?.node.unwrap_or_default())
}

/// Waits until all of them have another owner and a higher term, and counts them.
async fn moved(stage: &mut Stage<'_>, owned: &[Channel], victim: u64) -> Result<usize, Failure> {
    let until = Instant::now() + PATIENCE;
    loop {
        stage.group.check()?;
        let now = evidence::channels(stage.group, 0).await?;
        let terms: std::collections::HashMap<String, u64> = now
            .iter()
            .filter(|channel| channel.owner.as_ref().is_some_and(|owner| owner.node_id != victim))
            .map(|channel| (evidence::name(channel), channel.term))
            .collect();
        let higher = |before: &&Channel| {
            terms.get(&evidence::name(before)).is_some_and(|term| *term > before.term)
        };
        let moved = owned.iter().filter(higher).count();
        if moved == owned.len() {
            return Ok(moved);
        }
        wait(until, "the channels of the lost worker to move").await?;
    }
}

/// Whether a commit under the claim of the lost worker is refused, for each of its channels.
async fn fenced(stage: &mut Stage<'_>, owned: &[Channel], victim: &Node) -> Result<bool, Failure> {
    let sample = owned.iter().take(16);
    let mut refused = !owned.is_empty();
    for channel in sample {
        let claim = OwnerClaim {
            node_id: victim.node_id,
            node_epoch: victim.node_epoch,
            term: channel.term,
        };
        let request = CommitMetaRequest {
            write: None,
            name: evidence::name(channel),
            claim: Some(claim),
            positions: b"late".as_slice().into(),
        };
        let answer = stage.group.operator.commit_meta(request).await;
        let reason = answer.as_ref().err().and_then(client::Error::reason).map(str::to_owned);
        if reason.as_deref() != Some("NOT_OWNER") {
            refused = false;
            let got = answer.err().map_or_else(|| "accepted".to_owned(), |error| error.to_string());
            stage.problem(format!("a late commit of the lost worker was not refused: {got}"));
        }
    }
    stage.say("a commit under its old claim is refused: NOT_OWNER")?;
    Ok(refused)
}

/// Waits until the worker is up under another session, and gives its node id.
async fn returned(stage: &mut Stage<'_>, name: &str, victim: u64) -> Result<u64, Failure> {
    let until = Instant::now() + PATIENCE;
    loop {
        stage.group.check()?;
        if let Ok(node) = describe(stage, name).await
            && node.status == i32::from(NodeStatus::Up)
            && node.node_id != victim
        {
            return Ok(node.node_id);
        }
        wait(until, "the stopped worker to come back").await?;
    }
}
