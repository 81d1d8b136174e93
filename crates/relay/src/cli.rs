//! The command line, as types. Not what the verbs do, and not what a flag's value means (that is `settings`,
//! which sees flags, environment and file together and reports all that is wrong at once).

mod asked;
mod leave;
pub mod manual;
mod translated;

pub use self::asked::Asked;
pub use self::leave::leave;

use clap::{ArgMatches, Args, Command, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use clap_complete::Shell;
use std::ffi::OsString;
use std::path::PathBuf;

use relay_core::Lang;

use crate::demo;
use crate::doctor;
use crate::https;
use crate::recorded::TestRule;
use crate::selftest;
use crate::send;
use crate::service;
use crate::setup;
use crate::words;

/// No help is wider, however wide the terminal is.
const WIDEST: usize = 80;

/// A local relay that lets AI coding agents survive services that run out of capacity.
#[derive(Debug, Clone, PartialEq, Eq, Parser)]
#[command(
    name = "steady-relay",
    version,
    after_help = TOP_EXAMPLES,
    after_long_help = TOP_EXAMPLES,
)]
pub struct Cli {
    /// What to do; `serve` where nothing is named.
    #[command(subcommand)]
    verb: Option<Verb>,
    /// How the program speaks, whatever it does.
    #[command(flatten)]
    everywhere: Everywhere,
    /// What the relay is told.
    #[command(flatten)]
    pub flags: Flags,
}

/// The flags of every verb. They are looked at before anything else is read, by [`Asked`].
#[derive(Debug, Clone, PartialEq, Eq, Args)]
struct Everywhere {
    /// The language of messages [default: by STEADY_RELAY_LANG, or else by the locale]
    #[arg(long, value_name = "LANG", value_parser = ["en", "zh"], global = true)]
    lang: Option<String>,
    /// When to use colour [default: auto, that is, on a terminal]
    ///
    /// NO_COLOR, CLICOLOR_FORCE and TERM=dumb are heard where this is `auto`.
    #[arg(long, value_name = "WHEN", value_parser = ["auto", "always", "never"], global = true)]
    color: Option<String>,
}

/// The flags of the settings' files.
const FILES: &[&str] = &["config", "env_file"];
/// The flags that say where the state folder is.
const OF_STATE: &[&str] = &["config", "env_file", "state_dir"];
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

/// Which flags do something for which verb; elsewhere they are refused. `serve` has all.
const FLAGS_OF: [(&[&str], &[&str]); 16] = [
    (&["run"], OF_RUN),
    (&["setup"], &["listen", "port", "config", "env_file", "state_dir"]),
    (&["undo"], &["state_dir"]),
    (&["send"], OF_SEND),
    (&["doctor"], OF_SETTINGS),
    (&["selftest"], &["upstream", "config", "profile", "env_file"]),
    (&["status"], OF_ASKING),
    (&["health"], OF_ASKING),
    (&["service", "install"], OF_SETTINGS),
    (&["cert", "show"], OF_STATE),
    (&["cert", "trust-help"], OF_STATE),
    (&["cert", "renew"], OF_STATE),
    (&["config", "show"], OF_SETTINGS),
    (&["config", "check"], OF_SETTINGS),
    (&["config", "path"], FILES),
    (&["config", "test-rule"], FILES),
];

const TOP_EXAMPLES: &str = "Examples:
  steady-relay                 listen on 127.0.0.1:8787, for all your clients
  steady-relay run -- codex    start Codex with a relay in front of it";

const SERVE_EXAMPLES: &str = "Examples:
  steady-relay serve --port 9000
  steady-relay serve --upstream https://api.example.com/v1 --profile patient";

const RUN_EXAMPLES: &str = "Clients that it knows: codex, claude, gemini, opencode, aider.
Every other program gets the variables that SDKs read: OPENAI_BASE_URL,
ANTHROPIC_BASE_URL, GOOGLE_GEMINI_BASE_URL and their like.

Examples:
  steady-relay run -- codex exec \"fix the failing test\"
  steady-relay run --profile patient -- python job.py";

