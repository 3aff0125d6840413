//! What a fake data node runs for one channel, and how it carries out directives (N-3 to N-6).
//! The session around it is in `agent`.

use state::channel::AckResult;
use state::command::NodeAck;
use state::epoch::{ChannelTerm, Op, Revision, Term};
use state::ids::{ChannelName, Text};
use state::node::NodeRef;
use state::{Directive, DirectiveKind};

use super::agent::{Agent, Scene};
use super::coverage::Kind;

/// How far a channel is on a node. In all three stages it may be consumed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stage {
    Starting { done_ms: u64 },
    Running,
    Stopping { done_ms: u64, ack: Option<(ChannelTerm, Op)> },
}

#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) term: ChannelTerm,
    pub(super) op: Op,
    pub(super) stage: Stage,
    pub(super) progress: u64,
}

impl Agent {
    /// Brings what runs in line with the desired set: stop first, then start.
    ///
    /// `newest` is the leader term and revision of the set; none for one that arrives after a newer
    /// one, which says nothing of what is absent from it.
    pub(super) fn obey(
        &mut self,
        session: NodeRef,
        set: &[Directive],
        newest: Option<(Term, Revision)>,
        scene: &mut Scene<'_>,
    ) {
        let local = self.local_ms(scene.now);
        for (channel, job) in &mut self.jobs {
            let wanted = set.binary_search_by(|directive| directive.channel.cmp(channel)).is_ok();
            let stopping = matches!(job.stage, Stage::Stopping { ack: None, .. });
            if let (Some(by), false, false) = (newest, wanted, stopping) {
                scene.oracle.dropped(self.slot, by, channel, job.term);
                let lingers = scene.trouble && scene.rng.permille(350);
                let took = scene.rng.between(10, if lingers { 6_000 } else { 60 });
                job.stage = Stage::Stopping { done_ms: local + took, ack: None };
            }
        }
        for directive in set {
            let named = (directive.term, directive.op);
            let highest = self.highest.entry(directive.channel.clone()).or_default();
            if named < *highest && !self.takes_lower_terms {
                if directive.term < highest.0 {
                    scene.seen.hit(Kind::Refusal, "F9 node refused a lower channel term");
                }
                continue;
            }
            *highest = named.max(*highest);
            match directive.kind {
                DirectiveKind::Watch => self.watch(session, directive, scene),
                DirectiveKind::Release => self.release(session, directive, scene),
            }
        }
    }

    fn watch(&mut self, session: NodeRef, directive: &Directive, scene: &mut Scene<'_>) {
        let local = self.local_ms(scene.now);
        let channel = &directive.channel;
        let (takes_lower_terms, answered) = (self.takes_lower_terms, self.answered(directive));
        match self.jobs.get_mut(channel) {
            Some(job) if job.term == directive.term => {}
            Some(job) if job.term < directive.term || takes_lower_terms => {
                if scene.trouble && !answered && scene.rng.permille(700) {
                    scene.seen.hit(Kind::Fault, "agent_conflict");
                    self.answer(session, directive, AckResult::Conflict, scene);
                } else if !matches!(job.stage, Stage::Stopping { .. }) {
                    let done_ms = local + scene.rng.between(10, 60) * self.slow;
                    job.stage = Stage::Stopping { done_ms, ack: None };
                }
            }
            Some(_) => {}
            None if answered => {}
            None => self.start(session, directive, scene),
        }
    }

    fn start(&mut self, session: NodeRef, directive: &Directive, scene: &mut Scene<'_>) {
        let channel = directive.channel.clone();
        let took = scene.rng.between(30, 250) * self.slow;
        let done_ms = self.local_ms(scene.now) + took;
        scene.oracle.started(self.slot, session, &channel, directive.term);
        let stage = Stage::Starting { done_ms };
        let job = Job { term: directive.term, op: directive.op, stage, progress: 0 };
        self.jobs.insert(channel, job);
    }

