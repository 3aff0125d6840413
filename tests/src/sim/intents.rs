//! What operators ask for: channels announced and dropped, nodes drained, frozen and thrown out,
//! settings changed. How they ask is in `client`.

use std::collections::BTreeMap;

use state::State;
use state::channel::ChannelSpec;
use state::choices::{CHOICES, Choice};
use state::command::Command;
use state::ids::{ChannelName, CollectionId, NodeName, Text};
use state::node::{NodeRef, NodeStatus};
use state::outcome::Outcome;

use super::client::Wish;
use super::rng::Rng;
use super::world::{MARGIN_MS, TTL_MS};

const NAMES: u64 = 24;

/// One of the permitted names for each of the channel policies; 0 is the default.
pub(super) type Policies = [usize; CHOICES.len()];

/// Mostly the defaults, else a combination that is not refused.
pub(super) fn wished_policies(rng: &mut Rng) -> Policies {
    if rng.permille(700) {
        return Policies::default();
    }
    let mut wished = CHOICES.map(|choice| rng.index(choice.allowed().len()));
    let named = |choice: Choice, name: &str| {
        choice.allowed().iter().position(|allowed| *allowed == name).expect("it is permitted")
    };
    let [_, _, _, register, balance] = &mut wished;
    if *register == named(Choice::Register, "consistent_hash") {
        *balance = named(Choice::Balance, "none");
    }
    wished
}

/// What makes these policies hold, if they do not.
fn set_policies(state: &State, wished: Policies) -> Option<Command> {
    let differs =
        |(choice, which): &(Choice, usize)| state.choice(*choice) != choice.allowed()[*which];
    let chosen = CHOICES.into_iter().zip(wished).filter(differs);
    let values: BTreeMap<_, _> =
        chosen.map(|(choice, which)| choose_policy(choice, which)).collect();
    match (values.is_empty(), state.level()) {
        (true, _) => None,
        (false, 1) => Some(Command::SetLevel { level: 2 }),
        _ => Some(Command::SetPolicy { values }),
    }
}

/// Settings with short times, so that everything happens within seconds.
pub(super) fn policy(balance: bool) -> Command {
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
        ("balance_silent_ms", 500),
        ("balance_interval_ms", 500),
        ("min_move_interval_ms", 700),
    ];
    let number = |(name, value): (&str, u64)| (Text::cut(name), Text::cut(&value.to_string()));
    let mut values: BTreeMap<_, _> = settings.into_iter().map(number).collect();
    values.extend(auto_balance(balance));
    Command::SetPolicy { values }
}

fn auto_balance(on: bool) -> [(Text, Text); 1] {
    [(Text::cut("auto_balance"), Text::cut(&on.to_string()))]
}

fn choose_policy(choice: Choice, which: usize) -> (Text, Text) {
    (Text::cut(choice.name()), Text::cut(choice.allowed()[which]))
}

/// Some settings at a time, each within what the run can bear.
fn change_settings(rng: &mut Rng) -> Command {
    let ranges = [
        ("ttl_ms", 2_500, 4_500),
        ("leader_grace_ms", 0, 1_500),
        ("watch_timeout_ms", 1_500, 4_000),
        ("release_timeout_ms", 800, 2_500),
        ("cooldown_base_ms", 0, 400),
        ("cooldown_max_ms", 500, 3_000),
        ("settle_ms", 0, 500),
        ("balance_moves_max", 1, 5),
        ("balance_silent_ms", 300, 800),
        ("min_move_interval_ms", 500, 1_000),
    ];
    let mut values = BTreeMap::new();
    for _ in 0..rng.between(1, 3) {
        let (name, low, high) = ranges[rng.index(ranges.len())];
        let value = rng.between(low, high).to_string();
        values.insert(Text::cut(name), Text::cut(&value));
    }
    if rng.permille(200) {
        values.extend(auto_balance(rng.permille(500)));
    }
    if rng.permille(200) {
        let choice = CHOICES[rng.index(CHOICES.len())];
        values.extend([choose_policy(choice, rng.index(choice.allowed().len()))]);
    }
    Command::SetPolicy { values }
}

/// A channel that was just removed comes back at once: another life under the same name.
pub(super) fn announce_again(asked: &Command, outcome: &Outcome) -> Option<Command> {
    match (asked, outcome) {
        (Command::RemoveChannel { channel }, Outcome::Accepted(_)) => {
            let number = channel.as_str()[1..].parse().ok()?;
            Some(Command::WatchChannels(vec![spec(number)]))
        }
        _ => None,
    }
}

fn sessions(state: &State, status: NodeStatus) -> Vec<NodeRef> {
    state.nodes().filter(|node| node.status == status).map(|node| node.node_ref()).collect()
}

/// Undoes what keeps nodes out of service or load uneven.
pub(super) fn restore_service(state: &State, wish: Wish) -> Option<Command> {
    if let Some(command) = set_policies(state, wish.policies) {
        return Some(command);
    }
    if state.policy().auto_balance != wish.balance {
        return Some(Command::SetPolicy { values: auto_balance(wish.balance).into() });
    }
    if let Some(name) = state.frozen_names().next() {
        return Some(Command::Thaw { name: name.clone() });
    }
    let stopping = sessions(state, NodeStatus::Stopping);
    stopping.first().map(|node| Command::UnsetStopping { node: *node })
}

pub(super) fn choose(state: &State, wish: Wish, rng: &mut Rng) -> Option<Command> {
    let channels: Vec<_> = state.channels().collect();
    let channel = rng.pick(&channels).map(|channel| (channel.spec.name.clone(), channel.term));
    match rng.between(0, 99) {
        0..=26 => Some(announce(rng)),
        27 => set_policies(state, wish.policies),
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
        98 => Some(match rng.between(0, 2) {
            0 => Command::SetLevel { level: 2 },
            1 => Command::RegisterCleaner { name: cleaner() },
            _ => Command::DeregisterCleaner { name: cleaner() },
        }),
        _ => Some(change_settings(rng)),
    }
}

fn cleaner() -> NodeName {
    NodeName::new("cleaner").expect("a valid name")
}

fn announce(rng: &mut Rng) -> Command {
    let first = rng.between(0, NAMES - 1);
    let numbers = (first..first + rng.between(1, 4)).map(|number| number % NAMES);
    Command::WatchChannels(numbers.map(spec).collect())
}

fn spec(number: u64) -> ChannelSpec {
    ChannelSpec {
        name: ChannelName::new(&format!("c{number:02}")).expect("a valid name"),
        collection: CollectionId(number % 3),
        pchannel: Text::cut(&format!("p{}", number % 4)),
        positions: vec![1, 2, 3],
        schema_ref: Text::cut("s"),
    }
}
