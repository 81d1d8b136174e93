//! The observer: takes events as they come and hands them to a thread, which gathers for a moment, puts them together
//! and writes. Nobody who makes an event waits for that; what finds no room is counted, and told of.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use relay_core::Moment;
use relay_core::event::{CallId, Event};
use tokio::sync::watch;

use super::Writer;
use super::assemble::Assembler;
use super::recent::{Known, Recent};
use super::record::CallRecord;
use crate::observe::{Notice, Observer};
use crate::priority;

/// The most events that wait to be put together; one takes some hundred bytes.
const ROOM: usize = 16 * 1024;
/// Where more wait, no further call is recorded: the rest of the room is for those that are, so that each is whole.
const CROWDED: usize = ROOM / 2;
/// How often a call is recorded, where more come: what it takes to record them all would be taken from those that are
/// answered. Agents ask some ten times in a second.
const EACH: Duration = Duration::from_millis(1);
/// So much earlier than that they may come: a batch of two thousand at once is recorded whole.
const AT_ONCE: Duration = Duration::from_secs(2);
/// How long the thread gathers after the first of them.
const GATHER: Duration = Duration::from_millis(100);
/// How long the end of the program waits for the last ones.
const LAST: Duration = Duration::from_secs(2);

/// One event, and when it happened.
struct Seen {
    call: CallId,
    at: Moment,
    event: Event,
}

/// What the thread is told.
#[derive(Default)]
struct Queue {
    events: Vec<Seen>,
    /// Open calls that are not recorded.
    left_out: BTreeSet<CallId>,
    /// When the next call is due, were they to come one by one.
    due: Moment,
    ends: bool,
    /// Somebody waits for what is there: it is gathered for no longer.
    hurries: bool,
    /// How often something was taken out.
    taken: u64,
}

impl Queue {
    /// Whether this event is recorded. Of a call all are, or none, as long as there is room at all.
    fn takes(&mut self, call: CallId, at: Moment, event: &Event) -> bool {
        let waiting = self.events.len();
        if matches!(event, Event::CallOpened { .. }) {
            if waiting >= CROWDED || self.due > at + AT_ONCE {
                self.left_out.insert(call);
            } else {
                self.due = self.due.max(at) + EACH;
            }
        }
        let is_recorded = self.left_out.is_empty() || !self.left_out.contains(&call);
        if !is_recorded && matches!(event, Event::CallClosed(_)) {
            self.left_out.remove(&call);
        }
        is_recorded && waiting < ROOM && !self.ends
    }
}

#[derive(Default)]
struct Line {
    queue: Mutex<Queue>,
    news: Condvar,
    /// Events that found no room, or belong to calls beyond those that are kept in mind.
    lost: AtomicU64,
    /// What is in the way of writing.
    trouble: Mutex<Option<String>>,
}

impl Line {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_trouble(&self, trouble: Option<String>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    /// What came, after the time to gather: nothing, where nothing comes for so long. `None`: it is over.
    fn take(&self, most: Option<Duration>) -> Option<Vec<Seen>> {
        let nothing = |queue: &mut Queue| queue.events.is_empty() && !queue.ends;
        let queue = self.queue();
        let mut queue = match most {
            Some(most) => {
                self.news.wait_timeout_while(queue, most, nothing).unwrap_or_else(PoisonError::into_inner).0
            }
            None => self.news.wait_while(queue, nothing).unwrap_or_else(PoisonError::into_inner),
        };
        if !nothing(&mut queue) {
            let gathers = |queue: &mut Queue| !queue.ends && !queue.hurries && queue.events.len() < CROWDED;
            let gathered = self.news.wait_timeout_while(queue, GATHER, gathers);
            queue = gathered.unwrap_or_else(PoisonError::into_inner).0;
        }
        let events = std::mem::take(&mut queue.events);
        queue.hurries = false;
        queue.taken += 1;
        (!events.is_empty() || !queue.ends).then_some(events)
    }
}

/// How often what was taken out of the line was dealt with.
#[derive(Clone, Copy, Default)]
struct DoneWith {
    /// Put where those see it who look at the relay.
    put: u64,
    /// Written to the file, as far as that can be.
    written: u64,
}

/// Records calls; an observer.
pub struct Recorder {
    line: Arc<Line>,
    recent: Arc<Recent>,
    /// The number of the run in the history, where it is written.
    run: Option<i64>,
    done_with: watch::Receiver<DoneWith>,
    /// Ends with the thread.
    done: Mutex<Receiver<()>>,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Recorder ({} events lost)", self.lost())
    }
}

impl Recorder {
    /// Begins to record, to memory and by `writer`.
    ///
    /// # Errors
    /// Where the system gives no thread for it.
    pub fn start(mut writer: Writer) -> std::io::Result<Self> {
        let (line, recent) = (Arc::<Line>::default(), Arc::<Recent>::default());
        let (taken, put) = (Arc::clone(&line), Arc::clone(&recent));
        let (alive, done) = channel::<()>();
        let (told, done_with) = watch::channel(DoneWith::default());
        line.set_trouble(writer.trouble());
        let run = writer.run();
        std::thread::Builder::new().name("history".to_owned()).spawn(move || {
            let _alive = alive;
            priority::give_way();
            let mut assembler = Assembler::default();
            while let Some(events) = taken.take(writer.next_try()) {
                let unknown = events.iter().filter(|seen| !assembler.see(seen.call, seen.at, &seen.event));
                let unknown = unknown.count() as u64;
                taken.lost.fetch_add(unknown, Ordering::Relaxed);
                let run = writer.run();
                let known = |record| Known::of(CallRecord { run, ..record });
                let changed: Vec<_> = assembler.take_changed().into_iter().map(known).collect();
                // First: a file that is locked or slow must not keep those waiting who look at the relay.
                put.put(&changed);
                told.send_modify(|done| done.put += 1);
                taken.lost.fetch_add(writer.write(changed), Ordering::Relaxed);
                told.send_modify(|done| done.written += 1);
                taken.set_trouble(writer.trouble());
            }
            writer.end();
        })?;
        Ok(Self { line, recent, run, done_with, done: Mutex::new(done) })
    }

