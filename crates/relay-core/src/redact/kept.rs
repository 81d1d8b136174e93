//! Takes secrets out of what is kept of a request and its answer: headers, addresses, JSON, forms, texts. What is not
//! known to be harmless is not kept: of a header that nobody has listed only its length stays, of a body of another
//! kind only its size, which the caller knows.
//!
//! What people wrote stays, without keys, tokens, e-mail addresses and home folders. Where it is not clear whether
//! something is a secret, it is one.

mod fields;

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{GONE, bounded, is_no_id, push_without_home, redact, runs, unescaped};

/// JSON within texts within JSON is read so deep, and addresses within addresses.
const DEEPEST: u32 = 6;
/// A run of base64 of this length is data, whatever is in it.
const DATA: usize = 200;

/// Headers of a request, and of an answer, whose values are no secrets; the end of a name may be left open with a `*`.
const PLAIN: &[&str] = &[
    "accept",
    "accept-encoding",
    "anthropic-beta",
    "anthropic-ratelimit-*",
    "anthropic-version",
    "cache-control",
    "cf-mitigated",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "date",
    "expect",
    "expires",
    "last-modified",
    "openai-beta",
    "openai-processing-ms",
    "openai-version",
    "originator",
    "retry-after",
    "retry-after-ms",
    "server",
    "transfer-encoding",
    "upgrade",
    "vary",
    "version",
    "x-ratelimit-*",
    "x-should-retry",
    "x-stainless-*",
];

/// Words in the names of secrets, however the name is written.
const TELLING: &[&str] = &[
    "accesskey",
    "account",
    "apikey",
    "auth",
    "bearer",
    "cookie",
    "credential",
    "csrf",
    "email",
    "jwt",
    "login",
    "otp",
    "passphrase",
    "passwd",
    "password",
    "phone",
    "privatekey",
    "pwd",
    "secret",
    "signature",
    "token",
    "username",
];
/// Words that tell so where they stand alone between signs, or as one hump of a name.
const TELLING_ALONE: &[&str] = &[
    "device",
    "hmac",
    "key",
    "keys",
    "mail",
    "org",
    "organization",
    "pass",
    "pin",
    "psk",
    "session",
    "sid",
    "sig",
    "tenant",
    "user",
];
/// Names that tell so in an address or a form, where signed addresses and sign-ins have them.
const TELLING_IN_QUERIES: &[&str] = &["code", "hash", "policy", "skoid", "sktid", "state", "ticket"];

/// The value of a request's header.
#[must_use]
pub fn request_header(name: &str, value: &str) -> String {
    let name = name.to_ascii_lowercase();
    match name.as_str() {
        "user-agent" => products(value),
        _ if is_plain(&name) => text(value),
        _ => gone(value),
    }
}

/// The value of an answer's header. A word or a number may be what a rule of the user's looks at.
#[must_use]
pub fn answer_header(name: &str, value: &str) -> String {
    let name = name.to_ascii_lowercase();
    let is_word =
        value.len() <= 32 && value.bytes().all(|byte| byte.is_ascii_lowercase() || b" _-".contains(&byte));
    let is_amount =
        value.len() <= 12 && value.bytes().all(|byte| byte.is_ascii_digit() || b" .%/-".contains(&byte));
    if is_plain(&name) {
        text(value)
    } else if (is_word || is_amount) && !is_telling(&name) {
        value.to_owned()
    } else {
        gone(value)
    }
}

fn is_plain(name: &str) -> bool {
    PLAIN.iter().any(|known| match known.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => *known == name,
    })
}

fn gone(value: &str) -> String {
    format!("[redacted, {} bytes]", value.len())
}

/// The products of a `user-agent`: the words with a version.
fn products(value: &str) -> String {
    let is_version = |version: &str| {
        version.len() <= 24
            && version.starts_with(|c: char| c.is_ascii_digit())
            && version.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-+".contains(&byte))
    };
    let is_product = |word: &&str| {
        word.split_once('/').is_some_and(|(name, version)| name.len() <= 40 && is_version(version))
    };
    let words: Vec<_> = value.split_whitespace().filter(is_product).collect();
    if words.is_empty() { gone(value) } else { text(&words.join(" ")) }
}

