//! The lines of a terminal that are rewritten in place: one for each lane that is shut, or at which calls wait.
//! Without any call nothing happens here; the lines of the log go through the same [`Screen`].
//!
//! ```text
//!  calls, changes --> thread, once a second --> lanes, as they are now --> words --> screen <-- lines of the log
//! ```

mod screen;
mod words;

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use relay_core::gate::View;

pub(super) use self::screen::Screen;
use super::LaneName;
use crate::clock::Clock;

/// How often lanes are looked at.
const EVERY: Duration = Duration::from_secs(1);
/// How often where something is due soon.
const OFTEN: Duration = Duration::from_millis(500);
/// What changes all the time is drawn no more often than this.
const AT_MOST: Duration = Duration::from_millis(100);
/// How long the end of the program waits until the lines are gone.
const LAST: Duration = Duration::from_secs(2);

/// Draws the lines, on a thread of its own: a terminal can stand still.
#[derive(Debug)]
pub(super) struct Live {
    shared: Arc<Shared>,
    /// Ends with the thread.
    done: Mutex<Receiver<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    told: Mutex<Told>,
    news: Condvar,
}

/// What the thread is told.
#[derive(Debug, Default)]
struct Told {
    /// How many calls are open: without any, none waits.
    calls: usize,
    /// A lane shut or opened.
    changed: bool,
    ended: bool,
}

/// Where it looks.
pub(super) struct Sources {
    pub(super) clock: Arc<dyn Clock>,
    /// The lanes as they are now.
    pub(super) lanes: Box<dyn Fn() -> Vec<(LaneName, View)> + Send>,
    /// Whether anything is to be shown.
    pub(super) wanted: Box<dyn Fn() -> bool + Send>,
}

