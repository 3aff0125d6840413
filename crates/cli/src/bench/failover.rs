//! Failover trials: the leader is killed as `kill -9` does, and the time is taken to the first
//! acknowledgement of a write begun after that.

use std::time::Duration;

use client::ErrorKind;
use client::proto::WatchChannelsRequest;
use tokio::time::{Instant, sleep};

use super::load::spec;
use super::owner::run_name;
use super::report::Failovers;
use crate::exit::Failure;
use crate::group::{Group, wait};
use crate::progress::Progress;

/// Between two trials: as long as nothing of the last one should matter any more.
const PAUSE: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(60);

/// Plays them.
pub(super) async fn run(
    trials: u32,
    group: &mut Group,
    progress: &Progress,
) -> Result<Failovers, Failure> {
    let run = run_name()?;
    let first_term = group.leader().await?.1;
    let mut times = Vec::new();
    for trial in 0..trials {
        // The client knows the leader, as a client under way does.
        write(group, &format!("bench-{run}-{trial}-before")).await?;
        let (leader, _) = group.leader().await?;
        let killed = Instant::now();
        group.kill(leader).await?;
        write(group, &format!("bench-{run}-{trial}-after")).await?;
        times.push(killed.elapsed());
        group.restart(leader).await?;
        equal(group).await?;
        sleep(PAUSE).await;
        progress.set(u64::from(trial) + 1);
    }
    let last_term = group.leader().await?.1;
    let mut sorted = times.clone();
    sorted.sort();
    let ms = |time: Option<&Duration>| time.map_or(0.0, |time| time.as_secs_f64() * 1000.0);
    Ok(Failovers {
        min_ms: ms(sorted.first()),
        median_ms: ms(sorted.get(sorted.len() / 2)),
        max_ms: ms(sorted.last()),
        trials_ms: times.iter().map(|time| ms(Some(time))).collect(),
        terms_raised: last_term.saturating_sub(first_term),
    })
}

/// A write that is repeated until its outcome is known.
async fn write(group: &Group, name: &str) -> Result<(), Failure> {
    loop {
        let channels = vec![spec(name.to_owned())];
        let request = WatchChannelsRequest { write: None, channels };
        match group.operator.watch_channels(request).await {
            Ok(_) => break,
            Err(error) if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Timeout) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Waits until all members are equal.
async fn equal(group: &mut Group) -> Result<(), Failure> {
    let until = Instant::now() + PATIENCE;
    loop {
        let request = client::proto::GetWitnessRequest { index: 0 };
        if group.operator.get_witness(request).await?.equal {
            return Ok(());
        }
        group.check()?;
        wait(until, "all members to be equal").await?;
    }
}