/// A path and query, or a whole URL.
#[must_use]
pub fn url(url: &str) -> String {
    url_at(url, 0)
}

fn url_at(url: &str, depth: u32) -> String {
    let (whole, fragment) = url.split_once('#').map_or((url, None), |(whole, rest)| (whole, Some(rest)));
    let (place, query) = whole.split_once('?').map_or((whole, None), |(place, query)| (place, Some(query)));
    let (start, path) = match place.find("://").map(|at| at + 3) {
        Some(from) => place.split_at(place[from..].find('/').map_or(place.len(), |at| from + at)),
        None => ("", place),
    };
    let mut out = match (start.find("://"), start.rfind('@')) {
        (Some(scheme), Some(at)) => format!("{}{GONE}{}", &start[..scheme + 3], &start[at..]),
        (_, Some(at)) => format!("{GONE}{}", &start[at..]),
        (_, None) => start.to_owned(),
    };
    // A folder of somebody spans several segments.
    let mut homeless = String::with_capacity(path.len());
    push_without_home(&mut homeless, path);
    let segments: Vec<_> = homeless.split('/').map(|segment| shown_or_gone(segment, depth)).collect();
    out.push_str(&segments.join("/"));
    if let Some(query) = query {
        out.push('?');
        out.push_str(&pairs(query, depth));
    }
    if fragment.is_some() {
        out.push_str("#…");
    }
    out
}

/// The pairs of a query or a form, as they are written.
fn pairs(text: &str, depth: u32) -> String {
    let pair = |pair: &str| match pair.split_once('=') {
        Some((name, value)) => {
            let plain = unescaped(name);
            let hidden = is_telling(&plain)
                || TELLING_IN_QUERIES.iter().any(|telling| telling.eq_ignore_ascii_case(&plain));
            let value =
                if hidden && !value.is_empty() { GONE.to_owned() } else { shown_or_gone(value, depth) };
            format!("{}={value}", shown_or_gone(name, depth))
        }
        None => shown_or_gone(pair, depth),
    };
    text.split('&').map(pair).collect::<Vec<_>>().join("&")
}

/// A part of an address as it is, or nothing of it where there is a secret in it in whatever writing.
fn shown_or_gone(part: &str, depth: u32) -> String {
    let is_shown = part == GONE || part == "~" || is_clean(part, depth);
    if is_shown { part } else { GONE }.to_owned()
}

/// Whether there is nothing to be taken out of a text, as it is and with its escapes read once and twice. Each reading
/// may hold more of the same, so it ends somewhere.
fn is_clean(part: &str, depth: u32) -> bool {
    let is_clean = |it: &str| depth < DEEPEST && text_at(it, depth + 1) == it;
    let plain = unescaped(part);
    let twice = unescaped(&plain);
    (part.len() < 2 || is_clean(&plain)) && (plain == twice || is_clean(&twice))
}

/// What a body is kept as.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// JSON.
    Json(Value),
    /// A form's pairs, and anything else that is text.
    Text(String),
}

/// A body of this `content-type`, as it may be kept; `None`: it is of no kind that is known here, or not what it says.
#[must_use]
pub fn body(content_type: Option<&str>, bytes: &[u8]) -> Option<Body> {
    let kind = content_type.unwrap_or("application/json").split(';').next().unwrap_or_default();
    let kind = kind.trim().to_ascii_lowercase();
    let words = std::str::from_utf8(bytes).ok()?;
    if kind == "application/x-www-form-urlencoded" {
        return Some(Body::Text(pairs(words, 0)));
    }
    if kind == "application/json" || kind.ends_with("+json") {
        return Some(Body::Json(json(bounded::read(bytes)?)));
    }
    let is_text =
        kind.starts_with("text/") || ["application/x-ndjson", "application/jsonl"].contains(&&*kind);
    is_text.then(|| Body::Text(lines(words)))
}

