//! The verdict for people, at 80 columns, and for programs.

use relay_core::{Lang, plain};
use serde_json::{Value, json};

use super::Verdict;
use super::facts::Facts;
use crate::terminal;
use crate::words::diagnose as words;

/// The widest line.
const COLUMNS: usize = 80;

/// For people.
#[must_use]
pub fn text(lang: Lang, verdict: &Verdict) -> String {
    let line = verdict.line(lang);
    let mut out = line_of(&if verdict.is_sure || verdict.cause.whose() == super::Whose::Nobody {
        words::verdict(lang, &line)
    } else {
        words::likely(lang, &line)
    });
    for evidence in &verdict.evidence {
        out += &line_of(&format!("  -  {}", evidence.said(lang)));
    }
    out += &line_of(&words::remedy(lang, &verdict.remedy(lang)));
    out += &line_of(&words::not_looked_at(lang));
    for unseen in &verdict.unseen {
        out += &line_of(&format!("  -  {}", unseen.said(lang)));
    }
    out.trim_end().to_owned()
}

/// A line, or as many as it takes.
fn line_of(words: &str) -> String {
    terminal::wrapped(&plain::line(words), COLUMNS) + "\n"
}

/// For programs.
#[must_use]
pub fn json(verdict: &Verdict, facts: &Facts) -> Value {
    let lang = Lang::English;
    let evidence: Vec<_> = verdict
        .evidence
        .iter()
        .map(|evidence| {
            let mut value = serde_json::to_value(evidence).unwrap_or_default();
            if let Some(fields) = value.as_object_mut() {
                fields.insert("text".to_owned(), evidence.said(lang).into());
            }
            value
        })
        .collect();
    let unseen: Vec<_> = verdict.unseen.iter().map(|unseen| unseen.said(lang)).collect();
    json!({
        "v": 1,
        "verdict": verdict.cause.name(),
        "whose": verdict.cause.whose().name(),
        "sure": verdict.is_sure,
        "upstream": verdict.upstream,
        "model": verdict.model,
        "text": verdict.line(lang),
        "evidence": evidence,
        "do": verdict.remedy(lang),
        "not_looked_at": unseen,
        "since": facts.since,
        "now": facts.now,
        "calls": facts.calls.len(),
    })
}