const CONFIG_EXAMPLES: &str = "Examples:
  steady-relay config show --origin
  steady-relay config check my.toml";

const COMPLETIONS_EXAMPLES: &str = "Examples:
  source <(steady-relay completions bash)
  steady-relay completions fish > ~/.config/fish/completions/steady-relay.fish";

const MAN_EXAMPLES: &str = "Examples:
  steady-relay man | man -l -
  steady-relay man --dir ~/.local/share/man/man1";

const SERVICE_EXAMPLES: &str = "Examples:
  steady-relay service install --dry-run
  steady-relay service status";

const CERT_EXAMPLES: &str = "Examples:
  steady-relay cert trust-help
  steady-relay cert show --json";

const SETUP_EXAMPLES: &str = "Examples:
  steady-relay setup --dry-run
  steady-relay setup codex claude
  steady-relay setup env-file .env --yes";

const UNDO_EXAMPLES: &str = "Examples:
  steady-relay undo
  steady-relay undo codex --dry-run";

const DEMO_EXAMPLES: &str = "Examples:
  steady-relay demo
  steady-relay demo --quick --seed 7";

const SEND_EXAMPLES: &str =
    "Exit codes: 0 served; 1 broken off or blocked on the way; 2 wrong usage or settings; 3 gave
up; 4 not sent again, since it may have run; 5 the service said no; 130 interrupted.

Examples:
  steady-relay send https://llm.example.com/v1/models -H \"authorization: Bearer $KEY\"
  steady-relay post http://127.0.0.1:11434/v1/chat/completions -d @request.json";

const DOCTOR_EXAMPLES: &str = "Exit codes: 0 nothing fails; 1 something does.

Examples:
  steady-relay doctor
  steady-relay doctor --upstream gateway --json";

const SELFTEST_EXAMPLES: &str =
    "Exit codes: 0 a request goes through, or a service was reached that wants a key; else as
those of `send`.

Examples:
  steady-relay selftest
  steady-relay selftest --upstream openai";

const STATUS_EXAMPLES: &str =
    "Exit codes: 0 it runs; 2 wrong settings, or the token is missing; 6 no relay runs there.

Examples:
  steady-relay status
  steady-relay status --json --port 9000";

const HEALTH_EXAMPLES: &str =
    "Exit codes: 0 it runs; 2 wrong settings, or the token is missing; 6 no relay runs there.

Examples:
  steady-relay health
  steady-relay health --port 9000 || echo none";

/// Verbs of the tools that are like `send`, and the methods that they stand for.
const SHORT_FOR_SEND: [(&str, &str); 2] = [("post", "POST"), ("get", "GET")];

/// The command line as it is understood, each verb with the flags that do something there; its help in this language.
#[must_use]
pub fn command(lang: Lang) -> Command {
    let english = in_english().max_term_width(WIDEST);
    match lang {
        Lang::English => english,
        Lang::Chinese => translated::in_chinese(english),
    }
}

fn in_english() -> Command {
    let flags: Vec<_> = Flags::augment_args(Command::new("flags")).get_arguments().cloned().collect();
    let mut top = Cli::command().mut_subcommand("serve", |serve| serve.args(&flags));
    for (verb, ids) in FLAGS_OF {
        let its = flags.iter().filter(|flag| ids.contains(&flag.get_id().as_str()));
        top = at(top, verb, &|verb| verb.args(its.clone()));
    }
    top = top.mut_subcommand("run", in_words_of_run);
    let no_two_files = |check: Command| check.mut_arg("file", |file| file.conflicts_with("config"));
    top = at(top, &["config", "check"], &no_two_files);
    let heading = "Relay (flags of `serve`, which need not be named)";
    flags.iter().fold(top, |top, flag| top.mut_arg(flag.get_id(), |flag| flag.help_heading(heading)))
}

/// Changes the verb at this path.
fn at(above: Command, path: &[&str], change: &dyn Fn(Command) -> Command) -> Command {
    match path {
        [] => change(above),
        [name, below @ ..] => above.mut_subcommand(name, |verb| at(verb, below, change)),
    }
}

