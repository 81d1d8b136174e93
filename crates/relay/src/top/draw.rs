//! The picture: a model in, cells out. Pure. What is told by a colour is told by a word or a mark as well.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style};
use relay_core::Lang;

use super::cursor::first_in_view;
use super::layout::{self, Column, LEAST, Size};
use super::model::{Focus, Link, Mode, Model};
use super::page::{Lane, Totals, span as seconds};
use super::rows::{Doing, Now, Row, Sort, View};
use super::text;
use crate::running::{Who, text as long};
use crate::terminal;
use crate::words::{live, top as words};

/// How something is to be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tone {
    Plain,
    Good,
    Busy,
    Bad,
    Quiet,
    Title,
}

/// A cell of a table.
struct Cell(String, Tone);

/// What is drawn on.
struct Canvas<'a> {
    buffer: &'a mut Buffer,
    size: Size,
    is_coloured: bool,
}

impl Canvas<'_> {
    fn style(&self, tone: Tone) -> Style {
        let colour = |colour| if self.is_coloured { Style::new().fg(colour) } else { Style::new() };
        match tone {
            Tone::Plain => Style::new(),
            Tone::Good => colour(Color::Green),
            Tone::Busy => colour(Color::Yellow),
            Tone::Bad => colour(Color::Red).add_modifier(Modifier::BOLD),
            Tone::Quiet => Style::new().add_modifier(Modifier::DIM),
            Tone::Title => Style::new().add_modifier(Modifier::BOLD),
        }
    }

    /// Writes what fits into these columns; where it does not, a mark says so.
    fn write(&mut self, row: usize, column: usize, room: usize, cell: (&str, Tone)) {
        let (text, tone) = cell;
        let room = room.min(usize::from(self.size.columns).saturating_sub(column));
        let (Ok(x), Ok(y)) = (u16::try_from(column), u16::try_from(row)) else { return };
        if y < self.size.rows && room > 0 {
            let style = self.style(tone);
            self.buffer.set_stringn(x, y, clipped(text, room), room, style);
        }
    }

    fn line(&mut self, row: usize, text: &str, tone: Tone) {
        self.write(row, 0, usize::from(self.size.columns), (text, tone));
    }

    /// Marks a whole row as the chosen one.
    fn choose(&mut self, row: usize) {
        let Ok(y) = u16::try_from(row) else { return };
        for x in 0..self.size.columns {
            if let Some(cell) = self.buffer.cell_mut((x, y)) {
                cell.set_style(Style::new().add_modifier(Modifier::REVERSED));
            }
        }
    }
}

/// As much of a text as fits.
fn clipped(text: &str, room: usize) -> String {
    if terminal::width(text) <= room {
        return text.to_owned();
    }
    format!("{}…", terminal::fitting(text, Some(room)))
}

/// Draws all of it, into all of the buffer.
pub fn draw(model: &Model, now: Now, is_coloured: bool, buffer: &mut Buffer) {
    let area = buffer.area;
    let size = Size { columns: area.width, rows: area.height };
    let mut canvas = Canvas { buffer, size, is_coloured };
    if size.columns < LEAST.columns || size.rows < LEAST.rows {
        canvas.line(0, &words::too_small(model.lang, size.columns, size.rows), Tone::Plain);
        return;
    }
    title(model, now, &mut canvas);
    match &model.mode {
        Mode::List | Mode::Filter { .. } => list(model, now, &mut canvas),
        Mode::Details { scroll, .. } | Mode::Help { scroll, .. } => {
            let room = model.text_room();
            for (at, line) in model.text(now).iter().skip(*scroll).take(room).enumerate() {
                canvas.line(1 + at, line, Tone::Plain);
            }
        }
    }
    let last = usize::from(size.rows) - 1;
    let (keys, tone) = match (&model.mode, model.focus) {
        (Mode::Filter { .. }, _) => (words::typing(model.lang, &model.filter), Tone::Title),
        (Mode::List, Focus::Calls) => (words::keys(model.lang), Tone::Quiet),
        (Mode::List, Focus::Lanes) => (words::keys_lanes(model.lang), Tone::Quiet),
        (Mode::Details { .. } | Mode::Help { .. }, _) => (words::keys_text(model.lang), Tone::Quiet),
    };
    canvas.line(last, &keys, tone);
}

