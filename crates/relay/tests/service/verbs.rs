//! What the verbs write, order and say; of the three systems, where Linux runs.
#![cfg(target_os = "linux")]

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tokio::process::Command;

use crate::program::{Home, PROGRAM, run};

const UNITS: &str = ".config/systemd/user";

/// A service manager that does whatever it is told, and notes it.
fn with_manager(home: &Home) {
    let script = "#!/bin/sh\necho \"$*\" >> \"$HOME/orders\"\n";
    let path = home.write("bin/systemctl", script);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// One that is out of reach.
fn without_manager(home: &Home) {
    let path = home.write("bin/systemctl", "#!/bin/sh\necho 'Failed to connect to bus' >&2\nexit 1\n");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn program(home: &Home, line: &[&str]) -> Command {
    program_at(home, PROGRAM, line)
}

fn program_at(home: &Home, program: &str, line: &[&str]) -> Command {
    let mut command = home.command(program);
    command.args(line);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", home.path("bin").display()));
    command
}

fn orders(home: &Home) -> Vec<String> {
    let text = std::fs::read_to_string(home.path("orders")).unwrap_or_default();
    drop(std::fs::remove_file(home.path("orders")));
    text.lines().map(|line| line.strip_prefix("--user ").unwrap_or(line).to_owned()).collect()
}

fn free_port() -> String {
    let socket = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    socket.local_addr().unwrap().port().to_string()
}

fn unit(home: &Home, name: &str) -> String {
    std::fs::read_to_string(home.path(UNITS).join(name)).unwrap()
}

#[tokio::test]
async fn it_is_installed_twice_as_once_and_removed_without_a_trace() {
    let home = Home::new();
    with_manager(&home);
    home.write("my.toml", "[timeouts]\ndrain = \"20s\"\n");
    let port = free_port();
    let line = ["service", "install", "--port", &port, "--config", "my.toml", "--profile", "patient"];
    let (code, out, said) = run(&mut program(&home, &line)).await;
    assert_eq!((code, out.as_str()), (0, ""), "{said}");
    let ends = "to see what it holds: `steady-relay status`; the desktop says so too before 20 s are over\n";
    assert_eq!(said, format!("installed and running: point clients at http://127.0.0.1:{port}\n{ends}"));
    let service = unit(&home, "steady-relay.service");
    let config = home.path("my.toml").display().to_string();
    let started = format!(
        "ExecStart=\"{PROGRAM}\" \"serve\" \"--port={port}\" \"--profile=patient\" \"--config={config}\"\n"
    );
    assert!(service.contains(&started) && service.contains("TimeoutStopSec=30\n"), "{service}");
    assert!(unit(&home, "steady-relay.socket").contains(&format!("ListenStream=127.0.0.1:{port}\n")));
    let mode = std::fs::metadata(home.path(UNITS).join("steady-relay.service")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let first = orders(&home);
    let enabled = "enable steady-relay.socket steady-relay.service".to_owned();
    assert!(first.contains(&"daemon-reload".to_owned()) && first.contains(&enabled), "{first:?}");
    let (code, _, said) = run(&mut program(&home, &line)).await;
    assert_eq!(code, 0, "{said}");
    assert_eq!(unit(&home, "steady-relay.service"), service);
    assert_eq!(orders(&home), first);
    let (code, out, _) = run(&mut program(&home, &["service", "remove", "--dry-run"])).await;
    assert_eq!((code, out.lines().count()), (0, 5), "{out}");
    let (code, _, said) = run(&mut program(&home, &["service", "remove"])).await;
    assert!(code == 0 && said.contains(&format!("http://127.0.0.1:{port}")), "{said}");
    assert!(orders(&home).iter().any(|order| order.starts_with("disable ")));
    assert!(!home.path(".config/systemd").exists());
    let (code, _, said) = run(&mut program(&home, &["service", "remove"])).await;
    assert!(code == 0 && said.contains("nothing to remove"), "{said}");
}

#[tokio::test]
async fn a_dry_run_prints_the_files_and_writes_none() {
    let home = Home::new();
    without_manager(&home);
    let (code, out, said) = run(&mut program(&home, &["service", "install", "--dry-run"])).await;
    assert_eq!(code, 0, "{said}");
    for name in ["steady-relay.service", "steady-relay.socket", "steady-relay-absent@.service"] {
        assert!(out.contains(&format!("==> {} <==\n", home.path(UNITS).join(name).display())), "{out}");
    }
    let begins = "nothing was done, and here `install` would write nothing: ";
    assert!(said.starts_with(begins) && said.contains("\nhint: "), "{said}");
    let (_, out, _) = run(&mut program(&home, &["service", "install", "--dry-run", "--json"])).await;
    let page: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert!(page["obstacle"].is_string(), "{out}");
    assert_eq!((page["v"].as_u64(), page["files"].as_array().map(Vec::len)), (Some(1), Some(5)));
    with_manager(&home);
    let (code, _, said) = run(&mut program(&home, &["service", "install", "--dry-run", "--port", "9"])).await;
    let words = "`install` would write these files and start the relay at http://127.0.0.1:9\n";
    assert!(code == 0 && said.ends_with(words), "{said}");
    assert!(!home.path(".config").exists());
}

#[tokio::test]
async fn without_a_service_manager_nothing_is_written_and_the_way_out_is_told() {
    let home = Home::new();
    without_manager(&home);
    let (code, _, said) = run(&mut program(&home, &["service", "install", "--port", &free_port()])).await;
    assert_eq!(code, 1, "{said}");
    assert!(said.starts_with("error: ") && said.contains("\nhint: "), "{said}");
    assert!(!home.path(".config").exists());
    for verb in ["start", "stop"] {
        assert_eq!(run(&mut program(&home, &["service", verb])).await.0, 1);
    }
}

/// A service manager that refuses one verb.
fn refusing(home: &Home, verb: &str) {
    let script = format!(
        "#!/bin/sh\nfor word; do [ \"$word\" = {verb} ] && {{ echo 'Job \033[2Jtimed out' >&2; exit 1; }}; done\nexit 0\n"
    );
    let path = home.write("bin/systemctl", &script);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn what_cannot_be_stopped_is_not_removed() {
    let home = Home::new();
    with_manager(&home);
    let port = free_port();
    assert_eq!(run(&mut program(&home, &["service", "install", "--port", &port])).await.0, 0);
    refusing(&home, "stop");
    let (code, _, said) = run(&mut program(&home, &["service", "remove"])).await;
    assert!(code == 1 && said.contains("stop") && said.contains("timed out"), "{said}");
    assert!(!said.contains('\u{1b}') && !said.contains("removed"), "{said:?}");
    assert!(home.path(UNITS).join("steady-relay.service").exists());
    // Out of reach, and somebody is still there.
    without_manager(&home);
    let held = TcpListener::bind(format!("127.0.0.1:{port}")).unwrap();
    assert_eq!(run(&mut program(&home, &["service", "remove"])).await.0, 1);
    assert!(home.path(UNITS).join("steady-relay.service").exists());
    drop(held);
    let (code, _, said) = run(&mut program(&home, &["service", "remove"])).await;
    assert!(code == 0 && !home.path(UNITS).exists(), "{said}");
}

#[tokio::test]
async fn an_install_that_fails_says_what_it_left() {
    let home = Home::new();
    refusing(&home, "enable");
    let (code, _, said) = run(&mut program(&home, &["service", "install", "--port", &free_port()])).await;
    let unit = home.path(UNITS).join("steady-relay.service");
    assert!(code == 1 && unit.exists() && said.contains(unit.to_str().unwrap()), "{said}");
    assert!(said.contains("service remove"), "{said}");
}

#[tokio::test]
async fn a_port_that_another_holds_and_one_that_is_any_are_refused() {
    let home = Home::new();
    with_manager(&home);
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let (code, _, said) = run(&mut program(&home, &["service", "install", "--port", &port])).await;
    assert!(code == 1 && said.contains(&format!("port {port} is taken on 127.0.0.1")), "{said}");
    let (code, _, said) = run(&mut program(&home, &["service", "install", "--port", "0"])).await;
    assert!(code == 2 && said.contains("--port"), "{said}");
    home.write("bad.toml", "[relay]\nprot = 1\n");
    let (code, _, said) = run(&mut program(&home, &["service", "install", "--config", "bad.toml"])).await;
    assert!(code == 2 && said.contains("`port`"), "{said}");
    assert!(!home.path(".config").exists());
}

#[tokio::test]
async fn variables_of_the_terminal_are_named_and_neither_used_nor_shown() {
    let home = Home::new();
    with_manager(&home);
    let mut command = program(&home, &["service", "install", "--port", &free_port()]);
    command.env("STEADY_RELAY_PORT", "1").env("STEADY_RELAY_TOKEN", "hunter2hunter2hunter2");
    command.env("https_proxy", "http://hunter3").env("XDG_STATE_HOME", home.path("state"));
    let (code, out, said) = run(&mut command).await;
    assert_eq!(code, 0, "{said}");
    let usual = home.path(".config/steady-relay/env").display().to_string();
    for words in ["STEADY_RELAY_PORT, STEADY_RELAY_TOKEN", "https_proxy", &usual] {
        assert!(said.contains(words), "{words} is missing: {said}");
    }
    let service = unit(&home, "steady-relay.service");
    let state = format!("Environment=\"XDG_STATE_HOME={}\"\n", home.path("state").display());
    assert!(service.contains(&state), "{service}");
    assert!(![&out, &said, &service].iter().any(|text| text.contains("hunter")), "{out}{said}");
}

#[tokio::test]
async fn status_tells_what_is_installed_and_what_is_wrong() {
    let home = Home::new();
    with_manager(&home);
    let status = ["service", "status", "--json"];
    let (code, out, _) = run(&mut program(&home, &status)).await;
    assert_eq!((code, out.trim()), (6, r#"{"installed":false,"v":1}"#));
    let (code, _, said) = run(&mut program(&home, &["service", "status"])).await;
    assert!(code == 6 && said.contains("service install"), "{said}");
    // A program that goes after it was installed.
    let copy = home.path("steady-relay");
    std::fs::copy(PROGRAM, &copy).unwrap();
    let port = free_port();
    let line = ["service", "install", "--port", &port];
    let mut command = program_at(&home, copy.to_str().unwrap(), &line);
    assert_eq!(run(&mut command).await.0, 0);
    std::fs::remove_file(&copy).unwrap();
    let (code, out, _) = run(&mut program(&home, &status)).await;
    let page: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (code, page["has_program"].as_bool(), page["answer"].as_str()),
        (6, Some(false), Some("nobody"))
    );
    assert!(page["problem"].as_str().unwrap().contains(copy.to_str().unwrap()), "{page}");
    let mut chinese = program(&home, &["service", "status"]);
    let (code, out, said) = run(chinese.env("LANG", "zh_CN.UTF-8")).await;
    assert!(code == 6 && out.contains("程序：") && said.contains("已不存在"), "{out}{said}");
    // A file that is somebody else's is not deleted.
    std::fs::write(home.path(UNITS).join("steady-relay.socket"), "[Socket]\n").unwrap();
    let (code, _, said) = run(&mut program(&home, &["service", "remove"])).await;
    assert!(code == 1 && said.contains("steady-relay.socket"), "{said}");
    assert!(Path::new(&home.path(UNITS).join("steady-relay.service")).exists());
}

#[tokio::test]
async fn a_port_that_is_held_for_the_relay_is_no_strangers() {
    const CODEX: &str = ".codex/config.toml";
    let home = Home::new();
    with_manager(&home);
    let port = free_port();
    let settings = format!("[relay]\nport = {port}\n");
    let config = home.write(".config/steady-relay/config.toml", &settings);
    home.write(CODEX, "model = \"gpt-x\"\n");
    assert_eq!(run(&mut program(&home, &["service", "install"])).await.0, 0);
    // The service manager listens, and has not started the relay.
    let held = TcpListener::bind(format!("127.0.0.1:{port}")).unwrap();
    let (code, _, said) = run(&mut program(&home, &["setup", "--yes"])).await;
    assert!(code == 0 && !said.contains("is taken"), "{said}");
    let codex = std::fs::read_to_string(home.path(CODEX)).unwrap();
    assert!(codex.contains(&format!("http://127.0.0.1:{port}/v1")), "{codex}");
    assert_eq!(std::fs::read_to_string(config).unwrap(), settings);
    let (code, _, said) = run(&mut program(&home, &["health"])).await;
    assert!(code == 6 && said.contains("is held, and no relay answers\nhint: "), "{said}");
    let nobody = format!("http://127.0.0.1:{}", free_port());
    let (_, out, _) = run(&mut program(&home, &["doctor", "--json", "--upstream", &nobody])).await;
    let level = |out: &str, check: &str| {
        let page: serde_json::Value = serde_json::from_str(out).unwrap();
        let all = page["findings"].as_array().unwrap().clone();
        let found = all.into_iter().find(|finding| finding["check"] == check).unwrap();
        found["level"].as_str().unwrap().to_owned()
    };
    let levels = |out: &str| ["port", "service", "client-address"].map(|check| level(out, check));
    assert_eq!(levels(&out), ["ok", "fail", "fail"], "{out}");

    // The relay gets the socket, and answers.
    let socket = held.try_clone().unwrap().into();
    let child = home.activated(vec![socket], "LISTEN_PID=$$ LISTEN_FDS=1", &["serve"]).spawn().unwrap();
    assert_eq!(run(&mut program(&home, &["health"])).await.1, "ok\n");
    let (_, out, _) = run(&mut program(&home, &["doctor", "--json", "--upstream", &nobody])).await;
    assert_eq!(levels(&out), ["ok", "ok", "ok"], "{out}");
    drop(child);

    // Without a service, who holds it is a stranger.
    assert_eq!(run(&mut program(&home, &["service", "remove"])).await.0, 0);
    let stranger = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = stranger.local_addr().unwrap().port();
    home.write(".config/steady-relay/config.toml", &format!("[relay]\nport = {port}\n"));
    let (_, _, said) = run(&mut program(&home, &["setup", "--dry-run"])).await;
    assert!(said.contains(&format!("port {port} is taken by another program")), "{said}");
}
