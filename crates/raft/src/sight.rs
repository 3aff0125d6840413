//! What a member shows of itself to its own tasks: the ring, the applied position, the members,
//! and whether it is suspected. The applier writes, everybody reads; nobody waits on a lock here.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::error::Fault;
use crate::log::record::Position;
use crate::member::Member;
use crate::types::{Membership, StoredMembership};
use crate::witness::Ring;

/// A member of the group and whether it votes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seat {
    pub(crate) member: Member,
    pub(crate) voter: bool,
}

/// See the head of the file.
pub(crate) struct Sight {
    ring: Mutex<Ring>,
    seats: Mutex<(Option<Position>, BTreeMap<u64, Seat>)>,
    pub(crate) applied: watch::Sender<Option<Position>>,
    pub(crate) fault: watch::Sender<Option<Fault>>,
    pub(crate) suspect: AtomicBool,
}

impl Default for Sight {
    fn default() -> Self {
        Self {
            ring: Mutex::default(),
            seats: Mutex::default(),
            applied: watch::Sender::new(None),
            fault: watch::Sender::new(None),
            suspect: AtomicBool::new(false),
        }
    }
}

impl Sight {
    pub(crate) fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Newest applied entry.
    pub(crate) fn applied(&self) -> Option<Position> {
        *self.applied.borrow()
    }

    /// Makes this member stop. The first reason stays.
    pub(crate) fn raise(&self, fault: Fault) {
        self.fault.send_if_modified(|present| {
            if present.is_some() {
                return false;
            }
            tracing::error!(%fault, "this member must stop");
            *present = Some(fault);
            true
        });
    }

    /// True once the member must stop.
    pub(crate) fn is_faulted(&self) -> bool {
        self.fault.borrow().is_some()
    }

    pub(crate) fn is_suspect(&self) -> bool {
        self.suspect.load(Ordering::Relaxed)
    }

    /// Takes over the members, unless newer ones are known.
    pub(crate) fn learn(&self, stored: &StoredMembership) {
        let at = stored.log_id().as_ref().map(Position::of);
        let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        let newer = |(old, new): (Position, Position)| new.index >= old.index;
        if seats.0.zip(at).is_none_or(newer) {
            *seats = (at, seats_of(stored.membership()));
        }
    }

    /// All members.
    pub(crate) fn seats(&self) -> Vec<Seat> {
        let seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        seats.1.values().cloned().collect()
    }

    /// One member.
    pub(crate) fn member(&self, member: u64) -> Option<Member> {
        let seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        seats.1.get(&member).map(|seat| seat.member.clone())
    }
}

fn seats_of(membership: &Membership) -> BTreeMap<u64, Seat> {
    let voters: Vec<u64> = membership.voter_ids().collect();
    let seat = |(id, node): (&u64, &Member)| {
        let member = Member { member: *id, ..node.clone() };
        (*id, Seat { member, voter: voters.contains(id) })
    };
    membership.nodes().map(seat).collect()
}