fn title(model: &Model, now: Now, canvas: &mut Canvas<'_>) {
    let lang = model.lang;
    let (state, tone) = if model.is_paused() {
        (words::paused(lang), Tone::Busy)
    } else if model.link == Link::Up {
        (words::live(lang), Tone::Good)
    } else {
        ("!".to_owned(), Tone::Bad)
    };
    let columns = usize::from(canvas.size.columns);
    let at = columns.saturating_sub(terminal::width(&state));
    let since = model.shown(now).at.since(model.seen.at).as_secs_f64();
    let uptime = long::span(lang, Some((model.page.uptime_s + since).floor()));
    let said = words::title(lang, &model.page.version, &model.address, &uptime);
    canvas.write(0, 0, at.saturating_sub(1), (&said, Tone::Title));
    canvas.write(0, at, columns, (&state, tone));
}

fn list(model: &Model, now: Now, canvas: &mut Canvas<'_>) {
    let parts = layout::parts(canvas.size, model.page.lanes.len(), model.focus);
    let mut row = 1;
    if let Link::Lost { who, next } = model.link {
        let next = text::left(model.lang, next.since(now.at));
        let said = match who {
            Who::Relay => words::locked(model.lang, &next),
            Who::Nobody | Who::Stranger | Who::Silent | Who::StandIn => {
                words::lost(model.lang, &text::span(model.lang, model.silent_for(now)), &next)
            }
        };
        if parts.sums {
            canvas.line(row, &said, Tone::Bad);
        } else {
            canvas.line(0, &said, Tone::Bad);
        }
    } else if parts.sums {
        sums(model, canvas);
    }
    row += usize::from(parts.sums);
    if parts.lanes > 0 {
        lanes(model, now, (row, parts.lanes), canvas);
        row += parts.lanes + 1;
    }
    calls(model, now, (row, parts), canvas);
}

/// From so many columns on there is room for whole names of hosts.
const WIDE: u16 = 100;

/// What was saved, as much of it as fits.
fn sums(model: &Model, canvas: &mut Canvas<'_>) {
    let (lang, totals, open) = (model.lang, &model.page.totals, model.page.open_calls.len());
    let mut all = Vec::new();
    if let (Some(with), Some(without)) = shares(totals) {
        all.push((words::success(lang, &with, &without), Tone::Title));
    }
    let lost = if totals.calls_lost > 0 { Tone::Bad } else { Tone::Plain };
    all.push((words::saved(lang, totals.calls_saved), Tone::Good));
    all.push((words::lost_calls(lang, totals.calls_lost), lost));
    all.push((words::waited_sum(lang, &text::span(lang, seconds(totals.waited_s))), Tone::Plain));
    all.push((words::sends_sum(lang, totals.sends), Tone::Plain));
    all.push((words::open(lang, open), Tone::Plain));
    if totals.maybe_billed_twice > 0 {
        all.push((words::twice(lang, totals.maybe_billed_twice), Tone::Busy));
    }
    let columns = usize::from(canvas.size.columns);
    let mut at = 0;
    for (said, tone) in all {
        let width = terminal::width(&said);
        if at + width > columns {
            continue;
        }
        canvas.write(1, at, width, (&said, tone));
        at += width + 2;
    }
}

/// The share of calls that were served, and what it would be without the relay, in percent; rounded down, so that 100
/// means all.
fn shares(totals: &Totals) -> (Option<String>, Option<String>) {
    let share = |good: u64| {
        let tenths = (u128::from(good) * 1000).checked_div(u128::from(totals.calls_judged))?;
        Some(if tenths % 10 == 0 {
            (tenths / 10).to_string()
        } else {
            format!("{}.{}", tenths / 10, tenths % 10)
        })
    };
    (share(totals.calls_served), share(totals.calls_served.saturating_sub(totals.calls_saved)))
}

/// A table: its columns, as name, least width, rank and whether it is of numbers.
type Head = (String, usize, u8, bool);

/// Writes heads, and rows in this part of the screen.
fn table(heads: &[Head], rows: &[Vec<Cell>], row: usize, canvas: &mut Canvas<'_>) {
    let columns: Vec<_> = heads
        .iter()
        .enumerate()
        .map(|(at, (name, least, rank, _))| {
            let full = rows.iter().filter_map(|cells| cells.get(at)).map(|cell| terminal::width(&cell.0));
            let least = (*least).max(terminal::width(name));
            Column { least, full: full.max().unwrap_or(0).max(least), rank: *rank }
        })
        .collect();
    // The first column is for the mark of the chosen row.
    let widths = layout::widths(&columns, usize::from(canvas.size.columns).saturating_sub(1));
    let mut column = 1;
    for (at, width) in widths.iter().enumerate().filter(|(_, width)| **width > 0) {
        let (name, _, _, is_number) = &heads[at];
        let put = |text: &str| {
            if *is_number { terminal::padded_left(text, *width) } else { text.to_owned() }
        };
        canvas.write(row, column, *width, (&put(name), Tone::Quiet));
        for (below, cells) in rows.iter().enumerate() {
            if let Some(Cell(text, tone)) = cells.get(at) {
                canvas.write(row + 1 + below, column, *width, (&put(text), *tone));
            }
        }
        column += width + 1;
    }
}

