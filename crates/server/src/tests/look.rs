//! When the leader plans: at once, later, or not before something changes.

use std::collections::BTreeMap;

use state::State;
use state::channel::AckResult;
use state::command::{Command, NodeAck};
use state::epoch::Timestamp;
use state::ids::{ChannelName, Text};

use super::samples::{accept, led, place, register, spec};
use crate::leader::look::{Look, plan_at};

fn set(state: &mut State, values: &[(&str, &str)]) {
    let values = values.iter().map(|(name, value)| (Text::cut(name), Text::cut(value)));
    accept(state, 10, Command::SetPolicy { values: values.collect::<BTreeMap<_, _>>() });
}

/// A node that watches a channel.
fn watching() -> State {
    let mut state = led();
    accept(&mut state, 1, Command::SetLevel { level: 2 });
    let node = register(&mut state, 2, "a");
    accept(&mut state, 3, Command::WatchChannels(vec![spec("x")]));
    assert_eq!(plan_at(&state, None), Some(Timestamp(3)), "a channel waits");
    let channel = ChannelName::new("x").unwrap();
    place(&mut state, 4, &channel, node);
    let record = state.channel(&channel).unwrap();
    let (term, op) = (record.term, record.phase.op().unwrap());
    let (result, reason) = (AckResult::Ok, Text::cut(""));
    accept(&mut state, 5, Command::NodeAck(NodeAck { node, channel, term, op, result, reason }));
    state
}

#[test]
fn load_is_looked_at_after_silence_and_then_as_the_plan_says() {
    let state = watching();
    assert_eq!(plan_at(&state, None), Some(Timestamp(300_005)));
    for wake_at in [None, Some(Timestamp(700_000))] {
        let look = Look { revision: state.revision(), at: Timestamp(300_010), wake_at };
        assert_eq!(plan_at(&state, Some(look)), wake_at);
    }
    // Of another state: not at each commit.
    let look = Look { revision: led().revision(), at: Timestamp(300_010), wake_at: None };
    assert_eq!(plan_at(&state, Some(look)), Some(Timestamp(300_110)));
}

/// What a register policy releases for a node that joins waits neither for silence nor the switch.
#[test]
fn joins_are_looked_at_although_balance_is_off() {
    let mut state = watching();
    set(&mut state, &[("auto_balance", "false")]);
    assert_eq!(plan_at(&state, None), None);
    set(&mut state, &[("channel_register_policy", "avg_assign")]);
    assert_eq!(plan_at(&state, None), Some(Timestamp(10)));
}
