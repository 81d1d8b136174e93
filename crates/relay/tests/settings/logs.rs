//! The log: formats, levels, the file and its limits.

use relay_sim::{Script, Upstream};
use serde_json::Value;

#[cfg(unix)]
use crate::program::serve;
use crate::program::{Home, QUICK, good, refusal, turn};

fn retried() -> Script {
    Script::of([refusal(503, "server_is_overloaded"), good()])
}

fn config() -> String {
    format!("[profile.interactive]\n{QUICK}")
}

#[tokio::test]
async fn json_is_one_object_per_line_with_the_fields_of_the_text() {
    let up = Upstream::start(retried()).await.unwrap();
    let home = Home::with_config(&config());
    let mut relay = home.serve(&["--upstream", &up.url(), "--log-format", "json"]).await;
    relay.ask(&turn()).await;
    relay.says("\"event\":\"done\"").await;
    let said = relay.said();
    let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let events: Vec<_> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["listening", "retry", "done"]);
    assert!(lines.iter().all(|line| line["v"] == 1 && line["level"] == "info"));
    assert!(lines.iter().all(|line| line["time"].as_str().is_some_and(|time| time.ends_with('Z'))));
    let retry = &lines[1];
    assert_eq!(
        (&retry["send"], &retry["status"], &retry["fault"]),
        (&2.into(), &503.into(), &"at_capacity".into())
    );
    assert_eq!(
        (&retry["model"], &retry["wait"], &retry["id"]),
        (&"gpt-x".into(), &0.01.into(), &"c1".into())
    );
}

