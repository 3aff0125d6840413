//! silence, leaders and clocks against each other. The meter and the state
//! are the real ones; the worker keeps the rule of its lease (ttl - margin after the send time of
//! what was acknowledged), every clock runs at a rate of its own.

use state::State;
use state::command::Command;
use state::epoch::Timestamp;
use state::node::NodeRef;
use state::outcome::Outcome;

use super::samples::{accept, apply_in, lead, led, place, register, watch};
use crate::leader::silence::{Observation, SilenceMeter};

const TTL: u64 = 10_000;
const MARGIN: u64 = 1_000;
const GRACE: u64 = 2_000;
const STEP: u64 = 10;
/// A leader acknowledges this long after its quorum fell silent (ruling 7).
const QUORUM_FRESH: u64 = state::limits::ELECTION_TIMEOUT_MS_MAX;
const ELECTION_MIN: u64 = 400;

/// A clock that runs a little too fast or too slow: local milliseconds per 1,000 true ones.
#[derive(Clone, Copy)]
struct Rate(u64);

impl Rate {
    const fn local(self, true_ms: u64) -> u64 {
        true_ms * self.0 / 1_000
    }
}

struct Reign {
    term: u64,
    meter: SilenceMeter,
    rate: Rate,
    next_ms: u64,
    stalled_until: u64,
    /// Set when it is cut off: it hears workers, and no quorum hears it.
    lonely_since: Option<u64>,
    /// Renewals that wait for the stalled process.
    queued: Vec<u64>,
}

struct Worker {
    node: NodeRef,
    rate: Rate,
    next_ms: u64,
    confirmed_ms: u64,
    dead: bool,
    fenced_at: Option<u64>,
}

/// True time, one group and one worker.
struct World {
    now: u64,
    state: State,
    stamp_ahead: u64,
    /// Whom the worker hears.
    reign: Option<Reign>,
    /// A leader that the worker does not hear.
    unheard: Option<Reign>,
    worker: Worker,
    expired_at: Option<u64>,
}

impl World {
    fn new(leader: Rate, worker: Rate) -> Self {
        let mut state = led();
        let node = register(&mut state, 1, "D1");
        let (next_ms, confirmed_ms, fenced_at) = (0, 0, None);
        let worker = Worker { node, rate: worker, next_ms, confirmed_ms, dead: false, fenced_at };
        let mut world = Self {
            now: 0,
            state,
            stamp_ahead: 0,
            reign: None,
            unheard: None,
            worker,
            expired_at: None,
        };
        world.elect(leader);
        world
    }

    fn stamp(&self) -> u64 {
        self.now + self.stamp_ahead
    }

    /// A new leader begins to measure; it knows what the log knows.
    fn elect(&mut self, rate: Rate) {
        let term = self.state.leader().term.0 + 1;
        let stamp = self.stamp();
        lead(&mut self.state, stamp, term);
        let local = rate.local(self.now);
        let meter = SilenceMeter::start(&self.state, local);
        self.reign = Some(Reign {
            term,
            meter,
            rate,
            next_ms: local,
            stalled_until: 0,
            lonely_since: None,
            queued: Vec::new(),
        });
    }

    fn step(&mut self) {
        self.now += STEP;
        let local = self.worker.rate.local(self.now);
        if self.worker.fenced_at.is_none() && local >= self.worker.confirmed_ms + TTL - MARGIN {
            self.worker.fenced_at = Some(self.now);
        }
        if !self.worker.dead && self.worker.fenced_at.is_none() && local >= self.worker.next_ms {
            self.worker.next_ms = local + TTL / 4;
            self.renew(local);
        }
        self.observe();
        std::mem::swap(&mut self.reign, &mut self.unheard);
        self.observe();
        std::mem::swap(&mut self.reign, &mut self.unheard);
    }

