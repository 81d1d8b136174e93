//! The package for Python: its wheel is built, installed without a network into an environment of its own, and tested there.
//!
//! The program in the wheel is the one of the profile `dev`, which the tests before have built.

use crate::checks::NEEDS_TOOLS;
use crate::setup::{PACKAGE, REQUESTS};
use anyhow::{Context as _, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::command::{cargo, output, succeed, words, works};

/// What the tests must not find: it would be asked in place of what they start.
const NOT_OURS: [&str; 3] = ["STEADY_RELAY_PROGRAM", "STEADY_RELAY_CONFIG", "PYTHONPATH"];

/// Builds, checks and tests the package.
pub(crate) fn check(root: &Path) -> Result<()> {
    let (package, environment) = (root.join("python"), root.join("target/test-env").join(PACKAGE));
    for line in ["-m ruff check --quiet .", "-m ruff format --quiet --check .", "-m mypy"] {
        succeed(&mut python(&environment, &package, line))?;
    }
    let wheel = wheel(root, &package, &environment)?;
    installs_alone(root, &wheel)?;
    let install = "-m pip install --quiet --disable-pip-version-check --no-index --no-deps --force-reinstall";
    succeed(python(&environment, &package, install).arg(&wheel))?;
    let mut tests = python(&environment, &package, "-m pytest -q -p no:cacheprovider");
    tests.env("STEADY_SOURCE_OF_REQUESTS", environment.join(REQUESTS)).env(NEEDS_TOOLS, "1");
    succeed(&mut tests)
}

fn python(environment: &Path, folder: &Path, line: &str) -> Command {
    let program = environment.join("bin/python");
    let mut command = words(folder, &format!("{} {line}", program.display()));
    for name in NOT_OURS {
        command.env_remove(name);
    }
    command
}

/// The wheel, which is the only one in its folder.
fn wheel(root: &Path, package: &Path, environment: &Path) -> Result<PathBuf> {
    let folder = root.join("target/wheels");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    // maturin starts the Cargo of its environment; ours leaves variables behind that would build everything anew.
    let clean = cargo(package, "");
    let mut build = Command::new(environment.join("bin/maturin"));
    build.current_dir(package).envs(clean.get_envs().filter_map(|(name, value)| Some((name, value?))));
    for (name, _) in clean.get_envs().filter(|(_, value)| value.is_none()) {
        build.env_remove(name);
    }
    succeed(build.args(["build", "--quiet", "--profile", "dev", "--out"]).arg(&folder))?;
    let mut made = fs::read_dir(&folder)?.map(|file| Ok(file?.path())).collect::<Result<Vec<_>>>()?;
    let wheel = made.pop().context("maturin built no wheel")?;
    ensure!(made.is_empty(), "maturin built more than one wheel");
    Ok(wheel)
}

/// Installs the wheel as a person would who has no network, and starts what it brings.
pub(crate) fn installs_alone(root: &Path, wheel: &Path) -> Result<()> {
    let fresh = root.join("target/python-fresh");
    if fresh.exists() {
        fs::remove_dir_all(&fresh)?;
    }
    succeed(words(root, "python3 -m venv").arg(&fresh))?;
    let wheels = root.join("target/test-env").join(PACKAGE).join("wheels");
    let install = "-m pip install --quiet --disable-pip-version-check --no-index --find-links";
    succeed(python(&fresh, root, install).arg(&wheels).arg(wheel))?;
    let version = output(Command::new(fresh.join("bin/steady-relay")).arg("--version"))?;
    ensure!(version.starts_with("steady-relay "), "--version says {version:?}");
    let told = output(Command::new(fresh.join("bin/steady-relay")).args(["--version", "--json"]))?;
    ensure!(told.contains(r#""installed":"pip""#), "it does not know who installed it: {told}");
    let same = output(&mut python(&fresh, root, "-m steady_relay --version"))?;
    ensure!(same == version, "python -m steady_relay is another program");
    let imports = "from codex_retry import CodexRetrySession; from steady_relay import Session, Transport";
    ensure!(works(python(&fresh, root, "-c").arg(imports)), "the package cannot be imported");
    Ok(())
}
