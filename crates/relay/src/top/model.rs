//! What `top` shows: what the relay told, what was asked for by keys, and what that makes of it. Pure: the time is handed
//! in, and what has to be done outside comes back as [`Asked`].

use std::collections::BTreeMap;
use std::time::Duration;

use relay_core::{Lang, Moment};

use super::cursor::{Cursor, Step};
use super::feed::{News, Seen};
use super::layout::{self, Size};
use super::page::{Calls, Lane, Page};
use super::rows::{self, Now, Present, Row, Sort, View};
use super::text;
use crate::history::record::CallRecord;
use crate::running::Who;

/// The most calls that are kept: as many as a relay keeps in its memory.
pub const MOST: usize = 2_000;
/// The longest filter.
const LONGEST_FILTER: usize = 60;

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are named as keys are")]
pub enum Key {
    Char(char),
    Enter,
    Esc,
    Backspace,
    Tab,
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-Z.
    Suspend,
    /// Ctrl-U.
    Clear,
    /// Ctrl-L.
    Redraw,
}

/// What a key asks of the surroundings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// Nothing.
    Nothing,
    /// To leave.
    Leave,
    /// To leave as one who is interrupted.
    Interrupted,
    /// To give the terminal back until it goes on.
    Suspend,
    /// To draw all of it anew.
    Redraw,
    /// To go on asking the relay, or not.
    Pause(bool),
}

/// Whether the relay answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Link {
    Up,
    /// Who is there instead, and when it is asked again.
    Lost {
        who: Who,
        next: Moment,
    },
}

/// Which list the keys move in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Focus {
    Lanes,
    Calls,
}

/// What is in front.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mode {
    List,
    /// A filter is typed; so it was before.
    Filter {
        before: String,
    },
    /// A call, from this line on.
    Details {
        call: u64,
        scroll: usize,
    },
    /// The keys, from this line on, above what was in front before.
    Help {
        scroll: usize,
        below: Box<Self>,
    },
}

/// The model.
#[derive(Debug)]
pub struct Model {
    pub(super) lang: Lang,
    pub(super) address: String,
    pub(super) page: Page,
    pub(super) present: Present,
    /// When the relay answered last.
    pub(super) seen: Now,
    pub(super) link: Link,
    pub(super) calls: BTreeMap<u64, CallRecord>,
    /// Whether the relay tells of calls at all.
    pub(super) has_calls: bool,
    pub(super) mode: Mode,
    pub(super) focus: Focus,
    pub(super) view: View,
    pub(super) sort: Sort,
    pub(super) filter: String,
    /// The id of the lane whose calls alone are listed.
    pub(super) lane: Option<String>,
    pub(super) paused: Option<Now>,
    chosen_call: Cursor<u64>,
    chosen_lane: Cursor<String>,
    pub(super) size: Size,
}

impl Model {
    /// Of the relay at this address, before it has told anything.
    #[must_use]
    pub fn new(lang: Lang, address: String, now: Now) -> Self {
        Self {
            lang,
            address,
            page: Page::default(),
            present: Present::default(),
            seen: now,
            link: Link::Up,
            calls: BTreeMap::new(),
            has_calls: true,
            mode: Mode::List,
            focus: Focus::Calls,
            view: View::default(),
            sort: Sort::default(),
            filter: String::new(),
            lane: None,
            paused: None,
            chosen_call: Cursor::default(),
            chosen_lane: Cursor::default(),
            size: Size { columns: 80, rows: 24 },
        }
    }

    /// The terminal has so many columns and rows.
    pub fn sized(&mut self, columns: u16, rows: u16, now: Now) {
        let size = Size { columns, rows };
        if size != self.size {
            self.size = size;
            self.settle(now);
        }
    }

    /// Whether nothing is to move.
    #[must_use]
    pub const fn is_paused(&self) -> bool {
        self.paused.is_some()
    }

    /// The relay told something, or did not.
    pub fn update(&mut self, news: News, now: Now) {
        match news {
            News::Lost { who, next } => self.link = Link::Lost { who, next: now.at + next },
            News::Seen(seen) => {
                let Seen { mut page, calls, anew } = *seen;
                (self.link, self.seen) = (Link::Up, now);
                self.has_calls = calls.is_some();
                if anew || !self.has_calls {
                    self.calls.clear();
                }
                self.take(calls.unwrap_or_default());
                page.lanes.sort_by(|a, b| order(a).cmp(&order(b)));
                self.present = Present::of(&page, now.at);
                self.page = page;
                if self.lane.as_ref().is_some_and(|id| !self.page.lanes.iter().any(|lane| lane.id == *id)) {
                    self.lane = None;
                }
            }
        }
        self.settle(now);
    }

    fn take(&mut self, calls: Calls) {
        self.calls.extend(calls.calls.into_iter().map(|call| (call.call, call)));
        while self.calls.len() > MOST {
            let over = self.calls.values().find(|call| call.closed.is_some()).map(|call| call.call);
            let Some(goes) = over.or_else(|| self.calls.keys().next().copied()) else { return };
            self.calls.remove(&goes);
        }
    }

