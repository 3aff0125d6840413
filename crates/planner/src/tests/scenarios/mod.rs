//! The acceptance scenarios (A-01..) that need the state and the planner only, each function named
//! after its scenario; docs/scenarios.md says where every one is. Here: what they share, in the
//! words of the scenarios.

mod bad_input;
mod balance;
mod drop;
mod effect;
mod field;
mod late;
mod leaders;
mod life;
mod nodes;
mod table;

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use alloc::{format, vec};

use state::channel::{AckResult, Channel, PhaseKind};
use state::command::{Command, NodeAck, OwnerClaim};
use state::epoch::{ChannelTerm, Op, Term};
use state::event::Event;
use state::ids::{MemberId, Text};
use state::node::{NodeRef, Role};
use state::outcome::Outcome;
use state::{Directive, DirectiveKind, State, directives_for, snapshot};

use super::fixture::{Fixture, name, show, spec};

/// These data nodes, all Up: D1 is node 1 when it is the first name.
fn with_nodes(nodes: &[&str]) -> Fixture {
    let mut world = Fixture::new();
    for node in nodes {
        world.register(node, Role::Data);
    }
    world
}

/// The scenarios of one channel begin with `c` at D1, told to watch.
fn to_watch(nodes: &[&str]) -> Fixture {
    let mut world = with_nodes(nodes);
    world.buffer(&["c"]);
    world.place("c", "D1");
    world
}

/// `c@D1/W`.
fn watched(nodes: &[&str]) -> Fixture {
    let mut world = to_watch(nodes);
    world.ack("c", AckResult::Ok);
    world
}

/// `c@D1/TR`, as an operator asked.
fn to_release(nodes: &[&str]) -> Fixture {
    let mut world = watched(nodes);
    world.release("c");
    world
}

/// What a node said of one directive, to be said again later.
fn said(node: NodeRef, channel: &str, at: (ChannelTerm, Op), result: AckResult) -> Command {
    let (term, op) = at;
    let reason = Text::new("said so").unwrap();
    Command::NodeAck(NodeAck { node, channel: name(channel), term, op, result, reason })
}

fn commits(channel: &str, claim: OwnerClaim, positions: &[u8]) -> Command {
    Command::CommitMeta { channel: name(channel), claim, positions: positions.to_vec() }
}

impl Fixture {
    fn channel(&self, channel: &str) -> Arc<Channel> {
        Arc::clone(self.state.channel(&name(channel)).unwrap())
    }

    /// `Buffered`, or owner and phase: `D1 ToWatch`.
    fn at(&self, channel: &str) -> String {
        let Some(record) = self.state.channel(&name(channel)) else {
            return String::from("unknown");
        };
        let phase = record.phase.kind();
        let owner = record.phase.owner().and_then(|owner| self.state.node(owner.node));
        owner.map_or_else(
            || phase.to_string(),
            |owner| format!("{} {phase}", owner.registration.name),
        )
    }

    fn term(&self, channel: &str) -> ChannelTerm {
        self.channel(channel).term
    }

    /// The term and the directive in force.
    fn in_force(&self, channel: &str) -> (ChannelTerm, Op) {
        let channel = self.channel(channel);
        (channel.term, channel.phase.op().unwrap())
    }

    /// What the owner says it is.
    fn claim(&self, channel: &str) -> OwnerClaim {
        let channel = self.channel(channel);
        OwnerClaim { node: channel.phase.owner().unwrap(), term: channel.term }
    }

    fn events(&mut self, command: Command) -> Vec<Event> {
        match self.apply(command) {
            Outcome::Accepted(receipt) => receipt.record.events.clone(),
            other => panic!("{other}"),
        }
    }

    fn rejects(&mut self, command: Command, reason: &str) {
        match self.apply(command) {
            Outcome::Rejected(rejection) => assert_eq!(rejection.reason(), reason, "{rejection}"),
            other => panic!("{other}"),
        }
    }

    fn no_change(&mut self, command: Command) {
        let outcome = self.apply(command);
        assert!(matches!(outcome, Outcome::NoChange(_)), "{outcome}");
    }

    fn directives(&self, node: &str) -> Vec<Directive> {
        directives_for(&self.state, self.node(node).node)
    }

    /// The desired set of a node: `c watch t5 op5`.
    fn desired(&self, node: &str) -> Vec<String> {
        let show = |directive: &Directive| {
            let kind = match directive.kind {
                DirectiveKind::Watch => "watch",
                DirectiveKind::Release => "release",
            };
            format!("{} {kind} {} {}", directive.channel, directive.term, directive.op)
        };
        self.directives(node).iter().map(show).collect()
    }

    /// One round of the planner: what it chose, and apply took all of it.
    fn plan_and_apply(&mut self) -> String {
        let plan = self.plan();
        assert_eq!(self.carry_out(&plan), vec![]);
        show(&plan)
    }

    /// Rounds of planning and answering until nothing is left; the moves that were made.
    fn settle(&mut self) -> usize {
        let mut moves = 0;
        for _ in 0..1_000 {
            let plan = self.plan();
            moves += crate::moves(&plan).len();
            let idle = plan.decision.is_none();
            assert_eq!(self.carry_out(&plan), vec![]);
            if !self.answer_all() && idle {
                return moves;
            }
        }
        panic!("does not come to rest");
    }

    /// Another leader takes over.
    fn lead(&mut self, term: u64) {
        self.term = Term(term);
        self.accept(Command::LeaderStart { term: Term(term), member: MemberId(2) });
    }

    /// The node is silent for ttl and grace, and expires.
    fn expire(&mut self, node: NodeRef) -> Vec<Event> {
        let session = self.state.live(node).unwrap();
        let added_ms = self.state.expires_after_ms(session) - session.silent_ms;
        let (leader_term, seq) = (self.term, self.state.leader().observed_seq + 1);
        self.later(added_ms);
        let silent = vec![(node, added_ms)];
        self.accept(Command::SessionsObserved { leader_term, seq, silent, renewed: vec![] });
        self.events(Command::ExpireSession { node, leader_term })
    }

    /// Everything applied so far, applied again from nothing.
    fn replayed(&self) -> State {
        let mut state = State::new(0);
        for (context, request) in &self.log {
            state.apply(context, request);
        }
        state
    }

    /// The state as it comes out of a snapshot.
    fn restored(&self) -> State {
        let mut sections: Vec<(u16, Vec<u8>)> = Vec::new();
        let mut keep = |kind: u16, bytes: &[u8]| {
            sections.push((kind, bytes.to_vec()));
            Ok::<(), snapshot::DigestMismatch>(())
        };
        snapshot::write(&self.state, &mut keep).unwrap();
        let mut restore = snapshot::Restore::new();
        for (kind, bytes) in &sections {
            restore.section(*kind, bytes).unwrap();
        }
        restore.finish().unwrap()
    }

    fn timeout(&self, channel: &str) -> Command {
        let (term, op) = self.in_force(channel);
        Command::OpTimeout { channel: name(channel), term, op }
    }

    fn drop_command(&self, channel: &str, claim: Option<OwnerClaim>) -> Command {
        Command::MarkDropped { channel: name(channel), claim }
    }
}

/// What holds of a channel that nobody owns.
fn assert_buffered(world: &Fixture, channel: &str, after: ChannelTerm) {
    let record = world.channel(channel);
    assert_eq!(record.phase.kind(), PhaseKind::Buffered);
    assert!(record.term > after, "{} is not above {after}", record.term);
    assert_eq!(world.state.deadline(&record), None);
}
