//! `steady-relay service …`: the relay as a service of the user who is logged in, without root. Not the relay itself
//! (that is `serve`, which the service runs).
//!
//! ```text
//!  settings, flags --> Job --> systemd | launchd | tasks --> files, commands     (pure, the same on every system)
//!                                                              |
//!                                             act: writes, runs, asks            (I/O)
//! ```
//!
//! Every file that is written carries a [`Record`], by which `status` knows what is installed and by which a file of
//! the same name that somebody else wrote is told from ours.

pub mod act;
mod give;
mod launchd;
pub mod obstacle;
mod quote;
mod systemd;
mod tasks;

use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};

use crate::cli::Flags;
use crate::listen::BindError;
use crate::settings::{Environment, VARIABLES};
use crate::words::{self, service as say};
use obstacle::Obstacle;

/// What to do with the service.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Options {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What can be done with the service.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum Verb {
    /// Install the relay as a service of this user and start it; the flags given here are carried over.
    ///
    /// Done once more, it takes on a new version of the program, other flags or another port.
    Install {
        /// Print the files that would be written, and do nothing.
        #[arg(long)]
        dry_run: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Start the service that is installed.
    Start,
    /// Stop it until the next login; open calls may end first.
    Stop,
    /// Say whether the service runs, where, and what is wrong with it; exit code 6 where it does not answer.
    Status {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Stop the service and delete all that `install` wrote.
    Remove {
        /// Print the files that would be deleted, and do nothing.
        #[arg(long)]
        dry_run: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// What a service manager is to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// The program, by its whole path.
    pub program: PathBuf,
    /// What it is told, `serve` first.
    pub arguments: Vec<String>,
    /// Where it listens.
    pub addresses: Vec<SocketAddr>,
    /// The variables that say where its files are, where they are set.
    pub environment: Vec<(String, String)>,
    /// How long it takes to stop, at most.
    pub drain: Duration,
    /// Whether its settings name a file for its log.
    pub has_log: bool,
}

/// What is installed, as the files tell that `install` wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The program that is run.
    pub program: PathBuf,
    /// Where it listens.
    pub addresses: Vec<SocketAddr>,
}

/// What stands in front of a record.
const MARK: &str = "steady-relay:record ";

impl Record {
    /// The line that carries it: harmless within comments of units and of XML.
    fn line(&self) -> String {
        let json = serde_json::to_string(self).unwrap_or_default();
        format!("{MARK}{}", json.replace('-', "\\u002d"))
    }

    /// The record in the text of a file.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        let (_, rest) = text.split_once(MARK)?;
        let mut values = serde_json::Deserializer::from_str(rest).into_iter();
        values.next()?.ok()
    }
}

impl Job {
    fn record(&self) -> Record {
        Record { program: self.program.clone(), addresses: self.addresses.clone() }
    }

    /// All that goes into the files, in order.
    fn texts(&self) -> impl Iterator<Item = &str> {
        let variables = self.environment.iter().map(|(_, value)| value.as_str());
        self.program.to_str().into_iter().chain(self.arguments.iter().map(String::as_str)).chain(variables)
    }

    /// Whether a file of a service manager can hold this: no line ends, and nothing but Unicode.
    ///
    /// # Errors
    /// With what it cannot hold.
    pub fn fits(&self) -> Result<(), ServiceError> {
        let program = self.program.to_str();
        let odd = self.texts().find(|text| text.chars().any(char::is_control));
        match (program, odd) {
            (Some(_), None) => Ok(()),
            (None, _) => Err(ServiceError::Odd(self.program.display().to_string())),
            (_, Some(odd)) => Err(ServiceError::Odd(odd.escape_debug().to_string())),
        }
    }
}

/// A file to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Where.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
    /// Whether the service manager wants it in UTF-16.
    pub is_utf16: bool,
}

/// A command of the service manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The program and its arguments.
    pub line: Vec<String>,
    /// What its failure means.
    pub aim: Aim,
}

