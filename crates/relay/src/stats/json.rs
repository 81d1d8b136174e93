//! What calls come to, for programs.

use serde_json::{Value, json};

use super::By;
use super::best::{Best, HOURS, Span, best};
use super::morning::Morning;
use super::tally::{Cell, Hours, Sums, Tally};
use crate::history::record::Tokens;

/// All of it, of a time in milliseconds since 1970.
#[must_use]
pub fn json(tally: &Tally, by: Option<By>, (from, to): (u64, u64)) -> Value {
    let rows = by.map(|by| {
        let rows = tally.rows.iter().map(|(name, sums)| json!({by.name(): name, "sums": in_json(sums)}));
        rows.collect::<Vec<_>>()
    });
    let models = tally.models.iter().map(|(model, hours)| {
        let mut told = hours_in_json(hours);
        told["model"] = json!(model);
        told
    });
    json!({
        "v": 1,
        "from": from,
        "to": to,
        "sums": in_json(&tally.all),
        "by": by.map(By::name),
        "rows": rows,
        "overload": {"all": hours_in_json(&tally.hours), "models": models.collect::<Vec<_>>()},
    })
}

/// The last run.
#[must_use]
pub fn of_run(run: i64, kind: &str, morning: Morning) -> Value {
    let Morning { took, refusals, waited, lost, sends, billed_twice } = morning;
    json!({
        "v": 1, "run": run, "kind": kind, "took_ms": took, "refusals": refusals, "waited_ms": waited,
        "lost": lost, "sends": sends, "maybe_billed_twice": billed_twice,
    })
}

fn in_json(sums: &Sums) -> Value {
    json!({
        "calls": sums.calls,
        "open": sums.open,
        "served": sums.served,
        "served_by_first_send": sums.served_by_first,
        "saved": sums.saved(),
        "lost": sums.lost,
        "handed_back": sums.returned,
        "broken": sums.broken,
        "cut": sums.cut,
        "left_waiting": sums.left_waiting,
        "left": sums.left,
        "definite_errors": sums.passed,
        "success": sums.success(),
        "success_without_relay": sums.success_without(),
        "sends": sums.sends,
        "sends_per_success": sums.sends_per_success(),
        "refusals": sums.refusals,
        "moved_here": sums.moved_here,
        "moved_away": sums.moved_away,
        "calls_waited": sums.waits.count(),
        "waited_ms": sums.waits.sum(),
        "wait_mean_ms": sums.waits.mean(),
        "wait_p95_ms": sums.waits.percentile(95),
        "calls_maybe_billed_twice": sums.billed_twice,
        "tokens": tokens(sums.tokens),
        "tokens_failed": tokens(sums.failed_tokens),
    })
}

fn tokens(tokens: Tokens) -> Value {
    let Tokens { input, cached, output } = tokens;
    json!({"input": input, "cached": cached, "output": output})
}

fn cell(cell: Cell) -> Value {
    json!({"sends": cell.sends, "refused": cell.refused})
}

/// Seven days from Monday on, of 24 hours each.
fn hours_in_json(hours: &Hours) -> Value {
    let days = hours.cells().iter().map(|cells| cells.iter().map(|one| cell(*one)).collect::<Vec<_>>());
    let span = |Span { from, to, cell: of }: Span| json!({"from_hour": from, "to_hour": to, "sends": of.sends, "refused": of.refused});
    let best = match best(hours) {
        Best::Unknown { known } => json!({"is": "unknown", "hours_known": known, "hours_needed": HOURS}),
        Best::Even(of) => json!({"is": "even", "sends": of.sends, "refused": of.refused}),
        Best::Hours { quiet, busy } => json!({"is": "hours", "quiet": span(quiet), "busy": span(busy)}),
    };
    let all = hours.all();
    json!({"sends": all.sends, "refused": all.refused, "hours": days.collect::<Vec<_>>(), "best": best})
}
