//! Plants bugs in the capacity gate, one at a time, and looks whether its tests fall.
//!
//! The tree is copied to `target/mutants`, so that nothing is left behind in it, whatever ends the run. A bug that
//! escapes fails the run, and so does one whose old text is not there exactly once: the table is to follow the code.

mod bugs;

use anyhow::{Context as _, Result, ensure};
use bugs::BUGS;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use xtask::command::cargo;

/// One bug.
struct Bug {
    /// Below `crates/relay-core/src/gate`.
    file: &'static str,
    /// What stands there once.
    old: &'static str,
    new: &'static str,
    /// What is broken.
    breaks: &'static str,
}

/// What became of it.
enum Ended {
    /// These tests or laws fell.
    Caught(String),
    /// The tests came to no end, or the tree could not be built.
    Stuck,
    Unbuilt,
    Escaped,
}

/// A test run that lasts longer has got stuck.
const PATIENCE: Duration = Duration::from_secs(300);

/// The tests of the gate: what takes no time first.
const TESTS: [&str; 2] =
    ["test -p relay-core --lib -- gate::", "test -p relay-core --test gate_world -- --test-threads 1"];

/// Plants those bugs whose description or file holds `word`, or all.
#[expect(clippy::print_stderr, reason = "a chore reports to the terminal it was started from")]
pub(crate) fn run(root: &Path, word: &str) -> Result<()> {
    let tree = root.join("target/mutants/tree");
    copy(root, &tree)?;
    ensure!(!matches!(test(&tree)?, Ended::Caught(_) | Ended::Unbuilt), "the tests fall without any bug");
    let chosen: Vec<&Bug> =
        BUGS.iter().filter(|bug| bug.breaks.contains(word) || bug.file.contains(word)).collect();
    let (mut escaped, mut caught) = (Vec::new(), 0);
    for bug in &chosen {
        let path = place(&tree, bug.file);
        let text = fs::read_to_string(&path)?;
        fs::write(&path, planted(bug, &text)?)?;
        let ended = test(&tree);
        fs::write(&path, text)?;
        let ended = ended?;
        let word = match &ended {
            Ended::Caught(by) => by.clone(),
            Ended::Stuck => "the tests come to no end".to_owned(),
            Ended::Unbuilt | Ended::Escaped => {
                escaped.push(bug.breaks);
                if matches!(ended, Ended::Unbuilt) { "DOES NOT BUILD" } else { "ESCAPED" }.to_owned()
            }
        };
        caught += 1;
        eprintln!("{caught:>3} | {} | {} | {word} |", bug.file, bug.breaks);
    }
    ensure!(
        escaped.is_empty(),
        "{} of {} bugs escaped:\n{}",
        escaped.len(),
        chosen.len(),
        escaped.join("\n")
    );
    eprintln!("all {} bugs are caught", chosen.len());
    Ok(())
}

fn place(root: &Path, file: &str) -> PathBuf {
    root.join("crates/relay-core/src/gate").join(file)
}

/// The text with the bug in it.
fn planted(bug: &Bug, text: &str) -> Result<String> {
    let count = text.matches(bug.old).count();
    ensure!(count == 1, "{}: the old text of \"{}\" is there {count} times", bug.file, bug.breaks);
    Ok(text.replace(bug.old, bug.new))
}

/// Copies what Git knows, and what it would be told of. What is the same there already stays as it is, so that only
/// what has changed is built.
fn copy(root: &Path, tree: &Path) -> Result<()> {
    let listed =
        Command::new("git").current_dir(root).args(["ls-files", "-co", "--exclude-standard"]).output()?;
    ensure!(listed.status.success(), "git does not list the files of {}", root.display());
    for name in String::from_utf8(listed.stdout)?.lines() {
        let (from, to) = (root.join(name), tree.join(name));
        let Ok(new) = fs::read(&from) else { continue };
        if fs::read(&to).is_ok_and(|old| old == new) {
            continue;
        }
        fs::create_dir_all(to.parent().context("a file lies in a folder")?)?;
        fs::write(&to, new).with_context(|| format!("cannot write {}", to.display()))?;
    }
    Ok(())
}

fn test(tree: &Path) -> Result<Ended> {
    for line in TESTS {
        let ended = one(tree, line)?;
        if !matches!(ended, Ended::Escaped) {
            return Ok(ended);
        }
    }
    Ok(Ended::Escaped)
}

/// Runs some of the tests.
fn one(tree: &Path, line: &str) -> Result<Ended> {
    let heard = tree.with_file_name("heard.txt");
    let file = fs::File::create(&heard)?;
    let mut command = cargo(tree, line);
    command
        .env("CARGO_TARGET_DIR", tree.with_file_name("build"))
        .env("RUST_BACKTRACE", "0")
        .env("CARGO_PROFILE_DEV_DEBUG", "0");
    command.stdout(Stdio::from(file.try_clone()?)).stderr(Stdio::from(file));
    let mut child = command.spawn().context("cannot start cargo")?;
    let start = Instant::now();
    let status = loop {
        match child.try_wait()? {
            Some(status) => break Some(status),
            None if start.elapsed() > PATIENCE => break None,
            None => sleep(Duration::from_millis(50)),
        }
    };
    let text = fs::read_to_string(&heard)?;
    let Some(status) = status else {
        end_tests(&mut child)?;
        return Ok(Ended::Stuck);
    };
    if status.success() {
        return Ok(Ended::Escaped);
    }
    let falls = falls(&text);
    Ok(if falls.is_empty() { Ended::Unbuilt } else { Ended::Caught(falls) })
}

/// Cargo hands an interrupt on to what it started, and ends after it.
fn end_tests(child: &mut std::process::Child) -> Result<()> {
    let asked = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    if !asked.is_ok_and(|status| status.success()) {
        child.kill()?;
    }
    child.wait()?;
    Ok(())
}

/// The laws that fell, else the names of the tests.
fn falls(text: &str) -> String {
    let mut laws: Vec<&str> = text
        .lines()
        .filter_map(|line| Some(line.split_once("fell: ")?.1.split("\\n").next()?.trim_end_matches('"')))
        .collect();
    let tests = text.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
    laws.sort_unstable();
    laws.dedup();
    let names = tests.map(|name| name.rsplit("::").next().unwrap_or(name));
    let mut all: Vec<&str> = if laws.is_empty() { names.collect() } else { laws };
    let more = all.len().saturating_sub(2);
    all.truncate(2);
    let all = all.join("; ");
    if more == 0 { all } else { format!("{all}; and {more} more") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bug_can_be_planted_and_changes_something() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for bug in BUGS {
            let text = fs::read_to_string(place(root, bug.file)).unwrap();
            let planted = planted(&bug, &text).unwrap();
            assert_ne!(planted, text, "{}", bug.breaks);
        }
    }

    #[test]
    fn what_fell_is_read_from_what_the_tests_say() {
        let text = "seed 7: fell: probes are spaced\nevent 3\ntest a::b ... FAILED\ntest c ... ok\n";
        assert_eq!(falls(text), "probes are spaced");
        assert_eq!(falls("test a::b ... FAILED\ntest c ... FAILED\ntest d ... FAILED"), "b; c; and 1 more");
        assert_eq!(falls("error[E0425]: cannot find value"), "");
    }
}
