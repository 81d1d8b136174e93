//! Points in time as RFC 3339 writes them. What it is not: a calendar; it knows as much of one as it takes to
//! count the days since 1970.

use super::{Nanos, SECOND, number, times};

/// Reads a point in time as RFC 3339 writes it: `2026-11-29T18:41:00.25Z`, `2026-11-29 18:41:00+08:00`.
pub(super) fn parse(text: &str) -> Option<Nanos> {
    let bytes = text.as_bytes();
    let digits = |from: usize, to: usize| -> Option<i64> {
        let field = bytes.get(from..to)?;
        field
            .iter()
            .all(u8::is_ascii_digit)
            .then(|| field.iter().fold(0, |n, d| n * 10 + i64::from(d - b'0')))
    };
    let is = |at: usize, wanted: &[u8]| bytes.get(at).is_some_and(|byte| wanted.contains(byte));
    let marks = is(4, b"-") && is(7, b"-") && is(10, b"Tt ") && is(13, b":") && is(16, b":");
    let (year, month, day) = (digits(0, 4)?, digits(5, 7)?, digits(8, 10)?);
    let (hour, minute, second) = (digits(11, 13)?, digits(14, 16)?, digits(17, 19)?);
    let is_valid = (1..=12).contains(&month)
        && (1..=days_in(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        // 60 is a leap second.
        && second <= 60;
    if !marks || !is_valid {
        return None;
    }
    let mut rest = text.get(19..)?;
    let mut fraction = 0;
    if rest.starts_with('.') {
        let (digits, after) = number(rest)?;
        fraction = times(digits, SECOND)?;
        rest = after;
    }
    let seconds = ((days_from_civil(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
    Some(Nanos::from(seconds - zone(rest)?) * SECOND + fraction)
}

/// How many seconds a zone (`Z`, `+08:00`) is ahead of UTC.
fn zone(text: &str) -> Option<i64> {
    if text.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let (sign, time) = match text.as_bytes() {
        [sign @ (b'+' | b'-'), time @ ..] => (if *sign == b'-' { -1 } else { 1 }, time),
        _ => return None,
    };
    let &[h, hh, b':', m, mm] = time else { return None };
    if ![h, hh, m, mm].iter().all(u8::is_ascii_digit) {
        return None;
    }
    let two = |tens: u8, ones: u8| i64::from(tens - b'0') * 10 + i64::from(ones - b'0');
    let (hours, minutes) = (two(h, hh), two(m, mm));
    (hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes) * 60)
}

const fn days_in(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days from 1970-01-01 in the proleptic Gregorian calendar (H. Hinnant, "chrono-Compatible Low-Level Date
/// Algorithms"). The year starts in March, so that a leap day is its last day.
const fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_in_time_of_rfc_3339() {
        let second = |n: i64| Some(Nanos::from(n) * SECOND);
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", second(0)),
            ("2026-11-29T18:41:00Z", second(1_795_977_660)),
            ("2026-11-29t18:41:00z", second(1_795_977_660)),
            ("2026-11-30 02:41:00+08:00", second(1_795_977_660)),
            ("2026-11-29T13:11:00-05:30", second(1_795_977_660)),
            ("2024-02-29T12:00:00Z", second(1_709_208_000)),
            ("1969-12-31T23:59:59Z", second(-1)),
            ("1990-12-31T23:59:60Z", second(662_688_000)),
            ("1970-01-01T00:00:00.25Z", Some(SECOND / 4)),
            ("1970-01-01T00:00:00.0000000001Z", Some(1)),
            ("2023-02-29T12:00:00Z", None),
            ("2026-13-01T00:00:00Z", None),
            ("2026-11-29T24:00:00Z", None),
            ("2026-11-29T18:41:00", None),
            ("2026-11-29T18:41:00.Z", None),
            ("2026-11-29T18:41:00+0800", None),
            ("2026-11-29", None),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