/// What some flags mean to a relay that belongs to one client.
fn in_words_of_run(run: Command) -> Command {
    let file = "The file to write the log to; the terminal is the client's, so there is no other log";
    let more = "`max_size` and `max_files` below `[log]` in the configuration file bound it. Also \
                STEADY_RELAY_LOG_FILE.";
    run.mut_arg("port", |flag| {
        flag.help("The port that its relay listens on [default: a free one]").long_help(None)
    })
    .mut_arg("log_file", |flag| flag.help(file).long_help(format!("{file}\n\n{more}")))
}

/// Flags may stand before the verb, too. They are moved behind it: there it is known which ones it has.
fn verb_first(top: &Command, mut line: Vec<OsString>) -> Vec<OsString> {
    let is_flag = |name: &str| {
        top.get_arguments().any(|flag| flag.get_long() == Some(name) && flag.get_action().takes_values())
    };
    let mut at = 1;
    while let Some(name) = line.get(at).and_then(|word| word.to_str()?.strip_prefix("--")) {
        match name.split_once('=') {
            Some((name, _)) if is_flag(name) => at += 1,
            // Its value, if it has one, stands behind `=`.
            None if name == "tls" => at += 1,
            None if is_flag(name) => at += 2,
            Some(_) | None => return line,
        }
    }
    let mut verbs = 0;
    let mut above = top;
    while let Some(verb) = line.get(at + verbs).and_then(|word| above.find_subcommand(word)) {
        (above, verbs) = (verb, verbs + 1);
    }
    if let Some(words) = line.get_mut(1..at + verbs) {
        words.rotate_right(verbs);
    }
    line
}

/// What is short for `send` with a method, at length.
fn at_length(mut line: Vec<OsString>) -> Vec<OsString> {
    let verb = line.get(1).and_then(|word| word.to_str());
    if let Some((_, method)) = SHORT_FOR_SEND.iter().find(|(short, _)| verb == Some(*short)) {
        line.splice(1..2, ["send", "--request", method].map(OsString::from));
    }
    line
}

impl Cli {
    /// Reads the command line, which begins with the program's name.
    ///
    /// # Errors
    /// Where it is not understood, and where it asks for help or the version.
    pub fn read(line: impl IntoIterator<Item = impl Into<OsString>>) -> Result<Self, clap::Error> {
        let mut command = command(words::lang());
        let line = at_length(verb_first(&command, line.into_iter().map(Into::into).collect()));
        let mut matches = command.try_get_matches_from_mut(line)?;
        let mut verb = &matches;
        while let Some((_, below)) = verb.subcommand() {
            verb = below;
        }
        let flags = Flags::of(verb);
        let cli = Self::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))?;
        Ok(Self { flags, ..cli })
    }

    /// What to do.
    #[must_use]
    pub fn verb(&self) -> &Verb {
        self.verb.as_ref().unwrap_or(&Verb::Serve)
    }
}

