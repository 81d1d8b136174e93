//! The history's file, for the verbs that read it.

use steady_relay::cli::Flags;
use steady_relay::history::store::Reader;
use steady_relay::words::{self, lang};

use super::{Failure, failed, files, load};

/// The file that the settings name.
pub(super) fn reader(flags: &Flags) -> Result<Reader, Failure> {
    let config = load(flags, &files(flags))?.config;
    let Some(path) = config.history_file() else {
        let is_off = !config.history.enabled;
        let words = if is_off { words::history::is_off(lang()) } else { words::history::no_folder(lang()) };
        return Err(failed(1, &words));
    };
    Reader::open(&path).map_err(|why| failed(1, &why))
}
