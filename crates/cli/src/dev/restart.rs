//! The drill `restart`: each coordinator in turn is killed while the others go on, and started
//! again. It comes back from its snapshot, with the digest it had.

use std::collections::HashSet;
use std::time::Duration;

use client::proto::{GetWitnessResponse, TakeSnapshotRequest, Witness};
use tokio::time::Instant;

use super::drill::Stage;
use super::evidence;
use super::writer::Writer;
use crate::exit::Failure;
use crate::group::wait;
use crate::render;

const BEFORE: usize = 300;
const BETWEEN: usize = 100;
const PATIENCE: Duration = Duration::from_secs(60);

/// Plays it.
pub(super) async fn play(stage: &mut Stage<'_>) -> Result<(), Failure> {
    let mut writer = stage.write();
    stage.acknowledged(&mut writer, BEFORE).await?;
    for coordinator in &stage.group.coordinators {
        coordinator.operator.take_snapshot(TakeSnapshotRequest {}).await?;
    }
    stage.say("every member has built a snapshot")?;
    // The leader last: with it the log goes on, and a digest of before is a digest of the past.
    let (leader, _) = stage.group.leader().await?;
    let mut members: Vec<u64> = stage.group.coordinators.iter().map(|one| one.member).collect();
    members.sort_by_key(|member| *member == leader);
    let mut last_fault = Instant::now();
    for member in members {
        let acknowledged = writer.count() + BETWEEN;
        stage.acknowledged(&mut writer, acknowledged).await?;
        last_fault = if member == leader {
            under_load(stage, &mut writer, member).await?
        } else {
            in_the_quiet(stage, &mut writer, member).await?
        };
    }
    stage.acknowledged(&mut writer, BEFORE + 3 * BETWEEN).await?;
    stage.window(last_fault).await?;
    let compared = stage.report.digests_equal.is_some();
    if !compared {
        stage.problem("no digest could be compared before and after");
    }
    stage.end(writer, &HashSet::new()).await
}

/// Kills and restarts one member while nothing is written: its digest must be the one of before.
async fn in_the_quiet(
    stage: &mut Stage<'_>,
    writer: &mut Writer,
    member: u64,
) -> Result<Instant, Failure> {
    writer.pause();
    evidence::settled(stage.group).await?;
    let before = evidence::witness(stage.group).await?;
    let fault = Instant::now();
    stage.group.kill(member).await?;
    stage.say(&format!("killed member {member}"))?;
    back(stage, member).await?;
    let after = equal_again(stage).await?;
    compare(stage, member, &before, &after);
    let resumed = Instant::now();
    writer.resume();
    stage.after_fault(writer, resumed).await?;
    Ok(fault)
}

/// Kills and restarts the leader in the middle of writes.
async fn under_load(
    stage: &mut Stage<'_>,
    writer: &mut Writer,
    leader: u64,
) -> Result<Instant, Failure> {
    let fault = Instant::now();
    stage.group.kill(leader).await?;
    stage.say(&format!("killed member {leader}, the leader"))?;
    stage.after_fault(writer, fault).await?;
    back(stage, leader).await?;
    Ok(fault)
}

async fn back(stage: &mut Stage<'_>, member: u64) -> Result<(), Failure> {
    let restored = stage.group.restart(member).await?.restored_from_index;
    stage.say(&format!("member {member} is back, restored from index {restored}"))?;
    if restored == 0 {
        stage.problem(format!("member {member} loaded no snapshot"));
    }
    let lowest = stage.report.restored_from_index.map_or(restored, |index| index.min(restored));
    stage.report.restored_from_index = Some(lowest);
    Ok(())
}

async fn equal_again(stage: &mut Stage<'_>) -> Result<GetWitnessResponse, Failure> {
    let until = Instant::now() + PATIENCE;
    loop {
        let witness = evidence::witness(stage.group).await?;
        if witness.equal {
            return Ok(witness);
        }
        stage.group.check()?;
        wait(until, "the members to be equal again").await?;
    }
}

/// When nothing was logged in between, the restarted member must have the digest of before. When
/// the log went on, it is compared with the members that were not killed, which `equal` has done.
fn compare(
    stage: &mut Stage<'_>,
    member: u64,
    before: &GetWitnessResponse,
    after: &GetWitnessResponse,
) {
    let of = |answer: &GetWitnessResponse| -> Option<Witness> {
        answer.witnesses.iter().find(|witness| witness.member == member).cloned()
    };
    let (Some(before), Some(after)) = (of(before), of(after)) else { return };
    // A digest that nobody tells compares equal to itself and proves nothing.
    if before.index != after.index || before.digest.len() != 16 {
        return;
    }
    let equal = before.digest == after.digest && before.witness == after.witness;
    let all_equal = stage.report.digests_equal.unwrap_or(true) && equal;
    stage.report.digests_equal = Some(all_equal);
    stage.report.digest_before = Some(render::hex(&before.digest));
    stage.report.digest_after = Some(render::hex(&after.digest));
    if !equal {
        stage.problem(format!("the digest of member {member} differs after its restart"));
    }
}
