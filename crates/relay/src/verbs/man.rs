//! `steady-relay man`: manual pages, made from the command line as it is understood.

use std::io;
use std::path::Path;

use clap_mangen::Man;
use steady_relay::words::verbs as words_of;
use steady_relay::{cli, words};

use super::{Failure, say, write};

pub(crate) fn man(dir: Option<&Path>) -> Result<u8, Failure> {
    let command = cli::command(words::lang());
    let Some(dir) = dir else {
        let mut page = Vec::new();
        let made = Man::new(command).render(&mut page);
        return made.map_err(|error| failed(Path::new("-"), &error)).and_then(|()| write(&page));
    };
    std::fs::create_dir_all(dir)
        .and_then(|()| clap_mangen::generate_to(command, dir))
        .map_err(|error| failed(dir, &error))?;
    say(&words_of::pages_written(words::lang(), &dir.display().to_string()));
    Ok(0)
}

fn failed(dir: &Path, error: &io::Error) -> Failure {
    Failure(1, words_of::pages_not_written(words::lang(), &dir.display().to_string(), &error.to_string()))
}
