//! Asks a program one short question. It may be anything: what it says is cut off, it and those that it starts are ended,
//! and what it writes goes into a folder that is removed.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// More than any version takes.
const MOST: u64 = 4096;
/// The variables that say where a program keeps its files: those of systems, and of the clients.
const HOMES: [&str; 13] = [
    "HOME",
    "USERPROFILE",
    "APPDATA",
    "LOCALAPPDATA",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
    "TMPDIR",
    "CODEX_HOME",
    "CLAUDE_CONFIG_DIR",
    "GEMINI_HOME",
    "GEMINI_CLI_HOME",
];

/// What came of asking a program.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// What it said first.
    Words(String),
    /// It did not say it in time, or cannot be asked.
    Nothing,
    /// There is none.
    Absent,
}

/// What a program says first, if it is there and says it soon.
pub(super) async fn said(program: &str, argument: &str, within: Duration) -> Said {
    // npm puts scripts there.
    let names = if cfg!(windows) {
        vec![format!("{program}.exe"), format!("{program}.cmd")]
    } else {
        vec![program.to_owned()]
    };
    let mut said = Said::Absent;
    for name in names {
        let Some(home) = Home::new() else { return Said::Nothing };
        let mut command = Command::new(&name);
        command.arg(argument).envs(HOMES.map(|variable| (variable, &home.0)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        family::apart(&mut command);
        let child = match command.spawn() {
            Ok(child) => child,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(_cannot_be_started) => {
                said = Said::Nothing;
                continue;
            }
        };
        // Dropped in this order: first all that runs, then the folder.
        let mut asked = Asked { child, _home: home };
        let mut bytes = Vec::new();
        let Some(out) = asked.child.stdout.take() else { return Said::Nothing };
        if let Ok(Ok(_)) = timeout(within, out.take(MOST).read_to_end(&mut bytes)).await {
            return Said::Words(String::from_utf8_lossy(&bytes).into_owned());
        }
        said = Said::Nothing;
    }
    said
}

/// A program that was asked, gone at its end with all that it started.
struct Asked {
    child: Child,
    _home: Home,
}

impl Drop for Asked {
    fn drop(&mut self) {
        family::end(&self.child);
        let _gone = self.child.start_kill();
    }
}

/// A home for one program.
struct Home(PathBuf);

impl Home {
    fn new() -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // One that is there is somebody else's.
        (0..100).find_map(|_| {
            let name = format!(
                "steady-relay-doctor-{}-{}",
                std::process::id(),
                NEXT.fetch_add(1, Ordering::Relaxed)
            );
            let path = std::env::temp_dir().join(name);
            std::fs::create_dir(&path).ok().map(|()| Self(path))
        })
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // Who is being ended may write one more file meanwhile.
        let _gone = std::fs::remove_dir_all(&self.0).or_else(|_| std::fs::remove_dir_all(&self.0));
    }
}

/// A program and all that it starts, as a process group.
#[cfg(unix)]
mod family {
    use rustix::process::{Pid, Signal, kill_process_group};
    use tokio::process::{Child, Command};

    pub(super) fn apart(command: &mut Command) {
        command.process_group(0);
    }

    pub(super) fn end(child: &Child) {
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let _gone = group.map(|group| kill_process_group(group, Signal::KILL));
    }
}

/// Elsewhere the program alone is ended; those that it started find nobody to write to.
#[cfg(not(unix))]
mod family {
    use tokio::process::{Child, Command};

    pub(super) fn apart(_command: &mut Command) {}

    pub(super) fn end(_child: &Child) {}
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    use super::*;

    fn script(folder: &Path, name: &str, text: &str) -> String {
        let path = folder.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path.display().to_string()
    }

    #[tokio::test]
    async fn a_program_says_little_leaves_nothing_and_ends_with_its_children() {
        let folder = std::env::temp_dir().join(format!("steady-relay-asked-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let within = Duration::from_secs(20);
        let endless = script(&folder, "endless", "exec yes");
        let words = async |program: &str| match said(program, "--version", within).await {
            Said::Words(words) => words,
            nothing @ (Said::Nothing | Said::Absent) => panic!("{nothing:?}"),
        };
        assert_eq!(words(&endless).await.len(), 4096);
        assert_eq!(said("steady-relay-no-such-program", "--version", within).await, Said::Absent);
        // The homes that it is told of are gone.
        let homes = script(&folder, "homes", "touch \"$CODEX_HOME/x\" && echo \"$HOME\"");
        let home = words(&homes).await;
        assert!(home.contains("steady-relay-doctor-") && !Path::new(home.trim()).exists(), "{home}");
        // A child that holds the pipe is ended at the limit.
        let note = folder.join("child").display().to_string();
        let parent = script(&folder, "parent", &format!("sleep 600 & echo $! > {note}; wait"));
        assert_eq!(said(&parent, "--version", Duration::from_secs(2)).await, Said::Nothing);
        let child = std::fs::read_to_string(&note).unwrap();
        let lives = || {
            let state = std::fs::read_to_string(format!("/proc/{}/status", child.trim())).unwrap_or_default();
            state.contains("State:") && !state.contains("State:\tZ")
        };
        let gone = async {
            while lives() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(within, gone).await.unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
