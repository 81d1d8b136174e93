//! The program `steady-relay`: reads the command line, carries out the verb, and exits. Each verb has its file in
//! `verbs`.

mod verbs;

use std::process::ExitCode;

use steady_relay::cli::{Cli, Verb};
use steady_relay::words;

use crate::verbs::{Failure, config, demo, run, say, serve, setup};

fn main() -> ExitCode {
    words::speak(words::preferred(None, |name| std::env::var(name).ok()));
    let cli = Cli::read(std::env::args_os()).unwrap_or_else(|error| error.exit());
    let ended = match cli.verb() {
        Verb::Serve => serve::serve(&cli.flags),
        Verb::Run(client) => run::run(&cli.flags, &client.command),
        Verb::Demo(options) => demo::demo(options),
        Verb::Setup(options) => setup::setup(&cli.flags, options),
        Verb::Undo(options) => setup::undo(&cli.flags, options),
        Verb::Config(args) => config::config(&cli.flags, &args.verb),
    };
    match ended {
        Ok(code) => ExitCode::from(code),
        Err(Failure(code, words)) => {
            say(&words);
            ExitCode::from(code)
        }
    }
}
