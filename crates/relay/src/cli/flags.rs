//! What the relay is told on the command line, and which verb hears which of it. Not what a value means.

use clap::{ArgMatches, Args, ValueHint};
use std::path::PathBuf;

use super::suggested::{FORMATS, LEVELS, ON_OFF, PROFILES};

/// What the relay is told on the command line. Values are texts: `settings` reads them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
#[command(next_help_heading = "Relay")]
pub struct Flags {
    /// The IP address to listen on [default: localhost, which is 127.0.0.1 and ::1]
    ///
    /// Any address beyond loopback needs a token: set STEADY_RELAY_TOKEN, or `token` in the configuration file.
    /// Also STEADY_RELAY_LISTEN.
    #[arg(long, value_name = "ADDR", value_hint = ValueHint::Other)]
    pub listen: Option<String>,
    /// The port to listen on; 0 picks a free one [default: 8787]
    ///
    /// Also STEADY_RELAY_PORT, or PORT, its older name.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_hint = ValueHint::Other)]
    pub port: Option<String>,
    /// The one service everything goes to [default: by the request's credential]
    ///
    /// A URL, or the name of an `[upstream.NAME]` of the configuration file.
    /// Also STEADY_RELAY_UPSTREAM, or UPSTREAM_URL, its older name.
    #[arg(long, value_name = "URL", value_hint = ValueHint::Other)]
    pub upstream: Option<String>,
    /// The configuration file
    ///
    /// Where none is named, steady-relay/config.toml in the user's configuration folder is read if it exists. Also STEADY_RELAY_CONFIG.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// How hard to try: auto, interactive, batch, patient, strict [default: auto]
    ///
    /// Or codex-retry or opencodex, with the numbers of the tools of that name, or the name of a `[profile.NAME]`
    /// of the configuration file. Also STEADY_RELAY_PROFILE.
    #[arg(long, value_name = "NAME", value_parser = PROFILES, hide_possible_values = true)]
    pub profile: Option<String>,
    /// Whether calls wait together while the service takes none: on, off [default: on]
    ///
    /// Those that do go to the same service and model with the same credential. A `gate = true` of a profile or a route
    /// in the configuration file holds all the same. Also STEADY_RELAY_GATE.
    #[arg(long, value_name = "on|off", value_parser = ON_OFF, hide_possible_values = true)]
    pub gate: Option<String>,
    /// Speak https too, on the same port: on, off [default: off]
    ///
    /// For clients that insist on it: `steady-relay cert trust-help` says how each of them comes to trust the
    /// certificate, which is made at the first start. Also STEADY_RELAY_TLS.
    #[arg(long, value_name = "on|off", num_args = 0..=1, require_equals = true, default_missing_value = "on",
        value_parser = ON_OFF, hide_possible_values = true)]
    pub tls: Option<String>,
    /// A file of NAME=value lines; they count after the environment and before the configuration file
    ///
    /// A `.env` in the working directory is never read unless it is named here. Also STEADY_RELAY_ENV_FILE; and the
    /// file steady-relay/env in the user's configuration folder is read if it exists.
    #[arg(long, value_name = "FILE")]
    pub env_file: Option<PathBuf>,
    /// What is logged: error, warn, info, debug, trace [default: info]
    ///
    /// Also STEADY_RELAY_LOG_LEVEL.
    #[arg(long, value_name = "LEVEL", value_parser = LEVELS, hide_possible_values = true)]
    pub log_level: Option<String>,
    /// How log lines look: text, json [default: text]
    ///
    /// Also STEADY_RELAY_LOG_FORMAT.
    #[arg(long, value_name = "FORMAT", value_parser = FORMATS, hide_possible_values = true)]
    pub log_format: Option<String>,
    /// A file to write the log to as well
    ///
    /// `max_size` and `max_files` below `[log]` in the configuration file bound it. Also STEADY_RELAY_LOG_FILE.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub log_file: Option<String>,
    /// The folder for what is kept over a restart
    ///
    /// What the relay learns about the capacity of services: one small private file, without any credential. Where none
    /// is named, steady-relay in the user's folder for state. Also STEADY_RELAY_STATE_DIR.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub state_dir: Option<String>,
    /// The port at which metrics are read, at /metrics; 0 picks a free one [default: none]
    ///
    /// OpenMetrics, for Prometheus and its like; 9090 is its usual port. Also STEADY_RELAY_METRICS_PORT.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_hint = ValueHint::Other)]
    pub metrics_port: Option<String>,
    /// Of an older tool: `--mode proxy` is accepted and does nothing.
    #[arg(long, value_name = "MODE", hide = true)]
    pub mode: Option<String>,
    /// The language, which is a flag of every verb.
    #[arg(skip)]
    pub lang: Option<String>,
    /// For tests: the relay's time goes by so many times faster; a whole number.
    #[arg(long, value_name = "N", hide = true)]
    pub clock_rate: Option<String>,
}

