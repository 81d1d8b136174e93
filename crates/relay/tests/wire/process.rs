//! The program: signals, exit codes, messages, and the client that it starts.

use std::os::unix::fs::PermissionsExt as _;

use relay_sim::fixtures::{codex as wire, openai_jwt};
use relay_sim::{Client, Ending, Event, Reply, Request, Script, Signal as Door, Upstream};
use rustix::process::Signal;

use crate::soon::soon;
use crate::started::{Folder, Serving, program, run};
use crate::support::{SOON, TURN, codex, ms, plain};

const QUICK: &str = concat!(
    "[profile.quick]\nbased_on = \"interactive\"\nbase = \"20ms\"\ncap = \"40ms\"\njitter = \"0s\"\n",
    "client_limit = \"ignored\"\n"
);

async fn serving(home: &Folder, up: &Upstream, config: &str) -> Serving {
    let file = home.write("relay.toml", config);
    let mut command = program(home);
    command.args(["--listen", "127.0.0.1", "--port", "0", "--upstream", &up.url(), "--config"]).arg(file);
    Serving::start(&mut command).await
}

async fn client(relay: &Serving) -> Client {
    Client::connect(relay.addr).await.unwrap().patience(SOON)
}

#[tokio::test]
async fn it_waits_sends_again_and_says_so_in_one_line_each() {
    let up =
        Upstream::start(Script::of([wire::overloaded_503(), Reply::sse(wire::turn("hi"))])).await.unwrap();
    let home = Folder::new();
    let relay = serving(&home, &up, &format!("[relay]\nprofile = \"quick\"\n{QUICK}")).await;
    let before = relay.said();
    assert_eq!(client(&relay).await.ask(&plain(TURN)).await.unwrap().ending, Ending::Complete);
    relay.until("[done]").await;
    let after = relay.said();
    assert_eq!(
        after.strip_prefix(&before).unwrap(),
        format!(
            "[retry] send=2 status=503 fault=at_capacity wait=0.0s model=gpt-x upstream={at} id=c1\n\
             [done] outcome=served sends=2 waited=0.0s fault=at_capacity model=gpt-x upstream={at} id=c1\n",
            at = up.addr()
        )
    );
    // Healthy calls are silent.
    assert_eq!(client(&relay).await.ask(&plain(TURN)).await.unwrap().ending, Ending::Complete);
    assert_eq!(relay.said(), after);
    // What lanes learn is kept, and the history; whoever may change something knows the token. Nothing else is.
    assert_eq!(home.names(), [".local", "relay.toml"]);
    let state = home.path().join(".local/state/steady-relay");
    let mut names: Vec<_> =
        std::fs::read_dir(&state).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    let history = ["history.sqlite", "history.sqlite-shm", "history.sqlite-wal"];
    assert_eq!(names, [&history[..], &["lanes.json", "token"]].concat());
}

