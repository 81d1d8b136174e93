//! `steady-relay stats`: what the history's calls come to. [`tally`] adds records up one by one in bounded memory and
//! knows nothing of files, clocks and words; [`text`] and [`json`] tell the result, [`export`] the records themselves.

pub mod best;
pub mod export;
pub mod json;
pub mod morning;
pub mod tally;
pub mod text;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
pub struct Options {
    /// How far back to look, such as `12h` or `30d` [default: 7d]
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// Also a row for each hour (of the day), model, upstream or client
    #[arg(long, value_name = "WHAT", value_parser = PossibleValuesParser::new(By::NAMES).map(|name| By::named(&name)))]
    pub by: Option<By>,
    /// Only the last run of a relay, in one line
    #[arg(long, conflicts_with_all = ["since", "by"])]
    pub last_run: bool,
    /// Write the records of that time instead: `jsonl`, or `retry-stats` as codex-retry keeps them
    #[arg(
        long, value_name = "FORM", conflicts_with_all = ["by", "json"],
        value_parser = PossibleValuesParser::new(Form::NAMES).map(|name| Form::named(&name))
    )]
    pub export: Option<Form>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// What makes a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The hour of the day, where the user is.
    Hour,
    /// The model.
    Model,
    /// The upstream.
    Upstream,
    /// The client.
    Client,
}

impl By {
    /// Their names.
    pub const NAMES: [&'static str; 4] = ["hour", "model", "upstream", "client"];

    /// The name on the command line and in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Model => "model",
            Self::Upstream => "upstream",
            Self::Client => "client",
        }
    }

    fn named(name: &str) -> Self {
        match name {
            "hour" => Self::Hour,
            "upstream" => Self::Upstream,
            "client" => Self::Client,
            _model => Self::Model,
        }
    }
}

/// How records are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A record a line.
    Jsonl,
    /// A list of retries.
    RetryStats,
}

impl Form {
    /// Their names.
    pub const NAMES: [&'static str; 2] = ["jsonl", "retry-stats"];

    fn named(name: &str) -> Self {
        if name == "retry-stats" { Self::RetryStats } else { Self::Jsonl }
    }
}

/// An hour of the week, where the user is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// 0 is Monday.
    pub weekday: usize,
    /// From 0 to 23.
    pub hour: usize,
    /// A number that this day has for itself.
    pub day: i32,
}

#[cfg(test)]
mod tests;
