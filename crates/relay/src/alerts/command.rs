//! Runs a program with an alert: without a shell, for as long as it may take.

use std::process::Stdio;
use std::sync::Arc;

use tokio::io::AsyncWriteExt as _;

use super::message::Message;
use crate::process_group::Group;
use crate::shared::Shared;
use crate::words::{alerts as words, lang};

/// Runs what the settings say.
pub(super) async fn run(shared: Arc<Shared>, message: Arc<Message>) -> Result<(), String> {
    let settings = &shared.config.alerts;
    let Some((program, arguments)) = settings.command.split_first() else { return Ok(()) };
    let started = Group::start(program, arguments, |command| {
        command.stdin(Stdio::piped());
        command.envs(message.variables.iter().map(|(name, value)| (name, value)));
    });
    let mut child =
        started.map_err(|error| words::command_not_started(lang(), program, &error.to_string()))?;
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
