//! A snapshot for people, and what the present settings would make of it. Pure: nothing is sent.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

use relay_core::client::Kind;
use relay_core::config::{Config, ProfileChoice};
use relay_core::{Lang, plain};
use serde_json::{Value, json};

use super::file::{Body, Snapshot};
use crate::history::record::CallRecord;
use crate::observe::log::timestamp_of;
use crate::recorded::{Report, TestRule, test_rule};
use crate::terminal::padded;
use crate::words::snapshots as words;

/// Headers that are about a body as it came; here it is plain.
const OF_THE_WIRE: [&str; 4] = ["content-encoding", "content-length", "transfer-encoding", "connection"];

/// The list for people, at most 80 columns and more only where names are long.
#[must_use]
pub fn list(all: &[Snapshot]) -> String {
    let line = |snapshot: &Snapshot| {
        let of = Said::of(snapshot);
        let cell = |words, columns| padded(&plain::line(words), columns);
        format!(
            "{}{}{}{} {}",
            cell(&snapshot.id, 32),
            cell(of.outcome, 13),
            cell(&of.status, 5),
            cell(of.fault, 15),
            plain::line(&of.who)
        )
    };
    all.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The list for programs.
#[must_use]
pub fn list_json(all: &[Snapshot]) -> Value {
    let one = |snapshot: &Snapshot| {
        let record = &snapshot.record;
        let closed = record.closed.as_ref();
        json!({
            "id": snapshot.id,
            "at": snapshot.at,
            "outcome": closed.map(|closed| &closed.outcome),
            "method": snapshot.request.method,
            "url": snapshot.request.url,
            "status": snapshot.answer.as_ref().and_then(|answer| answer.status),
            "fault": closed.and_then(|closed| closed.last_fault.as_ref()),
            "upstream": record.upstream,
            "model": record.model,
            "call": record.name(),
        })
    };
    json!({ "v": 1, "snapshots": all.iter().map(one).collect::<Vec<_>>() })
}

/// A snapshot in a few words.
struct Said<'a> {
    outcome: &'a str,
    status: String,
    fault: &'a str,
    who: String,
}

impl<'a> Said<'a> {
    fn of(snapshot: &'a Snapshot) -> Self {
        let CallRecord { closed, upstream, model, .. } = &snapshot.record;
        let status = snapshot.answer.as_ref().and_then(|answer| answer.status);
        Self {
            outcome: closed.as_ref().map_or("-", |closed| &closed.outcome),
            status: status.map_or_else(|| "-".to_owned(), |status| status.to_string()),
            fault: closed.as_ref().and_then(|closed| closed.last_fault.as_deref()).unwrap_or("-"),
            who: format!("{} {upstream}", model.as_deref().unwrap_or("-")),
        }
    }
}

/// All of one, for people.
#[must_use]
pub fn text(lang: Lang, snapshot: &Snapshot) -> String {
    let request = &snapshot.request;
    let mut out = format!("{}\n\n{} {}\n", ended(lang, snapshot), request.method, request.url);
    headers(&mut out, &request.headers);
    body(lang, &mut out, &request.body);
    match &snapshot.answer {
        Some(answer) => {
            let status =
                answer.status.map_or_else(|| words::message(lang), |status| format!("HTTP {status}"));
            let _always = write!(out, "\n\n{status}\n");
            headers(&mut out, &answer.headers);
            body(lang, &mut out, &answer.body);
        }
        None => {
            let _always = write!(out, "\n\n{}", words::no_answer(lang));
        }
    }
    plain::text(&out).into_owned()
}

/// How its call ended.
fn ended(lang: Lang, snapshot: &Snapshot) -> String {
    let of = Said::of(snapshot);
    let sends = snapshot.record.closed.as_ref().map_or(0, |closed| closed.sends);
    let how = if of.fault == "-" { of.outcome.to_owned() } else { format!("{} ({})", of.outcome, of.fault) };
    words::ended(
        lang,
        &timestamp_of(snapshot.at),
        &format!("{} {}", snapshot.record.name(), of.who),
        &how,
        sends,
    )
}

fn headers(out: &mut String, all: &[(String, String)]) {
    for (name, value) in all {
        let _always = writeln!(out, "{name}: {value}");
    }
    out.push('\n');
}

fn body(lang: Lang, out: &mut String, body: &Body) {
    match (&body.json, &body.text, &body.left_out) {
        (Some(json), _, _) => out.push_str(&serde_json::to_string_pretty(json).unwrap_or_default()),
        (None, Some(text), _) => out.push_str(text.trim_end()),
        (None, None, Some(why)) => out.push_str(&words::left_out(lang, body.bytes, why)),
        (None, None, None) => out.push_str(&words::no_body(lang)),
    }
    if let Some(most) = body.shortened_to {
        let _always = write!(out, "\n{}", words::shortened(lang, most));
    }
}

