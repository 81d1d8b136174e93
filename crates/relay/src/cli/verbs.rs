//! What the program can do, a variant for each verb, with the examples of its help. What a verb takes besides stands
//! beside the verb, in the module of its part.

use clap::{Args, Subcommand};
use clap_complete::Shell;
use std::ffi::OsString;
use std::path::PathBuf;

use crate::alerts;
use crate::demo;
use crate::diagnose;
use crate::doctor;
use crate::https;
use crate::recorded::TestRule;
use crate::replay;
use crate::selftest;
use crate::send;
use crate::service;
use crate::setup;
use crate::snapshots;
#[cfg(feature = "history")]
use crate::{stats, why};

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
    /// Hold a session at a relay for a program that asks by lines of JSON: the relay that runs, or one of its own.
    ///
    /// For libraries, such as the package for Python. Questions are read from standard input, each is answered by a line
    /// on standard output, and the session ends with its input, however the program ends. Ctrl-C is for the program.
    #[command(after_help = SESSION_EXAMPLES, after_long_help = SESSION_EXAMPLES)]
    Session(Session),
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
    /// Say what is the matter: me, my account, or the model?
    ///
    /// One verdict and what speaks for it, from the last calls of all sessions, other models, and the way to the
    /// services. No model is asked, nothing is changed, and no credential is sent or printed.
    #[command(after_help = DIAGNOSE_EXAMPLES, after_long_help = DIAGNOSE_EXAMPLES)]
    Diagnose(diagnose::Options),
    /// Decide recorded calls again with the present settings, and say what would differ.
    ///
    /// A setting can be tried on last week's calls, and a bug report becomes a test. Nothing is sent anywhere: the
    /// answers are the recorded ones, and time is only counted.
    #[command(after_help = REPLAY_EXAMPLES, after_long_help = REPLAY_EXAMPLES)]
    Replay(replay::Options),
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
    /// Watch a relay that runs, on a terminal: its lanes, its calls, and what it has saved.
    ///
    /// It asks once a second and changes nothing. `?` shows the keys, `q` leaves. A relay that goes away is asked again
    /// until it is back.
    #[command(after_help = TOP_EXAMPLES, after_long_help = TOP_EXAMPLES)]
    Top,
    /// Say whether a relay runs.
    #[command(after_help = HEALTH_EXAMPLES, after_long_help = HEALTH_EXAMPLES)]
    Health {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Tell what happened to one call, and whether it was the relay or the service.
    ///
    /// From the history's file: each send with what matched, where each wait came from, and what the client was told.
    /// No relay has to run.
    #[cfg(feature = "history")]
    #[command(after_help = WHY_EXAMPLES, after_long_help = WHY_EXAMPLES)]
    Why(why::Options),
    /// Print what the relay saved, what it cost, and when the services are short of capacity.
    ///
    /// From the history's file. Without the relay means: what the first send alone would have served. No relay has to
    /// run.
    #[cfg(feature = "history")]
    #[command(after_help = STATS_EXAMPLES, after_long_help = STATS_EXAMPLES)]
    Stats(stats::Options),
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
    /// Look at calls that ended badly, where `[snapshots]` keeps them.
    ///
    /// Requests, answers and records, without keys, tokens, cookies, e-mail addresses and home folders.
    #[command(after_help = SNAPSHOTS_EXAMPLES, after_long_help = SNAPSHOTS_EXAMPLES)]
    Snapshots(snapshots::Options),
    /// Try out whether alerts reach you, by the ways of `[alerts]`.
    ///
    /// One test alert goes by each way that is set, as every other would, and what came of it is said. Exit code 1: one
    /// failed, or none is set.
    #[command(after_help = ALERTS_EXAMPLES, after_long_help = ALERTS_EXAMPLES)]
    Alerts(alerts::Options),
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

/// The session to hold.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Session {
    /// Start a relay of the program's own, also where one could be joined
    #[arg(long)]
    pub own: bool,
    /// What the program is called, for people who look
    #[arg(long, value_name = "NAME", default_value = "session")]
    pub client: String,
}

const SERVE_EXAMPLES: &str = "Examples:
  steady-relay serve --port 9000
  steady-relay serve --upstream https://api.example.com/v1 --profile patient";

const RUN_EXAMPLES: &str = "Clients that it knows: codex, claude, gemini, opencode, aider.
Every other program gets the variables that SDKs read: OPENAI_BASE_URL,
ANTHROPIC_BASE_URL, GOOGLE_GEMINI_BASE_URL and their like.

Examples:
  steady-relay run -- codex exec \"fix the failing test\"
  steady-relay run --profile patient -- python job.py";

const SESSION_EXAMPLES: &str =
    "Exit codes: 0 its input has ended; 1 it could not be held; 2 wrong usage or settings.

Examples:
  echo '{\"id\":1,\"ask\":\"stats\"}' | steady-relay session
  echo '{\"id\":1,\"ask\":\"stats\"}' | steady-relay session --own";

#[cfg(feature = "history")]
const WHY_EXAMPLES: &str = "Exit codes: 0 told; 1 there is no such call, or no history; 2 wrong settings.

Examples:
  steady-relay why
  steady-relay why c12 --json";

#[cfg(feature = "history")]
const STATS_EXAMPLES: &str = "Exit codes: 0 told; 1 there is no history; 2 wrong usage or settings.

Examples:
  steady-relay stats --since 30d --by model
  steady-relay stats --last-run
  steady-relay stats --export jsonl > calls.jsonl";

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

const SNAPSHOTS_EXAMPLES: &str = "Examples:
  steady-relay snapshots list
  steady-relay snapshots replay last --dry-run";

const ALERTS_EXAMPLES: &str = "Examples:
  steady-relay alerts test
  steady-relay alerts test --json --config my.toml";

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

const DIAGNOSE_EXAMPLES: &str = "Examples:
  steady-relay diagnose
  steady-relay diagnose --since 12h --report report.md";

const REPLAY_EXAMPLES: &str =
    "Exit codes: 0 nothing would differ; 1 something would; 2 wrong usage, settings or file.

Examples:
  steady-relay replay --since 7d --profile patient
  steady-relay replay report.md --config try.toml --json";

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

const TOP_EXAMPLES: &str =
    "Exit codes: 0 left by `q`; 2 no terminal, wrong settings, or the token is missing; 6 no relay
runs there; 130 interrupted.

Examples:
  steady-relay top
  steady-relay top --port 9000 --color never";

const HEALTH_EXAMPLES: &str =
    "Exit codes: 0 it runs; 2 wrong settings, or the token is missing; 6 no relay runs there.

Examples:
  steady-relay health
  steady-relay health --port 9000 || echo none";
