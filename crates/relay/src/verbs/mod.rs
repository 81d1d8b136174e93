//! The verbs of the command line, one file each, and what several of them do.

pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod setup;
mod signals;

use std::ffi::OsString;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use relay_core::Listen;
use relay_core::config::Config;
use steady_relay::cli::Flags;
use steady_relay::files::Files;
use steady_relay::listen::{Bound, Place, bind, leads_back};
use steady_relay::settings::{self, Environment, Loaded, Places, SettingsError};
use steady_relay::target::Upstreams;
use steady_relay::tls;

/// Why the program ends early: the exit code, and what to print.
pub(crate) struct Failure(pub(crate) u8, pub(crate) String);

/// Words for a person, on standard error. A reader that is gone cannot be told anything.
pub(crate) fn say(words: &str) {
    let _unread = writeln!(std::io::stderr(), "{words}");
}

/// Data, on standard output.
fn print(data: &str) -> Result<u8, Failure> {
    match writeln!(std::io::stdout(), "{data}") {
        Ok(()) => Ok(0),
        // Whoever reads has seen enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(0),
        Err(error) => Err(Failure(1, format!("error: standard output: {error}"))),
    }
}

/// Does it, and ends then: what other threads are at, such as a look-up of a name that nobody answers, is not waited
/// for.
fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure(1, format!("error: the system does not let the relay start: {error}")))?;
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
    try_load(flags, files).map_err(|error| Failure(2, error.to_string().trim_end().to_owned()))
}

fn places(flags: &Flags, files: &Files) -> Places {
    settings::places(flags, &Process, &|path: &Path| files.read(path))
}

fn listen(config: &Config) -> Result<Bound, Failure> {
    let place = match config.listen {
        Listen::Localhost => Place::Loopback(config.port),
        Listen::Address(ip) => Place::At(SocketAddr::new(ip, config.port)),
    };
    bind(place).map_err(|error| Failure(1, format!("error: {error}")))
}

/// Where requests go; an upstream that is the relay itself would send every request round for ever.
async fn targets(config: &Config, listening: &[SocketAddr]) -> Result<Upstreams, Failure> {
    let targets = Upstreams::of(config);
    for upstream in targets.all() {
        let url = &upstream.url;
        if upstream.is_at(listening) || leads_back(url.host(), url.port(), listening).await {
            return Err(Failure(
                2,
                format!(
                    "error: upstream `{}` is {}, which is this relay itself\nhint: name the service that answers, \
                     or give the relay another port",
                    upstream.name,
                    upstream.shown()
                ),
            ));
        }
    }
    Ok(targets)
}

fn tls_config(config: &Config) -> Result<(Arc<rustls::ClientConfig>, Vec<String>), Failure> {
    tls::client_config(&config.ca_files).map_err(|error| Failure(2, format!("error: {error}")))
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
