//! `[alerts]`.

use super::{SOME_TIME, WEEK};
use crate::settings::read::{Given, Key};
use relay_core::alert::Kind;
use relay_core::config::AlertSettings;
use relay_core::units::Invalid;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;

/// A program that takes longer than a minute to tell somebody something has not been understood.
const WITHIN: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(60);
/// What happens more often than that is no alert.
const EVERY: RangeInclusive<Duration> = Duration::from_secs(1)..=WEEK;
/// More than any program of this kind needs.
const MOST_ARGUMENTS: usize = 100;

/// `[alerts]`.
pub(in crate::settings) const ALERTS: &[Key<AlertSettings>] = &[
    Key {
        name: "kinds",
        shape: "list of names",
        default: r#"["lane_closed", "circuit_open", "long_waits", "quota_spent", "rule", "cannot_write"]"#,
        doc: "What is told: `lane_closed`, a lane takes no calls for longer than `lane_closed`; `circuit_open`, a \
              breaker has cut an upstream off; `long_waits`, so many waits in a \
              row were long; `quota_spent`; `rule`, an answer fits a `[[rule]]` with `alert = true`; `cannot_write`, the disk \
              is full or a file of the relay cannot be written; `maybe_billed_twice`, what may have run was sent again, as the \
              profile allows. An empty list: nothing.",
        set: |alerts, given| kinds(given).map(|value| alerts.kinds = value),
    },
    Key {
        name: "lane_closed",
        shape: "time",
        default: "\"300s\"",
        doc: "After how long of being closed a lane is told of. It is told again when it opens.",
        set: |alerts, given| given.duration(SOME_TIME).map(|value| alerts.lane_closed = value),
    },
    Key {
        name: "long_wait",
        shape: "time",
        default: "\"50s\"",
        doc: "How long a wait between two sends is to count as long: near the 60 s at which the longest curves end.",
        set: |alerts, given| given.duration(SOME_TIME).map(|value| alerts.long_wait = value),
    },
    Key {
        name: "long_waits",
        shape: "whole number",
        default: "3",
        doc: "So many long waits one after the other in one lane are told of.",
        set: |alerts, given| given.count(1..=1000).map(|value| alerts.long_waits = value),
    },
    Key {
        name: "every",
        shape: "time",
        default: "\"10min\"",
        doc: "The shortest time between two alerts of the same kind about the same lane. The next one tells how many were held \
              back.",
        set: |alerts, given| given.duration(EVERY).map(|value| alerts.every = value),
    },
    Key {
        name: "log",
        shape: "true or false",
        default: "true",
        doc: "Whether alerts are in the log, as lines that begin with `[alert]`.",
        set: |alerts, given| given.flag().map(|value| alerts.log = value),
    },
    Key {
        name: "webhook",
        shape: "URL",
        default: "\"\"",
        doc: "A URL that alerts are posted to as JSON, by the proxy of `[relay]` where there is one. A failure is tried once \
              more. It is shown nowhere, since whoever knows it can post there. Empty: none.",
        set: |alerts, given| {
            let url = given.text()?;
            alerts.webhook = if url.is_empty() { None } else { Some(url.parse()?) };
            Ok(())
        },
    },
    Key {
        name: "command",
        shape: "list of names",
        default: "[]",
        doc: "A program and its arguments that is run for each alert, without a shell. It reads the alert as JSON from its \
              standard input, and finds it in variables that begin with `STEADY_ALERT_`. Empty: none.",
        set: |alerts, given| {
            let command = given.texts()?;
            let is_odd = |word: &&str| word.contains('\0');
            if command.len() > MOST_ARGUMENTS || command.iter().any(is_odd) || command.first() == Some(&"") {
                let hint = "write the program and its arguments: [\"notify-me\", \"--urgent\"]";
                return Err(Invalid::new("is no command", hint));
            }
            alerts.command = command.into_iter().map(str::to_owned).collect();
            Ok(())
        },
    },
    Key {
        name: "desktop",
        shape: "true or false",
        default: "false",
        doc: "Whether the desktop shows alerts, by the same means as `waiting.desktop`.",
        set: |alerts, given| given.flag().map(|value| alerts.desktop = value),
    },
    Key {
        name: "within",
        shape: "time",
        default: "\"10s\"",
        doc: "How long the webhook may take to answer, and the command to end; then the one is tried once more, and the other is \
              killed.",
        set: |alerts, given| given.duration(WITHIN).map(|value| alerts.within = value),
    },
];

fn kinds(given: &Given<'_>) -> Result<BTreeSet<Kind>, Invalid> {
    given.texts()?;
    let among = Kind::ALL.map(|kind| (kind.name(), kind));
    given.each_or_one().iter().map(|one| one.choice(&among)).collect()
}
