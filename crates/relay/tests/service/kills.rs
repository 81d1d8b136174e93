//! A relay that is killed again and again while the port is held for it.

use std::net::TcpListener;
use std::time::Duration;

use relay_core::Moment;
use relay_sim::fixtures::codex as wire;
use relay_sim::{Client, Ending, Reply, Request, Script, Upstream};
use steady_relay::clock::{Clock as _, SystemClock};
use tokio::process::Child;

use crate::program::{Home, SOON};

/// How often it is killed.
const KILLS: u32 = 100;
/// How many starts are measured before, without a stream.
const STARTS: u32 = 10;

fn turn(model: &str) -> Request {
    let body = format!(r#"{{"model":"{model}","stream":true,"input":[{{"role":"user","content":"hi"}}]}}"#);
    Request::post("/v1/responses").header("authorization", "Bearer sk-test").json(body)
}

#[tokio::test]
async fn a_hundred_kills_under_streams_cost_a_new_request_no_more_than_a_start() {
    let up = Upstream::start(Script::by(|seen, _| {
        if seen.json()["model"] == "endless" {
            Reply::sse(wire::partial("begun")).hang()
        } else {
            Reply::sse(wire::turn("whole"))
        }
    }))
    .await
    .unwrap();
    let home = Home::new();
    let held = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = held.local_addr().unwrap();
    let relay = || -> Child {
        let passed = held.try_clone().unwrap().into();
        let line = ["serve", "--upstream", &up.url(), "--log-level", "error"];
        home.activated(vec![passed], "LISTEN_PID=$$ LISTEN_FDS=1", &line)
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap()
    };
    let clock = SystemClock;
    let since = |begun: Moment| clock.now().since(begun);
    let (mut connecting, mut answering) = (Duration::ZERO, Duration::ZERO);
    // What a start takes here, with a first answer at once: the machine may be slow, and the port is held all along.
    let mut starting = Duration::ZERO;
    let mut running = relay();
    for _ in 0..STARTS {
        running.kill().await.unwrap();
        let mut client = Client::connect(address).await.unwrap().patience(SOON);
        client.send(&turn("short")).await.unwrap();
        let begun = clock.now();
        running = relay();
        assert_eq!(client.read().await.status, 200);
        starting = starting.max(since(begun));
    }
    for kill in 0..KILLS {
        let mut stream = Client::connect(address).await.unwrap().patience(SOON);
        stream.send(&turn("endless")).await.unwrap();
        assert!(stream.read_until(b"begun").await, "kill {kill}: no stream");
        running.kill().await.unwrap();
        let begun = clock.now();
        // Before anybody has started it anew.
        let mut client = Client::connect(address).await.unwrap().patience(SOON);
        client.send(&turn("short")).await.unwrap();
        connecting = connecting.max(since(begun));
        running = relay();
        let answer = client.read().await;
        answering = answering.max(since(begun));
        assert_eq!((answer.status, answer.ending), (200, Ending::Complete), "kill {kill}: {}", answer.text());
        let cut = stream.read().await;
        assert!(matches!(cut.ending, Ending::Truncated | Ending::Reset), "kill {kill}: {:?}", cut.ending);
    }
    assert!(connecting < Duration::from_secs(1), "a connection took {connecting:?}");
    assert!(
        answering < starting + Duration::from_secs(1),
        "an answer took {answering:?}, a start {starting:?}"
    );
    use std::io::Write as _;
    let _unread = writeln!(
        std::io::stderr(),
        "{KILLS} kills: connected within {connecting:?}, answered within {answering:?}, a start takes {starting:?}"
    );
}
