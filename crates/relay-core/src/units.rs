//! Units in settings: `"1.5s"` and `"8MiB"` to numbers and back, and what to say where a text is not one.
//! Not a calculator: one number, one unit. A bare number is a count of bytes but never a length of time,
//! since nobody can see whether `30` meant seconds or milliseconds.

use std::fmt;
use std::time::Duration;

/// Why a text is not a valid setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// What is wrong, as the end of a sentence that begins with the key and its value.
    pub why: String,
    /// What is allowed instead.
    pub allowed: String,
}

impl Invalid {
    /// Says what is wrong, and what is allowed instead.
    pub fn new(why: impl Into<String>, allowed: impl Into<String>) -> Self {
        Self { why: why.into(), allowed: allowed.into() }
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} ({})", self.why, self.allowed)
    }
}

impl std::error::Error for Invalid {}

/// Nanoseconds per unit of time, longest first.
const TIMES: [(&str, u128); 5] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
];

/// Bytes per unit of size, largest first.
const SIZES: [(&str, u128); 8] = [
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("kB", 1000),
    ("KB", 1000),
    ("B", 1),
];

/// The units of time that are read, shortest first.
#[must_use]
pub fn time_units() -> Vec<&'static str> {
    TIMES.iter().rev().map(|(name, _)| *name).collect()
}

/// The units of size that are read, smallest first.
#[must_use]
pub fn size_units() -> Vec<&'static str> {
    SIZES.iter().rev().map(|(name, _)| *name).collect()
}

const TIME_FORMS: &str = "write a number and ms, s, min, h or d, such as \"30s\", \"1.5s\" or \"15min\"";
const SIZE_FORMS: &str =
    "write a number and KiB, MiB, GiB, kB, MB or GB, such as \"64KiB\", or a plain count of bytes";

/// Reads a length of time: `400ms`, `1.5s`, `15min`, `6h`, `7d`.
///
/// # Errors
/// Where there is no number, no unit, an unknown unit, or more than fits.
pub fn duration(text: &str) -> Result<Duration, Invalid> {
    let (number, unit) = split(text, TIME_FORMS)?;
    let Some((_, scale)) = TIMES.iter().find(|(name, _)| *name == unit) else {
        return Err(unknown_time_unit(number, unit));
    };
    let nanos = scaled(number, *scale).ok_or_else(|| Invalid::new("is no number", TIME_FORMS))?;
    let seconds = u64::try_from(nanos / 1_000_000_000);
    let rest = u32::try_from(nanos % 1_000_000_000);
    match (seconds, rest) {
        (Ok(seconds), Ok(rest)) => Ok(Duration::new(seconds, rest)),
        _ => Err(Invalid::new("is too long", TIME_FORMS)),
    }
}

/// Reads a size: `64KiB`, `8MiB`, `128MB`, `1GiB`, or a plain count of bytes.
///
/// # Errors
/// Where there is no number, an unknown unit, a fraction of a byte, or more than fits.
pub fn bytes(text: &str) -> Result<u64, Invalid> {
    let (number, unit) = split(text, SIZE_FORMS)?;
    let unit = if unit.is_empty() { "B" } else { unit };
    let Some((_, scale)) = SIZES.iter().find(|(name, _)| *name == unit) else {
        let near = SIZES.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit));
        let allowed = near
            .map_or_else(|| SIZE_FORMS.to_owned(), |(name, _)| format!("did you mean \"{number}{name}\"?"));
        return Err(unknown_unit(unit, allowed));
    };
    let count = scaled(number, *scale).ok_or_else(|| Invalid::new("is no number", SIZE_FORMS))?;
    u64::try_from(count).map_err(|_too_many| Invalid::new("is too large", SIZE_FORMS))
}

/// Below this a time is written in seconds: that is how the services, the clients and the defaults of ours state
/// limits of a few minutes.
const IN_SECONDS: Duration = Duration::from_secs(600);

/// Writes a length of time the way the defaults are written: below ten minutes in seconds or less, from there on in the
/// longest unit that needs no fraction (or in seconds, with one).
#[must_use]
pub fn show_duration(time: Duration) -> String {
    let nanos = time.as_nanos();
    if nanos == 0 {
        return "0s".to_owned();
    }
    let is_short = |name: &str| time >= IN_SECONDS || matches!(name, "s" | "ms");
    let whole = TIMES.iter().find(|(name, scale)| is_short(name) && nanos.is_multiple_of(*scale));
    match whole {
        Some((name, scale)) if *name != "ms" || nanos < 1_000_000_000 => format!("{}{name}", nanos / scale),
        Some(_) | None => format!("{}s", time.as_secs_f64()),
    }
}

/// Writes a size the way settings spell it, in the largest unit that needs no fraction.
#[must_use]
pub fn show_bytes(count: u64) -> String {
    let whole = SIZES.iter().find(|(_, scale)| count > 0 && u128::from(count).is_multiple_of(*scale));
    let (name, scale) = whole.unwrap_or(&("B", 1));
    format!("{}{name}", u128::from(count) / scale)
}

/// Parts a text into its number and its unit.
fn split<'a>(text: &'a str, forms: &str) -> Result<(&'a str, &'a str), Invalid> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    if number.is_empty() {
        let why = if text.starts_with('-') { "is below zero" } else { "does not begin with a number" };
        return Err(Invalid::new(why, forms));
    }
    Ok((number, unit.trim_start()))
}

