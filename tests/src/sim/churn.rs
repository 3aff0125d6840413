//! Stretches in which the leader changes at each step or every few: each reign acts at once, and
//! what it proposed is cut off in the middle. Other troubles of leaders are in `faults`.

use super::coverage::Kind;
use super::rng::Rng;
use super::world::{STEP_MS, World};

/// How often leaders change.
#[derive(Debug)]
pub(super) struct Churn {
    temper: Temper,
    until_ms: u64,
    every_ms: u64,
    next_ms: u64,
    last: Option<usize>,
}

/// Of a seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Temper {
    /// There are stretches in which leaders change all the time.
    Restless,
    Ordinary,
    /// Leaders last for long enough to see sessions expire.
    Steady,
}

impl Churn {
    pub(super) const fn new(rng: &mut Rng) -> Self {
        let temper = match rng.between(0, 9) {
            0..=3 => Temper::Restless,
            4..=5 => Temper::Ordinary,
            _ => Temper::Steady,
        };
        Self { temper, until_ms: 0, every_ms: 0, next_ms: 0, last: None }
    }

    /// Chance in a thousand, in each step, that something happens to the leader.
    pub(super) const fn trouble(&self) -> u64 {
        match self.temper {
            Temper::Restless | Temper::Ordinary => 12,
            Temper::Steady => 4,
        }
    }

    /// A deposed leader does most harm while the next one lasts.
    pub(super) fn favours_zombies(&self) -> bool {
        self.temper == Temper::Steady
    }

    pub(super) const fn on(&self, now: u64) -> bool {
        now < self.until_ms
    }
}

impl World {
    /// Begins and carries on a stretch of changes.
    pub(super) fn change_leaders(&mut self) {
        if self.churn.temper != Temper::Restless {
            return;
        }
        if !self.churn.on(self.now) && self.rng.permille(2) {
            let steps = if self.rng.permille(500) { 1 } else { self.rng.between(2, 6) };
            self.churn.every_ms = steps * STEP_MS;
            self.churn.until_ms = self.now + self.rng.between(300, 5_000);
            self.churn.next_ms = self.now;
        }
        if !self.churn.on(self.now) || self.now < self.churn.next_ms {
            return;
        }
        let Some(leader) = self.leader else { return };
        self.churn.next_ms = self.now + self.churn.every_ms;
        let acts = self.members[leader].reign.as_ref().is_some_and(|reign| reign.leading);
        let one_step = self.churn.every_ms == STEP_MS;
        self.seen.hit(Kind::Fault, "leader_changed_every_few_steps");
        if one_step && acts {
            self.seen.hit(Kind::Fault, "leader_of_one_step_acted");
        }
        self.depose();
        self.churn.last = Some(leader);
        self.election_ms = self.now;
    }

    /// Who of these is elected: mostly another one than the last while leaders change.
    pub(super) fn candidate(&mut self, able: &[usize]) -> Option<usize> {
        let last = self.churn.last.filter(|_| self.churn.on(self.now));
        let others: Vec<usize> = able.iter().copied().filter(|m| Some(*m) != last).collect();
        let among = if others.is_empty() || self.rng.permille(100) { able } else { &others };
        self.rng.pick(among).copied()
    }
}
