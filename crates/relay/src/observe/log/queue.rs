//! A bounded queue in front of something that may be slow: a full disk, a pipe that nobody reads. Whoever logs
//! never waits. What finds no room, or cannot be written, is counted, and the count is written once that is
//! possible again.
//!
//! ```text
//! push --> queue --> thread --> sink
//!    \--full--> lost  <--failed--/     the next line that is written is preceded by "N lines were lost"
//! ```

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::priority;

/// Lines that may wait to be written. A line is some hundred bytes.
const ROOM: usize = 1024;
/// How long the end of the program waits for the last lines.
const LAST: Duration = Duration::from_secs(2);

/// Where lines end up.
pub(super) trait Sink: Send + 'static {
    /// Writes one line and its end, or nothing of it.
    fn write(&mut self, line: &str) -> io::Result<()>;
}

/// What could not be written.
#[derive(Debug, Default)]
struct Losses {
    lines: AtomicU64,
    /// What the system said of the last line, where that failed.
    trouble: Mutex<Option<String>>,
}

impl Losses {
    fn set(&self, trouble: Option<String>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }
}

/// The queue, and the thread that empties it.
#[derive(Debug)]
pub(super) struct Queue {
    lines: Mutex<Option<SyncSender<String>>>,
    losses: Arc<Losses>,
    /// Ends with the thread.
    done: Mutex<Receiver<()>>,
}

impl Queue {
    /// Begins to write. `told` makes the line that tells how many were lost.
    pub(super) fn start(
        mut sink: impl Sink,
        told: impl Fn(u64) -> String + Send + 'static,
    ) -> io::Result<Self> {
        let (lines, waiting) = sync_channel::<String>(ROOM);
        let (alive, done) = channel::<()>();
        let losses = Arc::<Losses>::default();
        let counted = Arc::clone(&losses);
        std::thread::Builder::new().name("log".to_owned()).spawn(move || {
            let _alive = alive;
            priority::give_way();
            for line in waiting {
                write(&mut sink, &line, &counted, &told);
            }
            // The last word, where there was no line to say it before.
            let left = counted.lines.swap(0, Ordering::Relaxed);
            if left > 0 {
                let _nobody_to_tell = sink.write(&told(left));
            }
        })?;
        Ok(Self { lines: Mutex::new(Some(lines)), losses, done: Mutex::new(done) })
    }

    /// Hands over a line; never waits for it to be written.
    pub(super) fn push(&self, line: String) {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.as_ref().is_none_or(|lines| lines.try_send(line).is_err()) {
            self.losses.lines.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What is in the way of writing, where the last line failed.
    pub(super) fn trouble(&self) -> Option<String> {
        self.losses.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes no more lines, and waits a moment until those that were handed over are written.
    pub(super) fn close(&self) {
        if self.lines.lock().unwrap_or_else(PoisonError::into_inner).take().is_none() {
            return;
        }
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        match done.recv_timeout(LAST) {
            // Written, or stuck: either way the program ends now.
            Ok(()) | Err(RecvTimeoutError::Disconnected | RecvTimeoutError::Timeout) => {}
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.close();
    }
}

fn write(sink: &mut impl Sink, line: &str, losses: &Losses, told: &impl Fn(u64) -> String) {
    let missing = losses.lines.swap(0, Ordering::Relaxed);
    let mut written = if missing == 0 { Ok(()) } else { sink.write(&told(missing)) };
    if written.is_err() {
        losses.lines.fetch_add(missing, Ordering::Relaxed);
    } else {
        written = sink.write(line);
    }
    // Where even the count could not be written, the line need not be tried.
    if written.is_err() {
        losses.lines.fetch_add(1, Ordering::Relaxed);
    }
    losses.set(written.err().map(|error| error.to_string()));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps what is written; a test lets it fail, or stand still.
    #[derive(Clone, Default)]
    struct Paper {
        lines: Arc<Mutex<Vec<String>>>,
        full: Arc<Mutex<bool>>,
    }

    impl Sink for Paper {
        fn write(&mut self, line: &str) -> io::Result<()> {
            if *self.full.lock().unwrap() {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.lines.lock().unwrap().push(line.to_owned());
            Ok(())
        }
    }

    fn told(lost: u64) -> String {
        format!("{lost} lost")
    }

    #[test]
    fn all_lines_are_written_in_order() {
        let paper = Paper::default();
        let queue = Queue::start(paper.clone(), told).unwrap();
        for n in 0..100 {
            queue.push(n.to_string());
        }
        queue.close();
        let expected: Vec<_> = (0..100).map(|n| n.to_string()).collect();
        assert_eq!(*paper.lines.lock().unwrap(), expected);
    }

    #[test]
    fn a_full_disk_costs_lines_that_are_counted_and_told_when_there_is_room() {
        let mut paper = Paper::default();
        let losses = Losses::default();
        let mut try_line = |line: &str, full: bool| {
            *paper.full.lock().unwrap() = full;
            write(&mut paper, line, &losses, &told);
            assert_eq!(losses.trouble.lock().unwrap().is_some(), full);
            paper.lines.lock().unwrap().clone()
        };
        assert_eq!(try_line("a", false), ["a"]);
        try_line("b", true);
        assert_eq!(try_line("c", true), ["a"]);
        assert_eq!(try_line("d", false), ["a", "2 lost", "d"]);
        assert_eq!(try_line("e", false), ["a", "2 lost", "d", "e"]);
    }

    #[test]
    fn a_sink_that_stands_still_slows_nobody() {
        let paper = Paper::default();
        let held = paper.full.lock().unwrap();
        let queue = Queue::start(paper.clone(), told).unwrap();
        // One more than there is room for may be in the hands of the thread.
        for _ in 0..ROOM + 11 {
            queue.push("x".to_owned());
        }
        assert!((10..=11).contains(&queue.losses.lines.load(Ordering::Relaxed)));
        drop(held);
        queue.close();
        let lines = paper.lines.lock().unwrap();
        assert!(lines.iter().any(|line| line == "10 lost" || line == "11 lost"), "{}", lines.len());
    }
}
