//! Closed loops: each client begins its next request when the last one is answered. Who owns the
//! channels is owner.rs's business; acknowledgements are measured in acks.rs.

use std::sync::Arc;
use std::time::Duration;

use client::Operator;
use client::proto::{
    ChannelSpec, CommitMetaRequest, FindOwnerRequest, OwnerClaim, WatchChannelsRequest,
};
use hdrhistogram::Histogram;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::report::{Measured, histogram};
use crate::exit::{Code, Failure};

/// A client that fails so often in a row gives up.
const FAILURES_MAX: u32 = 5;

/// What one request does.
#[derive(Debug, Clone, Copy)]
pub(super) enum Work {
    /// Commits a position under the owner's claim.
    Commit { position_bytes: u32 },
    /// Announces that many new channels.
    Announce { batch: u32 },
    /// Asks for the owner of a channel, linearizably.
    Find,
}

/// A channel with the claim of its owner.
#[derive(Debug, Clone)]
pub(super) struct Claim {
    pub(super) name: String,
    pub(super) claim: OwnerClaim,
}

/// One measurement.
#[derive(Debug)]
pub(super) struct Load {
    pub(super) work: Work,
    pub(super) clients: u32,
    pub(super) warm_up: Duration,
    pub(super) duration: Duration,
    pub(super) claims: Vec<Claim>,
    /// Distinguishes the names of this run from those of others.
    pub(super) run: String,
}

/// What one client saw.
struct Seen {
    latencies: Histogram<u64>,
    operations: u64,
    errors: u64,
}

impl Load {
    /// Runs it over these connections.
    pub(super) async fn run(self, operators: &[Operator]) -> Result<Measured, Failure> {
        let load = Arc::new(self);
        let begin = Instant::now() + load.warm_up;
        let mut clients = JoinSet::new();
        for (number, operator) in (0..load.clients).zip(operators.iter().cycle()) {
            let (load, operator) = (Arc::clone(&load), operator.clone());
            clients.spawn(async move { load.client(number, &operator, begin).await });
        }
        let mut all = Seen { latencies: histogram()?, operations: 0, errors: 0 };
        while let Some(ended) = clients.join_next().await {
            let seen = ended
                .map_err(|error| Failure::failed(format!("a client of the load: {error}")))??;
            all.operations += seen.operations;
            all.errors += seen.errors;
            all.latencies
                .add(&seen.latencies)
                .map_err(|error| Failure::failed(format!("cannot add histograms: {error}")))?;
        }
        let (kind, batch) = match load.work {
            Work::Commit { .. } => ("writes", 1),
            Work::Announce { batch } => ("writes", batch),
            Work::Find => ("reads", 1),
        };
        Ok(measured(
            kind,
            (load.clients, operators.len(), batch),
            load.duration,
            &all.latencies,
            (all.operations, all.errors),
        ))
    }

    async fn client(
        &self,
        number: u32,
        operator: &Operator,
        begin: Instant,
    ) -> Result<Seen, Failure> {
        let mut seen = Seen { latencies: histogram()?, operations: 0, errors: 0 };
        let end = begin + self.duration;
        let mine = usize::try_from(number).unwrap_or(0);
        let Some(claim) = self.claims.get(mine % self.claims.len().max(1)) else {
            return Err(Failure::new(Code::Conflict, "the benchmark's worker owns no channel"));
        };
        let (mut count, mut failures) = (0_u64, 0);
        loop {
            let sent = Instant::now();
            if sent >= end {
                return Ok(seen);
            }
            count += 1;
            let answered = self.once(operator, claim, number, count).await;
            if sent < begin {
                continue;
            }
            match answered {
                Ok(operations) => {
                    let us = u64::try_from(sent.elapsed().as_micros()).unwrap_or(u64::MAX);
                    seen.latencies.saturating_record(us.max(1));
                    seen.operations += operations;
                    failures = 0;
                }
                Err(error) => {
                    seen.errors += 1;
                    failures += 1;
                    if failures >= FAILURES_MAX {
                        return Err(error.into());
                    }
                }
            }
        }
    }

    async fn once(
        &self,
        operator: &Operator,
        claim: &Claim,
        number: u32,
        count: u64,
    ) -> Result<u64, client::Error> {
        match self.work {
            Work::Commit { position_bytes } => {
                let length = usize::try_from(position_bytes).unwrap_or(0);
                // A position that differs from the last one, or nothing would be written.
                let mut positions = count.to_be_bytes().to_vec();
                positions.resize(length.max(positions.len()), 7);
                let request = CommitMetaRequest {
                    write: None,
                    name: claim.name.clone(),
                    claim: Some(claim.claim),
                    positions: positions.into(),
                };
                operator.commit_meta(request).await.map(|_| 1)
            }
            Work::Announce { batch } => {
                let name = |item| format!("bench-{}-{number}-{count}-{item}", self.run);
                let channels = (0..batch).map(|item| spec(name(item))).collect();
                let request = WatchChannelsRequest { write: None, channels };
                operator.watch_channels(request).await.map(|_| u64::from(batch))
            }
            Work::Find => {
                let request = FindOwnerRequest { read: None, name: claim.name.clone() };
                operator.find_owner(request).await.map(|_| 1)
            }
        }
    }
}

/// A channel of a benchmark.
pub(super) fn spec(name: String) -> ChannelSpec {
    ChannelSpec { name, collection: 1, pchannel: "bench".to_owned(), ..ChannelSpec::default() }
}

/// The line of a measurement.
pub(super) fn measured(
    kind: &'static str,
    (clients, connections, batch): (u32, usize, u32),
    took: Duration,
    latencies: &Histogram<u64>,
    (operations, errors): (u64, u64),
) -> Measured {
    let seconds = took.as_secs_f64();
    let exact = u32::try_from(operations).map_or(f64::INFINITY, f64::from);
    Measured {
        kind,
        clients,
        connections,
        batch,
        seconds,
        requests: latencies.len(),
        operations,
        errors,
        operations_per_second: exact / seconds.max(f64::EPSILON),
        p50_us: latencies.value_at_quantile(0.50),
        p90_us: latencies.value_at_quantile(0.90),
        p99_us: latencies.value_at_quantile(0.99),
        p999_us: latencies.value_at_quantile(0.999),
        max_us: latencies.max(),
    }
}
