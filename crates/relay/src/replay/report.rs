//! What would differ, for people and for programs.

use relay_core::{Lang, plain};
use serde_json::{Value, json};

use super::Replayed;
use super::compare::{Compared, Side};
use crate::history::name::shown;
use crate::running::text::span;
use crate::terminal;
use crate::words::replay as words;

/// The widest line, and the most calls that people are shown.
const COLUMNS: usize = 80;
const MOST: usize = 20;

/// 1 where anything differs.
#[must_use]
pub fn exit_code(replayed: &Replayed) -> u8 {
    u8::from(!replayed.differing.is_empty())
}

/// Sums over the calls that differ.
struct Sums {
    ends: u64,
    better: u64,
    worse: u64,
    longer: u64,
    shorter: u64,
    more: u64,
    fewer: u64,
    waited: i64,
    sent: i64,
}

/// Whether the client got what it asked for.
fn is_served(side: &Side) -> bool {
    side.outcome == "served"
}

fn sums(replayed: &Replayed) -> Sums {
    let all = &replayed.differing;
    let count = |fits: &dyn Fn(&Compared) -> bool| all.iter().filter(|it| fits(it)).count() as u64;
    let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    Sums {
        ends: count(&|it| it.ends),
        better: count(&|it| it.ends && !is_served(&it.was)),
        worse: count(&|it| it.ends && is_served(&it.was)),
        longer: count(&|it| it.waits() && it.would.waited > it.was.waited),
        shorter: count(&|it| it.waits() && it.would.waited < it.was.waited),
        more: count(&|it| it.would.sends > it.was.sends),
        fewer: count(&|it| it.would.sends < it.was.sends),
        waited: all.iter().map(|it| signed(it.would.waited).saturating_sub(signed(it.was.waited))).sum(),
        sent: all.iter().map(|it| i64::from(it.would.sends) - i64::from(it.was.sends)).sum(),
    }
}

/// For people.
#[must_use]
pub fn text(lang: Lang, replayed: &Replayed) -> String {
    let Replayed { calls, passed_over, differing } = replayed;
    let sums = sums(replayed);
    let mut lines = vec![words::replayed(lang, *calls as u64, differing.len() as u64)];
    if !differing.is_empty() {
        lines.push(words::ends(lang, sums.ends, sums.worse, sums.better));
        let ms = |ms: u64| span(lang, Some(ms as f64 / 1000.0));
        let sign = |number: i64| if number < 0 { "-" } else { "+" };
        let waited = format!("{}{}", sign(sums.waited), ms(sums.waited.unsigned_abs()));
        lines.push(words::waits(lang, sums.longer, sums.shorter, &waited));
        lines.push(words::sends(lang, sums.more, sums.fewer, &format!("{:+}", sums.sent)));
    }
    for call in differing.iter().take(MOST) {
        lines.push(format!("  {}", line(lang, call)));
    }
    if differing.len() > MOST {
        lines.push(words::more(lang, (differing.len() - MOST) as u64));
    }
    if *passed_over > 0 {
        lines.push(words::passed_over(lang, *passed_over as u64));
    }
    lines.iter().map(|line| terminal::wrapped(&plain::line(line), COLUMNS)).collect::<Vec<_>>().join("\n")
}

fn line(lang: Lang, call: &Compared) -> String {
    let model = call.model.as_deref().unwrap_or(&call.upstream);
    let id = format!("{}  {} {model}", shown(call.run, call.call), call.client);
    let side = |side: &Side| {
        let outcome = if side.outcome == "goes_on" { words::goes_on(lang) } else { side.outcome.clone() };
        let why = side.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        let waited = span(lang, Some(side.waited as f64 / 1000.0));
        words::side(lang, &(outcome + &why), u64::from(side.sends), &waited)
    };
    words::call(lang, &id, &side(&call.was), &side(&call.would))
}

/// For programs.
#[must_use]
pub fn json(replayed: &Replayed) -> Value {
    let sums = sums(replayed);
    json!({
        "v": 1,
        "calls": replayed.calls,
        "passed_over": replayed.passed_over,
        "differ": replayed.differing.len(),
        "end_differently": sums.ends,
        "were_served": sums.worse,
        "were_not_served": sums.better,
        "wait_longer": sums.longer,
        "wait_shorter": sums.shorter,
        "waited_ms": sums.waited,
        "more_sends": sums.more,
        "fewer_sends": sums.fewer,
        "sends": sums.sent,
        "differing": replayed.differing,
    })
}
