//! What runs while this member leads: an ordered establish and its mirror image (ADR 0004).
//! Nothing leader-only lives elsewhere; nothing here is remembered that a new leader would miss.

use std::sync::{Arc, Mutex, PoisonError};

use raft::{Leadership, ProposeError};
use state::command::{Command, Request};
use state::epoch::Term;
use state::ids::{MemberId, Text};
use state::{State, level};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::clock::Clock;
use crate::history::History;
use crate::limits;
use crate::proposer::{Done, Proposer};
use crate::view::Views;

pub mod deadlines;
pub mod dispatch;
pub mod effects;
pub mod look;
pub mod planning;
pub mod sessions;
pub mod silence;

/// What this member is to the group, as far as writers are concerned.
#[derive(Debug, Clone)]
pub enum Phase {
    /// Another member leads, or none.
    Following,
    /// Elected; not yet open for writes.
    Establishing(Term),
    /// Open for writes.
    Leading(Arc<Reign>),
}

/// One leadership of this member: its term and what lives as long as it does.
#[derive(Debug)]
pub struct Reign {
    /// Raft term.
    pub term: Term,
    /// Sessions of workers.
    pub sessions: sessions::Sessions,
    /// Who waits for directives.
    pub dispatch: dispatch::Dispatch,
    /// Streams of cleaners.
    pub cleaners: effects::Streams,
    /// The planner's last report.
    pub planning: planning::Planning,
    /// Cancelled when the leadership ends.
    pub over: CancellationToken,
}

/// What the leader tasks need.
#[derive(Debug, Clone)]
pub struct Parts {
    /// This member.
    pub member: MemberId,
    /// The Raft group.
    pub raft: raft::Handle,
    /// Where commands go.
    pub proposer: Proposer,
    /// What is applied.
    pub views: Views,
    /// What happened lately.
    pub history: Arc<History>,
    /// Time.
    pub clock: Arc<Clock>,
    /// Totals over all reigns, for metrics.
    pub totals: Arc<planning::Totals>,
    /// Clean-ups completed, for metrics.
    pub cleanups: Arc<effects::Counters>,
}

impl Parts {
    /// A command of the leader itself.
    #[must_use]
    pub fn request(&self, duty: &str, command: Command) -> Request {
        let actor = Text::cut(&format!("{duty}:{}", self.member));
        Request { actor, retry: None, command }
    }

    /// Proposes and waits until the outcome is in the view, so that the next look sees it.
    ///
    /// # Errors
    /// What the proposer says; a view that does not come is [`ProposeError::Stopped`].
    pub async fn record(&self, requests: Vec<Request>) -> Result<Done, ProposeError> {
        let done = self.proposer.submit(requests).await?;
        match self.views.at_index(done.index, limits::READ_WAIT_MAX).await {
            Ok(_) => Ok(done),
            Err(_) => Err(ProposeError::Stopped),
        }
    }
}

/// Follows the leadership for as long as the process runs.
///
/// Returns the phase, and the task that keeps it.
#[must_use]
pub fn start(parts: Parts, stop: CancellationToken) -> (watch::Receiver<Phase>, JoinSet<()>) {
    let (phase, receiver) = watch::channel(Phase::Following);
    let mut tasks = JoinSet::new();
    tasks.spawn(follow(parts, phase, stop));
    (receiver, tasks)
}

async fn follow(parts: Parts, phase: watch::Sender<Phase>, stop: CancellationToken) {
    let mut leadership = parts.raft.leadership();
    loop {
        let now = leadership.borrow_and_update().clone();
        if let Leadership::Leader { term } = now {
            let term = Term(term);
            reign(&parts, term, &phase, &mut leadership, &stop).await;
            phase.send_replace(Phase::Following);
            info!(%term, phase = "following", "leadership ended");
        }
        if stop.is_cancelled() {
            return;
        }
        // After a reign the value may have moved on already: look again before waiting.
        if *leadership.borrow() == now {
            tokio::select! {
                changed = leadership.changed() => if changed.is_err() { return },
                () = stop.cancelled() => return,
            }
        }
    }
}

