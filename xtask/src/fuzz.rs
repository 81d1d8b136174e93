//! Fuzzing: each target for some minutes, on the toolchain that is there. No sanitizer: the code is safe Rust, so
//! what can be found is a panic, a property that fell, a hang, or memory without end.
//!
//! The committed corpora are only read. What a run learns stays in `target/fuzz/corpus`, what it finds goes to
//! `fuzz/artifacts`.

use anyhow::{Context as _, Result, bail, ensure};
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;
use xtask::command::{cargo, download, succeed, works};

/// The version of cargo-fuzz that is installed where it is missing.
const VERSION: &str = "0.13.2";

/// Set for every call of cargo-fuzz, so that it builds once.
const BUILD: &str = "--sanitizer none --features libfuzzer --target-dir target/fuzz";

/// Bounds of one run: the longest input, seconds for one input, MiB of memory.
const BOUNDS: [&str; 3] = ["-max_len=4096", "-timeout=10", "-rss_limit_mb=1024"];

/// How long a target runs if nobody says.
const MINUTES: u32 = 4;

/// Runs the targets that the words name: `[--minutes N] [TARGET]`.
#[expect(clippy::print_stderr, reason = "a chore reports to the terminal it was started from")]
pub(crate) fn run(root: &Path, words: &[&str]) -> Result<()> {
    let known = targets(root)?;
    let (minutes, wanted) = wish(words, &known)?;
    install(root)?;
    succeed(&mut cargo_fuzz(root, &format!("build {BUILD}"))?)?;
    for target in wanted {
        eprintln!("\n== {target}: {minutes} min");
        let learned = root.join("target/fuzz/corpus").join(target);
        fs::create_dir_all(&learned).with_context(|| format!("cannot make {}", learned.display()))?;
        let mut command = cargo_fuzz(root, &format!("run {BUILD} {target}"))?;
        command.arg(learned).arg(format!("fuzz/corpus/{target}")).arg("--").args(BOUNDS);
        command.arg(format!("-max_total_time={}", minutes * 60)).arg("-dict=fuzz/words.dict");
        succeed(&mut command).context(
            "hint: mend it with a test that fails before, and put the input into fuzz/corpus under a telling name",
        )?;
    }
    Ok(())
}

/// Minutes and targets.
fn wish<'a>(words: &[&'a str], known: &'a [String]) -> Result<(u32, Vec<&'a str>)> {
    let (minutes, rest) = match words {
        ["--minutes", minutes, rest @ ..] => {
            (minutes.parse().with_context(|| format!("{minutes} is no number of minutes"))?, rest)
        }
        rest => (MINUTES, rest),
    };
    ensure!(minutes > 0, "a run takes a minute or more");
    match rest {
        [] => Ok((minutes, known.iter().map(String::as_str).collect())),
        [target] if known.iter().any(|name| name == target) => Ok((minutes, vec![target])),
        _ => bail!("usage: cargo xtask fuzz [--minutes N] [TARGET]\ntargets: {}", known.join(" ")),
    }
}

/// The targets, by their programs.
fn targets(root: &Path) -> Result<Vec<String>> {
    let programs = fs::read_dir(root.join("fuzz/fuzz_targets")).context("cannot read fuzz/fuzz_targets")?;
    let stem = |path: &Path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let mut names: Vec<String> = programs.filter_map(|program| stem(&program.ok()?.path())).collect();
    names.sort();
    Ok(names)
}

/// Brings cargo-fuzz into `target/fuzz-tools`, unless it is there or anywhere else.
fn install(root: &Path) -> Result<()> {
    if works(&mut cargo_fuzz(root, "--version")?) {
        return Ok(());
    }
    download(|| {
        cargo(root, &format!("install cargo-fuzz --version {VERSION} --locked --root target/fuzz-tools"))
    })
}

/// `cargo fuzz`, with the release profile as the fuzzer wants it: quick to build, and with names in a backtrace.
fn cargo_fuzz(root: &Path, line: &str) -> Result<Command> {
    let mut command = cargo(root, &format!("fuzz {line}"));
    let path = env::var_os("PATH").unwrap_or_default();
    let places = [root.join("target/fuzz-tools/bin")].into_iter().chain(env::split_paths(&path));
    command.env("PATH", env::join_paths(places).context("PATH cannot be extended")?);
    command.env("CARGO_PROFILE_RELEASE_LTO", "off").env("CARGO_PROFILE_RELEASE_STRIP", "none");
    command.env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minutes_and_targets_are_read() {
        let known = ["json".to_owned(), "sse".to_owned()];
        assert_eq!(wish(&[], &known).unwrap(), (MINUTES, vec!["json", "sse"]));
        assert_eq!(wish(&["--minutes", "9", "sse"], &known).unwrap(), (9, vec!["sse"]));
        for words in [&["xml"][..], &["--minutes", "x"], &["--minutes", "0"], &["sse", "json"]] {
            assert!(wish(words, &known).is_err(), "{words:?}");
        }
    }
}
