//! The simulator over many seeds, and proof that it notices what is broken.
//! `SEED=7 cargo test -p tests sim` runs one seed; `SIM_SEEDS=20000` runs more than the gate does.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use tests::sim::{Broken, Coverage, Failure, Kind, roll, run, run_broken};

/// Seeds of a run of the gate: about half a minute on two idle cores.
const SEEDS: u64 = 2_000;
/// Seeds in which a broken fence has to be noticed at least once.
const BROKEN_SEEDS: u64 = 200;
/// The same for rules of leases: it takes a leader that goes and a node that falls silent, each at
/// the worst moment. About one seed in a hundred has that.
const BROKEN_LEASE_SEEDS: u64 = 1_000;

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

/// An hour of restarts of all workers, one after the other: a channel moves when its owner goes,
/// and hardly ever else.
#[test]
fn rolling_restarts_move_hardly_more_than_they_must() {
    for seed in 1..=4 {
        let end = roll(seed);
        println!("{end}, {end:?}");
        assert_eq!(end.unrest, None);
        assert!(end.restarts.iter().all(|count| *count > 5) && end.leaders > 5, "{end:?}");
        assert!(end.made * 10 <= end.necessary * 11, "{end}");
    }
}

/// Asserts that the oracle notices that `broken` is left out, under this rule, and says by which
/// seed. With `BROKEN_SEEDS=1000` it says how many seeds notice it under which rule.
fn noticed(broken: Broken, rule: &str) -> String {
    noticed_within(BROKEN_SEEDS, broken, rule)
}

fn noticed_within(seeds: u64, broken: Broken, rule: &str) -> String {
    if let Some(seeds) = number("BROKEN_SEEDS") {
        let mut rules = BTreeMap::<_, u64>::new();
        for failure in (1..=seeds).filter_map(|seed| run_broken(seed, broken).err()) {
            *rules.entry(failure.violation.rule).or_default() += 1;
        }
        return format!("{broken:?} in {seeds} seeds: {rules:?}");
    }
    let mut failures = (1..=seeds).filter_map(|seed| run_broken(seed, broken).err());
    let found = failures.find(|failure| failure.violation.rule == rule);
    let Some(failure) = found else { panic!("{seeds} seeds without {broken:?}: {rule}") };
    format!("{broken:?} is noticed by {failure}")
}

/// F1.
#[test]
fn decisions_of_a_deposed_leader_are_noticed() {
    println!("{}", noticed(Broken::StaleTerms, "decisions count in their leader's term only"));
}

/// F2.
#[test]
fn decisions_from_the_future_are_noticed() {
    println!("{}", noticed(Broken::FutureBases, "decisions are made from this history"));
}

/// F3.
#[test]
fn moves_of_channels_that_changed_are_noticed() {
    println!("{}", noticed(Broken::ChangedChannels, "moves are taken as they were computed"));
}

/// F4.
#[test]
fn moves_to_a_later_session_are_noticed() {
    println!("{}", noticed(Broken::ChangedNodes, "moves go to the session they were meant for"));
}

/// F5.
#[test]
fn moves_of_a_channel_removed_and_announced_again_are_noticed() {
    println!(
        "{}",
        noticed(Broken::EarlierLives, "moves are for the life of a channel they were computed in")
    );
}

/// F6.
#[test]
fn moves_above_the_limit_are_noticed() {
    println!("{}", noticed(Broken::TooManyMoves, "moves in flight stay within the limit"));
}

/// F7.
#[test]
fn the_end_of_an_earlier_session_is_noticed_when_it_hits_the_present_one() {
    println!("{}", noticed(Broken::EarlierSessions, "what is said of a session touches no other"));
}

/// F8.
#[test]
fn forged_acknowledgements_are_noticed() {
    println!("{}", noticed(Broken::ForgedAcks, "acknowledgements are their senders'"));
}

/// F9.
#[test]
fn nodes_that_take_lower_channel_terms_are_noticed() {
    println!("{}", noticed(Broken::LowerTerms, "what ended was stopped before"));
}

/// F10.
#[test]
fn nodes_that_take_directives_of_deposed_leaders_are_noticed() {
    println!("{}", noticed(Broken::LowerLeaders, "nodes stop only what is no longer theirs"));
}

///
#[test]
fn commits_of_former_owners_are_noticed() {
    println!("{}", noticed(Broken::ForgedCommits, "only the owner commits"));
}

/// Ruling 12.
#[test]
fn requests_that_count_twice_are_noticed() {
    println!("{}", noticed(Broken::ForgottenRequests, "a request counts once"));
}

/// N-9.
#[test]
fn nodes_that_do_not_fence_themselves_are_noticed() {
    println!("{}", noticed(Broken::NoSelfFence, "what ended was stopped before"));
}

#[test]
fn answers_before_the_commit_are_noticed() {
    println!("{}", noticed(Broken::EarlyReplies, "what was acknowledged is kept"));
}

#[test]
fn a_replica_that_leaves_out_a_request_is_noticed() {
    println!("{}", noticed(Broken::SkippedRequests, "replicas are equal"));
}

/// 18.5, rule 3.
#[test]
fn a_session_granted_without_asking_for_its_silence_is_noticed() {
    println!(
        "{}",
        noticed_within(BROKEN_LEASE_SEEDS, Broken::FreeRegistrations, "only the silent expire")
    );
}

/// 18.5, rule 3.
#[test]
fn renewals_acknowledged_before_their_entry_are_noticed() {
    println!(
        "{}",
        noticed_within(BROKEN_LEASE_SEEDS, Broken::EarlyRenewals, "only the silent expire")
    );
}

/// 18.5, rule 4.
#[test]
fn a_leader_that_acknowledges_without_a_quorum_is_noticed() {
    println!(
        "{}",
        noticed_within(BROKEN_LEASE_SEEDS, Broken::LonelyLeaders, "only the silent expire")
    );
}
