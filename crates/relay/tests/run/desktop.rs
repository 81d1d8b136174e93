//! A notice on the desktop while a call is held, by a stand-in for the program that shows it.

use std::time::Duration;

use relay_sim::{Reply, Request, Signal, Upstream};
use tokio::process::Command;
use tokio::time::timeout;

use crate::place::{ASKS, Place, SOON, Serving, good, run};

/// Writes down what it is to show, each notice whole.
const SHOWS: &str =
    "{ printf '%s\\n' \"$@\"; echo; } > \"$OUT/shown.$$\" && cat \"$OUT/shown.$$\" >> \"$OUT/shown\"";

/// A place with a desktop, and a service that has no capacity until it is told.
struct Scene {
    place: Place,
    up: Upstream,
    go: Signal,
}

impl Scene {
    async fn new() -> Self {
        let go = Signal::new();
        let gone = go.clone();
        let script = relay_sim::Script::by(move |_, _| if gone.released() { good() } else { full() });
        let place = Place::new();
        place.client("notify-send", SHOWS);
        Self { place, up: Upstream::start(script).await.unwrap(), go }
    }

    /// A program in a session of a desktop.
    fn program(&self, arguments: &[&str]) -> Command {
        let mut command = self.place.program(arguments);
        command.env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere");
        command
    }

    /// A relay whose time goes so fast that a call is held for long at once.
    async fn serve(&self, settings: &str) -> Serving {
        let config = self.place.write("relay.toml", settings).display().to_string();
        let url = self.up.url();
        let flags = ["serve", "--port", "0", "--upstream", &url, "--clock-rate", "20", "--config", &config];
        let relay = Serving::start(&mut self.program(&flags)).await;
        self.place.settings(&format!("[relay]\nport = {}\n", relay.addr.port()));
        relay
    }

    /// Waits until a call has been there for so long, by the clock of the relay.
    async fn held_for_a_minute(&self, relay: &Serving) {
        let age = async || {
            let page = relay.ask(&Request::get("/__steady/status")).await.json();
            page["open_calls"][0]["age_s"].as_f64().unwrap_or_default()
        };
        let grown = timeout(SOON, async { while age().await < 60.0 {} });
        assert!(grown.await.is_ok(), "{}", relay.said());
    }

