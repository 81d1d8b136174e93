//! A relay with a home, and what `diagnose` says of it.

use std::time::Duration;

use relay_sim::{Reply, Request, Script, Upstream};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::child::SOON;
use crate::program::{CONFIG, Home, QUICK, Serving, good, refusal};

/// Quick waits, each call for itself, so that refusals are overcome at once.
pub(crate) fn quick() -> String {
    format!("[relay]\nprofile = \"quick\"\ngate = false\n[profile.quick]\nbased_on = \"batch\"\n{QUICK}")
}

/// A relay in front of an upstream.
pub(crate) struct Scene {
    pub(crate) home: Home,
    pub(crate) relay: Serving,
    pub(crate) flags: [String; 4],
    calls: usize,
}

impl Scene {
    pub(crate) async fn new(url: &str, config: &str) -> Self {
        let home = Home::with_config(config);
        let relay = home.serve(&["--upstream", url]).await;
        let port = relay.addr.port().to_string();
        let flags = ["--port".to_owned(), port, "--upstream".to_owned(), url.to_owned()];
        Self { home, relay, flags, calls: 0 }
    }

    /// A call to this model; its status.
    pub(crate) async fn call(&mut self, model: &str) -> u16 {
        self.ask(&turn(model)).await
    }

    /// A call of this kind.
    pub(crate) async fn ask(&mut self, request: &Request) -> u16 {
        self.calls += 1;
        self.relay.ask(request).await.status
    }

    /// The client hangs up after so long.
    pub(crate) async fn leave(&mut self, model: &str, after: Duration) {
        self.calls += 1;
        let answer = timeout(after, self.relay.ask(&turn(model))).await;
        assert!(answer.is_err(), "it was answered");
    }

    /// All calls have ended, and are recorded as such.
    pub(crate) async fn settle(&self) -> Vec<Value> {
        let ended = async {
            loop {
                let page = self.relay.ask(&Request::get("/__steady/calls")).await.json();
                let calls = page["calls"].as_array().unwrap().clone();
                if calls.len() == self.calls && calls.iter().all(|call| call["closed"].is_object()) {
                    return calls;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(SOON, ended).await.unwrap()
    }

    /// The verdict, for programs.
    pub(crate) async fn verdict(&self) -> Value {
        self.settle().await;
        let flags: Vec<_> = self.flags.iter().map(String::as_str).collect();
        let (code, out, said) = self.home.run(&[&["diagnose", "--json"], &flags[..]].concat()).await;
        assert_eq!((code, said.as_str()), (0, ""), "{out}");
        let verdict: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(verdict["v"], 1);
        verdict
    }
}

pub(crate) fn turn(model: &str) -> Request {
    Request::post("/v1/responses").json(json!({"model": model, "stream": true, "input": "canary-prompt"}))
}

/// A service that gives every send of a model that `is_short` this answer, but each fifth a good one; and wants a key for
/// its list.
pub(crate) async fn short(is_short: fn(&str) -> bool, answer: fn() -> Reply) -> Upstream {
    let count = std::sync::Arc::new(std::sync::Mutex::new(std::collections::BTreeMap::new()));
    let script = Script::by(move |seen, _| {
        let model = seen.json()["model"].as_str().unwrap_or_default().to_owned();
        let mut count = count.lock().unwrap();
        let sends = count.entry(model.clone()).or_insert(0);
        *sends += 1;
        if is_short(&model) && *sends % 5 != 0 { answer() } else { good() }
    });
    Upstream::start(script.for_path("/v1/models", list())).await.unwrap()
}

/// A service that answers every call like this.
pub(crate) async fn always(answer: Reply) -> Upstream {
    Upstream::start(Script::from(answer).for_path("/v1/models", list())).await.unwrap()
}

pub(crate) fn list() -> Reply {
    refusal(401, "no_key")
}

/// The configuration file of a home that has one already.
pub(crate) fn rewrite(home: &Home, text: &str) {
    home.write(CONFIG, text);
}
