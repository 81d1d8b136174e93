//! `steady-relay alerts test`: one alert by every way that the settings name, and what came of each. It goes as every other
//! does, so what works here works when it matters.

use std::sync::Arc;

use clap::{Args, Subcommand};
use relay_core::Lang;
use serde_json::{Value, json};

use super::message::Message;
use super::{command, show, webhook};
use crate::clock::wall_ms;
use crate::shared::Shared;
use crate::words::{alerts as words, lang};

/// `steady-relay alerts`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Options {
    /// What to do with them.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What can be done with alerts.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum Verb {
    /// Send a test alert by every way that is set: webhook, program, desktop.
    Test {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// What came of a way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// Its key below `[alerts]`.
    pub way: &'static str,
    /// Where it leads, as far as that may be shown.
    pub at: String,
    /// What was in the way.
    pub failed: Option<String>,
}

impl Tried {
    /// It, in a line.
    #[must_use]
    pub fn line(&self, lang: Lang) -> String {
        match &self.failed {
            None => words::taken(lang, self.way, &self.at),
            Some(why) => words::not_taken(lang, self.way, why),
        }
    }
}

/// All of them, for programs.
#[must_use]
pub fn json(all: &[Tried]) -> Value {
    let one = |Tried { way, at, failed }: &Tried| json!({"way": way, "at": at, "ok": failed.is_none(), "why": failed});
    json!({"v": 1, "ways": all.iter().map(one).collect::<Vec<_>>()})
}

/// Tries all ways that are set, side by side.
pub(crate) async fn try_all(shared: &Arc<Shared>) -> Vec<Tried> {
    let message = Arc::new(Message::test(wall_ms(&*shared.clock), lang()));
    let settings = &shared.config.alerts;
    let (posts, runs, shows) = tokio::join!(
        async {
            let url = settings.webhook.as_ref()?;
            let came = webhook::post(Arc::clone(shared), Arc::clone(&message)).await;
            Some(("webhook", url.at().to_string(), came))
        },
        async {
            let program = settings.command.first()?;
            let came = command::run(Arc::clone(shared), Arc::clone(&message)).await;
            Some(("command", format!("`{program}`"), came))
        },
        async {
            if !settings.desktop {
                return None;
            }
            Some(("desktop", words::the_desktop(lang()), show(&message).await))
        },
    );
    let tried = |(way, at, came): (_, _, Result<(), String>)| Tried { way, at, failed: came.err() };
    [posts, runs, shows].into_iter().flatten().map(tried).collect()
}
