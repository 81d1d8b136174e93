//! The chores of the repository, as one program that needs nothing but Cargo.
//!
//! ```text
//! cargo xtask test                   install what the tests need, then run every check
//! cargo xtask test --only fmt,unit   some of them (fmt clippy doc core setup workflows dashboard unit otlp
//!                                    release dist clients cases peers python instructions soak crowd chaos)
//! cargo xtask soak --minutes 5       the release program under load for so long; 1 unless said
//! cargo xtask bench --quick          the release program beside a direct connection and a bare proxy
//! cargo xtask bench --ws             the same over WebSocket, beside a plain tunnel
//! cargo xtask bench --instructions   instructions per request, which valgrind counts, and their ceiling
//! cargo xtask bench --gate           what the capacity gate costs with many calls in it
//! cargo xtask bench --subscribers    the relay with all that can be told, beside one that tells nothing
//! cargo xtask bench --crowd          thirty agents at a service that is short of capacity
//! cargo xtask bench --chaos          fifty at a pool of services that misbehave in every way
//! cargo xtask mutate [WORD]           bugs planted in the gate one by one; its tests are to catch them all
//! cargo xtask simulate --check       the gate in virtual time, beside other policies and its targets
//! cargo xtask dist                   archives, .deb, npm, container, manifests, checksums
//! cargo xtask dist --check           the same built twice, in two places, compared and tried; half an hour
//! cargo xtask semver                 the interfaces of the libraries, beside those of the newest release
//! cargo xtask setup                  only install
//! cargo xtask fuzz [--minutes N] [TARGET]
//! ```
//!
//! `setup` brings the real clients into `target/test-env` and what the dashboard is built with into its folder. `checks` is
//! the list of steps in their order, and `steps` runs them: `cases` plays the wire cases, `python` builds and tests the
//! package for Python, `packages` tries what `dist/` makes. `bench` measures, `mutate` breaks, `simulate` plays, `semver`
//! compares interfaces, `fuzz` runs the fuzz targets. The load of the soak is a program of its own, in `soak/`, and so is
//! what makes the packages, in `dist/`. Nothing here is part of the relay.
#![expect(clippy::print_stderr, reason = "a chore reports to the terminal it was started from")]

mod bench;
mod cases;
mod checks;
mod fuzz;
mod mutate;
mod packages;
mod python;
mod semver;
mod setup;
mod simulate;
mod steps;

use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask test [--only STEP,STEP] | soak [--minutes N] | bench [--rounds N] [--quick] | \
     bench --ws [--rounds N] [--quick] | bench --instructions | bench --gate | bench --subscribers | bench --crowd [OPTIONS] | \
     bench --chaos [OPTIONS] | mutate [WORD] | simulate [--help] | dist [OPTIONS] | \
     semver | setup | fuzz [--minutes N] [TARGET]";

fn main() -> ExitCode {
    match run(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> Result<()> {
    let root = repository()?;
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["setup"] => setup::install(&root).map(|_| ()),
        ["soak"] => checks::soak_for(&root, 60),
        ["soak", "--minutes", minutes] => {
            let minutes: u64 = minutes.parse().context("--minutes takes a whole number")?;
            checks::soak_for(&root, minutes * 60)
        }
        ["test"] => checks::run(&root, &[]),
        ["test", "--only", steps] => checks::run(&root, &steps.split(',').collect::<Vec<_>>()),
        [steps::BESIDE, step] => checks::run_beside(&root, step),
        ["mutate"] => mutate::run(&root, ""),
        ["mutate", word] => mutate::run(&root, word),
        ["bench", words @ ..] => bench::run(&root, words),
        ["dist", "--check"] => checks::dist_twice(&root),
        ["dist", words @ ..] => packages::make(&root, words),
        ["simulate", words @ ..] => simulate::run(&root, words),
        ["semver"] => semver::check(&root),
        ["fuzz", words @ ..] => fuzz::run(&root, words),
        _ => bail!("{USAGE}\nsteps: {}", checks::names().join(" ")),
    }
}

/// The root of the repository: the folder above the one this program was built from.
fn repository() -> Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(Path::to_path_buf).context("xtask lies in a folder of the repository")
}
