//! The duties of a leader on its own applied state: sessions, dispatch, deadlines, effects,
//! planning. Silence is measured by the server's own meter, when to plan is the server's own rule,
//! and choices are made by the planner.

use std::rc::Rc;

use planner::{Budget, View};
use server::leader::look::{Look, plan_at};
use server::leader::silence::SilenceMeter;
use state::command::{Command, Request};
use state::event::Event;
use state::ids::Text;
use state::node::NodeRef;
use state::outcome::{Facts, Outcome};
use state::{State, directives_for};

use super::breach::Broken;
use super::net::{Endpoint, Message, Progress};
use super::reign::{Deciding, Desk, Reign, Renewal, Tag};
use super::world::ELECTION_MAX_MS;

/// Directives are sent again after this long even when nothing changed.
const RESEND_MS: u64 = 500;
/// Commands of one duty in one entry.
const DUTIES_MAX: usize = 32;
const MOVES_MAX: usize = 16;

impl Reign {
    /// 18.5 rule 4: only a leader that a quorum answered not long ago speaks for the group.
    fn speaks(&self, now: u64) -> bool {
        self.leading && now.saturating_sub(self.quorum_ms) < ELECTION_MAX_MS
    }

    /// One step of everything a leader does by itself.
    pub(super) fn tick(&mut self, state: &State, desk: &mut Desk<'_>) {
        if !self.leading {
            return;
        }
        self.sessions(state, desk);
        self.dispatch(state, desk);
        self.deadlines(state, desk);
        self.effects(state, desk);
        self.plan(state, desk);
    }

    fn sessions(&mut self, state: &State, desk: &mut Desk<'_>) {
        if !self.held.is_empty() && !self.observed_in_flight {
            let waiting = std::mem::take(&mut self.held);
            let renewed = waiting.iter().map(|renewal| renewal.session).collect();
            let found = server::leader::silence::Observation { silent: Vec::new(), renewed };
            self.observe_with(found, Tag::Held { waiting }, desk);
            return;
        }
        if desk.now < self.observe_ms || self.observed_in_flight {
            return;
        }
        self.observe_ms = desk.now + SilenceMeter::interval_ms(state);
        let Some(meter) = &mut self.meter else { return };
        let found = meter.observe(state, desk.now);
        let expired = meter.expired(state, self.term, desk.now);
        let renewed = found.renewed.clone();
        self.observe_with(found, Tag::Observed { renewed }, desk);
        if !expired.is_empty() {
            self.propose("sessions", expired, Tag::Nobody, desk);
        }
    }

    fn observe_with(
        &mut self,
        found: server::leader::silence::Observation,
        tag: Tag,
        desk: &mut Desk<'_>,
    ) {
        let term = self.term;
        let report = self.meter.as_mut().and_then(|meter| meter.report(term, found));
        if let Some(command) = report {
            self.observed_in_flight = true;
            self.propose("sessions", vec![command], tag, desk);
        }
    }

    fn dispatch(&mut self, state: &State, desk: &mut Desk<'_>) {
        let connected: Vec<_> = self.connected.iter().map(|(slot, node)| (*slot, *node)).collect();
        for (slot, session) in connected {
            if state.live(session).is_none() {
                self.over(slot, session, desk);
                continue;
            }
            let (revision, at) = self.pushed.get(&slot).copied().unwrap_or_default();
            if revision == state.revision() && desk.now < at + RESEND_MS {
                continue;
            }
            self.pushed.insert(slot, (state.revision(), desk.now));
            let set = Rc::new(directives_for(state, session.node));
            let (leader_term, revision) = (self.term, state.revision());
            let message = Message::Directives { session, leader_term, revision, set };
            desk.sends.push((Endpoint::Agent(slot), message));
        }
    }

    fn over(&mut self, slot: usize, session: NodeRef, desk: &mut Desk<'_>) {
        if self.speaks(desk.now) {
            self.connected.remove(&slot);
            desk.sends.push((Endpoint::Agent(slot), Message::SessionOver { session }));
        }
    }

    fn deadlines(&mut self, state: &State, desk: &mut Desk<'_>) {
        let stamp = self.stamp(desk.now);
        if self.duty_in_flight || state.next_deadline().is_none_or(|due| due > stamp) {
            return;
        }
        let due = state.due(stamp, DUTIES_MAX);
        if !due.is_empty() {
            self.duty_in_flight = true;
            self.propose("deadlines", due, Tag::Duty, desk);
        }
    }

