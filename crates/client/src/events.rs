//! Calls of EventService: pages of the history, and a watch that survives its connections.
//! Attempts and their order are in call.rs and route.rs.
//! Called by the command line, the drills and the tests.

use std::time::Duration;

use futures::Stream;
use tokio::time::timeout;
use tonic::codec::Streaming;

use crate::call::reads;
use crate::channel::DECODE_BYTES_MAX;
use crate::error::Error;
use crate::operator::Operator;
use crate::proto;
use crate::proto::event_service_client::EventServiceClient;
use crate::proto::watch_response::Body;

reads! { EventServiceClient:
    /// A page of the kept history.
    list_events(ListEventsRequest) -> ListEventsResponse;
}

/// What to watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchOptions {
    /// The last revision the caller has; 0: from the oldest kept; none: from now.
    pub from_revision: Option<u64>,
    /// Only this channel; empty: all.
    pub channel: String,
    /// End once everything up to the present was delivered.
    pub until_present: bool,
    /// A stream without any message for this long counts as dead.
    pub idle_timeout: Duration,
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self {
            from_revision: None,
            channel: String::new(),
            until_present: false,
            idle_timeout: Duration::from_secs(15),
        }
    }
}

/// One delivery of a watch.
#[derive(Debug, Clone, PartialEq)]
pub enum WatchItem {
    /// The next record; revisions rise.
    Record(Box<proto::EventRecord>),
    /// History up to `at_revision` is not kept; this is the whole state there, in place of it.
    State(Box<proto::PresentState>),
}

/// A watch that goes on at another coordinator, from the last revision, after any break.
/// It fails only if nobody serves it for as long as the operator's deadline.
#[derive(Debug)]
pub struct EventWatch {
    operator: Operator,
    options: WatchOptions,
    stream: Option<(String, Streaming<proto::WatchResponse>)>,
    position: Option<u64>,
    partial: Option<proto::PresentState>,
    broke: Option<(String, Error)>,
    ended: bool,
}

impl Operator {
    /// Watches the history. The first connection is made by the first `next`.
    pub fn watch_events(&self, options: WatchOptions) -> EventWatch {
        let position = options.from_revision;
        EventWatch {
            // A reader that falls behind fills the window of its connection: nobody else may be on
            // it.
            operator: self.apart(),
            options,
            stream: None,
            position,
            partial: None,
            broke: None,
            ended: false,
        }
    }
}

impl EventWatch {
    /// The next record or state; none only at the end of a watch `until_present`.
    pub async fn next(&mut self) -> Result<Option<WatchItem>, Error> {
        while !self.ended {
            let Some((address, stream)) = self.stream.as_mut() else {
                self.open().await?;
                continue;
            };
            let error = match timeout(self.options.idle_timeout, stream.message()).await {
                Ok(Ok(Some(message))) => {
                    if let Some(item) = self.take(message) {
                        return Ok(Some(item));
                    }
                    continue;
                }
                Ok(Ok(None)) if self.options.until_present => {
                    self.ended = true;
                    continue;
                }
                Ok(Ok(None)) => Error::unreachable(address, "the stream ended"),
                Ok(Err(status)) => Error::from_status(address, &status),
                Err(_) => Error::unreachable(address, "the stream went silent"),
            };
            let address = address.clone();
            self.stream = None;
            self.partial = None;
            self.broke = Some((address, error));
        }
        Ok(None)
    }

    /// The last revision known to be delivered, to go on from in another process.
    pub fn position(&self) -> Option<u64> {
        self.position
    }

    /// As a stream that ends after its first error.
    pub fn into_stream(self) -> impl Stream<Item = Result<WatchItem, Error>> {
        futures::stream::unfold(Some(self), |watch| async move {
            let mut watch = watch?;
            match watch.next().await {
                Ok(Some(item)) => Some((Ok(item), Some(watch))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        })
    }

    async fn open(&mut self) -> Result<(), Error> {
        let broke = self.broke.take();
        let request = proto::WatchRequest {
            from_revision: self.position,
            channel: self.options.channel.clone(),
            until_present: self.options.until_present,
        };
        let ask = |channel| {
            let request = request.clone();
            async move {
                EventServiceClient::new(channel)
                    .max_decoding_message_size(DECODE_BYTES_MAX)
                    .watch(request)
                    .await
            }
        };
        self.stream = Some(self.operator.open(broke, ask).await?);
        Ok(())
    }

    /// Moves the position on; repeats after a reconnect are dropped here.
    fn take(&mut self, message: proto::WatchResponse) -> Option<WatchItem> {
        match message.body? {
            Body::Record(record) => {
                let repeated =
                    self.position.is_some_and(|known| known != 0 && record.revision <= known);
                self.advance(record.revision);
                (!repeated).then(|| WatchItem::Record(Box::new(record)))
            }
            Body::State(chunk) => {
                let whole = self.partial.get_or_insert_default();
                whole.at_revision = chunk.at_revision;
                whole.nodes.extend(chunk.nodes);
                whole.channels.extend(chunk.channels);
                if !chunk.last_chunk {
                    return None;
                }
                whole.last_chunk = true;
                let state = self.partial.take()?;
                self.advance(state.at_revision);
                Some(WatchItem::State(Box::new(state)))
            }
            Body::Idle(_) => {
                self.advance(message.revision);
                None
            }
        }
    }

    fn advance(&mut self, revision: u64) {
        let known = self.position.unwrap_or_default();
        if revision > known {
            self.position = Some(revision);
        }
    }
}
