//! Counts which transition of 18.5 or which fence a command met. Judges nothing.

use state::State;
use state::channel::{AckResult, Phase, PhaseKind, ReleaseCause, UnassignCause};
use state::command::{Command, Request};
use state::decision::Cause;
use state::event::Event;
use state::ids::Text;
use state::node::DownCause;
use state::outcome::{Facts, Outcome, Refusal, Rejection};

use super::coverage::{Coverage, Kind};

pub(super) fn count(before: &State, request: &Request, outcome: &Outcome, seen: &mut Coverage) {
    match outcome {
        Outcome::Accepted(receipt) => {
            for refused in &receipt.refused {
                refusal(refused.refusal, seen);
            }
            for event in &receipt.record.events {
                if let Some(case) = transition(before, &request.command, event) {
                    seen.hit(Kind::Transition, case);
                }
                if let Event::ReleaseStarted { cause, .. } = event
                    && request.actor == Text::cut("planner")
                {
                    seen.hit(Kind::Transition, moved(*cause));
                }
            }
        }
        Outcome::NoChange(Facts::AllRefused(refused)) => {
            refused.iter().for_each(|refused| self::refusal(refused.refusal, seen));
        }
        Outcome::NoChange(Facts::Repeated(_)) => {
            seen.hit(Kind::Refusal, "ruling 12 request repeated");
        }
        Outcome::NoChange(_) => seen.hit(Kind::Note, "no change"),
        Outcome::Rejected(rejection) => rejected(before, request, rejection, seen),
    }
}

fn refusal(refusal: Refusal, seen: &mut Coverage) {
    match refusal {
        Refusal::AssignmentChanged => seen.hit(Kind::Refusal, "F3 assignment changed"),
        Refusal::NodeChanged => seen.hit(Kind::Refusal, "F4 node changed"),
        Refusal::Gone => seen.hit(Kind::Refusal, "F5 gone"),
        Refusal::Capacity => seen.hit(Kind::Refusal, "F6 capacity"),
        Refusal::CoolingDown => seen.hit(Kind::Refusal, "F6 cooling down"),
        Refusal::Dropping | Refusal::Atomic => seen.hit(Kind::Note, "other refusal"),
    }
}

fn rejected(before: &State, request: &Request, rejection: &Rejection, seen: &mut Coverage) {
    match (rejection, &request.command) {
        (Rejection::StaleTerm { .. }, _) => seen.hit(Kind::Refusal, "F1 stale term"),
        (Rejection::FutureBasis { .. }, _) => seen.hit(Kind::Refusal, "F2 future basis"),
        (Rejection::StaleNode { .. }, _) => seen.hit(Kind::Refusal, "F7 stale node"),
        (Rejection::NotOwner { .. }, _) => {
            seen.hit(Kind::Refusal, "R-7 commit of a former owner");
        }
        (Rejection::Stale { channel, .. }, Command::NodeAck(_)) => {
            seen.hit(Kind::Refusal, "F8 stale ack");
            if phase(before, channel) == Some(PhaseKind::Watched) {
                seen.hit(Kind::Transition, "watched: older -> stale");
            }
        }
        (Rejection::NotSilent { .. }, _) => seen.hit(Kind::Note, "expiry too early"),
        (Rejection::NotDue { .. }, _) => seen.hit(Kind::Note, "timeout too early"),
        _ => seen.hit(Kind::Note, "other rejection"),
    }
}

fn phase(state: &State, channel: &state::ids::ChannelName) -> Option<PhaseKind> {
    state.channel(channel).map(|channel| channel.phase.kind())
}

fn transition(before: &State, command: &Command, event: &Event) -> Option<&'static str> {
    match event {
        Event::WatchCompleted { .. } => Some("to_watch: ok -> watched"),
        Event::WatchDeadlineExtended { .. } => Some("to_watch: progress -> deadline moved"),
        Event::FormerOwnerCleared { .. } => Some("any: former owner cleared"),
        Event::CooldownCleared { .. } => Some("any: cool-down of a node that left removed"),
        Event::NodeWentDown { cause: DownCause::Expired, .. } => Some("any: session expired"),
        Event::NodeWentDown { cause: DownCause::Replaced, .. } => Some("any: session replaced"),
        Event::NodeWentDown { cause: DownCause::Revoked, .. } => Some("any: session revoked"),
        Event::ChannelPlaced { placed_by, .. } if placed_by.cause == Cause::GivenBack => {
            Some("buffered: given back")
        }
        Event::ReleaseStarted { channel, .. } => match command {
            Command::NodeAck(ack) if ack.result == AckResult::Conflict => {
                Some("to_watch: conflict -> to_release")
            }
            Command::NodeAck(_) if phase(before, channel) == Some(PhaseKind::ToWatch) => {
                Some("to_watch: failed -> to_release")
            }
            Command::OpTimeout { .. } => Some("to_watch: timeout -> to_release"),
            _ => None,
        },
        Event::ChannelUnassigned { channel, cause, .. } => {
            Some(unassigned(phase(before, channel)?, *cause))
        }
        Event::PolicyChanged { .. } => Some("any: settings changed"),
        Event::ChoiceChanged { .. } => Some("any: policy chosen"),
        Event::LevelRaised { .. } => Some("any: level raised"),
        Event::CleanerRegistered { .. } => Some("any: cleaner registered"),
        Event::ChannelRemoved { channel, .. } => removed(before.channel(channel)?, command),
        _ => None,
    }
}

const fn unassigned(before: PhaseKind, cause: UnassignCause) -> &'static str {
    match (cause, before) {
        (UnassignCause::Stopped, PhaseKind::Watched) => "watched: failed stopped -> buffered",
        (UnassignCause::Stopped, _) => "to_watch: failed stopped -> buffered",
        (UnassignCause::Released, _) => "to_release: ok -> buffered",
        (UnassignCause::ReleaseFailed, _) => "to_release: failed -> buffered, former",
        (UnassignCause::ReleaseTimeout, _) => "to_release: timeout -> buffered, former",
        (UnassignCause::NodeDown, PhaseKind::ToWatch) => "to_watch: node left -> buffered",
        (UnassignCause::NodeDown, PhaseKind::Watched) => "watched: node left -> buffered",
        (UnassignCause::NodeDown, _) => "to_release: node left -> buffered",
    }
}

const fn moved(cause: ReleaseCause) -> &'static str {
    match cause {
        ReleaseCause::Drain => "any: node stopping, planner releases",
        _ => "any: load uneven, planner releases",
    }
}

fn removed(before: &state::channel::Channel, command: &Command) -> Option<&'static str> {
    if !matches!(before.phase, Phase::ToRelease { dropping: true, .. }) {
        return None;
    }
    match command {
        Command::NodeAck(ack) if ack.result == AckResult::Ok => {
            Some("to_release dropping: ok -> removed")
        }
        Command::NodeAck(_) => Some("to_release dropping: failed -> removed"),
        Command::OpTimeout { .. } => Some("to_release dropping: timeout -> removed"),
        Command::ExpireSession { .. } | Command::Revoke { .. } | Command::RegisterSession(_) => {
            Some("to_release dropping: node left -> removed")
        }
        _ => None,
    }
}
