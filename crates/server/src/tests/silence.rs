//! The silence rules of ruling 6 on the meter alone: when silence counts, how much,
//! what must be logged before a renewal is acknowledged.

use state::command::Command;

use super::samples::{TERM, accept, led, register};
use crate::leader::silence::{Observation, SilenceMeter};

fn observed(meter: &mut SilenceMeter, state: &state::State, now_ms: u64) -> Option<Command> {
    let found = meter.observe(state, now_ms);
    meter.report(TERM, found)
}

#[test]
fn a_healthy_session_is_never_reported() {
    let mut state = led();
    let node = register(&mut state, 1, "a");
    let mut meter = SilenceMeter::start(&state, 0);
    for tick in 1..100 {
        let now = tick * 2_000;
        meter.touch(node, now);
        assert_eq!(observed(&mut meter, &state, now), None, "at {now}");
    }
}

#[test]
fn jitter_below_a_third_of_the_ttl_writes_nothing() {
    let mut state = led();
    let node = register(&mut state, 1, "a");
    let mut meter = SilenceMeter::start(&state, 0);
    meter.touch(node, 1_000);
    assert_eq!(observed(&mut meter, &state, 1_000 + 3_332), None);
    assert!(observed(&mut meter, &state, 1_000 + 3_333).is_some());
}

#[test]
fn silence_is_counted_once_and_expires_after_ttl_and_grace() {
    let mut state = led();
    let node = register(&mut state, 1, "a");
    let mut meter = SilenceMeter::start(&state, 0);
    let mut now = 0;
    while meter.expired(&state, TERM, now).is_empty() {
        now += SilenceMeter::interval_ms(&state);
        if let Some(report) = observed(&mut meter, &state, now) {
            accept(&mut state, now, report);
        }
        assert!(now < 60_000, "never expires");
    }
    // ttl 10 s and grace 2 s, one observation interval late at most.
    assert!((12_000..=14_000).contains(&now), "expired at {now} ms");
    assert_eq!(state.live(node).unwrap().silent_ms, now);
    let expire = Command::ExpireSession { node, leader_term: TERM };
    assert_eq!(meter.expired(&state, TERM, now), vec![expire.clone()]);
    accept(&mut state, now, expire);
    meter.follow(&state, now);
    assert!(meter.expired(&state, TERM, now).is_empty());
}

#[test]
fn a_new_leader_measures_on_top_of_the_logged_silence() {
    let mut state = led();
    register(&mut state, 1, "a");
    let mut first = SilenceMeter::start(&state, 0);
    for now in [2_000, 4_000, 6_000, 8_000] {
        if let Some(report) = observed(&mut first, &state, now) {
            accept(&mut state, now, report);
        }
    }
    let mut second = SilenceMeter::start(&state, 100_000);
    let mut now = 100_000;
    while second.expired(&state, TERM, now).is_empty() {
        now += 2_000;
        if let Some(report) = observed(&mut second, &state, now) {
            accept(&mut state, now, report);
        }
        assert!(now < 160_000, "the dead never expire");
    }
    assert!(now <= 106_000, "8 s were logged, so 4 s and an interval remain; took to {now}");
}

#[test]
fn a_leader_that_was_stalled_adds_little() {
    let mut state = led();
    register(&mut state, 1, "a");
    let mut meter = SilenceMeter::start(&state, 0);
    let Some(Command::SessionsObserved { silent, .. }) = observed(&mut meter, &state, 3_600_000)
    else {
        panic!("nothing observed")
    };
    assert_eq!(silent.iter().map(|(_, add)| *add).collect::<Vec<_>>(), vec![4_000]);
}

#[test]
fn a_renewal_waits_for_the_log_from_the_moment_silence_is_proposed() {
    let mut state = led();
    let node = register(&mut state, 1, "a");
    let mut meter = SilenceMeter::start(&state, 0);
    assert!(!meter.must_log_renewal(&state, node));
    let report = observed(&mut meter, &state, 4_000).unwrap();
    // Proposed, not yet applied: an acknowledgement now would be a promise the log does not keep.
    meter.touch(node, 4_100);
    assert!(meter.must_log_renewal(&state, node));
    accept(&mut state, 4_100, report);
    assert!(meter.must_log_renewal(&state, node));
    let found = Observation { silent: Vec::new(), renewed: vec![node] };
    let renewal = meter.report(TERM, found).unwrap();
    accept(&mut state, 4_200, renewal);
    meter.settled(&[node]);
    assert!(!meter.must_log_renewal(&state, node));
    assert_eq!(state.live(node).unwrap().silent_ms, 0);
}

#[test]
fn a_session_that_came_back_without_waiting_is_reset_by_the_next_observation() {
    let mut state = led();
    let node = register(&mut state, 1, "a");
    let mut meter = SilenceMeter::start(&state, 0);
    let report = observed(&mut meter, &state, 4_000).unwrap();
    accept(&mut state, 4_000, report);
    meter.touch(node, 5_000);
    let report = observed(&mut meter, &state, 6_000).unwrap();
    assert!(
        matches!(&report, Command::SessionsObserved { renewed, silent, .. }
            if renewed == &vec![node] && silent.is_empty()),
        "{report}"
    );
}
