//! One command and one event of each kind, with values that show every field in the bytes.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::build::{channel, registration, spec, text, worker};
use crate::channel::{
    AckResult, FormerOwner, LastDone, PhaseKind, PlacedBy, ReleaseCause, UnassignCause,
};
use crate::command::{Command, NodeAck, OwnerClaim};
use crate::decision::{Action, Basis, Cause, Decision, Guard, Move};
use crate::epoch::{ChannelTerm, NodeEpoch, Op, Revision, Term, Timestamp};
use crate::event::Event;
use crate::ids::{MemberId, NodeId, RequestId};
use crate::node::{DownCause, NodeRef, Registration};
use crate::policy::Policy;

const NODE: NodeRef = NodeRef { node: NodeId(7), epoch: NodeEpoch(300) };
const OTHER: NodeRef = NodeRef { node: NodeId(8), epoch: NodeEpoch(0x0002_0000_0000_0005) };
const TERM: ChannelTerm = ChannelTerm(70_000);
const OP: Op = Op(70_001);
const CLAIM: OwnerClaim = OwnerClaim { node: NODE, term: TERM };
const FORMER: FormerOwner = FormerOwner { node: NODE, term: TERM };
const DONE: LastDone = LastDone { node: NODE, term: TERM, op: OP, result: AckResult::Conflict };

fn labelled() -> Registration {
    let mut registration = registration("worker");
    registration.labels = BTreeMap::from([(text("zone"), text("a")), (text("rack"), text(""))]);
    registration
}

fn decision() -> Decision {
    let one = |action, cause, phase| Move {
        channel: channel("c"),
        guard: Guard { term: TERM, phase },
        action,
        cause,
    };
    Decision {
        basis: Basis { term: Term(3), revision: Revision(299) },
        moves: Vec::from([
            one(Action::Assign { to: NODE }, Cause::Unassigned, PhaseKind::Buffered),
            one(Action::Move { from: NODE, to: OTHER }, Cause::Balance, PhaseKind::Watched),
            one(Action::Release { from: NODE }, Cause::Drain, PhaseKind::Watched),
        ]),
        atomic: true,
    }
}

/// In the order of the variants.
pub(super) fn commands() -> Vec<Command> {
    let c = || channel("c");
    Vec::from([
        Command::LeaderStart { term: Term(3), member: MemberId(2) },
        Command::RegisterSession(labelled()),
        Command::SessionsObserved {
            leader_term: Term(3),
            seq: 9,
            silent: Vec::from([(NODE, 4000)]),
            renewed: Vec::from([OTHER]),
        },
        Command::SetStopping { node: NODE },
        Command::UnsetStopping { node: NODE },
        Command::Revoke { node: NODE },
        Command::ExpireSession { node: NODE, leader_term: Term(3) },
        Command::WatchChannels(Vec::from([spec("c"), spec("d")])),
        Command::MarkDropped { channel: c(), claim: Some(CLAIM) },
        Command::RemoveChannel { channel: c() },
        Command::Release { channel: c(), term: TERM },
        Command::NodeAck(NodeAck {
            node: NODE,
            channel: c(),
            term: TERM,
            op: OP,
            result: AckResult::FailedStopped,
            reason: text("disk full"),
        }),
        Command::OpTimeout { channel: c(), term: TERM, op: OP },
        Command::ExtendDeadline { channel: c(), term: TERM, op: OP, progress: 17 },
        Command::CommitMeta { channel: c(), claim: CLAIM, positions: Vec::from([0, 255, 128]) },
        Command::EffectDone { channel: c(), former: CLAIM },
        Command::Place(decision()),
        Command::Freeze { name: worker("worker") },
        Command::Thaw { name: worker("worker") },
        Command::SetPolicy { values: BTreeMap::from([(text("ttl_ms"), text("5000"))]) },
        Command::SetLevel { level: 2 },
        Command::Tick,
        Command::RegisterCleaner { name: worker("cleaner") },
        Command::DeregisterCleaner { name: worker("cleaner") },
    ])
}

/// Place of the variant. A new variant does not compile until it stands here, at the end.
pub(super) const fn command_place(command: &Command) -> u8 {
    match command {
        Command::LeaderStart { .. } => 0,
        Command::RegisterSession(_) => 1,
        Command::SessionsObserved { .. } => 2,
        Command::SetStopping { .. } => 3,
        Command::UnsetStopping { .. } => 4,
        Command::Revoke { .. } => 5,
        Command::ExpireSession { .. } => 6,
        Command::WatchChannels(_) => 7,
        Command::MarkDropped { .. } => 8,
        Command::RemoveChannel { .. } => 9,
        Command::Release { .. } => 10,
        Command::NodeAck(_) => 11,
        Command::OpTimeout { .. } => 12,
        Command::ExtendDeadline { .. } => 13,
        Command::CommitMeta { .. } => 14,
        Command::EffectDone { .. } => 15,
        Command::Place(_) => 16,
        Command::Freeze { .. } => 17,
        Command::Thaw { .. } => 18,
        Command::SetPolicy { .. } => 19,
        Command::SetLevel { .. } => 20,
        Command::Tick => 21,
        Command::RegisterCleaner { .. } => 22,
        Command::DeregisterCleaner { .. } => 23,
    }
}

