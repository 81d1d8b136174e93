//! The program `steady-relay`: reads the command line, carries out the verb, and exits. Each verb has its file in
//! `verbs`.

mod verbs;

use std::process::ExitCode;

use clap::error::ErrorKind;
use steady_relay::cli::{self, Asked, Cli, Verb};
use steady_relay::{crash, words};

use crate::verbs::{
    Failure, alerts, cert, completions, config, demo, diagnose, doctor, man, replay, run, say, selftest,
    send, serve, service, session, setup, snapshots, status, top, version,
};

fn main() -> ExitCode {
    let line: Vec<_> = std::env::args_os().collect();
    let asked = Asked::on(&line);
    words::speak(words::preferred(asked.lang, |name| std::env::var(name).ok(), words::of_system));
    asked.colour.write_global();
    std::panic::set_hook(Box::new(|info| say(&crash::words(info))));
    let wants_json = line.iter().any(|word| word == "--json");
    let reads_lines = line.get(1).is_some_and(|verb| verb == "session");
    let cli = match Cli::read(line) {
        Ok(cli) => cli,
        Err(error) if error.kind() == ErrorKind::DisplayVersion && wants_json => return version::version(),
        Err(error) => {
            if reads_lines && error.use_stderr() {
                session::refused(&error.to_string());
            }
            return cli::leave(&error);
        }
    };
    let ended = match cli.verb() {
        Verb::Serve => serve::serve(&cli.flags),
        Verb::Run(client) => run::run(&cli.flags, client),
        Verb::Session(options) => session::session(&cli.flags, options),
        Verb::Demo(options) => demo::demo(options),
        Verb::Completions { shell } => completions::completions(*shell),
        Verb::Man { dir } => man::man(dir.as_deref()),
        Verb::Send(options) => send::send(&cli.flags, options),
        Verb::Doctor(options) => doctor::doctor(&cli.flags, options),
        Verb::Diagnose(options) => diagnose::diagnose(&cli.flags, options),
        Verb::Replay(options) => replay::replay(&cli.flags, options),
        Verb::Selftest(options) => selftest::selftest(&cli.flags, options),
        Verb::Status { json } => status::status(&cli.flags, *json),
        Verb::Top => top::top(&cli.flags),
        Verb::Health { json } => status::health(&cli.flags, *json),
        #[cfg(feature = "history")]
        Verb::Why(options) => verbs::why::why(&cli.flags, options),
        #[cfg(feature = "history")]
        Verb::Stats(options) => verbs::stats::stats(&cli.flags, options),
        Verb::Alerts(options) => alerts::alerts(&cli.flags, options),
        Verb::Setup(options) => setup::setup(&cli.flags, options),
        Verb::Undo(options) => setup::undo(&cli.flags, options),
        Verb::Config(args) => config::config(&cli.flags, &args.verb),
        Verb::Cert(args) => cert::cert(&cli.flags, &args.verb),
        Verb::Snapshots(options) => snapshots::snapshots(&cli.flags, &options.verb),
        Verb::Service(options) => service::service(&cli.flags, &options.verb),
    };
    match ended {
        Ok(code) => ExitCode::from(code),
        Err(Failure(code, words)) => {
            say(&words);
            ExitCode::from(code)
        }
    }
}
