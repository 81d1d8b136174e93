//! `warm` of an `[upstream.NAME]`: models of servers of one's own are loaded when the settings ask for it, and never
//! otherwise.

use std::time::Duration;

use relay_sim::{Reply, Request, Script, Signal, Upstream};
use serde_json::{Value, json};

use crate::program::{CONFIG, Home, QUICK};

const SOON: Duration = Duration::from_secs(20);

fn loading() -> Reply {
    Reply::status(503).json(json!({"error": "llm server loading model"}))
}

fn loaded() -> Reply {
    Reply::status(200).json(json!({"model": "llama3", "done": true, "done_reason": "load"}))
}

/// A home whose upstream `home` is this one; calls wait for milliseconds.
fn home(up: &Upstream, more: &str) -> Home {
    let home = Home::new();
    let text = format!(
        "[relay]\nupstream = \"home\"\ngate = false\n[upstream.home]\nurl = \"{}/v1\"\n{more}[profile.interactive]\n{QUICK}",
        up.url()
    );
    home.write(CONFIG, text);
    home
}

async fn warming(relay: &crate::program::Serving) -> Value {
    relay.ask(&Request::get("/__steady/status")).await.json()["warming"].clone()
}

#[tokio::test]
async fn a_model_is_loaded_at_the_start_with_tries_until_it_is() {
    let up = Upstream::start(Script::of([
        loading(),
        Reply::status(200).json(json!({"error": "no memory"})),
        loaded(),
    ]))
    .await
    .unwrap();
    let home = home(&up, "warm = \"llama3\"\nwarm_on_start = true\n");
    let mut relay = home.serve(&["--clock-rate", "50"]).await;
    relay.says("[warm] state=ready tries=3 ").await;
    let said = relay.said();
    assert!(said.contains("[warm] state=loading model=llama3 upstream=home\n"), "{said}");
    assert!(said.contains("[warm] state=again tries=2 wait="), "{said}");
    let seen = up.requests();
    assert_eq!(seen.len(), 3);
    // From the root of the host, whatever the path of the upstream is.
    assert_eq!((seen[0].method.as_str(), seen[0].target.as_str()), ("POST", "/api/generate"));
    assert_eq!((seen[0].json(), seen[0].header("authorization")), (json!({"model": "llama3"}), None));
    assert_eq!(
        warming(&relay).await,
        json!([{"upstream": "home", "model": "llama3", "state": "ready", "tries": 3}])
    );
}

#[tokio::test]
async fn a_call_that_meets_a_cold_model_has_it_loaded_one_at_a_time_and_no_other() {
    let done = Signal::new();
    let script = Script::by({
        let done = done.clone();
        move |seen, at| match seen.path() {
            "/load" => loaded().when(done.clone()),
            _ if at < 3 => loading(),
            _ => Reply::status(200)
                .json(json!({"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]})),
        }
    });
    let up = Upstream::start(script).await.unwrap();
    let home = home(&up, "warm = { path = \"/load\", body = '{\"model\":\"llama3\"}' }\n");
    let mut relay = home.serve(&[]).await;
    let chat = |model: &str| {
        Request::post("/v1/chat/completions")
            .json(json!({"model": model, "messages": [{"role": "user", "content": "hi"}]}))
    };
    // Nothing at the start, and nothing for another model.
    let loads = |up: &Upstream| up.requests().iter().filter(|seen| seen.target == "/load").count();
    assert_eq!(relay.ask(&chat("other")).await.status, 200);
    assert_eq!(loads(&up), 0);
    let served = relay.ask(&chat("llama3:latest")).await;
    assert_eq!((served.status, loads(&up)), (200, 0), "it was warm by then");
    let cold = Upstream::start(Script::by({
        let done = done.clone();
        move |seen, _| if seen.path() == "/load" { loaded().when(done.clone()) } else { loading() }
    }))
    .await
    .unwrap();
    let home = self::home(&cold, "warm = { path = \"/load\", body = '{\"model\":\"llama3\"}' }\n");
    drop(relay);
    relay = home.serve(&[]).await;
    // Refused until its sends are spent: each refusal tells of the cold model, and one load is under way.
    assert_eq!(relay.ask(&chat("llama3")).await.status, 503);
    assert!(cold.wait_for(SOON, |seen| seen.iter().any(|seen| seen.target == "/load")).await);
    assert_eq!(warming(&relay).await[0]["state"], "loading");
    done.release();
    relay.says("[warm] state=ready tries=1 ").await;
    assert_eq!(loads(&cold), 1);
}

#[tokio::test]
async fn who_says_no_is_not_asked_again_and_nothing_is_warmed_by_itself() {
    let up = Upstream::start(Script::by(|_, _| Reply::status(404).json(json!({"error": "model not found"}))))
        .await
        .unwrap();
    let home = home(&up, "warm = \"none\"\nwarm_on_start = true\n");
    let mut relay = home.serve(&[]).await;
    relay.says("[warm] state=gave_up why=said_no tries=1 ").await;
    assert_eq!(up.requests().len(), 1);
    let (code, out, _) = home.run(&["status", "--port", &relay.addr.port().to_string()]).await;
    assert!(code == 0 && out.contains("home none: gave_up, tries 1"), "{out}");
    let quiet = Upstream::start(Script::by(|_, _| loading())).await.unwrap();
    let relay = self::home(&quiet, "").serve(&[]).await;
    let cold = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    assert_eq!(relay.ask(&Request::post("/v1/chat/completions").json(cold)).await.status, 503);
    assert!(quiet.requests().iter().all(|seen| seen.target == "/v1/chat/completions"));
}

#[cfg(unix)]
#[tokio::test]
async fn a_load_ends_with_the_relay() {
    let never = Signal::new();
    let up = Upstream::start(Script::by(move |_, _| loaded().when(never.clone()))).await.unwrap();
    let home = home(&up, "warm = \"llama3\"\nwarm_on_start = true\n");
    let mut relay = home.serve(&[]).await;
    assert!(up.wait_for_requests(1, SOON).await);
    // Were it waited for, this would take five minutes.
    relay.stop().await;
    assert!(up.wait_for(SOON, |seen| seen[0].client_gone_at.is_some()).await);
}

#[tokio::test]
async fn what_is_no_warm_up_is_told() {
    let home = Home::new();
    for (text, words) in [
        ("warm = 3", "not a model or a table of texts"),
        ("warm = \"\"", "is empty"),
        ("warm = { body = \"{}\" }", "has no `path`"),
        ("warm = { path = \"load\" }", "has a `path` that is none"),
        ("warm = { path = \"/load\", x = \"1\" }", "has more than one `path` and one `body`"),
        ("warm_on_start = true", "is to be warmed at the start, and has no `warm`"),
    ] {
        home.write("bad.toml", format!("[upstream.home]\nurl = \"http://localhost:1\"\n{text}\n"));
        let (code, _, said) = home.run(&["config", "check", "bad.toml"]).await;
        assert!(code == 2 && said.contains(words) && said.contains("hint: "), "{text}: {said}");
    }
    home.write(
        "good.toml",
        "[upstream.a]\nurl = \"http://localhost:1\"\nwarm = \"m\"\nwarm_on_start = true\n",
    );
    let (code, out, _) = home.run(&["config", "show", "--config", "good.toml"]).await;
    assert!(code == 0 && out.contains("warm = \"m\"\n") && out.contains("warm_on_start = true\n"), "{out}");
}