/// What the failure of a command means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aim {
    /// It is the failure of the whole.
    Succeed,
    /// It is in order: what is not there cannot be stopped.
    Try,
    /// It is what is waited for, no longer than this: something is gone then.
    Fail(Duration),
}

fn order(line: &[&str]) -> Order {
    Order { line: line.iter().map(|word| (*word).to_owned()).collect(), aim: Aim::Succeed }
}

fn try_order(line: &[&str]) -> Order {
    Order { aim: Aim::Try, ..order(line) }
}

/// The service managers that are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    /// Linux.
    Systemd,
    /// macOS.
    Launchd,
    /// Windows: the Task Scheduler.
    Tasks,
}

impl System {
    /// The one of this system.
    #[must_use]
    pub const fn here() -> Option<Self> {
        if cfg!(target_os = "linux") {
            Some(Self::Systemd)
        } else if cfg!(target_os = "macos") {
            Some(Self::Launchd)
        } else if cfg!(windows) {
            Some(Self::Tasks)
        } else {
            None
        }
    }
}

/// Whose service it is, and where its files go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct User {
    /// `$HOME`.
    pub home: Option<PathBuf>,
    /// `$XDG_CONFIG_HOME`.
    pub config: Option<PathBuf>,
    /// `%LOCALAPPDATA%`.
    pub local_app_data: Option<PathBuf>,
    /// The number of the user, where the system has numbers.
    pub uid: u32,
    /// The name of the user as Windows has it: `DOMAIN\NAME`.
    pub account: Option<String>,
}

/// Why something cannot be done.
#[derive(Debug)]
pub enum ServiceError {
    /// There is no service manager that could do it.
    NoManager(Obstacle),
    /// The environment does not tell where the files would be.
    NoHome(&'static str),
    /// The port is in use.
    Taken(BindError),
    /// A service listens on one port that is known beforehand.
    AnyPort,
    /// A file of this name is there, and not ours.
    NotOurs(PathBuf),
    /// The program that runs is not there any more.
    NoProgram(PathBuf),
    /// Something that no file of a service manager can hold.
    Odd(String),
    /// A file cannot be written, read or deleted.
    File(PathBuf, io::Error),
    /// The service manager says no.
    Refused(String, String),
    /// The service manager says nothing for so many seconds.
    Hangs(String, u64),
    /// The service could not be started, and these files are left.
    Left(Box<Self>, Vec<PathBuf>),
    /// systemd starts no program with such a path.
    OddProgram(PathBuf),
    /// Nothing is installed.
    NotInstalled,
}

impl ServiceError {
    /// The exit code of the program.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::AnyPort | Self::Odd(_) | Self::OddProgram(_) => 2,
            Self::NoManager(_)
            | Self::NoHome(_)
            | Self::Taken(_)
            | Self::NotOurs(_)
            | Self::NoProgram(_)
            | Self::File(..)
            | Self::Refused(..)
            | Self::Hangs(..)
            | Self::Left(..)
            | Self::NotInstalled => 1,
        }
    }
}

impl std::fmt::Display for ServiceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lang = words::lang();
        let path = |path: &Path| path.display().to_string();
        let words = match self {
            Self::NoManager(obstacle) => obstacle.words(lang),
            Self::NoHome(variable) => say::no_home(lang, variable),
            Self::Taken(error) => error.to_string(),
            Self::AnyPort => say::any_port(lang),
            Self::NotOurs(file) => say::not_ours(lang, &path(file)),
            Self::NoProgram(file) => say::no_program(lang, &path(file)),
            Self::Odd(text) => say::odd(lang, text),
            Self::File(file, error) => say::file_failed(lang, &path(file), &error.to_string()),
            Self::Refused(line, said) => say::refused(lang, line, said),
            Self::Hangs(line, seconds) => say::hangs(lang, line, *seconds),
            Self::Left(error, files) => {
                let files: Vec<_> = files.iter().map(|file| path(file)).collect();
                say::left(lang, &error.to_string(), &files.join(", "))
            }
            Self::OddProgram(program) => say::odd_program(lang, &path(program)),
            Self::NotInstalled => say::not_installed(lang),
        };
        f.write_str(&words)
    }
}