    fn effects(&mut self, state: &State, desk: &mut Desk<'_>) {
        if self.effects_in_flight {
            return;
        }
        let done = |(channel, former): (&state::ids::ChannelName, state::channel::FormerOwner)| {
            let former = state::command::OwnerClaim { node: former.node, term: former.term };
            Command::EffectDone { channel: channel.clone(), former }
        };
        let commands: Vec<_> = state.effects().take(DUTIES_MAX).map(done).collect();
        // Cleaning up takes a while: former owners are kept until then.
        if !commands.is_empty() && desk.rng.permille(100) {
            self.effects_in_flight = true;
            self.propose("effects", commands, Tag::Effects, desk);
        }
    }

    fn plan(&mut self, state: &State, desk: &mut Desk<'_>) {
        match self.deciding.take() {
            None => {}
            Some(Deciding::Planned { decision, propose_ms }) if propose_ms <= desk.now => {
                self.deciding = Some(Deciding::InFlight);
                self.propose("planner", vec![Command::Place(decision)], Tag::Plan, desk);
                return;
            }
            pending => {
                self.deciding = pending;
                return;
            }
        }
        let now = self.stamp(desk.now);
        if plan_at(state, self.looked).is_none_or(|at| at > now) {
            return;
        }
        let view = View { state, term: self.term, now };
        let plan = planner::plan(&view, &Budget { moves_max: MOVES_MAX });
        let (revision, wake_at) = (state.revision(), plan.wake_at);
        self.looked = Some(Look { revision, at: now, wake_at });
        if let Some(decision) = plan.decision {
            if desk.quick && desk.rng.permille(500) {
                self.deciding = Some(Deciding::InFlight);
                self.propose("planner", vec![Command::Place(decision)], Tag::Plan, desk);
                return;
            }
            let propose_ms = desk.now + desk.rng.between(0, 120);
            self.deciding = Some(Deciding::Planned { decision, propose_ms });
        }
    }

    /// A message for the leader. What others than leaders answer is in `world`.
    pub(super) fn receive(
        &mut self,
        from: Endpoint,
        message: Message,
        state: &State,
        desk: &mut Desk<'_>,
    ) {
        if !self.leading {
            return;
        }
        match (from, message) {
            (Endpoint::Agent(slot), Message::Register { registration, sent_ms }) => {
                let command = Command::RegisterSession(registration.clone());
                let tag = Tag::Register { slot, registration, sent_ms };
                self.propose("node", vec![command], tag, desk);
            }
            (Endpoint::Agent(slot), Message::Report { session, sent_ms, acks, progress }) => {
                if state.live(session).is_none() {
                    self.over(slot, session, desk);
                    return;
                }
                self.connected.insert(slot, session);
                let renewal = Renewal { slot, session, sent_ms, registration: None };
                self.renew(renewal, state, desk);
                let mut fresh = acks;
                fresh.retain(|ack| self.acks_in_flight.insert((slot, ack.channel.clone(), ack.op)));
                if !fresh.is_empty() {
                    let commands = fresh.iter().cloned().map(Command::NodeAck).collect();
                    self.propose("node", commands, Tag::Acks { slot, acks: fresh }, desk);
                }
                self.extend(progress, state, desk);
            }
            (Endpoint::Agent(slot), Message::Commit { channel, claim, positions }) => {
                let command = Command::CommitMeta { channel, claim, positions };
                let tag = Tag::Commit { slot, command: command.clone() };
                self.propose("node", vec![command], tag, desk);
            }
            (Endpoint::Client(client), Message::Request { id, retry, command }) => {
                if desk.broken == Some(Broken::EarlyReplies) {
                    let outcome = Rc::new(Outcome::NoChange(Facts::Already));
                    let message = Message::Reply { id, index: desk.log_len, outcome };
                    desk.sends.push((from, message));
                }
                let request = Request { actor: Text::cut("operator"), retry, command };
                self.submit(vec![request], Tag::Client { client, id }, desk);
            }
            _ => {}
        }
    }

    fn renew(&mut self, renewal: Renewal, state: &State, desk: &mut Desk<'_>) {
        let now = desk.now;
        let speaks = self.speaks(now) || desk.broken == Some(Broken::LonelyLeaders);
        if desk.broken == Some(Broken::FreeRegistrations) && renewal.registration.is_some() {
            acknowledge(renewal, desk);
            return;
        }
        let Some(meter) = &mut self.meter else { return };
        meter.touch(renewal.session, now);
        if meter.must_log_renewal(state, renewal.session) {
            if desk.broken == Some(Broken::EarlyRenewals) {
                acknowledge(renewal.clone(), desk);
            }
            self.held.push(renewal);
        } else if speaks {
            acknowledge(renewal, desk);
        }
    }

