//! `steady-relay completions`: what completes verbs and flags, made from the command line as it is understood.

use clap_complete::Shell;
use steady_relay::{cli, words};

use super::{Failure, write};

pub(crate) fn completions(shell: Shell) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut cli::command(words::lang()), "steady-relay", &mut script);
    write(&script)
}
