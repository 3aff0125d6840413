//! EventService: the history and its continuation. A watcher whose position is no longer kept gets
//! the present state and goes on; no position ever ends a watch.

use std::pin::Pin;
use std::sync::Arc;

use proto::v1;
use proto::v1::event_service_server::EventService;
use proto::v1::watch_response::Body;
use state::epoch::Revision;
use state::event::EventRecord;
use state::ids::ChannelName;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use super::read::page_rows;
use super::{Surface, convert, status};
use crate::history::{After, Recorded};
use crate::limits;
use crate::view::View;

/// Messages waiting for one watcher.
const WATCH_MESSAGES_MAX: usize = 64;
/// Records read at a time.
const WATCH_RECORDS: usize = 512;

/// Serves EventService.
#[derive(Debug)]
pub struct Events(pub Arc<Surface>);

/// Whether a record speaks of the channel; no channel: of anything.
pub fn speaks_of(record: &EventRecord, channel: Option<&ChannelName>) -> bool {
    channel.is_none_or(|wanted| record.events.iter().any(|event| event.channel() == Some(wanted)))
}

fn filter(name: &str) -> Result<Option<ChannelName>, Status> {
    if name.is_empty() { Ok(None) } else { convert::channel_name("channel", name).map(Some) }
}

impl Surface {
    /// Records after a revision, from memory or the files; none: they are no longer kept.
    pub async fn records_after(&self, after: Revision, most: usize) -> Option<Vec<Recorded>> {
        if let After::Records(records) = self.history.after(after, most) {
            return Some(records);
        }
        let next = Revision(after.0 + 1);
        if self.files.oldest().is_none_or(|oldest| oldest > next) {
            return None;
        }
        let files = Arc::clone(&self.files);
        let read = tokio::task::spawn_blocking(move || files.read(next, most)).await.ok()?;
        // The files may have been cut meanwhile: only what continues the position is an answer.
        read.first().is_some_and(|first| first.record.revision == next).then_some(read)
    }

    /// First revision that is kept.
    #[must_use]
    pub fn oldest_kept(&self) -> Revision {
        let (last, memory) = self.history.bounds();
        let memory = memory.unwrap_or(Revision(last.0.saturating_add(1)));
        self.files.oldest().map_or(memory, |oldest| oldest.min(memory))
    }
}

struct Watcher {
    surface: Arc<Surface>,
    channel: Option<ChannelName>,
    position: Revision,
    until_present: bool,
    out: mpsc::Sender<Result<v1::WatchResponse, Status>>,
}

/// The watcher went away.
struct Gone;

impl Watcher {
    async fn send(&self, body: Body) -> Result<(), Gone> {
        let response = v1::WatchResponse { body: Some(body), revision: self.position.0 };
        self.out.send(Ok(response)).await.map_err(|_| Gone)
    }

    async fn run(mut self) -> Result<(), Gone> {
        let mut views = self.surface.views.subscribe();
        loop {
            let view = views.borrow_and_update().clone();
            if self.position > view.state.revision() {
                // A position of another history, or of a member that is ahead: the present state
                // settles it.
                self.send_present(&view).await?;
            }
            while self.position < view.state.revision() {
                match self.surface.records_after(self.position, WATCH_RECORDS).await {
                    Some(records) if !records.is_empty() => self.send_records(&records).await?,
                    Some(_) => break,
                    None => self.send_present(&view).await?,
                }
            }
            if self.until_present {
                return Ok(());
            }
            tokio::select! {
                () = self.surface.stop.cancelled() => {
                    return self.out.send(Err(status::stopping())).await.map_err(|_| Gone);
                }
                () = self.out.closed() => return Err(Gone),
                changed = timeout(limits::WATCH_IDLE, views.changed()) => match changed {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) => return Ok(()),
                    Err(_) => self.send(Body::Idle(v1::Idle {})).await?,
                },
            }
        }
    }

    async fn send_records(&mut self, records: &[Recorded]) -> Result<(), Gone> {
        for recorded in records {
            self.position = recorded.record.revision;
            if speaks_of(&recorded.record, self.channel.as_ref()) {
                self.send(Body::Record(convert::record(recorded))).await?;
            }
        }
        Ok(())
    }

    /// The present state in pieces, in place of history that is not kept.
    async fn send_present(&mut self, view: &View) -> Result<(), Gone> {
        let state = &view.state;
        self.position = state.revision();
        let piece = |last_chunk| v1::PresentState {
            at_revision: state.revision().0,
            last_chunk,
            ..Default::default()
        };
        let mut nodes = piece(false);
        nodes.nodes = state.nodes().map(|node| convert::node(state, node)).collect();
        self.send(Body::State(nodes)).await?;
        let mut channels = piece(false);
        for channel in state.channels() {
            if self.channel.as_ref().is_some_and(|wanted| *wanted != channel.spec.name) {
                continue;
            }
            channels.channels.push(convert::channel(state, channel));
            if channels.channels.len() >= WATCH_RECORDS {
                self.send(Body::State(std::mem::replace(&mut channels, piece(false)))).await?;
            }
        }
        channels.last_chunk = true;
        self.send(Body::State(channels)).await
    }
}

