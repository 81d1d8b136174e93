//! Every spelling of "come back later", read into one piece of advice.
//!
//! What it is not: the choice of a wait (that is `wait`, which may wait longer and never shorter), and no
//! judge of what went wrong. It only says what the service said, and whether that can be used.
//!
//! Three rules. A time is never rounded down. Where several are told, the longest holds, but a time that another one
//! tells more exactly is not another time. The reset of a spent
//! bucket is guesswork beside a told time, so it is looked at only where no usable time was told.
//!
//! | said by | where | how |
//! |---|---|---|
//! | RFC 9110, 10.2.3 | `retry-after` | seconds (here also a fraction), or one of three forms of date |
//! | Azure, OpenAI | `retry-after-ms` | milliseconds: the value of `retry-after`, more exactly, where that rounds it up |
//! | LiteLLM | `llm_provider-retry-after`, `llm_provider-retry-after-ms` | as the service behind it said it |
//! | Google RPC | `RetryInfo.retryDelay` | handed in, see [`duration_text`] |
//! | everybody | the error's message | "try again in 1m12.5s", "Please retry after 6 seconds" |
//! | OpenAI | `x-ratelimit-{remaining,reset}-*` | "6m0s", "200ms", seconds |
//! | Anthropic | `anthropic-ratelimit-*-{remaining,reset}` | RFC 3339 |
//! | Anthropic plans | `anthropic-ratelimit-unified-{status,reset}` | Unix seconds |
//! | many | `x-ratelimit-{remaining,reset}` | seconds, Unix seconds or Unix milliseconds |
//! | IETF draft | `ratelimit-{remaining,reset}` | seconds |

mod rfc3339;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, HeaderValue};

/// What an answer says about coming back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// Nothing.
    Silent,
    /// Something that is no advice: zero, a time in the past, a negative one, or no time at all.
    Useless,
    /// Not before this time has gone by.
    Wait(Duration),
}

impl Advice {
    /// The same, and no wait shorter than `floor`.
    #[must_use]
    pub fn at_least(self, floor: Duration) -> Self {
        match self {
            Self::Wait(told) => Self::Wait(told.max(floor)),
            Self::Silent | Self::Useless if !floor.is_zero() => Self::Wait(floor),
            Self::Silent | Self::Useless => self,
        }
    }
}

/// The longest wait there is: ten years. Whatever is told beyond that is read as this, so that no sum
/// overflows.
pub const LONGEST: Duration = Duration::from_secs(3650 * 24 * 3600);

/// Nanoseconds: since 1970 where they are a point in time. 128 bits hold any year one can write in four
/// digits, and most others.
type Nanos = i128;

const SECOND: Nanos = 1_000_000_000;
const DAY: Nanos = 24 * 3600 * SECOND;

/// What the answer with these `headers`, this error `message` and this `retryDelay` advises.
///
/// `now` is when the answer came. Points in time are counted from the answer's own `Date`, where it has a
/// valid one: the clock that named the point is then also the one that is read.
#[must_use]
pub fn advice(
    headers: &HeaderMap,
    message: Option<&str>,
    retry_delay: Option<Duration>,
    now: SystemTime,
) -> Advice {
    let now = headers.get(http::header::DATE).and_then(http_date).unwrap_or_else(|| since_1970(now));
    let mut told = Told::default();
    hear_retry_after(headers, now, &mut told);
    if let Some(delay) = retry_delay {
        told.hear(Some(delay));
    }
    if let Some(message) = message {
        hear_message(message, &mut told);
    }
    if told.longest.is_none() {
        hear_spent_buckets(headers, now, &mut told);
    }
    match told {
        Told { longest: Some(wait), .. } => Advice::Wait(wait.min(LONGEST)),
        Told { is_said: true, .. } => Advice::Useless,
        Told { is_said: false, .. } => Advice::Silent,
    }
}

/// Reads a length of time in the spelling of Go and of Google's JSON: `38s`, `1.5h`, `6m0s`, `10h17m5.7s`,
/// `200ms`.
///
/// Never rounded down. `None` for anything else: no unit, a sign, a space inside.
#[must_use]
pub fn duration_text(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    let mut sum: Nanos = 0;
    loop {
        let (amount, after) = number(rest)?;
        let unit_end = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
        let unit = match &after[..unit_end] {
            "ns" => 1,
            "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
            "ms" => 1_000_000,
            "s" => SECOND,
            "m" => 60 * SECOND,
            "h" => 3600 * SECOND,
            "d" => DAY,
            _ => return None,
        };
        sum = sum.saturating_add(times(amount, unit)?);
        rest = &after[unit_end..];
        if rest.is_empty() {
            return Some(span(sum));
        }
    }
}

/// What has been heard so far.
#[derive(Default)]
struct Told {
    is_said: bool,
    longest: Option<Duration>,
}

