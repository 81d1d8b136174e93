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
        ("two times, not one rounded up: the longer", "retry-after-ms: 200\nretry-after: 3", ms(3000)),
        ("two times: the longer", "retry-after-ms: 5000\nretry-after: 3", ms(5000)),
        ("a second more is more than rounding", "retry-after-ms: 1000\nretry-after: 2", ms(2000)),
        (
            "a date is rounded too",
            "retry-after-ms: 59500\nretry-after: Sun, 29 Nov 2026 18:42:00 GMT",
            ms(59_500),
        ),
        ("OpenAI SDKs read decimals", "retry-after-ms: 12.5", Advice::Wait(Duration::from_micros(12_500))),
        ("ms of no use", "retry-after-ms: x\nretry-after: 2", ms(2000)),
        ("ms of no use", "retry-after-ms: 0\nretry-after: 2", ms(2000)),
        ("a Go duration where seconds belong", "retry-after: 1m30s", ms(90_000)),
        ("twice: the longer", "retry-after: 3\nretry-after: 7", ms(7000)),
        ("behind LiteLLM", "llm_provider-retry-after: 7", ms(7000)),
        ("behind LiteLLM", "llm_provider-retry-after-ms: 2500\nllm_provider-retry-after: 3", ms(2500)),
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
        ("a useless one does not", "retry-after: 0\nratelimit-remaining: 0\nratelimit-reset: 50", ms(50_000)),
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
    let all = |delay: u64, message| advice(&headers, Some(message), Some(Duration::from_secs(delay)), now());
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
