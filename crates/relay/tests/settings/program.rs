//! The program as a child.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};

use relay_sim::{Event, Reply, Request};
use serde_json::json;
use tokio::process::Command;
use tokio::time::timeout;

use crate::child::SOON;
pub(crate) use crate::child::{Serving, run};

/// Waits of 10 ms, in every profile that is tested.
pub(crate) const QUICK: &str = "base = \"10ms\"\ncap = \"10ms\"\noverloaded_base = \"10ms\"\noverloaded_cap = \"10ms\"\n\
                                jitter = \"0s\"\nuseless_floor = \"10ms\"\n";

/// The folder of one test: its home, and where the program is started. Gone at its end.
pub(crate) struct Home(PathBuf);

impl Home {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("settings-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(path.join("config/steady-relay")).unwrap();
        Self(path)
    }

    /// With this configuration file, in its usual place.
    pub(crate) fn with_config(text: &str) -> Self {
        let home = Self::new();
        home.write(CONFIG, text);
        home
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// The program, with nothing of the surroundings.
    pub(crate) fn program(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_steady-relay"));
        command.args(arguments).env_clear().current_dir(&self.0).kill_on_drop(true).stdin(Stdio::null());
        command.env("HOME", &self.0).env("XDG_CONFIG_HOME", self.path("config"));
        command.env("APPDATA", self.path("config"));
        command
    }

    /// Runs it to its end: exit code, standard output, standard error.
    pub(crate) async fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        run(&mut self.program(arguments)).await
    }

    /// Starts it on a free port.
    pub(crate) async fn serve(&self, arguments: &[&str]) -> Serving {
        serve(self.program(arguments).args(["--port", "0"])).await
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

/// The usual place of the configuration file.
pub(crate) const CONFIG: &str = "config/steady-relay/config.toml";

pub(crate) async fn serve(command: &mut Command) -> Serving {
    Serving::start(command).await
}

impl Serving {
    /// Waits until it has said this.
    pub(crate) async fn says(&mut self, words: &str) {
        let said = timeout(SOON, self.said.wait_for(|said| said.contains(words))).await;
        let in_time = said.is_ok();
        drop(said);
        assert!(in_time, "`{words}` was not said: {}", self.said());
    }

    /// Stops it, and waits until all is written.
    #[cfg(unix)]
    pub(crate) async fn stop(&mut self) {
        self.signal(rustix::process::Signal::TERM);
        timeout(SOON, self.child.wait()).await.unwrap().unwrap();
    }

    #[cfg(unix)]
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = i32::try_from(self.child.id().unwrap()).unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), signal).unwrap();
    }
}

/// A self-contained turn that streams.
pub(crate) fn turn() -> Request {
    Request::post("/v1/responses").json(json!({"model": "gpt-x", "stream": true, "input": "hi"}))
}

/// An answer to it.
pub(crate) fn good() -> Reply {
    let event = |name: &str| Event::named(name, json!({"type": name, "delta": "hi"}));
    Reply::sse(["response.created", "response.output_text.delta", "response.completed"].map(event))
}

/// A refusal with this status and code.
pub(crate) fn refusal(status: u16, code: &str) -> Reply {
    Reply::status(status).json(json!({"error": {"code": code, "type": code, "message": "no"}}))
}
