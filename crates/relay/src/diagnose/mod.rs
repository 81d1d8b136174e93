//! `steady-relay diagnose`: is it me, my account, or the model? One verdict, with what speaks for it.
//!
//! ```text
//!  gather (history, a relay that runs, the way to services) --> Facts --> judge (pure) --> Verdict --> report, issue
//! ```
//! No model is asked, and no credential is sent. `docs/diagnose.md` lists the verdicts.

pub mod evidence;
pub mod facts;
pub mod gather;
pub mod issue;
pub mod judge;
pub mod report;
mod troubles;
mod votes;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use relay_core::{Lang, units};

use crate::words::diagnose as words;

/// So far back is looked where nothing else is said.
const SINCE: &str = "1h";

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Options {
    /// How far to look back: 30min, 12h, 7d
    #[arg(long, value_name = "SPAN", default_value = SINCE, value_parser = span)]
    pub since: Duration,
    /// Write a report for a bug tracker to FILE, or with `-` to standard output
    ///
    /// Markdown, in English: versions, the settings in force with secrets masked, the verdict, and the last calls that
    /// met trouble. No key, no prompt, no name of a user or of a home folder is in it.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A length of time on the command line.
///
/// # Errors
/// Where it is none.
pub fn span(text: &str) -> Result<Duration, String> {
    units::duration(text).map_err(|invalid| invalid.to_string())
}

/// What is the matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// One model is short of capacity.
    ModelAtCapacity,
    /// One model is being loaded.
    ModelLoading,
    /// The whole service is short of capacity.
    ServiceOverloaded,
    /// The service fails in ways of its own.
    ServiceFailing,
    /// The account asks too often.
    RateLimited,
    /// Its quota or plan is spent.
    QuotaSpent,
    /// Its credential is not accepted.
    CredentialRefused,
    /// The service has no such model, or not for this account.
    NoSuchModel,
    /// The request is too long.
    RequestTooLong,
    /// The request is wrong, or its content is.
    RequestRefused,
    /// No connection comes about.
    Unreachable,
    /// TLS, a certificate or a proxy stands in the way.
    InTheWay,
    /// An edge or a portal answers in place of the service.
    Edge,
    /// This machine's clock is wrong.
    ClockWrong,
    /// The client does not wait for the answer.
    ClientHangsUp,
    /// The relay does not send again what may have run.
    RelayRefuses,
    /// The relay's profile gives up too soon.
    RelayGivesUp,
    /// The relay's settings are wrong.
    RelaySettings,
    /// Nothing.
    NothingWrong,
    /// Nobody can tell.
    TooLittle,
}

/// Whose matter it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// That of a model.
    Model,
    /// That of a service as a whole.
    Service,
    /// That of the account.
    Account,
    /// That of what is asked.
    Request,
    /// That of the way between.
    Network,
    /// That of this machine.
    Machine,
    /// That of the client.
    Client,
    /// That of the relay.
    Relay,
    /// Nobody's.
    Nobody,
}

impl Whose {
    /// The name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Service => "service",
            Self::Account => "account",
            Self::Request => "request",
            Self::Network => "network",
            Self::Machine => "machine",
            Self::Client => "client",
            Self::Relay => "relay",
            Self::Nobody => "nobody",
        }
    }
}

impl Cause {
    /// Every one, in the order of the documentation.
    pub const ALL: [Self; 20] = [
        Self::ModelAtCapacity,
        Self::ModelLoading,
        Self::ServiceOverloaded,
        Self::ServiceFailing,
        Self::RateLimited,
        Self::QuotaSpent,
        Self::CredentialRefused,
        Self::NoSuchModel,
        Self::RequestTooLong,
        Self::RequestRefused,
        Self::Unreachable,
        Self::InTheWay,
        Self::Edge,
        Self::ClockWrong,
        Self::ClientHangsUp,
        Self::RelayRefuses,
        Self::RelayGivesUp,
        Self::RelaySettings,
        Self::NothingWrong,
        Self::TooLittle,
    ];

    /// The name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ModelAtCapacity => "model_at_capacity",
            Self::ModelLoading => "model_loading",
            Self::ServiceOverloaded => "service_overloaded",
            Self::ServiceFailing => "service_failing",
            Self::RateLimited => "rate_limited",
            Self::QuotaSpent => "quota_spent",
            Self::CredentialRefused => "credential_refused",
            Self::NoSuchModel => "no_such_model",
            Self::RequestTooLong => "request_too_long",
            Self::RequestRefused => "request_refused",
            Self::Unreachable => "unreachable",
            Self::InTheWay => "in_the_way",
            Self::Edge => "edge",
            Self::ClockWrong => "clock_wrong",
            Self::ClientHangsUp => "client_hangs_up",
            Self::RelayRefuses => "relay_refuses",
            Self::RelayGivesUp => "relay_gives_up",
            Self::RelaySettings => "relay_settings",
            Self::NothingWrong => "nothing_wrong",
            Self::TooLittle => "too_little",
        }
    }

    /// Whose matter it is.
    #[must_use]
    pub const fn whose(self) -> Whose {
        match self {
            Self::ModelAtCapacity | Self::ModelLoading => Whose::Model,
            Self::ServiceOverloaded | Self::ServiceFailing => Whose::Service,
            Self::RateLimited | Self::QuotaSpent | Self::CredentialRefused => Whose::Account,
            Self::NoSuchModel | Self::RequestTooLong | Self::RequestRefused => Whose::Request,
            Self::Unreachable | Self::InTheWay | Self::Edge => Whose::Network,
            Self::ClockWrong => Whose::Machine,
            Self::ClientHangsUp => Whose::Client,
            Self::RelayRefuses | Self::RelayGivesUp | Self::RelaySettings => Whose::Relay,
            Self::NothingWrong | Self::TooLittle => Whose::Nobody,
        }
    }

    /// Whether it is the matter of one model rather than of all that is asked there.
    const fn is_of_a_model(self) -> bool {
        matches!(self, Self::ModelAtCapacity | Self::ModelLoading | Self::NoSuchModel | Self::RequestTooLong)
    }

    /// Whether the same answer comes however often one asks, until somebody changes something.
    const fn is_for_good(self) -> bool {
        matches!(
            self,
            Self::QuotaSpent
                | Self::CredentialRefused
                | Self::NoSuchModel
                | Self::RequestTooLong
                | Self::RequestRefused
        )
    }

    /// Whether calls that go well afterwards show that it is over.
    const fn passes(self) -> bool {
        match self {
            Self::ModelAtCapacity
            | Self::ModelLoading
            | Self::ServiceOverloaded
            | Self::ServiceFailing
            | Self::RateLimited
            | Self::QuotaSpent
            | Self::CredentialRefused
            | Self::Unreachable
            | Self::InTheWay
            | Self::Edge
            | Self::ClockWrong => true,
            Self::NoSuchModel
            | Self::RequestTooLong
            | Self::RequestRefused
            | Self::ClientHangsUp
            | Self::RelayRefuses
            | Self::RelayGivesUp
            | Self::RelaySettings
            | Self::NothingWrong
            | Self::TooLittle => false,
        }
    }
}

