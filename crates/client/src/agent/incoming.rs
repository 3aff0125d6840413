//! What an agent does with each message of a coordinator (N-1 to N-4, N-6).
//! Waiting and sending is in engine.rs; the sets and the terms are judged in desired.rs.
//! Called by engine.rs.

use std::time::Duration;

use tokio::time::Instant;

use crate::agent::desired::Taken;
use crate::agent::engine::Engine;
use crate::agent::event::{AgentEvent, FenceCause};
use crate::agent::fence::Lease;
use crate::error::Error;
use crate::proto::session_response::Body;
use crate::proto::{Directives, Registered, Renewed, SessionResponse, Verdict};
use crate::worker::Worker;

/// A coordinator that asks for more renewals than this per second does not mean it.
const RENEW_EVERY_MIN: Duration = Duration::from_millis(10);

impl<W: Worker> Engine<W> {
    pub(crate) async fn incoming(&mut self, message: SessionResponse) -> Result<(), Error> {
        let Some(link) = self.link.as_ref() else { return Ok(()) };
        if message.leader_term < self.leader_term {
            let coordinator = link.address.clone();
            let error = Error::unreachable(&coordinator, "it speaks for a deposed leader");
            let (leader_term, highest) = (message.leader_term, self.leader_term);
            self.tell(&AgentEvent::DeposedLeaderRefused { coordinator, leader_term, highest });
            return self.lost_link(error).await;
        }
        self.leader_term = message.leader_term;
        match message.body {
            Some(Body::Registered(registered)) => self.registered(&registered).await,
            Some(Body::Fence(fence)) => self.fence(FenceCause::Told(fence.reason)).await,
            Some(Body::Renewed(renewed)) if self.is_registered => {
                self.renewed(message.seq, &renewed);
                Ok(())
            }
            Some(Body::Directives(directives)) if self.is_registered => {
                self.directives(directives).await
            }
            // Out of order, or of a later version.
            Some(Body::Renewed(_) | Body::Directives(_)) | None => Ok(()),
        }
    }

    async fn registered(&mut self, registered: &Registered) -> Result<(), Error> {
        let Some(link) = self.link.as_ref() else { return Ok(()) };
        let (coordinator, registered_at) = (link.address.clone(), link.registered_at);
        let node = (registered.node_id, registered.node_epoch);
        let ttl = Duration::from_millis(registered.ttl_ms);
        let margin = Duration::from_millis(registered.margin_ms);
        let leader_term = self.leader_term;
        self.dialer.succeeded(&coordinator);
        match self.node {
            Some(known) if known != node => {
                // What runs here belongs to a session that is over, and a new one must be empty.
                let reason = "the coordinator knows this session no more".to_owned();
                return self.fence(FenceCause::Told(reason)).await;
            }
            // Not a renewal: that the session is known does not say that its silence is cleared.
            Some(_) => {
                if let Some(lease) = self.lease.as_mut() {
                    lease.set_lifetime(ttl, margin);
                    self.guard.open(node, lease.fence_at());
                }
                self.tell(&AgentEvent::Reconnected { coordinator, leader_term });
            }
            None => {
                let lease = Lease::new(ttl, margin, registered_at);
                self.guard.open(node, lease.fence_at());
                self.lease = Some(lease);
                self.node = Some(node);
                self.born_at = registered_at;
                let (node_id, node_epoch) = node;
                self.tell(&AgentEvent::Registered {
                    node_id,
                    node_epoch,
                    coordinator,
                    leader_term,
                });
            }
        }
        self.ttl = ttl;
        self.is_registered = true;
        self.renew_every = Duration::from_millis(registered.renew_every_ms).max(RENEW_EVERY_MIN);
        self.next_report = Instant::now();
        self.tell_running = true;
        self.stopping_heard = false;
        Ok(())
    }

    fn renewed(&mut self, seq: u64, renewed: &Renewed) {
        if let (Some(lease), Some(node)) = (self.lease.as_mut(), self.node) {
            lease.confirmed(seq);
            self.guard.open(node, lease.fence_at());
        }
        if self.ack_seq.is_some_and(|sent| sent <= seq) {
            self.ack_seq = None;
        }
        if self.stopping_seq.is_some_and(|sent| sent <= seq) {
            self.stopping_heard = true;
        }
        for verdict in &renewed.acks {
            if self.ledger.verdict(seq, verdict, &self.desired) {
                let (channel, term) = (verdict.channel.clone(), verdict.term);
                let recorded = verdict.verdict() == Verdict::Recorded;
                self.tell(&AgentEvent::AckSettled { channel, term, recorded });
            }
        }
    }

    async fn directives(&mut self, directives: Directives) -> Result<(), Error> {
        match self.desired.take(directives) {
            Taken::Piece => Ok(()),
            Taken::Gap => {
                let address = self.link.as_ref().map(|link| link.address.clone());
                let address = address.unwrap_or_default();
                let detail = "a delta to a set that was never sent";
                self.lost_link(Error::Protocol { address, detail }).await
            }
            Taken::Changed { touched, refused } => {
                for lower in refused {
                    let (channel, term, highest) = (lower.channel, lower.term, lower.highest);
                    self.tell(&AgentEvent::LowerTermRefused { channel, term, highest });
                }
                let actions = touched
                    .iter()
                    .filter_map(|channel| self.ledger.reconcile(channel, &self.desired))
                    .collect();
                self.begin(actions);
                Ok(())
            }
        }
    }
}
