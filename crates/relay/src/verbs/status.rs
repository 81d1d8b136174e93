//! `steady-relay status` and `steady-relay health`: what a relay that runs is doing, and whether there is one.

use relay_core::config::Secret;
use serde_json::json;
use steady_relay::cli::Flags;
use steady_relay::running::{Who, address, lives, look, text};
use steady_relay::settings::Loaded;
use steady_relay::words::{lang, status as words};

use super::{Failure, block_on, failed, files, load, print, print_json};

/// Prints what it is doing.
pub(crate) fn status(flags: &Flags, as_json: bool) -> Result<u8, Failure> {
    let Loaded { config, .. } = load(flags, &files(flags))?;
    let at = address(&config);
    let token = config.token.as_ref().map(Secret::expose);
    let there = block_on(async { Ok(look(at, token).await) })?;
    match there {
        Ok(page) if as_json => print_json(&page),
        Ok(page) => print(&text::page(lang(), &at.to_string(), &page)),
        Err(who) => Err(not_there(who, &at.to_string())),
    }
}

/// Says whether it lives.
pub(crate) fn health(flags: &Flags, as_json: bool) -> Result<u8, Failure> {
    let Loaded { config, .. } = load(flags, &files(flags))?;
    let at = address(&config);
    let token = config.token.as_ref().map(Secret::expose);
    let there = block_on(async { Ok(lives(at, token).await) })?;
    let lives = there.is_ok();
    if as_json {
        let printed = print_json(&json!({"v": 1, "ok": lives, "address": at.to_string()}))?;
        return Ok(there.map_or_else(|who| not_there(who, "").0, |()| printed));
    }
    there.map_err(|who| not_there(who, &at.to_string())).and_then(|()| print("ok"))
}

/// 6: nobody listens, or something else. A relay that asks for a token runs, and the settings lack it.
pub(super) fn not_there(who: Who, at: &str) -> Failure {
    let (code, words) = match who {
        Who::Relay => (2, words::locked(lang(), at)),
        Who::Nobody => (6, words::not_running(lang(), at)),
        Who::StandIn | Who::Silent => (6, words::not_yet(lang(), at)),
        Who::Stranger => (6, words::other(lang(), at)),
    };
    failed(code, &words)
}
