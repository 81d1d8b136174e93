//! Finds the error in what a service answers, whatever shape its makers gave it.
//!
//! What it is not: a judgement. Which code means "at capacity" is a row of a dialect's table; this only says
//! what the code is. Nor is it a log's friend: a message may quote the prompt, so no field of [`ErrorFields`]
//! is to be logged.
//!
//! | shape | who |
//! |---|---|
//! | `{"error":{..}}`, `{"type":"error","error":{..}}`, `{"error":".."}` | most; Anthropic; Ollama, TGI |
//! | `[{"error":{..}}]` | Gemini without `alt=sse` |
//! | `{"type":"error","code":..,"message":..}` | Responses, in a stream |
//! | `{"type":"response.failed","response":{"error":{..}}}` | Responses, in a stream |
//! | `{"object":"error","message":..,"code":400}` | vLLM, older |
//! | `{"error_code":..,"error_msg":..}` | Baidu |
//! | `{"base_resp":{"status_code":1002,"status_msg":".."}}` | MiniMax |
//! | `{"detail":..}`, `{"errors":[..]}`, `{"code":..,"message":..}` | FastAPI, Cloudflare, SiliconFlow |
//!
//! The last row's words are common ones. They make an error only where nothing else of substance stands
//! beside them.

use std::time::Duration;

use super::{Members, each_item, first_item, is_full, text, without_odd_numbers};
use crate::retry_after::duration_text;

/// What an error says about itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ErrorFields {
    /// The code; a number as its decimal text. A more precise one in `details.error_code` takes its place.
    pub code: Option<String>,
    /// The `type`.
    pub kind: Option<String>,
    /// Google's word for the status: `UNAVAILABLE`.
    pub status: Option<String>,
    /// What narrows the code down: Google's `ErrorInfo.reason`, OpenRouter's `metadata.limit_source` or
    /// `error_type`.
    pub reason: Option<String>,
    /// Google's `quotaId` of the limit that was hit; of several a daily one, because it heals last.
    pub quota: Option<String>,
    /// The message for people.
    pub message: Option<String>,
    /// What the service behind a gateway said: OpenRouter's `metadata.raw`. Often JSON itself.
    pub behind: Option<String>,
    /// An HTTP status among the codes, 400 to 599: what the service would have answered, had it been free to.
    pub http: Option<u16>,
    /// In how many seconds the limit resets, by `resets_in_seconds`.
    pub resets_in: Option<f64>,
    /// When the limit resets, in Unix seconds, by `resets_at`.
    pub resets_at: Option<f64>,
    /// How long to wait, by Google's `RetryInfo.retryDelay`.
    pub retry_delay: Option<Duration>,
    /// The same value also holds some answer: something was made before it failed.
    pub names_output: bool,
}

/// The members of an answer that hold what a model made.
const ANSWERS: &[&str] = &["choices", "output", "content", "candidates", "data", "result", "completion"];

/// All that is looked for at the top.
#[rustfmt::skip]
const TOP: &[&str] = &[
    // What says that something failed.
    "error", "type", "__type", "object", "response", "base_resp", "detail", "errors",
    // What it says.
    "message", "msg", "title", "code", "status", "status_code", "statusCode", "error_code", "error_msg",
    "error_message", "error_type", "error_description", "resets_in_seconds", "resets_at",
    // An answer.
    "choices", "output", "content", "candidates", "data", "result", "completion",
    // Here only so that they do not count as substance.
    "request_id", "requestId", "trace_id", "traceId", "timestamp", "path", "success", "messages",
    "instance", "param", "sequence_number", "event_id", "documentation_url",
];

/// All that is looked for inside an error.
#[rustfmt::skip]
const ERROR: &[&str] = &[
    "error", "type", "code", "status", "message", "msg", "status_code", "statusCode", "http_code",
    "error_code", "error_msg", "error_type", "details", "metadata", "resets_in_seconds", "resets_at",
];

const CODES: &[&str] = &["code", "error_code", "status_code", "statusCode"];
const STATUSES: &[&str] = &["code", "status", "status_code", "statusCode", "http_code", "error_code"];
const MESSAGES: &[&str] =
    &["message", "msg", "error_msg", "error_message", "error_description", "detail", "title"];

/// The error that a JSON body, or the data of one event, is; `None` where it is none.
///
/// `"error"` that is `null`, `false`, `{}`, `[]`, `""` or 0 is a sign of health. A number that JSON does not have, such as
/// the `NaN` of Python, is read as `null`: what stands beside it counts all the same.
#[must_use]
pub fn error_fields(body: &[u8]) -> Option<ErrorFields> {
    strict_error_fields(body).or_else(|| strict_error_fields(without_odd_numbers(body)?.as_bytes()))
}

fn strict_error_fields(body: &[u8]) -> Option<ErrorFields> {
    let body = as_text(body)?;
    if body.starts_with('[') {
        return of_array(body);
    }
    let top = Members::of(body, TOP)?;
    let fields = of_object(&top)?;
    Some(ErrorFields { names_output: names_output(&top), ..fields })
}

