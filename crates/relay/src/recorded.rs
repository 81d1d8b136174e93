//! `steady-relay config test-rule FILE`: what a recorded answer would be taken for, and what would be done about it.
//!
//! It asks the very listener that listens to live answers, byte by byte; nothing is decided here. A file is an answer
//! as it came (status line, headers, blank line, body), such as `curl -i` prints, or a body alone. Lines that begin
//! with `#` may stand before it; one of them may tell of the request:
//!
//! ```text
//! # request: POST /v1beta/models/gemini-3-pro:streamGenerateContent
//! HTTP/1.1 503 Service Unavailable
//! content-type: application/json
//!
//! {"error":{"code":503,"status":"UNAVAILABLE"}}
//! ```

use std::fmt::{self, Write as _};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use clap::Args;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use relay_core::config::Config;
use relay_core::decide::{Right, right};
use relay_core::dialect::{self, Because, Dialect, Route, route};
use relay_core::evidence::{Evidence, Nature, Operation, PROMPT};
use relay_core::failure::{Failure, Told};
use relay_core::moment::Moment;
use relay_core::preamble::{Asked, Head, Hold, Preamble, Verdict};
use relay_core::redact::redact;
use relay_core::retry_after::Advice;
use serde_json::{Value, json};

use crate::decode::{DecodeLimits, Decoder, Encoding};

/// What is asked on the command line.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
pub struct TestRule {
    /// The recorded answer: as `curl -i` prints it, or a body alone
    pub file: PathBuf,
    /// The status, where the file is a body alone [default: 200]
    #[arg(long, value_name = "N")]
    pub status: Option<u16>,
    /// The dialect of the request, where the file does not tell: `openai_responses`, `openai_chat`, `anthropic`,
    /// `gemini`, `ollama` or `generic`
    #[arg(long, value_name = "NAME")]
    pub dialect: Option<String>,
    /// The `[upstream.NAME]` that answered, for rules that are about one
    #[arg(long, value_name = "NAME")]
    pub from: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Why a file is no recorded answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}\nhint: {hint}")]
pub struct Unreadable {
    what: String,
    hint: &'static str,
}

/// An answer as it was recorded, and what is known of its request.
#[derive(Debug, Clone)]
struct Recorded {
    route: Route,
    streams: bool,
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

/// What an answer would be taken for.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The name of the dialect in which it was heard.
    pub dialect: &'static str,
    /// The status.
    pub status: u16,
    /// The verdict.
    pub verdict: Taken,
}

/// The verdict on an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Taken {
    /// An answer: it is the client's from the byte at this offset of its body on.
    Answer {
        /// How many bytes are held before.
        commits_at: usize,
        /// Whether its last word is missing.
        breaks_off: bool,
    },
    /// A failure, of which nothing has reached the client.
    Failure(Box<Finding>),
}

/// A failure, prompt and late.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// If it comes within [`PROMPT`].
    pub prompt: Failure,
    /// If it comes later.
    pub late: Failure,
    /// Why; `None` where no answer told of it.
    pub because: Option<Because>,
}

/// What a recorded answer would be taken for under these settings, at this time of day.
///
/// # Errors
/// Where the file, or what was said of it, is no answer.
pub fn test_rule(
    file: &[u8],
    asked: &TestRule,
    config: &Config,
    wall: SystemTime,
) -> Result<Report, Unreadable> {
    let recorded = read(file, asked)?;
    let rules = config.rules_for(recorded.route.dialect.name(), asked.from.as_deref().unwrap_or(""));
    let listen = |took: Duration| {
        let (sent, arrived) = (Moment::ZERO, Moment::ZERO + took);
        let head = Head {
            status: recorded.status,
            headers: recorded.headers.clone(),
            bodiless: false,
            sent,
            arrived,
        };
        let hold = Hold { bytes: usize::try_from(config.hold.bytes).unwrap_or(usize::MAX), time: None };
        let asked = Asked {
            dialect: recorded.route.dialect,
            generation: recorded.route.operation == Operation::Generation,
            streams: recorded.streams,
            hold,
            withhold: &[],
        };
        heard(Preamble::new(asked, head, wall).by(rules.clone()), &recorded.body, arrived)
    };
    let (prompt, because, commits_at) = listen(Duration::ZERO);
    let (late, _, _) = listen(PROMPT + Duration::from_secs(1));
    let verdict = match (prompt, late, commits_at) {
        (Verdict::Fault(prompt), Verdict::Fault(late), None) => {
            Taken::Failure(Box::new(Finding { prompt: *prompt, late: *late, because }))
        }
        (verdict, _, commits_at) => Taken::Answer {
            commits_at: commits_at.unwrap_or(recorded.body.len()),
            breaks_off: matches!(verdict, Verdict::Fault(_)),
        },
    };
    Ok(Report { dialect: recorded.route.dialect.name(), status: recorded.status.as_u16(), verdict })
}

