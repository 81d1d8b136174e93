//! The program with a home of its own, told nothing by the surroundings of the test.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder that is gone at the end.
pub(crate) struct Home(pub(crate) PathBuf);

impl Home {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("words-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(path.join("config/steady-relay")).unwrap();
        Self(path)
    }

    pub(crate) fn with_config(text: &str) -> Self {
        let home = Self::new();
        std::fs::write(home.0.join("config/steady-relay/config.toml"), text).unwrap();
        home
    }

    /// The program with these variables alone.
    pub(crate) fn program(&self, line: &[&str], variables: &[(&str, &str)]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_steady-relay"));
        command.args(line).env_clear().current_dir(&self.0).stdin(Stdio::null());
        for name in ["HOME", "USERPROFILE"] {
            command.env(name, &self.0);
        }
        for name in ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "APPDATA", "LOCALAPPDATA"] {
            command.env(name, self.0.join("config"));
        }
        if let Some(root) = std::env::var_os("SystemRoot") {
            command.env("SystemRoot", root);
        }
        command.envs(variables.iter().copied());
        command
    }

    pub(crate) fn run(&self, line: &[&str], variables: &[(&str, &str)]) -> Ran {
        Ran::of(self.program(line, variables).output().unwrap())
    }

    /// Starts a relay on a free port; what it said until it listened.
    pub(crate) fn serve(&self, line: &[&str], variables: &[(&str, &str)]) -> Serving {
        let line = [line, &["--port", "0"]].concat();
        let mut child = self.program(&line, variables).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        while !said.contains("/__steady/\n") {
            said += &(lines.next().expect("it listens").unwrap() + "\n");
        }
        // It goes on to write there.
        std::thread::spawn(move || lines.for_each(drop));
        let url = said.split("http://").nth(1).unwrap().split_whitespace().next().unwrap();
        Serving { child, addr: url.parse().unwrap(), said }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

/// What came of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    pub(crate) fn all(&self) -> String {
        format!("{}{}", self.out, self.err)
    }
}

/// A relay that ends with the test.
pub(crate) struct Serving {
    child: Child,
    pub(crate) addr: SocketAddr,
    pub(crate) said: String,
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Every verb there is, with its path, and the program itself.
pub(crate) fn verbs() -> Vec<Vec<String>> {
    fn below(command: &clap::Command, path: &[String], all: &mut Vec<Vec<String>>) {
        all.push(path.to_vec());
        for verb in command.get_subcommands() {
            below(verb, &[path, &[verb.get_name().to_owned()]].concat(), all);
        }
    }
    let mut all = Vec::new();
    below(&steady_relay::cli::command(relay_core::Lang::English), &[], &mut all);
    all
}

/// Whether there is Chinese in it.
pub(crate) fn is_chinese(text: &str) -> bool {
    text.chars().any(|sign| matches!(sign, '\u{4e00}'..='\u{9fff}'))
}
