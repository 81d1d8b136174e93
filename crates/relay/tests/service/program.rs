//! The program as a child with a home of its own.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};
use tokio::time::timeout;

pub(crate) use crate::child::{SOON, run};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_steady-relay");

/// The folder of one test: its home, and where the program is started. Gone at its end.
pub(crate) struct Home(PathBuf);

impl Home {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("service-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// A command with nothing of the surroundings but `PATH`.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("HOME", &self.0).current_dir(&self.0).kill_on_drop(true);
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).stdin(Stdio::null());
        command
    }

    /// The program behind an activator: these sockets are its third descriptor and those that follow.
    pub(crate) fn activated(&self, sockets: Vec<OwnedFd>, variables: &str, arguments: &[&str]) -> Command {
        let mut command = self.command("/bin/sh");
        let mut moves = String::new();
        for (at, socket) in sockets.into_iter().enumerate() {
            // Only the standard descriptors are passed on; the shell moves them to where they belong.
            let socket = Stdio::from(socket);
            moves += &match at {
                0 => {
                    command.stdin(socket);
                    " 3<&0".to_owned()
                }
                _ => {
                    command.stdout(socket);
                    " 4<&1".to_owned()
                }
            };
        }
        let script = format!("exec{moves} </dev/null >/dev/null; {variables} exec \"$0\" \"$@\"");
        command.args(["-c", &script, PROGRAM]).args(arguments).stderr(Stdio::piped());
        command
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

pub(crate) fn signal(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// Waits for its end: exit code and standard error.
pub(crate) async fn end(mut child: Child) -> (Option<i32>, String) {
    let mut said = String::new();
    let mut stderr = child.stderr.take().unwrap();
    timeout(SOON, stderr.read_to_string(&mut said)).await.expect("it goes on").unwrap();
    (timeout(SOON, child.wait()).await.unwrap().unwrap().code(), said)
}
