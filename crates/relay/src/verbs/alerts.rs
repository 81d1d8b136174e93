//! `steady-relay alerts test`: whether alerts reach somebody.

use steady_relay::alerts::{Options, Verb, json};
use steady_relay::cli::Flags;
use steady_relay::words::{alerts as words, lang};

use super::{Failure, block_on, failed, files, load, print, private};

/// Sends one by every way; 1 where one failed, or none is set.
pub(crate) fn alerts(flags: &Flags, options: &Options) -> Result<u8, Failure> {
    let Verb::Test { json: is_json } = options.verb;
    let mut config = load(flags, &files(flags))?.config;
    // It leaves nothing behind.
    config.state_dir = None;
    let all = block_on(async {
        let (relay, _door) = private::start(config, None, Vec::new()).await?;
        Ok(relay.try_alerts().await)
    })?;
    let text = if is_json {
        json(&all).to_string()
    } else if all.is_empty() {
        return Err(failed(1, &words::no_way(lang())));
    } else {
        all.iter().map(|tried| tried.line(lang())).collect::<Vec<_>>().join("\n")
    };
    print(&text)?;
    Ok(u8::from(all.is_empty() || all.iter().any(|tried| tried.failed.is_some())))
}