/// The last verdict, why, and how many bytes had come when the answer was committed.
fn heard(mut listener: Preamble, body: &[u8], now: Moment) -> (Verdict, Option<Because>, Option<usize>) {
    let mut verdict = listener.at_head();
    let mut commits_at = (verdict == Verdict::Pass).then_some(0);
    for (index, byte) in body.iter().enumerate() {
        if matches!(verdict, Verdict::Fault(_) | Verdict::Cut { .. }) {
            break;
        }
        verdict = listener.hear(std::slice::from_ref(byte), 1, now);
        if verdict == Verdict::Pass {
            commits_at.get_or_insert(index + 1);
        }
    }
    if matches!(verdict, Verdict::Hold | Verdict::Pass) {
        verdict = listener.ended();
        if verdict == Verdict::Pass {
            commits_at.get_or_insert(body.len());
        }
    }
    (verdict, listener.because().cloned(), commits_at)
}

fn read(file: &[u8], asked: &TestRule) -> Result<Recorded, Unreadable> {
    let file = file.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(file);
    let (notes, rest) = split_notes(file);
    let request = notes.iter().find_map(|note| note.strip_prefix("request:")).map(str::trim);
    let (status, headers, body) = if rest.starts_with(b"HTTP/") {
        head_and_body(rest)?
    } else {
        (None, HeaderMap::new(), rest.to_vec())
    };
    let body = plain(&headers, body)?;
    let status = match (status, asked.status) {
        (Some(status), None) => status,
        (_, given) => given.unwrap_or(200),
    };
    let status = StatusCode::from_u16(status).map_err(|_none| Unreadable {
        what: format!("{status} is no status"),
        hint: "a status is a number from 100 to 999",
    })?;
    let route = route_of(request, asked.dialect.as_deref())?;
    let mut recorded = Recorded { route, streams: false, status, headers, body };
    if !recorded.headers.contains_key(header::CONTENT_TYPE) && rest.first() != Some(&b'H') {
        recorded.headers.insert(header::CONTENT_TYPE, guessed_type(&recorded));
    }
    recorded.streams = streams(&recorded, request);
    Ok(recorded)
}

/// The lines at the top that begin with `#`, without it, and the rest.
fn split_notes(mut file: &[u8]) -> (Vec<&str>, &[u8]) {
    let mut notes = Vec::new();
    while file.first() == Some(&b'#') {
        let end = file.iter().position(|byte| *byte == b'\n').map_or(file.len(), |end| end + 1);
        notes.extend(std::str::from_utf8(&file[1..end]).ok().map(str::trim));
        file = &file[end..];
    }
    (notes, file)
}

/// The last of the heads that stand one after another: interim answers come before the one that counts.
fn head_and_body(mut rest: &[u8]) -> Result<(Option<u16>, HeaderMap, Vec<u8>), Unreadable> {
    loop {
        let broken = |what: String| Unreadable {
            what,
            hint: "record it with `curl -i`: a status line, headers, a blank line, the body",
        };
        let (line, mut after) = next_line(rest);
        let status: u16 = line
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .ok_or_else(|| broken("the first line is no status line".to_owned()))?;
        let mut headers = HeaderMap::new();
        loop {
            let (line, more) = next_line(after);
            after = more;
            if line.is_empty() {
                break;
            }
            let header = line.split_once(':').and_then(|(name, value)| {
                let name = HeaderName::from_bytes(name.trim().as_bytes()).ok()?;
                Some((name, HeaderValue::from_str(value.trim()).ok()?))
            });
            let Some((name, value)) = header else {
                return Err(broken("a line of the head is no header".to_owned()));
            };
            headers.append(name, value);
        }
        if (100..200).contains(&status) && after.starts_with(b"HTTP/") {
            rest = after;
            continue;
        }
        return Ok((Some(status), headers, after.to_vec()));
    }
}

