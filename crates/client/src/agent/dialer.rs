//! Where and when an agent opens its next stream. Order of addresses is route.rs's.
//! It never gives up: a worker without coordinators goes on asking, with pauses.
//! Called by engine.rs.

use std::time::Duration;

use backon::ExponentialBackoff;

use crate::call::pauses;
use crate::endpoints::Endpoints;
use crate::error::{Error, NextStep};
use crate::route::{Route, Step, Tour};

/// Longest pause between two rounds over all coordinators.
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// Longest pause before a new session, when sessions end again and again soon after they began.
const NEW_SESSION_PAUSE_MAX: Duration = Duration::from_secs(5);

/// The way through the coordinators until one serves the session.
#[derive(Debug)]
pub(crate) struct Dialer {
    route: Route,
    tour: Tour,
    pauses: ExponentialBackoff,
    pause_min: Duration,
    pause: Duration,
    short_sessions: u32,
}

impl Dialer {
    pub(crate) fn new(endpoints: &Endpoints, pause_min: Duration) -> Self {
        let route = Route::new(endpoints.addresses());
        let tour = route.tour();
        let pauses = pauses(pause_min, PAUSE_MAX);
        Self { route, tour, pauses, pause_min, pause: Duration::ZERO, short_sessions: 0 }
    }

    /// The next address, and how long to wait before.
    pub(crate) fn next(&mut self) -> (Duration, String) {
        loop {
            match self.tour.step() {
                Step::Ask(address) => return (std::mem::take(&mut self.pause), address),
                Step::Wait => self.pause += self.pauses.next().unwrap_or(PAUSE_MAX),
            }
        }
    }

    /// This one serves the session.
    pub(crate) fn succeeded(&mut self, address: &str) {
        self.route.prefer(address);
        self.tour = self.route.tour();
        self.pauses = pauses(self.pause_min, PAUSE_MAX);
    }

    /// A session was served by this one and is not any more: it is asked last.
    pub(crate) fn broke(&mut self, address: &str, error: &Error) {
        self.route.forget(address);
        self.tour = self.route.tour();
        self.tour.skip(address);
        self.follow(address, error);
    }

    /// This one did not take the session.
    pub(crate) fn refused(&mut self, address: &str, error: &Error) {
        self.route.forget(address);
        self.follow(address, error);
    }

    /// A session ended. The first time at once, later ones with a growing pause: two processes
    /// under one name would otherwise replace each other without rest.
    pub(crate) fn session_ended(&mut self, was_short: bool) {
        self.short_sessions = if was_short { self.short_sessions + 1 } else { 0 };
        let doublings = self.short_sessions.saturating_sub(2).min(10);
        if self.short_sessions >= 2 {
            let pause = Duration::from_millis(100) * 2_u32.pow(doublings);
            self.pause += pause.min(NEW_SESSION_PAUSE_MAX);
        }
    }

    fn follow(&mut self, address: &str, error: &Error) {
        match error.next_step() {
            NextStep::Leader(leader) => self.tour.hint(leader),
            NextStep::Later => {
                self.tour.again(address.to_owned());
                self.pause += self.pauses.next().unwrap_or(PAUSE_MAX);
            }
            NextStep::Elsewhere { .. } | NextStep::Stop => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dialer() -> Dialer {
        let endpoints = "a:1,b:1,c:1".parse().expect("well formed");
        Dialer::new(&endpoints, Duration::from_millis(5))
    }

    #[test]
    fn the_one_that_broke_is_asked_last_and_pauses_come_between_rounds() {
        let mut dialer = dialer();
        dialer.succeeded("b:1");
        dialer.broke("b:1", &Error::unreachable("b:1", "gone"));
        assert_eq!(dialer.next(), (Duration::ZERO, "a:1".to_owned()));
        assert_eq!(dialer.next(), (Duration::ZERO, "c:1".to_owned()));
        let (pause, address) = dialer.next();
        assert!(pause >= Duration::from_millis(5), "{pause:?}");
        assert_eq!(address, "a:1");
    }

    #[test]
    fn only_repeated_short_sessions_wait() {
        let mut dialer = dialer();
        dialer.session_ended(true);
        assert_eq!(dialer.next().0, Duration::ZERO);
        dialer.session_ended(true);
        assert_eq!(dialer.next().0, Duration::from_millis(100));
        for _ in 0..20 {
            dialer.succeeded("a:1");
            dialer.session_ended(true);
            assert!(dialer.next().0 <= NEW_SESSION_PAUSE_MAX);
        }
        dialer.succeeded("a:1");
        dialer.session_ended(false);
        assert_eq!(dialer.next().0, Duration::ZERO);
    }
}
