//! What a random run has reached: transitions of acknowledgements, timeouts and leaving; refusals;
//! rejections. A run that proves little must fail.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use std::println;

use crate::channel::{Phase, UnassignCause};
use crate::command::Command;
use crate::event::Event;
use crate::ids::ChannelName;
use crate::outcome::{Facts, Outcome, RefusedMove};
use crate::state::State;

/// How often each thing happened, by name.
#[derive(Debug, Default)]
pub(crate) struct Coverage(BTreeMap<String, u64>);

impl Coverage {
    fn count(&mut self, name: String) {
        *self.0.entry(name).or_default() += 1;
    }

    /// Counts what this command did, seen from the state before and the state after.
    pub(crate) fn see(
        &mut self,
        before: &State,
        command: &Command,
        outcome: &Outcome,
        after: &State,
    ) {
        match outcome {
            Outcome::Accepted(receipt) => {
                self.transition(before, command, after);
                let events = &receipt.record.events;
                let leaves = events.iter().any(|event| matches!(event, Event::NodeWentDown { .. }));
                for event in events {
                    self.count(event.kind().to_string());
                    if leaves {
                        self.leaving(before, event);
                    }
                }
                self.refusals(&receipt.refused);
            }
            Outcome::NoChange(Facts::AllRefused(refused)) => self.refusals(refused),
            Outcome::NoChange(Facts::Session(_)) => self.count("same session".to_string()),
            Outcome::NoChange(Facts::Repeated(_)) => self.count("repeated request".to_string()),
            Outcome::NoChange(Facts::Already) => {
                if matches!(command, Command::NodeAck(_)) {
                    self.count("repeated acknowledgement".to_string());
                }
            }
            Outcome::Rejected(rejection) => {
                self.count(rejection.reason().to_string());
                if let Command::NodeAck(ack) = command
                    && let Some(channel) = before.channel(&ack.channel)
                    && rejection.reason() == "STALE"
                {
                    self.count(format!("{} stale", channel.phase.kind()));
                }
            }
        }
    }

    fn transition(&mut self, before: &State, command: &Command, after: &State) {
        let (name, input) = match command {
            Command::NodeAck(ack) => (&ack.channel, ack.result.word()),
            Command::OpTimeout { channel, .. } => (channel, "timeout"),
            Command::SetStopping { node } => {
                if before.channels_of(node.node).count() > 0 {
                    self.count("an owner began to stop".to_string());
                }
                return;
            }
            _ => return,
        };
        self.count(format!("{} {input} {}", phase(before, name), phase(after, name)));
    }

    fn leaving(&mut self, before: &State, event: &Event) {
        match event {
            Event::ChannelUnassigned { channel, cause: UnassignCause::NodeDown, .. } => {
                self.count(format!("{} left Buffered", phase(before, channel)));
            }
            Event::ChannelRemoved { channel, .. } => {
                self.count(format!("{} left gone", phase(before, channel)));
            }
            _ => {}
        }
    }

    fn refusals(&mut self, refused: &[RefusedMove]) {
        for refused in refused {
            self.count(refused.refusal.to_string());
        }
    }

    /// Prints everything, and fails if any of these never happened.
    pub(crate) fn require(&self, names: &[&str]) {
        println!("reached: {:?}", self.0);
        let missing: Vec<_> = names.iter().filter(|name| !self.0.contains_key(**name)).collect();
        assert!(missing.is_empty(), "the run did not reach {missing:?}");
    }
}

fn phase(state: &State, name: &ChannelName) -> String {
    match state.channel(name) {
        None => "gone".to_string(),
        Some(channel) => match channel.phase {
            Phase::ToRelease { dropping: true, .. } => "Dropping".to_string(),
            _ => channel.phase.kind().to_string(),
        },
    }
}

/// Every line of the table of acknowledgements, timeouts and leaving, and every fence.
pub(crate) const OF_SENSIBLE: [&str; 65] = [
    "ToWatch ok Watched",
    "ToWatch failed_stopped Buffered",
    "ToWatch failed ToRelease",
    "ToWatch timeout ToRelease",
    "ToWatch conflict ToRelease",
    "Watched failed_stopped Buffered",
    "Watched failed ToRelease",
    "Watched conflict ToRelease",
    "Watched stale",
    "ToWatch stale",
    "ToRelease stale",
    "Buffered stale",
    "ToRelease ok Buffered",
    "ToRelease failed Buffered",
    "ToRelease failed_stopped Buffered",
    "ToRelease conflict Buffered",
    "ToRelease timeout Buffered",
    "Dropping ok gone",
    "Dropping failed gone",
    "Dropping timeout gone",
    "ToWatch left Buffered",
    "Watched left Buffered",
    "ToRelease left Buffered",
    "Dropping left gone",
    "CooldownCleared",
    "an owner began to stop",
    "repeated acknowledgement",
    "repeated request",
    "same session",
    "NodeForgotten",
    "MetaCommitted",
    "WatchDeadlineExtended",
    "FormerOwnerCleared",
    "AssignmentChanged",
    "NodeChanged",
    "Gone",
    "Capacity",
    "CoolingDown",
    "Dropping",
    "Atomic",
    "STALE_TERM",
    "FUTURE_BASIS",
    "STALE_NODE",
    "STALE",
    "UNKNOWN_CHANNEL",
    "UNKNOWN_NAME",
    "DROPPED",
    "CONFLICT",
    "CHANNEL_DROPPING",
    "NOT_OWNER",
    "NOT_OWNED",
    "TERM_CHANGED",
    "NOT_DUE",
    "NOT_SILENT",
    "NOT_FORMER_OWNER",
    "LIMIT",
    "INVALID",
    "LEVEL",
    "REQUEST_TOO_OLD",
    "RequestRemembered",
    "ChoiceChanged",
    "CleanerRegistered",
    "CleanerDeregistered",
    "LEVEL_TOO_LOW",
    "UNKNOWN_CLEANER",
];

/// What hostile commands alone reach.
pub(crate) const OF_HOSTILE: [&str; 14] = [
    "LeaderStarted",
    "NodeCameUp",
    "ChannelAdded",
    "ChannelRemoved",
    "AssignmentChanged",
    "STALE_TERM",
    "FUTURE_BASIS",
    "STALE_NODE",
    "STALE",
    "UNKNOWN_CHANNEL",
    "DROPPED",
    "NOT_OWNER",
    "LIMIT",
    "INVALID",
];