#[tokio::test]
async fn a_signal_lets_streams_finish_and_ends_waits() {
    for signal in [Signal::TERM, Signal::INT] {
        let go = Door::new();
        let streams = go.clone();
        let up = Upstream::start(Script::by(move |seen, _| {
            if seen.json()["model"] == "busy" {
                return Reply::status(503).header("retry-after", "30").json("{}");
            }
            let mut events = wire::turn("hi");
            let last = events.pop().unwrap();
            events.extend([Event::wait_for(streams.clone()), last]);
            Reply::sse(events)
        }))
        .await
        .unwrap();
        let home = Folder::new();
        let mut relay = serving(&home, &up, "").await;
        let (mut stream, mut idle, mut wait) =
            (client(&relay).await, client(&relay).await, client(&relay).await);
        assert_eq!(idle.ask(&Request::get("/healthz")).await.unwrap().status, 200);
        stream.send(&plain(TURN)).await.unwrap();
        assert!(stream.read_until(b"hi").await);
        wait.send(&codex("t", r#"{"model":"busy","stream":true,"input":"x"}"#)).await.unwrap();
        relay.until("[retry] send=2 status=503 fault=at_capacity waiting=1").await;
        relay.signal(signal);
        relay
            .until(
                "stopping: 1 open call cut while waiting, 1 has at most 300 s to end; once more to stop now",
            )
            .await;
        let cut = wait.read().await;
        assert!(matches!(cut.ending, Ending::Truncated | Ending::Reset) && cut.status == 0, "{cut:?}");
        assert_eq!(idle.wait_for_close(SOON).await, Ending::CompleteByClose);
        go.release();
        assert_eq!(stream.read().await.ending, Ending::Complete);
        assert_eq!(relay.end().await.code(), Some(0), "{}", relay.said());
        assert_eq!(up.requests().len(), 2);
    }
}

#[tokio::test]
async fn a_second_signal_stops_at_once() {
    let up = Upstream::start(Reply::sse(wire::partial("hello")).hang()).await.unwrap();
    let home = Folder::new();
    let mut relay = serving(&home, &up, "").await;
    let mut stream = client(&relay).await;
    stream.send(&plain(TURN)).await.unwrap();
    assert!(stream.read_until(b"hello").await);
    relay.signal(Signal::INT);
    relay.until("stopping: 1 open call has at most").await;
    relay.signal(Signal::INT);
    assert_eq!(relay.end().await.code(), Some(0));
    assert!(matches!(stream.read().await.ending, Ending::Truncated | Ending::Reset));
    relay.until("stopped, 1 open call dropped").await;
    assert!(up.wait_for(SOON, |seen| seen[0].client_gone_at.is_some()).await);
}

#[tokio::test]
async fn the_wait_for_streams_has_an_end() {
    let up = Upstream::start(Reply::sse(wire::partial("hello")).hang()).await.unwrap();
    let home = Folder::new();
    let mut relay = serving(&home, &up, "[timeouts]\ndrain = \"200ms\"\n").await;
    let mut stream = client(&relay).await;
    stream.send(&plain(TURN)).await.unwrap();
    assert!(stream.read_until(b"hello").await);
    relay.signal(Signal::TERM);
    assert_eq!(relay.end().await.code(), Some(0));
}

#[tokio::test]
async fn an_idle_relay_stops_at_once() {
    let up = Upstream::start(Reply::status(200)).await.unwrap();
    let home = Folder::new();
    let mut relay = serving(&home, &up, "").await;
    relay.signal(Signal::TERM);
    assert_eq!(relay.end().await.code(), Some(0));
    relay.until("stopping: no call is open\n").await;
}

#[tokio::test]
async fn half_a_head_is_not_waited_for() {
    let up = Upstream::start(Reply::status(200)).await.unwrap();
    let home = Folder::new();
    let mut relay = serving(&home, &up, "").await;
    let mut half = client(&relay).await;
    half.send_bytes(b"POST /v1/resp").await.unwrap();
    let mut second = client(&relay).await;
    assert_eq!(second.ask(&Request::get("/healthz")).await.unwrap().status, 200);
    second.send_bytes(b"GET /hea").await.unwrap();
    relay.signal(Signal::TERM);
    assert_eq!(relay.end().await.code(), Some(0));
    relay.until("stopping: no call is open\n").await;
}

#[tokio::test]
async fn an_upload_is_waited_for_and_counted() {
    let up = Upstream::start(Reply::sse(wire::turn("hi"))).await.unwrap();
    let home = Folder::new();
    let mut relay = serving(&home, &up, "").await;
    let mut uploads = client(&relay).await;
    let request = plain(TURN);
    uploads.send_head(&request).await.unwrap();
    let (first, rest) = TURN.split_at(9);
    uploads.send_bytes(first.as_bytes()).await.unwrap();
    tokio::time::sleep(ms(100)).await;
    relay.signal(Signal::TERM);
    relay.until("stopping: 1 open call has at most").await;
    tokio::time::sleep(ms(700)).await;
    uploads.send_bytes(rest.as_bytes()).await.unwrap();
    assert_eq!(uploads.read().await.ending, Ending::Complete);
    assert_eq!(relay.end().await.code(), Some(0));
}

#[tokio::test]
async fn a_port_in_use_is_told_with_its_number() {
    let home = Folder::new();
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for listen in ["127.0.0.1", "localhost"] {
        let (code, out, said) = run(program(&home).args(["--listen", listen, "--port", &port])).await;
        assert_eq!((code, out.as_str()), (1, ""), "{said}");
        assert!(said.starts_with(&format!("error: port {port} is taken on 127.0.0.1")), "{said}");
        assert!(said.contains("\nhint: "), "{said}");
    }
}

#[tokio::test]
async fn all_that_is_wrong_with_the_settings_is_told_at_once() {
    let home = Folder::new();
    let file = home.write("relay.toml", "[relay]\nprot = 1\n\n[timeouts]\nidle = \"5\"\n");
    let mut command = program(&home);
    command.env("STEADY_RELAY_PORT", "many").args(["--profile", "bold", "--config"]).arg(file);
    let (code, out, said) = run(&mut command).await;
    assert_eq!((code, out.as_str()), (2, ""), "{said}");
    for part in ["relay.toml:2:1", "`port`", "relay.toml:5:8", "STEADY_RELAY_PORT", "--profile", "bold"] {
        assert!(said.contains(part), "{part} is missing: {said}");
    }
    assert_eq!(said.matches("error: ").count(), 4, "{said}");
    let (code, _, said) = run(program(&home).args(["--config", "missing.toml"])).await;
    assert!(code == 2 && said.contains("missing.toml"), "{said}");
    let (code, _, said) = run(program(&home).arg("--prot")).await;
    assert!(code == 2 && said.contains("--port"), "{said}");
}

#[tokio::test]
async fn an_upstream_that_is_the_relay_itself_is_refused() {
    let home = Folder::new();
    let port =
        std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port().to_string();
    for host in ["127.0.0.1", "localhost", "[::1]"] {
        let url = format!("http://{host}:{port}/v1");
        let (code, _, said) = run(program(&home).args(["--port", &port, "--upstream", &url])).await;
        assert_eq!(code, 2, "{said}");
        assert!(said.contains("relay itself") && said.contains("hint: "), "{said}");
    }
}

#[tokio::test]
async fn it_listens_on_both_loopback_addresses() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        return;
    }
    let home = Folder::new();
    let relay = Serving::start(program(&home).args(["--port", "0"])).await;
    for host in ["127.0.0.1", "[::1]"] {
        let addr = format!("{host}:{}", relay.addr.port()).parse().unwrap();
        let answer = Client::connect(addr).await.unwrap().ask(&Request::get("/healthz")).await.unwrap();
        assert_eq!(answer.text(), "ok\n");
    }
}

