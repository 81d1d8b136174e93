//! Carrying out a plan: the client as a child in the foreground, and its end as ours.
//!
//! The child shares our terminal and our process group, so that a full-screen client works as if the shell had
//! started it. Ctrl-C and Ctrl-\ therefore reach it directly; we only must not die of them, since the client
//! decides what they mean and needs the relay meanwhile. Any of them that is sent to us alone is handed on; where
//! no terminal speaks to our group, that is all of them.
//!
//! To the shell we are the client. So we stop where the client stops itself alone, or the shell would not take its
//! terminal back; and where a signal ended it, the terminal is set as it was, which the shell does for a program that it
//! sees end so.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use tokio::process::{Child, Command};

use super::{Plan, RunError};
use crate::terminal::Modes;

/// How the client ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl Ended {
    /// The exit code to pass on: 128 and the number of the signal, as shells say it.
    #[must_use]
    pub const fn exit_code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }

    fn from_status(status: ExitStatus) -> Self {
        #[cfg(unix)]
        if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
            return Self::Signal(signal);
        }
        Self::Code(status.code().unwrap_or(1))
    }
}

/// Starts the client and waits for its end. Dropping the future leaves the client running.
///
/// # Errors
/// [`RunError`] where it was not found, not started, or lost.
pub async fn supervise(plan: &Plan) -> Result<Ended, RunError> {
    let name = || plan.program.to_string_lossy().into_owned();
    let modes = Modes::keep();
    // Before the start: a signal in between must not find us unprepared.
    let mut signals = Signals::listen().map_err(|source| RunError::NotStarted { program: name(), source })?;
    let mut child = command(plan).spawn().map_err(|source| {
        if source.kind() == io::ErrorKind::NotFound {
            return not_found(&plan.program);
        }
        RunError::NotStarted { program: name(), source }
    })?;
    let status = loop {
        tokio::select! {
            status = child.wait() => break status,
            signal = signals.next() => signal.hand_on(&child),
        }
    };
    let ended = status.map(Ended::from_status);
    if let Ok(Ended::Signal(_)) = ended {
        modes.restore();
    }
    ended.map_err(|source| RunError::Lost { program: name(), source })
}

/// A bare name is looked for on the PATH alone, as shells do it.
fn not_found(program: &OsStr) -> RunError {
    let path = Path::new(program);
    let name = program.to_string_lossy().into_owned();
    let is_bare = path.components().count() == 1 && path.file_name() == Some(program);
    if is_bare && path.is_file() { RunError::Here(name) } else { RunError::NotFound(name) }
}

fn command(plan: &Plan) -> Command {
    let program = if cfg!(windows) { on_windows(&plan.program) } else { None };
    let mut command = Command::new(program.as_deref().unwrap_or(&plan.program));
    command.args(&plan.args).envs(plan.env.iter().map(|(name, value)| (name, value)));
    command
}

/// The file that a bare name stands for on Windows, where programs from npm are `.cmd` files that the system
/// finds only by their full name.
fn on_windows(program: &OsStr) -> Option<OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let endings = std::env::var("PATHEXT").unwrap_or_else(|_| ".COM;.EXE;.BAT;.CMD".to_owned());
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    find(program, &folders, &endings, &|file| file.is_file()).map(PathBuf::into_os_string)
}

fn find(
    program: &OsStr,
    folders: &[PathBuf],
    endings: &str,
    is_file: &dyn Fn(&Path) -> bool,
) -> Option<PathBuf> {
    let program = Path::new(program);
    let named_in_full = program.components().count() > 1;
    let here = [PathBuf::new()];
    let folders = if named_in_full { &here[..] } else { folders };
    let endings = || endings.split(';').filter(|ending| !ending.is_empty());
    folders.iter().find_map(|folder| {
        let plain = folder.join(program);
        let with = |ending: &str| {
            let mut file = plain.clone().into_os_string();
            file.push(ending.to_ascii_lowercase());
            PathBuf::from(file)
        };
        // A file without an ending, as npm also leaves there, is a script for other shells.
        let as_named = program.extension().map(|_| plain.clone());
        as_named.into_iter().chain(endings().map(with)).find(|file| is_file(file))
    })
}

/// A signal that reached us.
#[derive(Debug, Clone, Copy)]
enum Received {
    /// From the terminal: the child has it as well.
    Shared,
    /// For us: the child shall have it too.
    #[cfg(unix)]
    Ours(rustix::process::Signal),
    /// Of the child, which stopped perhaps: then we do.
    #[cfg(unix)]
    Child,
    /// We go on: so shall the child.
    #[cfg(unix)]
    Continue,
}

impl Received {
    fn hand_on(self, child: &Child) {
        match self {
            Self::Shared => {}
            #[cfg(unix)]
            Self::Ours(signal) => tell(child, signal),
            #[cfg(unix)]
            Self::Child => {
                if is_stopped(child) {
                    // Where nobody could let us go on, the system does not heed it.
                    let _stopped = rustix::process::kill_process(
                        rustix::process::getpid(),
                        rustix::process::Signal::TSTP,
                    );
                }
            }
            #[cfg(unix)]
            Self::Continue => {
                if is_stopped(child) {
                    tell(child, rustix::process::Signal::CONT);
                }
            }
        }
        #[cfg(not(unix))]
        let _unused = child;
    }
}

/// While we have not waited for it, its number cannot be given to another process.
#[cfg(unix)]
fn pid(child: &Child) -> Option<rustix::process::Pid> {
    child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(rustix::process::Pid::from_raw)
}

#[cfg(unix)]
fn tell(child: &Child, signal: rustix::process::Signal) {
    // It may have ended by itself in this moment: then there is nobody to tell.
    let _told: Option<bool> = pid(child).map(|pid| rustix::process::kill_process(pid, signal).is_ok());
}