/// The command line that the service gets: the flags that were given, each path from the root on.
///
/// # Errors
/// Where a path is not Unicode.
pub fn arguments(flags: &Flags, folder: &Path) -> Result<Vec<String>, ServiceError> {
    let mut line = vec!["serve".to_owned()];
    let path = |path: &Path| {
        let whole = folder.join(path);
        whole.to_str().map(str::to_owned).ok_or_else(|| ServiceError::Odd(whole.display().to_string()))
    };
    // Each by its name: one that is new has to be carried over here, too.
    let Flags {
        listen,
        port,
        upstream,
        config,
        profile,
        gate,
        tls,
        env_file,
        log_level,
        log_format,
        log_file,
        state_dir,
        metrics_port,
        // It does nothing.
        mode: _,
        lang,
        clock_rate,
    } = flags;
    let texts = [
        ("--listen", listen),
        ("--port", port),
        ("--upstream", upstream),
        ("--profile", profile),
        ("--gate", gate),
        ("--tls", tls),
        ("--log-level", log_level),
        ("--log-format", log_format),
        ("--metrics-port", metrics_port),
        ("--lang", lang),
        ("--clock-rate", clock_rate),
    ];
    for (flag, value) in texts {
        line.extend(value.iter().map(|value| format!("{flag}={value}")));
    }
    let as_path = |text: &Option<String>| text.as_ref().map(PathBuf::from);
    let paths = [
        ("--config", config.clone()),
        ("--env-file", env_file.clone()),
        ("--log-file", as_path(log_file)),
        ("--state-dir", as_path(state_dir)),
    ];
    for (flag, value) in paths {
        if let Some(value) = value {
            line.push(format!("{flag}={}", path(&value)?));
        }
    }
    Ok(line)
}

/// The variables that say where files are: a service has them, too.
pub const CARRIED: [&str; 2] = ["XDG_CONFIG_HOME", "XDG_STATE_HOME"];

/// The environment as the service will have it: where files are, and nothing of what was set for one terminal.
pub struct AsService<'a>(pub &'a dyn Environment);

impl Environment for AsService<'_> {
    fn value(&self, name: &str) -> Option<OsString> {
        let places = ["HOME", "APPDATA", "LOCALAPPDATA", "USERPROFILE"];
        (places.contains(&name) || CARRIED.contains(&name)).then(|| self.0.value(name)).flatten()
    }

    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The variables of this terminal that mean something to a relay and are not carried over: those that an env file can
