//! Joining a relay that runs: whose it has to be, what the client gets, and how it ends.

use std::time::Duration;

use relay_sim::{Reply, Request, Script, Upstream};
use rustix::process::Signal;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::Instant;

use crate::place::{ASKS, Place, SOON, busy, good, run, signal, taken_apart};

/// Tells its base URL, and waits until it may go on.
const WAITS: &str = "echo \"$OPENAI_BASE_URL\" > \"$OUT/base.new\" && mv \"$OUT/base.new\" \"$OUT/base\"\n\
                     while [ -d \"$OUT\" ] && [ ! -e \"$OUT/go\" ]; do sleep 0.02; done\n";

#[tokio::test]
async fn a_relay_of_this_user_is_joined_and_only_this_sessions_calls_are_counted() {
    let up = Upstream::start(Script::of([busy(), good(), busy(), good()])).await.unwrap();
    let place = Place::new();
    let relay = place.serve(&up).await;
    // Another client's call meets the same fault before.
    let other = Request::post("/v1/responses").json(r#"{"model":"gpt-x","stream":true,"input":"hi"}"#);
    relay.ask(&other).await;
    place.client("job", &format!("echo $OPENAI_BASE_URL\n{ASKS}exit 7"));
    // The relay that runs keeps its history there; `run` adds nothing of its own.
    let contents = || {
        let is_history = |path: &std::path::Path| path.to_string_lossy().contains("history.sqlite");
        place.contents().into_iter().filter(|(path, _)| !is_history(path)).collect::<Vec<_>>()
    };
    let before = contents();
    let (code, base, said) = run(&mut place.program(&["run", "--", "job", "x"])).await;
    assert_eq!((code, taken_apart(&base).0), (7, relay.addr.port()), "{said}");
    assert!(place.read("answer").contains("response.completed"));
    assert_eq!(said, "steady-relay: 1 call met capacity errors, recovered, 0 s waited, 2 sends\n");
    assert_eq!(contents(), before, "something was written to the home folder");
    let status = relay.ask(&Request::get("/__steady/status")).await.json();
    assert_eq!(status["totals"]["calls_saved"], 2);
    // The key is gone with the session, and was never told.
    let (_, key) = taken_apart(&base);
    relay.forgets(&key).await;
    assert!(!relay.said().contains(&key) && !status.to_string().contains(&key));
    let late = relay.ask(&Request::post(&format!("/~{key}/v1/responses"))).await;
    assert_eq!(late.status, 403);
    assert!(!relay.said().contains(&key), "{}", relay.said());
}

#[tokio::test]
async fn the_upstreams_of_a_session_hold_for_its_calls_alone() {
    let one = Upstream::start(good()).await.unwrap();
    let two = Upstream::start(good()).await.unwrap();
    let place = Place::new();
    let relay = place.serve_at(0, &one, &["--no-upstream"]).await;
    let asks = "for base in \"$OPENAI_BASE_URL/responses\" \"$ANTHROPIC_BASE_URL/v1/messages\"; do\n\
                curl -sS -H 'authorization: Bearer k' -d '{\"model\":\"m\"}' \"$base\" > /dev/null; done\n\
                env | grep BASE_URL > \"$OUT/base\"";
    place.client("job", asks);
    let mut command = place.program(&["run", "--", "job"]);
    command.env("OPENAI_BASE_URL", format!("{}/gateway/v1", one.url()));
    command.env("ANTHROPIC_BASE_URL", two.url());
    let (code, _, said) = run(&mut command).await;
    assert_eq!(code, 0, "{said}");
    let targets = |up: &Upstream| up.requests().iter().map(|seen| seen.target.clone()).collect::<Vec<_>>();
    assert_eq!(
        (targets(&one), targets(&two)),
        (vec!["/gateway/v1/responses".to_owned()], vec!["/v1/messages".to_owned()])
    );
    assert!(said.contains("as OPENAI_BASE_URL in the environment says"), "{said}");
    assert!(place.read("base").contains(&relay.addr.port().to_string()));
    let outside = relay.ask(&Request::post("/to/openai_base_url/v1/responses")).await;
    assert_eq!(outside.status, 404, "{}", outside.text());
    // The relay itself is no upstream.
    let mut itself = place.program(&["run", "--", "job"]);
    itself.env("OPENAI_BASE_URL", format!("http://{}/v1", relay.addr));
    let (code, _, said) = run(&mut itself).await;
    assert!(code == 2 && said.contains("already sends this client to the relay itself"), "{code} {said}");
}

/// It listens before it has written its token, and answers after that.
#[tokio::test]
async fn a_relay_that_is_just_starting_for_the_first_time_is_waited_for() {
    let up = Upstream::start(good()).await.unwrap();
    let place = Place::new();
    place.client("job", "echo $OPENAI_BASE_URL");
    let socket = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = socket.local_addr().unwrap().port();
    place.settings(&format!("[relay]\nport = {port}\n"));
    let passed = std::os::fd::OwnedFd::from(socket.try_clone().unwrap());
    let mut command = place.program(&["run", "--", "job"]);
    let starts = async {
        // It is there, and the relay is not.
        let asked = tokio::task::spawn_blocking(move || socket.accept()).await.unwrap().unwrap();
        let serve = format!(
            "exec 3<&0 </dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" serve --upstream {}",
            up.url()
        );
        let mut shell = tokio::process::Command::new("/bin/sh");
        shell.args(["-c", &serve, env!("CARGO_BIN_EXE_steady-relay")]).env_clear().env("HOME", place.home());
        shell.stdin(std::process::Stdio::from(passed)).kill_on_drop(true);
        let relay = crate::place::Serving::start(&mut shell).await;
        drop(asked);
        relay
    };
    let ((code, base, said), _relay) = tokio::join!(run(&mut command), starts);
    assert_eq!((code, taken_apart(&base).0), (0, port), "{said}");
}

#[tokio::test]
async fn what_cannot_be_joined_is_left_alone() {
    let up = Upstream::start(good()).await.unwrap();
    let place = Place::new();
    let relay = place.serve(&up).await;
    place.client("job", "echo $OPENAI_BASE_URL");
    let base = async |arguments: &[&str], variable: (&str, &str)| {
        let mut command = place.program(&[&["run"], arguments, &["--", "job"]].concat());
        let (code, base, said) = run(command.env(variable.0, variable.1)).await;
        assert_eq!((code, said.as_str()), (0, ""), "{arguments:?}");
        taken_apart(&base).0
    };
    let none = ("X", "");
    let ours = relay.addr.port();
    assert_eq!(base(&[], none).await, ours);
    // In which language we speak is nothing of the relay's.
    assert_eq!(base(&["--lang", "zh"], none).await, ours);
    assert_eq!(base(&[], ("STEADY_RELAY_LANG", "zh")).await, ours);
    for arguments in
        [&["--own"][..], &["--profile", "strict"], &["--gate", "off"], &["--upstream", "http://x"]]
    {
        assert_ne!(base(arguments, none).await, ours, "{arguments:?}");
    }
    assert_ne!(base(&[], ("STEADY_RELAY_PROFILE", "strict")).await, ours);
    assert_eq!(base(&[], ("STEADY_RELAY_PORT", &ours.to_string())).await, ours);
    // Why, is told to those who look into it.
    let mut command = place.program(&["run", "--own", "--", "job"]);
    let (_, _, said) = run(command.env("STEADY_RELAY_LOG_LEVEL", "debug")).await;
    assert_eq!(said, "steady-relay: [own] --own\n");
    // A relay with a token is joined by whoever knows it.
    let with_token = [("STEADY_RELAY_TOKEN", "0123456789abcdef")];
    let mut serve = place.program(&["serve", "--port", "0", "--upstream", &up.url()]);
    let guarded = crate::place::Serving::start(serve.envs(with_token)).await;
    place.settings(&format!("[relay]\nport = {}\n", guarded.addr.port()));
    assert_ne!(base(&[], none).await, guarded.addr.port());
    assert_eq!(base(&[], with_token[0]).await, guarded.addr.port());
    // Nobody listens.
    drop((relay, guarded));
    assert_ne!(base(&[], none).await, ours);
}

/// Answers every connection on this port, or any free one, like this, and keeps what came.
async fn squatter(port: u16, answer: String) -> (u16, tokio::sync::mpsc::UnboundedReceiver<String>) {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, came) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = vec![0; 64 << 10];
            let count = stream.read(&mut head).await.unwrap_or(0);
            let _nobody = sender.send(String::from_utf8_lossy(&head[..count]).into_owned());
            let _gone = stream.write_all(answer.as_bytes()).await;
        }
    });
    (port, came)
}

