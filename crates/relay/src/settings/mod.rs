//! Settings, from where people write them to the one `Config` the relay runs on: flags over environment over
//! env files over file over defaults, all that is wrong told at once, with its place.
//! Not their meaning (that is `relay_core::config`), and no printing (that is the program).
//!
//! ```text
//!  file -------> open, parse ----> drafts --.
//!  env files --> layers --------------------+--> build --> Config, and who set each key
//!  env --------> layers --------------------+       \--> or every Issue
//!  flags ------> layers --------------------'
//! ```

mod advice;
mod build;
mod credentials;
mod env_file;
mod environment;
mod errors;
mod file;
mod keys;
mod layers;
mod numbers;
mod page;
mod read;
mod reference;
mod rules;
mod schema;
mod show;
mod variables;

pub use crate::cli::Flags;
pub use environment::{Environment, NO_VARIABLES};
pub use errors::{Issue, SettingsError};
pub use page::page;
pub(crate) use read::looks_secret;
pub use reference::{KeyDoc, SectionDoc, reference};
pub(crate) use rules::own_rule;
pub use schema::schema;
pub use show::Shown;
pub use variables::{Scope, VARIABLES, Variable};

use crate::proxy;
use relay_core::Config;
use relay_core::config::{ProxyChoice, ProxyList, Websocket};
use relay_core::units::show_bytes;
use std::io;
use std::path::{Path, PathBuf};

/// The environment.
pub type Env<'a> = &'a dyn Environment;

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
    /// Every key, and who set it.
    pub shown: Vec<Shown>,
    /// Where each `[[rule]]` stands: `config.toml:12`.
    pub rules_at: Vec<String>,
}

/// Where settings are looked for, be there something or not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Places {
    /// The configuration file; `None` where the environment does not tell where it would be.
    pub config: Option<PathBuf>,
    /// Whether somebody named it: such a file has to be there.
    pub config_is_named: bool,
    /// The env file that is named.
    pub env_file: Option<PathBuf>,
    /// The env file in the user's configuration folder.
    pub usual_env_file: Option<PathBuf>,
}

impl Places {
    /// All of them, to watch.
    pub fn all(&self) -> impl Iterator<Item = &Path> {
        [&self.config, &self.env_file, &self.usual_env_file].into_iter().flatten().map(PathBuf::as_path)
    }
}

/// Where settings are looked for.
#[must_use]
pub fn places(flags: &Flags, env: Env<'_>, read: ReadFile<'_>) -> Places {
    let env_files = env_file::open(flags, env, read, &mut errors::Findings::default());
    let (env_file, usual_env_file) = env_file::paths(flags, env);
    let looked_for = file::LookedFor::by(flags, env, &env_files);
    let config_is_named = looked_for.as_ref().is_some_and(|looked_for| looked_for.is_named);
    let config = looked_for.map(|looked_for| looked_for.path);
    Places { config, config_is_named, env_file, usual_env_file }
}

/// The folder for what is kept over a restart, by flag, environment or habit alone: for what has to be found without
/// readable settings.
#[must_use]
pub fn state_dir_without_settings(flags: &Flags, env: Env<'_>) -> Option<PathBuf> {
    let named = || layers::present(env, "STEADY_RELAY_STATE_DIR").map(PathBuf::from);
    let flag = flags.state_dir.as_ref().map(PathBuf::from);
    flag.or_else(named).or_else(|| file::usual_state_dir(env, file::System::THIS))
}

/// Reads the settings.
///
/// # Errors
/// With all that is wrong in file, environment and flags.
pub fn load(flags: &Flags, env: Env<'_>, read: ReadFile<'_>) -> Result<Loaded, SettingsError> {
    let mut found = errors::Findings::default();
    let env_files = env_file::open(flags, env, read, &mut found);
    let looked_for = file::LookedFor::by(flags, env, &env_files);
    let source = looked_for.and_then(|looked_for| file::open(&looked_for, read, &mut found));
    let text = source.as_ref().map_or("", |source| source.text.as_str());
    let path = source.as_ref().map(|source| source.path.clone());
    let (mut drafts, is_toml, mut found) = file::parse(text, found);
    let mut notices = Vec::new();
    let outside = layers::Outside { env, env_files: &env_files, found: &mut found, notices: &mut notices };
    let layers = layers::read(flags, &mut drafts, outside);
    let mut config = Config::default();
    if is_toml {
        let variables = |name: &str| variable(env, &env_files, name);
        let folder = path.as_deref().and_then(Path::parent);
        let around = build::Around { text, folder, read, variables: &variables };
        config = build::build(drafts, &layers, around, &mut found);
    }
    match found.into_error(path.as_deref().unwrap_or(Path::new("")), text) {
        Some(error) => Err(error),
        None => {
            let by_system = |list: &ProxyList| list.iter().any(|choice| *choice == ProxyChoice::System);
            let mut own = config.upstreams.values().filter_map(|upstream| upstream.proxy.as_ref());
            if by_system(&config.proxy) || own.any(by_system) {
                notices.extend(proxy::passed_over(env));
            }
            let shown = show::shown(&config, source.as_ref(), &layers.outside);
            notices.extend(no_websockets(&config));
            notices.extend(credentials::unset(&config));
            notices.extend(advice::of(&config));
            cap(&mut notices);
            let rules_at = source.as_ref().map_or_else(Vec::new, |source| show::places_of("rule", source));
            Ok(Loaded { config, notices, file: path, shown, rules_at })
        }
    }
}

/// What a variable holds that the settings name: in the environment, else in the stronger env file that has it.
fn variable(env: Env<'_>, env_files: &[env_file::EnvFile], name: &str) -> Option<String> {
    // What is no text is no key either, and is told of as such.
    let in_process = layers::present(env, name).map(|value| value.to_string_lossy().into_owned());
    in_process.or_else(|| env_files.iter().find_map(|file| file.get(name).map(|(value, _)| value.to_owned())))
}

/// What a room that is too small does besides.
fn no_websockets(config: &Config) -> Option<String> {
    let (total, message) = (config.bodies.total, config.limits.message);
    (total < message && config.websocket == Websocket::Speak).then(|| {
        format!(
            "no WebSockets are spoken and clients are told to use HTTP, since `bodies.total` ({}) is less than \
             `limits.message` ({})",
            show_bytes(total),
            show_bytes(message)
        )
    })
}

/// A file of variables that belong to others can have any number that look like ours.
fn cap(notices: &mut Vec<String>) {
    const MOST: usize = 20;
    let more = notices.len().saturating_sub(MOST);
    if more > 0 {
        notices.truncate(MOST);
        notices.push(format!("and {more} more notes of this kind"));
    }
}

#[cfg(test)]
mod tests;