    /// A key was pressed.
    pub fn key(&mut self, key: Key, now: Now) -> Asked {
        let asked = match key {
            Key::Interrupt => return Asked::Interrupted,
            Key::Suspend => return Asked::Suspend,
            Key::Redraw => return Asked::Redraw,
            _ if matches!(self.mode, Mode::Filter { .. }) => {
                self.typed(key, now);
                Asked::Nothing
            }
            Key::Char('q') => return Asked::Leave,
            Key::Char('p') => {
                self.paused = if self.is_paused() { None } else { Some(now) };
                Asked::Pause(self.is_paused())
            }
            Key::Char(_)
            | Key::Enter
            | Key::Esc
            | Key::Backspace
            | Key::Tab
            | Key::Up
            | Key::Down
            | Key::PageUp
            | Key::PageDown
            | Key::Home
            | Key::End
            | Key::Clear => {
                match self.mode {
                    Mode::Details { .. } | Mode::Help { .. } => self.key_in_text(key, now),
                    Mode::List | Mode::Filter { .. } => self.key_in_list(key, now),
                }
                Asked::Nothing
            }
        };
        self.settle(now);
        asked
    }

    /// A key while a filter is typed.
    fn typed(&mut self, key: Key, now: Now) {
        match key {
            Key::Char(sign) if !sign.is_control() && self.filter.chars().count() < LONGEST_FILTER => {
                self.filter.push(sign);
            }
            Key::Backspace => drop(self.filter.pop()),
            Key::Clear => self.filter.clear(),
            Key::Enter | Key::Tab => self.mode = Mode::List,
            Key::Esc => {
                if let Mode::Filter { before } = std::mem::replace(&mut self.mode, Mode::List) {
                    self.filter = before;
                }
            }
            Key::Up | Key::Down | Key::PageUp | Key::PageDown | Key::Home | Key::End => {
                self.key_in_list(key, now);
            }
            Key::Char(_) | Key::Interrupt | Key::Suspend | Key::Redraw => {}
        }
    }

    fn key_in_list(&mut self, key: Key, now: Now) {
        if let Some(step) = self.step(key) {
            match self.focus {
                Focus::Lanes => self.chosen_lane.go(step, &self.lane_ids()),
                Focus::Calls => {
                    let listed = self.listed(now);
                    self.chosen_call.go(step, &listed);
                }
            }
            return;
        }
        match key {
            Key::Char('?') => self.help(),
            Key::Char('/') => {
                self.focus = Focus::Calls;
                self.mode = Mode::Filter { before: self.filter.clone() };
            }
            Key::Char('s') => self.sort = self.sort.next(),
            Key::Char('1') => (self.view, self.lane) = (View::All, None),
            Key::Char('2') => self.view = View::Open,
            Key::Char('3') => self.view = View::Faults,
            Key::Char('4') => self.view = View::Lost,
            Key::Tab => {
                self.focus = if self.focus == Focus::Calls { Focus::Lanes } else { Focus::Calls };
            }
            Key::Enter => self.enter(now),
            Key::Esc if self.focus == Focus::Lanes => self.focus = Focus::Calls,
            Key::Esc if !self.filter.is_empty() => self.filter.clear(),
            Key::Esc => self.lane = None,
            Key::Char(_)
            | Key::Backspace
            | Key::Up
            | Key::Down
            | Key::PageUp
            | Key::PageDown
            | Key::Home
            | Key::End
            | Key::Interrupt
            | Key::Suspend
            | Key::Clear
            | Key::Redraw => {}
        }
    }

    fn key_in_text(&mut self, key: Key, now: Now) {
        let lines = self.text(now).len();
        let last = lines.saturating_sub(self.text_room());
        let step = self.step(key);
        let (Mode::Details { scroll, .. } | Mode::Help { scroll, .. }) = &mut self.mode else { return };
        match (step, key) {
            (Some(Step::Up(by)), _) => *scroll = scroll.saturating_sub(by),
            (Some(Step::Down(by)), _) => *scroll = scroll.saturating_add(by).min(last),
            (Some(Step::First), _) => *scroll = 0,
            (Some(Step::Last), _) => *scroll = last,
            (None, Key::Char('?')) if matches!(self.mode, Mode::Details { .. }) => self.help(),
            (None, Key::Esc | Key::Enter | Key::Backspace | Key::Char('?')) => self.back(),
            (None, _) => {}
        }
    }