/// The next line as text, and what comes after it. Only heads are read so, and they are ASCII.
fn next_line(bytes: &[u8]) -> (std::borrow::Cow<'_, str>, &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let (line, rest) = match end {
        Some(end) => (&bytes[..end], &bytes[end + 1..]),
        None => (bytes, &[][..]),
    };
    (String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)), rest)
}

/// The body without its framing and its encoding.
fn plain(headers: &HeaderMap, body: Vec<u8>) -> Result<Vec<u8>, Unreadable> {
    let is_chunked = headers
        .get_all(header::TRANSFER_ENCODING)
        .iter()
        .any(|value| value.to_str().is_ok_and(|value| value.to_ascii_lowercase().contains("chunked")));
    // What curl prints has no chunks left, but still says so.
    let body = if is_chunked { unchunked(&body).unwrap_or(body) } else { body };
    let undecodable = |_reason| Unreadable {
        what: "the body does not follow its `content-encoding`".to_owned(),
        hint: "record it plain: `curl -i --compressed`, and leave the header out",
    };
    match Encoding::named(headers.get_all(header::CONTENT_ENCODING)) {
        // A recorder that decodes leaves the header: what reads as text is text.
        Some(Encoding::Identity) => Ok(body),
        _ if body.first().is_some_and(|byte| b"{[ed:<".contains(byte)) => Ok(body),
        Some(encoding) => {
            const LIMITS: DecodeLimits = DecodeLimits { per_push: 64 << 20, total: 64 << 20 };
            let mut text = Vec::new();
            Decoder::new(encoding, LIMITS).push(&body, &mut text).map_err(undecodable)?;
            Ok(text)
        }
        None => Err(undecodable(crate::decode::Undecodable::Corrupt)),
    }
}

/// The content of chunks; `None` where these are none.
fn unchunked(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let (line, rest) = next_line(bytes);
        let size = usize::from_str_radix(line.split(';').next()?.trim(), 16).ok()?;
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(rest.get(..size)?);
        let rest = rest.get(size..)?;
        bytes = rest.strip_prefix(b"\r\n").or_else(|| rest.strip_prefix(b"\n"))?;
    }
}

fn route_of(request: Option<&str>, name: Option<&str>) -> Result<Route, Unreadable> {
    let mut words = request.unwrap_or_default().split_whitespace();
    let by_request = words.next().zip(words.next()).and_then(|(method, path)| {
        let path = path.split('?').next().unwrap_or(path);
        Some(route(&method.parse::<Method>().ok()?, path))
    });
    let Some(name) = name else {
        let unknown = Route { dialect: generic(), operation: Operation::Generation, streams: None };
        return Ok(by_request.unwrap_or(unknown));
    };
    let dialect = dialect::named(name).ok_or_else(|| Unreadable {
        what: format!("there is no dialect `{}`", name.escape_default()),
        hint: "write openai_responses, openai_chat, anthropic, gemini, ollama or generic",
    })?;
    Ok(Route { dialect, operation: Operation::Generation, streams: None })
}

fn generic() -> &'static dyn Dialect {
    route(&Method::POST, "").dialect
}

/// What a body alone most probably was labelled as.
fn guessed_type(recorded: &Recorded) -> HeaderValue {
    let body = recorded.body.trim_ascii_start();
    let first_line = body.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let is_lines = first_line.len() < body.trim_ascii_end().len()
        && serde_json::from_slice::<serde_json::Map<String, Value>>(first_line).is_ok();
    HeaderValue::from_static(match body.first() {
        Some(b'{') if is_lines => "application/x-ndjson",
        Some(b'{' | b'[') => "application/json",
        Some(b'<') => "text/html",
        _ if recorded.status.is_success() => "text/event-stream",
        Some(_) | None => "text/plain",
    })
}