/// Whether it stands still at the moment. Its end is left to whoever waits for that.
#[cfg(unix)]
fn is_stopped(child: &Child) -> bool {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let look = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    pid(child).is_some_and(|pid| waitid(WaitId::Pid(pid), look).is_ok_and(|status| status.is_some()))
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    quit: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
    child: tokio::signal::unix::Signal,
    go_on: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            child: signal(SignalKind::child())?,
            go_on: signal(SignalKind::from_raw(rustix::process::Signal::CONT.as_raw()))?,
        })
    }

    async fn next(&mut self) -> Received {
        tokio::select! {
            _ = self.interrupt.recv() => from_terminal_or(rustix::process::Signal::INT),
            _ = self.quit.recv() => from_terminal_or(rustix::process::Signal::QUIT),
            _ = self.terminate.recv() => Received::Ours(rustix::process::Signal::TERM),
            _ = self.hang_up.recv() => Received::Ours(rustix::process::Signal::HUP),
            _ = self.child.recv() => Received::Child,
            _ = self.go_on.recv() => Received::Continue,
        }
    }
}

/// A signal that a terminal sends to all of the group in front of it. Where we are not in front of one, another
/// program has sent it, to us.
#[cfg(unix)]
fn from_terminal_or(signal: rustix::process::Signal) -> Received {
    if crate::terminal::in_front().is_some() { Received::Shared } else { Received::Ours(signal) }
}

/// Ctrl-C and Ctrl-Break reach every program of a console: here, too, we only must not end.
#[cfg(windows)]
struct Signals {
    interrupt: tokio::signal::windows::CtrlC,
    stop: tokio::signal::windows::CtrlBreak,
}

#[cfg(windows)]
impl Signals {
    fn listen() -> io::Result<Self> {
        use tokio::signal::windows::{ctrl_break, ctrl_c};
        Ok(Self { interrupt: ctrl_c()?, stop: ctrl_break()? })
    }

    async fn next(&mut self) -> Received {
        tokio::select! {
            _ = self.interrupt.recv() => Received::Shared,
            _ = self.stop.recv() => Received::Shared,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_finds_shims_by_their_ending() {
        let there = ["/npm/codex", "/npm/codex.cmd", "/bin/claude.exe", "/bin/x.y.exe", "/own/tool.bat"];
        let is_file = |file: &Path| there.iter().any(|known| Path::new(known) == file);
        let folders = [PathBuf::from("/npm"), PathBuf::from("/bin")];
        let rows = [
            ("codex", Some("/npm/codex.cmd")),
            ("codex.cmd", Some("/npm/codex.cmd")),
            ("claude", Some("/bin/claude.exe")),
            ("x.y", Some("/bin/x.y.exe")),
            ("/own/tool", Some("/own/tool.bat")),
            ("/own/claude", None),
            ("gone", None),
        ];
        for (program, file) in rows {
            let found = find(program.as_ref(), &folders, ".COM;.EXE;.BAT;.CMD", &is_file);
            assert_eq!(found.as_deref(), file.map(Path::new), "{program}");
        }
    }

    #[cfg(unix)]
    mod unix {
        use std::os::unix::fs::PermissionsExt;

        use super::*;

        fn shell(script: &str) -> Plan {
            Plan {
                program: "/bin/sh".into(),
                args: vec!["-c".into(), script.into()],
                env: vec![("STEADY_TEST".into(), "a b\"c".into())],
                notices: Vec::new(),
                upstreams: Vec::new(),
                claude_limit: None,
            }
        }

        #[tokio::test]
        async fn exit_codes_and_signals_pass_through() {
            let rows = [
                ("exit 0", Ended::Code(0), 0),
                ("exit 7", Ended::Code(7), 7),
                ("exit 255", Ended::Code(255), 255),
                ("kill -9 $$", Ended::Signal(9), 137),
                ("kill -TERM $$", Ended::Signal(15), 143),
                (r#"test "$STEADY_TEST" = 'a b"c'"#, Ended::Code(0), 0),
                // Our own listening must not have taken Ctrl-C from the child.
                ("kill -INT $$", Ended::Signal(2), 130),
            ];
            for (script, ended, code) in rows {
                let got = supervise(&shell(script)).await.unwrap();
                assert_eq!((got, got.exit_code()), (ended, code), "{script}");
            }
        }

        #[tokio::test]
        async fn the_child_shares_our_process_group() {
            let ours = rustix::process::getpgrp().as_raw_nonzero();
            let script =
                format!(r#"set -- $(cat /proc/$$/stat 2>/dev/null); test "${{5:-{ours}}}" = {ours}"#);
            assert_eq!(supervise(&shell(&script)).await.unwrap(), Ended::Code(0));
        }

        #[tokio::test]
        async fn what_does_not_start_says_why() {
            let missing = Plan { program: "/nowhere/codex".into(), ..shell("") };
            let error = supervise(&missing).await.unwrap_err();
            assert_eq!((error.exit_code(), error.to_string().lines().count()), (127, 2));
            let folder = std::env::temp_dir().join(format!("steady-relay-child-{}", std::process::id()));
            std::fs::create_dir_all(&folder).unwrap();
            let plain = folder.join("codex");
            std::fs::write(&plain, "not a program").unwrap();
            std::fs::set_permissions(&plain, std::fs::Permissions::from_mode(0o600)).unwrap();
            let error = supervise(&Plan { program: plain.into(), ..shell("") }).await.unwrap_err();
            assert_eq!(error.exit_code(), 126, "{error}");
            std::fs::remove_dir_all(&folder).unwrap();
        }
    }
}