/// Text whose lines may hold JSON, as those of event streams do.
fn lines(text: &str) -> String {
    let one = |line: &str| {
        let (field, rest) = match line.strip_prefix("data:") {
            Some(rest) => ("data: ", rest.trim_start()),
            None => ("", line),
        };
        // Most lines hold none, and need not be read for that.
        match rest.starts_with(['{', '[']).then(|| bounded::read(rest.as_bytes())).flatten() {
            Some(value) => format!("{field}{}", json(value)),
            None => self::text(line),
        }
    };
    // What spans lines, as a key in its armour does.
    if is_armoured(text) { GONE.to_owned() } else { text.split('\n').map(one).collect::<Vec<_>>().join("\n") }
}

/// JSON without secrets: by the names of fields, by how values look, and within values that are JSON themselves.
#[must_use]
pub fn json(value: Value) -> Value {
    within(value, 0)
}

/// Piece by piece in the place of what was there: a copy would be as large again.
fn within(value: Value, depth: u32) -> Value {
    match value {
        Value::Null | Value::Bool(_) => value,
        Value::Number(number) => {
            // As long as the number of a card or an account.
            let digits = number.to_string();
            if digits.bytes().filter(u8::is_ascii_digit).count() > 17 { GONE.into() } else { number.into() }
        }
        Value::String(words) => string(&words, depth).into(),
        Value::Array(mut all) => {
            all.iter_mut().for_each(|one| *one = within(one.take(), depth));
            all.into()
        }
        Value::Object(fields) => {
            let one = |(name, value): (String, Value)| {
                let hidden = is_telling(&name) && !is_count(&name, &value);
                (text(&name), if hidden { hide(value) } else { within(value, depth) })
            };
            fields.into_iter().map(one).collect::<Map<_, _>>().into()
        }
    }
}

/// `max_tokens` is no token.
fn is_count(name: &str, value: &Value) -> bool {
    name.to_ascii_lowercase().contains("tokens") && counts(value)
}

/// Whether there is nothing but numbers in it.
fn counts(value: &Value) -> bool {
    match value {
        Value::Null | Value::Number(_) => true,
        Value::Object(fields) => fields.values().all(counts),
        Value::Bool(_) | Value::String(_) | Value::Array(_) => false,
    }
}

fn hide(value: Value) -> Value {
    match value {
        Value::Null | Value::Bool(_) => value,
        Value::String(text) if text.is_empty() => text.into(),
        Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => GONE.into(),
    }
}

fn string(words: &str, depth: u32) -> String {
    let trimmed = words.trim();
    if depth < DEEPEST
        && trimmed.starts_with(['{', '['])
        && let Some(inner) = bounded::read(trimmed.as_bytes())
    {
        return within(inner, depth + 1).to_string();
    }
    text(words)
}

/// A text without secrets, addresses of people, home folders and data.
#[must_use]
pub fn text(words: &str) -> String {
    text_at(words, 0)
}

fn text_at(words: &str, depth: u32) -> String {
    if is_armoured(words) {
        return GONE.to_owned();
    }
    // First by what stands before a secret: what is taken out below may be that.
    let words = with_each_word(&fields::without_fields(words), without_login);
    let words = redact(&words);
    let words = with_each_word(&without_data(&words), |bare| {
        if bare.contains("://") {
            url_in_text(bare, depth).into()
        } else if looks_random(bare)
            || bare.contains('%') && unescaped(bare) != bare && !is_clean(bare, depth)
        {
            GONE.into()
        } else if bare.contains('=') {
            query_in_text(bare, depth)
        } else {
            bare.into()
        }
    });
    redact(&words).into_owned()
}

/// A text with something else for each of its words.
fn with_each_word<'w>(words: &'w str, change: impl Fn(&'w str) -> Cow<'w, str>) -> String {
    let is_end = |c: char| c.is_whitespace() || "\"'`<>()[]{},;|*".contains(c);
    let mut out = String::with_capacity(words.len());
    for word in words.split_inclusive(is_end) {
        let end = word.chars().next_back().filter(|end| is_end(*end)).map_or(0, char::len_utf8);
        let (bare, end) = word.split_at(word.len() - end);
        out.push_str(&change(bare));
        out.push_str(end);
    }
    out
}

