//! What speaks for a verdict, and what was not looked at: as values for programs, and in words.

use relay_core::{Fault, Lang};
use serde::Serialize;

use crate::running::text::span;
use crate::words::diagnose as words;

/// One thing that speaks for a verdict. Times are milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Evidence {
    /// Sends that failed in this way.
    Failed {
        /// To this upstream.
        upstream: String,
        /// For this model.
        model: Option<String>,
        /// With this fault.
        fault: String,
        /// So many.
        failed: u64,
        /// Of so many.
        sends: u64,
        /// The structured codes and the statuses that came with it.
        codes: Vec<String>,
        /// How long ago the last one was.
        last_ago: u64,
    },
    /// What another model at the same upstream did.
    OtherModel {
        /// The model.
        model: String,
        /// Its calls.
        calls: u64,
        /// Those that were served at once.
        well: u64,
    },
    /// What became of calls with another credential.
    OtherAccount {
        /// Their calls.
        calls: u64,
        /// Those that were served at once.
        well: u64,
    },
    /// How the calls of the time ended.
    Ended {
        /// Those to this upstream, or all.
        upstream: Option<String>,
        /// Those of this model, or all.
        model: Option<String>,
        /// Calls.
        calls: u64,
        /// Those that were served.
        served: u64,
        /// Those that were not.
        lost: u64,
        /// Those that are open.
        open: u64,
    },
    /// The longest wait that it asked for.
    Told {
        /// So long.
        wait: u64,
    },
    /// What the way to an upstream is like now.
    Way {
        /// The upstream.
        upstream: String,
        /// It answers.
        reached: bool,
        /// What was found.
        found: String,
    },
    /// The clock of this machine.
    Clock {
        /// So many seconds ahead.
        ahead: i64,
    },
    /// The client hung up.
    HungUp {
        /// Which.
        client: String,
        /// So often.
        calls: u64,
        /// After so long at least.
        least: u64,
        /// After so long at most.
        most: u64,
    },
    /// Calls that the relay gave up.
    GaveUp {
        /// So many.
        calls: u64,
        /// Why: sends, patience, or a wait that was told.
        why: String,
        /// After so many sends at most.
        sends: u64,
        /// Having waited so long at most.
        waited: u64,
    },
    /// Calls that the relay did not send again.
    NotSentAgain {
        /// So many.
        calls: u64,
        /// Why.
        why: String,
    },
    /// What is wrong with the settings or the port.
    Settings {
        /// What.
        found: String,
    },
    /// It is over: so many calls were served at once since.
    Over {
        /// What it was.
        cause: &'static str,
        /// The calls.
        calls: u64,
        /// How long ago it ended.
        ago: u64,
    },
    /// Little tells so.
    OnlyFew {
        /// So many calls.
        calls: u64,
    },
    /// There is no call.
    NoCalls {
        /// In so long.
        since: u64,
        /// How long ago the last one was.
        last_ago: Option<u64>,
    },
}

/// A span of milliseconds.
fn told(lang: Lang, ms: u64) -> String {
    span(lang, Some(ms as f64 / 1000.0))
}

/// A model of an upstream, or the upstream.
fn at(lang: Lang, upstream: &str, model: Option<&str>) -> String {
    model.map_or_else(|| upstream.to_owned(), |model| words::at(lang, model, upstream))
}

impl Evidence {
    /// In words.
    #[must_use]
    pub fn said(&self, lang: Lang) -> String {
        match self {
            Self::Failed { upstream, model, fault, failed, sends, codes, last_ago } => {
                let what = Fault::ALL.into_iter().find(|known| known.name() == fault);
                let what = what.map_or(fault.as_str(), |fault| fault.meaning_in(lang));
                let line = words::failed(lang, *failed, *sends, &at(lang, upstream, model.as_deref()), what);
                let codes =
                    if codes.is_empty() { String::new() } else { words::codes(lang, &codes.join(", ")) };
                line + &codes + &words::last(lang, &told(lang, *last_ago))
            }
            Self::OtherModel { model, calls, well } => words::other_model(lang, model, *well, *calls),
            Self::OtherAccount { calls, well } => words::other_account(lang, *well, *calls),
            Self::Ended { upstream, model, calls, served, lost, open } => {
                let of = match upstream {
                    Some(upstream) => words::of_calls_to(lang, *calls, &at(lang, upstream, model.as_deref())),
                    None => words::of_calls(lang, *calls),
                };
                of + &words::ended(lang, *served, *lost, *open)
            }
            Self::Told { wait } => words::told(lang, &told(lang, *wait)),
            Self::Way { found, .. } | Self::Settings { found } => found.clone(),
            Self::Clock { ahead } => words::clock(lang, *ahead),
            Self::HungUp { client, calls, least, most } => {
                words::hung_up(lang, client, *calls, &told(lang, *least), &told(lang, *most))
            }
            Self::GaveUp { calls, why, sends, waited } => {
                let why = match why.as_str() {
                    "sends_spent" => words::sends_spent(lang),
                    "told_to_wait_longer" => words::told_longer(lang),
                    _ => words::patience_spent(lang),
                };
                words::gave_up(lang, *calls, &why, *sends, &told(lang, *waited))
            }
            Self::NotSentAgain { calls, why } => words::not_sent_again(lang, *calls, why),
            Self::Over { cause, calls, ago } => words::over(lang, cause, &told(lang, *ago), *calls),
            Self::OnlyFew { calls } => words::only_few(lang, *calls),
            Self::NoCalls { since, last_ago: Some(ago) } => {
                words::no_calls_since(lang, &told(lang, *since), &told(lang, *ago))
            }
            Self::NoCalls { since, last_ago: None } => words::no_calls(lang, &told(lang, *since)),
        }
    }
}

/// What was not looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unseen {
    /// Calls of earlier times.
    Earlier(u64),
    /// Calls that were too many.
    MoreCalls(u64),
    /// The history is off.
    NoHistory,
    /// It cannot be read.
    History(String),
    /// No relay runs at this address.
    NoRelay(String),
    /// The one there wants a token.
    Locked(String),
    /// No other model of this upstream was asked.
    OtherModels(String),
    /// The way to an upstream that is not in these settings.
    Way(String),
    /// So many upstreams.
    MoreUpstreams(u64),
    /// The models: none was asked.
    Models,
    /// The clients' own files.
    Clients,
}

impl Unseen {
    /// In words.
    #[must_use]
    pub fn said(&self, lang: Lang) -> String {
        match self {
            Self::Earlier(since) => words::unseen_earlier(lang, &told(lang, *since)),
            Self::MoreCalls(many) => words::unseen_calls(lang, *many),
            Self::NoHistory => words::unseen_history(lang),
            Self::History(why) => why.clone(),
            Self::NoRelay(at) => words::unseen_relay(lang, at),
            Self::Locked(at) => words::unseen_locked(lang, at),
            Self::OtherModels(upstream) => words::unseen_other_models(lang, upstream),
            Self::Way(upstream) => words::unseen_way(lang, upstream),
            Self::MoreUpstreams(many) => words::unseen_upstreams(lang, *many),
            Self::Models => words::unseen_models(lang),
            Self::Clients => words::unseen_clients(lang),
        }
    }
}
