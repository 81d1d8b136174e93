//! The first minute of the README is what happens: each command of its transcript is given to a shell, in a home like a
//! new user's, and what it says is compared.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use relay_sim::fixtures::codex as wire;
use relay_sim::{Reply, Script, Upstream};

/// Both READMEs have the same transcript, which another test sees to.
const README: &str = include_str!("../../../../README.md");

/// What stands in for Codex: it asks for the word, where it was told to, and says it.
const CODEX: &str = r#"#!/bin/sh
for word; do case "$word" in openai_base_url=*) base=${word#*\"}; base=${base%\"} ;; esac; done
steady-relay post "$base/responses" -H 'authorization: Bearer sk-test' -d '{"model":"gpt-x","input":[{"role":"user"}],"stream":true}' |
  grep -q 'the word' && echo 'the word'
"#;

/// A command, and the lines it says.
struct Step<'a> {
    command: &'a str,
    says: Vec<&'a str>,
}

fn transcript() -> Vec<Step<'static>> {
    let (_, text) = README.split_once("## The first minute\n").unwrap();
    let (_, text) = text.split_once("```console\n").unwrap();
    let (text, _) = text.split_once("```").unwrap();
    let mut steps: Vec<Step<'_>> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => steps.push(Step { command, says: Vec::new() }),
            (None, Some(step)) => step.says.push(line),
            (None, None) => panic!("{line} comes before any command"),
        }
    }
    steps
}

/// A home with a Codex that was never set up, and settings of a relay whose waits are short.
struct Home(PathBuf);

impl Home {
    fn new(service: &str) -> Self {
        let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("minute-{}", std::process::id()));
        let _of_before = fs::remove_dir_all(&home);
        fs::create_dir_all(home.join(".codex")).unwrap();
        fs::create_dir_all(home.join("bin")).unwrap();
        fs::create_dir_all(home.join(".config/steady-relay")).unwrap();
        fs::write(home.join(".codex/config.toml"), "model = \"gpt-x\"\n").unwrap();
        fs::write(
            home.join(".config/steady-relay/config.toml"),
            format!(
                "[relay]\nupstream = \"{service}\"\n[profile.interactive]\nbase = \"50ms\"\ncap = \"50ms\"\njitter = \"0ms\"\n"
            ),
        )
        .unwrap();
        let codex = home.join("bin/codex");
        fs::write(&codex, CODEX).unwrap();
        fs::set_permissions(&codex, fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_steady-relay"), home.join("bin/steady-relay"))
            .unwrap();
        Self(home)
    }

    /// What a command says, on both its outputs, as it would stand on a terminal.
    fn says(&self, command: &str) -> String {
        let home = self.0.display().to_string();
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &format!("exec 2>&1; {command}")]).current_dir(&self.0).env_clear();
        shell.env("HOME", &home).env("PATH", format!("{home}/bin:/usr/bin:/bin"));
        String::from_utf8(shell.output().unwrap().stdout).unwrap().replace(&home, "~")
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _left_in_target = fs::remove_dir_all(&self.0);
    }
}

/// How long waits were is nobody's promise.
fn without_times(line: &str) -> String {
    let Some((before, after)) = line.split_once(" s waited") else { return line.to_owned() };
    format!("{} N s waited{after}", before.trim_end_matches(|sign: char| sign.is_ascii_digit()))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_minute_is_what_the_readme_says() {
    let refused = || Reply::status(503).json(serde_json::json!({"error": {"code": "server_is_overloaded"}}));
    let script = Script::of([refused(), refused(), Reply::sse(wire::turn("the word"))]);
    let service = Upstream::start(script).await.unwrap();
    let home = Home::new(&service.url());
    let steps = transcript();
    assert!(steps.len() >= 4, "the transcript is not found any more");
    for Step { command, says } in steps {
        let said = home.says(command);
        let said: Vec<String> = said.lines().map(without_times).collect();
        assert_eq!(said, says.iter().map(|line| without_times(line)).collect::<Vec<_>>(), "$ {command}");
    }
    assert_eq!(service.requests().len(), 3);
    // What was taken back is back.
    assert_eq!(fs::read_to_string(home.0.join(".codex/config.toml")).unwrap(), "model = \"gpt-x\"\n");
}
