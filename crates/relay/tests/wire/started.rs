//! The program itself as a child, with a home of its own.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::support::SOON;

/// An empty folder that is gone with the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("wire-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let file = self.0.join(name);
        std::fs::write(&file, text).unwrap();
        file
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap()
    }

    /// The names of all that is in it.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// The program, with nothing of the surroundings but `PATH`.
pub(crate) fn program(home: &Folder) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steady-relay"));
    command.env_clear().env("HOME", home.path()).current_dir(home.path()).kill_on_drop(true);
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command
}

/// Runs it to its end.
pub(crate) async fn run(command: &mut Command) -> (i32, String, String) {
    let ended: Output = timeout(SOON, command.stdin(Stdio::null()).output()).await.unwrap().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (ended.status.code().unwrap_or(-1), text(ended.stdout), text(ended.stderr))
}

/// The program while it serves.
pub(crate) struct Serving {
    child: Child,
    pub(crate) addr: SocketAddr,
    said: Arc<Mutex<String>>,
    more: Arc<watch::Sender<()>>,
}

impl Serving {
    /// Starts it and waits until it listens.
    pub(crate) async fn start(command: &mut Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let said = Arc::new(Mutex::new(String::new()));
        let more = Arc::new(watch::Sender::new(()));
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let (into, told) = (Arc::clone(&said), Arc::clone(&more));
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                into.lock().unwrap().push_str(&format!("{line}\n"));
                told.send_replace(());
            }
        });
        let mut serving = Self { child, addr: SocketAddr::from(([0; 4], 0)), said, more };
        serving.until("listening on http://").await;
        let text = serving.said();
        let at = text.split("listening on http://").nth(1).unwrap().lines().next().unwrap();
        serving.addr = at.parse().unwrap();
        serving
    }

    /// All that it wrote to standard error.
    pub(crate) fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// Waits until it has written this.
    pub(crate) async fn until(&self, words: &str) {
        let mut more = self.more.subscribe();
        let in_time = timeout(SOON, more.wait_for(|()| self.said().contains(words))).await.is_ok();
        assert!(in_time, "never said {words:?}: {}", self.said());
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id().unwrap()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    pub(crate) async fn end(&mut self) -> ExitStatus {
        timeout(SOON, self.child.wait()).await.expect("it goes on").unwrap()
    }
}
