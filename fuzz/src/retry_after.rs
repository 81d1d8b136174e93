//! "Come back later" in every spelling: what is told is never shortened.

use crate::cuts::{below, dice};
use http::{HeaderMap, HeaderName, HeaderValue};
use relay_core::retry_after::{Advice, LONGEST, advice, duration_text};
use std::time::{Duration, SystemTime};

/// 2026-11-29 18:41:00 UTC.
const NOW: Duration = Duration::from_secs(1_795_977_660);

/// The bytes are lines of headers, an empty line, and the words of an error.
pub fn retry_after(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (head, message) = text.split_once("\n\n").unwrap_or((&text, ""));
    let mut headers = headers(head);
    let now = SystemTime::UNIX_EPOCH + NOW;
    let delay = duration_text(message);
    assert!(delay.is_none_or(|delay| delay <= LONGEST));

    let by_headers = wait(advice(&headers, None, None, now));
    let with_words = wait(advice(&headers, Some(message), None, now));
    let with_delay = wait(advice(&headers, Some(message), delay, now));
    // The reset of a spent bucket steps back behind a told time; a told time never does.
    let words = wait(advice(&HeaderMap::new(), Some(message), None, now));
    assert!(words <= with_words && words <= with_delay, "{words:?} {with_words:?} {with_delay:?}");
    assert!(delay.is_none_or(|delay| delay.is_zero() || with_delay >= Some(delay)));

    // Milliseconds are the same value more exactly, so that seconds count only beside useless ones.
    let told = [
        ("retry-after-ms", Duration::from_millis as fn(u64) -> Duration),
        ("retry-after", Duration::from_secs),
    ]
    .into_iter()
    .find_map(|(name, unit)| plain(&headers, name).map(unit));
    if let Some(told) = told {
        for heard in [by_headers, with_words, with_delay] {
            assert!(heard >= Some(told.min(LONGEST)), "{heard:?} is shorter than {told:?}");
        }
    }

    // A time in plain words at the end of any message counts, whatever stands before it.
    let seconds = below(&mut dice(data), 100_000) as u64 + 1;
    let longer = format!("{message} Please try again in {seconds}s.");
    let heard = wait(advice(&headers, Some(&longer), delay, now));
    assert!(heard >= Some(Duration::from_secs(seconds)), "{heard:?} is shorter than {seconds} s");
    // And so does one in the header.
    headers.remove("retry-after-ms");
    headers.append("retry-after", HeaderValue::from(seconds));
    let heard = wait(advice(&headers, None, None, now));
    assert!(heard >= Some(Duration::from_secs(seconds)), "{heard:?} is shorter than {seconds} s");
}

fn headers(head: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in head.lines() {
        let Some((name, value)) = line.split_once(':') else { continue };
        let name = HeaderName::from_bytes(name.trim().as_bytes());
        let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value.trim().as_bytes())) else {
            continue;
        };
        headers.append(name, value);
    }
    headers
}

/// The longest plain whole number that headers of this name tell; zero is none.
fn plain(headers: &HeaderMap, name: &str) -> Option<u64> {
    let values = headers.get_all(name).iter();
    let numbers = values.filter_map(|value| {
        let text = value.to_str().ok()?.trim();
        let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        is_plain.then(|| text.parse().unwrap_or(u64::MAX))
    });
    numbers.max().filter(|number| *number > 0)
}

/// The wait that is advised, if it is one.
fn wait(advice: Advice) -> Option<Duration> {
    match advice {
        Advice::Silent | Advice::Useless => None,
        Advice::Wait(wait) => {
            assert!(!wait.is_zero() && wait <= LONGEST, "{wait:?}");
            Some(wait)
        }
    }
}
