//! The drill `failover`: the leader is killed in the middle of writes. Another takes over, no
//! channel moves, nothing acknowledged is lost, and the killed one comes back.

use std::collections::HashSet;

use tokio::time::Instant;

use super::drill::Stage;
use crate::exit::Failure;

const BEFORE: usize = 200;
const AFTER: usize = 600;

/// Plays it.
pub(super) async fn play(stage: &mut Stage<'_>) -> Result<(), Failure> {
    let mut writer = stage.write();
    stage.acknowledged(&mut writer, BEFORE).await?;
    let (leader, term) = stage.group.leader().await?;
    let fault = Instant::now();
    stage.group.kill(leader).await?;
    stage.say(&format!("killed member {leader}, the leader of term {term}"))?;
    stage.after_fault(&mut writer, fault).await?;
    let (successor, raised) = stage.group.leader().await?;
    stage.say(&format!("member {successor} leads in term {raised}"))?;
    if raised <= term {
        stage.problem(format!("the term was not raised: {term}, then {raised}"));
    }
    stage.window(fault).await?;
    stage.acknowledged(&mut writer, AFTER).await?;
    stage.group.restart(leader).await?;
    stage.say(&format!("member {leader} is back"))?;
    stage.end(writer, &HashSet::new()).await
}
