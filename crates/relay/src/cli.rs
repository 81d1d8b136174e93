//! The command line, as types. Not what the verbs do, and not what a flag's value means (that is `settings`,
//! which sees flags, environment and file together and reports all that is wrong at once).

mod asked;
mod flags;
mod leave;
pub mod manual;
pub(crate) mod suggested;
mod translated;
mod verbs;

pub use self::asked::Asked;
pub use self::flags::Flags;
pub use self::leave::leave;
pub use self::verbs::{ConfigArgs, ConfigVerb, Run, Session, Verb};

use clap::{ArgAction, Args, Command, CommandFactory as _, FromArgMatches as _, Parser};
use std::ffi::OsString;

use relay_core::Lang;

use self::flags::FLAGS_OF;
use crate::words;

/// No help is wider, however wide the terminal is.
const WIDEST: usize = 80;

/// A local relay that lets AI coding agents survive services that run out of capacity.
#[derive(Debug, Clone, PartialEq, Eq, Parser)]
#[command(
    name = "steady-relay",
    version,
    disable_version_flag = true,
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
    /// Print the version; with `--json` also what it was built with, and how it was installed
    #[arg(short = 'V', long, action = ArgAction::Version)]
    version: Option<bool>,
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

const TOP_EXAMPLES: &str = "Examples:
  steady-relay                 listen on 127.0.0.1:8787, for all your clients
  steady-relay run -- codex    start Codex with a relay in front of it";

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
    for verb in ["run", "session"] {
        top = top.mut_subcommand(verb, in_words_of_run);
    }
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
    const VERBS: [(&str, &str); 35] = [
        ("serve", ""),
        ("run", " codex"),
        ("session", ""),
        ("setup", ""),
        ("undo", ""),
        ("demo", ""),
        ("send", " http://localhost/"),
        ("doctor", ""),
        ("diagnose", ""),
        ("replay", ""),
        ("selftest", ""),
        ("why", ""),
        ("stats", ""),
        ("status", ""),
        ("top", ""),
        ("health", ""),
        ("config show", ""),
        ("config check", ""),
        ("config schema", ""),
        ("config path", ""),
        ("config test-rule", " answer.http"),
        ("completions", " bash"),
        ("man", ""),
        ("cert show", ""),
        ("cert trust-help", ""),
        ("cert renew", ""),
        ("snapshots list", ""),
        ("snapshots show", ""),
        ("snapshots replay", ""),
        ("alerts test", ""),
        ("service install", ""),
        ("service start", ""),
        ("service stop", ""),
        ("service status", ""),
        ("service remove", ""),
    ];

    #[test]
    fn the_list_has_every_verb() {
        fn verbs_below(above: &Command, path: &str, all: &mut Vec<String>) {
            for verb in above.get_subcommands() {
                let path = format!("{path} {}", verb.get_name());
                if verb.has_subcommands() {
                    verbs_below(verb, &path, all);
                } else {
                    all.push(path.trim_start().to_owned());
                }
            }
        }
        let mut all = Vec::new();
        verbs_below(&in_english(), "", &mut all);
        let mut listed = VERBS.map(|(verb, _)| verb);
        // Verbs whose flags were changed stand last.
        all.sort();
        listed.sort_unstable();
        assert_eq!(all, listed);
        for (verb, _) in FLAGS_OF {
            assert!(all.contains(&verb.join(" ")), "{verb:?} has flags and is no verb");
        }
    }

    #[test]
    fn a_verb_shows_the_flags_that_it_uses_and_refuses_all_others() {
        let all: Vec<_> = Flags::augment_args(Command::new("x")).get_arguments().cloned().collect();
        assert_eq!(all.len(), 15);
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
        let top = in_english();
        let verbs = top.get_subcommands().map(Command::get_name);
        for verb in std::iter::once("").chain(verbs) {
            for flag in ["-h", "--help"] {
                let line = format!("steady-relay {verb} {flag}").replace("  ", " ");
                let help = Cli::read(line.split(' ')).unwrap_err();
                assert_eq!(help.exit_code(), 0);
                let help = help.to_string();
                let examples = help.split("Examples:").nth(1).unwrap_or_default();
                assert!((2..=3).contains(&examples.trim().lines().count()), "{line}: {help}");
                // What is done by default needs no name.
                let named = if verb == "serve" { "steady-relay serve" } else { "steady-relay" };
                assert!(examples.contains(named) && examples.contains(verb), "{line}: {help}");
                let wide: Vec<_> = help.lines().filter(|line| line.chars().count() > WIDEST).collect();
                assert!(wide.is_empty(), "{line}: {wide:#?}");
            }
        }
        let version = Cli::read(["steady-relay", "--version"]).unwrap_err();
        assert_eq!(version.to_string(), concat!("steady-relay ", env!("CARGO_PKG_VERSION"), "\n"));
    }
}