fn lanes(model: &Model, now: Now, (row, room): (usize, usize), canvas: &mut Canvas<'_>) {
    let (lang, all) = (model.lang, &model.page.lanes);
    let since = model.shown(now).at.since(model.seen.at);
    let chosen = model.lane_index().filter(|_| model.focus == Focus::Lanes);
    let first = first_in_view(chosen.unwrap_or(0), all.len(), room);
    let shown = all.iter().skip(first).take(room);
    let rows: Vec<_> = shown.map(|lane| lane_cells(lang, lane, since)).collect();
    let named = if rows.len() < all.len() {
        words::some_lanes(lang, rows.len(), all.len())
    } else {
        words::lanes(lang, all.len())
    };
    let heads: [Head; 6] = [
        (named, 12, 0, false),
        (words::head_state(lang), 17, 1, false),
        (words::head_held(lang), 6, 4, true),
        (words::head_waiting(lang), 7, 3, true),
        (words::head_running(lang), 7, 5, true),
        (words::head_next(lang), 8, 2, true),
    ];
    table(&heads, &rows, row, canvas);
    if all.is_empty() {
        canvas.write(row + 1, 1, usize::MAX, (&words::no_lanes(lang), Tone::Quiet));
    }
    if let Some(at) = chosen {
        mark(row + 1 + at - first, canvas);
    }
}

fn mark(row: usize, canvas: &mut Canvas<'_>) {
    canvas.write(row, 0, 1, (">", Tone::Plain));
    canvas.choose(row);
}

fn lane_name(lang: Lang, lane: &Lane) -> String {
    match &lane.model {
        Some(model) => live::place(lang, model, &lane.upstream),
        None => lane.upstream.clone(),
    }
}

fn lane_cells(lang: Lang, lane: &Lane, since: Duration) -> Vec<Cell> {
    let left = |of: Option<f64>| of.map(|of| seconds(of).saturating_sub(since));
    let held = left(lane.held_for_s).map_or_else(String::new, |left| text::left(lang, left));
    let next = match left(lane.next_send_in_s) {
        None if lane.is_shut() && lane.waiting == 0 && lane.sending == 0 => words::no_call(lang),
        None => String::new(),
        Some(Duration::ZERO) => words::now(lang),
        Some(left) => text::left(lang, left),
    };
    let state = match (lane.is_shut(), &lane.why) {
        _ if lane.is_cut_off() => {
            let left = left(lane.circuit_open_for_s).map(|left| text::left(lang, left));
            let said = left.map_or_else(|| words::lane_probed(lang), |left| words::lane_cut_off(lang, &left));
            Cell(said, Tone::Bad)
        }
        (false, _) => Cell(words::lane_open(lang), Tone::Good),
        (true, _) if lane.parked_for_s.is_some() => Cell(words::lane_parked(lang), Tone::Bad),
        (true, why) => Cell(words::lane_shut(lang, why.as_deref().unwrap_or("?")), Tone::Bad),
    };
    let running = lane.running.saturating_add(lane.sending);
    let running = lane.max_running.map_or_else(|| running.to_string(), |most| format!("{running}/{most}"));
    let waiting = if lane.waiting > 0 { Tone::Busy } else { Tone::Plain };
    vec![
        Cell(lane_name(lang, lane), if lane.is_busy() { Tone::Title } else { Tone::Plain }),
        state,
        Cell(held, Tone::Busy),
        Cell(lane.waiting.to_string(), waiting),
        Cell(running, Tone::Plain),
        Cell(next, Tone::Busy),
    ]
}