    /// A renewal arrives, or waits until the process goes on.
    fn renew(&mut self, sent_ms: u64) {
        let stalled = |reign: &&mut Reign| self.now < reign.stalled_until;
        if let Some(reign) = self.reign.as_mut().filter(stalled) {
            reign.queued.push(sent_ms);
            return;
        }
        let Some(mut reign) = self.reign.take() else { return };
        let node = self.worker.node;
        reign.meter.touch(node, reign.rate.local(self.now));
        let lonely = reign.lonely_since;
        let mut answered = lonely.is_none_or(|since| self.now < since + QUORUM_FRESH);
        if reign.meter.must_log_renewal(&self.state, node) {
            let found = Observation { silent: Vec::new(), renewed: vec![node] };
            let command = reign.meter.report(state::epoch::Term(reign.term), found).unwrap();
            // Without a quorum nothing is committed, so nothing is acknowledged.
            answered &= lonely.is_none();
            if lonely.is_none() {
                self.commit(reign.term, command);
                reign.meter.settled(&[node]);
            }
        }
        if answered && self.state.live(node).is_some() {
            self.worker.confirmed_ms = self.worker.confirmed_ms.max(sent_ms);
        }
        self.reign = Some(reign);
    }

    fn commit(&mut self, term: u64, command: Command) -> Outcome {
        let stamp = self.stamp();
        apply_in(&mut self.state, term, stamp, command)
    }

    /// The leader's turn: what waited is heard first, then silence is counted.
    fn observe(&mut self) {
        let stalled = |reign: &Reign| self.now < reign.stalled_until;
        if self.reign.as_ref().is_none_or(stalled) {
            return;
        }
        let queued = self.reign.as_mut().map(|reign| std::mem::take(&mut reign.queued));
        queued.into_iter().flatten().for_each(|sent_ms| self.renew(sent_ms));
        let Some(mut reign) = self.reign.take() else { return };
        let local = reign.rate.local(self.now);
        if local >= reign.next_ms {
            reign.next_ms = local + SilenceMeter::interval_ms(&self.state);
            self.count(&mut reign, local);
        }
        self.reign = Some(reign);
    }

    fn count(&mut self, reign: &mut Reign, local: u64) {
        let term = state::epoch::Term(reign.term);
        let found = reign.meter.observe(&self.state, local);
        if reign.lonely_since.is_some() {
            return;
        }
        if let Some(report) = reign.meter.report(term, found) {
            self.commit(reign.term, report);
        }
        for expiry in reign.meter.expired(&self.state, term, local) {
            self.commit(reign.term, expiry);
            self.expired_at = Some(self.now);
        }
    }

    fn run(&mut self, ms: u64) {
        let end = self.now + ms;
        while self.now < end {
            self.step();
        }
    }

    fn run_until_expired(&mut self, most: u64) -> u64 {
        let end = self.now + most;
        while self.expired_at.is_none() {
            assert!(self.now < end, "not expired within {most} ms");
            self.step();
        }
        self.expired_at.unwrap()
    }
}

const EXACT: Rate = Rate(1_000);
/// 2 % too slow and too fast.
const RATES: [Rate; 3] = [Rate(980), EXACT, Rate(1_020)];

#[test]
fn a78_a_silent_node_stops_before_it_is_expired() {
    for leader in RATES {
        for worker in RATES {
            let mut world = World::new(leader, worker);
            world.run(20_000);
            assert_eq!((world.expired_at, world.worker.fenced_at), (None, None));
            let last = world.worker.confirmed_ms * 1_000 / worker.0;
            // It hangs: its clock goes on, nothing is sent any more.
            world.worker.dead = true;
            let expired = world.run_until_expired(20_000) - last;
            let fenced = world.worker.fenced_at.unwrap() - last;
            let interval = SilenceMeter::interval_ms(&world.state);
            // By the leader's clock it is ttl and grace, one observation early or late.
            let by_leader = leader.local(expired);
            let expected = (TTL + GRACE).abs_diff(by_leader);
            assert!(expected <= interval + 2 * STEP, "{by_leader} by the leader's clock");
            assert!(worker.local(fenced).abs_diff(TTL - MARGIN) <= 2 * STEP, "{fenced}");
            assert!(fenced + 2_000 < expired, "{fenced} and {expired} are too close");
        }
    }
}

