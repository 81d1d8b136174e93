//! Every spelling of "come back later", read into one piece of advice.
//!
//! What it is not: the choice of a wait (that is `wait`, which may wait longer and never shorter), and no
//! judge of what went wrong. It only says what the service said, and whether that can be used.
//!
//! Three rules. A time is never rounded down. Where several are told, the longest holds. The reset of a spent
//! bucket is guesswork beside a told time, so it is looked at only where no usable time was told.
//!
//! | said by | where | how |
//! |---|---|---|
//! | RFC 9110, 10.2.3 | `retry-after` | seconds (here also a fraction), or one of three forms of date |
//! | Azure, OpenAI | `retry-after-ms` | milliseconds: the value of `retry-after`, more exactly |
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
    for value in headers.get_all("retry-after-ms") {
        told.hear(text_of(value).and_then(|text| times(text, SECOND / 1000)).map(span));
    }
    if told.longest.is_some() {
        return;
    }
    for value in headers.get_all(http::header::RETRY_AFTER) {
        let seconds = text_of(value).and_then(|text| times(text, SECOND)).map(span);
        let spelt = || text_of(value).and_then(duration_text);
        let date = || http_date(value).map(|date| span(date.saturating_sub(now)));
        told.hear(seconds.or_else(spelt).or_else(date));
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
        } else if is_bucket(name) && text_of(value).is_some_and(|text| times(text, SECOND) == Some(0)) {
            name.replacen("remaining", "reset", 1)
        } else {
            continue;
        };
        for value in headers.get_all(reset) {
            told.hear(text_of(value).and_then(|text| reset_text(text, now)));
        }
    }
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

