//! The drill `storm`: every two seconds a coordinator is killed and started again at once, in
//! random order, under load. Leaders are killed two times of three. In the end all three are up and
//! equal.

use std::collections::HashSet;
use std::time::Duration;

use tokio::time::{Instant, interval};

use super::drill::Stage;
use crate::exit::Failure;

const EVERY: Duration = Duration::from_secs(2);

/// Plays it for that long.
pub(super) async fn play(stage: &mut Stage<'_>, length: Duration) -> Result<(), Failure> {
    let mut writer = stage.write();
    stage.acknowledged(&mut writer, 100).await?;
    let victims = victims(length)?;
    let mut ticks = interval(EVERY);
    let mut killed = Vec::new();
    let mut fault = Instant::now();
    for leader_wanted in victims {
        ticks.tick().await;
        writer.check()?;
        let member = victim(stage, leader_wanted).await?;
        fault = Instant::now();
        stage.group.kill(member).await?;
        stage.group.start(member)?;
        killed.push(member.to_string());
    }
    stage.say(&format!("killed members {}", killed.join(" ")))?;
    stage.report.kills = Some(killed.len());
    stage.after_fault(&mut writer, fault).await?;
    for member in stage.group.members() {
        stage.group.ready(member).await?;
    }
    // Coordinators may be gone for longer than a session lives: what moves then was asked for.
    let moved: HashSet<String> = stage
        .history()
        .await?
        .iter()
        .flat_map(|record| &record.events)
        .map(|event| event.channel.clone())
        .collect();
    stage.end(writer, &moved).await
}

/// In random order, whether a leader is to be killed: two times of three.
fn victims(length: Duration) -> Result<Vec<bool>, Failure> {
    let count = length.as_secs() / EVERY.as_secs().max(1);
    let mut victims: Vec<bool> = (0..count.max(3)).map(|number| number % 3 != 0).collect();
    for last in (1..victims.len()).rev() {
        victims.swap(last, random(last + 1)?);
    }
    Ok(victims)
}

/// The leader, or one that is not; anyone when nobody is known to lead.
async fn victim(stage: &Stage<'_>, leader_wanted: bool) -> Result<u64, Failure> {
    let leader = stage.group.known_leader().await;
    let members = stage.group.members();
    let fitting: Vec<u64> = members
        .iter()
        .copied()
        .filter(|member| leader.is_none_or(|leader| (*member == leader) == leader_wanted))
        .collect();
    let chosen = fitting.get(random(fitting.len().max(1))?).or(members.first());
    chosen.copied().ok_or_else(|| Failure::failed("the group has no members"))
}

fn random(below: usize) -> Result<usize, Failure> {
    let number = getrandom::u64()
        .map_err(|error| Failure::failed(format!("no random numbers from the system: {error}")))?;
    let below = u64::try_from(below.max(1)).unwrap_or(1);
    Ok(usize::try_from(number % below).unwrap_or(0))
}
