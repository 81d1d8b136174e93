//! Spans of time and counts of tokens as one says them, for all parts that tell of what was.

use relay_core::Lang;

relay_core::words! {
    table TABLE "span";

    /// Below a minute.
    seconds(seconds: u64) {
        en: "{seconds} s";
        zh: "{seconds} 秒";
    }

    /// Less than ten seconds.
    tenths(seconds: f64) {
        en: "{seconds:.1} s";
        zh: "{seconds:.1} 秒";
    }

    /// Whole minutes.
    minutes(minutes: u64) {
        en: "{minutes} min";
        zh: "{minutes} 分钟";
    }

    /// Below an hour.
    minutes_and(minutes: u64, seconds: u64) {
        en: "{minutes} min {seconds} s";
        zh: "{minutes} 分 {seconds} 秒";
    }

    /// Whole hours.
    hours(hours: u64) {
        en: "{hours} h";
        zh: "{hours} 小时";
    }

    /// Below a day.
    hours_and(hours: u64, minutes: u64) {
        en: "{hours} h {minutes} min";
        zh: "{hours} 小时 {minutes} 分";
    }

    /// Whole days.
    days(days: u64) {
        en: "{days} d";
        zh: "{days} 天";
    }

    /// A day and more.
    days_and(days: u64, hours: u64) {
        en: "{days} d {hours} h";
        zh: "{days} 天 {hours} 小时";
    }
}

/// A span, to the second.
#[must_use]
pub fn whole(lang: Lang, ms: u64) -> String {
    let all = ms.saturating_add(500) / 1000;
    let (day, hour, minute, second) = (all / 86_400, all / 3600 % 24, all / 60 % 60, all % 60);
    match (day, hour, minute, second) {
        (0, 0, 0, _) => seconds(lang, second),
        (0, 0, _, 0) => minutes(lang, minute),
        (0, 0, ..) => minutes_and(lang, minute, second),
        (0, _, 0, _) => hours(lang, hour),
        (0, ..) => hours_and(lang, hour, minute),
        (_, 0, ..) => days(lang, day),
        _ => days_and(lang, day, hour),
    }
}

/// A span, to the tenth of a second where it is short.
#[must_use]
pub fn fine(lang: Lang, ms: u64) -> String {
    // What would be rounded to ten seconds is said so.
    #[expect(clippy::cast_precision_loss, reason = "it is below ten seconds")]
    if ms < 9_950 { tenths(lang, ms as f64 / 1000.0) } else { whole(lang, ms) }
}

/// A number with marks between its thousands.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// The same with its noun, for English.
#[must_use]
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_said_in_two_units_at_most() {
        const MIN: u64 = 60_000;
        const HOUR: u64 = 60 * MIN;
        let rows = [
            (0, "0 s", "0.0 s"),
            (449, "0 s", "0.4 s"),
            (1_200, "1 s", "1.2 s"),
            (9_960, "10 s", "10 s"),
            (13_600, "14 s", "14 s"),
            (59_600, "1 min", "1 min"),
            (200_000, "3 min 20 s", "3 min 20 s"),
            (8 * HOUR, "8 h", "8 h"),
            (2 * HOUR + 14 * MIN + 9_000, "2 h 14 min", "2 h 14 min"),
            (48 * HOUR, "2 d", "2 d"),
            (51 * HOUR, "2 d 3 h", "2 d 3 h"),
        ];
        for (ms, coarse, exact) in rows {
            assert_eq!((whole(Lang::English, ms), fine(Lang::English, ms)), (coarse.into(), exact.into()));
        }
        assert_eq!(whole(Lang::Chinese, u64::MAX - 1_000), "213503982334 天 14 小时");
    }

    #[test]
    fn thousands_are_marked() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([1, 2_000].map(|count| counted(count, "call", "calls")), ["1 call", "2,000 calls"]);
    }
}