/// What the program can do.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum Verb {
    /// Listen and relay until told to stop (the default).
    #[command(after_help = SERVE_EXAMPLES, after_long_help = SERVE_EXAMPLES)]
    Serve,
    /// Start a client so that its requests come through a relay: the one that runs, or one of its own.
    ///
    /// A relay of yours that listens on the configured port is joined, so that all clients wait together. Where there
    /// is none, and wherever a flag of the relay is given, the client has one of its own, which ends with it. Nothing
    /// is written to disk: the client is told by its environment and its own flags. Its terminal, signals and exit code
    /// pass through.
    #[command(after_help = RUN_EXAMPLES, after_long_help = RUN_EXAMPLES)]
    Run(Run),
    /// Point clients at the relay for good, by their own settings files; `undo` takes it back.
    ///
    /// Shows the changes, asks, and writes key by key; all else in a file stays as it is. What a client asked so far
    /// becomes an upstream of the relay. Exit code 1: a client was left alone, or nothing was written.
    #[command(after_help = SETUP_EXAMPLES, after_long_help = SETUP_EXAMPLES)]
    Setup(setup::Options),
    /// Take back what `setup` wrote, key by key; what was changed since stays.
    ///
    /// Needs no relay that runs and no settings that can be read. Exit code 1: something was left as it is.
    #[command(after_help = UNDO_EXAMPLES, after_long_help = UNDO_EXAMPLES)]
    Undo(setup::UndoOptions),
    /// Watch the relay work against a pretend service that runs out of capacity. Needs no account.
    ///
    /// Three scenes, each without the relay and with it, in about 35 seconds. Settings are not read, and nothing
    /// leaves this machine. Exit code 0: the relay did no worse than the client alone.
    #[command(after_help = DEMO_EXAMPLES, after_long_help = DEMO_EXAMPLES)]
    Demo(demo::Options),
    /// Send one request, like curl, with everything that the relay does for a call.
    ///
    /// The answer goes to standard output as it comes, and what happens meanwhile to standard error. `post URL` and
    /// `get URL` are short for it, and `codex-retry` is understood as the name of this program.
    #[command(visible_aliases = ["post", "get"], after_help = SEND_EXAMPLES, after_long_help = SEND_EXAMPLES)]
    Send(send::Options),
    /// Look for what is wrong between clients and services, and say what to do about it.
    ///
    /// The settings, the port, the services and the way there, the clients and this machine, in some seconds. Nothing is
    /// changed, and no credential is sent or printed. `--upstream` asks that service alone.
    #[command(after_help = DOCTOR_EXAMPLES, after_long_help = DOCTOR_EXAMPLES)]
    Doctor(doctor::Options),
    /// Send one small request through a relay, and say how long each part took.
    ///
    /// A relay in this process, with the present settings. It asks a pretend service in this process; with `--upstream`
    /// the service of that name or URL, for its list of models, with a key from the environment or the settings if there
    /// is one.
    #[command(after_help = SELFTEST_EXAMPLES, after_long_help = SELFTEST_EXAMPLES)]
    Selftest(selftest::Options),
    /// Print what a relay that runs is doing, and what it has saved.
    #[command(after_help = STATUS_EXAMPLES, after_long_help = STATUS_EXAMPLES)]
    Status {
        /// Print JSON, as `/__steady/status` has it.
        #[arg(long)]
        json: bool,
    },
    /// Say whether a relay runs.
    #[command(after_help = HEALTH_EXAMPLES, after_long_help = HEALTH_EXAMPLES)]
    Health {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Look at the settings: what is in force, what is wrong, what there is.
    #[command(after_help = CONFIG_EXAMPLES, after_long_help = CONFIG_EXAMPLES)]
    Config(ConfigArgs),
    /// Print a script for a shell that completes verbs and flags.
    #[command(after_help = COMPLETIONS_EXAMPLES, after_long_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell.
        #[arg(value_name = "SHELL")]
        shell: Shell,
    },
    /// Print the manual page, or write those of all verbs into a folder.
    #[command(after_help = MAN_EXAMPLES, after_long_help = MAN_EXAMPLES)]
    Man {
        /// The folder to write the pages to; it is made where it is missing.
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// The certificate of https: what it is, how clients come to trust it, and a new one.
    #[command(after_help = CERT_EXAMPLES, after_long_help = CERT_EXAMPLES)]
    Cert(https::Options),
    /// Keep the relay running as a service of yours, from login on, without root.
    ///
    /// On Linux a unit of the user's systemd, which holds the port while the relay restarts; on macOS a launch agent;
    /// on Windows a task that starts at logon.
    #[command(after_help = SERVICE_EXAMPLES, after_long_help = SERVICE_EXAMPLES)]
    Service(service::Options),
}

/// What to do with the settings.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct ConfigArgs {
    /// What to do.
    #[command(subcommand)]
    pub verb: ConfigVerb,
}