impl Live {
    /// Begins to look, with so many open calls.
    pub(super) fn start<W: Write + Send + 'static>(
        screen: Arc<Mutex<Screen<W>>>,
        sources: Sources,
        calls: usize,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        shared.told().calls = calls;
        let (alive, done) = channel::<()>();
        let told = Arc::clone(&shared);
        std::thread::Builder::new().name("live".to_owned()).spawn(move || {
            let _alive = alive;
            told.draw(&screen, &sources);
        })?;
        Ok(Self { shared, done: Mutex::new(done) })
    }

    /// So many calls are open.
    pub(super) fn calls(&self, calls: usize) {
        self.shared.told().calls = calls;
        self.shared.news.notify_one();
    }

    /// A lane shut or opened.
    pub(super) fn changed(&self) {
        self.shared.told().changed = true;
        self.shared.news.notify_one();
    }

    /// Takes the lines away.
    pub(super) fn close(&self) {
        self.shared.told().ended = true;
        self.shared.news.notify_one();
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        match done.recv_timeout(LAST) {
            // Gone, or stuck: either way the program ends now.
            Ok(()) | Err(RecvTimeoutError::Disconnected | RecvTimeoutError::Timeout) => {}
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn draw<W: Write>(&self, screen: &Mutex<Screen<W>>, sources: &Sources) {
        let show = |lines| {
            // A terminal that is gone cannot be told anything.
            let _unread = screen.lock().unwrap_or_else(PoisonError::into_inner).show(lines);
        };
        let mut pause = None;
        while self.wait(pause) {
            let lanes = if (sources.wanted)() { (sources.lanes)() } else { Vec::new() };
            let now = sources.clock.now();
            let lines = words::lines(crate::words::lang(), &lanes, now);
            pause = (!lines.is_empty()).then(|| if words::is_due_soon(&lanes, now) { OFTEN } else { EVERY });
            show(lines);
        }
        show(Vec::new());
    }

    /// Waits until it is time to look again: after a pause, or where nothing is shown until there are calls; sooner
    /// after a change. `false`: it is over.
    fn wait(&self, pause: Option<Duration>) -> bool {
        let mut told = self.told();
        let pause = pause.or_else(|| (told.calls > 0).then_some(EVERY));
        let rests = |told: &mut Told| !told.ended && !told.changed;
        told = match pause {
            Some(pause) => {
                let waited = self.news.wait_timeout_while(told, pause, rests);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            None => {
                let waited = self.news.wait_while(told, |told| rests(told) && told.calls == 0);
                waited.unwrap_or_else(PoisonError::into_inner)
            }
        };
        let waited = self.news.wait_timeout_while(told, AT_MOST, |told| !told.ended);
        told = waited.unwrap_or_else(PoisonError::into_inner).0;
        told.changed = false;
        !told.ended
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::SystemTime;

    use relay_core::Moment;

    use super::screen::tests::Paper;
    use super::words::tests::{at_capacity, named};
    use super::*;
    use crate::terminal::Size;

    /// A clock that stands still.
    struct Still;

    impl Clock for Still {
        fn now(&self) -> Moment {
            Moment::ZERO
        }

        fn wall(&self) -> SystemTime {
            SystemTime::UNIX_EPOCH
        }
    }

    /// What is seen of a live line, and how its lanes are changed.
    struct Seen {
        paper: Paper,
        screen: Arc<Mutex<Screen<Paper>>>,
        lanes: Arc<Mutex<Vec<(LaneName, View)>>>,
        looks: Arc<AtomicUsize>,
        wanted: Arc<Mutex<bool>>,
        live: Live,
    }

    impl Seen {
        fn start() -> Self {
            let paper = Paper::default();
            let screen = Arc::new(Mutex::new(Screen::on(paper.clone(), Size::default)));
            let lanes = Arc::new(Mutex::new(Vec::new()));
            let looks = Arc::new(AtomicUsize::new(0));
            let wanted = Arc::new(Mutex::new(true));
            let (looked_at, looked, want) = (Arc::clone(&lanes), Arc::clone(&looks), Arc::clone(&wanted));
            let sources = Sources {
                clock: Arc::new(Still),
                lanes: Box::new(move || {
                    looked.fetch_add(1, Ordering::Relaxed);
                    looked_at.lock().unwrap().clone()
                }),
                wanted: Box::new(move || *want.lock().unwrap()),
            };
            let live = Live::start(Arc::clone(&screen), sources, 0).unwrap();
            Self { paper, screen, lanes, looks, wanted, live }
        }

        /// Waits until the terminal shows this.
        fn shows(&self, rows: &[&str]) {
            for _ in 0..2000 {
                if self.paper.rows() == rows {
                    return;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            assert_eq!(self.paper.rows(), rows);
        }
    }

    #[test]
    fn the_lines_stand_below_the_log_and_go_when_the_lanes_open() {
        let seen = Seen::start();
        *seen.lanes.lock().unwrap() = vec![(named("gpt-x"), at_capacity(6))];
        seen.live.changed();
        let line = "gpt-x at api.example: at capacity, 6 waiting";
        seen.shows(&[line]);
        seen.screen.lock().unwrap().line("[retry] send=2").unwrap();
        seen.shows(&["[retry] send=2", line]);
        seen.lanes.lock().unwrap().clear();
        // Seen without being told.
        seen.shows(&["[retry] send=2", ""]);
        // Where there is none, a call is enough to look.
        *seen.lanes.lock().unwrap() = vec![(named("gpt-x"), at_capacity(6))];
        seen.live.calls(1);
        seen.shows(&["[retry] send=2", line]);
        // A log that is silenced silences this too.
        *seen.wanted.lock().unwrap() = false;
        seen.live.changed();
        seen.shows(&["[retry] send=2", ""]);
        *seen.wanted.lock().unwrap() = true;
        seen.live.changed();
        seen.shows(&["[retry] send=2", line]);
        seen.live.close();
        assert_eq!(seen.paper.rows(), ["[retry] send=2", ""]);
    }

    #[test]
    fn without_calls_nobody_looks() {
        let seen = Seen::start();
        std::thread::sleep(3 * AT_MOST);
        assert_eq!(seen.looks.load(Ordering::Relaxed), 0);
        seen.live.close();
        assert_eq!(seen.paper.written(), "");
    }

    #[test]
    fn a_terminal_that_stands_still_holds_nobody_up() {
        let seen = Seen::start();
        *seen.lanes.lock().unwrap() = vec![(named("gpt-x"), at_capacity(6))];
        let held = seen.screen.lock().unwrap();
        for calls in 0..1000 {
            seen.live.calls(calls);
            seen.live.changed();
        }
        drop(held);
        seen.shows(&["gpt-x at api.example: at capacity, 6 waiting"]);
        assert!(seen.looks.load(Ordering::Relaxed) < 10);
    }
}
