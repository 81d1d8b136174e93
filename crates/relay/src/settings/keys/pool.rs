//! The keys of a `[pool.NAME]`, and of `[breaker]`.

use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::time::Duration;

use relay_core::breaker::{self, MOST_FAILURES};
use relay_core::config::SHARES;
use relay_core::router::Strategy;
use relay_core::units::Invalid;

use super::SOME_TIME;
use crate::settings::read::{Given, Key};

/// More than anybody lists by hand.
const MOST_MEMBERS: usize = 32;
/// A pause shorter than this is none.
const PAUSE: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(24 * 3600);

/// What a `[pool.NAME]` says.
#[derive(Debug, Default)]
pub(in crate::settings) struct PoolDraft {
    pub(in crate::settings) members: Option<Vec<String>>,
    pub(in crate::settings) strategy: Strategy,
    pub(in crate::settings) weights: Vec<(String, NonZeroU32)>,
}

/// `[pool.NAME]`.
pub(in crate::settings) const POOL: &[Key<PoolDraft>] = &[
    Key {
        name: "members",
        shape: "list of names",
        default: "",
        doc: "The `[upstream.NAME]`s of the pool, in the order of preference. What a client brings, its credential above all, \
              is for the first that speaks its dialect; all others get what their own entries say, and nothing of the client's \
              that says who it is.",
        set: |pool, given| members(given).map(|value| pool.members = Some(value)),
    },
    Key {
        name: "strategy",
        shape: "choice",
        default: "\"in_order\"",
        doc: "Which member a call prefers: `in_order`, the first; `weighted`, one by chance, each as often as its weight says; \
              `least_waiting`, the one with the fewest calls for its weight; `sticky`, for each session of a client always the \
              same, whose cache knows its beginning. Where that one takes no calls, the next does.",
        set: |pool, given| {
            let among = Strategy::ALL.map(|strategy| (strategy.name(), strategy));
            given.choice(&among).map(|value| pool.strategy = value)
        },
    },
    Key {
        name: "weights",
        shape: "table of numbers",
        default: "{}",
        doc: "The shares of members beside the others, from 1 to 1000: `{ big = 3 }`. One that is not named has 1.",
        set: |pool, given| weights(given).map(|value| pool.weights = value),
    },
];

fn members(given: &Given<'_>) -> Result<Vec<String>, Invalid> {
    const FORM: &str = "list the names of upstreams: members = [\"one\", \"two\"]";
    let names = given.texts()?;
    if names.is_empty() {
        return Err(Invalid::new("is empty", FORM));
    }
    if names.len() > MOST_MEMBERS {
        return Err(Invalid::new("is too long", format!("list at most {MOST_MEMBERS} names")));
    }
    Ok(names.into_iter().map(str::to_owned).collect())
}

fn weights(given: &Given<'_>) -> Result<Vec<(String, NonZeroU32)>, Invalid> {
    let weight = |(name, given): (&str, Given<'_>)| {
        let weight = given.count(1..=SHARES)?;
        Ok((name.to_owned(), NonZeroU32::new(weight).unwrap_or(NonZeroU32::MIN)))
    };
    given.members("write the names of members with numbers: { one = 3 }")?.into_iter().map(weight).collect()
}

/// `[breaker]`.
pub(in crate::settings) const BREAKER: &[Key<breaker::Rules>] = &[
    Key {
        name: "failures",
        shape: "whole number",
        default: "5",
        doc: "At so many hard failures within `window` an upstream is cut off: connections that fail, TLS that fails, answers \
              that are errors of the server, answers that break off or never come. Want of capacity is none of them, nor is \
              what is wrong with a request. Counted by upstream, credential, model and kind of request. The starting system's \
              rule, more than 10 in 5 minutes, is `failures = 11`, `window = \"5min\"`, `pause = \"10min\"`, `alone = true`.",
        set: |rules, given| given.count(1..=MOST_FAILURES).map(|value| rules.failures = value),
    },
    Key {
        name: "window",
        shape: "time",
        default: "\"60s\"",
        doc: "How far back failures count. A success begins the count anew.",
        set: |rules, given| given.duration(SOME_TIME).map(|value| rules.window = value),
    },
    Key {
        name: "pause",
        shape: "time",
        default: "\"30s\"",
        doc: "How long nothing is sent there. Then one call goes as a probe, and what it meets decides.",
        set: |rules, given| given.duration(PAUSE).map(|value| rules.pause = value),
    },
    Key {
        name: "alone",
        shape: "true or false",
        default: "false",
        doc: "Whether an upstream is cut off that no other one of a pool could stand in for. `false`: its calls are held and \
              sent again by the numbers of their profile, as without a breaker.",
        set: |rules, given| given.flag().map(|value| rules.alone = value),
    },
];
