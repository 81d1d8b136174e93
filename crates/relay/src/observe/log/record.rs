//! One line of the log, as values, and the two ways to write it: text for people, JSON for programs.
//!
//! A line of JSON is one object: `v` (the version of this format), `time`, `level`, `event`, then the fields of the
//! text line under the same names; times are seconds.

use std::fmt::Write as _;
use std::time::SystemTime;

use relay_core::config::{LogFormat, LogLevel};
use relay_core::plain;
use serde_json::{Map, Value};

/// The version of the JSON format.
const VERSION: u32 = 1;

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Record {
    pub(super) level: LogLevel,
    /// What it tells of: `retry`, `done`, …
    pub(super) event: &'static str,
    pub(super) body: Body,
}

/// What it says.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Body {
    /// Named values.
    Fields(Vec<(&'static str, Field)>),
    /// Words for a person.
    Words(String),
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Field {
    Count(u64),
    Seconds(f64),
    Name(String),
    /// What has spaces: the text of a line shows it in quotes.
    Words(String),
    Missing,
}

impl Field {
    /// A count that may be missing.
    pub(super) fn count(count: Option<impl Into<u64>>) -> Self {
        count.map_or(Self::Missing, |count| Self::Count(count.into()))
    }

    /// A name that may be missing.
    pub(super) fn name(name: Option<impl Into<String>>) -> Self {
        name.map_or(Self::Missing, |name| Self::Name(name.into()))
    }
}

/// Where a line goes, which decides how its text looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Medium {
    /// A terminal, or a service manager that knows the time itself: the words alone.
    Stderr,
    /// A file: time and level first, and each record on a line of its own.
    File,
}

impl Record {
    pub(super) fn words(level: LogLevel, event: &'static str, words: impl Into<String>) -> Self {
        Self { level, event, body: Body::Words(words.into()) }
    }

    /// The line, without its end.
    pub(super) fn line(&self, format: LogFormat, medium: Medium, at: SystemTime) -> String {
        match (format, medium) {
            (LogFormat::Json, _) => plain::json(&self.json(at)).into_owned(),
            (LogFormat::Text, Medium::Stderr) => plain::text(&self.text()).into_owned(),
            (LogFormat::Text, Medium::File) => {
                let text = self.text().replace('\n', " / ");
                format!("{} {} {}", timestamp(at), self.level.name(), plain::line(&text))
            }
        }
    }

    fn text(&self) -> String {
        let fields = match &self.body {
            Body::Words(words) => return words.clone(),
            Body::Fields(fields) => fields,
        };
        let mut text = format!("[{}]", self.event);
        for (name, field) in fields {
            // Writing to a text cannot fail.
            let _always = match field {
                Field::Count(count) => write!(text, " {name}={count}"),
                Field::Seconds(seconds) => write!(text, " {name}={seconds:.1}s"),
                Field::Name(value) => write!(text, " {name}={value}"),
                Field::Words(value) => write!(text, " {name}={value:?}"),
                Field::Missing => write!(text, " {name}=-"),
            };
        }
        text
    }

    fn json(&self, at: SystemTime) -> String {
        let mut object = Map::new();
        let mut put = |name: &str, value: Value| object.insert(name.to_owned(), value);
        put("v", VERSION.into());
        put("time", timestamp(at).into());
        put("level", self.level.name().into());
        put("event", self.event.into());
        match &self.body {
            Body::Words(words) => {
                put("text", words.as_str().into());
            }
            Body::Fields(fields) => {
                for (name, field) in fields {
                    put(
                        name,
                        match field {
                            Field::Count(count) => (*count).into(),
                            Field::Seconds(seconds) => ((seconds * 1000.0).round() / 1000.0).into(),
                            Field::Name(value) | Field::Words(value) => value.as_str().into(),
                            Field::Missing => Value::Null,
                        },
                    );
                }
            }
        }
        Value::Object(object).to_string()
    }
}

/// `2026-03-01T12:34:56.789Z`. A clock before 1970 shows 1970.
pub(super) fn timestamp(at: SystemTime) -> String {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let (days, of_day) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    // Days since 0000-03-01, so that the leap day is the last of its year; 146,097 days are 400 years.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", since.subsec_millis())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_time_is_shown_in_utc() {
        for (millis, shown) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_772_323_199_000, "2026-02-28T23:59:59.000Z"),
            (1_772_323_200_000, "2026-03-01T00:00:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (1_798_761_599_001, "2026-12-31T23:59:59.001Z"),
        ] {
            let at = SystemTime::UNIX_EPOCH + Duration::from_millis(millis);
            assert_eq!(timestamp(at), shown);
            // An independent reading of the same date.
            assert_eq!(httpdate::fmt_http_date(at).get(5..7), shown.get(8..10));
        }
    }

    #[test]
    fn a_record_is_one_line_in_a_file_and_in_json() {
        let at = SystemTime::UNIX_EPOCH;
        let words = Record::words(LogLevel::Warn, "advice", "one\n\"two\"");
        let line = |format, medium| words.line(format, medium, at);
        assert_eq!(line(LogFormat::Text, Medium::Stderr), "one\n\"two\"");
        assert_eq!(line(LogFormat::Text, Medium::File), "1970-01-01T00:00:00.000Z warn one / \"two\"");
        let json: Value = serde_json::from_str(&line(LogFormat::Json, Medium::File)).unwrap();
        let expected = serde_json::json!({
            "v": 1, "time": "1970-01-01T00:00:00.000Z", "level": "warn", "event": "advice", "text": "one\n\"two\"",
        });
        assert_eq!((json, line(LogFormat::Json, Medium::Stderr).lines().count()), (expected, 1));
    }

    #[test]
    fn the_fields_of_both_formats_are_the_same() {
        let fields = vec![
            ("send", Field::Count(2)),
            ("status", Field::Missing),
            ("wait", Field::Seconds(2.1234)),
            ("model", Field::Name("gpt-x".to_owned())),
        ];
        let record = Record { level: LogLevel::Info, event: "retry", body: Body::Fields(fields) };
        assert_eq!(record.text(), "[retry] send=2 status=- wait=2.1s model=gpt-x");
        let json: Value = serde_json::from_str(&record.json(SystemTime::UNIX_EPOCH)).unwrap();
        assert_eq!(json["send"], 2);
        assert_eq!(json["status"], Value::Null);
        assert_eq!(json["wait"], 2.123);
        assert_eq!(json["model"], "gpt-x");
    }
}
