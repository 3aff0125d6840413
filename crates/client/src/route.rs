//! Which coordinator to ask next: pure bookkeeping over addresses, no IO and no clock.
//! A round asks each address at most once; between rounds the caller waits.
//! Called by call.rs, events.rs and the agent.

/// Addresses learned from hints that are kept beside the configured ones.
const LEARNED_MAX: usize = 8;

/// What is known about the group's addresses.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    configured: Vec<String>,
    learned: Vec<String>,
    leader: Option<String>,
}

/// One caller's way through the addresses until it has an answer.
#[derive(Debug)]
pub(crate) struct Tour {
    order: Vec<String>,
    tried: Vec<String>,
    hint: Option<String>,
}

/// What to do now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Ask this one, at once.
    Ask(String),
    /// Everyone was asked in this round: wait, then go on.
    Wait,
}

impl Route {
    pub(crate) fn new(configured: &[String]) -> Self {
        Self { configured: configured.to_vec(), learned: Vec::new(), leader: None }
    }

    /// The one that answered last, or was named as leader.
    pub(crate) fn leader(&self) -> Option<&str> {
        self.leader.as_deref()
    }

    /// Remembers who answered; the next call begins there.
    pub(crate) fn prefer(&mut self, address: &str) {
        if self.leader.as_deref() == Some(address) {
            return;
        }
        let known = self.configured.iter().chain(&self.learned).any(|other| other == address);
        if !known {
            if self.learned.len() >= LEARNED_MAX {
                self.learned.remove(0);
            }
            self.learned.push(address.to_owned());
        }
        self.leader = Some(address.to_owned());
    }

    /// Forgets the preference if it is for this address.
    pub(crate) fn forget(&mut self, address: &str) {
        if self.leader.as_deref() == Some(address) {
            self.leader = None;
        }
    }

    /// A tour that begins with the preferred address.
    pub(crate) fn tour(&self) -> Tour {
        let mut order: Vec<String> = Vec::with_capacity(self.configured.len() + 1);
        for address in self.leader.iter().chain(&self.configured).chain(&self.learned) {
            if !order.contains(address) {
                order.push(address.clone());
            }
        }
        Tour { order, tried: Vec::new(), hint: None }
    }
}

impl Tour {
    /// The next step. A hint goes first, unless the address it names was asked in this round:
    /// members may go on naming a leader that is dead.
    pub(crate) fn step(&mut self) -> Step {
        let hint = self.hint.take().filter(|address| !self.tried.contains(address));
        let next =
            hint.or_else(|| self.order.iter().find(|one| !self.tried.contains(one)).cloned());
        match next {
            Some(address) => {
                self.tried.push(address.clone());
                Step::Ask(address)
            }
            None => {
                self.tried.clear();
                Step::Wait
            }
        }
    }

    /// Somebody named the leader.
    pub(crate) fn hint(&mut self, address: String) {
        self.hint = Some(address);
    }

    /// Leave this one out of the present round.
    pub(crate) fn skip(&mut self, address: &str) {
        self.tried.push(address.to_owned());
    }

    /// Ask this one first in the next round, and begin that round now.
    pub(crate) fn again(&mut self, address: String) {
        self.tried.clear();
        self.hint = Some(address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route() -> Route {
        Route::new(&["a:1".to_owned(), "b:1".to_owned(), "c:1".to_owned()])
    }

    fn ask(address: &str) -> Step {
        Step::Ask(address.to_owned())
    }

    #[test]
    fn a_round_asks_each_once_then_waits() {
        let mut tour = route().tour();
        let steps: Vec<Step> = (0..5).map(|_| tour.step()).collect();
        assert_eq!(steps, [ask("a:1"), ask("b:1"), ask("c:1"), Step::Wait, ask("a:1")]);
    }

    #[test]
    fn a_hint_goes_first_also_to_an_address_nobody_configured() {
        let mut tour = route().tour();
        assert_eq!(tour.step(), ask("a:1"));
        tour.hint("z:9".to_owned());
        assert_eq!(tour.step(), ask("z:9"));
        assert_eq!(tour.step(), ask("b:1"));
    }

    #[test]
    fn hints_to_a_dead_leader_do_not_make_a_busy_loop() {
        let mut route = route();
        route.prefer("c:1");
        let mut tour = route.tour();
        assert_eq!(tour.step(), ask("c:1"));
        assert_eq!(tour.step(), ask("a:1"));
        tour.hint("c:1".to_owned());
        assert_eq!(tour.step(), ask("b:1"));
        tour.hint("c:1".to_owned());
        assert_eq!(tour.step(), Step::Wait);
    }

    #[test]
    fn the_preferred_address_begins_the_next_tour_until_forgotten() {
        let mut route = route();
        route.prefer("b:1");
        assert_eq!(route.tour().step(), ask("b:1"));
        route.forget("a:1");
        assert_eq!(route.leader(), Some("b:1"));
        route.forget("b:1");
        assert_eq!(route.tour().step(), ask("a:1"));
    }

    #[test]
    fn learned_addresses_are_bounded() {
        let mut route = route();
        for port in 1..100_u32 {
            route.prefer(&format!("z:{port}"));
        }
        let mut tour = route.tour();
        let asked = std::iter::from_fn(|| match tour.step() {
            Step::Ask(address) => Some(address),
            Step::Wait => None,
        });
        assert_eq!(asked.count(), 3 + LEARNED_MAX);
    }
}