    /// Progress moves a deadline at most once in half a watch timeout.
    fn extend(&mut self, reported: Vec<Progress>, state: &State, desk: &mut Desk<'_>) {
        let pause = state.policy().watch_timeout_ms / 2;
        let mut commands = Vec::new();
        for Progress { channel, term, op, progress } in reported {
            let last = self.extended.entry((channel.clone(), op)).or_insert((0, desk.now));
            if last.0 != progress && desk.now >= last.1 + pause {
                *last = (progress, desk.now);
                commands.push(Command::ExtendDeadline { channel, term, op, progress });
            }
        }
        if !commands.is_empty() {
            self.propose("node", commands, Tag::Nobody, desk);
        }
    }

    /// A proposal of this reign is applied here.
    pub(super) fn done(
        &mut self,
        tag: Tag,
        index: usize,
        outcomes: &[Rc<Outcome>],
        state: &State,
        desk: &mut Desk<'_>,
    ) {
        match tag {
            Tag::Start => {
                self.leading = true;
                self.meter = Some(SilenceMeter::start(state, desk.now));
                self.observe_ms = desk.now + SilenceMeter::interval_ms(state);
            }
            Tag::Plan => {
                self.deciding = None;
                if !matches!(*outcomes[0], Outcome::Accepted(_)) {
                    self.looked = None;
                }
            }
            Tag::Duty => self.duty_in_flight = false,
            Tag::Effects => self.effects_in_flight = false,
            Tag::Observed { renewed } => {
                self.observed_in_flight = false;
                self.settle(&renewed);
            }
            Tag::Held { waiting } => {
                self.observed_in_flight = false;
                let renewed: Vec<_> = waiting.iter().map(|renewal| renewal.session).collect();
                self.settle(&renewed);
                // The session may have ended in an entry before the one that resets its silence.
                let speaks = self.speaks(desk.now);
                let live = |held: &Renewal| speaks && state.live(held.session).is_some();
                waiting.into_iter().filter(live).for_each(|held| acknowledge(held, desk));
            }
            Tag::Client { client, id } => {
                let outcome = Rc::clone(&outcomes[0]);
                let message = Message::Reply { id, index, outcome };
                desk.sends.push((Endpoint::Client(client), message));
            }
            Tag::Register { slot, registration, sent_ms } => {
                if let Some(session) = session_of(&outcomes[0]) {
                    self.connected.insert(slot, session);
                    // An entry after this one may have ended it again.
                    let Some(live) = state.live(session) else { return };
                    let registration = Some((registration, live.ttl_ms));
                    self.renew(Renewal { slot, session, sent_ms, registration }, state, desk);
                }
            }
            Tag::Acks { slot, acks } => {
                for ack in acks {
                    self.acks_in_flight.remove(&(slot, ack.channel.clone(), ack.op));
                    let state::command::NodeAck { node: session, channel, op, result, .. } = ack;
                    let message = Message::Recorded { session, channel, op, result };
                    desk.sends.push((Endpoint::Agent(slot), message));
                }
            }
            Tag::Commit { slot, command } => {
                let outcome = Rc::clone(&outcomes[0]);
                let message = Message::Committed { index, command, outcome };
                desk.sends.push((Endpoint::Agent(slot), message));
            }
            Tag::Nobody => {}
        }
    }

    fn settle(&mut self, renewed: &[NodeRef]) {
        if let Some(meter) = &mut self.meter {
            meter.settled(renewed);
        }
    }
}

fn acknowledge(renewal: Renewal, desk: &mut Desk<'_>) {
    let Renewal { slot, session, sent_ms, registration } = renewal;
    let message = match registration {
        Some((registration, ttl_ms)) => {
            Message::Registered { session, registration, ttl_ms, sent_ms }
        }
        None => Message::Renewed { session, sent_ms },
    };
    desk.sends.push((Endpoint::Agent(slot), message));
}

fn session_of(outcome: &Outcome) -> Option<NodeRef> {
    match outcome {
        Outcome::Accepted(receipt) => receipt.record.events.iter().find_map(|event| match event {
            Event::NodeCameUp { node, .. } => Some(*node),
            _ => None,
        }),
        Outcome::NoChange(Facts::Session(session)) => Some(*session),
        _ => None,
    }
}
