//! `steady-relay completions`: what completes verbs and flags, made from the command line as it is understood.

use clap_complete::Shell;
use steady_relay::{cli, words};

use super::{Failure, write};

pub(crate) fn completions(shell: Shell) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut cli::command(words::lang()), "steady-relay", &mut script);
    if shell == Shell::Bash {
        // The generator spells a program's name that has a hyphen in two ways, and so finds none of its verbs.
        let text = String::from_utf8_lossy(&script).replace("steady__subcmd__relay", "steady__relay");
        script = text.into_bytes();
    }
    write(&script)
}