fn calls(model: &Model, now: Now, (row, parts): (usize, layout::Parts), canvas: &mut Canvas<'_>) {
    let lang = model.lang;
    let rows = model.rows(now);
    let mut row = row;
    if parts.about {
        canvas.line(row, &about(model, rows.len()), Tone::Title);
        row += 1;
    }
    let chosen = model.call_index(&rows);
    let first = first_in_view(chosen.unwrap_or(0), rows.len(), parts.calls);
    let is_narrow = canvas.size.columns < WIDE;
    let cells: Vec<_> =
        rows.iter().skip(first).take(parts.calls).map(|row| call_cells(lang, row, is_narrow)).collect();
    let heads: [Head; 9] = [
        (words::head_call(lang), 4, 0, false),
        (words::head_age(lang), 6, 5, true),
        (words::head_client(lang), 8, 7, false),
        (words::head_model(lang), 10, 2, false),
        (words::head_upstream(lang), 9, 8, false),
        (words::head_state(lang), 11, 1, false),
        (words::head_sends(lang), 5, 4, true),
        (words::head_fault(lang), 12, 3, false),
        (words::head_waited(lang), 6, 6, true),
    ];
    table(&heads, &cells, row, canvas);
    match chosen {
        None => {
            let said = match (model.has_calls, model.calls.is_empty()) {
                (false, _) => words::nothing_recorded(lang),
                (true, true) => words::no_calls(lang),
                (true, false) => words::none_fits(lang),
            };
            canvas.write(row + 1, 1, usize::MAX, (&said, Tone::Quiet));
        }
        Some(at) if parts.calls > 0 && model.focus == Focus::Calls => mark(row + 1 + at - first, canvas),
        Some(_) => {}
    }
}

/// What is listed, and how.
fn about(model: &Model, shown: usize) -> String {
    let lang = model.lang;
    let view = match model.view {
        View::All => words::view_all(lang),
        View::Open => words::view_open(lang),
        View::Faults => words::view_faults(lang),
        View::Lost => words::view_lost(lang),
    };
    let sort = match model.sort {
        Sort::OpenFirst => words::sort_open(lang),
        Sort::Newest => words::sort_newest(lang),
        Sort::Sends => words::sort_sends(lang),
        Sort::Waited => words::sort_waited(lang),
        Sort::Model => words::sort_model(lang),
    };
    let mut said = words::calls(lang, shown, model.calls.len(), &view, &sort);
    if !model.filter.is_empty() {
        said += &words::filtered(lang, &model.filter);
    }
    let lane = model.lane.as_ref().and_then(|id| model.page.lanes.iter().find(|lane| lane.id == *id));
    if let Some(lane) = lane {
        said += &words::of_lane(lang, &lane_name(lang, lane));
    }
    said
}

/// What tells a host from others, where there is no room for all of it: `api.anthropic.com` is `anthropic`.
fn in_short(host: &str) -> &str {
    if host.parse::<std::net::IpAddr>().is_ok() {
        return host;
    }
    let short = host.strip_prefix("api.").unwrap_or(host);
    short.rsplit_once('.').map_or(short, |(name, _)| name)
}

fn call_cells(lang: Lang, row: &Row<'_>, is_narrow: bool) -> Vec<Cell> {
    let record = row.record;
    let plain = |text: &str| Cell(text.to_owned(), Tone::Plain);
    let tone = match row.doing {
        Doing::Ended("served") => Tone::Good,
        Doing::Ended("refused" | "gave_up" | "broken") => Tone::Bad,
        Doing::Ended(_) | Doing::Opening | Doing::Sending | Doing::Streaming => Tone::Plain,
        Doing::Waits(_) | Doing::InLine(_) => Tone::Busy,
    };
    let waited = if row.waited.is_zero() { String::new() } else { text::span(lang, row.waited) };
    vec![
        plain(&format!("c{}", record.call)),
        plain(&text::span(lang, row.age)),
        plain(&record.client),
        plain(record.model.as_deref().unwrap_or("-")),
        plain(if is_narrow { in_short(&record.upstream) } else { &record.upstream }),
        Cell(row.doing.said(lang), tone),
        plain(&row.sends.to_string()),
        Cell(row.fault.unwrap_or_default().to_owned(), Tone::Busy),
        plain(&waited),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_told_by_what_tells_them_apart() {
        let rows = [
            ("api.anthropic.com", "anthropic"),
            ("chatgpt.com", "chatgpt"),
            ("openai", "openai"),
            ("gw.example.org", "gw.example"),
            ("127.0.0.1", "127.0.0.1"),
            ("::1", "::1"),
        ];
        for (host, short) in rows {
            assert_eq!(in_short(host), short);
        }
    }

    #[test]
    fn a_parked_lane_says_so_and_counts_down() {
        let lane = Lane {
            state: "shut".to_owned(),
            why: Some("quota_spent".to_owned()),
            held_for_s: Some(125.0),
            parked_for_s: Some(125.0),
            ..Lane::default()
        };
        let shown = |lane: &Lane| {
            let cells = lane_cells(Lang::English, lane, Duration::from_secs(5));
            cells.iter().map(|Cell(text, _)| text.clone()).collect::<Vec<_>>()
        };
        assert_eq!(shown(&lane)[1..3], ["parked: quota spent", "2 min"]);
        let asked = Lane { held_for_s: None, parked_for_s: None, ..lane };
        assert_eq!(shown(&asked)[1..3], ["shut: quota_spent", ""]);
    }
}
