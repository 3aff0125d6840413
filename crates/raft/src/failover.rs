//! Notices at once when the leader's process is gone. A follower keeps one idle connection to the
//! leader; when it breaks and the address refuses a new one, the lowest number calls an election.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::evidence::{Look, is_gone, look};
use crate::log::record::Ballot;
use crate::member::Member;
use crate::replica::Replica;
use crate::status::Leadership;
use crate::types::{TransferRequest, vote};

const CONNECT_DEADLINE: Duration = Duration::from_millis(500);
/// Each member leaves this much to every one that lives and has a lower number. A candidate writes
/// its vote before it asks for others: a slow disk must not make two candidates of one term.
const TURN: Duration = Duration::from_millis(400);
const LIVES_DEADLINE: Duration = Duration::from_millis(100);
/// A process that dies closes its sockets one by one; until then it is looked at this often.
const CLOSE_LOOK: Duration = Duration::from_millis(2);
const CLOSE_LOOKS_FOR: Duration = Duration::from_millis(300);
const LOOK_AGAIN: Duration = Duration::from_millis(200);
const ELECTION: Duration = Duration::from_millis(150);

/// Runs until the member stops.
pub(crate) async fn watch_leader(replica: Arc<Replica>) {
    let mut leadership = replica.leadership.subscribe();
    loop {
        let followed = match &*leadership.borrow_and_update() {
            Leadership::Follower { term, leader } => Some((*term, leader.clone())),
            Leadership::Leader { .. } | Leadership::Unknown { .. } => None,
        };
        let watching = async {
            match &followed {
                Some((term, leader)) => watch(&replica, *term, leader).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = replica.tasks_end.cancelled() => return,
            changed = leadership.changed() => if changed.is_err() { return },
            () = watching => {}
        }
    }
}

/// Watches one leader of one term for ever; whoever calls drops it when the leader changes.
async fn watch(replica: &Replica, term: u64, leader: &Member) {
    let mut broke: Option<Instant> = None;
    let mut pause = Duration::ZERO;
    loop {
        tokio::time::sleep(pause).await;
        let faults = &replica.peers.faults;
        let me = replica.me.member;
        if faults.is_cut(me, leader.member) || faults.is_cut(leader.member, me) {
            pause = LOOK_AGAIN;
            continue;
        }
        pause = match look(leader, CONNECT_DEADLINE).await {
            Look::Reached(stream) => {
                until_broken(stream).await;
                let since = *broke.get_or_insert_with(Instant::now);
                if since.elapsed() < CLOSE_LOOKS_FOR {
                    CLOSE_LOOK
                } else {
                    broke = None;
                    LOOK_AGAIN
                }
            }
            Look::Refused => {
                take_turn(replica, term, leader).await;
                LOOK_AGAIN
            }
            Look::Unclear => LOOK_AGAIN,
        };
    }
}

async fn until_broken(mut stream: TcpStream) {
    let mut bytes = [0_u8; 256];
    // The other side greets and then says nothing; only the end matters.
    while matches!(stream.read(&mut bytes).await, Ok(read) if read > 0) {}
}

/// Calls an election when nobody with a lower number has done so in time.
async fn take_turn(replica: &Replica, term: u64, leader: &Member) {
    let (others, voters) = replica.others();
    let me = replica.me.member;
    if !voters.contains(&me) {
        return;
    }
    let before = others
        .iter()
        .filter(|other| other.member != leader.member && other.member < me)
        .filter(|other| voters.contains(&other.member))
        .map(|other| async { matches!(look(other, LIVES_DEADLINE).await, Look::Reached(_)) });
    let live = join_all(before).await.into_iter().filter(|lives| *lives).count();
    let turns = u32::try_from(live).unwrap_or(u32::MAX);
    if turns > 0 {
        tokio::time::sleep(TURN.saturating_mul(turns)).await;
        if !is_gone(leader).await {
            return;
        }
    }
    let (Some(raft), Some(metrics)) = (replica.raft(), replica.metrics()) else { return };
    let ballot = Ballot::of(&metrics.vote);
    let of_leader = ballot.committed && ballot.member == leader.member && ballot.term == term;
    if !of_leader {
        return;
    }
    tracing::warn!(leader = leader.member, term, "the leader's process is gone");
    replica.meters.fast_elections.add(1);
    let from = vote(ballot.term, ballot.member, true);
    let request = TransferRequest::new(from, me, None);
    if raft.handle_transfer_leader(request).await.is_ok() {
        tokio::time::sleep(ELECTION).await;
    }
}