/// Whether the request asked for a stream: as it says, else as the answer looks.
fn streams(recorded: &Recorded, request: Option<&str>) -> bool {
    if recorded.route.operation != Operation::Generation {
        return false;
    }
    let said = request.and_then(|request| {
        let mut words = request.split_whitespace().skip(2);
        words.find_map(|word| match word {
            "stream" => Some(true),
            "whole" => Some(false),
            _ => None,
        })
    });
    if let Some(streams) = recorded.route.streams.or(said) {
        return streams;
    }
    let kind = recorded.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let is_list = recorded.body.trim_ascii_start().first() == Some(&b'[');
    kind.starts_with("text/event-stream")
        || kind.contains("ndjson")
        || (recorded.route.dialect.streams_values() && is_list)
}

impl Report {
    /// The whole report in one line: fault, evidence and told wait, or where the answer is committed.
    #[must_use]
    pub fn summary(&self) -> String {
        match &self.verdict {
            Taken::Answer { commits_at, breaks_off } => {
                format!("commits at {commits_at}{}", if *breaks_off { ", breaks off" } else { "" })
            }
            Taken::Failure(finding) => format!(
                "{}, {}, {}",
                finding.prompt.fault.name(),
                finding.grade(),
                match finding.prompt.advice {
                    Advice::Silent => "-".to_owned(),
                    Advice::Useless => "useless".to_owned(),
                    Advice::Wait(told) => format!("{told:?}"),
                }
            ),
        }
    }

    /// The report for programs.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let verdict = match &self.verdict {
            Taken::Answer { commits_at, breaks_off } => {
                json!({ "answer": { "commits_at": commits_at, "breaks_off": breaks_off } })
            }
            Taken::Failure(finding) => {
                let evidence = |failure: &Failure| failure.evidence.map_or("final", Evidence::name);
                let told = match finding.prompt.advice {
                    Advice::Wait(told) => json!(told.as_secs_f64()),
                    Advice::Silent => Value::Null,
                    Advice::Useless => json!("useless"),
                };
                let actions: serde_json::Map<_, _> = finding
                    .actions()
                    .map(|(asked, prompt, late)| {
                        (asked.to_owned(), json!({ "prompt": in_a_word(prompt), "late": in_a_word(late) }))
                    })
                    .into_iter()
                    .collect();
                let (sign, source) = finding.reason();
                json!({ "failure": {
                    "fault": finding.prompt.fault.name(),
                    "told": told_where(&finding.prompt),
                    "code": finding.prompt.code,
                    "evidence": { "prompt": evidence(&finding.prompt), "late": evidence(&finding.late) },
                    "told_wait": told,
                    "rule": { "sign": sign, "source": source },
                    "resend": actions,
                } })
            }
        };
        let mut report = json!({ "v": 1, "dialect": self.dialect, "status": self.status });
        if let (Some(report), Value::Object(verdict)) = (report.as_object_mut(), verdict) {
            report.extend(verdict);
        }
        report
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { dialect, status, verdict } = self;
        match verdict {
            Taken::Answer { commits_at, breaks_off } => {
                writeln!(out, "taken for  an answer (status {status}, heard as {dialect})")?;
                let end = if *breaks_off { "it lacks its last word" } else { "it ends as it should" };
                write!(out, "held       {commits_at} bytes of its body, then it is the client's; {end}")
            }
            Taken::Failure(finding) => {
                let fault = finding.prompt.fault;
                writeln!(
                    out,
                    "taken for  {}: {} (status {status}, heard as {dialect}, told {})",
                    fault.name(),
                    fault.meaning(),
                    told_where(&finding.prompt)
                )?;
                let (sign, source) = finding.reason();
                writeln!(
                    out,
                    "because    {sign}{}",
                    source.map_or(String::new(), |from| format!(" [{from}]"))
                )?;
                writeln!(out, "evidence   {}", finding.evidence_in_words())?;
                writeln!(out, "told wait  {}", wait_in_words(finding.prompt.advice))?;
                if let Some(message) = finding.prompt.message.as_deref() {
                    let words = redact(message).split_whitespace().collect::<Vec<_>>().join(" ");
                    writeln!(out, "its words  {}", words.chars().take(200).collect::<String>())?;
                }
                let mut lines = String::new();
                for (asked, prompt, late) in finding.actions() {
                    let late = if late == prompt {
                        String::new()
                    } else {
                        format!("; if it comes late, {}", in_words(late))
                    };
                    writeln!(lines, "{asked:<10} {}{late}", in_words(prompt))?;
                }
                out.write_str(lines.trim_end())
            }
        }
    }
}

