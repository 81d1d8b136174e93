//! The history's file, for the verbs that read it.

use relay_core::config::Config;
use steady_relay::history::store::Reader;
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
