//! How far a scene is: one line that is rewritten on a terminal, a line per quarter elsewhere. On standard error.

use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use relay_core::event::{CallId, Event};
use relay_core::{Lang, Moment};
use relay_sim::scene::{Board, Scene};

use crate::observe::{Notice, Observer};
use crate::terminal::{fitting, padded, size, width};
use crate::words::{demo, lang};

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
            Event::WaitStarted { .. } | Event::InLine { .. } | Event::HeldBack { .. } => {
                waiting.insert(call);
            }
            Event::SendStarted { .. } | Event::CallClosed(_) => _ = waiting.remove(&call),
            Event::CallOpened { .. }
            | Event::HeadArrived { .. }
            | Event::WayTaken { .. }
            | Event::FaultSeen { .. }
            | Event::NoticeGiven { .. }
            | Event::Moved { .. }
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
        let line = line(lang(), calls, view, in_episode);
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
        let lang = lang();
        let side = |board: &Board| padded(&demo::served(lang, board.served(), calls), SIDE);
        let (without, with) = (side(view.without), side(view.with));
        let took = demo::took(lang, &format!("{:.0}", took.as_secs_f64()));
        let words = demo::progress(lang, &name(lang, view), &without, &with, &took);
        self.quarter = 0;
        self.say(&words);
    }

    fn rewrite(&mut self, line: &str) {
        if line != self.shown {
            write(&format!("\r{}", padded(line, width(&self.shown))));
            line.clone_into(&mut self.shown);
        }
    }
}

fn done(board: &Board) -> usize {
    board.served() + board.failed()
}

/// The columns of a scene's name, and of each side.
const NAME: usize = 17;
const SIDE: usize = 20;

fn name(lang: Lang, view: &View<'_>) -> String {
    padded(&demo::scene(lang, view.scene.id, view.scene.name), NAME)
}

/// At most 79 columns: the last one would make some terminals begin a new line.
fn line(lang: Lang, calls: usize, view: &View<'_>, in_episode: bool) -> String {
    let side = |board: &Board, waiting: usize| {
        let done = format!("{}/{calls}", done(board));
        let words = match (board.failed(), waiting) {
            (0, 0) => done,
            (0, waiting) => demo::with_waiting(lang, &done, waiting),
            (failed, _) => demo::with_failed(lang, &done, failed),
        };
        padded(&words, SIDE)
    };
    let (without, with) = (side(view.without, 0), side(view.with, view.waiting.count()));
    let full = if in_episode { demo::full(lang) } else { String::new() };
    demo::progress(lang, &name(lang, view), &without, &with, &full).trim_end().to_owned()
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
            let line = |lang| line(lang, 100, &view, true);
            assert_eq!(line(Lang::English).len(), NAME + 8 + SIDE + 5 + SIDE + 4);
            assert_eq!(width(&line(Lang::Chinese)), NAME + 8 + SIDE + 5 + SIDE + 4);
        }
        assert!(width(&demo::with_failed(Lang::Chinese, "100/100", 100)) < SIDE);
        assert!("100/100, 100 failed".len() < 20);
    }
}
