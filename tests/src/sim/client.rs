//! An operator who announces, drops, releases, drains and freezes, and remembers what it was told.
//! It follows the leader and repeats what it got no answer to.

use std::collections::BTreeMap;

use state::State;
use state::channel::ChannelSpec;
use state::command::Command;
use state::ids::{ChannelName, CollectionId, Text};
use state::node::{NodeRef, NodeStatus};

use super::net::Message;
use super::oracle::Oracle;
use super::rng::Rng;
use super::world::{MARGIN_MS, TTL_MS};

const NAMES: u64 = 24;
/// Without an answer for this long, the next member is asked.
const PATIENCE_MS: u64 = 900;
const TRIES_MAX: u32 = 12;

#[derive(Debug)]
struct Asked {
    id: u64,
    command: Command,
    sent_ms: u64,
    tries: u32,
}

#[derive(Debug)]
pub(super) struct Client {
    member: usize,
    asked: Option<Asked>,
    ids: u64,
    rest_until: u64,
    configured: bool,
}

impl Client {
    pub(super) const fn new() -> Self {
        Self { member: 0, asked: None, ids: 0, rest_until: 0, configured: false }
    }

    pub(super) const fn idle(&self) -> bool {
        self.asked.is_none()
    }

    /// What it sends in this step. In calm times it only undoes what keeps nodes out of service.
    pub(super) fn step(
        &mut self,
        now: u64,
        state: &State,
        calm: bool,
        rng: &mut Rng,
    ) -> Option<(usize, Message)> {
        if let Some(asked) = &mut self.asked {
            if now < asked.sent_ms + PATIENCE_MS {
                return None;
            }
            asked.tries += 1;
            asked.sent_ms = now;
            self.member = (self.member + 1) % 3;
            if asked.tries <= TRIES_MAX || calm {
                let message = Message::Request { id: asked.id, command: asked.command.clone() };
                return Some((self.member, message));
            }
            self.asked = None;
        }
        if now < self.rest_until {
            return None;
        }
        let command = if !self.configured {
            policy()
        } else if calm {
            restore_service(state)?
        } else {
            choose(state, rng)?
        };
        self.ids += 1;
        self.asked = Some(Asked { id: self.ids, command: command.clone(), sent_ms: now, tries: 0 });
        self.rest_until = now + rng.between(20, 400);
        Some((self.member, Message::Request { id: self.ids, command }))
    }

    /// Takes an answer; an order it was refused or granted is remembered by the oracle.
    pub(super) fn receive(&mut self, message: Message, now: u64, oracle: &mut Oracle) {
        match message {
            Message::Reply { id, index, outcome } => {
                if let Some(asked) = self.asked.take_if(|asked| asked.id == id) {
                    self.configured = true;
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

/// Settings with short times, so that everything happens within seconds.
fn policy() -> Command {
    let settings = [
        ("ttl_ms", TTL_MS),
        ("expiry_grace_ms", 1_000),
        ("margin_ms", MARGIN_MS),
        ("leader_grace_ms", 1_000),
        ("watch_timeout_ms", 2_500),
        ("release_timeout_ms", 1_500),
        ("cooldown_base_ms", 200),
        ("cooldown_max_ms", 2_000),
        ("settle_ms", 300),
        ("balance_moves_max", 3),
    ];
    let entry = |(name, value): (&str, u64)| (Text::cut(name), Text::cut(&value.to_string()));
    Command::SetPolicy { values: settings.into_iter().map(entry).collect::<BTreeMap<_, _>>() }
}

fn sessions(state: &State, status: NodeStatus) -> Vec<NodeRef> {
    state.nodes().filter(|node| node.status == status).map(|node| node.node_ref()).collect()
}

fn restore_service(state: &State) -> Option<Command> {
    if let Some(name) = state.frozen_names().next() {
        return Some(Command::Thaw { name: name.clone() });
    }
    let stopping = sessions(state, NodeStatus::Stopping);
    stopping.first().map(|node| Command::UnsetStopping { node: *node })
}

fn choose(state: &State, rng: &mut Rng) -> Option<Command> {
    let channels: Vec<_> = state.channels().collect();
    let channel = rng.pick(&channels).map(|channel| (channel.spec.name.clone(), channel.term));
    match rng.between(0, 99) {
        0..=29 => Some(announce(rng)),
        30..=39 => channel.map(|(channel, _)| Command::MarkDropped { channel, claim: None }),
        40..=45 => channel.map(|(channel, _)| Command::RemoveChannel { channel }),
        46..=69 => channel.map(|(channel, term)| Command::Release { channel, term }),
        70..=74 => {
            let nodes: Vec<_> = state.nodes().collect();
            let name = rng.pick(&nodes)?.registration.name.clone();
            Some(Command::Freeze { name })
        }
        75..=82 => state.frozen_names().next().map(|name| Command::Thaw { name: name.clone() }),
        83..=87 => {
            let node = *rng.pick(&sessions(state, NodeStatus::Up))?;
            Some(Command::SetStopping { node })
        }
        88..=95 => {
            let node = *rng.pick(&sessions(state, NodeStatus::Stopping))?;
            Some(Command::UnsetStopping { node })
        }
        96..=97 => {
            let node = *rng.pick(&sessions(state, NodeStatus::Up))?;
            Some(Command::Revoke { node })
        }
        _ => None,
    }
}

fn announce(rng: &mut Rng) -> Command {
    let first = rng.between(0, NAMES - 1);
    let numbers = (first..first + rng.between(1, 4)).map(|number| number % NAMES);
    let specs = numbers.map(|number| ChannelSpec {
        name: ChannelName::new(&format!("c{number:02}")).expect("a valid name"),
        collection: CollectionId(number % 3),
        pchannel: Text::cut(&format!("p{}", number % 4)),
        positions: vec![1, 2, 3],
        schema_ref: Text::cut("s"),
    });
    Command::WatchChannels(specs.collect())
}
