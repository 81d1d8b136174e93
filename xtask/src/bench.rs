//! Builds the release programs and lets `relay-bench` measure them.

use crate::setup;
use anyhow::Result;
use std::path::Path;
use std::process::Command;
use xtask::command::{cargo, succeed};

/// What Cargo is told to build: the program as it is shipped, and what measures it. Each by itself: what the second needs of
/// the simulator the first does not.
pub(crate) const RELAY: &str = "--release --locked -p steady-relay";
pub(crate) const MEASURES: &str = "--release --locked -p relay-bench --features chaos";

/// Measures the release program: `--instructions` counts, `--gate` measures the gate alone, `--crowd` plays a crowd at
/// a service that is short of capacity, `--chaos` one at a pool of services that misbehave in every way, `--subscribers`
/// measures what it costs that everything is told, `--ws` measures WebSocket; all else goes on to `relay-bench run`.
pub(crate) fn run(root: &Path, words: &[&str]) -> Result<()> {
    match words {
        ["--instructions"] => instructions(root),
        ["--gate"] => succeed(&mut cargo(root, &format!("run {MEASURES} -- gate"))),
        ["--crowd", words @ ..] => measure(root, "crowd", words),
        ["--chaos", words @ ..] => measure(root, "chaos", words),
        ["--subscribers", words @ ..] => measure(root, "subscribers", words),
        ["--ws", words @ ..] => measure(root, "ws", words),
        words => measure(root, "run", words),
    }
}

/// Counts instructions; fails where a request costs more than the ceiling in `relay-bench/src/instructions.rs`.
pub(crate) fn instructions(root: &Path) -> Result<()> {
    setup::valgrind(root)?;
    measure(root, "instructions", &[])
}

/// Five minutes of a crowd in five seconds, for each service. Fails where the gate serves fewer than 99 of 100 calls, or
/// sends more for each than calls that wait by themselves, which are more than twice as many on a quiet machine.
pub(crate) fn crowd(root: &Path) -> Result<()> {
    measure(root, "crowd", &["--rate", "60", "--minutes", "5", "--seeds", "1"])
}

/// Twenty seconds of a crowd at services that misbehave. Fails where a request ran twice, had no end, or ended in a success
/// that was none.
pub(crate) fn chaos(root: &Path) -> Result<()> {
    measure(root, "chaos", &["--seconds", "20"])
}

fn measure(root: &Path, verb: &str, words: &[&str]) -> Result<()> {
    for what in [RELAY, MEASURES] {
        succeed(&mut cargo(root, &format!("build {what}")))?;
    }
    let folder = root.join("target/release");
    let exe = std::env::consts::EXE_SUFFIX;
    let mut command = Command::new(folder.join(format!("relay-bench{exe}")));
    succeed(command.arg(verb).arg(folder.join(format!("steady-relay{exe}"))).args(words).current_dir(root))
}
