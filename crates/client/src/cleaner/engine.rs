//! The loop of a cleaner: registers, keeps a stream to the leader open, and runs a bounded number
//! of clean-ups beside it. Nothing here must survive: the coordinator tells everything again.
//! Called by cleaner.rs.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep, sleep_until};
use tonic::codec::Streaming;

use crate::call::pauses;
use crate::channel::DECODE_BYTES_MAX;
use crate::cleaner::book::{Book, Job};
use crate::cleaner::{Cleaner, CleanerEvent, CleanerOptions, Cleanup};
use crate::error::Error;
use crate::operator::Operator;
use crate::proto;
use crate::proto::channel_service_client::ChannelServiceClient;

/// Nobody knows these: somebody completed them before.
const DONE_BEFORE: [&str; 2] = ["NOT_FORMER_OWNER", "UNKNOWN_CHANNEL"];

type Messages = Streaming<proto::WatchCleanupsResponse>;

/// What became of one attempt.
enum Ended {
    Cleaned,
    AlreadyDone,
    Failed(String),
    /// Done, but nobody could be told.
    Untold(Error),
}

pub(super) struct Engine<C> {
    options: CleanerOptions,
    operator: Operator,
    cleaner: Arc<C>,
    book: Book,
    running: JoinSet<Ended>,
    jobs: HashMap<Id, Job>,
}

impl<C: Cleaner> Engine<C> {
    pub(super) fn new(options: CleanerOptions, cleaner: C) -> Self {
        Self {
            operator: Operator::connect(&options.endpoints, options.calls.clone()),
            book: Book::new(options.retry_min, options.retry_max),
            options,
            cleaner: Arc::new(cleaner),
            running: JoinSet::new(),
            jobs: HashMap::new(),
        }
    }

    /// Until the group will not have this cleaner.
    pub(super) async fn run(mut self) -> Result<(), Error> {
        let revision = self.register().await?;
        let name = self.options.name.clone();
        self.tell(&CleanerEvent::Registered { name, revision });
        let mut pauses = self.pauses();
        let mut broke = None;
        loop {
            match self.open(broke.take()).await {
                Ok((address, stream)) => {
                    pauses = self.pauses();
                    self.tell(&CleanerEvent::Connected { coordinator: address.clone() });
                    let error = self.follow(&address, stream).await;
                    if error.reason() == Some("UNKNOWN_CLEANER") {
                        return Err(error);
                    }
                    self.tell(&CleanerEvent::Disconnected { error: error.to_string() });
                    broke = Some((address, error));
                }
                Err(error) if error.is_passing() => {
                    self.tell(&CleanerEvent::Disconnected { error: error.to_string() });
                    sleep(pauses.next().unwrap_or(self.options.retry_max)).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn pauses(&self) -> impl Iterator<Item = Duration> + use<C> {
        pauses(self.options.retry_min, self.options.retry_max)
    }

    fn tell(&self, event: &CleanerEvent) {
        self.options.observer.tell(event);
    }

    async fn register(&self) -> Result<u64, Error> {
        let mut pauses = self.pauses();
        loop {
            let name = self.options.name.clone();
            let request = proto::RegisterCleanerRequest { write: None, name };
            match self.operator.register_cleaner(request).await {
                Ok(answer) => return Ok(answer.receipt.unwrap_or_default().revision),
                Err(error) if error.is_passing() => {
                    self.tell(&CleanerEvent::Disconnected { error: error.to_string() });
                    sleep(pauses.next().unwrap_or(self.options.retry_max)).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn open(&self, broke: Option<(String, Error)>) -> Result<(String, Messages), Error> {
        let name = self.options.name.clone();
        self.operator
            .open(broke, |channel| {
                let request = proto::WatchCleanupsRequest { name: name.clone() };
                async move {
                    ChannelServiceClient::new(channel)
                        .max_decoding_message_size(DECODE_BYTES_MAX)
                        .watch_cleanups(request)
                        .await
                }
            })
            .await
    }

    /// Cleans what the stream tells; gives why it ended.
    async fn follow(&mut self, address: &str, mut stream: Messages) -> Error {
        self.book.begin();
        let mut silent_at = Instant::now() + self.options.idle_timeout;
        loop {
            self.start();
            let free = self.running.len() < self.options.parallel.max(1);
            let due = self.book.due().filter(|_| free);
            let wake_at = due.unwrap_or(silent_at).min(silent_at);
            tokio::select! {
                message = stream.message() => match message {
                    Ok(Some(message)) => {
                        self.book.take(message, Instant::now());
                        silent_at = Instant::now() + self.options.idle_timeout;
                    }
                    Ok(None) => return Error::unreachable(address, "the stream ended"),
                    Err(status) => return Error::from_status(address, &status),
                },
                Some(ended) = self.running.join_next_with_id() => self.ended(ended),
                () = sleep_until(wake_at) => if Instant::now() >= silent_at {
                    return Error::unreachable(address, "the stream went silent");
                },
            }
        }
    }

    fn start(&mut self) {
        while self.running.len() < self.options.parallel.max(1) {
            let Some(job) = self.book.next(Instant::now()) else { return };
            if !job.cleaned {
                self.tell(&CleanerEvent::Cleaning(job.cleanup.clone()));
            }
            let (cleaner, operator) = (Arc::clone(&self.cleaner), self.operator.clone());
            let (cleanup, cleaned) = (job.cleanup.clone(), job.cleaned);
            let task = self.running.spawn(carry_out(cleaner, operator, cleanup, cleaned));
            self.jobs.insert(task.id(), job);
        }
    }

    fn ended(&mut self, ended: Result<(Id, Ended), JoinError>) {
        let (id, ended) = match ended {
            Ok((id, ended)) => (id, ended),
            // A cleaner that panics has failed, no more.
            Err(error) => (error.id(), Ended::Failed(error.to_string())),
        };
        let Some(mut job) = self.jobs.remove(&id) else { return };
        let cleanup = job.cleanup.clone();
        let event = match ended {
            Ended::Cleaned => CleanerEvent::Cleaned(cleanup),
            Ended::AlreadyDone => CleanerEvent::AlreadyDone(cleanup),
            Ended::Failed(reason) => CleanerEvent::Failed { cleanup, reason },
            Ended::Untold(error) => {
                job.cleaned = true;
                CleanerEvent::Failed { cleanup, reason: error.to_string() }
            }
        };
        match event {
            CleanerEvent::Failed { .. } => self.book.put_back(job, Instant::now()),
            _ => self.book.finished(&job.cleanup.key()),
        }
        self.tell(&event);
    }
}

async fn carry_out<C: Cleaner>(
    cleaner: Arc<C>,
    operator: Operator,
    cleanup: Cleanup,
    cleaned: bool,
) -> Ended {
    if !cleaned && let Err(failure) = cleaner.clean(cleanup.clone()).await {
        return Ended::Failed(failure.reason);
    }
    let request = proto::CompleteCleanupRequest {
        write: None,
        former_owner: Some(cleanup.claim()),
        name: cleanup.channel,
    };
    match operator.complete_cleanup(request).await {
        Ok(_) => Ended::Cleaned,
        Err(error) if error.reason().is_some_and(|reason| DONE_BEFORE.contains(&reason)) => {
            Ended::AlreadyDone
        }
        Err(error) => Ended::Untold(error),
    }
}
