//! Who may register, and what is said of those who run what they were not told to.

use std::sync::atomic::{AtomicU64, Ordering};

use proto::v1;
use tonic_types::StatusExt;

use super::samples::{led, place, register, watch};
use crate::api::convert::admit;
use crate::api::strays;
use crate::limits;

#[test]
fn a88_a_worker_below_the_level_is_told_which_one_it_needs() {
    let of_level = |level| v1::Register { level, ..v1::Register::default() };
    for level in [0, 1] {
        let status = admit(2, &of_level(level)).unwrap_err();
        assert_eq!(status.code(), tonic::Code::FailedPrecondition);
        let info = status.get_details_error_info().unwrap();
        assert_eq!(info.reason, "LEVEL_TOO_LOW");
        assert_eq!(info.metadata["needed_level"], "2");
        assert!(status.message().contains("need level 2"), "{status}");
    }
    assert!(admit(2, &of_level(2)).is_ok() && admit(2, &of_level(3)).is_ok());
    // Workers that were built before there was a level are of the first.
    assert!(admit(limits::WORKER_LEVEL_MIN, &of_level(0)).is_ok());
}

#[test]
fn a45_only_what_the_node_does_not_own_is_a_stray() {
    let mut state = led();
    let (five, two) = (register(&mut state, 1, "five"), register(&mut state, 1, "two"));
    for (name, node) in [("mine", five), ("theirs", two)] {
        let channel = watch(&mut state, 1, name);
        place(&mut state, 1, &channel, node);
    }
    let running = ["mine", "theirs", "never", ""]
        .map(|channel| v1::Running { channel: channel.to_owned(), term: 4 });
    assert_eq!(strays::of(&state, five, &running), ["theirs", "never", ""]);
}

#[test]
fn a45_strays_are_counted_each_time_and_logged_now_and_then() {
    let mut state = led();
    let node = register(&mut state, 1, "five");
    let (counter, mut told) = (AtomicU64::new(0), strays::Told::default());
    let strays = [String::from("c")];
    let logged = (0..100).filter(|_| told.tell(&counter, node, &strays)).count();
    assert_eq!((logged, counter.load(Ordering::Relaxed)), (1, 100));
}
