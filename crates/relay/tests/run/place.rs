//! Where a test takes place: a home of its own, a relay that serves there, and clients that are scripts.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use relay_sim::{Answer, Reply, Request, Upstream};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::soon::soon;

pub(crate) use crate::child::{SOON, Serving, run};

/// The settings of a relay whose waits are short.
pub(crate) const QUICK: &str = "[relay]\nprofile = \"quick\"\n[profile.quick]\nbased_on = \"interactive\"\n\
     base = \"20ms\"\ncap = \"40ms\"\njitter = \"0s\"\noverloaded_base = \"20ms\"\noverloaded_cap = \"40ms\"\n\
     useless_floor = \"20ms\"\n";

/// Asks for an answer under its base URL.
pub(crate) const ASKS: &str = "curl -sS -o \"$OUT/answer\" -H 'content-type: application/json' \
     -H 'authorization: Bearer k' -d '{\"model\":\"gpt-x\",\"stream\":true,\"input\":\"hi\"}' \"$OPENAI_BASE_URL/responses\"\n";

/// A home folder, and beside it one for everything else; both are gone at the end of the test.
pub(crate) struct Place(PathBuf);

impl Place {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("run-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let place = Self(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name));
        std::fs::create_dir_all(place.home()).unwrap();
        std::fs::create_dir_all(place.path("bin")).unwrap();
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.path("home")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.home().join(".local/state/steady-relay")
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let file = self.path(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, text).unwrap();
        file
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// The settings in the home folder.
    pub(crate) fn settings(&self, text: &str) {
        self.write("home/.config/steady-relay/config.toml", text);
    }

    /// The local token.
    pub(crate) fn token(&self) -> String {
        std::fs::read_to_string(self.state().join("token")).unwrap()
    }

    /// A client of this name that is a shell script.
    pub(crate) fn client(&self, name: &str, script: &str) -> PathBuf {
        let file = self.write(&format!("bin/{name}"), &format!("#!/bin/sh\n{script}\n"));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        file
    }

    /// The program, with nothing of the surroundings but what finds programs.
    pub(crate) fn program(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_steady-relay"));
        let path = std::env::var("PATH").unwrap_or_default();
        command.args(arguments).env_clear().env("HOME", self.home()).env("OUT", &self.0);
        command.env("PATH", format!("{}:{path}", self.path("bin").display()));
        command.current_dir(&self.0).kill_on_drop(true).stdin(Stdio::null());
        command
    }

    /// A relay in the home folder, at any free port, with the settings that are there besides.
    pub(crate) async fn serve(&self, up: &Upstream) -> Serving {
        self.serve_at(0, up, &[]).await
    }

    /// The same at this port, with more flags; from then on the settings in the home folder name its port.
    pub(crate) async fn serve_at(&self, port: u16, up: &Upstream, flags: &[&str]) -> Serving {
        let config = self.write("relay.toml", QUICK);
        let (port, config, url) = (port.to_string(), config.display().to_string(), up.url());
        let mut arguments = vec!["serve", "--port", &port, "--config", &config];
        if !flags.contains(&"--no-upstream") {
            arguments.extend(["--upstream", &url]);
        }
        arguments.extend(flags.iter().filter(|flag| **flag != "--no-upstream"));
        let serving = Serving::start(&mut self.program(&arguments)).await;
        self.settings(&format!("[relay]\nport = {}\n", serving.addr.port()));
        serving
    }

    /// Every file of the home folder with its bytes.
    pub(crate) fn contents(&self) -> Vec<(PathBuf, Vec<u8>)> {
        fn walk(folder: &Path, found: &mut Vec<(PathBuf, Vec<u8>)>) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    walk(&path, found);
                    found.push((path, Vec::new()));
                } else {
                    found.push((path.clone(), std::fs::read(path).unwrap()));
                }
            }
        }
        let mut found = Vec::new();
        walk(&self.home(), &mut found);
        found.sort();
        found
    }

    /// Waits until a client has left this file.
    pub(crate) async fn until(&self, name: &str) -> String {
        timeout(SOON, async {
            while self.read(name).is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await
        .unwrap_or_else(|_| panic!("no {name}"));
        self.read(name)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// The port and the key of a base URL.
pub(crate) fn taken_apart(base: &str) -> (u16, String) {
    let rest = base.trim().strip_prefix("http://127.0.0.1:").unwrap_or_else(|| panic!("{base}"));
    let (port, path) = rest.split_once("/~").unwrap_or_else(|| panic!("{base}"));
    (port.parse().unwrap(), path.split('/').next().unwrap().to_owned())
}

/// A refusal for want of capacity.
pub(crate) fn busy() -> Reply {
    Reply::status(503)
        .header("retry-after-ms", "30")
        .json(serde_json::json!({"error": {"code": "server_is_overloaded", "message": "at capacity"}}))
}

/// An answer.
pub(crate) fn good() -> Reply {
    Reply::sse(relay_sim::fixtures::codex::turn("hello"))
}

pub(crate) fn signal(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

impl Serving {
    /// What the endpoint says of a session.
    pub(crate) async fn session(&self, key: &str) -> Answer {
        self.ask(&Request::get(&format!("/__steady/sessions/{key}"))).await
    }

    /// Waits until there is no such session: it ends once the relay sees that the connection that held it is closed.
    pub(crate) async fn forgets(&self, key: &str) {
        soon("the session is still there", async || (self.session(key).await.status == 404).then_some(()))
            .await;
    }

    pub(crate) async fn kill(&mut self) {
        self.child.kill().await.unwrap();
    }
}
