//! The program: `--tls`, and the verbs about the certificate.

use std::net::SocketAddr;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::support::{Folder, secured, soon, trusting};

pub(crate) fn program(folder: &Folder, line: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steady-relay"));
    command.args(line).env_clear().env("HOME", folder.path()).env("APPDATA", folder.path());
    command.env("STEADY_RELAY_STATE_DIR", folder.path()).kill_on_drop(true).stdin(Stdio::null());
    command
}

async fn run(command: &mut Command) -> (i32, String, String) {
    let ended = soon(command.output()).await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (ended.status.code().unwrap_or(-1), text(ended.stdout), text(ended.stderr))
}

/// Starts a relay and waits until it says where it is.
pub(crate) async fn serve(folder: &Folder, line: &[&str]) -> (Child, SocketAddr, String) {
    let mut command = program(folder, line);
    let mut child = command.args(["--port", "0"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut said = String::new();
    loop {
        let line = soon(lines.next_line()).await.unwrap().unwrap_or_else(|| panic!("it ended: {said}"));
        said += &format!("{line}\n");
        if let Some(at) = line.split("listening on http://").nth(1) {
            let at = at.parse().unwrap();
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return (child, at, said);
        }
    }
}

#[tokio::test]
async fn it_speaks_https_where_it_is_told_to_and_says_so() {
    let folder = Folder::new();
    let (_child, at, said) = serve(&folder, &["--tls"]).await;
    assert!(said.contains(&format!("https://{at}")) && said.contains("cert trust-help"), "{said}");
    assert!(soon(secured(&trusting(&folder, &[]), at, "127.0.0.1")).await.is_ok());
    assert!(!said.contains("PRIVATE"), "{said}");
    let other = Folder::new();
    let (_child, at, _) = serve(&other, &["serve", "--tls=off"]).await;
    assert!(soon(secured(&trusting(&folder, &[]), at, "127.0.0.1")).await.is_err());
    assert!(!other.ca().exists(), "nothing is made that nobody asked for");
}

#[tokio::test]
async fn the_verbs_tell_what_is_there_and_make_anew() {
    let folder = Folder::new();
    let (code, _, said) = run(&mut program(&folder, &["cert", "show"])).await;
    assert!(code == 1 && said.contains("--tls") && said.contains("\nhint: "), "{said}");
    let (code, out, said) = run(&mut program(&folder, &["cert", "trust-help"])).await;
    assert!(code == 0 && out.contains("NODE_EXTRA_CA_CERTS=") && said.starts_with("note: "), "{out}{said}");
    let (code, _, said) = run(&mut program(&folder, &["cert", "renew"])).await;
    assert!(code == 0 && said.contains(folder.ca().to_str().unwrap()), "{said}");
    let (code, out, said) = run(&mut program(&folder, &["cert", "show", "--json"])).await;
    assert_eq!((code, said.as_str()), (0, ""));
    let page: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(page["names"], serde_json::json!(["localhost"]));
    let (_, out, _) = run(&mut program(&folder, &["cert", "show"])).await;
    assert!(out.contains(page["sha256"].as_str().unwrap()), "{out}");
    let (_, again, _) = run(&mut program(&folder, &["cert", "renew", "--json"])).await;
    assert_ne!(again, out);
    let (_, out, _) = run(&mut program(&folder, &["cert", "trust-help", "--json"])).await;
    let page: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((page["v"].as_u64(), page["file"].as_str()), (Some(1), folder.ca().to_str()));
    let mut chinese = program(&folder, &["cert", "trust-help"]);
    let (_, out, _) = run(chinese.env("LANG", "zh_CN.UTF-8")).await;
    assert!(out.contains("客户端"), "{out}");
}

#[tokio::test]
async fn damaged_files_stop_the_start_and_stay() {
    let folder = Folder::new();
    assert_eq!(run(&mut program(&folder, &["cert", "renew"])).await.0, 0);
    std::fs::write(folder.ca(), "hunter2").unwrap();
    for line in [&["--tls", "--port", "0"][..], &["cert", "show"]] {
        let (code, _, said) = run(&mut program(&folder, line)).await;
        assert!(code == 1 && said.starts_with("error: ") && said.contains("cert renew"), "{said}");
        assert!(!said.contains("hunter2"), "{said}");
    }
    assert_eq!(std::fs::read_to_string(folder.ca()).unwrap(), "hunter2");
    assert_eq!(run(&mut program(&folder, &["cert", "renew"])).await.0, 0);
    let (_child, at, _) = serve(&folder, &["--tls"]).await;
    assert!(soon(secured(&trusting(&folder, &[]), at, "127.0.0.1")).await.is_ok());
}

#[tokio::test]
async fn who_looks_for_a_relay_in_plain_http_finds_one_that_speaks_https_too() {
    let folder = Folder::new();
    let (_child, at, _) = serve(&folder, &["--tls"]).await;
    let port = at.port().to_string();
    let ask = |line: &[&str]| {
        let mut command = program(&folder, line);
        command
            .env("STEADY_RELAY_PORT", &port)
            .env("STEADY_RELAY_TLS", "on")
            .env("USERPROFILE", folder.path());
        command
    };
    assert_eq!(run(&mut ask(&["health"])).await, (0, "ok\n".to_owned(), String::new()));
    let (code, out, _) = run(&mut ask(&["status"])).await;
    assert!(code == 0 && out.contains(&format!(" at {at}, up for ")), "{out}");
    std::fs::create_dir_all(folder.path().join(".codex")).unwrap();
    let config = format!("openai_base_url = \"https://localhost:{port}/v1\"\n");
    std::fs::write(folder.path().join(".codex/config.toml"), config).unwrap();
    let (code, out, _) = run(&mut ask(&["setup", "--status", "--json"])).await;
    assert!(code == 0 && out.contains("\"standing\":\"relay\""), "{out}");
    let (_, _, said) = run(&mut ask(&["setup", "--dry-run"])).await;
    assert!(!said.contains("is taken"), "{said}");
    let (_, out, _) = run(&mut ask(&["doctor", "--json", "--upstream", "http://127.0.0.1:1"])).await;
    let page: serde_json::Value = serde_json::from_str(&out).unwrap();
    let level = |check: &str| {
        let mut all = page["findings"].as_array().unwrap().iter();
        all.find(|finding| finding["check"] == check).unwrap()["level"].as_str().unwrap().to_owned()
    };
    assert_eq!(["port", "version", "client-address"].map(level), ["ok", "ok", "ok"], "{out}");
    // A client that is joined to it is at its port.
    if cfg!(unix) {
        let mut joined = ask(&["run", "--", "/bin/sh", "-c", "echo $OPENAI_BASE_URL"]);
        let (code, out, said) = run(&mut joined).await;
        assert!(code == 0 && out.starts_with(&format!("http://{at}/~")), "{out}{said}");
    }
}
