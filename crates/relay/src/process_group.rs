//! A program that the settings name, and all that it starts: run without a shell, and ended together.

use std::io;
use std::process::Stdio;

use tokio::process::{Child, Command};

/// What is no concern of a program that does one thing for the relay.
const KEPT_BACK: [&str; 2] = ["STEADY_RELAY_TOKEN", "UPSTREAM_API_KEY"];

/// A program and all that it has started. Dropping it ends them.
pub(crate) struct Group(pub(crate) Child);

impl Group {
    /// Starts it with nothing to read or to write to; `changed` says what else there is.
    pub(crate) fn start(
        program: &str,
        arguments: &[String],
        changed: impl FnOnce(&mut Command),
    ) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        for name in KEPT_BACK {
            command.env_remove(name);
        }
        command.kill_on_drop(true);
        // Whatever it starts ends with it.
        #[cfg(unix)]
        command.process_group(0);
        changed(&mut command);
        command.spawn().map(Self)
    }

    /// Ends it.
    pub(crate) fn kill(&mut self) {
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