    /// Waits until so many notices were shown.
    async fn shown(&self, count: usize) -> Vec<String> {
        let all = || self.place.read("shown").split_terminator("\n\n").map(str::to_owned).collect::<Vec<_>>();
        let shown = timeout(SOON, async {
            while all().len() < count {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        assert!(shown.await.is_ok(), "shown: {:?}", all());
        all()
    }
}

fn full() -> Reply {
    Reply::status(503)
        .json(serde_json::json!({"error": {"code": "server_is_overloaded", "message": "the prompt"}}))
}

fn turn() -> Request {
    Request::post("/v1/responses")
        .header("authorization", "Bearer sk-secret")
        .json(r#"{"model":"gpt-x","stream":true,"input":"the prompt"}"#)
}

#[tokio::test]
async fn a_relay_that_serves_tells_the_desktop_what_is_held_and_that_it_is_over() {
    let scene = Scene::new().await;
    let relay = scene.serve("").await;
    let (mut one, mut other) = (relay.client().await, relay.client().await);
    let turn = turn();
    let asks = async { tokio::join!(one.ask(&turn), other.ask(&turn)) };
    let watches = async {
        let first = scene.shown(1).await;
        scene.go.release();
        first
    };
    let ((one, other), first) = tokio::join!(asks, watches);
    assert!(one.unwrap().text().contains("response.completed"));
    assert!(other.unwrap().text().contains("response.completed"));
    let first = first.first().unwrap();
    let begins = "--app-name=Steady Relay\n--\nSteady Relay holds a request\ngpt-x at capacity, held ";
    assert!(first.starts_with(begins) && first.ends_with("(+1)"), "{first}");
    let all = scene.shown(2).await;
    let begins = "--app-name=Steady Relay\n--\nSteady Relay: the wait is over\ngpt-x: nothing is held any more, after ";
    assert!(all.last().unwrap().starts_with(begins), "{all:?}");
    assert_eq!(all.len(), 2);
    let all = all.concat();
    assert!(!all.contains("prompt") && !all.contains("secret"), "{all}");
}

#[tokio::test]
async fn an_alert_is_shown_where_that_is_wanted() {
    let scene = Scene::new().await;
    let settings = "[waiting]\ndesktop = \"off\"\n[alerts]\nlane_closed = \"10s\"\ndesktop = true\n";
    let relay = scene.serve(settings).await;
    let mut client = relay.client().await;
    let turn = turn();
    let watches = async {
        let shown = scene.shown(1).await;
        scene.go.release();
        shown
    };
    let (_, shown) = tokio::join!(client.ask(&turn), watches);
    assert!(shown[0].starts_with("--app-name=Steady Relay\n--\n") && shown[0].contains("gpt-x"), "{shown:?}");
}

#[tokio::test]
async fn in_chinese() {
    let scene = Scene::new().await;
    let relay = scene.serve("[relay]\nlang = \"zh\"\n").await;
    let mut client = relay.client().await;
    let turn = turn();
    let watches = async {
        let shown = scene.shown(1).await;
        scene.go.release();
        shown
    };
    let (_, shown) = tokio::join!(client.ask(&turn), watches);
    assert!(shown.concat().contains("Steady Relay 正在保持一个请求\ngpt-x 容量已满，已等待 "), "{shown:?}");
}

#[tokio::test]
async fn nobody_is_told_where_that_is_switched_off() {
    let scene = Scene::new().await;
    let relay = scene.serve("[waiting]\ndesktop = \"off\"\n").await;
    let mut client = relay.client().await;
    let turn = turn();
    let waits = async {
        scene.held_for_a_minute(&relay).await;
        scene.go.release();
    };
    let (answer, ()) = tokio::join!(client.ask(&turn), waits);
    assert!(answer.unwrap().text().contains("response.completed"));
    assert!(scene.up.requests().len() > 1, "nothing was held");
    assert_eq!(scene.place.read("shown"), "");
}

#[tokio::test]
async fn where_there_is_no_desktop_the_log_says_so_once() {
    let scene = Scene::new().await;
    scene.place.client("notify-send", "echo 'no desktop here' >&2; exit 1");
    scene.place.client("busctl", "echo 'nor here' >&2; echo x >> \"$OUT/tried\"; exit 1");
    let mut relay = scene.serve("").await;
    let mut client = relay.client().await;
    let turn = turn();
    // Both notices are tried: that it is held, and that it is over.
    let watches = async {
        while scene.place.read("tried").is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        scene.go.release();
        while scene.place.read("tried").lines().count() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let (answer, ()) = timeout(SOON, async { tokio::join!(client.ask(&turn), watches) }).await.unwrap();
    assert!(answer.unwrap().text().contains("response.completed"));
    let words = "no desktop shows a notice of it: busctl: nor here";
    let said = matches!(timeout(SOON, relay.said.wait_for(|said| said.contains(words))).await, Ok(Ok(_)));
    assert!(said, "{}", relay.said());
    assert_eq!(relay.said().matches("no desktop shows").count(), 1, "{}", relay.said());
}

#[tokio::test]
async fn without_a_session_no_program_is_asked() {
    let scene = Scene::new().await;
    let url = scene.up.url();
    let flags = ["serve", "--port", "0", "--upstream", &url, "--clock-rate", "20"];
    let mut relay = Serving::start(&mut scene.place.program(&flags)).await;
    let mut client = relay.client().await;
    let turn = turn();
    let watches = async {
        let words = "this program was started outside of any desktop session";
        let said = timeout(SOON, relay.said.wait_for(|said| said.contains(words))).await;
        let said = matches!(said, Ok(Ok(_)));
        scene.go.release();
        said
    };
    let (_, said) = tokio::join!(client.ask(&turn), watches);
    assert!(said, "{}", relay.said());
    assert_eq!(scene.place.read("shown"), "");
}

/// `run` has no terminal here, so its client's calls are its own to tell of, and not the relay's that it joined.
#[tokio::test]
async fn without_a_terminal_run_tells_the_desktop_alone() {
    let scene = Scene::new().await;
    let relay = scene.serve("").await;
    scene.place.client("job", ASKS);
    let mut command = scene.program(&["run", "--", "job"]);
    let watches = async {
        let shown = scene.shown(1).await;
        // The relay has the time to tell of it as well.
        scene.held_for_a_minute(&relay).await;
        scene.go.release();
        shown
    };
    let ((code, _, said), shown) = tokio::join!(run(&mut command), watches);
    assert_eq!(code, 0, "{said}");
    let shown = shown.first().unwrap();
    assert!(shown.contains("\nSteady Relay holds a request\ngpt-x at capacity, held "), "{shown}");
    assert_eq!(scene.place.read("shown").matches("holds a request").count(), 1);
}