    /// The last calls.
    #[must_use]
    pub const fn recent(&self) -> &Arc<Recent> {
        &self.recent
    }

    /// The number of the run in the history, where it is written.
    #[must_use]
    pub const fn run(&self) -> Option<i64> {
        self.run
    }

    /// Waits until all that has happened is in memory, so that who asks right after a call learns its end.
    pub async fn settled(&self) {
        self.until(|done| done.put).await;
    }

    /// Waits until all that has happened is in the file, too, for who reads that next.
    pub async fn written(&self) {
        self.until(|done| done.written).await;
    }

    async fn until(&self, times: impl Fn(&DoneWith) -> u64) {
        let due = {
            let mut queue = self.line.queue();
            if !queue.events.is_empty() {
                queue.hurries = true;
            }
            queue.taken + u64::from(!queue.events.is_empty())
        };
        self.line.news.notify_all();
        let mut done = self.done_with.clone();
        let all = done.wait_for(|done| times(done) >= due);
        // Nobody waits for long.
        let _in_time = tokio::time::timeout(LAST, all).await;
    }

    /// How many events were not recorded.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.line.lost.load(Ordering::Relaxed)
    }

    /// Writes what is left, as far as that takes a moment only.
    pub fn close(&self) {
        if std::mem::replace(&mut self.line.queue().ends, true) {
            return;
        }
        self.line.news.notify_all();
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        match done.recv_timeout(LAST) {
            // Written, or stuck: either way the program ends now.
            Ok(()) | Err(RecvTimeoutError::Disconnected | RecvTimeoutError::Timeout) => {}
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.close();
    }
}

impl Observer for Recorder {
    fn see(&self, call: CallId, at: Moment, event: &Event) {
        let mut queue = self.line.queue();
        if !queue.takes(call, at, event) {
            drop(queue);
            self.line.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let waiting = queue.events.len();
        queue.events.push(Seen { call, at, event: event.clone() });
        drop(queue);
        if waiting == 0 || waiting == CROWDED {
            self.line.news.notify_one();
        }
    }

    fn notice(&self, _notice: &Notice) {}

    fn file(&self) -> Option<(&'static str, Option<String>)> {
        let trouble = self.line.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Some(("history", trouble))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::tests::{opened, served};

    fn seen(call: CallId, event: Event) -> Seen {
        Seen { call, at: Moment::ZERO, event }
    }

    #[test]
    fn of_a_crowd_that_is_too_fast_calls_are_whole_or_not_there() {
        let mut queue = Queue::default();
        let at = |number: u64| Moment::ZERO + EACH * u32::try_from(number).unwrap();
        let mut put = |number: u64, event: Event| {
            // One by one, so that it is the room that they lack.
            let takes = queue.takes(CallId(number), at(number), &event);
            if takes {
                queue.events.push(seen(CallId(number), event));
            }
            takes
        };
        let open: Vec<u64> = (0..ROOM as u64).filter(|number| put(*number, opened())).collect();
        assert_eq!(open.len(), CROWDED);
        assert!(open.iter().all(|number| put(*number, served(1, 1))));
        assert!(!put(0, Event::SendStarted { send: 2 }), "there is no more room at all");
        queue.events.clear();
        let left_out = CallId(ROOM as u64 - 1);
        let at = at(left_out.0);
        assert!(!queue.takes(left_out, at, &Event::SendStarted { send: 1 }), "of this one nothing is told");
        assert!(!queue.takes(left_out, at, &served(1, 1)));
        assert!(queue.takes(left_out, at, &opened()), "it is over, and forgotten");
    }

    #[test]
    fn of_a_flood_a_thousand_calls_in_a_second_are_recorded_each_of_them_whole() {
        let mut queue = Queue::default();
        let (mut recorded, mut number) = ([0, 0, 0], 0);
        // Thirty thousand calls in three seconds, and then nothing for a while.
        for (second, recorded) in recorded.iter_mut().enumerate() {
            for nth in 0..10_000 {
                let at = Moment::ZERO + Duration::from_secs(second as u64) + Duration::from_micros(100) * nth;
                number += 1;
                let is_recorded = queue.takes(CallId(number), at, &opened());
                assert_eq!(queue.takes(CallId(number), at, &served(1, 1)), is_recorded);
                *recorded += u32::from(is_recorded);
            }
        }
        assert_eq!(recorded, [3000, 1000, 1000]);
        assert!(queue.left_out.is_empty(), "none of them is open");
        let later = Moment::ZERO + Duration::from_secs(9);
        let again = (0..5000).filter(|more| queue.takes(CallId(number + 1 + more), later, &opened()));
        assert_eq!(again.count(), 2001);
    }
}
