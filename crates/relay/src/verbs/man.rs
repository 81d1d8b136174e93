//! `steady-relay man`: prints the manual page, or writes those of all verbs.

use std::io;
use std::path::Path;

use steady_relay::cli::manual;
use steady_relay::words::{lang, verbs};

use super::{Failure, say, write};

pub(crate) fn man(dir: Option<&Path>) -> Result<u8, Failure> {
    let Some(dir) = dir else {
        let pages = manual::pages(lang()).map_err(|error| failed(Path::new("-"), &error))?;
        return write(pages.first().map_or(&[], |page| page.roff.as_bytes()));
    };
    write_all(dir).map_err(|error| failed(dir, &error))?;
    say(&verbs::pages_written(lang(), &dir.display().to_string()));
    Ok(0)
}

fn write_all(dir: &Path) -> io::Result<()> {
    std::fs::create_dir_all(dir)?;
    let mut pages = manual::pages(lang())?.into_iter();
    pages.try_for_each(|page| std::fs::write(dir.join(page.name), page.roff))
}

fn failed(dir: &Path, error: &io::Error) -> Failure {
    Failure(1, verbs::pages_not_written(lang(), &dir.display().to_string(), &error.to_string()))
}