#[test]
fn a79_the_dead_expire_although_leaders_change() {
    let mut world = World::new(EXACT, EXACT);
    world.worker.dead = true;
    let mut changed = 0;
    while world.expired_at.is_none() {
        if world.now >= changed + TTL / 2 {
            changed = world.now;
            let before = world.state.live(world.worker.node).unwrap().silent_ms;
            world.elect(EXACT);
            let after = world.state.live(world.worker.node).unwrap().silent_ms;
            assert_eq!(before, after, "what is accounted is not lost");
        }
        world.step();
        assert!(world.now <= 2 * TTL + GRACE, "still there at {} ms", world.now);
    }
}

/// FR-010: leaders that reign for 4 s each, with half a second between them.
#[test]
fn fr010_short_reigns_count_silence_too() {
    let mut world = World::new(EXACT, EXACT);
    world.worker.dead = true;
    while world.expired_at.is_none() {
        world.run(3_900);
        world.reign = None;
        world.run(100);
        world.elect(EXACT);
        assert!(world.now <= 20_000, "still there at {} ms", world.now);
    }
}

#[test]
fn a80_healthy_nodes_survive_twenty_leaders() {
    for gap in [0, 400, 1_600] {
        let mut world = World::new(EXACT, EXACT);
        for round in 0..20 {
            world.run(15_000);
            world.reign = None;
            world.run(gap);
            world.elect(RATES[round % 3]);
        }
        world.run(30_000);
        assert_eq!((world.expired_at, world.worker.fenced_at), (None, None), "gap {gap}");
    }
}

#[test]
fn a81_a_leader_that_was_stalled_expires_nobody() {
    let mut world = World::new(EXACT, EXACT);
    world.run(20_000);
    // Half the stall: the worker's lease holds, so it still renews when the leader goes on.
    for stall in [TTL / 2, 2 * TTL] {
        let until = world.now + stall;
        world.reign.as_mut().unwrap().stalled_until = until;
        world.run(stall + 5_000);
        assert_eq!(world.expired_at, None);
        assert!(world.state.live(world.worker.node).unwrap().silent_ms < TTL);
    }
}

#[test]
fn a81_a_leader_that_was_deposed_meanwhile_writes_in_vain() {
    let mut world = World::new(EXACT, EXACT);
    world.run(20_000);
    let mut old = world.reign.take().unwrap();
    world.elect(EXACT);
    world.run(2 * TTL);
    let (term, local) = (state::epoch::Term(old.term), world.now);
    let found = old.meter.observe(&world.state, local);
    let node = world.worker.node;
    assert_eq!(found.silent, [(node, SilenceMeter::step_max_ms(&world.state))]);
    let report = old.meter.report(term, found).unwrap();
    let expiry = Command::ExpireSession { node, leader_term: term };
    for command in [report, expiry] {
        let outcome = world.commit(old.term + 1, command);
        let Outcome::Rejected(rejection) = outcome else { panic!("{outcome}") };
        assert_eq!(rejection.reason(), "STALE_TERM");
    }
    assert_eq!(world.expired_at, None);
}

#[test]
fn a82_clocks_that_jump_expire_nobody_and_time_out_nothing_early() {
    const HOUR: u64 = 3_600_000;
    let mut world = World::new(EXACT, EXACT);
    world.stamp_ahead = HOUR;
    let (stamp, node) = (world.stamp(), world.worker.node);
    let channel = watch(&mut world.state, stamp, "c");
    place(&mut world.state, stamp, &channel, node);
    world.run(20_000);
    // A new leader 10 minutes ahead, one whose clock was set back an hour, one an hour ahead.
    for ahead in [HOUR + 600_000, 0, 2 * HOUR] {
        world.reign = None;
        // A stamp is at least the log time that the new leader finds.
        world.stamp_ahead = ahead.max(world.state.now().0.saturating_sub(world.now));
        world.elect(EXACT);
        let (started, grace) = (world.stamp(), world.state.policy().leader_grace_ms);
        let early = Timestamp(started + grace - 1);
        assert_eq!(world.state.due(early, 10), vec![], "within the grace of a new leader");
        let before = world.state.now();
        world.run(30_000);
        assert!(world.state.now() >= before);
    }
    assert_eq!((world.expired_at, world.worker.fenced_at), (None, None));
}

