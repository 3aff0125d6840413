//! What readers see: the state after the last applied batch, and how to wait for a fresh enough
//! one. The machine publishes; everything else in this crate reads through here. Nothing is written
//! here.

use std::sync::Arc;
use std::time::Duration;

use state::State;
use state::epoch::Revision;
use tokio::sync::watch;
use tokio::time::timeout;

/// The applied state with its place in the log. Cheap to share.
#[derive(Debug, Clone)]
pub struct View {
    /// After everything up to `index`.
    pub state: Arc<State>,
    /// Log index of the last applied entry.
    pub index: u64,
    /// Raft term of that entry.
    pub term: u64,
}

/// The view did not get there in time, or the machine stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WaitError {
    /// Not within the time allowed.
    #[error("not applied within {0:?}")]
    Timeout(Duration),
    /// No view will ever be published again.
    #[error("this coordinator is stopping")]
    Stopped,
}

/// Hands out views.
#[derive(Debug, Clone)]
pub struct Views {
    receiver: watch::Receiver<View>,
}

/// Where the machine puts a new view.
#[derive(Debug)]
pub struct Publisher {
    sender: watch::Sender<View>,
}

impl Publisher {
    /// A publisher that starts with this state, and the views it feeds.
    #[must_use]
    pub fn new(state: State) -> (Self, Views) {
        let first = View { state: Arc::new(state), index: 0, term: 0 };
        let (sender, receiver) = watch::channel(first);
        (Self { sender }, Views { receiver })
    }

    /// Makes this state the present one.
    pub fn publish(&self, state: State, index: u64, term: u64) {
        self.sender.send_replace(View { state: Arc::new(state), index, term });
    }

    /// Nothing but the place in the log changed.
    pub fn advance(&self, index: u64, term: u64) {
        self.sender.send_modify(|view| {
            view.index = index;
            view.term = term;
        });
    }
}

impl Views {
    /// The present view.
    #[must_use]
    pub fn now(&self) -> View {
        self.receiver.borrow().clone()
    }

    /// A receiver of its own, to wait for changes with.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<View> {
        self.receiver.clone()
    }

    /// Waits until `ready` holds.
    ///
    /// # Errors
    /// [`WaitError`] when `wait` has passed, or no view will come any more.
    pub async fn wait_for(
        &self,
        wait: Duration,
        ready: impl FnMut(&View) -> bool,
    ) -> Result<View, WaitError> {
        let mut receiver = self.receiver.clone();
        match timeout(wait, receiver.wait_for(ready)).await {
            Ok(Ok(view)) => Ok(view.clone()),
            Ok(Err(_)) => Err(WaitError::Stopped),
            Err(_) => Err(WaitError::Timeout(wait)),
        }
    }

    /// Waits until this log index is applied.
    ///
    /// # Errors
    /// See [`Views::wait_for`].
    pub async fn at_index(&self, index: u64, wait: Duration) -> Result<View, WaitError> {
        self.wait_for(wait, |view| view.index >= index).await
    }

    /// Waits until this revision is applied.
    ///
    /// # Errors
    /// See [`Views::wait_for`].
    pub async fn at_revision(&self, revision: Revision, wait: Duration) -> Result<View, WaitError> {
        self.wait_for(wait, |view| view.state.revision() >= revision).await
    }
}