/// hold, and those about proxies, which only an environment can.
#[must_use]
pub fn left_behind(environment: &dyn Environment) -> (Vec<String>, Vec<String>) {
    let is_set = |name: &&str| environment.value(name).is_some_and(|value| !value.is_empty());
    let ours = VARIABLES.iter().map(|variable| variable.name).filter(|name| {
        // The names that many programs share mean something to a relay that starts from here, too.
        name.starts_with("STEADY_RELAY_")
            || ["SSL_CERT_FILE", "PORT", "UPSTREAM_URL", "CODEX_ENDPOINT"].contains(name)
            || cfg!(feature = "otlp") && name.starts_with("OTEL_")
    });
    let proxies = ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy", "all_proxy"];
    let set = |names: &mut dyn Iterator<Item = &'static str>| {
        names.filter(is_set).map(str::to_owned).collect::<Vec<_>>()
    };
    (set(&mut ours.into_iter()), set(&mut proxies.into_iter()))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn job() -> Job {
        Job {
            program: "/home/me/a b/steady-relay".into(),
            arguments: vec!["serve".into(), "--upstream=https://h/a%20b?$x=\"1\"".into()],
            addresses: vec!["127.0.0.1:8787".parse().unwrap(), "[::1]:8787".parse().unwrap()],
            environment: vec![("XDG_CONFIG_HOME".into(), "/home/me/my config".into())],
            drain: Duration::from_secs(300),
            has_log: false,
        }
    }

    pub(crate) fn user() -> User {
        User {
            home: Some("/home/me".into()),
            config: None,
            local_app_data: Some("/local".into()),
            uid: 501,
            account: Some("PC\\me & co".into()),
        }
    }

    #[test]
    fn a_record_is_found_in_what_was_written() {
        let record = Record { program: "/a--b/c".into(), ..job().record() };
        let text = format!("# {}\n[Unit]\n", record.line());
        assert!(!text.contains("--"), "XML comments bear none: {text}");
        assert_eq!(Record::of(&text), Some(record));
        for text in ["", "[Unit]\n", "steady-relay:record ", "steady-relay:record {\"program\":1}"] {
            assert_eq!(Record::of(text), None, "{text}");
        }
    }

    #[test]
    fn flags_are_carried_over_with_whole_paths() {
        let root = if cfg!(windows) { "C:\\work" } else { "/work" };
        let flags = Flags {
            port: Some("9000".into()),
            upstream: Some("http://a".into()),
            config: Some("my.toml".into()),
            state_dir: Some(format!("{root}{}s", std::path::MAIN_SEPARATOR)),
            ..Flags::default()
        };
        let whole = |name: &str| Path::new(root).join(name).display().to_string();
        assert_eq!(
            arguments(&flags, Path::new(root)).unwrap(),
            [
                "serve".to_owned(),
                "--port=9000".to_owned(),
                "--upstream=http://a".to_owned(),
                format!("--config={}", whole("my.toml")),
                format!("--state-dir={}", whole("s")),
            ]
        );
    }

    #[test]
    fn every_flag_is_carried_over() {
        let line = [
            "--listen=::1",
            "--port=9000",
            "--upstream=http://a",
            "--profile=strict",
            "--gate=off",
            "--tls=on",
            "--log-level=debug",
            "--log-format=json",
            "--metrics-port=9090",
            "--lang=zh",
            "--clock-rate=10",
            "--config=/f.toml",
            "--env-file=/e",
            "--log-file=/l",
            "--state-dir=/s",
        ];
        let text = |name: &str| line.iter().find_map(|word| word.strip_prefix(name).map(str::to_owned));
        let flags = Flags {
            listen: text("--listen="),
            port: text("--port="),
            upstream: text("--upstream="),
            profile: text("--profile="),
            gate: text("--gate="),
            tls: text("--tls="),
            log_level: text("--log-level="),
            log_format: text("--log-format="),
            metrics_port: text("--metrics-port="),
            lang: text("--lang="),
            clock_rate: text("--clock-rate="),
            config: text("--config=").map(PathBuf::from),
            env_file: text("--env-file=").map(PathBuf::from),
            log_file: text("--log-file="),
            state_dir: text("--state-dir="),
            mode: None,
        };
        assert_eq!(arguments(&flags, Path::new("/")).unwrap()[1..], line);
    }

    #[test]
    fn what_no_file_can_hold_is_refused() {
        assert!(job().fits().is_ok());
        let odd = Job { arguments: vec!["--config=a\nb".into()], ..job() };
        assert!(matches!(odd.fits(), Err(ServiceError::Odd(text)) if text == "--config=a\\nb"));
    }

    #[test]
    fn variables_that_are_left_behind_are_named_and_the_service_does_not_see_them() {
        let set: &[(&str, &str)] = &[
            ("HOME", "/home/me"),
            ("XDG_STATE_HOME", "/s"),
            ("STEADY_RELAY_PORT", "9"),
            ("STEADY_RELAY_TOKEN", "hunter2"),
            ("PORT", ""),
            ("https_proxy", "http://p"),
            ("LOG_LEVEL", "debug"),
        ];
        let (ours, proxies) = left_behind(&set);
        assert_eq!(ours, ["STEADY_RELAY_PORT", "STEADY_RELAY_TOKEN"]);
        assert_eq!(proxies, ["https_proxy"]);
        let seen = AsService(&set);
        let sees = |name| seen.value(name).is_some();
        assert_eq!([sees("HOME"), sees("XDG_STATE_HOME"), sees("STEADY_RELAY_PORT")], [true, true, false]);
    }
}