/// An address without the user and the password before its host.
fn without_login(word: &str) -> Cow<'_, str> {
    let Some(from) = word.find("://").map(|at| at + 3) else { return word.into() };
    let end = word[from..].find(['/', '?', '#']).map_or(word.len(), |at| from + at);
    match word[from..end].rfind('@') {
        Some(at) => format!("{}{GONE}{}", &word[..from], &word[from + at..]).into(),
        None => word.into(),
    }
}

/// The address in a word, which may begin with something else.
fn url_in_text(word: &str, depth: u32) -> String {
    let at = word.find("://").unwrap_or_default();
    let start = word[..at].rfind(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c));
    let start = start.map_or(0, |before| before + word[before..].chars().next().map_or(1, char::len_utf8));
    let before = if looks_random(&word[..start]) { GONE } else { &word[..start] };
    format!("{before}{}", url_at(&word[start..], depth))
}

/// A word with the query of an address in it, or with a part of one.
fn query_in_text(word: &str, depth: u32) -> Cow<'_, str> {
    match word.find(['?', '&']) {
        Some(at) => format!("{}{}", &word[..=at], pairs(&word[at + 1..], depth)).into(),
        None => word.into(),
    }
}

/// Whether a private key stands there in its armour.
fn is_armoured(text: &str) -> bool {
    text.contains("-----BEGIN") && text.contains("PRIVATE KEY")
}

/// Data in base64, and how long it is.
fn without_data(text: &str) -> Cow<'_, str> {
    let is_data = |c: char| c.is_ascii_alphanumeric() || "+/-_=".contains(c);
    let mut out = String::new();
    let mut rest = text;
    let mut changed = false;
    while let Some(start) = rest.find(is_data) {
        let (before, from) = rest.split_at(start);
        let end = from.find(|c| !is_data(c)).unwrap_or(from.len());
        let (run, after) = from.split_at(end);
        out.push_str(before);
        if run.len() >= DATA || out.ends_with("base64,") || out.ends_with("base64, ") {
            changed = true;
            out.push_str(&format!("[{} letters of data]", run.len()));
        } else {
            out.push_str(run);
        }
        rest = after;
    }
    out.push_str(rest);
    if changed { Cow::Owned(out) } else { Cow::Borrowed(text) }
}

/// Whether letters and digits alternate in a word as they do in keys, and in no name.
fn looks_random(word: &str) -> bool {
    runs(word).any(|run| {
        let count = |class: fn(&u8) -> bool| run.bytes().filter(class).count();
        let (digits, upper, lower) =
            (count(u8::is_ascii_digit), count(u8::is_ascii_uppercase), count(u8::is_ascii_lowercase));
        let turns = run
            .as_bytes()
            .windows(2)
            .filter(|two| two[0].is_ascii_digit() != two[1].is_ascii_digit())
            .count();
        let all_kinds = digits > 0 && upper > 0 && lower > 0;
        run.len() >= 16 && turns >= 4
            || run.len() >= 20 && all_kinds
            || run.len() >= 32 && digits > 0 && turns > 0
            || is_no_id(run)
    })
}

/// Whether a name tells that a secret, or a person, follows.
fn is_telling(name: &str) -> bool {
    let squeezed: String =
        name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    if TELLING.iter().any(|word| squeezed.contains(word)) {
        return true;
    }
    let mut words = Vec::new();
    let mut word = String::new();
    let mut after_small = false;
    for c in name.chars() {
        let begins = !c.is_ascii_alphanumeric() || c.is_ascii_uppercase() && after_small;
        if begins && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if c.is_ascii_alphanumeric() {
            word.push(c.to_ascii_lowercase());
        }
        after_small = c.is_ascii_lowercase() || c.is_ascii_digit();
    }
    words.push(word);
    words.iter().any(|word| TELLING_ALONE.contains(&word.as_str()))
}

#[cfg(test)]
mod tests;
