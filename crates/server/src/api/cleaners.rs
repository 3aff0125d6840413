//! What cleaners are told: the list of them, and the stream of one. Everything sent is derived from
//! the applied state, so a slow or broken stream loses nothing, and nothing waits here for it. What
//! is told by a deposed leader is still true: a term that is over stays over.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use proto::v1;
use state::State;
use state::channel::FormerOwner;
use state::ids::{ChannelName, NodeName};
use state::outcome::Rejection;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::{Surface, convert, status};
use crate::leader::Reign;
use crate::leader::effects::Open;
use crate::limits;
use crate::view::View;

/// Messages waiting for one cleaner.
const MESSAGES_MAX: usize = 4;
/// After a change of the state, so that one look serves many.
const GATHER: Duration = Duration::from_millis(10);

/// What [`watch`] gives.
pub type CleanupStream =
    Pin<Box<dyn Stream<Item = Result<v1::WatchCleanupsResponse, Status>> + Send + 'static>>;

/// Without changes: whether a quorum still answers this leader. Another may have been elected
/// behind a partition, and it is there that new work is known.
const LOOK: Duration = Duration::from_secs(1);

type Key = (ChannelName, FormerOwner);

/// What one cleaner knows to wait: never more than what does wait in the state.
#[derive(Debug, Default)]
pub(crate) struct Told(BTreeSet<Key>);

/// What is new to a cleaner.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Difference {
    /// Began to wait.
    pub(crate) added: Vec<Key>,
    /// Waits no more.
    pub(crate) gone: Vec<Key>,
}

impl Told {
    /// Brings it up to date with a state.
    pub(crate) fn update(&mut self, state: &State) -> Difference {
        let waiting: BTreeSet<Key> =
            state.effects().map(|(name, former)| (name.clone(), former)).collect();
        let difference = Difference {
            added: waiting.difference(&self.0).cloned().collect(),
            gone: self.0.difference(&waiting).cloned().collect(),
        };
        self.0 = waiting;
        difference
    }
}

struct Teller {
    surface: Arc<Surface>,
    reign: Arc<Reign>,
    name: NodeName,
    told: Told,
    out: mpsc::Sender<Result<v1::WatchCleanupsResponse, Status>>,
}

/// Opens the stream of a registered cleaner.
pub async fn watch(surface: &Arc<Surface>, name: &str) -> Result<CleanupStream, Status> {
    let name = convert::node_name("name", name)?;
    let reign = surface.writes.reign().await?;
    registered(&surface.views.now().state, &name)?;
    let (out, messages) = mpsc::channel(MESSAGES_MAX);
    let surface = Arc::clone(surface);
    let teller = Teller { surface, reign, name, told: Told::default(), out: out.clone() };
    tokio::spawn(async move {
        if let Err(status) = teller.run().await {
            // The cleaner may be gone already.
            let _ = out.send(Err(status)).await;
        }
    });
    Ok(Box::pin(ReceiverStream::new(messages)))
}

fn registered(state: &State, name: &NodeName) -> Result<(), Status> {
    match state.cleaner(name) {
        Some(_) => Ok(()),
        None => Err(status::rejection(&Rejection::UnknownCleaner { name: name.clone() })),
    }
}

impl Teller {
    async fn run(mut self) -> Result<(), Status> {
        let _open = Open::begin(&self.reign, &self.name);
        let over = self.reign.over.clone();
        let surface = Arc::clone(&self.surface);
        let gone = self.out.clone();
        tokio::select! {
            ended = self.tell() => ended,
            () = over.cancelled() => Err(surface.leadership_over()),
            () = gone.closed() => Ok(()),
        }
    }

    async fn tell(&mut self) -> Result<(), Status> {
        let mut views = self.surface.views.subscribe();
        let mut full = true;
        let mut idle_at = Instant::now();
        loop {
            let view = views.borrow_and_update().clone();
            registered(&view.state, &self.name)?;
            let difference = self.told.update(&view.state);
            let idle = !full && difference == Difference::default();
            if !idle || Instant::now() >= idle_at {
                self.send(&view, full, &difference).await?;
                idle_at = Instant::now() + limits::WATCH_IDLE;
            }
            full = false;
            tokio::select! {
                changed = views.changed() => match changed {
                    Ok(()) => sleep(GATHER).await,
                    Err(_) => return Err(status::stopping()),
                },
                () = sleep(LOOK) => if !self.surface.quorum_is_fresh(&self.reign).await {
                    return Err(status::not_leader(None));
                },
            }
        }
    }

    /// Sends the difference in pieces; at least one, though it may be empty.
    async fn send(&self, view: &View, full: bool, found: &Difference) -> Result<(), Status> {
        let Difference { added, gone } = found;
        let most = limits::CLEANUPS_CHUNK_MAX;
        let cleanup = |(name, former): &Key| convert::cleanup(&view.state, name, *former);
        let pieces = added.chunks(most).map(|keys| (keys, &[][..]));
        let pieces = pieces.chain(gone.chunks(most).map(|keys| (&[][..], keys)));
        let mut left = added.len().div_ceil(most) + gone.len().div_ceil(most);
        let nothing = (left == 0).then_some((&[][..], &[][..]));
        for (added, gone) in pieces.chain(nothing) {
            left = left.saturating_sub(1);
            let message = v1::WatchCleanupsResponse {
                leader_term: self.reign.term.0,
                revision: view.state.revision().0,
                full,
                last_chunk: left == 0,
                added: added.iter().map(cleanup).collect(),
                gone: gone.iter().map(cleanup).collect(),
            };
            let closed = || Status::cancelled("the cleaner is gone");
            self.out.send(Ok(message)).await.map_err(|_| closed())?;
        }
        Ok(())
    }
}

/// All cleaners, and what waits for them.
pub fn list(surface: &Surface, view: &View) -> v1::ListCleanersResponse {
    let state = &view.state;
    let reign = surface.writes.leading();
    let streams =
        |name: &NodeName| reign.as_ref().map(|reign| reign.cleaners.of(name)).unwrap_or_default();
    v1::ListCleanersResponse {
        header: Some(surface.reads.header(view)),
        cleaners: state
            .cleaners()
            .map(|(name, since)| v1::Cleaner {
                name: name.to_string(),
                since_revision: since.0,
                streams: streams(name),
            })
            .collect(),
        waiting: u64::try_from(state.effects().count()).unwrap_or(u64::MAX),
        cleanups: state
            .effects()
            .take(limits::CLEANUPS_SHOWN_MAX)
            .map(|(name, former)| convert::cleanup(state, name, former))
            .collect(),
    }
}
