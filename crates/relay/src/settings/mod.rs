//! Settings, from where people write them to the one `Config` the relay runs on: flags over environment over
//! file over defaults, all that is wrong told at once, with its place.
//! Not their meaning (that is `relay_core::config`), and no printing (that is `main`).
//!
//! ```text
//!  file ----> open, parse ----> drafts --.
//!  env  ----> layers --------------------+--> build --> Config
//!  flags ---> layers --------------------'       \--> or every Issue
//! ```

mod build;
mod errors;
mod file;
mod keys;
mod layers;
mod read;
mod reference;
mod rules;

pub use crate::cli::Flags;
pub use errors::{Issue, SettingsError};
pub use reference::{KeyDoc, SectionDoc, reference};

use relay_core::Config;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// How a variable of the environment is looked up.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// How a file is read.
pub type ReadFile<'a> = &'a dyn Fn(&Path) -> io::Result<Vec<u8>>;

/// Settings that are in force.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The settings.
    pub config: Config,
    /// What the user should know, one sentence each, though nothing is wrong.
    pub notices: Vec<String>,
    /// The file that was read, if there is one.
    pub file: Option<PathBuf>,
}

/// Reads the settings.
///
/// # Errors
/// With all that is wrong in file, environment and flags.
pub fn load(flags: &Flags, env: Env<'_>, read: ReadFile<'_>) -> Result<Loaded, SettingsError> {
    let mut found = errors::Findings::default();
    let source = file::open(flags, env, read, &mut found);
    let (path, text) = source.map_or_else(Default::default, |source| (Some(source.path), source.text));
    let (mut drafts, is_toml, mut found) = file::parse(&text, found);
    let mut notices = Vec::new();
    let layers = layers::read(flags, env, &mut drafts, &mut found, &mut notices);
    let mut config = Config::default();
    if is_toml {
        let folder = path.as_deref().and_then(Path::parent);
        config = build::build(drafts, layers, folder, &mut found);
    }
    let shown_path = path.clone().unwrap_or_default();
    match found.into_error(&shown_path, &text) {
        Some(error) => Err(error),
        None => Ok(Loaded { config, notices, file: path }),
    }
}

#[cfg(test)]
mod tests;