impl Flags {
    /// The flags of a verb, which need not have them all.
    pub(super) fn of(verb: &ArgMatches) -> Self {
        let text = |id| verb.try_get_one::<String>(id).ok().flatten().cloned();
        let path = |id| verb.try_get_one::<PathBuf>(id).ok().flatten().cloned();
        Self {
            listen: text("listen"),
            port: text("port"),
            upstream: text("upstream"),
            config: path("config"),
            profile: text("profile"),
            gate: text("gate"),
            tls: text("tls"),
            env_file: path("env_file"),
            log_level: text("log_level"),
            log_format: text("log_format"),
            log_file: text("log_file"),
            state_dir: text("state_dir"),
            metrics_port: text("metrics_port"),
            mode: text("mode"),
            lang: text("lang"),
            clock_rate: text("clock_rate"),
        }
    }
}

/// Which flags do something for which verb; elsewhere they are refused. `serve` has all.
pub(super) const FLAGS_OF: &[(&[&str], &[&str])] = &[
    (&["run"], OF_RUN),
    (&["session"], OF_RUN),
    (&["setup"], &["listen", "port", "config", "env_file", "state_dir"]),
    (&["undo"], &["state_dir"]),
    (&["send"], OF_SEND),
    (&["doctor"], OF_SETTINGS),
    (&["diagnose"], OF_SETTINGS),
    (&["replay"], OF_SETTINGS),
    (&["selftest"], &["upstream", "config", "profile", "env_file"]),
    (&["status"], OF_ASKING),
    (&["top"], OF_ASKING),
    (&["health"], OF_ASKING),
    #[cfg(feature = "history")]
    (&["why"], OF_HISTORY),
    #[cfg(feature = "history")]
    (&["stats"], OF_HISTORY),
    (&["alerts", "test"], FILES),
    (&["service", "install"], OF_SETTINGS),
    (&["cert", "show"], OF_STATE),
    (&["cert", "trust-help"], OF_STATE),
    (&["cert", "renew"], OF_STATE),
    (&["snapshots", "list"], OF_STATE),
    (&["snapshots", "show"], OF_STATE),
    (&["snapshots", "replay"], OF_STATE),
    (&["config", "show"], OF_SETTINGS),
    (&["config", "check"], OF_SETTINGS),
    (&["config", "path"], FILES),
    (&["config", "test-rule"], FILES),
];

/// The flags of the settings' files.
const FILES: &[&str] = &["config", "env_file"];
/// The flags that say where the state folder is.
const OF_STATE: &[&str] = &["config", "env_file", "state_dir"];
/// The flags that say where the history is, and which relay may know more.
#[cfg(feature = "history")]
const OF_HISTORY: &[&str] = &["listen", "port", "config", "env_file", "state_dir"];
/// The flags of a relay that belongs to one client: that client is pointed at loopback, whatever `--listen` says.
const OF_RUN: &[&str] = &[
    "port",
    "upstream",
    "config",
    "profile",
    "gate",
    "env_file",
    "log_level",
    "log_format",
    "log_file",
    "state_dir",
];
/// The flags of a relay that asks for one request of its own.
const OF_SEND: &[&str] =
    &["config", "profile", "gate", "env_file", "log_level", "log_format", "log_file", "state_dir"];
/// The flags that say where a relay listens that runs.
const OF_ASKING: &[&str] = &["listen", "port", "config", "env_file"];
/// The flags that have a say on a setting.
const OF_SETTINGS: &[&str] = &[
    "listen",
    "port",
    "metrics_port",
    "upstream",
    "config",
    "profile",
    "gate",
    "tls",
    "env_file",
    "log_level",
    "log_format",
    "log_file",
    "state_dir",
];
