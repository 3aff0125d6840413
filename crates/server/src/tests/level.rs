//! Which groups a leader raises by itself, and which commands it must not propose before.

use state::command::Command;
use state::ids::NodeName;
use state::outcome::Rejection;

use super::samples::{accept, led, register, watch};
use crate::api::write::decodable;
use crate::leader::untouched;

#[test]
fn only_a_group_in_which_nothing_happened_is_new() {
    assert!(untouched(&led()));
    let mut worker = led();
    register(&mut worker, 1, "a");
    assert!(!untouched(&worker));
    let mut channel = led();
    let name = watch(&mut channel, 1, "c");
    assert!(!untouched(&channel));
    accept(&mut channel, 2, Command::RemoveChannel { channel: name });
    assert!(!untouched(&channel), "the removed channel is remembered");
}

#[test]
fn what_older_members_cannot_decode_is_held_back() {
    let mut state = led();
    let name = || NodeName::new("k").unwrap();
    let newer =
        [Command::RegisterCleaner { name: name() }, Command::DeregisterCleaner { name: name() }];
    for command in &newer {
        let refused = decodable(&state, command).unwrap_err();
        assert!(matches!(refused, Rejection::LevelTooLow { needed: 2, present: 1, .. }));
    }
    assert_eq!(decodable(&state, &Command::Tick), Ok(()));
    accept(&mut state, 1, Command::SetLevel { level: 2 });
    for command in &newer {
        assert_eq!(decodable(&state, command), Ok(()));
    }
}