/// Reads a date of HTTP in one of its three forms, all of which are UTC.
fn http_date(value: &HeaderValue) -> Option<Nanos> {
    httpdate::parse_http_date(text_of(value)?).ok().map(since_1970)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderName;
    use proptest::prelude::*;

    /// 2026-11-29 18:41:00 UTC.
    const NOW: u64 = 1_795_977_660;

    fn now() -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(NOW)
    }

    /// Headers from lines of `name: value`.
    fn headers(lines: &str) -> HeaderMap {
        let line = |line: &str| -> Option<(HeaderName, HeaderValue)> {
            let (name, value) = line.split_once(':')?;
            Some((name.trim().parse().ok()?, value.trim().parse().ok()?))
        };
        lines.split('\n').filter_map(line).collect()
    }

    fn of_headers(lines: &str) -> Advice {
        advice(&headers(lines), None, None, now())
    }

    fn of_message(message: &str) -> Advice {
        advice(&HeaderMap::new(), Some(message), None, now())
    }

    fn ms(ms: u64) -> Advice {
        Advice::Wait(Duration::from_millis(ms))
    }

    #[test]
    fn headers_that_tell_a_time() {
        for (source, lines, expected) in [
            ("RFC 9110 10.2.3, seconds", "retry-after: 120", ms(120_000)),
            ("decimal seconds, nginx and gateways", "retry-after: 0.25", ms(250)),
            ("never rounded down", "retry-after: 1.0000000001", Advice::Wait(Duration::new(1, 1))),
            (
                "never rounded down",
                "retry-after: 0.00000000000000000000000001",
                Advice::Wait(Duration::new(0, 1)),
            ),
            ("RFC 9110 5.6.7, IMF-fixdate", "retry-after: Sun, 29 Nov 2026 18:42:00 GMT", ms(60_000)),
            ("RFC 9110 5.6.7, RFC 850", "retry-after: Sunday, 29-Nov-26 18:42:00 GMT", ms(60_000)),
            ("RFC 9110 5.6.7, asctime", "retry-after: Sun Nov 29 18:42:00 2026", ms(60_000)),
            (
                "the answer's own clock, an hour behind",
                "date: Sun, 29 Nov 2026 17:41:00 GMT\nretry-after: Sun, 29 Nov 2026 17:41:30 GMT",
                ms(30_000),
            ),
            ("a Date that is none", "date: soon\nretry-after: Sun, 29 Nov 2026 18:42:00 GMT", ms(60_000)),
            ("Azure", "retry-after-ms: 1500\nretry-after: 2", ms(1500)),
            (
                "OpenAI SDKs read decimals",
                "retry-after-ms: 12.5",
                Advice::Wait(Duration::from_micros(12_500)),
            ),
            ("ms of no use", "retry-after-ms: x\nretry-after: 2", ms(2000)),
            ("ms of no use", "retry-after-ms: 0\nretry-after: 2", ms(2000)),
            ("a Go duration where seconds belong", "retry-after: 1m30s", ms(90_000)),
            ("twice: the longer", "retry-after: 3\nretry-after: 7", ms(7000)),
            ("huge", "retry-after: 99999999999999999999999999999999999999999999", Advice::Wait(LONGEST)),
            ("huge", "retry-after-ms: 340282366920938463463374607431768211455", Advice::Wait(LONGEST)),
        ] {
            assert_eq!(of_headers(lines), expected, "{source}: {lines}");
        }
    }

    #[test]
    fn headers_that_tell_nothing_of_use() {
        for lines in [
            "retry-after: 0",
            "retry-after: 0.000",
            "retry-after: -5",
            "retry-after: NaN",
            "retry-after: inf",
            "retry-after: 1e3",
            "retry-after: +5",
            "retry-after:",
            "retry-after: later",
            "retry-after: .",
            "retry-after: 5.",
            "retry-after: 5 5",
            "retry-after: Sun, 29 Nov 2026 18:41:00 GMT",
            "retry-after: Thu, 01 Jan 1970 00:00:00 GMT",
            "retry-after-ms: -1",
            "x-ratelimit-remaining: 0\nx-ratelimit-reset: 1795977659",
            "x-ratelimit-remaining-tokens: 0\nx-ratelimit-reset-tokens: soon",
            "anthropic-ratelimit-tokens-remaining: 0\nanthropic-ratelimit-tokens-reset: 2026-11-29T18:40:59Z",
        ] {
            assert_eq!(of_headers(lines), Advice::Useless, "{lines}");
        }
        let mut odd = HeaderMap::new();
        odd.insert("retry-after", HeaderValue::from_bytes(b"\xff").unwrap());
        assert_eq!(advice(&odd, None, None, now()), Advice::Useless);
    }

    #[test]
    fn spent_buckets_reset() {
        for (source, lines, expected) in [
            ("OpenAI", "x-ratelimit-remaining-requests: 0\nx-ratelimit-reset-requests: 1.2s", ms(1200)),
            ("OpenAI", "x-ratelimit-remaining-tokens: 0\nx-ratelimit-reset-tokens: 6m0s", ms(360_000)),
            ("OpenAI", "x-ratelimit-remaining-tokens: 0\nx-ratelimit-reset-tokens: 200ms", ms(200)),
            (
                "Cerebras",
                "x-ratelimit-remaining-requests-day: 0\nx-ratelimit-reset-requests-day: 33.5",
                ms(33_500),
            ),
            (
                "two spent buckets: the later",
                "x-ratelimit-remaining-requests: 0\nx-ratelimit-reset-requests: 1s\n\
                 x-ratelimit-remaining-tokens: 0\nx-ratelimit-reset-tokens: 3s",
                ms(3000),
            ),
            (
                "one spent, one not",
                "x-ratelimit-remaining-requests: 0\nx-ratelimit-reset-requests: 1s\n\
                 x-ratelimit-remaining-tokens: 5\nx-ratelimit-reset-tokens: 3s",
                ms(1000),
            ),
            (
                "Anthropic",
                "anthropic-ratelimit-input-tokens-remaining: 0\n\
                 anthropic-ratelimit-input-tokens-reset: 2026-11-29T18:41:30Z",
                ms(30_000),
            ),
            (
                "Anthropic plans",
                "anthropic-ratelimit-unified-status: rejected\nanthropic-ratelimit-unified-reset: 1795981260",
                ms(3_600_000),
            ),
            (
                "Anthropic plans, window still open",
                "anthropic-ratelimit-unified-status: allowed\nanthropic-ratelimit-unified-reset: 1795981260",
                Advice::Silent,
            ),
            ("Unix seconds", "x-ratelimit-remaining: 0\nx-ratelimit-reset: 1795977670", ms(10_000)),
            ("Unix ms, OpenRouter", "x-ratelimit-remaining: 0\nx-ratelimit-reset: 1795977670500", ms(10_500)),
            ("seconds", "x-ratelimit-remaining: 0\nx-ratelimit-reset: 10", ms(10_000)),
            ("IETF draft", "ratelimit-remaining: 0\nratelimit-reset: 50", ms(50_000)),
            ("nothing spent", "ratelimit-remaining: 1\nratelimit-reset: 50", Advice::Silent),
            ("unlimited", "x-ratelimit-remaining: -1\nx-ratelimit-reset: 50", Advice::Silent),
            ("no reset", "x-ratelimit-remaining: 0", Advice::Silent),
            ("a told time wins", "retry-after: 2\nratelimit-remaining: 0\nratelimit-reset: 50", ms(2000)),
            (
                "a useless one does not",
                "retry-after: 0\nratelimit-remaining: 0\nratelimit-reset: 50",
                ms(50_000),
            ),
        ] {
            assert_eq!(of_headers(lines), expected, "{source}: {lines}");
        }
    }

    #[test]
    fn messages_that_tell_a_time() {
        for (source, message, expected) in [
            ("OpenAI", "Rate limit reached ... Please try again in 20s. Visit ...", ms(20_000)),
            ("OpenAI", "Please try again in 1.3s.", ms(1300)),
            ("OpenAI", "Please try again in 250ms.", ms(250)),
            ("OpenAI", "Please try again in 1m12.5s. Contact us", ms(72_500)),
            ("LiteLLM", "No deployments available for selected model, Try again in 60 seconds.", ms(60_000)),
            ("Azure", "Please retry after 6 seconds.", ms(6000)),
            ("Azure", "PLEASE RETRY AFTER 1 SECOND", ms(1000)),
            ("Google", "* Quota exceeded ... limit: 5\nPlease retry in 3.2s.", ms(3200)),
            ("Google", "Please retry in 10h17m5.7s.", ms(37_025_700)),
            ("Code Assist", "Your quota will reset after 2h3m4s.", ms(7_384_000)),
            ("spoken", "try again in 2 minutes", ms(120_000)),
            ("spoken", "Try again in about 1 hour and 5 minutes, please", ms(3_900_000)),
            ("spoken", "retry in a minute", ms(60_000)),
            ("spoken", "Please wait for 12 seconds before the next request", ms(12_000)),
            ("no unit", "Retry-After: 6", ms(6000)),
            ("no unit", "retry after 6.", ms(6000)),
            ("two times: the longer", "retry in 3s, or rather: try again in 1m", ms(60_000)),
            ("none", "Please try again later. Limit 500, used 499, requested 20s", Advice::Silent),
            ("no time", "try again in a few minutes", Advice::Silent),
            ("no time", "retry in 3 ways", Advice::Silent),
            ("no time", "try again in 1,000", Advice::Silent),
            ("no time", "wait until 2026-11-29; retry after 2026-11-29", Advice::Silent),
            ("no time", "we waited 600 seconds; the waiter is away", Advice::Silent),
            ("no time", "try again in -5s", Advice::Silent),
            ("zero", "Please try again in 0s", Advice::Useless),
            ("zero", "Please try again in 0 seconds and more", Advice::Useless),
        ] {
            assert_eq!(of_message(message), expected, "{source}: {message}");
        }
    }

    #[test]
    fn the_longest_told_time_holds() {
        let headers = headers("retry-after: 5");
        let all =
            |delay: u64, message| advice(&headers, Some(message), Some(Duration::from_secs(delay)), now());
        assert_eq!(all(3, "retry in 4s"), ms(5000));
        assert_eq!(all(8, "retry in 4s"), ms(8000));
        assert_eq!(all(8, "retry in 9s"), ms(9000));
        assert_eq!(advice(&HeaderMap::new(), None, Some(Duration::ZERO), now()), Advice::Useless);
        assert_eq!(advice(&HeaderMap::new(), None, Some(Duration::MAX), now()), Advice::Wait(LONGEST));
        assert_eq!(advice(&HeaderMap::new(), Some("no"), None, now()), Advice::Silent);
    }

    #[test]
    fn durations_in_the_spelling_of_go() {
        for (text, expected) in [
            ("38s", Some(38_000)),
            ("3.2s", Some(3200)),
            ("200ms", Some(200)),
            ("6m0s", Some(360_000)),
            ("10h17m5.7s", Some(37_025_700)),
            ("1.5h", Some(5_400_000)),
            (".5s", Some(500)),
            ("1d2h", Some(93_600_000)),
            (" 1s ", Some(1000)),
            ("0s", Some(0)),
            ("0h0m1s", Some(1000)),
            ("0", Some(0)),
            ("", None),
            ("5", None),
            ("s", None),
            ("-1s", None),
            ("1s2", None),
            ("1 s", None),
            ("1x", None),
            ("1.s", None),
        ] {
            assert_eq!(duration_text(text), expected.map(Duration::from_millis), "{text}");
        }
        assert_eq!(duration_text("1us1\u{b5}s1ns"), Some(Duration::from_nanos(2001)));
        assert_eq!(duration_text("99999999999999999999999999999999999999999h"), Some(LONGEST));
    }

    fn wait_of(advice: Advice) -> Duration {
        match advice {
            Advice::Wait(wait) => wait,
            Advice::Silent | Advice::Useless => Duration::ZERO,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn arbitrary_values_do_no_harm(
            value in "([0-9]{0,40}|\\PC{0,20}|[0-9.:TZ+-]{0,40}|[0-9.]{0,6}(s|ms|h|m|d| seconds)){0,3}",
            seconds in any::<i32>(),
        ) {
            let now = if seconds < 0 {
                UNIX_EPOCH - Duration::from_secs(u64::from(seconds.unsigned_abs()))
            } else {
                UNIX_EPOCH + Duration::from_secs(u64::from(seconds.unsigned_abs()))
            };
            for name in ["retry-after", "retry-after-ms", "date", "x-ratelimit-reset", "ratelimit-reset"] {
                let lines = format!("x-ratelimit-remaining: 0\nratelimit-remaining: 0\n{name}: {value}");
                let read = advice(&headers(&lines), Some(&value), duration_text(&value), now);
                prop_assert!(wait_of(read) <= LONGEST);
            }
            for marker in MARKERS {
                let message = format!("{marker} {value}");
                prop_assert!(wait_of(of_message(&message)) <= LONGEST);
            }
            prop_assert!(rfc3339::parse(&value).is_none() || value.len() >= 20);
        }

        #[test]
        fn never_shorter_than_told(seconds in 0_u64..300_000_000, nanos in 1_u32..1_000_000_000) {
            let told = Duration::new(seconds, nanos);
            let decimal = format!("{seconds}.{nanos:09}");
            let point = Duration::from_secs(NOW) + told;
            let date = httpdate::fmt_http_date(UNIX_EPOCH + point + Duration::from_secs(1));
            let (unix, unix_nanos) = (point.as_secs(), point.subsec_nanos());
            for lines in [
                format!("retry-after: {decimal}"),
                format!("retry-after-ms: {}", told.as_millis() + 1),
                format!("retry-after: {date}"),
                format!("x-ratelimit-remaining-tokens: 0\nx-ratelimit-reset-tokens: {decimal}s"),
                format!("x-ratelimit-remaining: 0\nx-ratelimit-reset: {unix}.{unix_nanos:09}"),
                format!("x-ratelimit-remaining: 0\nx-ratelimit-reset: {}", point.as_millis() + 1),
            ] {
                let wait = wait_of(of_headers(&lines));
                prop_assert!(wait >= told && wait <= told + Duration::from_secs(1), "{}: {:?}", lines, wait);
            }
            let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
            for spelt in [
                format!("{decimal}s"),
                format!("{decimal} seconds"),
                format!("{hours}h{minutes}m{rest}.{nanos:09}s"),
                format!("{hours} hours, {minutes} minutes and {rest}.{nanos:09} seconds"),
            ] {
                let wait = wait_of(of_message(&format!("Please try again in {spelt}.")));
                prop_assert_eq!(wait, told, "{}", spelt);
            }
        }
    }
}