    /// Where a key leads to that moves.
    fn step(&self, key: Key) -> Option<Step> {
        let page = match self.mode {
            Mode::List | Mode::Filter { .. } => {
                let parts = layout::parts(self.size, self.page.lanes.len(), self.focus);
                if self.focus == Focus::Lanes { parts.lanes } else { parts.calls }
            }
            Mode::Details { .. } | Mode::Help { .. } => self.text_room(),
        };
        let page = page.saturating_sub(1).max(1);
        match key {
            Key::Up | Key::Char('k') => Some(Step::Up(1)),
            Key::Down | Key::Char('j') => Some(Step::Down(1)),
            Key::PageUp => Some(Step::Up(page)),
            Key::PageDown | Key::Char(' ') => Some(Step::Down(page)),
            Key::Home => Some(Step::First),
            Key::End => Some(Step::Last),
            Key::Char(_)
            | Key::Enter
            | Key::Esc
            | Key::Backspace
            | Key::Tab
            | Key::Interrupt
            | Key::Suspend
            | Key::Clear
            | Key::Redraw => None,
        }
    }

    fn enter(&mut self, now: Now) {
        match self.focus {
            Focus::Lanes => {
                let lane = self.lane_index().and_then(|at| self.page.lanes.get(at));
                self.lane = lane.map(|lane| lane.id.clone());
                self.focus = Focus::Calls;
            }
            Focus::Calls => {
                let listed = self.listed(now);
                let call = self.chosen_call.index(&listed).and_then(|at| listed.get(at).copied());
                self.mode = call.map_or(Mode::List, |call| Mode::Details { call, scroll: 0 });
            }
        }
    }

    fn help(&mut self) {
        let below = Box::new(std::mem::replace(&mut self.mode, Mode::List));
        self.mode = Mode::Help { scroll: 0, below };
    }

    fn back(&mut self) {
        self.mode = match std::mem::replace(&mut self.mode, Mode::List) {
            Mode::Help { below, .. } => *below,
            Mode::Details { .. } | Mode::List | Mode::Filter { .. } => Mode::List,
        };
    }

    /// Brings into bounds what the list, the text and the terminal leave of a choice.
    fn settle(&mut self, now: Now) {
        let lanes = self.lane_ids();
        self.chosen_lane.settle(&lanes);
        let listed = self.listed(now);
        self.chosen_call.settle(&listed);
        let lines = self.text(now).len();
        let last = lines.saturating_sub(self.text_room());
        if let Mode::Details { scroll, .. } | Mode::Help { scroll, .. } = &mut self.mode {
            *scroll = (*scroll).min(last);
        }
    }

    /// The time that is shown: it stands still while nothing is heard.
    pub(super) fn shown(&self, now: Now) -> Now {
        match (self.paused, self.link) {
            (Some(then), _) => then,
            (None, Link::Lost { .. }) => self.seen,
            (None, Link::Up) => now,
        }
    }

    /// The calls of the list.
    pub(super) fn rows(&self, now: Now) -> Vec<Row<'_>> {
        let now = self.shown(now);
        let words: Vec<_> = self.filter.to_lowercase().split_whitespace().map(str::to_owned).collect();
        let of_lane = |call: &&CallRecord| self.lane.as_ref().is_none_or(|lane| call.lane == *lane);
        let calls = self.calls.values().filter(of_lane);
        let rows = calls.map(|call| Row::of(call, &self.present, now));
        let mut rows: Vec<_> =
            rows.filter(|row| row.is_in(self.view) && row.has(self.lang, &words)).collect();
        rows::sort(&mut rows, self.sort);
        rows
    }

    fn listed(&self, now: Now) -> Vec<u64> {
        self.rows(now).iter().map(|row| row.record.call).collect()
    }

    /// Where the chosen call stands among these.
    pub(super) fn call_index(&self, rows: &[Row<'_>]) -> Option<usize> {
        let listed: Vec<_> = rows.iter().map(|row| row.record.call).collect();
        self.chosen_call.index(&listed)
    }

    fn lane_ids(&self) -> Vec<String> {
        self.page.lanes.iter().map(|lane| lane.id.clone()).collect()
    }

    /// Where the chosen lane stands.
    pub(super) fn lane_index(&self) -> Option<usize> {
        self.chosen_lane.index(&self.lane_ids())
    }

    /// The lines of what is in front of the list; none where nothing is.
    pub(super) fn text(&self, now: Now) -> Vec<String> {
        let columns = usize::from(self.size.columns);
        match &self.mode {
            Mode::List | Mode::Filter { .. } => Vec::new(),
            Mode::Help { .. } => text::help(self.lang, columns),
            Mode::Details { call, .. } => match self.calls.get(call) {
                None => text::gone(self.lang, *call, columns),
                Some(record) => {
                    let row = Row::of(record, &self.present, self.shown(now));
                    text::details(self.lang, &row, columns)
                }
            },
        }
    }

    /// How many of them there is room for.
    pub(super) fn text_room(&self) -> usize {
        usize::from(self.size.rows.saturating_sub(2))
    }

    /// How long ago the relay answered last.
    pub(super) fn silent_for(&self, now: Now) -> Duration {
        now.at.since(self.seen.at)
    }
}

/// Busy lanes first, among them those that are shut, and those at which many wait.
fn order(lane: &Lane) -> impl Ord + use<'_> {
    (!lane.is_short(), std::cmp::Reverse(lane.waiting), lane.upstream.as_str(), lane.model.as_deref())
}
