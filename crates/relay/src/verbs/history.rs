//! The history's file, for the verbs that read it.

use relay_core::config::{Config, Secret};
use steady_relay::history::store::Reader;
use steady_relay::running;
use steady_relay::words::{self, lang};

/// The file that the settings name.
///
/// # Errors
/// Where there is none, or it cannot be read; in words for people.
pub(super) fn reader(config: &Config) -> Result<Reader, String> {
    let Some(path) = config.history_file() else {
        let is_off = !config.history.enabled;
        return Err(if is_off { words::history::is_off(lang()) } else { words::history::no_folder(lang()) });
    };
    Reader::open(&path).map_err(|why| why.to_string())
}

/// Has the relay at the address of the settings write all that has happened. Where none answers, the file is what it is.
pub(super) async fn settles(config: &Config) {
    let token = config.token.as_ref().map(Secret::expose);
    let _asked = running::written(running::address(config), token).await;
}
