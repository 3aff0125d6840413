//! How a write of a client becomes a command: options checked, leadership checked, outcome turned
//! into a receipt or a status. Used by every service.

use proto::v1;
use raft::{Leadership, ProposeError};
use state::command::{Command, Request, Retry};
use state::epoch::{Term, Timestamp};
use state::ids::{RequestId, Text};
use state::outcome::{Facts, Outcome, Rejection};
use state::{Context, State, level};
use std::sync::Arc;
use tokio::sync::watch;
use tokio::time::timeout;
use tonic::Status;

use super::status;
use crate::clock::Clock;
use crate::leader::{Phase, Reign};
use crate::limits;
use crate::proposer::{Done, Proposer};
use crate::view::Views;

/// Takes writes while this member leads.
#[derive(Debug, Clone)]
pub struct Writes {
    raft: raft::Handle,
    proposer: Proposer,
    phase: watch::Receiver<Phase>,
    views: Views,
    clock: Arc<Clock>,
}

impl Writes {
    /// Writes through this proposer.
    #[must_use]
    pub fn new(
        raft: raft::Handle,
        proposer: Proposer,
        phase: watch::Receiver<Phase>,
        views: Views,
        clock: Arc<Clock>,
    ) -> Self {
        Self { raft, proposer, phase, views, clock }
    }

    /// The leadership of this member, once it is open for writes.
    ///
    /// # Errors
    /// NOT_LEADER with the leader's address, or NO_LEADER.
    pub async fn reign(&self) -> Result<Arc<Reign>, Status> {
        if let Phase::Leading(reign) = &*self.phase.borrow() {
            return Ok(Arc::clone(reign));
        }
        match &*self.raft.leadership().borrow() {
            Leadership::Follower { leader, .. } => return Err(status::not_leader(Some(leader))),
            Leadership::Unknown { .. } => return Err(status::no_leader(&self.raft)),
            Leadership::Leader { .. } => {}
        }
        let mut phase = self.phase.clone();
        let open = phase.wait_for(|phase| matches!(phase, Phase::Leading(_)));
        match timeout(limits::ESTABLISH_WAIT_MAX, open).await {
            Ok(Ok(phase)) => match &*phase {
                Phase::Leading(reign) => Ok(Arc::clone(reign)),
                Phase::Following | Phase::Establishing(_) => Err(status::not_leader(None)),
            },
            Ok(Err(_)) => Err(status::stopping()),
            Err(_) => Err(status::not_leader(None)),
        }
    }

    /// The leadership of this member, if it is open for writes now.
    #[must_use]
    pub fn leading(&self) -> Option<Arc<Reign>> {
        match &*self.phase.borrow() {
            Phase::Leading(reign) => Some(Arc::clone(reign)),
            Phase::Following | Phase::Establishing(_) => None,
        }
    }

    /// The options of a write as the head of a request.
    fn head(&self, options: &v1::WriteOptions) -> Result<(Text, Option<Retry>), Status> {
        let actor =
            Text::new(&options.actor).map_err(|error| status::bad_text("write.actor", &error))?;
        if options.request_id.is_empty() {
            return Ok((actor, None));
        }
        let id = <[u8; 16]>::try_from(options.request_id.as_ref()).map_err(|_| {
            let allowed = "a request id has 16 bytes, or none";
            let given = format!("{} bytes", options.request_id.len());
            status::bad_field("write.request_id", given, allowed)
        })?;
        let issued_at = match options.issued_ms {
            0 => self.clock.stamp(),
            issued => Timestamp(issued),
        };
        Ok((actor, Some(Retry { request_id: RequestId(id), issued_at })))
    }

    /// Judges or carries out a command.
    ///
    /// # Errors
    /// The status of its rejection, of a bad option, or of a group that does not take it now.
    pub async fn write(
        &self,
        options: Option<v1::WriteOptions>,
        command: Command,
    ) -> Result<v1::WriteReceipt, Status> {
        let options = options.unwrap_or_default();
        let reign = self.reign().await?;
        let (actor, retry) = self.head(&options)?;
        // Members of an older version cannot even decode these: what stands in the log is too late.
        decodable(&self.views.now().state, &command)
            .map_err(|rejection| status::rejection(&rejection))?;
        let request = Request { actor, retry, command };
        if options.validate_only {
            return self.judge(reign.term, &request);
        }
        let done = self.submit(vec![request]).await?;
        let outcome = done.outcomes.into_iter().next();
        let outcome = outcome.ok_or_else(|| status::internal("an entry without outcome"))?;
        receipt(outcome, done.index, &self.views)
    }

    /// The same, and what it did is in the view of this member when it answers: for writes that
    /// change what this member lets through next.
    ///
    /// # Errors
    /// See [`Writes::write`]; also when the view does not come in time.
    pub async fn write_seen(
        &self,
        options: Option<v1::WriteOptions>,
        command: Command,
    ) -> Result<v1::WriteReceipt, Status> {
        let receipt = self.write(options, command).await?;
        self.views
            .at_index(receipt.index, limits::READ_WAIT_MAX)
            .await
            .map_err(|error| status::wait(&error, "the write"))?;
        Ok(receipt)
    }

    fn judge(&self, term: Term, request: &Request) -> Result<v1::WriteReceipt, Status> {
        let view = self.views.now();
        let mut fork = (*view.state).clone();
        let outcome = fork.apply(&Context { term, now: self.clock.stamp() }, request);
        receipt(outcome, 0, &self.views)
    }

    /// Proposes commands in one entry and waits for their outcomes.
    ///
    /// # Errors
    /// UNAVAILABLE or RESOURCE_EXHAUSTED with a reason. After UNKNOWN_OUTCOME they may still take
    /// effect.
    pub async fn submit(&self, requests: Vec<Request>) -> Result<Done, Status> {
        let submitted = self.proposer.submit(requests);
        match timeout(limits::WRITE_WAIT_MAX, submitted).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(ProposeError::NotLeader { hint })) => Err(status::not_leader(hint.as_ref())),
            Ok(Err(error)) => Err(status::propose(&error)),
            Err(_) => Err(status::unknown_outcome("not committed in time; a retry is safe")),
        }
    }
}

/// Refuses commands that are newer than what all members have agreed to understand (ADR 0007).
pub(crate) fn decodable(state: &State, command: &Command) -> Result<(), Rejection> {
    match command {
        Command::RegisterCleaner { .. } | Command::DeregisterCleaner { .. } => {
            level::need(state, "a cleaner", level::CLEANERS)
        }
        _ => Ok(()),
    }
}

fn receipt(outcome: Outcome, index: u64, views: &Views) -> Result<v1::WriteReceipt, Status> {
    let mut receipt = v1::WriteReceipt { index, ..Default::default() };
    match outcome {
        Outcome::Accepted(accepted) => {
            receipt.set_outcome(v1::WriteOutcome::Accepted);
            receipt.revision = accepted.record.revision.0;
            receipt.events = accepted.record.events.iter().map(ToString::to_string).collect();
        }
        Outcome::NoChange(facts) => {
            receipt.set_outcome(v1::WriteOutcome::NoChange);
            receipt.revision = match facts {
                Facts::Repeated(revision) => revision.0,
                _ => views.now().state.revision().0,
            };
        }
        Outcome::Rejected(rejection) => {
            return Err(status::rejection_in(&views.now().state, &rejection));
        }
    }
    Ok(receipt)
}