/// The same for the body of an answer whose status already says that it failed. There every message counts,
/// also a bare `{"message":".."}` or a bare text.
#[must_use]
pub fn refusal_fields(body: &[u8]) -> Option<ErrorFields> {
    let mended = without_odd_numbers(body);
    let body = mended.as_deref().map_or(body, str::as_bytes);
    strict_error_fields(body).or_else(|| {
        let body = as_text(body)?;
        let fields = match Members::of(body, TOP) {
            Some(top) => flat(&top),
            None => ErrorFields { message: text(body), ..ErrorFields::default() },
        };
        (fields != ErrorFields::default()).then_some(fields)
    })
}

/// Whether the JSON body of a 2xx answer is an error after all: it has the shape of one, and no answer beside
/// it.
#[must_use]
pub fn is_top_level_error(body: &[u8]) -> bool {
    error_fields(body).is_some_and(|fields| !fields.names_output)
}

/// Whether the JSON body is a thing that the service keeps and has a name for: then an error in it is part of that
/// thing's story.
#[must_use]
pub fn is_kept_thing(body: &[u8]) -> bool {
    let Some(top) = as_text(body).and_then(|body| Members::of(body, &["id", "object"])) else { return false };
    top.get("id").is_some() || top.text("object").is_some_and(|object| object != "error")
}

/// The body as text, from its first byte of substance. Some services send blank lines while they think.
fn as_text(body: &[u8]) -> Option<&str> {
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    std::str::from_utf8(body.trim_ascii()).ok()
}

fn of_array(body: &str) -> Option<ErrorFields> {
    let (mut found, mut output) = (None, false);
    each_item(body, TOP, |item| {
        output |= names_output(&item);
        if found.is_none() {
            found = item.get("error").and_then(|error| of_error(error, &item));
        }
    })?;
    found.map(|fields| ErrorFields { names_output: output, ..fields })
}

fn of_object(top: &Members<'_>) -> Option<ErrorFields> {
    if let Some(fields) = top.get("base_resp").and_then(of_base_resp) {
        return Some(fields);
    }
    if let Some(fields) = top.get("error").and_then(|error| of_error(error, top)) {
        return Some(fields);
    }
    let response = top.get("response").and_then(|response| Members::of(response, &["error"]));
    if let Some(fields) = response.and_then(|it| of_error(it.get("error")?, &Members::default())) {
        return Some(fields);
    }
    let kind = top.text("type");
    let says_error = matches!(kind.as_deref(), Some("error" | "response.failed"))
        || top.text("object").as_deref() == Some("error")
        || top.get("error_code").is_some_and(|code| bad_code(code).is_some());
    if says_error {
        return Some(flat(top));
    }
    if top.has_others || names_output(top) {
        return None;
    }
    let fields = flat(top);
    // A type that speaks of no error is that of an event, and an event may well have a message or a detail.
    let is_event =
        kind.is_some_and(|kind| !kind.to_ascii_lowercase().contains("error")) && fields.http.is_none();
    if is_event {
        return None;
    }
    if let Some(detail) = top.get("detail").filter(|detail| is_full(detail)) {
        return if detail.starts_with('"') { Some(fields) } else { of_error(detail, top) };
    }
    if let Some(errors) = top.get("errors").filter(|errors| is_full(errors)) {
        return of_error(errors, top);
    }
    let has_code = top.get("code").and_then(bad_code).is_some() || top.text("__type").is_some();
    (has_code && fields.message.is_some()).then_some(fields)
}

/// MiniMax puts it into every answer; 0 is health.
fn of_base_resp(value: &str) -> Option<ErrorFields> {
    let members = Members::of(value, &["status_code", "status_msg"])?;
    let code = members.get("status_code").and_then(bad_code)?;
    let http = http_status(&code);
    Some(ErrorFields {
        code: Some(code),
        http,
        message: members.text("status_msg"),
        ..ErrorFields::default()
    })
}

/// The error that the member `value` of `top` is; what it leaves open, `top` may say.
fn of_error(value: &str, top: &Members<'_>) -> Option<ErrorFields> {
    if !is_full(value) || value == "0" {
        return None;
    }
    let mut fields = flat(top);
    match value.as_bytes().first()? {
        b'{' => {
            let mut inner = of_error_object(value)?;
            inner.code = inner.code.or(fields.code);
            inner.kind = inner.kind.or_else(|| top.text("error_type"));
            inner.message = inner.message.or(fields.message);
            inner.http = inner.http.or(fields.http);
            inner.resets_in = inner.resets_in.or(fields.resets_in);
            inner.resets_at = inner.resets_at.or(fields.resets_at);
            return Some(inner);
        }
        // A list in a list is nobody's error; whoever nests a thousand must not make this as deep.
        b'[' => match first_item(value)? {
            item if item.starts_with('[') => {}
            item => return of_error(item, top),
        },
        // With a message beside it, the text is a name: `{"error":"Too Many Requests","message":".."}`.
        b'"' if fields.message.is_some() => fields.kind = fields.kind.or_else(|| text(value)),
        b'"' => fields.message = text(value),
        b't' => {}
        _ => {
            fields.http = fields.http.or_else(|| http_status(value));
            fields.code = fields.code.or_else(|| Some(value.to_owned()));
        }
    }
    Some(fields)
}

