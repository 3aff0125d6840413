//! An operator who remembers what it was told, follows the leader, and repeats what it got no
//! answer to, under the same request id. What it asks for is in `intents`.

use state::State;
use state::command::{Command, Retry};
use state::epoch::Timestamp;
use state::ids::RequestId;
use state::outcome::Outcome;

use super::intents::{Policies, announce_again, choose, policy, restore_service};
use super::net::Message;
use super::oracle::Oracle;
use super::rng::Rng;

/// Without an answer for this long, the next member is asked.
const PATIENCE_MS: u64 = 900;
const TRIES_MAX: u32 = 12;

#[derive(Debug)]
struct Asked {
    id: u64,
    retry: Option<Retry>,
    command: Command,
    sent_ms: u64,
    tries: u32,
}

#[derive(Debug)]
pub(super) struct Client {
    index: u8,
    member: usize,
    asked: Option<Asked>,
    ids: u64,
    rest_until: u64,
    configured: bool,
    /// Asked for as soon as it may ask again.
    next: Option<Command>,
}

impl Asked {
    fn message(&self) -> Message {
        Message::Request { id: self.id, retry: self.retry, command: self.command.clone() }
    }
}

/// What the operator wants of the group as a whole.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wish {
    /// It only undoes what keeps nodes out of service.
    pub(super) calm: bool,
    /// Load is to be evened out.
    pub(super) balance: bool,
    /// Which of the channel policies are to hold in the end, by their place in what is allowed.
    pub(super) policies: Policies,
}

impl Client {
    pub(super) const fn new(index: u8) -> Self {
        Self { index, member: 0, asked: None, ids: 0, rest_until: 0, configured: false, next: None }
    }

    pub(super) const fn idle(&self) -> bool {
        self.asked.is_none()
    }

    /// What it sends in this step.
    pub(super) fn step(
        &mut self,
        now: u64,
        state: &State,
        wish: Wish,
        rng: &mut Rng,
    ) -> Option<(usize, Message)> {
        if let Some(asked) = &mut self.asked {
            if now < asked.sent_ms + PATIENCE_MS {
                return None;
            }
            asked.tries += 1;
            asked.sent_ms = now;
            self.member = (self.member + 1) % 3;
            if asked.tries <= TRIES_MAX || wish.calm {
                return Some((self.member, asked.message()));
            }
            self.asked = None;
        }
        if now < self.rest_until {
            return None;
        }
        let command = if !self.configured {
            policy(wish.balance)
        } else if let Some(next) = self.next.take() {
            next
        } else if wish.calm {
            restore_service(state, wish)?
        } else {
            choose(state, wish, rng)?
        };
        self.ids += 1;
        let sent_ms = now;
        let retry = rng.permille(800).then(|| self.retry(state, rng));
        let asked = self.asked.insert(Asked { id: self.ids, retry, command, sent_ms, tries: 0 });
        self.rest_until = now + rng.between(20, 400);
        Some((self.member, asked.message()))
    }

    /// A new id, made at the log time the client knows of, give or take its clock.
    fn retry(&self, state: &State, rng: &mut Rng) -> Retry {
        let mut id = [0; 16];
        id[0] = self.index;
        id[8..].copy_from_slice(&self.ids.to_be_bytes());
        let ago = rng.between(0, 2_000);
        let issued_at = Timestamp(state.now().0.saturating_sub(ago));
        Retry { request_id: RequestId(id), issued_at }
    }

    /// Takes an answer; an order it was refused or granted is remembered by the oracle.
    pub(super) fn receive(&mut self, message: Message, now: u64, oracle: &mut Oracle) {
        match message {
            Message::Reply { id, index, outcome } => {
                if let Some(asked) = self.asked.take_if(|asked| asked.id == id) {
                    // Its clock may have been ten minutes late; then the settings are not there.
                    self.configured |= !matches!(*outcome, Outcome::Rejected(_));
                    self.next = announce_again(&asked.command, &outcome);
                    oracle.replied(index, asked.command, outcome);
                }
            }
            Message::NotLeader { hint: Some(hint) } => {
                // `step` goes on to the next member: the hinted one, after a breath.
                self.member = (hint + 2) % 3;
                if let Some(asked) = &mut self.asked {
                    asked.sent_ms = asked.sent_ms.min(now.saturating_sub(PATIENCE_MS - 50));
                }
            }
            _ => {}
        }
    }
}