/// In the order of the variants.
pub(super) fn events() -> Vec<Event> {
    let mut events = session_events();
    events.extend(channel_events());
    let c = || channel("c");
    events.extend([
        Event::FormerOwnerCleared { channel: c(), former: FORMER },
        Event::MetaCommitted { channel: c(), term: TERM, positions: Vec::from([1, 2]) },
        Event::PolicyChanged { policy: Policy::of_level_1() },
        Event::LevelRaised { level: 2 },
        Event::RequestRemembered { request_id: RequestId([9; 16]), issued_at: Timestamp(1_000) },
        Event::CooldownCleared { channel: c(), node: NODE.node },
    ]);
    events.extend(events_of_level_2());
    events
}

/// In a golden file of their own: the one of level 1 never changes.
pub(super) fn events_of_level_2() -> Vec<Event> {
    Vec::from([
        Event::ChoiceChanged { setting: text("channel_balance_policy"), value: text("none") },
        Event::CleanerRegistered { name: worker("cleaner") },
        Event::CleanerDeregistered { name: worker("cleaner") },
    ])
}

fn session_events() -> Vec<Event> {
    let name = || worker("worker");
    Vec::from([
        Event::LeaderStarted { term: Term(3), member: MemberId(2) },
        Event::NodeCameUp { node: NODE, registration: labelled() },
        Event::NodeBeganStopping { node: NODE },
        Event::NodeStoppedStopping { node: NODE },
        Event::NodeWentDown { node: NODE, cause: DownCause::Replaced },
        Event::NodeForgotten { node: NODE },
        Event::SessionSilenceChanged { node: NODE, silent_ms: 4000 },
        Event::SilenceReported { seq: 9 },
        Event::NodeFroze { name: name() },
        Event::NodeThawed { name: name() },
    ])
}

fn channel_events() -> Vec<Event> {
    let c = || channel("c");
    let former_owners = || Vec::from([FORMER]);
    let placed_by = PlacedBy { revision: Revision(5), basis: Revision(4), cause: Cause::Planned };
    Vec::from([
        Event::ChannelAdded {
            spec: Arc::new(spec("c")),
            term: TERM,
            former_owners: former_owners(),
        },
        Event::ChannelPlaced { channel: c(), to: NODE, term: TERM, op: OP, placed_by },
        Event::WatchCompleted { channel: c(), done: DONE },
        Event::WatchDeadlineExtended { channel: c(), progress: 17 },
        Event::WatchFailed {
            channel: c(),
            node: NODE,
            attempts: 2,
            cooldown_until: Timestamp(2_000),
            reason: text("disk full"),
            done: Some(DONE),
        },
        Event::ReleaseStarted {
            channel: c(),
            op: OP,
            cause: ReleaseCause::Drain,
            planned: Some(OTHER),
            done: None,
        },
        Event::ChannelUnassigned {
            channel: c(),
            from: NODE,
            term: TERM,
            cause: UnassignCause::ReleaseTimeout,
            former: true,
            planned: Some(OTHER),
            cooldown_until: Some(Timestamp(60_000)),
            done: None,
        },
        Event::ChannelMarkedDropped { channel: c() },
        Event::ChannelRemoved { channel: c(), last_term: TERM, former_owners: former_owners() },
    ])
}

/// As [`command_place`].
pub(super) const fn event_place(event: &Event) -> u8 {
    match event {
        Event::LeaderStarted { .. } => 0,
        Event::NodeCameUp { .. } => 1,
        Event::NodeBeganStopping { .. } => 2,
        Event::NodeStoppedStopping { .. } => 3,
        Event::NodeWentDown { .. } => 4,
        Event::NodeForgotten { .. } => 5,
        Event::SessionSilenceChanged { .. } => 6,
        Event::SilenceReported { .. } => 7,
        Event::NodeFroze { .. } => 8,
        Event::NodeThawed { .. } => 9,
        Event::ChannelAdded { .. } => 10,
        Event::ChannelPlaced { .. } => 11,
        Event::WatchCompleted { .. } => 12,
        Event::WatchDeadlineExtended { .. } => 13,
        Event::WatchFailed { .. } => 14,
        Event::ReleaseStarted { .. } => 15,
        Event::ChannelUnassigned { .. } => 16,
        Event::ChannelMarkedDropped { .. } => 17,
        Event::ChannelRemoved { .. } => 18,
        Event::FormerOwnerCleared { .. } => 19,
        Event::MetaCommitted { .. } => 20,
        Event::PolicyChanged { .. } => 21,
        Event::LevelRaised { .. } => 22,
        Event::RequestRemembered { .. } => 23,
        Event::CooldownCleared { .. } => 24,
        Event::ChoiceChanged { .. } => 25,
        Event::CleanerRegistered { .. } => 26,
        Event::CleanerDeregistered { .. } => 27,
    }
}