#[tonic::async_trait]
impl EventService for Events {
    type WatchStream =
        Pin<Box<dyn Stream<Item = Result<v1::WatchResponse, Status>> + Send + 'static>>;

    async fn watch(
        &self,
        request: Request<v1::WatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let request = request.into_inner();
        let (out, messages) = mpsc::channel(WATCH_MESSAGES_MAX);
        let position = match request.from_revision {
            None => self.0.views.now().state.revision(),
            Some(0) => Revision(self.0.oldest_kept().0.saturating_sub(1)),
            Some(from) => Revision(from),
        };
        let watcher = Watcher {
            surface: Arc::clone(&self.0),
            channel: filter(&request.channel)?,
            position,
            until_present: request.until_present,
            out,
        };
        // A watcher that went away ends its task; there is nobody left to tell.
        tokio::spawn(async move { watcher.run().await.unwrap_or(()) });
        Ok(Response::new(Box::pin(ReceiverStream::new(messages))))
    }

    async fn list_events(
        &self,
        request: Request<v1::ListEventsRequest>,
    ) -> Result<Response<v1::ListEventsResponse>, Status> {
        let request = request.into_inner();
        let rows = page_rows(request.page_size)?;
        let channel = filter(&request.channel)?;
        let view = self.0.reads.view(request.read.as_ref()).await?;
        let oldest = self.0.oldest_kept();
        let from = Revision(request.from_revision).max(oldest);
        let (records, next_revision) = if request.descending {
            (newest(&self.0, rows, channel).await?, 0)
        } else {
            ascending(&self.0, &view, from, rows, channel).await
        };
        Ok(Response::new(v1::ListEventsResponse {
            header: Some(self.0.reads.header(&view)),
            records: records.iter().map(convert::record).collect(),
            next_revision,
            oldest_kept: oldest.0,
        }))
    }
}

async fn ascending(
    surface: &Surface,
    view: &View,
    from: Revision,
    rows: usize,
    channel: Option<ChannelName>,
) -> (Vec<Recorded>, u64) {
    let mut found = Vec::new();
    let mut position = Revision(from.0.saturating_sub(1));
    while position < view.state.revision() {
        let records = surface.records_after(position, WATCH_RECORDS).await.unwrap_or_default();
        if records.is_empty() {
            break;
        }
        for recorded in records {
            if found.len() >= rows {
                return (found, position.0 + 1);
            }
            position = recorded.record.revision;
            if speaks_of(&recorded.record, channel.as_ref()) {
                found.push(recorded);
            }
        }
    }
    (found, 0)
}

/// The newest records about a channel, newest first, from memory and then from the files.
pub async fn newest(
    surface: &Surface,
    most: usize,
    channel: Option<ChannelName>,
) -> Result<Vec<Recorded>, Status> {
    let mut found = surface.history.newest(most, |record| speaks_of(record, channel.as_ref()));
    let oldest_in_memory = surface.history.bounds().1;
    if found.len() < most {
        let files = Arc::clone(&surface.files);
        let missing = most - found.len();
        let older = tokio::task::spawn_blocking(move || {
            files.newest(missing, |record| {
                oldest_in_memory.is_none_or(|oldest| record.revision < oldest)
                    && speaks_of(record, channel.as_ref())
            })
        })
        .await
        .map_err(|_| status::internal("reading the event files was cut short"))?;
        found.extend(older);
    }
    Ok(found)
}
