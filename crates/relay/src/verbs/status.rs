//! `steady-relay status` and `steady-relay health`: what a relay that runs is doing, and whether there is one.

use relay_core::config::Secret;
use serde_json::json;
use steady_relay::cli::Flags;
use steady_relay::running::{There, address, lives, look, text};
use steady_relay::settings::Loaded;
use steady_relay::words::{lang, status as words};

use super::{Failure, block_on, failed, files, load, print};

/// Prints what it is doing.
pub(crate) fn status(flags: &Flags, as_json: bool) -> Result<u8, Failure> {
    let Loaded { config, .. } = load(flags, &files(flags))?;
    let at = address(&config);
    let token = config.token.as_ref().map(Secret::expose);
    let there = block_on(async { Ok(look(at, token).await) })?;
    match there {
        There::Relay(page) if as_json => print(&page.to_string()),
        There::Relay(page) => print(&text::page(lang(), &at.to_string(), &page)),
        There::Locked | There::Other | There::Nothing => Err(not_there(&there, &at.to_string())),
    }
}

/// Says whether it lives.
pub(crate) fn health(flags: &Flags, as_json: bool) -> Result<u8, Failure> {
    let Loaded { config, .. } = load(flags, &files(flags))?;
    let at = address(&config);
    let token = config.token.as_ref().map(Secret::expose);
    let there = block_on(async { Ok(lives(at, token).await) })?;
    let is_there = matches!(there, There::Relay(_));
    if as_json {
        let printed = print(&json!({"v": 1, "ok": is_there, "address": at.to_string()}).to_string())?;
        return Ok(if is_there { printed } else { not_there(&there, "").0 });
    }
    if is_there { print("ok") } else { Err(not_there(&there, &at.to_string())) }
}

/// 6: nobody listens, or something else. A relay that asks for a token runs, and the settings lack it.
fn not_there(there: &There, at: &str) -> Failure {
    let (code, words) = match there {
        There::Locked => (2, words::locked(lang(), at)),
        There::Nothing => (6, words::not_running(lang(), at)),
        There::Other | There::Relay(_) => (6, words::other(lang(), at)),
    };
    failed(code, &words)
}
