//! The only file that reads a clock or rolls real dice; all other code is handed a [`Clock`] or a `Dice`.
//!
//! A relay on a laptop sleeps with it. So time here includes the sleep of the machine, and a wait never trusts a
//! timer for longer than a few seconds: it looks at the clock again, and a wait that ended during sleep ends now.

use std::fmt;
use std::future::Future as _;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use relay_core::{Dice, Moment};

/// A span in seconds, to the tenth, as people and programs are told it.
pub(crate) fn tenths(span: Duration) -> f64 {
    (span.as_secs_f64() * 10.0).round() / 10.0
}

/// A source of time.
pub trait Clock: Send + Sync {
    /// The present on the relay's own time line, which runs on while the machine sleeps.
    fn now(&self) -> Moment;

    /// The time of day, for dates in headers and logs. It may jump: no wait is measured with it.
    fn wall(&self) -> SystemTime;

    /// How long a span of this clock takes outside.
    fn real(&self, span: Duration) -> Duration {
        span
    }
}

/// The time of day in milliseconds since 1970.
#[must_use]
pub fn wall_ms(clock: &dyn Clock) -> u64 {
    let since = clock.wall().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The longest that a wait goes without a look at the clock.
const LONGEST_NAP: Duration = Duration::from_secs(5);

/// Waits until `clock` shows `until`. After a sleep of the machine it is late by at most five seconds.
pub async fn sleep_until(clock: &dyn Clock, until: Moment) {
    loop {
        let left = until.since(clock.now());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(clock.real(left).min(LONGEST_NAP)).await;
    }
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Moment {
        Moment::after_start(platform::since_some_start())
    }

    fn wall(&self) -> SystemTime {
        #[expect(clippy::disallowed_methods, reason = "this is the file that reads clocks")]
        SystemTime::now()
    }
}

/// Tokio's clock, which a test can pause and move. Its time of day starts where it is told to.
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    start: tokio::time::Instant,
    wall_at_start: SystemTime,
}

impl TokioClock {
    /// A clock that starts now, at the time of day `wall`.
    #[must_use]
    pub fn starting_at(wall: SystemTime) -> Self {
        Self { start: tokio::time::Instant::now(), wall_at_start: wall }
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Moment {
        Moment::after_start(self.start.elapsed())
    }

    fn wall(&self) -> SystemTime {
        self.wall_at_start + self.start.elapsed()
    }
}

/// A clock that goes so many times faster than another: hours of waiting pass in minutes.
pub struct RatedClock {
    inner: Arc<dyn Clock>,
    rate: NonZeroU32,
    start: Moment,
    wall_at_start: SystemTime,
}

impl RatedClock {
    /// A clock that shows the same as `inner` now, and goes faster from now on.
    #[must_use]
    pub fn new(inner: Arc<dyn Clock>, rate: NonZeroU32) -> Self {
        Self { start: inner.now(), wall_at_start: inner.wall(), inner, rate }
    }

    fn since_start(&self) -> Duration {
        self.inner.now().since(self.start).saturating_mul(self.rate.get())
    }
}

impl Clock for RatedClock {
    fn now(&self) -> Moment {
        self.start + self.since_start()
    }

    fn wall(&self) -> SystemTime {
        // The last time of day there is stays: no clock goes on behind it.
        self.wall_at_start.checked_add(self.since_start()).unwrap_or(self.wall_at_start)
    }

    fn real(&self, span: Duration) -> Duration {
        self.inner.real(span / self.rate.get())
    }
}

impl fmt::Debug for RatedClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RatedClock").field("rate", &self.rate).finish_non_exhaustive()
    }
}

/// Real dice.
#[derive(Clone, Default)]
pub struct RealDice(fastrand::Rng);

/// A number that no other relay is likely to draw.
pub(crate) fn drawn() -> u64 {
    fastrand::u64(..)
}

impl Dice for RealDice {
    fn share(&mut self) -> f64 {
        self.0.f64()
    }
}

impl fmt::Debug for RealDice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RealDice")
    }
}

/// The one clock of each system that counts the sleep of the machine.
mod platform {
    use std::time::Duration;

    #[cfg(unix)]
    pub(super) fn since_some_start() -> Duration {
        use rustix::time::ClockId;
        // Linux stops CLOCK_MONOTONIC during sleep and has a clock of its own that goes on; macOS goes on.
        #[cfg(any(target_os = "linux", target_os = "android"))]
        const COUNTS_SLEEP: ClockId = ClockId::Boottime;
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        const COUNTS_SLEEP: ClockId = ClockId::Monotonic;

        let time = rustix::time::clock_gettime(COUNTS_SLEEP);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
        Duration::new(seconds, nanos)
    }

