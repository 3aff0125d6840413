//! The simulator over many seeds, and proof that it notices what is broken.
//! `SEED=7 cargo test -p tests sim` runs one seed; `SIM_SEEDS=5000` runs more than the gate does.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use tests::sim::{Broken, Coverage, Failure, Kind, run, run_broken};

/// Seeds of a run of the gate: about half a minute on two cores.
const SEEDS: u64 = 400;
/// Seeds in which a broken rule has to be noticed at least once.
const BROKEN_SEEDS: u64 = 200;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is a number, not {text:?}")))
}

/// Runs seeds 1 to `seeds` on all cores; each run is a thread of its own from start to end.
fn run_all(seeds: u64) -> (Coverage, Vec<Failure>) {
    let next = AtomicU64::new(1);
    let found = Mutex::new((Coverage::default(), Vec::new()));
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed > seeds {
                        return;
                    }
                    let end = run(seed);
                    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                    match end {
                        Ok(story) => found.0.add(&story.coverage),
                        Err(failure) => found.1.push(failure),
                    }
                }
            });
        }
    });
    found.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Safety under faults, then rest: in every run; every fault, transition and fence: in some run.
#[test]
fn nothing_forbidden_happens_and_everything_comes_to_rest() {
    if let Some(seed) = number("SEED") {
        match run(seed) {
            Ok(story) => println!("{}{story:?}", story.coverage),
            Err(failure) => panic!("{failure}"),
        }
        return;
    }
    let seeds = number("SIM_SEEDS").unwrap_or(SEEDS);
    let (seen, mut failures) = run_all(seeds);
    println!("{seen}");
    failures.sort_by_key(|failure| failure.seed);
    let shown: Vec<String> = failures.iter().take(5).map(ToString::to_string).collect();
    assert!(failures.is_empty(), "{} of {seeds} seeds: {shown:#?}", failures.len());
    assert_eq!(seen.unlisted(), Vec::<&str>::new());
    if seeds >= SEEDS {
        assert_eq!(seen.missing(), Vec::<&str>::new(), "a case that no run reached proves nothing");
    }
}

/// One seed is one run, to the last entry.
#[test]
fn a_seed_is_reproduced() {
    for seed in [3, 17] {
        let (one, two) = (run(seed).unwrap(), run(seed).unwrap());
        assert_eq!(one, two);
        assert!(
            one.entries > 100
                && one.coverage.count(Kind::Transition, "to_watch: ok -> watched") > 0
        );
    }
}

/// The rule under which the oracle notices that `broken` is left out, over as many seeds as it
/// takes.
fn noticed(broken: Broken) -> BTreeSet<&'static str> {
    let mut rules = BTreeSet::new();
    for seed in 1..=BROKEN_SEEDS {
        if let Err(failure) = run_broken(seed, broken) {
            rules.insert(failure.violation.rule);
            break;
        }
    }
    rules
}

#[test]
fn forged_acknowledgements_are_noticed() {
    assert!(noticed(Broken::ForgedAcks).contains("acknowledgements are their senders'"));
}

#[test]
fn nodes_that_take_lower_terms_are_noticed() {
    assert!(!noticed(Broken::LowerTerms).is_empty());
}

#[test]
fn nodes_that_do_not_fence_themselves_are_noticed() {
    assert!(noticed(Broken::NoSelfFence).contains("what ended was stopped before"));
}

#[test]
fn answers_before_the_commit_are_noticed() {
    assert!(noticed(Broken::EarlyReplies).contains("what was acknowledged is kept"));
}

#[test]
fn a_replica_that_leaves_out_a_request_is_noticed() {
    assert!(noticed(Broken::SkippedRequests).contains("replicas are equal"));
}

#[test]
fn a_session_granted_without_asking_for_its_silence_is_noticed() {
    assert!(noticed(Broken::FreeRegistrations).contains("only the silent expire"));
}

#[test]
fn renewals_acknowledged_before_their_entry_are_noticed() {
    assert!(noticed(Broken::EarlyRenewals).contains("only the silent expire"));
}

#[test]
fn a_leader_that_acknowledges_without_a_quorum_is_noticed() {
    assert!(noticed(Broken::LonelyLeaders).contains("only the silent expire"));
}
