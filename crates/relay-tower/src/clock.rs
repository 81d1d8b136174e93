//! The only file that reads a clock or rolls dice; all other code is handed a [`Clock`] or a `Dice`.
//!
//! Tokio's timers, and no trait for others: a second kind of timer would be one more type for everybody who writes down
//! the type of a stack, for a runtime that next to nobody puts an HTTP client on. And a test can pause these. They stand
//! still while the machine sleeps, so a wait may end late by as long as it slept, and never early.

use std::future::Future;
use std::hash::{BuildHasher as _, RandomState};
use std::time::SystemTime;

use relay_core::{Moment, SeededDice};
use tokio::time::{Instant, sleep_until, timeout_at};

/// The time line of one call, which begins with it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    /// A time line that begins now.
    pub(crate) fn start() -> Self {
        Self { start: Instant::now() }
    }

    /// The present.
    pub(crate) fn now(&self) -> Moment {
        Moment::after_start(self.start.elapsed())
    }

    /// `None`: it never comes.
    fn instant(&self, at: Moment) -> Option<Instant> {
        self.start.checked_add(at.since_start())
    }

    /// Waits until then: a timer that fires before it is asked again.
    pub(crate) async fn sleep_until(&self, at: Moment) {
        while self.now() < at {
            match self.instant(at) {
                Some(instant) => sleep_until(instant).await,
                None => std::future::pending().await,
            }
        }
    }

    /// What comes of it by then; `None`: nothing came.
    pub(crate) async fn by<F: Future>(&self, at: Option<Moment>, what: F) -> Option<F::Output> {
        match at.and_then(|at| self.instant(at)) {
            Some(instant) => timeout_at(instant, what).await.ok(),
            None => Some(what.await),
        }
    }
}

/// The time of day, for whoever observes: milliseconds since 1970.
pub(crate) fn wall_ms() -> u64 {
    let since = wall().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The time of day, for the dates in headers. No wait is measured with it.
pub(crate) fn wall() -> SystemTime {
    #[expect(clippy::disallowed_methods, reason = "this is the file that reads clocks")]
    SystemTime::now()
}

/// Dice of their own for each call.
pub(crate) fn dice() -> SeededDice {
    // What the standard library draws for its hash maps, which is enough to keep calls from waiting in step.
    SeededDice::new(RandomState::new().hash_one("dice"))
}