#[test]
fn a83_a_renewal_that_is_not_committed_is_not_acknowledged() {
    let mut world = World::new(EXACT, EXACT);
    world.run(4_000);
    world.worker.next_ms = u64::MAX;
    while world.state.live(world.worker.node).unwrap().silent_ms < TTL * 6 / 10 {
        world.step();
    }
    let logged = world.state.live(world.worker.node).unwrap().silent_ms;
    let confirmed = world.worker.confirmed_ms;
    // The leader loses its quorum this very moment; the renewal arrives and its entry is lost.
    world.reign.as_mut().unwrap().lonely_since = Some(world.now);
    world.renew(world.now);
    assert_eq!(world.worker.confirmed_ms, confirmed, "not acknowledged");
    world.elect(EXACT);
    assert_eq!(world.state.live(world.worker.node).unwrap().silent_ms, logged, "0.6 ttl go on");
    world.run(500);
    world.renew(world.now);
    assert_eq!(world.worker.confirmed_ms, world.now, "acknowledged");
    assert_eq!(world.state.live(world.worker.node).unwrap().silent_ms, 0, "after the reset");
    world.worker.next_ms = 0;
    world.run(30_000);
    assert_eq!((world.expired_at, world.worker.fenced_at), (None, None));
}

#[test]
fn a100_a_node_that_hears_only_a_deposed_leader_stops_in_time() {
    for rate in RATES {
        for worker in RATES {
            let mut world = World::new(EXACT, worker);
            world.run(20_000);
            let cut = world.now;
            world.reign.as_mut().unwrap().lonely_since = Some(cut);
            world.run(ELECTION_MIN);
            let old = world.reign.take();
            world.elect(rate);
            world.unheard = std::mem::replace(&mut world.reign, old);
            world.run_until_expired(30_000);
            let confirmed = world.worker.confirmed_ms * 1_000 / worker.0;
            assert!(confirmed <= cut + QUORUM_FRESH, "acknowledged {} ms late", confirmed - cut);
            let fenced = world.worker.fenced_at.unwrap();
            let expired = world.expired_at.unwrap();
            assert!(fenced + 1_000 < expired, "{fenced} and {expired} are too close");
        }
    }
}

/// FR-012: what is due stays due until it is committed; nothing is handed over and forgotten.
#[test]
fn fr012_ten_thousand_expiries_at_two_hundred_a_second_are_all_done() {
    const SESSIONS: usize = 10_000;
    let mut state = led();
    for at in 0..SESSIONS {
        register(&mut state, 1, &format!("D{at}"));
    }
    let term = state.leader().term;
    let mut meter = SilenceMeter::start(&state, 0);
    let interval = SilenceMeter::interval_ms(&state);
    let (mut now, mut pending) = (0, Vec::new());
    while state.nodes().count() > 0 {
        now += interval;
        if let Some(report) = {
            let found = meter.observe(&state, now);
            meter.report(term, found)
        } {
            accept(&mut state, now, report);
        }
        let due = meter.expired(&state, term, now);
        pending.push(due.len());
        let budget = usize::try_from(200 * interval / 1_000).unwrap();
        due.into_iter().take(budget).for_each(|expiry| drop(accept(&mut state, now, expiry)));
        assert!(now <= 120_000, "{} are left", state.nodes().count());
    }
    assert_eq!(pending.iter().max(), Some(&SESSIONS));
    assert!(meter.expired(&state, term, now).is_empty());
}
