//! The time of day where the user is. The only file that knows time zones.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::stats::Slot;

/// Where the user is: as TZ or the system says, or else UTC.
#[derive(Debug, Clone)]
pub struct Zone(TimeZone);

impl Zone {
    /// That of this machine.
    #[must_use]
    pub fn of_system() -> Self {
        Self(TimeZone::try_system().unwrap_or(TimeZone::UTC))
    }

    /// A moment, given in milliseconds since 1970, as people write it: `2026-11-30 14:02:11`.
    #[must_use]
    pub fn shown(&self, ms: u64) -> String {
        at(ms).to_zoned(self.0.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string()
    }

    /// The hour of the week that it lies in.
    #[must_use]
    pub fn slot(&self, ms: u64) -> Slot {
        let local = self.0.to_datetime(at(ms));
        let weekday = usize::try_from(local.weekday().to_monday_zero_offset()).unwrap_or(0);
        Slot { weekday, hour: usize::try_from(local.hour()).unwrap_or(0), day: day_number(local.date()) }
    }
}

/// A moment as programs write it: `2026-11-30T13:02:11.012Z`.
#[must_use]
pub fn in_utc(ms: u64) -> String {
    format!("{:.3}", at(ms))
}

/// One beyond the calendar is its end.
fn at(ms: u64) -> Timestamp {
    let ms = i64::try_from(ms).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(ms).unwrap_or(Timestamp::MAX)
}

/// A number that each day has for itself.
fn day_number(date: jiff::civil::Date) -> i32 {
    i32::from(date.year()) * 366 + i32::from(date.day_of_year())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: u64 = 1_796_040_131_012;

    #[test]
    fn a_moment_is_shown_where_the_user_is() {
        let east = Zone(TimeZone::fixed(jiff::tz::offset(8)));
        let utc = Zone(TimeZone::UTC);
        assert_eq!(utc.shown(NOON), "2026-11-30 12:02:11");
        assert_eq!(east.shown(NOON), "2026-11-30 20:02:11");
        assert_eq!(in_utc(NOON), "2026-11-30T12:02:11.012Z");
        let slot = |zone: &Zone, ms| (zone.slot(ms).weekday, zone.slot(ms).hour);
        assert_eq!((slot(&utc, NOON), slot(&east, NOON)), ((0, 12), (0, 20)));
        let later = NOON + 5 * 3_600_000;
        assert_eq!((slot(&utc, later), slot(&east, later)), ((0, 17), (1, 1)));
        assert_eq!(east.slot(later).day, utc.slot(later).day + 1);
        assert!(utc.shown(u64::MAX).starts_with("9999-12-3"));
    }
}
