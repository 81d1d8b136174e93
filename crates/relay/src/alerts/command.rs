//! Runs a program with an alert: without a shell, for as long as it may take.

use std::process::Stdio;
use std::sync::Arc;

use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};

use super::message::Message;
use crate::shared::Shared;
use crate::words::{alerts as words, lang};

/// What is no concern of a program that tells somebody something.
const KEPT_BACK: [&str; 2] = ["STEADY_RELAY_TOKEN", "UPSTREAM_API_KEY"];

/// Runs what the settings say.
pub(super) async fn run(shared: Arc<Shared>, message: Arc<Message>) -> Result<(), String> {
    let settings = &shared.config.alerts;
    let Some((program, arguments)) = settings.command.split_first() else { return Ok(()) };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    for name in KEPT_BACK {
        command.env_remove(name);
    }
    command.envs(message.variables.iter().map(|(name, value)| (name, value))).kill_on_drop(true);
    // Whatever it starts ends with it, but for what goes out of its way to be on its own.
    #[cfg(unix)]
    command.process_group(0);
    let mut child = Group(
        command.spawn().map_err(|error| words::command_not_started(lang(), program, &error.to_string()))?,
    );
    let stdin = child.0.stdin.take();
    let ends = async {
        if let Some(mut stdin) = stdin {
            // A program need not read it.
            let _unread = stdin.write_all(message.json.as_bytes()).await;
        }
        child.0.wait().await
    };
    let within = settings.within;
    match tokio::time::timeout(within, ends).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(words::command_failed(lang(), program, &status.to_string())),
        Ok(Err(error)) => Err(words::command_failed(lang(), program, &error.to_string())),
        Err(_elapsed) => {
            child.kill();
            let _gone = child.0.wait().await;
            Err(words::command_killed(lang(), program, within.as_secs_f64()))
        }
    }
}

/// A program and all that it has started.
struct Group(Child);

impl Group {
    fn kill(&mut self) {
        #[cfg(unix)]
        {
            use rustix::process::{Pid, Signal, kill_process_group};
            // As long as it was not waited for, its number is its own.
            let pid = self.0.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
            let _over = pid.map(|pid| kill_process_group(pid, Signal::KILL));
        }
        let _over = self.0.start_kill();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
