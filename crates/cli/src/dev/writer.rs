//! The load of a drill: a few writers that announce channels of new names one after the other, and
//! keep a list of what was acknowledged. A write of unknown outcome is repeated until it is known.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use client::proto::{ChannelSpec, WatchChannelsRequest};
use client::{ErrorKind, Operator};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::exit::Failure;

const WRITERS: usize = 8;
/// Between two writes of a writer: what is written must also be placed and served.
const PACE: Duration = Duration::from_millis(15);

/// One acknowledged write.
#[derive(Debug, Clone)]
pub(super) struct Acknowledged {
    pub(super) name: String,
    pub(super) begun: Instant,
    pub(super) at: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gate {
    Open,
    Closed,
    Ended,
}

/// The writers, until they are stopped or dropped.
#[derive(Debug)]
pub(super) struct Writer {
    gate: watch::Sender<Gate>,
    acknowledged: Arc<Mutex<Vec<Acknowledged>>>,
    tasks: JoinSet<Result<(), client::Error>>,
}

impl Writer {
    /// Begins to write channels whose names begin with `prefix`.
    pub(super) fn start(operator: &Operator, prefix: &str) -> Self {
        let (gate, _) = watch::channel(Gate::Open);
        let acknowledged = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = JoinSet::new();
        for number in 0..WRITERS {
            let (operator, names) = (operator.clone(), format!("{prefix}-{number}"));
            tasks.spawn(write(operator, names, gate.subscribe(), Arc::clone(&acknowledged)));
        }
        Self { gate, acknowledged, tasks }
    }

    /// How much was acknowledged so far.
    pub(super) fn count(&self) -> usize {
        self.list().len()
    }

    /// When the first write begun after `instant` was acknowledged.
    pub(super) fn first_after(&self, instant: Instant) -> Option<Instant> {
        let list = self.list();
        list.iter().filter(|write| write.begun > instant).map(|write| write.at).min()
    }

    /// Lets the writers finish what they have begun, and begin nothing.
    pub(super) fn pause(&self) {
        self.gate.send_replace(Gate::Closed);
    }

    /// Lets them go on.
    pub(super) fn resume(&self) {
        self.gate.send_replace(Gate::Open);
    }

    /// An error if a write was refused for good.
    pub(super) fn check(&mut self) -> Result<(), Failure> {
        match self.tasks.try_join_next() {
            Some(Ok(Err(error))) => Err(error.into()),
            Some(_) => Err(Failure::failed("a writer of the drill ended early")),
            None => Ok(()),
        }
    }

    /// Waits for what was begun, and gives the list.
    pub(super) async fn stop(mut self) -> Result<Vec<Acknowledged>, Failure> {
        self.gate.send_replace(Gate::Ended);
        while let Some(ended) = self.tasks.join_next().await {
            match ended {
                Ok(ended) => ended?,
                Err(error) => return Err(Failure::failed(format!("a writer failed: {error}"))),
            }
        }
        Ok(self.list())
    }

    fn list(&self) -> Vec<Acknowledged> {
        self.acknowledged.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn write(
    operator: Operator,
    prefix: String,
    mut gate: watch::Receiver<Gate>,
    acknowledged: Arc<Mutex<Vec<Acknowledged>>>,
) -> Result<(), client::Error> {
    let mut number = 0_u64;
    loop {
        // The sender lives as long as the writers.
        let Ok(open) = gate.wait_for(|gate| *gate != Gate::Closed).await.map(|gate| *gate) else {
            return Ok(());
        };
        if open == Gate::Ended {
            return Ok(());
        }
        number += 1;
        let name = format!("{prefix}-{number}");
        let begun = Instant::now();
        announce(&operator, &name).await?;
        let written = Acknowledged { name, begun, at: Instant::now() };
        acknowledged.lock().unwrap_or_else(PoisonError::into_inner).push(written);
        sleep(PACE).await;
    }
}

async fn announce(operator: &Operator, name: &str) -> Result<(), client::Error> {
    let channel = ChannelSpec {
        name: name.to_owned(),
        collection: 1,
        pchannel: "drill".to_owned(),
        ..ChannelSpec::default()
    };
    loop {
        let request = WatchChannelsRequest { write: None, channels: vec![channel.clone()] };
        match operator.watch_channels(request).await {
            Ok(_) => return Ok(()),
            Err(error) if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Timeout) => {}
            Err(error) => return Err(error),
        }
    }
}
