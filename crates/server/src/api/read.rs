//! How a read gets the view it may answer from, and the header that says where the answer came
//! from. Used by every service; no service looks at the views by itself to answer a client.

use std::time::Duration;

use proto::v1;
use raft::Leadership;
use state::epoch::Revision;
use tonic::Status;

use super::status;
use crate::limits;
use crate::view::{View, Views};

/// Answers reads at the consistency a caller asks for.
#[derive(Debug, Clone)]
pub struct Reads {
    raft: raft::Handle,
    views: Views,
}

impl Reads {
    /// Reads of this group through these views.
    #[must_use]
    pub fn new(raft: raft::Handle, views: Views) -> Self {
        Self { raft, views }
    }

    /// The view that satisfies `options`; none: linearizable.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for an unknown consistency, UNAVAILABLE with a reason when it cannot be had
    /// in time.
    pub async fn view(&self, options: Option<&v1::ReadOptions>) -> Result<View, Status> {
        let options = options.copied().unwrap_or_default();
        let consistency = v1::Consistency::try_from(options.consistency).map_err(|_| {
            let allowed = "linearizable, leader and stale are allowed";
            status::bad_field("read.consistency", options.consistency, allowed)
        })?;
        let index = match consistency {
            v1::Consistency::Unspecified | v1::Consistency::Linearizable => {
                if self.raft.place().cluster_id.is_none() {
                    return Err(status::waiting());
                }
                self.raft.read_index().await.map_err(|error| status::read(&error))?
            }
            v1::Consistency::Leader => {
                self.must_lead()?;
                0
            }
            v1::Consistency::Stale => 0,
        };
        let least = Revision(options.min_revision);
        let present = self.views.now();
        if present.index >= index && present.state.revision() >= least {
            return Ok(present);
        }
        self.views
            .wait_for(limits::READ_WAIT_MAX, |view| {
                view.index >= index && view.state.revision() >= least
            })
            .await
            .map_err(|error| {
                let what = if options.min_revision > 0 {
                    format!("revision {}", options.min_revision)
                } else {
                    format!("log index {index}")
                };
                status::wait(&error, &what)
            })
    }

    fn must_lead(&self) -> Result<(), Status> {
        match &*self.raft.leadership().borrow() {
            Leadership::Leader { .. } => Ok(()),
            Leadership::Follower { leader, .. } => Err(status::not_leader(Some(leader))),
            Leadership::Unknown { .. } => Err(status::no_leader(&self.raft)),
        }
    }

    /// Says where an answer made from `view` comes from.
    #[must_use]
    pub fn header(&self, view: &View) -> v1::ReadHeader {
        let place = self.raft.place();
        let age = place.leader_age.map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
        v1::ReadHeader {
            cluster_id: place.cluster_id.map(|id| id.to_string()).unwrap_or_default(),
            member: place.member,
            revision: view.state.revision().0,
            index: view.index,
            term: place.term,
            leader: place.leader.unwrap_or_default(),
            age_ms: age.unwrap_or(u64::MAX),
        }
    }
}

/// What this member is good for at present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Health {
    /// It has caught up and can serve reads.
    pub ready: bool,
    /// It knows a leader, or leads a quorum that answers: writes get through.
    pub writable: bool,
}

/// Judges the health of this member; a leader counts while a quorum answered within `fresh`.
#[must_use]
pub fn health(raft: &raft::Handle, fresh: Duration) -> Health {
    let writable = match &*raft.leadership().borrow() {
        Leadership::Leader { .. } => raft.quorum_age().is_some_and(|age| age < fresh),
        Leadership::Follower { .. } => true,
        Leadership::Unknown { .. } => false,
    };
    Health { ready: raft.caught_up(), writable }
}

/// How many rows a page has.
///
/// # Errors
/// INVALID_ARGUMENT above [`limits::PAGE_ROWS_MAX`].
pub fn page_rows(page_size: u32) -> Result<usize, Status> {
    match usize::try_from(page_size) {
        Ok(0) => Ok(limits::PAGE_ROWS_DEFAULT),
        Ok(rows) if rows <= limits::PAGE_ROWS_MAX => Ok(rows),
        _ => {
            let allowed = format!("at most {} rows a page", limits::PAGE_ROWS_MAX);
            Err(status::bad_field("page_size", page_size, &allowed))
        }
    }
}