    fn release(&mut self, session: NodeRef, directive: &Directive, scene: &mut Scene<'_>) {
        let local = self.local_ms(scene.now);
        let (channel, name) = (&directive.channel, (directive.term, directive.op));
        if self.answered(directive) {
            return;
        }
        let Some(job) = self.jobs.get_mut(channel) else {
            self.answer(session, directive, AckResult::Ok, scene);
            return;
        };
        match &mut job.stage {
            Stage::Stopping { ack, .. } => *ack = Some(name),
            _ if scene.trouble && scene.rng.permille(60) => {
                scene.seen.hit(Kind::Fault, "agent_release_failed");
                self.answer(session, directive, AckResult::Failed, scene);
            }
            _ if scene.trouble && self.ignores.contains(&directive.op) => {}
            _ if scene.trouble && scene.rng.permille(60) => {
                scene.seen.hit(Kind::Fault, "agent_release_ignored");
                self.ignores.insert(directive.op);
            }
            stage => {
                let done_ms = local + scene.rng.between(10, 150) * self.slow;
                *stage = Stage::Stopping { done_ms, ack: Some(name) };
            }
        }
    }

    /// Whether this directive was answered before; its answer is repeated by the report if need be.
    fn answered(&self, directive: &Directive) -> bool {
        let last = self.answered.get(&directive.channel);
        last.is_some_and(|(op, kind)| *op == directive.op && *kind == directive.kind)
    }

    fn answer(
        &mut self,
        session: NodeRef,
        directive: &Directive,
        result: AckResult,
        scene: &mut Scene<'_>,
    ) {
        let (channel, term, op) = (&directive.channel, directive.term, directive.op);
        self.answered.insert(channel.clone(), (op, directive.kind));
        self.ack(session, channel, (term, op), result, scene);
    }

    /// Remembers an acknowledgement until it is recorded (N-6).
    pub(super) fn ack(
        &mut self,
        session: NodeRef,
        channel: &ChannelName,
        (term, op): (ChannelTerm, Op),
        result: AckResult,
        scene: &mut Scene<'_>,
    ) {
        let reason = Text::cut(&format!("{result}"));
        let ack = NodeAck { node: session, channel: channel.clone(), term, op, result, reason };
        scene.oracle.acked(&ack);
        self.acks.push(ack);
        if scene.trouble && scene.rng.permille(50) {
            scene.seen.hit(Kind::Fault, "agent_acks_late");
            self.acks_from_ms = self.local_ms(scene.now) + scene.rng.between(500, 6_000);
        }
    }

    /// Moves every job on; called at each step.
    pub(super) fn work(&mut self, session: NodeRef, scene: &mut Scene<'_>) {
        let local = self.local_ms(scene.now);
        let channels: Vec<ChannelName> = self.jobs.keys().cloned().collect();
        for channel in channels {
            let Some(job) = self.jobs.get_mut(&channel) else { continue };
            let (term, op) = (job.term, job.op);
            match job.stage {
                Stage::Starting { done_ms } if done_ms <= local => {
                    self.started(session, &channel, (term, op), scene);
                }
                Stage::Starting { .. } => job.progress += 1,
                Stage::Stopping { done_ms, ack } if done_ms <= local => {
                    self.jobs.remove(&channel);
                    if let Some((term, op)) = ack {
                        self.answered.insert(channel.clone(), (op, DirectiveKind::Release));
                        self.ack(session, &channel, (term, op), AckResult::Ok, scene);
                    }
                }
                Stage::Stopping { .. } => {}
                Stage::Running if scene.trouble && scene.rng.next().is_multiple_of(20_000) => {
                    scene.seen.hit(Kind::Fault, "agent_consumer_died");
                    self.jobs.remove(&channel);
                    self.ack(session, &channel, (term, op), AckResult::FailedStopped, scene);
                }
                Stage::Running => {}
            }
        }
    }

    fn started(
        &mut self,
        session: NodeRef,
        channel: &ChannelName,
        (term, op): (ChannelTerm, Op),
        scene: &mut Scene<'_>,
    ) {
        let fails = scene.trouble && scene.rng.permille(self.fails);
        let stopped = scene.rng.permille(500);
        self.answered.insert(channel.clone(), (op, DirectiveKind::Watch));
        let result = match (fails, stopped) {
            (false, _) => AckResult::Ok,
            (true, true) => AckResult::FailedStopped,
            (true, false) => AckResult::Failed,
        };
        if fails {
            scene.seen.hit(Kind::Fault, "agent_watch_failed");
        }
        if result == AckResult::FailedStopped {
            self.jobs.remove(channel);
        } else if let Some(job) = self.jobs.get_mut(channel) {
            job.stage = Stage::Running;
        }
        self.ack(session, channel, (term, op), result, scene);
    }
}
