//! Where a credential of the relay's own never goes: another place, a log, a file but its own.

use relay_core::config::Upstream as Entry;
use relay_sim::fixtures::codex as wire;
use relay_sim::{Reply, Request, Script, Seen, Upstream};
use serde_json::json;

use crate::credentials::{WHO, bare, first_token, issuer, key, keys_of, service, with, with_a_kept_token};
use crate::started::{Folder, Serving, program};
use crate::support::{Bench, SOON, TURN};

#[tokio::test]
async fn neither_a_key_nor_a_refresh_token_follows_to_another_place() {
    let elsewhere = Upstream::start(Script::of([Reply::status(200).json("{}")])).await.unwrap();
    let to = format!("{}/v1/responses", elsewhere.url());
    let moved = Reply::status(307).header("location", &to).json("{}");
    let service = Upstream::start(Script::of([moved.clone()])).await.unwrap();
    let folder = Folder::new();
    let bench = Bench::with(with(&service.url(), key("sk-own"), &folder)).await;
    let answer = bench.ask(&bare()).await;
    assert_eq!((answer.status, answer.header("location")), (307, Some(to.as_str())));
    let issuer = Upstream::start(Script::of([moved])).await.unwrap();
    let bench = Bench::with(with(&service.url(), first_token(&issuer), &folder)).await;
    let told = bench.ask(&bare()).await.text();
    assert!(
        told.contains("307") && told.contains("`token_url`") && told.contains(&elsewhere.url()),
        "{told}"
    );
    assert_eq!((issuer.requests().len(), elsewhere.connections()), (1, 0));
    assert_eq!(bench.page().await["credentials"][0]["state"], "failed");
    // Nor to an upstream that does not name it.
    let mut config = with(&service.url(), key("sk-own"), &folder);
    config.upstreams.insert("other".to_owned(), Entry::at(elsewhere.url().parse().unwrap()));
    let bench = Bench::with(config).await;
    bench.ask(&Request::post("/to/other/v1/responses").json(TURN)).await;
    assert_eq!(keys_of(&elsewhere), ["none"]);
}

#[tokio::test]
async fn no_token_is_observed() {
    let (service, issuer) = (service(&["at-2"], 401).await, issuer(3600).await);
    let folder = Folder::new();
    let config = with(&service.url(), first_token(&issuer), &folder);
    let bench = with_a_kept_token(&config, &issuer).await;
    bench.ask(&bare()).await;
    bench.story(1).await;
    let seen = format!("{:?} {} {config:?}", bench.recorder().notices(), bench.page().await);
    let events = bench.recorder().events();
    for token in ["at-1", "at-2", "rt-0", "rt-1", "rt-2"] {
        assert!(!seen.contains(token) && !events.contains(token), "{token}");
    }
}

/// Every file below a folder, with its text.
fn files(folder: &std::path::Path) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            let bytes = std::fs::read(&path).unwrap();
            all.push((path.display().to_string(), String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
    all
}

#[tokio::test]
async fn a_token_is_in_no_log_and_in_no_file_but_its_own() {
    let issue = |_: &Seen, number: usize| {
        let tokens = json!({"access_token": format!("CANARY-at-{number}"), "refresh_token": "CANARY-rt"});
        Reply::status(200).json(tokens)
    };
    let issuer = Upstream::start(Script::by(issue)).await.unwrap();
    let replies = [Reply::sse(wire::turn("hi")), Reply::status(500).json("{}"), Reply::status(401).json(WHO)];
    let service = Upstream::start(Script::of(replies)).await.unwrap();
    let home = Folder::new();
    let config = format!(
        "[relay]\nupstream = \"mine\"\n[log]\nlevel = \"trace\"\n[snapshots]\nenabled = true\n\
         [upstream.mine]\nurl = \"{}\"\ncredential = \"mine\"\n\
         [credential.mine]\ntoken_url = \"{}/token\"\nclient_id = \"me\"\nclient_secret = \"CANARY-secret\"\n",
        service.url(),
        issuer.url()
    );
    let file = home.write("relay.toml", &config);
    let mut command = program(&home);
    command.args(["--listen", "127.0.0.1", "--port", "0", "--state-dir", "state", "--config"]).arg(&file);
    let mut relay = Serving::start(command.env("REFRESH_TOKEN", "CANARY-first")).await;
    let ask = async |request: Request| {
        let mut client = relay_sim::Client::connect(relay.addr).await.unwrap().patience(SOON);
        client.ask(&request).await.unwrap()
    };
    for _ in 0..3 {
        ask(bare()).await;
    }
    let page = ask(Request::get("/__steady/status")).await.text();
    let calls = ask(Request::get("/__steady/calls")).await.text();
    let seen = format!("{:?}", service.requests());
    assert!(seen.contains("Bearer CANARY-at-0") && !seen.contains("CANARY-rt"), "it was sent to its service");
    relay.signal(rustix::process::Signal::TERM);
    assert_eq!(relay.end().await.code(), Some(0));
    relay.until("stopping").await;
    let said = relay.said();
    assert!(said.contains("credential `mine` was obtained"), "{said}");
    let mut kept = 0;
    let all = files(&home.path().join("state")).into_iter();
    for (place, text) in all.chain([("log".into(), said), ("page".into(), page), ("calls".into(), calls)]) {
        if place.ends_with("/credentials/mine.json") {
            assert!(text.contains("CANARY-at-") && !text.contains("CANARY-first"), "{text}");
            kept += 1;
        } else {
            assert!(!text.contains("CANARY"), "{place}");
        }
    }
    assert_eq!(kept, 1);
}