fn of_error_object(value: &str) -> Option<ErrorFields> {
    let mut error = Members::of(value, ERROR)?;
    // An error that holds nothing but another one: a proxy wrapped it.
    if let Some(inner) = error.get("error").filter(|_| error.get("message").is_none())
        && let Some(inner) = Members::of(inner, ERROR)
    {
        error = inner;
    }
    let mut fields = flat(&error);
    fields.status = error.text("status");
    if let Some(details) = error.get("details") {
        read_details(details, &mut fields);
    }
    if let Some(metadata) = error.get("metadata") {
        read_metadata(metadata, &mut fields);
    }
    Some(fields)
}

/// What stands in one object side by side.
fn flat(members: &Members<'_>) -> ErrorFields {
    let first = |names: &[&str], read: fn(&str) -> Option<String>| {
        names.iter().find_map(|name| members.get(name).and_then(read))
    };
    let kind = members.text("type").filter(|kind| kind != "error");
    ErrorFields {
        code: first(CODES, bad_code),
        kind: kind.or_else(|| first(&["error_type", "__type"], text)),
        message: first(MESSAGES, text),
        http: STATUSES.iter().find_map(|name| members.get(name).and_then(http_status)),
        resets_in: members.get("resets_in_seconds").and_then(number),
        resets_at: members.get("resets_at").and_then(number),
        ..ErrorFields::default()
    }
}

/// `details`: an object at Anthropic, a list of typed objects at Google.
fn read_details(value: &str, fields: &mut ErrorFields) {
    if let Some(details) = Members::of(value, &["error_code"]) {
        fields.code = details.text("error_code").or_else(|| fields.code.take());
        return;
    }
    let names = &["reason", "retryDelay", "violations"];
    each_item(value, names, |detail| {
        fields.reason = fields.reason.take().or_else(|| detail.text("reason"));
        let delay = detail.text("retryDelay").and_then(|delay| duration_text(&delay));
        fields.retry_delay = fields.retry_delay.max(delay);
        if let Some(violations) = detail.get("violations") {
            read_violations(violations, fields);
        }
    });
}

fn read_violations(value: &str, fields: &mut ErrorFields) {
    let is_daily = |quota: &Option<String>| quota.as_ref().is_some_and(|quota| quota.contains("PerDay"));
    each_item(value, &["quotaId"], |violation| {
        let quota = violation.text("quotaId");
        if fields.quota.is_none() || (is_daily(&quota) && !is_daily(&fields.quota)) {
            fields.quota = quota;
        }
    });
}

fn read_metadata(value: &str, fields: &mut ErrorFields) {
    let Some(metadata) = Members::of(value, &["limit_source", "error_type", "reason", "raw"]) else { return };
    let reason = ["limit_source", "error_type", "reason"].iter().find_map(|name| metadata.text(name));
    fields.reason = fields.reason.take().or(reason);
    fields.behind =
        metadata.get("raw").filter(|raw| is_full(raw)).map(|raw| text(raw).unwrap_or_else(|| raw.to_owned()));
}

/// Whether the value holds something that a model made.
fn names_output(top: &Members<'_>) -> bool {
    let response = top.get("response");
    ANSWERS.iter().any(|name| top.is_full(name))
        || top.get("message").is_some_and(|message| message.starts_with('{') && is_full(message))
        // Ollama's answer is a text; that of Responses is an object with its output.
        || response.is_some_and(|response| response.starts_with('"') && is_full(response))
        || response.and_then(|it| Members::of(it, &["output"])).is_some_and(|it| it.is_full("output"))
}

/// A code, if it is one of failure: a number as its decimal text, or a text.
fn bad_code(value: &str) -> Option<String> {
    let is_number = value.starts_with(|first: char| first == '-' || first.is_ascii_digit());
    let code = if is_number { value.to_owned() } else { text(value)? };
    // Some services state success as well: 0, a 2xx, SiliconFlow's 20000, or a word for it.
    let is_good = match code.parse::<f64>() {
        Ok(number) => number == 0.0 || (200.0..300.0).contains(&number) || number == 20000.0,
        Err(_) => ["ok", "success"].iter().any(|word| code.eq_ignore_ascii_case(word)),
    };
    (!is_good).then_some(code)
}

/// The HTTP status of failure that a number, or a text of digits, is.
fn http_status(value: &str) -> Option<u16> {
    let status: u16 = value.trim_matches('"').parse().ok()?;
    (400..600).contains(&status).then_some(status)
}

/// A number that is not negative, also one in quotes.
fn number(value: &str) -> Option<f64> {
    let number: f64 = value.trim_matches('"').parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number)
}

#[cfg(test)]
mod tests;