#[tokio::test]
async fn somebody_elses_port_is_shown_nothing() {
    let place = Place::new();
    place.client("job", "echo $OPENAI_BASE_URL");
    std::fs::create_dir_all(place.state()).unwrap();
    std::fs::write(place.state().join("token"), "0123456789abcdef0123456789abcdef").unwrap();
    let json = |body: &str| format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    for answer in [
        json(&format!(r#"{{"v":1,"proof":"{}","has_upstream":false}}"#, "ab".repeat(32))),
        json("{}"),
        "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned(),
        "SSH-2.0-x\r\n".to_owned(),
        String::new(),
    ] {
        let (port, mut came) = squatter(0, answer.clone()).await;
        place.settings(&format!("[relay]\nport = {port}\n"));
        let (code, base, said) = run(&mut place.program(&["run", "--", "job"])).await;
        assert_eq!((code, said.as_str()), (0, ""), "{answer}");
        assert_ne!(taken_apart(&base).0, port, "{answer}");
        let asked = came.recv().await.unwrap();
        assert!(asked.starts_with("GET /__steady/sessions?nonce="), "{asked}");
        assert!(!asked.contains("0123456789abcdef0123456789abcdef") && !asked.contains("x-steady-token"));
        assert!(came.try_recv().is_err(), "it was asked once more");
    }
    // Nor is one that takes the port of a relay that dies while its session is open.
    let up = Upstream::start(good()).await.unwrap();
    let mut relay = place.serve(&up).await;
    place.client("job", WAITS);
    let _child = place.program(&["run", "--", "job"]).spawn().unwrap();
    let (port, key) = taken_apart(&place.until("base").await);
    relay.kill().await;
    let (_, mut came) = squatter(port, json(&format!(r#"{{"v":1,"client":"job","key":"{key}"}}"#))).await;
    // Both who look for the relay have come by then: the one who asks how the session is does so every two seconds.
    for _ in 0..7 {
        let asked = tokio::time::timeout(SOON, came.recv()).await.unwrap().unwrap();
        assert!(asked.starts_with("GET /__steady/sessions?nonce="), "{asked}");
        assert!(!asked.contains("x-steady-token") && !asked.contains(&key), "{asked}");
    }
    place.write("go", "x");
}

#[tokio::test]
async fn kill_9_of_the_wrapper_ends_its_session_at_once() {
    let up = Upstream::start(good()).await.unwrap();
    let place = Place::new();
    let relay = place.serve(&up).await;
    place.client("job", WAITS);
    let child = place.program(&["run", "--", "job"]).spawn().unwrap();
    let (_, key) = taken_apart(&place.until("base").await);
    assert_eq!(relay.session(&key).await.json()["client"], "job");
    signal(&child, Signal::KILL);
    let killed = Instant::now();
    while relay.session(&key).await.status == 200 {
        assert!(killed.elapsed() < Duration::from_secs(1), "the session is still there");
    }
    place.write("go", "x");
}

#[tokio::test]
async fn a_relay_that_restarts_gets_the_session_back_with_its_sums() {
    let up = Upstream::start(Script::of([busy(), good(), busy(), good()])).await.unwrap();
    let place = Place::new();
    let mut relay = place.serve(&up).await;
    let port = relay.addr.port();
    // The second request goes out while the relay comes up: it is held until the session is back.
    let script = format!(
        "{ASKS}echo $OPENAI_BASE_URL > \"$OUT/base\"\nwhile [ -d \"$OUT\" ] && [ ! -e \"$OUT/go\" ]; do sleep 0.02; done\n{ASKS}"
    );
    place.client("job", &script);
    let mut command = place.program(&["run", "--", "job"]);
    let child =
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let (_, key) = taken_apart(&place.until("base").await);
    // It stops at once: what the first call came to, it says in the end.
    signal(&relay.child, Signal::TERM);
    relay.child.wait().await.unwrap();
    let again = place.serve_at(port, &up, &[]).await;
    place.write("go", "x");
    let ended = tokio::time::timeout(SOON, child.wait_with_output()).await.unwrap().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(0), "{said}");
    assert!(place.read("answer").contains("response.completed"), "{}", place.read("answer"));
    assert!(said.starts_with("steady-relay: 2 calls met capacity errors, all recovered, "), "{said}");
    assert!(!again.said().contains(&key));
}

#[tokio::test]
async fn two_clients_share_the_gate_of_a_lane() {
    let up =
        Upstream::start(Script::by(|seen, _| if seen.at < Duration::from_secs(2) { full() } else { good() }))
            .await
            .unwrap();
    let place = Place::new();
    // As shipped: what waits together does so in the gate, and the clock goes faster.
    let url = up.url();
    let flags = ["serve", "--port", "0", "--upstream", &url, "--clock-rate", "10"];
    let relay = crate::place::Serving::start(&mut place.program(&flags)).await;
    place.settings(&format!("[relay]\nport = {}\n", relay.addr.port()));
    place.client("job", ASKS);
    let clients: Vec<_> = (0..2)
        .map(|_| place.program(&["run", "--", "job"]).stderr(std::process::Stdio::piped()).spawn().unwrap())
        .collect();
    let together = tokio::time::timeout(SOON, async {
        loop {
            let status = relay.ask(&Request::get("/__steady/status")).await.json();
            let lanes = status["lanes"].as_array().unwrap().clone();
            if let [lane] = &lanes[..]
                && status["open_calls"].as_array().unwrap().len() == 2
                && lane["state"] == "shut"
            {
                return lane.clone();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let lane = together.await.expect("they never waited in one lane");
    assert_eq!(lane["model"], "gpt-x");
    for client in clients {
        let ended = tokio::time::timeout(SOON, client.wait_with_output()).await.unwrap().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert!(said.contains("1 call met capacity errors, recovered"), "{said}");
    }
}

fn full() -> Reply {
    Reply::status(503)
        .json(serde_json::json!({"error": {"code": "server_is_overloaded", "message": "at capacity"}}))
}