    #[cfg(not(unix))]
    #[expect(
        clippy::disallowed_types,
        clippy::disallowed_methods,
        reason = "this is the file that reads clocks"
    )]
    pub(super) fn since_some_start() -> Duration {
        use std::sync::OnceLock;
        use std::time::Instant;
        // On Windows an `Instant` goes on during sleep.
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn the_system_clock_does_not_go_back() {
        let first = SystemClock.now();
        assert!(first > Moment::ZERO);
        assert!(SystemClock.now() >= first);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_ends_at_its_moment_and_not_before() {
        let clock = TokioClock::starting_at(SystemTime::UNIX_EPOCH);
        sleep_until(&clock, Moment::after_start(Duration::from_secs(17))).await;
        assert_eq!(clock.now().since_start().as_secs(), 17);
        assert_eq!(clock.wall(), SystemTime::UNIX_EPOCH + clock.now().since_start());
    }

    #[tokio::test(start_paused = true)]
    async fn a_rated_clock_waits_as_much_less_as_it_goes_faster() {
        let outside = TokioClock::starting_at(SystemTime::UNIX_EPOCH);
        tokio::time::sleep(Duration::from_secs(3)).await;
        let clock = RatedClock::new(Arc::new(outside), NonZeroU32::new(10).unwrap());
        let start = clock.now();
        assert_eq!(start, outside.now(), "it begins where the other stands");
        sleep_until(&clock, start + Duration::from_secs(600)).await;
        assert_eq!(outside.now().since(start).as_secs(), 60);
        assert_eq!(clock.now().since(start).as_secs(), 600);
        assert_eq!(clock.wall(), SystemTime::UNIX_EPOCH + clock.now().since_start());
        assert_eq!(clock.real(Duration::from_secs(25)), Duration::from_millis(2500));
        assert_eq!(outside.real(Duration::from_secs(25)), Duration::from_secs(25));
        let twice = RatedClock::new(Arc::new(clock), NonZeroU32::new(2).unwrap());
        assert_eq!(twice.real(Duration::from_secs(20)), Duration::from_secs(1));
    }

    /// A clock that jumps an hour ahead between two looks, as it does when the machine slept.
    struct Sleeper(AtomicU64);

    impl Clock for Sleeper {
        fn now(&self) -> Moment {
            Moment::after_start(Duration::from_secs(3600 * self.0.fetch_add(1, Ordering::Relaxed)))
        }

        fn wall(&self) -> SystemTime {
            SystemTime::UNIX_EPOCH
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_ended_while_the_machine_slept_ends_at_the_next_look() {
        let began = tokio::time::Instant::now();
        sleep_until(&Sleeper(AtomicU64::new(0)), Moment::after_start(Duration::from_secs(1800))).await;
        assert!(began.elapsed() <= LONGEST_NAP + Duration::from_millis(10));
    }

    #[test]
    fn real_dice_stay_inside_the_unit_interval() {
        let mut dice = RealDice::default();
        assert!((0..1000).all(|_| (0.0..1.0).contains(&dice.share())));
    }
}

/// The time limit of something that must show life again and again.
///
/// A process that was stopped, or a machine that slept, finds its timers run out before it has read what arrived
/// meanwhile. So a limit that is noticed late does not hold: it starts anew, once, and what is in the socket is
/// read first.
///
/// Life is seen far more often than it is missed, so it costs a look at the clock and no more: the timer is set when
/// somebody waits, and when it fires it is set anew for what is left.
#[derive(Debug)]
pub struct IdleLimit {
    span: Duration,
    until: tokio::time::Instant,
    timer: Option<std::pin::Pin<Box<tokio::time::Sleep>>>,
}

fn until(span: Duration) -> tokio::time::Instant {
    tokio::time::Instant::now() + span
}

/// A timer that fires later than this was not watched when it should have.
const LATE: Duration = Duration::from_millis(100);

impl IdleLimit {
    /// A limit of `span`, from now.
    #[must_use]
    pub fn new(span: Duration) -> Self {
        Self { span, until: until(span), timer: None }
    }

    /// Life was seen: the limit counts from now.
    pub fn restart(&mut self) {
        self.until = until(self.span);
    }

    /// Ready when nothing was seen for the whole span while somebody looked.
    pub fn poll_passed(&mut self, cx: &mut std::task::Context<'_>) -> std::task::Poll<()> {
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(self.until)));
        loop {
            std::task::ready!(timer.as_mut().poll(cx));
            let now = tokio::time::Instant::now();
            let is_late = now.duration_since(timer.deadline()) >= LATE;
            if now >= self.until && !is_late {
                return std::task::Poll::Ready(());
            }
            if now >= self.until {
                self.until = until(self.span);
            }
            timer.as_mut().reset(self.until);
        }
    }

    /// Waits for the same.
    pub async fn passed(&mut self) {
        std::future::poll_fn(|cx| self.poll_passed(cx)).await;
    }
}