impl Finding {
    /// Evidence of a prompt and of a late answer, in a word.
    fn grade(&self) -> &'static str {
        match (self.prompt.evidence, self.late.evidence) {
            (None, _) => "final",
            (Some(Evidence::Refused), Some(Evidence::MaybeRan)) => "refused if prompt",
            (Some(Evidence::MaybeRan), _) => "maybe ran",
            (Some(evidence), _) => evidence.name(),
        }
    }

    fn evidence_in_words(&self) -> String {
        let name = |failure: &Failure| failure.evidence.map_or("final", Evidence::name);
        let (prompt, late) = (name(&self.prompt), name(&self.late));
        if prompt == late {
            return prompt.to_owned();
        }
        let seconds = PROMPT.as_secs();
        format!("{prompt} if it comes within {seconds} s, else {late}")
    }

    /// The sign and its source.
    fn reason(&self) -> (String, Option<&str>) {
        match &self.because {
            Some(Because::Yours(rule) | Because::Row(rule)) => (rule.sign.to_string(), Some(&rule.source)),
            Some(Because::Challenge) => ("header `cf-mitigated` is `challenge`".to_owned(), None),
            Some(Because::Status) => ("the status alone; no rule is about it".to_owned(), None),
            Some(Because::Nothing) => ("an error that no rule is about".to_owned(), None),
            None => ("the shape of the answer".to_owned(), None),
        }
    }

    /// What would be done for each kind of request, after a prompt and after a late answer.
    fn actions(&self) -> [(&'static str, Right, Right); 4] {
        let nature = |operation, self_contained| Nature { operation, self_contained, kept: true };
        let by = |failure: &Failure, nature: &Nature| {
            failure.evidence.map_or(Right::Never, |evidence| right(evidence, nature, failure))
        };
        [
            ("generation", nature(Operation::Generation, true)),
            ("stateful", nature(Operation::Generation, false)),
            ("pure", nature(Operation::Pure, true)),
            ("other", nature(Operation::Other, true)),
        ]
        .map(|(asked, nature)| (asked, by(&self.prompt, &nature), by(&self.late, &nature)))
    }
}

const fn in_words(right: Right) -> &'static str {
    match right {
        Right::Free => "sent again, as often as the profile allows",
        Right::Failed => "sent again, a few times (`failed_sends`)",
        Right::Grant => "sent again by a grant (`ambiguous_resends`): it may be billed twice",
        Right::Never => "not sent again: the answer goes to the client as it is",
    }
}

const fn in_a_word(right: Right) -> &'static str {
    match right {
        Right::Free => "free",
        Right::Failed => "failed_send",
        Right::Grant => "grant",
        Right::Never => "never",
    }
}

fn told_where(failure: &Failure) -> &'static str {
    match failure.told {
        Told::ByStatus => "by its status",
        Told::InBody => "inside its body",
        Told::InStream => "inside its stream",
        Told::ByTransport => "by its end",
    }
}

fn wait_in_words(advice: Advice) -> String {
    match advice {
        Advice::Silent => "none: the profile's curve".to_owned(),
        Advice::Useless => "one that says nothing: the curve, and the profile's least wait".to_owned(),
        Advice::Wait(told) => format!("{told:?} at least"),
    }
}

#[cfg(test)]
mod tests;
