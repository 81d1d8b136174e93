//! What calls come to, for people: 80 columns, with colour where the terminal has it and as clear without.

use std::fmt::Write as _;

use relay_core::{Lang, plain};

use super::By;
use super::best::{Best, HOURS, Span, best};
use super::tally::{Cell, Hours, Sums, Tally, share};
use crate::terminal::{fitting, padded, padded_left, wrapped};
use crate::words::{span, stats as words};

/// The widest line.
const COLUMNS: usize = 80;
/// The columns of a row's name.
const NAME: usize = 13;
/// The columns of a name in a table, and of what stands behind it.
const KEY: usize = 22;
const CELLS: [usize; 6] = [8, 9, 9, 15, 7, 7];
const MOVES: [usize; 4] = [8, 10, 13, 13];
/// The columns of a day's name, and of an hour, in a map.
const DAY: usize = 5;
const HOUR: usize = 3;
/// So few hours are told in a sentence: a map of them would be empty.
const FEW: usize = 3;
/// The most models that get a map.
const MAPS: usize = 3;

/// All of it. `from` and `to` are moments as people write them.
#[must_use]
pub fn text(lang: Lang, tally: &Tally, by: Option<By>, (from, to): (&str, &str)) -> String {
    let sums = &tally.all;
    if sums.calls == 0 {
        return words::nothing(lang, from);
    }
    let mut text = wrapped(&words::header(lang, from, to, sums.calls, sums.sends), COLUMNS) + "\n\n";
    for (name, told) in rows(lang, sums) {
        let row = format!("  {}  {told}", padded(&name, NAME));
        text += &(wrapped(&row, COLUMNS) + "\n");
    }
    if let Some(by) = by {
        text += &table(lang, by, tally);
    }
    text += &maps(lang, tally);
    text
}

/// A share, to the tenth of a percent.
fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", share * 100.0))
}

fn rows(lang: Lang, sums: &Sums) -> Vec<(String, String)> {
    let grouped = span::grouped;
    let waits = match (sums.waits.mean(), sums.waits.percentile(95)) {
        (Some(mean), Some(p95)) => {
            let [mean, p95] = [mean, p95].map(|ms| span::fine(lang, ms));
            words::waits(lang, sums.waits.count(), &mean, &p95)
        }
        _ => words::no_waits(lang),
    };
    let per_success = sums.sends_per_success().map_or_else(|| "-".to_owned(), |sends| format!("{sends:.2}"));
    let unserved = [sums.lost, sums.returned, sums.broken, sums.left_waiting].map(grouped);
    let [lost, returned, broken, left] = &unserved;
    let rates = (percent(sums.success()), percent(sums.success_without()));
    let mut rows = vec![
        (words::success(lang), words::with_without(lang, &rates.0, &rates.1)),
        (words::extra_wait(lang), waits),
        (words::sends_row(lang), words::per_success(lang, &per_success)),
        (words::saved(lang), words::calls_saved(lang, sums.saved())),
        (words::not_served(lang), words::unserved(lang, lost, returned, broken, left)),
        (words::billing(lang), words::calls_billed_twice(lang, sums.billed_twice)),
    ];
    if sums.passed > 0 {
        rows.push((words::errors(lang), words::passed(lang, sums.passed)));
    }
    if sums.open > 0 {
        rows.push((words::open(lang), words::calls_open(lang, sums.open)));
    }
    let (served, failed) = (sums.tokens, sums.failed_tokens);
    let told = [served.input, served.cached, served.output].map(grouped);
    rows.push((words::tokens(lang), words::tokens_served(lang, &told[0], &told[1], &told[2])));
    let told = [failed.input, failed.output].map(grouped);
    rows.push((String::new(), words::tokens_failed(lang, &told[0], &told[1])));
    rows
}

/// A row for each hour, model, upstream or client: the busiest first, hours in their order.
fn table(lang: Lang, by: By, tally: &Tally) -> String {
    let heading = match by {
        By::Hour => words::by_hour(lang),
        By::Model => words::by_model(lang),
        By::Upstream => words::by_upstream(lang),
        By::Client => words::by_client(lang),
    };
    let columns = [
        words::column_calls(lang),
        words::column_success(lang),
        words::column_without(lang),
        words::column_wait(lang),
        words::column_saved(lang),
        words::column_lost(lang),
    ];
    let line = |name: &str, cells: [String; 6]| {
        let name = plain::line(name);
        let cells: String =
            cells.iter().zip(CELLS).map(|(cell, columns)| padded_left(cell, columns)).collect();
        format!("  {}{cells}\n", padded(fitting(&name, Some(KEY)), KEY))
    };
    let mut text = format!("\n{}", line(&heading, columns));
    let rows = if by == By::Hour { tally.rows.iter().collect() } else { by_calls(tally) };
    for (name, sums) in rows {
        let mean = sums.waits.mean().map_or_else(|| "-".to_owned(), |ms| span::fine(lang, ms));
        let cells = [
            span::grouped(sums.calls),
            percent(sums.success()),
            percent(sums.success_without()),
            mean,
            span::grouped(sums.saved()),
            span::grouped(sums.lost),
        ];
        text += &line(name, cells);
    }
    if by == By::Upstream && tally.all.moved_here > 0 {
        text += &moves(lang, tally);
    }
    text
}

