//! How far a scene is: one line that is rewritten on a terminal, a line per quarter elsewhere. On standard error.

use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use relay_core::Moment;
use relay_core::event::{CallId, Event};
use relay_sim::scene::{Board, Scene};

use crate::observe::{Notice, Observer};
use crate::terminal::{fitting, size};

/// How often the line is looked at again.
pub(super) const EVERY: Duration = Duration::from_millis(100);

/// The calls that the relay holds until their next send.
#[derive(Debug, Default)]
pub(super) struct Waiting(Mutex<BTreeSet<CallId>>);

impl Waiting {
    fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl Observer for Waiting {
    fn see(&self, call: CallId, _at: Moment, event: &Event) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::WaitStarted { .. } | Event::InLine { .. } => drop(waiting.insert(call)),
            Event::SendStarted { .. } | Event::CallClosed(_) => drop(waiting.remove(&call)),
            Event::CallOpened { .. }
            | Event::HeadArrived { .. }
            | Event::FaultSeen { .. }
            | Event::NoticeGiven { .. }
            | Event::GrantTaken { .. }
            | Event::Committed { .. }
            | Event::StreamCut { .. } => {}
        }
    }

    fn notice(&self, _notice: &Notice) {}
}

/// What there is to see of a scene.
pub(super) struct View<'a> {
    pub(super) scene: &'a Scene,
    pub(super) without: &'a Board,
    pub(super) with: &'a Board,
    pub(super) waiting: &'a Waiting,
}

/// The line as it stands.
#[derive(Debug)]
pub(super) struct Progress {
    /// Whether the line is rewritten.
    live: bool,
    shown: String,
    quarter: usize,
}

impl Progress {
    /// Nothing shown yet.
    pub(super) fn new(live: bool) -> Self {
        Self { live, shown: String::new(), quarter: 0 }
    }

    /// A line that stays.
    pub(super) fn say(&mut self, words: &str) {
        if self.live {
            self.rewrite(words);
            self.shown.clear();
            write("\n");
        } else {
            write(&format!("{words}\n"));
        }
    }

    /// The scene as it is now.
    pub(super) fn show(&mut self, view: &View<'_>, in_episode: bool) {
        let (without, with) = (done(view.without), done(view.with));
        let calls = view.scene.asks.len();
        let line = line(view.scene.name, calls, view, in_episode);
        if self.live {
            return self.rewrite(fitting(&line, size().columns));
        }
        let quarter = without.min(with) * 4 / calls.max(1);
        if quarter > self.quarter && quarter < 4 {
            self.quarter = quarter;
            self.say(&line);
        }
    }

    /// The scene is over.
    pub(super) fn close(&mut self, view: &View<'_>, took: Duration) {
        let calls = view.scene.asks.len();
        let side = |board: &Board| format!("{} of {calls} served", board.served());
        let (without, with) = (side(view.without), side(view.with));
        let (name, took) = (view.scene.name, took.as_secs_f64());
        let words = format!("{name:<17}without {without:<20}with {with:<20}{took:.0} s");
        self.quarter = 0;
        self.say(&words);
    }

    fn rewrite(&mut self, line: &str) {
        if line != self.shown {
            let width = self.shown.chars().count();
            write(&format!("\r{line:<width$}"));
            line.clone_into(&mut self.shown);
        }
    }
}

fn done(board: &Board) -> usize {
    board.served() + board.failed()
}

/// At most 79 columns: the last one would make some terminals begin a new line.
fn line(name: &str, calls: usize, view: &View<'_>, in_episode: bool) -> String {
    let side = |board: &Board, waiting: usize| {
        let mut words = format!("{}/{calls}", done(board));
        if board.failed() > 0 {
            words.push_str(&format!(", {} failed", board.failed()));
        } else if waiting > 0 {
            words.push_str(&format!(", {waiting} waiting"));
        }
        words
    };
    let (without, with) = (side(view.without, 0), side(view.with, view.waiting.count()));
    let full = if in_episode { "full" } else { "" };
    format!("{name:<17}without {without:<20}with {with:<20}{full}").trim_end().to_owned()
}

/// A terminal that is gone cannot be told anything.
fn write(words: &str) {
    let mut out = io::stderr();
    let _unread = out.write_all(words.as_bytes()).and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;
    use relay_sim::scene;

    #[test]
    fn the_line_of_every_scene_fits_into_80_columns() {
        let (without, with, waiting) = (Board::default(), Board::default(), Waiting::default());
        for scene in scene::all(1, false) {
            let view = View { scene: &scene, without: &without, with: &with, waiting: &waiting };
            let line = line(scene.name, 100, &view, true);
            assert_eq!(line.len(), 17 + 8 + 20 + 5 + 20 + 4, "{line}");
        }
        assert!("100/100, 100 failed".len() < 20);
    }
}