#[tokio::test]
async fn each_level_adds_its_lines() {
    for (level, healthy, after_a_wait) in [
        ("error", "", ""),
        ("warn", "", ""),
        ("info", "", "retry done"),
        ("debug", "done", "retry done"),
        ("trace", "open send head commit done", "open send head fault retry send head commit done"),
    ] {
        let up = Upstream::start(Script::of([good(), refusal(503, "server_is_overloaded"), good()]))
            .await
            .unwrap();
        let home = Home::with_config(&config());
        let file = home.path("relay.log");
        let arguments = ["--upstream", &up.url(), "--log-format", "json", "--log-file"];
        let log_file = [file.to_str().unwrap(), "--log-level"];
        // Above `info` nothing says where it listens.
        let port = free_port();
        let mut child = home
            .program(&arguments)
            .args(log_file)
            .args([level, "--port", &port.to_string()])
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let addr = std::net::SocketAddr::from(([127, 0, 0, 1], port));
        let mut client = loop {
            if let Ok(client) = relay_sim::Client::connect(addr).await {
                break client;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        };
        for _ in 0..2 {
            assert_eq!(client.ask(&turn()).await.unwrap().status, 200);
        }
        terminate(&mut child).await;
        let lines: Vec<Value> =
            home.read("relay.log").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let of = |id: &str| {
            let own = lines.iter().filter(|line| line["id"] == id);
            own.map(|line| line["event"].as_str().unwrap()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!((of("c1").as_str(), of("c2").as_str()), (healthy, after_a_wait), "{level}");
    }
}

fn free_port() -> u16 {
    std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

async fn terminate(child: &mut tokio::process::Child) {
    #[cfg(unix)]
    {
        let pid = rustix::process::Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }
    child.wait().await.unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn the_file_has_times_is_private_and_bounded() {
    use std::os::unix::fs::PermissionsExt as _;
    let up = Upstream::start(good()).await.unwrap();
    let text =
        "[log]\nlevel = \"trace\"\nfile = \"../../logs/relay.log\"\nmax_size = \"4KiB\"\nmax_files = 3\n";
    let home = Home::with_config(text);
    let mut relay = home.serve(&["--upstream", &up.url()]).await;
    let mut client = relay.client().await;
    for _ in 0..40 {
        client.ask(&turn()).await.unwrap();
    }
    relay.stop().await;
    let files: Vec<_> =
        std::fs::read_dir(home.path("logs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    let names = files.iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned());
    let names: std::collections::BTreeSet<_> = names.collect();
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["relay.log", "relay.log.1", "relay.log.2"]);
    for path in files {
        let found = std::fs::metadata(&path).unwrap();
        assert!(found.len() <= 4096 && found.permissions().mode() & 0o777 == 0o600, "{path:?} {found:?}");
    }
    let log = home.read("logs/relay.log.1");
    let line = log.lines().find(|line| line.contains("[done]")).unwrap();
    let (time, rest) = line.split_once(' ').unwrap();
    assert!(time.len() == 24 && time.starts_with("20") && time.ends_with('Z'), "{line}");
    assert!(rest.starts_with("debug [done] outcome=served sends=1"), "{line}");
    assert!(
        home.read("logs/relay.log").ends_with("stopping: no call is open\n"),
        "the last lines are written"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn a_log_file_that_cannot_be_written_stops_the_start() {
    let (code, _, said) = Home::new().run(&["--port", "0", "--log-file", "/dev/full"]).await;
    assert_eq!(code, 2);
    let words = "error: the log file /dev/full cannot be written: this is no file\nhint: name another with --log-file";
    assert!(said.starts_with(words), "{said}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_reader_that_stands_still_does_not_slow_a_call() {
    let up = Upstream::start(good()).await.unwrap();
    let home = Home::new();
    // Nobody reads this pipe after the first lines: it is full after some hundred calls.
    let mut command = home.program(&["--port", "0", "--upstream", &up.url(), "--log-level", "trace"]);
    let mut child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let addr = {
        use tokio::io::{AsyncBufReadExt as _, BufReader};
        let mut lines = BufReader::with_capacity(64, child.stderr.as_mut().unwrap()).lines();
        let line = lines.next_line().await.unwrap().unwrap();
        line.split("http://").nth(1).unwrap().parse().unwrap()
    };
    let mut client = relay_sim::Client::connect(addr).await.unwrap();
    for _ in 0..400 {
        assert_eq!(client.ask(&turn()).await.unwrap().status, 200);
    }
}

#[cfg(unix)]
#[tokio::test]
async fn run_writes_to_the_file_and_nothing_to_the_terminal_of_the_client() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::new();
    let client = home.write("codex", "#!/bin/sh\nexit 7\n");
    std::fs::set_permissions(&client, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (code, _, said) = home.run(&["--log-file", "run.log", "run", "--", client.to_str().unwrap()]).await;
    assert_eq!((code, said.as_str()), (7, ""));
    assert!(home.read("run.log").ends_with("info stopping: no call is open\n"));
}

#[cfg(unix)]
#[tokio::test]
async fn the_limit_of_open_files_is_raised_and_one_that_is_too_low_is_told() {
    let home = Home::new();
    for (limits, is_told) in [("ulimit -Sn 40", false), ("ulimit -n 40", true)] {
        let mut command = tokio::process::Command::new("sh");
        let script = format!("{limits} && exec \"$0\" --port 0");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_steady-relay")]).env_clear().kill_on_drop(true);
        command
            .env("HOME", home.path(""))
            .env("STEADY_RELAY_CONFIG", home.write("x.toml", "[limits]\nconnections = 60\n"));
        let mut relay = serve(&mut command).await;
        let told = relay.said().contains(
            "`limits.connections` is 60, which can take 184 file descriptors, and the system allows 40:",
        );
        assert_eq!(told, is_told, "{}", relay.said());
        let mut open = Vec::new();
        for _ in 0..60 {
            open.push(tokio::net::TcpStream::connect(relay.addr).await.unwrap());
        }
        if is_told {
            relay.says("cannot accept connections for now: ").await;
            // Long enough for some more failures.
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
            assert_eq!(relay.said().matches("cannot accept").count(), 1, "{}", relay.said());
            continue;
        }
        // Whoever came last is served.
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let last = open.last_mut().unwrap();
        let request = format!("GET /healthz HTTP/1.1\r\nhost: {}\r\n\r\n", relay.addr);
        last.write_all(request.as_bytes()).await.unwrap();
        let mut start = [0; 12];
        last.read_exact(&mut start).await.unwrap();
        assert_eq!(&start, b"HTTP/1.1 200");
    }
}
