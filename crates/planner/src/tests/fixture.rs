//! A state built by commands, with short names: nodes `n1`.., channels by their text. Every command
//! is held to what must always be true (see `apply`). Used by every test of this crate.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use state::channel::{AckResult, ChannelSpec, Phase, PhaseKind};
use state::command::{Command, NodeAck, Request};
use state::decision::{Action, Basis, Cause, Decision, Guard, Move};
use state::epoch::{ChannelTerm, Term, Timestamp};
use state::event::Event;
use state::ids::{
    Address, ChannelName, CollectionId, Incarnation, MemberId, NodeId, NodeName, Text,
};
use state::node::{NodeRef, Registration, Role};
use state::outcome::{Outcome, RefusedMove};
use state::{Context, State, level};

use crate::{Budget, Plan, View, plan};

pub(super) const TERM: Term = Term(1);
const ALL: Budget = Budget { moves_max: 10_000 };

pub(super) struct Fixture {
    pub(super) state: State,
    pub(super) now: Timestamp,
    pub(super) term: Term,
    /// Everything applied so far, with its stamp.
    pub(super) log: Vec<(Context, Request)>,
    incarnations: u32,
    /// The last term of each name, also of removed channels.
    terms: BTreeMap<ChannelName, ChannelTerm>,
}

pub(super) fn name(text: &str) -> ChannelName {
    ChannelName::new(text).unwrap()
}

/// A channel of a physical channel of its own.
pub(super) fn spec(channel: &str) -> ChannelSpec {
    ChannelSpec {
        name: name(channel),
        collection: CollectionId(1),
        pchannel: text(&format!("p-{channel}")),
        positions: vec![],
        schema_ref: text(""),
    }
}

fn text(text: &str) -> Text {
    Text::new(text).unwrap()
}

impl Fixture {
    /// A led group of the newest level without settle window.
    pub(super) fn new() -> Self {
        let mut fixture = Self {
            state: State::new(0),
            now: Timestamp(1_000),
            term: TERM,
            log: Vec::new(),
            incarnations: 0,
            terms: BTreeMap::new(),
        };
        fixture.accept(Command::LeaderStart { term: TERM, member: MemberId(1) });
        fixture.accept(Command::SetLevel { level: level::KNOWN });
        fixture.policy("settle_ms", "0");
        fixture
    }

    /// Applies a command, and demands what holds for every one: no invariant is broken, the clock
    /// stands or goes on, terms of a name only rise, what is not accepted changes nothing but the
    /// clock, and the same command a second time changes nothing at all.
    pub(super) fn apply(&mut self, command: Command) -> Outcome {
        let context = Context { term: self.term, now: self.now };
        let request = Request { actor: text("test"), retry: None, command };
        let mut before = self.state.clone();
        before
            .apply(&context, &Request { actor: text("test"), retry: None, command: Command::Tick });
        let outcome = self.state.apply(&context, &request);
        assert!(self.state.now() >= before.now(), "I-11");
        let violations = state::check(&self.state);
        assert!(violations.is_empty(), "{violations:?}");
        match &outcome {
            Outcome::Accepted(receipt) => {
                receipt.record.events.iter().for_each(|event| self.terms_rise(event));
            }
            _ => assert_same(&before, &self.state, &request.command),
        }
        let mut again = self.state.clone();
        let repeated = again.apply(&context, &request);
        assert!(!matches!(repeated, Outcome::Accepted(_)), "{} twice", request.command);
        assert_same(&self.state, &again, &request.command);
        self.log.push((context, request));
        outcome
    }

    /// I-4 over the life of a name.
    fn terms_rise(&mut self, event: &Event) {
        let (channel, term) = match event {
            Event::ChannelAdded { spec, term, .. } => (&spec.name, *term),
            Event::ChannelPlaced { channel, term, .. }
            | Event::ChannelUnassigned { channel, term, .. } => (channel, *term),
            _ => return,
        };
        let last = self.terms.insert(channel.clone(), term);
        assert!(last.is_none_or(|last| last < term), "{channel} {term} after {last:?}");
    }

    pub(super) fn accept(&mut self, command: Command) {
        let shown = format!("{command:?}");
        let outcome = self.apply(command);
        assert!(matches!(outcome, Outcome::Accepted(_)), "{shown}: {outcome:?}");
    }

    pub(super) fn policy(&mut self, setting: &str, value: &str) {
        self.policies(&[(setting, value)]);
    }

    /// Several settings at once.
    pub(super) fn policies(&mut self, values: &[(&str, &str)]) {
        let values = values.iter().map(|(setting, value)| (text(setting), text(value))).collect();
        self.apply(Command::SetPolicy { values });
    }

    pub(super) fn later(&mut self, ms: u64) {
        self.now = self.now.plus_ms(ms);
    }

