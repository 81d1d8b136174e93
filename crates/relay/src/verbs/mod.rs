//! The verbs of the command line, one file each, and what several of them do.

pub(crate) mod alerts;
pub(crate) mod cert;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod diagnose;
pub(crate) mod doctor;
#[cfg(feature = "history")]
mod history;
pub(crate) mod man;
mod own;
mod private;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod selftest;
pub(crate) mod send;
pub(crate) mod serve;
pub(crate) mod service;
pub(crate) mod session;
pub(crate) mod setup;
mod signals;
pub(crate) mod snapshots;
#[cfg(feature = "history")]
pub(crate) mod stats;
pub(crate) mod status;
pub(crate) mod top;
pub(crate) mod version;
#[cfg(feature = "history")]
pub(crate) mod why;

use std::ffi::OsString;
use std::fmt::Display;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use relay_core::config::Config;
use relay_core::{Lang, Listen, plain};
use steady_relay::cli::Flags;
use steady_relay::credentials;
use steady_relay::files::Files;
use steady_relay::listen::{Bound, Place, bind, leads_back};
use steady_relay::run::SessionKey;
use steady_relay::sessions;
use steady_relay::settings::{self, Environment, Loaded, Places, SettingsError};
use steady_relay::target::Upstreams;
use steady_relay::tls;
use steady_relay::words::{self, start};

/// Why the program ends early: the exit code, and what to print.
pub(crate) struct Failure(pub(crate) u8, pub(crate) String);

/// What went wrong, as the words of an error.
fn failed(code: u8, error: &dyn Display) -> Failure {
    Failure(code, start::error(words::lang(), &error.to_string()))
}

/// Words for a person, on standard error. A reader that is gone cannot be told anything. Whatever a file or a peer has
/// said is in them, no terminal obeys it.
pub(crate) fn say(words: &str) {
    let _unread = writeln!(std::io::stderr(), "{}", plain::text(words));
}

/// The language of sentences in data: what programs read is English whoever runs them.
fn lang_of_data(is_json: bool) -> Lang {
    if is_json { Lang::English } else { words::lang() }
}

/// Text for a person, on standard output, likewise.
fn print(text: &str) -> Result<u8, Failure> {
    write(format!("{}\n", plain::text(text)).as_bytes())
}

/// JSON, on standard output, which may be a terminal as well.
fn print_json(data: &impl Display) -> Result<u8, Failure> {
    write(format!("{}\n", plain::json(&data.to_string())).as_bytes())
}

/// The same as it is.
fn write(data: &[u8]) -> Result<u8, Failure> {
    match std::io::stdout().write_all(data) {
        Ok(()) => Ok(0),
        // Whoever reads has seen enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(0),
        Err(error) => Err(Failure(1, start::no_output(words::lang(), &error.to_string()))),
    }
}

/// Does it, and ends then: what other threads are at, such as a look-up of a name that nobody answers, is not waited
/// for.
fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure(1, start::no_start(words::lang(), &error.to_string())))?;
    let done = runtime.block_on(work);
    runtime.shutdown_background();
    done
}

/// The environment of this process.
struct Process;

impl Environment for Process {
    fn value(&self, name: &str) -> Option<OsString> {
        std::env::var_os(name)
    }

    fn names(&self) -> Vec<String> {
        std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect()
    }
}

/// The files as a program reads them that starts: what a flag or a variable names may be a pipe.
fn files(flags: &Flags) -> Files {
    let variable = |name| Process.value(name).map(PathBuf::from);
    let named = [
        flags.config.clone(),
        flags.env_file.clone(),
        variable("STEADY_RELAY_CONFIG"),
        variable("STEADY_RELAY_ENV_FILE"),
    ];
    Files::at_start(named.into_iter().flatten().collect())
}

fn try_load(flags: &Flags, files: &Files) -> Result<Loaded, SettingsError> {
    settings::load(flags, &Process, &|path: &Path| files.read(path))
}

fn load(flags: &Flags, files: &Files) -> Result<Loaded, Failure> {
    try_load(flags, files).map(settled).map_err(|error| wrong(&error))
}

/// The settings in the language that they choose, which is spoken from now on.
fn settled(mut loaded: Loaded) -> Loaded {
    let lang = words::settle(loaded.config.lang);
    loaded.config.lang = Some(lang);
    loaded.notices = loaded.notices.iter().map(|notice| words::settings::said(lang, notice)).collect();
    loaded
}

fn wrong(error: &SettingsError) -> Failure {
    Failure(2, error.to_string().trim_end().to_owned())
}

fn places(flags: &Flags, files: &Files) -> Places {
    settings::places(flags, &Process, &|path: &Path| files.read(path))
}

fn listen(config: &Config) -> Result<Bound, Failure> {
    bind(place(config, config.port)).map_err(|error| failed(1, &error))
}

/// Where the settings want to listen, at this port.
fn place(config: &Config, port: u16) -> Place {
    match config.listen {
        Listen::Localhost => Place::Loopback(port),
        Listen::Address(ip) => Place::At(SocketAddr::new(ip, port)),
    }
}

/// Where requests go; an upstream that is the relay itself would send every request round for ever.
async fn targets(config: &Config, listening: &[SocketAddr]) -> Result<Upstreams, Failure> {
    can_start(config)?;
    let targets = Upstreams::of(config);
    for upstream in targets.all() {
        let url = &upstream.url;
        if upstream.is_at(listening) || leads_back(url.host(), url.port(), listening).await {
            return Err(Failure(
                2,
                start::is_ourselves(words::lang(), &upstream.name, &upstream.shown().to_string()),
            ));
        }
    }
    Ok(targets)
}

/// Whether the credentials of the relay's own can be had that a variable holds. One of a file or a program may come later.
fn can_start(config: &Config) -> Result<(), Failure> {
    match credentials::unset(config).next() {
        Some((name, variable)) => {
            Err(failed(2, &words::credentials::start_unset(words::lang(), name, variable)))
        }
        None => Ok(()),
    }
}

fn tls_config(config: &Config) -> Result<(Arc<rustls::ClientConfig>, Vec<String>), Failure> {
    tls::client_config(&config.ca_files).map_err(|error| failed(2, &error))
}

/// A key that a relay asks for in place of the token of the settings.
fn session_key() -> Result<SessionKey, Failure> {
    let none = || failed(1, &words::door::no_random(words::lang()));
    sessions::drawn().ok_or_else(none)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_ends_elsewhere_is_not_waited_for() {
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let done = block_on(async {
            tokio::task::spawn_blocking(move || ended.recv().is_ok());
            Ok(7)
        });
        assert!(matches!(done, Ok(7)));
        drop(end);
    }
}