/// The request as one would give it to curl.
#[must_use]
pub fn curl(snapshot: &Snapshot) -> String {
    let request = &snapshot.request;
    let mut out = format!("curl -X {} {}", request.method, quoted(&request.url));
    for (name, value) in request.headers.iter().filter(|(name, _)| is_given(name)) {
        let _always = write!(out, " \\\n  -H {}", quoted(&format!("{name}: {value}")));
    }
    let body = match (&request.body.json, &request.body.text) {
        (Some(json), _) => Some(json.to_string()),
        (None, text) => text.clone(),
    };
    if let Some(body) = body {
        let _always = write!(out, " \\\n  --data-binary {}", quoted(&body));
    }
    plain::text(&out).into_owned()
}

fn is_given(name: &str) -> bool {
    !OF_THE_WIRE.contains(&name) && name != "host"
}

/// As a shell takes it.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// What the present settings would make of a snapshot.
#[derive(Debug)]
pub struct Anew {
    /// The profile that its call would have.
    pub profile: String,
    /// The upstream that the settings would send it to, where a route names one.
    pub upstream: Option<String>,
    /// What its answer would be taken for; `Err` with why that cannot be said.
    pub answer: Result<Report, String>,
}

/// Decides anew about a snapshot.
#[must_use]
pub fn anew(lang: Lang, snapshot: &Snapshot, config: &Config, rules_at: &[String]) -> Anew {
    let record = &snapshot.record;
    let kind = Kind::ALL.into_iter().find(|kind| kind.name() == record.client).unwrap_or(Kind::Other);
    let path = path_of(&snapshot.request.url);
    let route = config.route(path, kind, record.model.as_deref());
    let profile = match config.profile_choice(route, kind) {
        ProfileChoice::Auto => "auto".to_owned(),
        ProfileChoice::Named(name) => name.clone(),
    };
    let upstream = route.and_then(|route| route.upstream.clone());
    Anew { profile, upstream, answer: judged(lang, snapshot, config, rules_at) }
}

fn path_of(url: &str) -> &str {
    let from = url.find("://").map_or(0, |at| at + 3);
    let path = url[from..].find('/').map_or("/", |at| &url[from + at..]);
    path.split(['?', '#']).next().unwrap_or("/")
}

/// What the answer would be taken for.
fn judged(lang: Lang, snapshot: &Snapshot, config: &Config, rules_at: &[String]) -> Result<Report, String> {
    let Some(answer) = &snapshot.answer else { return Err(words::no_answer(lang)) };
    let Some(status) = answer.status else { return Err(words::of_a_websocket(lang)) };
    if let Some(why) = &answer.body.left_out {
        return Err(words::left_out(lang, answer.body.bytes, why));
    }
    let mut file = format!("HTTP/1.1 {status} Recorded\r\n");
    for (name, value) in answer.headers.iter().filter(|(name, _)| is_given(name)) {
        let _always = write!(file, "{name}: {value}\r\n");
    }
    file.push_str("\r\n");
    match (&answer.body.json, &answer.body.text) {
        (Some(json), _) => file.push_str(&json.to_string()),
        (None, text) => file.push_str(text.as_deref().unwrap_or_default()),
    }
    let asked = TestRule {
        dialect: Some(snapshot.record.dialect.clone()),
        from: Some(snapshot.record.upstream.clone()).filter(|name| config.upstreams.contains_key(name)),
        ..TestRule::default()
    };
    let at = SystemTime::UNIX_EPOCH + Duration::from_millis(snapshot.at);
    let mut report = test_rule(file.as_bytes(), &asked, config, at).map_err(|error| error.to_string())?;
    report.name_rule(rules_at);
    Ok(report)
}

/// What would be done, for people.
#[must_use]
pub fn replay(lang: Lang, snapshot: &Snapshot, anew: &Anew) -> String {
    let whither = match &anew.upstream {
        Some(name) => words::by_route(lang, &anew.profile, name),
        None => words::by_profile(lang, &anew.profile),
    };
    let now = match &anew.answer {
        Ok(report) => report.to_string(),
        Err(why) => words::undecided(lang, why),
    };
    format!(
        "{}\n\n{}\n{}\n{whither}\n\n{now}",
        curl(snapshot),
        words::not_sent(lang),
        words::then(lang, &ended(lang, snapshot))
    )
}

/// The same for programs.
#[must_use]
pub fn replay_json(snapshot: &Snapshot, anew: &Anew) -> Value {
    let (answer, undecided) = match &anew.answer {
        Ok(report) => (report.to_json(), Value::Null),
        Err(why) => (Value::Null, why.as_str().into()),
    };
    json!({
        "v": 1,
        "id": snapshot.id,
        "sent": false,
        "request": snapshot.request,
        "then": snapshot.record.closed,
        "now": { "profile": anew.profile, "upstream": anew.upstream, "answer": answer, "undecided": undecided },
    })
}
