//! Starting programs: where, with which environment, and what to say when they fail.

use anyhow::{Context as _, Result, bail};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// A program to be started in `folder`, its words split at spaces.
pub fn words(folder: &Path, line: &str) -> Command {
    let mut parts = line.split_whitespace();
    let mut command = Command::new(parts.next().unwrap_or_default());
    command.args(parts).current_dir(folder);
    command
}

/// `cargo` in `folder`, without the variables that the Cargo which started us left behind:
/// build scripts that watch them would run again and rebuild their dependents.
pub fn cargo(folder: &Path, line: &str) -> Command {
    let mut command = words(folder, &format!("cargo {line}"));
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let of_a_package = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_CRATE_", "CARGO_BIN_", "CARGO_PRIMARY_"];
        if of_a_package.iter().any(|start| text.starts_with(start)) {
            command.env_remove(&name);
        }
    }
    command
}

/// Runs it with our terminal; an exit status other than 0 is an error that names the command.
pub fn succeed(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {}", shown(command)))?;
    if !status.success() {
        bail!("{} ended with {status}", shown(command));
    }
    Ok(())
}

/// Runs it and returns what it wrote to stdout; stderr stays on our terminal.
pub fn output(command: &mut Command) -> Result<String> {
    let done = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {}", shown(command)))?;
    if !done.status.success() {
        bail!("{} ended with {}", shown(command), done.status);
    }
    String::from_utf8(done.stdout).with_context(|| format!("{} wrote text", shown(command)))
}

/// True if it starts and ends well; what it writes is nobody's business.
pub fn works(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// Runs a download, up to four times: a registry that is busy for a moment fails no build.
#[expect(clippy::print_stderr, reason = "a chore reports to the terminal it was started from")]
pub fn download(mut command: impl FnMut() -> Command) -> Result<()> {
    for wait in [2, 5, 15] {
        match succeed(&mut command()) {
            Ok(()) => return Ok(()),
            Err(error) => eprintln!("{error:#}; again in {wait} s"),
        }
        sleep(Duration::from_secs(wait));
    }
    succeed(&mut command())
}

/// The command as one would type it.
fn shown(command: &Command) -> String {
    let mut line = command.get_program().to_string_lossy().into_owned();
    for arg in command.get_args() {
        line.push(' ');
        line.push_str(&arg.to_string_lossy());
    }
    line
}