impl Told {
    /// Hears one value; `None` is one that makes no sense.
    fn hear(&mut self, wait: Option<Duration>) {
        self.is_said = true;
        self.longest = self.longest.max(wait.filter(|wait| !wait.is_zero()));
    }
}

fn hear_retry_after(headers: &HeaderMap, now: Nanos, told: &mut Told) {
    let all = |names: [&'static str; 2]| names.into_iter().flat_map(|name| headers.get_all(name));
    for value in all(["retry-after-ms", "llm_provider-retry-after-ms"]) {
        told.hear(text_of(value).and_then(|text| times(text, SECOND / 1000)).map(span));
    }
    let exact = told.longest;
    for value in all(["retry-after", "llm_provider-retry-after"]) {
        let seconds = text_of(value).and_then(|text| times(text, SECOND)).map(span);
        let spelt = || text_of(value).and_then(duration_text);
        let date = || http_date(value).map(|date| span(date.saturating_sub(now)));
        told.hear(seconds.or_else(spelt).or_else(date));
    }
    // Seconds that are no more than the milliseconds rounded up say nothing beside them.
    if let (Some(exact), Some(longest)) = (exact, told.longest)
        && longest - exact < Duration::from_secs(1)
    {
        told.longest = Some(exact);
    }
}

/// The words after which a message names its time. Read together with the units, they mean nothing else.
const MARKERS: [&str; 11] = [
    // OpenAI "Please try again in 20s.", LiteLLM "Try again in 60 seconds."
    "again in",
    "again after",
    // Google "Please retry in 3.2s."
    "retry in",
    "retrying in",
    // Azure "Please retry after 6 seconds."; a header quoted by a gateway
    "retry after",
    "retry-after",
    // Code Assist "Your quota will reset after 10h17m5.7s."
    "reset after",
    "resets after",
    "reset in",
    "resets in",
    // "Please wait 12 seconds"
    "wait",
];

fn hear_message(message: &str, told: &mut Told) {
    let message = message.to_lowercase();
    for marker in MARKERS {
        for (place, _) in message.match_indices(marker) {
            if let Some(wait) = spoken(&message[place + marker.len()..]) {
                told.hear(Some(wait));
            }
        }
    }
}

/// Reads the length of time that `text` (in lower case) begins with: "20s", "1m12.5s", "in 2 minutes and 5
/// seconds", "about an hour". Without a unit it is seconds, if nothing follows that could be one.
fn spoken(text: &str) -> Option<Duration> {
    let mut rest = text;
    while let Some(less) = ["for", "in", "about", "approximately", "at least", "another", "up to", ":"]
        .iter()
        .find_map(|filler| rest.trim_start().strip_prefix(filler))
    {
        rest = less;
    }
    let mut sum = None;
    loop {
        let word = rest.trim_start_matches([' ', '\t', '\n', '\r', '~', '`', '"', '\'', '*', '(']);
        let word = if sum.is_some() { next_part(word) } else { word };
        let article = ["an ", "a ", "one "].iter().find_map(|one| word.strip_prefix(one));
        let Some((amount, after)) = article.map(|after| ("1", after)).or_else(|| number(word)) else {
            return sum.map(span);
        };
        let after = after.trim_start_matches([' ', '-']);
        let unit_end = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
        let Some(unit) = spoken_unit(&after[..unit_end]) else {
            let is_bare = sum.is_none() && is_end_of_clause(after);
            return if is_bare { times(amount, SECOND).map(span) } else { sum.map(span) };
        };
        sum = Some(times(amount, unit)?.saturating_add(sum.unwrap_or(0)));
        rest = &after[unit_end..];
    }
}

/// What follows the comma or the "and" between "2 hours, 5 minutes and 3 seconds".
fn next_part(text: &str) -> &str {
    let text = text.strip_prefix(", ").unwrap_or(text);
    text.strip_prefix("and ").unwrap_or(text)
}

fn spoken_unit(word: &str) -> Option<Nanos> {
    Some(match word {
        "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" => SECOND / 1000,
        "s" | "sec" | "secs" | "second" | "seconds" => SECOND,
        "m" | "min" | "mins" | "minute" | "minutes" => 60 * SECOND,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3600 * SECOND,
        "d" | "day" | "days" => DAY,
        "w" | "week" | "weeks" => 7 * DAY,
        _ => return None,
    })
}

/// Whether a number that ends here stands alone: "Retry after 6." but not "1,000", "2026-11-29" or "3 times".
fn is_end_of_clause(after: &str) -> bool {
    let mut chars = after.chars();
    match chars.next() {
        None => true,
        Some('.' | ',' | ';' | '!' | ')' | '"' | '\'' | '`' | '}' | ']' | '\n') => {
            !chars.next().is_some_and(|next| next.is_ascii_digit())
        }
        Some(_) => false,
    }
}

/// The resets of the buckets that have nothing left. What still has something left did not cause this answer.
fn hear_spent_buckets(headers: &HeaderMap, now: Nanos, told: &mut Told) {
    for (name, value) in headers {
        let name = name.as_str();
        let reset = if name == "anthropic-ratelimit-unified-status" {
            if !text_of(value).is_some_and(|text| text.eq_ignore_ascii_case("rejected")) {
                continue;
            }
            "anthropic-ratelimit-unified-reset".to_owned()
        } else if is_empty_bucket(name, value) {
            name.replacen("remaining", "reset", 1)
        } else {
            continue;
        };
        for value in headers.get_all(reset) {
            told.hear(text_of(value).and_then(|text| reset_text(text, now)));
        }
    }
}

/// Whether a header says that nothing is left in the bucket of a rate limit. That there is such a header proves
/// nothing: services send them with whatever else they refuse for.
#[must_use]
pub fn bucket_is_empty(headers: &HeaderMap) -> bool {
    headers.iter().any(|(name, value)| is_empty_bucket(name.as_str(), value))
}

fn is_empty_bucket(name: &str, value: &HeaderValue) -> bool {
    is_bucket(name) && text_of(value).is_some_and(|text| times(text, SECOND) == Some(0))
}

/// Whether a header says what is left in a bucket.
fn is_bucket(name: &str) -> bool {
    name == "ratelimit-remaining"
        || name == "x-ratelimit-remaining"
        || name.starts_with("x-ratelimit-remaining-")
        || (name.starts_with("anthropic-ratelimit-") && name.ends_with("-remaining"))
}

/// Reads a bucket's reset: a length of time, or a point in time.
fn reset_text(text: &str, now: Nanos) -> Option<Duration> {
    let Some(value) = times(text, SECOND) else {
        return duration_text(text).or_else(|| Some(span(rfc3339::parse(text)?.saturating_sub(now))));
    };
    // A bare number can be three things, and their sizes tell: 10⁹ seconds are 31 years, but as a point in
    // time 2001; 10¹¹ as a point in time are the year 5138 in seconds, but 1973 in milliseconds.
    Some(span(match value / SECOND {
        ..1_000_000_000 => value,
        1_000_000_000..100_000_000_000 => value.saturating_sub(now),
        _ => (value / 1000).saturating_sub(now),
    }))
}

fn text_of(value: &HeaderValue) -> Option<&str> {
    value.to_str().ok().map(str::trim)
}

/// Splits off the decimal number that `text` begins with. A dot belongs to it only with a digit on its right.
fn number(text: &str) -> Option<(&str, &str)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(text);
    let fraction = text[whole..].strip_prefix('.').map_or(0, digits);
    let end = if fraction > 0 { whole + 1 + fraction } else { whole };
    (end > 0).then(|| text.split_at(end))
}