/// The verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// What is the matter.
    pub cause: Cause,
    /// The upstream that it is about.
    pub upstream: Option<String>,
    /// The model that it is about.
    pub model: Option<String>,
    /// The client or the profile that it is about.
    pub who: Option<String>,
    /// Several calls say so, and little speaks against it.
    pub is_sure: bool,
    /// What speaks for it, the strongest first.
    pub evidence: Vec<evidence::Evidence>,
    /// What was not looked at.
    pub unseen: Vec<evidence::Unseen>,
}

impl Verdict {
    fn of(cause: Cause) -> Self {
        Self {
            cause,
            upstream: None,
            model: None,
            who: None,
            is_sure: true,
            evidence: Vec::new(),
            unseen: Vec::new(),
        }
    }

    /// It, in a line.
    #[must_use]
    pub fn line(&self, lang: Lang) -> String {
        let upstream = self.upstream.as_deref().unwrap_or("-");
        let model = self.model.as_deref().unwrap_or("-");
        let who = self.who.as_deref().unwrap_or("-");
        match self.cause {
            Cause::ModelAtCapacity => words::model_at_capacity(lang, model, upstream),
            Cause::ModelLoading => words::model_loading(lang, model, upstream),
            Cause::ServiceOverloaded => words::service_overloaded(lang, upstream),
            Cause::ServiceFailing => words::service_failing(lang, upstream),
            Cause::RateLimited => words::rate_limited(lang, upstream),
            Cause::QuotaSpent => words::quota_spent(lang, upstream),
            Cause::CredentialRefused => words::credential_refused(lang, upstream),
            Cause::NoSuchModel => words::no_such_model(lang, upstream, model),
            Cause::RequestTooLong => words::request_too_long(lang, model, upstream),
            Cause::RequestRefused => words::request_refused(lang, upstream),
            Cause::Unreachable => words::unreachable(lang, upstream),
            Cause::InTheWay => words::in_the_way(lang, upstream),
            Cause::Edge => words::edge(lang, upstream),
            Cause::ClockWrong => words::clock_wrong(lang),
            Cause::ClientHangsUp => words::client_hangs_up(lang, who),
            Cause::RelayRefuses => words::relay_refuses(lang),
            Cause::RelayGivesUp => words::relay_gives_up(lang, who, upstream),
            Cause::RelaySettings => words::relay_settings(lang),
            Cause::NothingWrong => words::nothing_wrong(lang),
            Cause::TooLittle => words::too_little(lang),
        }
    }

    /// The one thing to do.
    #[must_use]
    pub fn remedy(&self, lang: Lang) -> String {
        match self.cause {
            Cause::ModelAtCapacity => words::do_model_at_capacity(lang),
            Cause::ModelLoading => words::do_model_loading(lang),
            Cause::ServiceOverloaded => words::do_service_overloaded(lang),
            Cause::ServiceFailing => words::do_service_failing(lang),
            Cause::RateLimited => words::do_rate_limited(lang),
            Cause::QuotaSpent => words::do_quota_spent(lang),
            Cause::CredentialRefused => words::do_credential_refused(lang),
            Cause::NoSuchModel => words::do_no_such_model(lang),
            Cause::RequestTooLong => words::do_request_too_long(lang),
            Cause::RequestRefused => words::do_request_refused(lang),
            Cause::Unreachable => words::do_unreachable(lang),
            Cause::InTheWay => words::do_in_the_way(lang),
            Cause::Edge => words::do_edge(lang),
            Cause::ClockWrong => words::do_clock_wrong(lang),
            Cause::ClientHangsUp => words::do_client_hangs_up(lang, self.who.as_deref().unwrap_or("other")),
            Cause::RelayRefuses => words::do_relay_refuses(lang),
            Cause::RelayGivesUp => words::do_relay_gives_up(lang),
            Cause::RelaySettings => words::do_relay_settings(lang),
            Cause::NothingWrong => words::do_nothing_wrong(lang),
            Cause::TooLittle => words::do_too_little(lang),
        }
    }
}

#[cfg(test)]
mod tests;