/// Establishes, leads until the leadership changes, resigns.
async fn reign(
    parts: &Parts,
    term: Term,
    phase: &watch::Sender<Phase>,
    leadership: &mut watch::Receiver<Leadership>,
    stop: &CancellationToken,
) {
    let over = stop.child_token();
    phase.send_replace(Phase::Establishing(term));
    info!(%term, phase = "establishing", "leadership began");
    let lead = async {
        let Some((reign, mut tasks)) = establish(parts, term, over.clone()).await else {
            return;
        };
        phase.send_replace(Phase::Leading(Arc::clone(&reign)));
        info!(%term, phase = "leading", "open for writes");
        // Duties run until they are cancelled; one that ends by itself would be missed silently.
        while let Some(ended) = tasks.join_next().await {
            if !over.is_cancelled() {
                warn!(%term, ?ended, "a leader duty ended; resigning");
                return;
            }
        }
    };
    tokio::select! {
        () = lead => {}
        () = ended(leadership, term) => {}
        () = stop.cancelled() => {}
    }
    over.cancel();
}

/// Resolves when this term's leadership is no longer ours.
async fn ended(leadership: &mut watch::Receiver<Leadership>, term: Term) {
    let same = |now: &Leadership| matches!(now, Leadership::Leader { term: t } if *t == term.0);
    // An error means that the Raft group stopped: that ends a leadership as well.
    let _ = leadership.wait_for(|now| !same(now)).await;
}

/// The ordered start: LeaderStart applied, level of a new group, sessions, dispatch, deadlines,
/// effects, planner, writes.
async fn establish(
    parts: &Parts,
    term: Term,
    over: CancellationToken,
) -> Option<(Arc<Reign>, JoinSet<()>)> {
    parts.clock.lead_from(parts.views.now().state.now());
    let start = Command::LeaderStart { term, member: parts.member };
    if let Err(error) = parts.record(vec![parts.request("leader", start)]).await {
        warn!(%term, %error, "the start of the leadership was not recorded");
        return None;
    }
    raise_new_group(parts).await?;
    let view = parts.views.now();
    let (sessions, renewals) = sessions::Sessions::start(&view.state, &parts.clock);
    let reign = Arc::new(Reign {
        term,
        sessions,
        dispatch: dispatch::Dispatch::default(),
        cleaners: effects::Streams::default(),
        planning: planning::Planning::default(),
        over,
    });
    let mut tasks = JoinSet::new();
    tasks.spawn(guarded(&reign, sessions::run(parts.clone(), Arc::clone(&reign), renewals)));
    tasks.spawn(guarded(&reign, dispatch::run(parts.clone(), Arc::clone(&reign))));
    tasks.spawn(guarded(&reign, deadlines::run(parts.clone())));
    tasks.spawn(guarded(&reign, effects::run(parts.clone())));
    tasks.spawn(guarded(&reign, planning::run(parts.clone(), Arc::clone(&reign))));
    Some((reign, tasks))
}

/// Raises a group in which nothing happened yet to the newest level: all its members were just
/// installed. A leader that dies before leaves that to the next one. Older groups wait for an
/// operator, who knows which versions run (ADR 0012).
async fn raise_new_group(parts: &Parts) -> Option<()> {
    let state = parts.views.now().state;
    if !untouched(&state) || state.level() >= level::KNOWN {
        return Some(());
    }
    let raise = Command::SetLevel { level: level::KNOWN };
    match parts.record(vec![parts.request("leader", raise)]).await {
        Ok(_) => Some(()),
        Err(error) => {
            warn!(%error, "the level of the new group was not recorded");
            None
        }
    }
}

/// Whether no worker ever registered and no channel was ever announced.
pub(crate) fn untouched(state: &State) -> bool {
    state.first_registered().is_none()
        && state.channel_count() == 0
        && state.drops().next().is_none()
}

/// Runs a duty until the reign is over.
fn guarded(
    reign: &Arc<Reign>,
    duty: impl Future<Output = ()> + Send + 'static,
) -> impl Future<Output = ()> + Send + 'static {
    let over = reign.over.clone();
    async move {
        tokio::select! {
            () = over.cancelled() => {}
            () = duty => {}
        }
    }
}

/// A lock whose holder panicked still guards sound data here: holders change one field at a time.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