/// A decimal number of units, in nanoseconds, rounded up. `None` where `text` is no plain decimal number.
fn times(text: &str, unit: Nanos) -> Option<Nanos> {
    let (_, "") = number(text)? else { return None };
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |digits: &str| {
        digits
            .bytes()
            .fold(0, |sum: Nanos, digit| sum.saturating_mul(10).saturating_add(Nanos::from(digit - b'0')))
    };
    // Eighteen places are finer than a nanosecond for every unit there is; what lies beyond still rounds up.
    let kept = &fraction[..fraction.len().min(18)];
    let is_more = fraction[kept.len()..].bytes().any(|digit| digit != b'0');
    let scale = (0..kept.len()).fold(1, |scale: Nanos, _| scale * 10);
    let part = digits(kept) * unit;
    let part = part / scale + Nanos::from(part % scale != 0 || is_more);
    Some(digits(whole).saturating_mul(unit).saturating_add(part))
}

/// A length of time; zero where it is negative, [`LONGEST`] where it is longer than that.
fn span(nanos: Nanos) -> Duration {
    u64::try_from(nanos.max(0)).map_or(LONGEST, |nanos| Duration::from_nanos(nanos).min(LONGEST))
}

fn since_1970(time: SystemTime) -> Nanos {
    let nanos = |span: Duration| Nanos::try_from(span.as_nanos()).unwrap_or(Nanos::MAX);
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => nanos(since),
        Err(before) => -nanos(before.duration()),
    }
}

/// The moment that the answer's own `Date` names.
pub(crate) fn date_of(headers: &HeaderMap) -> Option<SystemTime> {
    httpdate::parse_http_date(text_of(headers.get(http::header::DATE)?)?).ok()
}

/// Reads a date of HTTP in one of its three forms, all of which are UTC.
fn http_date(value: &HeaderValue) -> Option<Nanos> {
    httpdate::parse_http_date(text_of(value)?).ok().map(since_1970)
}

#[cfg(test)]
mod tests;