/// What each upstream of a pool was sent, and how often a call came from another one: in the order of the table.
fn moves(lang: Lang, tally: &Tally) -> String {
    let line = |name: &str, cells: [String; 4]| {
        let name = plain::line(name);
        let cells: String =
            cells.iter().zip(MOVES).map(|(cell, columns)| padded_left(cell, columns)).collect();
        format!("  {}{cells}\n", padded(fitting(&name, Some(KEY)), KEY))
    };
    let columns = [
        words::column_sends(lang),
        words::column_refused(lang),
        words::column_moved_here(lang),
        words::column_moved_away(lang),
    ];
    let mut text = format!("\n{}", line(&words::by_upstream(lang), columns));
    for (name, sums) in by_calls(tally) {
        let cells = [
            span::grouped(sums.sends),
            percent(share(sums.refusals, sums.sends)),
            span::grouped(sums.moved_here),
            span::grouped(sums.moved_away),
        ];
        text += &line(name, cells);
    }
    text
}

/// The rows, the busiest first.
fn by_calls(tally: &Tally) -> Vec<(&String, &Sums)> {
    let mut rows: Vec<_> = tally.rows.iter().collect();
    rows.sort_by(|a, b| b.1.calls.cmp(&a.1.calls).then(a.0.cmp(b.0)));
    rows
}

/// The hours of the models that refused most.
fn maps(lang: Lang, tally: &Tally) -> String {
    let mut models: Vec<_> = tally.models.iter().filter(|(_, hours)| hours.all().refused > 0).collect();
    models.sort_by(|a, b| b.1.all().refused.cmp(&a.1.all().refused).then(a.0.cmp(b.0)));
    if models.is_empty() {
        return format!("\n{}\n", words::no_refusals(lang));
    }
    let mut text = String::new();
    let mut has_map = false;
    for (model, hours) in models.iter().take(MAPS) {
        text.push('\n');
        let known = known_hours(lang, hours);
        if known.len() <= FEW {
            let known = known.join(&words::comma(lang));
            text += &(wrapped(&words::few_hours(lang, &plain::line(model), &known), COLUMNS) + "\n");
        } else {
            has_map = true;
            text += &(wrapped(&words::map(lang, &plain::line(model)), COLUMNS) + "\n" + &map(lang, hours));
        }
        text += &(wrapped(&in_words(lang, best(hours)), COLUMNS) + "\n");
    }
    let more = models.len().saturating_sub(MAPS) as u64;
    if more > 0 {
        text += &(words::more_models(lang, more) + "\n");
    }
    if has_map {
        text += &(words::legend(lang) + "\n");
    }
    text
}

fn days(lang: Lang) -> [String; 7] {
    [
        words::monday(lang),
        words::tuesday(lang),
        words::wednesday(lang),
        words::thursday(lang),
        words::friday(lang),
        words::saturday(lang),
        words::sunday(lang),
    ]
}

/// The hours of the week of which something is known, in words.
fn known_hours(lang: Lang, hours: &Hours) -> Vec<String> {
    let days = days(lang);
    let of_week = hours
        .cells()
        .iter()
        .zip(&days)
        .flat_map(|(cells, day)| cells.iter().enumerate().map(move |(hour, cell)| (day, hour, *cell)));
    let known = of_week.filter_map(|(day, hour, cell)| {
        Some(words::hour_of(lang, day, &format!("{hour:02}:00"), &percent(Some(cell.share()?))))
    });
    known.collect()
}

fn map(lang: Lang, hours: &Hours) -> String {
    let days = days(lang);
    let mut text = " ".repeat(DAY);
    for hour in 0..24 {
        let _fits = write!(text, "{hour:>HOUR$}");
    }
    text.push('\n');
    for (day, cells) in days.iter().zip(hours.cells()) {
        let row: String = cells.iter().map(|cell| coloured(*cell)).collect();
        text += format!("{}{row}", padded(day, DAY)).trim_end();
        text.push('\n');
    }
    text
}

/// The share of a cell in its columns; what is short of capacity stands out.
fn coloured(cell: Cell) -> String {
    let Some(share) = cell.share() else { return " ".repeat(HOUR) };
    if cell.refused == 0 {
        return format!("{:>HOUR$}", ".");
    }
    // One that is refused at all is no zero.
    let percent = (share * 100.0).round().max(1.0);
    let shown = format!("{percent:>HOUR$}");
    match percent {
        40.0.. => format!("\x1b[31m{shown}\x1b[0m"),
        10.0.. => format!("\x1b[33m{shown}\x1b[0m"),
        _ => shown,
    }
}

fn in_words(lang: Lang, best: Best) -> String {
    let hours = |Span { from, to, cell }: Span| {
        words::hours(lang, &format!("{from:02}:00"), &format!("{to:02}:00"), &percent(cell.share()))
    };
    match best {
        Best::Unknown { known } => words::unknown(lang, known as u64, HOURS as u64),
        Best::Even(cell) => words::even(lang, &percent(cell.share())),
        Best::Hours { quiet, busy } => words::best(lang, &hours(quiet), &hours(busy)),
    }
}
