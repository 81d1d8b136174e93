//! Builds the release programs and lets `relay-bench` measure them.

use crate::setup;
use anyhow::Result;
use std::path::Path;
use std::process::Command;
use xtask::command::{cargo, succeed};

/// Measures the release program: `--instructions` counts, `--gate` measures the gate alone, `--crowd` plays a crowd at
/// a service that is short of capacity, `--chaos` one at a pool of services that misbehave in every way, `--subscribers`
/// measures what it costs that everything is told, `--ws` measures WebSocket; all else goes on to `relay-bench run`.
pub(crate) fn run(root: &Path, words: &[&str]) -> Result<()> {
    match words {
        ["--instructions"] => instructions(root),
        ["--gate"] => succeed(&mut cargo(root, "run --release --locked -p relay-bench -- gate")),
        ["--crowd", words @ ..] => measure(root, "crowd", words),
        ["--chaos", words @ ..] => chaos_for(root, words),
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
    chaos_for(root, &["--seconds", "20"])
}

fn chaos_for(root: &Path, words: &[&str]) -> Result<()> {
    succeed(&mut cargo(root, "build --release --locked -p steady-relay"))?;
    // By itself: what it needs of the simulator the relay does not.
    let mut command = cargo(root, "run --release --locked -p relay-bench --features chaos -- chaos");
    let exe = std::env::consts::EXE_SUFFIX;
    command.arg(root.join(format!("target/release/steady-relay{exe}"))).args(words);
    succeed(&mut command)
}

fn measure(root: &Path, verb: &str, words: &[&str]) -> Result<()> {
    succeed(&mut cargo(root, "build --release --locked -p steady-relay -p relay-bench"))?;
    let folder = root.join("target/release");
    let exe = std::env::consts::EXE_SUFFIX;
    let mut command = Command::new(folder.join(format!("relay-bench{exe}")));
    succeed(command.arg(verb).arg(folder.join(format!("steady-relay{exe}"))).args(words).current_dir(root))
}