fn unknown_time_unit(number: &str, unit: &str) -> Invalid {
    if unit.is_empty() {
        let allowed =
            format!("\"{number}s\" is seconds, \"{number}ms\" milliseconds, \"{number}min\" minutes");
        return Invalid::new("has no unit", allowed);
    }
    let meant = match unit.to_ascii_lowercase().as_str() {
        "m" | "mins" | "minute" | "minutes" => "min",
        "sec" | "secs" | "second" | "seconds" | "s" => "s",
        "msec" | "millis" | "milliseconds" | "ms" => "ms",
        "hr" | "hrs" | "hour" | "hours" | "h" => "h",
        "day" | "days" | "d" => "d",
        _ => return unknown_unit(unit, TIME_FORMS),
    };
    unknown_unit(unit, format!("did you mean \"{number}{meant}\"?"))
}

/// Repeats the unit only where it is a short word: a text of any other kind may be a slip of the clipboard.
fn unknown_unit(unit: &str, allowed: impl Into<String>) -> Invalid {
    let is_word = unit.chars().count() <= 12 && unit.chars().all(char::is_alphanumeric);
    let why =
        if is_word { format!("has the unknown unit `{unit}`") } else { "has an unknown unit".to_owned() };
    Invalid::new(why, allowed)
}

/// `number`, a plain decimal, times `scale`; `None` where it is none, does not fit, or leaves a fraction.
fn scaled(number: &str, scale: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let whole = whole.parse::<u64>().ok()?;
    if fraction.len() > 9 {
        return None;
    }
    let parts = 10u128.pow(u32::try_from(fraction.len()).ok()?);
    let rest = u128::from(fraction.parse::<u64>().ok()?) * scale;
    rest.is_multiple_of(parts).then(|| u128::from(whole) * scale + rest / parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lengths_of_time_are_read() {
        for (text, millis) in [
            ("0s", 0),
            ("400ms", 400),
            ("1.5s", 1500),
            ("30s", 30_000),
            ("30 s", 30_000),
            ("15min", 900_000),
            ("6h", 21_600_000),
            ("7d", 604_800_000),
            ("0.25min", 15_000),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn what_is_no_length_of_time_says_why_and_what_is_allowed() {
        for (text, why, allowed) in [
            ("30", "has no unit", "\"30s\" is seconds"),
            ("15m", "unknown unit `m`", "did you mean \"15min\"?"),
            ("2 Hours", "unknown unit `Hours`", "did you mean \"2h\"?"),
            ("5 parsecs", "unknown unit `parsecs`", "ms, s, min, h or d"),
            ("", "does not begin with a number", "ms, s, min, h or d"),
            ("soon", "does not begin with a number", "ms, s, min, h or d"),
            ("-1s", "is below zero", "ms, s, min, h or d"),
            ("1.2.3s", "is no number", "ms, s, min, h or d"),
            ("1.s", "is no number", "ms, s, min, h or d"),
            ("99999999999999999999s", "is no number", "ms, s, min, h or d"),
            ("18446744073709551615d", "is too long", "ms, s, min, h or d"),
            ("1min30s", "unknown unit `min30s`", "ms, s, min, h or d"),
            ("1x\r\ny", "has an unknown unit", "ms, s, min, h or d"),
            ("1-and-something-long", "has an unknown unit", "ms, s, min, h or d"),
        ] {
            let error = duration(text).unwrap_err();
            assert!(error.why.contains(why), "{text}: {error}");
            assert!(error.allowed.contains(allowed), "{text}: {error}");
        }
    }

    #[test]
    fn sizes_are_read() {
        for (text, count) in [
            ("0", 0),
            ("65536", 65_536),
            ("1B", 1),
            ("64KiB", 65_536),
            ("8MiB", 8 << 20),
            ("8 MiB", 8 << 20),
            ("1.5KiB", 1536),
            ("128MB", 128_000_000),
            ("2kB", 2000),
            ("1GiB", 1 << 30),
        ] {
            assert_eq!(bytes(text), Ok(count), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_says_why_and_what_is_allowed() {
        for (text, why, allowed) in [
            ("8mib", "unknown unit `mib`", "did you mean \"8MiB\"?"),
            ("8M", "unknown unit `M`", "KiB, MiB"),
            ("0.5B", "is no number", "KiB, MiB"),
            ("big", "does not begin with a number", "KiB, MiB"),
            ("18446744073709551615GiB", "is too large", "KiB, MiB"),
        ] {
            let error = bytes(text).unwrap_err();
            assert!(error.why.contains(why), "{text}: {error}");
            assert!(error.allowed.contains(allowed), "{text}: {error}");
        }
    }

    #[test]
    fn numbers_are_shown_in_the_unit_that_needs_no_fraction() {
        let shown = [0, 80, 1500, 30_000, 300_000, 600_000, 605_000, 900_000, 21_600_000, 604_800_000];
        assert_eq!(
            shown.map(Duration::from_millis).map(show_duration),
            ["0s", "80ms", "1.5s", "30s", "300s", "10min", "605s", "15min", "6h", "7d"]
        );
        assert_eq!(
            [0, 1, 65_536, 128_000_000, 1 << 30].map(show_bytes),
            ["0B", "1B", "64KiB", "128MB", "1GiB"]
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn what_is_shown_is_read_as_the_same(millis in 0u64..700_000_000, count in 0u64..1 << 40) {
            let time = Duration::from_millis(millis);
            prop_assert_eq!(duration(&show_duration(time)), Ok(time));
            prop_assert_eq!(bytes(&show_bytes(count)), Ok(count));
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,20}") {
            if let Err(error) = duration(&text) {
                prop_assert!(!error.why.is_empty());
            }
            if let Err(error) = bytes(&text) {
                prop_assert!(!error.why.is_empty());
            }
        }
    }
}