/// A client by the name of Codex, which does as the script says.
fn fake_codex(folder: &Folder, script: &str) -> std::ffi::OsString {
    let file = folder.write("codex", &format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut path = folder.path().as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    path
}

/// Calls the relay that it was given, and keeps the answer.
const CALLS: &str = r#"printf '%s\n' "$@" > "$OUT/args"
base=$(sed -n 's/^openai_base_url="\(.*\)"$/\1/p' "$OUT/args")
curl -sS -o "$OUT/answer" -H "authorization: Bearer $KEY" -H 'content-type: application/json' \
    -d '{"model":"m","stream":true,"input":"hi"}' "$base/responses" || exit 9
exit 7"#;

#[tokio::test]
async fn run_starts_the_client_with_a_relay_of_its_own() {
    let up = Upstream::start(Script::of([
        Reply::status(503).header("retry-after-ms", "30").json(wire::overloaded_body()),
        Reply::sse(wire::turn("hello there")),
    ]))
    .await
    .unwrap();
    let (home, bin, out) = (Folder::new(), Folder::new(), Folder::new());
    let mut command = program(&home);
    command
        .env("PATH", fake_codex(&bin, CALLS))
        .env("OUT", out.path())
        .env("KEY", openai_jwt(&serde_json::json!({})))
        .args(["run", "--profile", "quick", "--upstream", &up.url(), "--config"])
        .arg(bin.write("relay.toml", QUICK))
        .args(["--", "codex", "exec", "--port", "1", "say hi"]);
    let (code, stdout, said) = run(&mut command).await;
    assert_eq!((code, stdout.as_str()), (7, ""), "{said}");
    let given = out.read("args");
    let given: Vec<&str> = given.lines().collect();
    assert_eq!((given[0], &given[2..]), ("-c", &["exec", "--port", "1", "say hi"][..]));
    assert!(out.read("answer").contains("response.completed"));
    assert_eq!(up.requests().len(), 2);
    assert_eq!(said, "steady-relay: 1 call met capacity errors, recovered, 0 s waited, 2 sends\n");
    assert_eq!(home.names(), Vec::<String>::new(), "something was written to the home folder");
}

#[tokio::test]
async fn run_is_silent_where_nothing_was_saved() {
    let up = Upstream::start(Reply::sse(wire::turn("hi"))).await.unwrap();
    let (home, bin, out) = (Folder::new(), Folder::new(), Folder::new());
    let mut command = program(&home);
    command.env("PATH", fake_codex(&bin, CALLS)).env("OUT", out.path()).env("KEY", "sk-proj-test").args([
        "run",
        "--upstream",
        &up.url(),
        "codex",
    ]);
    assert_eq!(run(&mut command).await, (7, String::new(), String::new()));
    assert_eq!(up.requests().len(), 1);
}

#[tokio::test]
async fn run_says_what_it_cannot_start() {
    let home = Folder::new();
    let (code, _, said) = run(program(&home).args(["run", "--", "gemini"])).await;
    assert!(code == 2 && said.contains("hint: `steady-relay setup gemini`"), "{code} {said}");
    let (code, _, said) = run(program(&home).env("PATH", home.path()).args(["run", "--", "codex"])).await;
    assert!(code == 127 && said.contains("`codex` was not found\nhint: "), "{code} {said}");
    let plain = home.path().join("codex");
    std::fs::write(&plain, "no program").unwrap();
    let (code, _, said) = run(program(&home).args(["run", "--", plain.to_str().unwrap()])).await;
    assert!(
        code == 126 && said.contains(" cannot be started: ") && said.contains("\nhint: "),
        "{code} {said}"
    );
    let bin = Folder::new();
    let path = fake_codex(&bin, "kill -TERM $$");
    let (code, _, said) = run(program(&home).env("PATH", path).args(["run", "--", "codex"])).await;
    assert_eq!(code, 128 + 15, "{said}");
}

#[tokio::test]
async fn run_ends_with_its_client_though_a_call_is_open() {
    let up = Upstream::start(Reply::silence()).await.unwrap();
    let (home, bin, out) = (Folder::new(), Folder::new(), Folder::new());
    let script = CALLS.replace("|| exit 9\nexit 7", "&\nread go < \"$OUT/go\"\nexit 3");
    let fifo = out.path().join("go");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let mut command = program(&home);
    command
        .env("PATH", fake_codex(&bin, &script))
        .env("OUT", out.path())
        .env("KEY", "sk-proj-test")
        .args(["run", "--upstream", &up.url(), "codex"])
        .stdin(std::process::Stdio::null())
        .stderr(std::process::Stdio::null());
    let mut child = command.spawn().unwrap();
    assert!(up.wait_for_requests(1, SOON).await);
    std::fs::write(&fifo, "go\n").unwrap();
    let ended = tokio::time::timeout(SOON, child.wait()).await.unwrap().unwrap();
    assert_eq!(ended.code(), Some(3));
    assert!(up.wait_for(SOON, |seen| seen[0].client_gone_at.is_some()).await);
    assert!(up.now() > ms(0));
}

#[tokio::test]
async fn a_signal_that_no_terminal_sent_reaches_the_client() {
    for (signal, code) in [(Signal::INT, 5), (Signal::QUIT, 6), (Signal::TERM, 7), (Signal::HUP, 8)] {
        let home = Folder::new();
        let script = "#!/bin/sh\ntrap 'exit 5' INT; trap 'exit 6' QUIT; trap 'exit 7' TERM; trap 'exit 8' HUP\n\
                      echo > ready; while :; do sleep 0.05; done\n";
        let file = home.write("codex", script);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o700)).unwrap();
        let mut command = program(&home);
        // A group of its own is not in front of a terminal.
        command.args(["run", "--"]).arg(&file).process_group(0);
        let mut child = command.spawn().unwrap();
        let ready = "ready".to_owned();
        soon("it is not ready", async || home.names().contains(&ready).then_some(())).await;
        let pid = rustix::process::Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
        let ended = tokio::time::timeout(SOON, child.wait()).await;
        assert_eq!(ended.expect("it goes on").unwrap().code(), Some(code), "{signal:?}");
    }
}