    pub(super) fn register(&mut self, node: &str, role: Role) -> NodeRef {
        self.incarnations += 1;
        let registration = Registration {
            name: NodeName::new(node).unwrap(),
            address: Address::new(&format!("{node}:1")).unwrap(),
            role,
            version: text("1"),
            labels: BTreeMap::new(),
            incarnation: Incarnation::new(&format!("i{}", self.incarnations)).unwrap(),
        };
        self.accept(Command::RegisterSession(registration));
        self.node(node)
    }

    pub(super) fn node(&self, node: &str) -> NodeRef {
        self.state.node_by_name(&NodeName::new(node).unwrap()).unwrap().node_ref()
    }

    pub(super) fn announce(&mut self, channels: &[&str], pchannel: impl Fn(&str) -> String) {
        let spec =
            |channel: &&str| ChannelSpec { pchannel: text(&pchannel(channel)), ..spec(channel) };
        self.accept(Command::WatchChannels(channels.iter().map(spec).collect()));
    }

    /// Announces channels, each of a physical channel of its own.
    pub(super) fn buffer(&mut self, channels: &[&str]) {
        self.announce(channels, |channel| format!("p-{channel}"));
    }

    /// Gives a buffered channel to a node, whatever the planner would say.
    pub(super) fn place(&mut self, channel: &str, node: &str) {
        let to = self.node(node);
        let term = self.state.channel(&name(channel)).unwrap().term;
        let guard = Guard { term, phase: PhaseKind::Buffered };
        let action = Action::Assign { to };
        let chosen = Move { channel: name(channel), guard, action, cause: Cause::Unassigned };
        let basis = Basis { term: self.term, revision: self.state.revision() };
        self.accept(Command::Place(Decision { basis, moves: vec![chosen], atomic: false }));
    }

    /// The owner answers its directive.
    pub(super) fn ack(&mut self, channel: &str, result: AckResult) {
        let record = self.state.channel(&name(channel)).unwrap();
        let ack = NodeAck {
            node: record.phase.owner().unwrap(),
            channel: name(channel),
            term: record.term,
            op: record.phase.op().unwrap(),
            result,
            reason: text("said so"),
        };
        self.accept(Command::NodeAck(ack));
    }

    /// New channels that this node watches.
    pub(super) fn watched(&mut self, node: &str, channels: &[&str]) {
        if channels.is_empty() {
            return;
        }
        self.buffer(channels);
        for channel in channels {
            self.place(channel, node);
            self.ack(channel, AckResult::Ok);
        }
    }

    pub(super) fn release(&mut self, channel: &str) {
        let term = self.state.channel(&name(channel)).unwrap().term;
        self.accept(Command::Release { channel: name(channel), term });
    }

    pub(super) fn plan(&self) -> Plan {
        plan(&View { state: &self.state, term: self.term, now: self.now }, &ALL)
    }

    pub(super) fn plan_at_most(&self, moves_max: usize) -> Plan {
        let view = View { state: &self.state, term: self.term, now: self.now };
        plan(&view, &Budget { moves_max })
    }

    /// Proposes a plan; what apply refused of it.
    pub(super) fn carry_out(&mut self, plan: &Plan) -> Vec<RefusedMove> {
        let Some(decision) = plan.decision.clone() else { return Vec::new() };
        match self.apply(Command::Place(decision)) {
            Outcome::Accepted(receipt) => receipt.refused,
            other => panic!("{other:?}"),
        }
    }

    /// The moves in name order, as `p->2 q->3 x:1->2`.
    pub(super) fn shown(&self) -> String {
        show(&self.plan())
    }

    /// Every owner answers; true when any had something to answer.
    pub(super) fn answer_all(&mut self) -> bool {
        let waiting: Vec<String> = self
            .state
            .channels()
            .filter(|c| matches!(c.phase, Phase::ToWatch { .. } | Phase::ToRelease { .. }))
            .map(|channel| channel.spec.name.to_string())
            .collect();
        for channel in &waiting {
            self.ack(channel, AckResult::Ok);
        }
        !waiting.is_empty()
    }

    /// Channels of a node in ToWatch and Watched.
    pub(super) fn load(&self, node: NodeId) -> u32 {
        let counts = self.state.counts_of(node);
        counts.to_watch + counts.watched
    }
}

fn assert_same(before: &State, after: &State, command: &Command) {
    assert_eq!(before.digest(), after.digest(), "{command}");
    assert_eq!(before.witness(), after.witness(), "{command}");
}

pub(super) fn show(plan: &Plan) -> String {
    let mut moves: Vec<&Move> = crate::moves(plan).iter().collect();
    moves.sort_by(|a, b| a.channel.cmp(&b.channel));
    let one = |chosen: &&Move| match chosen.action {
        Action::Assign { to } => format!("{}->{}", chosen.channel, to.node.0),
        Action::Move { from, to } => {
            format!("{}:{}->{}", chosen.channel, from.node.0, to.node.0)
        }
        Action::Release { from } => format!("{}:{}->", chosen.channel, from.node.0),
    };
    moves.iter().map(one).collect::<Vec<_>>().join(" ")
}