/// What can be done with the settings.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum ConfigVerb {
    /// Print every key as it is in force, secrets masked.
    Show {
        /// Tell for each key who set it: a flag, a variable, a line of a file, or the default.
        #[arg(long)]
        origin: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Say all that is wrong with the settings, or `ok`; exit code 2 where something is.
    Check {
        /// The configuration file, in place of the one that would be read.
        file: Option<PathBuf>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print a JSON Schema of the configuration file, for editors.
    Schema,
    /// Print where the configuration file is looked for.
    Path {
        /// Print JSON, with the env files too.
        #[arg(long)]
        json: bool,
    },
    /// Say what a recorded answer would be taken for, by which rule, and what would be done about it.
    TestRule(TestRule),
}

/// The client to run.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Run {
    /// Start a relay of the client's own, also where one could be joined
    #[arg(long)]
    pub own: bool,
    /// The client and its arguments, such as `codex` or `claude`.
    #[arg(value_name = "CLIENT", required = true, trailing_var_arg = true)]
    pub command: Vec<OsString>,
}

/// What the relay is told on the command line. Values are texts: `settings` reads them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
#[command(next_help_heading = "Relay")]
pub struct Flags {
    /// The IP address to listen on [default: localhost, which is 127.0.0.1 and ::1]
    ///
    /// Any address beyond loopback needs a token: set STEADY_RELAY_TOKEN, or `token` in the configuration file.
    /// Also STEADY_RELAY_LISTEN.
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<String>,
    /// The port to listen on; 0 picks a free one [default: 8787]
    ///
    /// Also STEADY_RELAY_PORT, or PORT, its older name.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub port: Option<String>,
    /// The one service everything goes to [default: by the request's credential]
    ///
    /// A URL, or the name of an `[upstream.NAME]` of the configuration file.
    /// Also STEADY_RELAY_UPSTREAM, or UPSTREAM_URL, its older name.
    #[arg(long, value_name = "URL")]
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
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    /// Whether calls wait together while the service takes none: on, off [default: on]
    ///
    /// Those that do go to the same service and model with the same credential. A `gate = true` of a profile or a route
    /// in the configuration file holds all the same. Also STEADY_RELAY_GATE.
    #[arg(long, value_name = "on|off")]
    pub gate: Option<String>,
    /// Speak https too, on the same port: on, off [default: off]
    ///
    /// For clients that insist on it: `steady-relay cert trust-help` says how each of them comes to trust the
    /// certificate, which is made at the first start. Also STEADY_RELAY_TLS.
    #[arg(long, value_name = "on|off", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
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
    #[arg(long, value_name = "LEVEL")]
    pub log_level: Option<String>,
    /// How log lines look: text, json [default: text]
    ///
    /// Also STEADY_RELAY_LOG_FORMAT.
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<String>,
    /// A file to write the log to as well
    ///
    /// `max_size` and `max_files` below `[log]` in the configuration file bound it. Also STEADY_RELAY_LOG_FILE.
    #[arg(long, value_name = "FILE")]
    pub log_file: Option<String>,
    /// The folder for what is kept over a restart
    ///
    /// What the relay learns about the capacity of services: one small private file, without any credential. Where none
    /// is named, steady-relay in the user's folder for state. Also STEADY_RELAY_STATE_DIR.
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<String>,
    /// The port at which metrics are read, at /metrics; 0 picks a free one [default: none]
    ///
    /// OpenMetrics, for Prometheus and its like; 9090 is its usual port. Also STEADY_RELAY_METRICS_PORT.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
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
    fn of(verb: &ArgMatches) -> Self {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Cli {
        Cli::read(line.split(' ')).unwrap()
    }

    fn port(text: &str) -> Flags {
        Flags { port: Some(text.to_owned()), ..Flags::default() }
    }

    #[test]
    fn the_definition_holds_together() {
        for lang in Lang::ALL {
            command(lang).debug_assert();
        }
    }

    #[test]
    fn serve_is_what_is_done_by_default() {
        assert_eq!(
            (parse("steady-relay").verb(), parse("steady-relay").flags),
            (&Verb::Serve, Flags::default())
        );
        for line in ["steady-relay --tls serve", "steady-relay serve --tls=on", "steady-relay --tls"] {
            let cli = parse(line);
            assert_eq!((cli.verb(), cli.flags.tls.as_deref()), (&Verb::Serve, Some("on")), "{line}");
        }
        for line in ["steady-relay --port 1", "steady-relay serve --port 1", "steady-relay --port=1 serve"] {
            let cli = parse(line);
            assert_eq!((cli.verb(), &cli.flags), (&Verb::Serve, &port("1")), "{line}");
        }
    }

    #[test]
    fn every_flag_is_read() {
        let cli = parse(
            "steady-relay --listen ::1 --port 0 --upstream http://a --config f.toml --profile strict --gate off --tls --env-file e --log-level debug --log-format json --log-file l --state-dir s --metrics-port 9090 --mode proxy --lang zh --clock-rate 10",
        );
        let flags = Flags {
            listen: Some("::1".into()),
            port: Some("0".into()),
            upstream: Some("http://a".into()),
            config: Some("f.toml".into()),
            profile: Some("strict".into()),
            gate: Some("off".into()),
            tls: Some("on".into()),
            env_file: Some("e".into()),
            log_level: Some("debug".into()),
            log_format: Some("json".into()),
            log_file: Some("l".into()),
            state_dir: Some("s".into()),
            metrics_port: Some("9090".into()),
            mode: Some("proxy".into()),
            lang: Some("zh".into()),
            clock_rate: Some("10".into()),
        };
        assert_eq!(cli.flags, flags);
    }

    #[test]
    fn all_that_follows_the_client_is_the_clients() {
        for line in [
            "steady-relay run --port 1 -- codex exec --port 2 -- x",
            "steady-relay --port 1 run codex exec --port 2 -- x",
        ] {
            let cli = parse(line);
            let command = ["codex", "exec", "--port", "2", "--", "x"].map(OsString::from).to_vec();
            assert_eq!(
                (cli.verb(), &cli.flags),
                (&Verb::Run(Run { own: false, command }), &port("1")),
                "{line}"
            );
        }
    }

    #[test]
    fn the_verbs_of_config_are_read() {
        let verb = |line: &str| {
            let cli = parse(line);
            let Verb::Config(args) = cli.verb() else { panic!("{line}") };
            args.verb.clone()
        };
        let show = ConfigVerb::Show { origin: true, json: true };
        assert_eq!(verb("steady-relay config show --origin --json"), show);
        let check = ConfigVerb::Check { file: Some("a.toml".into()), json: false };
        assert_eq!(verb("steady-relay config check a.toml"), check);
        assert_eq!(verb("steady-relay config schema"), ConfigVerb::Schema);
        assert_eq!(verb("steady-relay config path"), ConfigVerb::Path { json: false });
        let cli = parse("steady-relay config show --port 1");
        assert_eq!(cli.flags, port("1"));
    }

    #[test]
    fn help_is_a_verb_too() {
        let long = |line: &str| Cli::read(format!("steady-relay {line}").split(' ')).unwrap_err();
        for (line, verb) in [
            ("help", ""),
            ("help serve", "serve"),
            ("help run", "run"),
            ("help demo", "demo"),
            ("config help", "config"),
            ("help config", "config"),
            ("help config check", "config check"),
            ("config help check", "config check"),
        ] {
            let (asked, shown) = (long(line), long(format!("{verb} --help").trim_start()));
            assert_eq!((asked.exit_code(), asked.to_string()), (0, shown.to_string()), "{line}");
        }
        let client = parse("steady-relay run help");
        assert_eq!(
            client.verb(),
            &Verb::Run(Run { own: false, command: vec!["help".into()] }),
            "that is the client's"
        );
    }

    #[test]
    fn wrong_usage_exits_with_2() {
        for line in [
            "steady-relay 8787",
            "steady-relay --prot 1",
            "steady-relay run",
            "steady-relay run --prot 1 -- codex",
            "steady-relay config",
            "steady-relay config shwo",
            "steady-relay config check a.toml --config b.toml",
            "steady-relay --port",
            "steady-relay --port 1 --port 2",
        ] {
            let error = Cli::read(line.split(' ')).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{line}");
        }
    }

    /// Every verb, with words that it needs to be complete.
    const VERBS: [(&str, &str); 17] = [
        ("serve", ""),
        ("run", " codex"),
        ("demo", ""),
        ("config show", ""),
        ("config check", ""),
        ("config schema", ""),
        ("config path", ""),
        ("config test-rule", " answer.http"),
        ("completions", " bash"),
        ("man", ""),
        ("service install", ""),
        ("service start", ""),
        ("service status", ""),
        ("service remove", ""),
        ("cert show", ""),
        ("cert trust-help", ""),
        ("cert renew", ""),
    ];

    #[test]
    fn a_verb_shows_the_flags_that_it_uses_and_refuses_all_others() {
        let all: Vec<_> = Flags::augment_args(Command::new("x")).get_arguments().cloned().collect();
        assert_eq!(all.len(), 14);
        for (verb, words) in VERBS {
            let used =
                FLAGS_OF.iter().find(|(path, _)| path.join(" ") == verb).map_or(&[][..], |(_, ids)| ids);
            let shown =
                |flag| Cli::read(format!("steady-relay {verb} {flag}").split(' ')).unwrap_err().to_string();
            let (short, long) = (shown("-h"), shown("--help"));
            for flag in &all {
                let (id, name) = (flag.get_id().as_str(), flag.get_long().unwrap());
                let is_used = verb == "serve" || used.contains(&id);
                // A value that may be left out stands behind `=`.
                let by_equals = flag.is_require_equals_set();
                let is_shown = format!("  --{name}{}<", if by_equals { "[=" } else { " " });
                for help in [&short, &long] {
                    let hidden = flag.is_hide_set() || !is_used;
                    assert_eq!(help.contains(&is_shown), !hidden, "{verb} --{name}: {help}");
                }
                let apart = [
                    format!("steady-relay {verb} --{name} x{words}"),
                    format!("steady-relay --{name} x {verb}{words}"),
                ];
                let together = [format!("steady-relay --{name}=x {verb}{words}")];
                for line in apart.iter().filter(|_| !by_equals).chain(&together) {
                    match Cli::read(line.split(' ')) {
                        Ok(cli) => assert!(is_used && cli.flags != Flags::default(), "{line}"),
                        Err(error) => {
                            let words = format!("error: unexpected argument '--{name}' found");
                            assert!(!is_used && error.to_string().starts_with(&words), "{line}: {error}");
                            let usage = format!("Usage: steady-relay {verb}");
                            assert!(error.to_string().contains(&usage), "{line}: {error}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_port_below_zero_is_a_value_that_the_settings_can_refuse() {
        assert_eq!(parse("steady-relay --port -1").flags, port("-1"));
        assert_eq!(parse("steady-relay --port -1 serve").flags, port("-1"));
    }

    #[test]
    fn run_names_its_clients_and_how_others_are_pointed() {
        for flag in ["-h", "--help"] {
            let help = Cli::read(["steady-relay", "run", flag]).unwrap_err().to_string();
            let flowing = help.split_whitespace().collect::<Vec<_>>().join(" ");
            let help = help + &flowing;
            for words in [
                "codex, claude, gemini, opencode, aider",
                "OPENAI_BASE_URL",
                "ANTHROPIC_BASE_URL",
                "[default: a free one]",
            ] {
                assert!(help.contains(words), "{words} is not in {help}");
            }
        }
    }

    #[test]
    fn help_has_two_examples_and_fits() {
        for (line, verb) in [
            ("steady-relay", ""),
            ("steady-relay serve", ""),
            ("steady-relay run", "run"),
            ("steady-relay config", "config"),
            ("steady-relay demo", "demo"),
            ("steady-relay completions", "completions"),
            ("steady-relay man", "man"),
        ] {
            for flag in ["-h", "--help"] {
                let help = Cli::read(format!("{line} {flag}").split(' ')).unwrap_err();
                assert_eq!(help.exit_code(), 0);
                let help = help.to_string();
                let examples = help.split("Examples:").nth(1).unwrap_or_default();
                assert_eq!(examples.trim().lines().count(), 2, "{line} {flag}: {help}");
                assert!(examples.contains(&format!("steady-relay {verb}")), "{help}");
            }
        }
        let version = Cli::read(["steady-relay", "--version"]).unwrap_err();
        assert_eq!(version.to_string(), concat!("steady-relay ", env!("CARGO_PKG_VERSION"), "\n"));
    }
}
