//! Each cause, from the wire to the verdict.

use std::time::Duration;

use relay_sim::{Reply, Script, Upstream};
use serde_json::Value;

use crate::program::{Home, good, refusal};
use crate::scene::{Scene, always, quick, rewrite, short};

/// The verdict after so many calls to an upstream that always answers like this.
async fn after(answer: Reply, calls: usize, config: &str) -> Value {
    let up = always(answer).await;
    let mut scene = Scene::new(&up.url(), config).await;
    for _ in 0..calls {
        scene.call("gpt-x").await;
    }
    let verdict = scene.verdict().await;
    // Nothing was sent by us but a question for the list of models, without a key.
    for seen in up.requests().iter().filter(|seen| seen.path() == "/v1/models") {
        assert_eq!((seen.method.as_str(), seen.header("authorization")), ("GET", None));
    }
    assert!(up.requests().iter().any(|seen| seen.path() == "/v1/models"));
    verdict
}

fn is(verdict: &Value, cause: &str, whose: &str) {
    let found = (verdict["verdict"].as_str().unwrap(), verdict["whose"].as_str().unwrap());
    assert_eq!(found, (cause, whose), "{verdict:#}");
}

#[tokio::test]
async fn one_model_at_capacity() {
    let up = short(|model| model == "gpt-x", || refusal(503, "server_is_overloaded")).await;
    let mut scene = Scene::new(&up.url(), &quick()).await;
    for model in ["gpt-y", "gpt-x", "gpt-y", "gpt-x"] {
        assert_eq!(scene.call(model).await, 200);
    }
    let verdict = scene.verdict().await;
    is(&verdict, "model_at_capacity", "model");
    assert_eq!((&verdict["model"], &verdict["sure"]), (&"gpt-x".into(), &true.into()), "{verdict:#}");
    let evidence = verdict["evidence"].as_array().unwrap();
    let failed = &evidence[0];
    assert_eq!((&failed["failed"], &failed["sends"]), (&8.into(), &10.into()), "{verdict:#}");
    assert_eq!(failed["codes"], serde_json::json!(["503", "server_is_overloaded"]));
    let other = evidence.iter().find(|evidence| evidence["what"] == "other_model").unwrap();
    assert_eq!((&other["model"], &other["well"]), (&"gpt-y".into(), &2.into()));
}

#[tokio::test]
async fn a_whole_service_overloaded() {
    let up = short(|_| true, || refusal(503, "server_is_overloaded")).await;
    let mut scene = Scene::new(&up.url(), &quick()).await;
    for model in ["gpt-y", "gpt-x"] {
        assert_eq!(scene.call(model).await, 200);
    }
    is(&scene.verdict().await, "service_overloaded", "service");
}

#[tokio::test]
async fn an_account_that_is_limited_or_spent() {
    let up = short(|_| true, || refusal(429, "rate_limit_exceeded")).await;
    let mut scene = Scene::new(&up.url(), &quick()).await;
    assert_eq!(scene.call("gpt-x").await, 200);
    is(&scene.verdict().await, "rate_limited", "account");
    is(&after(refusal(429, "insufficient_quota"), 2, "").await, "quota_spent", "account");
}

#[tokio::test]
async fn a_credential_that_is_refused() {
    is(&after(refusal(401, "invalid_api_key"), 1, "").await, "credential_refused", "account");
}

#[tokio::test]
async fn a_request_that_cannot_be_served() {
    let verdict = after(refusal(404, "model_not_found"), 1, "").await;
    is(&verdict, "no_such_model", "request");
    assert_eq!(verdict["model"], "gpt-x");
    is(&after(refusal(400, "context_length_exceeded"), 1, "").await, "request_too_long", "request");
    is(&after(refusal(400, "invalid_value"), 1, "").await, "request_refused", "request");
}

#[tokio::test]
async fn a_service_that_fails() {
    is(&after(refusal(500, "server_error"), 2, &quick()).await, "service_failing", "service");
}

#[tokio::test]
async fn a_network_that_is_down() {
    let nobody = relay_sim::upstream::Refused::port().unwrap();
    let mut scene = Scene::new(&nobody.url(), &quick()).await;
    scene.call("gpt-x").await;
    let verdict = scene.verdict().await;
    is(&verdict, "unreachable", "network");
    assert_eq!(verdict["evidence"][0]["reached"], false, "{verdict:#}");
    // The name is not known, and no call was made.
    let home = Home::new();
    let (_, out, _) = home.run(&["diagnose", "--json", "--upstream", "https://up.invalid"]).await;
    is(&serde_json::from_str(&out).unwrap(), "unreachable", "network");
}

#[tokio::test]
async fn tls_or_a_proxy_in_the_way() {
    let (up, _certificate) = Upstream::start_tls(Script::from(good())).await.unwrap();
    let mut scene = Scene::new(&up.url(), &quick()).await;
    scene.call("gpt-x").await;
    is(&scene.verdict().await, "in_the_way", "network");
    let home = Home::new();
    let proxy = relay_sim::upstream::Refused::port().unwrap().url();
    let mut command = home.program(&["diagnose", "--json", "--upstream", "https://up.invalid"]);
    let (_, out, _) = crate::program::run(command.env("HTTPS_PROXY", &proxy)).await;
    is(&serde_json::from_str(&out).unwrap(), "in_the_way", "network");
}

#[tokio::test]
async fn an_edge_or_a_portal() {
    let challenge =
        Reply::status(403).header("cf-mitigated", "challenge").html("<title>Just a moment</title>");
    is(&after(challenge, 1, "").await, "edge", "network");
    // A portal has the same page for everything.
    let up = Upstream::start(Script::from(Reply::status(200).html("<title>Sign in</title>"))).await.unwrap();
    let mut scene = Scene::new(&up.url(), "").await;
    scene.call("gpt-x").await;
    is(&scene.verdict().await, "edge", "network");
}

#[tokio::test]
async fn a_clock_that_is_wrong() {
    let old = |status| refusal(status, "token_expired").header("date", "Mon, 01 Jan 2001 00:00:00 GMT");
    let script = Script::from(old(401)).for_path("/v1/models", old(401));
    let up = Upstream::start(script).await.unwrap();
    let mut scene = Scene::new(&up.url(), "").await;
    scene.call("gpt-x").await;
    is(&scene.verdict().await, "clock_wrong", "machine");
}

#[tokio::test]
async fn a_client_that_hangs_up() {
    let silent = good().after(Duration::from_secs(600));
    let up = always(silent).await;
    let mut scene = Scene::new(&up.url(), "").await;
    for _ in 0..2 {
        scene.leave("gpt-x", Duration::from_millis(1300)).await;
    }
    let verdict = scene.verdict().await;
    is(&verdict, "client_hangs_up", "client");
    assert_eq!(verdict["evidence"][0]["calls"], 2, "{verdict:#}");
}

#[tokio::test]
async fn a_relay_that_refuses_or_gives_up_too_soon() {
    let lost = Reply::close_after_request();
    is(&after(lost, 1, "[relay]\nprofile = \"strict\"\n").await, "relay_refuses", "relay");
    let few = format!("{}sends = 2\n", quick());
    let verdict = after(refusal(503, "server_is_overloaded"), 1, &few).await;
    is(&verdict, "relay_gives_up", "relay");
    assert_eq!(verdict["evidence"][0]["sends"], 2, "{verdict:#}");
}

#[tokio::test]
async fn a_relay_whose_settings_are_wrong() {
    let home = Home::with_config("[relay]\nprot = 1\n");
    let (code, out, _) = home.run(&["diagnose", "--json"]).await;
    assert_eq!(code, 0, "a verdict is what was asked for");
    let verdict: Value = serde_json::from_str(&out).unwrap();
    is(&verdict, "relay_settings", "relay");
    assert!(verdict["evidence"][0]["found"].as_str().unwrap().contains("prot"), "{verdict:#}");
    rewrite(&home, "");
    let up = always(good()).await;
    let port = up.url().rsplit(':').next().unwrap().to_owned();
    let (_, out, _) = home.run(&["diagnose", "--json", "--port", &port, "--upstream", &up.url()]).await;
    is(&serde_json::from_str(&out).unwrap(), "relay_settings", "relay");
}

#[tokio::test]
async fn nothing_wrong_and_too_little_to_tell() {
    let verdict = after(good(), 2, "").await;
    is(&verdict, "nothing_wrong", "nobody");
    assert_eq!(verdict["calls"], 2);
    is(&after(good(), 0, "").await, "too_little", "nobody");
}

#[cfg(feature = "history")]
#[tokio::test]
async fn calls_of_a_relay_that_has_ended_are_known_by_the_history() {
    let up = always(refusal(401, "invalid_api_key")).await;
    let mut scene = Scene::new(&up.url(), "").await;
    scene.call("gpt-x").await;
    scene.settle().await;
    let Scene { home, relay, flags, .. } = scene;
    let mut relay = relay;
    #[cfg(unix)]
    relay.stop().await;
    #[cfg(not(unix))]
    relay.child.kill().await.unwrap();
    let flags: Vec<_> = flags.iter().map(String::as_str).collect();
    let ask = async |more: &[&str]| {
        let (_, out, _) = home.run(&[&["diagnose", "--json"], more, &flags[..]].concat()).await;
        serde_json::from_str::<Value>(&out).unwrap()
    };
    // Where a kill is the only way to end it, what was last written counts.
    if cfg!(unix) {
        let verdict = ask(&[]).await;
        is(&verdict, "credential_refused", "account");
        let unseen = verdict["not_looked_at"].to_string();
        assert!(unseen.contains("a running relay: none is at "), "{unseen}");
        // It was before the time that is looked at.
        let verdict = ask(&["--since", "0s"]).await;
        is(&verdict, "too_little", "nobody");
        assert!(verdict["evidence"][0]["last_ago"].is_u64(), "{verdict:#}");
    }
    rewrite(&home, "[history]\nenabled = false\n");
    let verdict = ask(&[]).await;
    is(&verdict, "too_little", "nobody");
    assert!(verdict["not_looked_at"].to_string().contains("the history is off"), "{verdict:#}");
}

#[tokio::test]
async fn people_get_a_few_lines_in_their_language() {
    let up = always(refusal(401, "invalid_api_key")).await;
    let mut scene = Scene::new(&up.url(), "").await;
    scene.call("gpt-x").await;
    scene.settle().await;
    let flags: Vec<_> = scene.flags.iter().map(String::as_str).collect();
    let line = [&["diagnose"], &flags[..]].concat();
    let (code, out, said) = scene.home.run(&line).await;
    assert_eq!((code, said.as_str()), (0, ""));
    assert!(out.starts_with("verdict: most likely your account: "), "{out}");
    for part in ["\n  -  1 of 1 send to ", "\ndo: sign in again", "\nnot looked at:\n  -  "] {
        assert!(out.contains(part), "{out}");
    }
    let mut command = scene.home.program(&line);
    let (_, out, _) = crate::program::run(command.env("LANG", "zh_CN.UTF-8")).await;
    assert!(out.starts_with("结论：很可能是：账号：") && out.contains("\n建议：在客户端重新登录"), "{out}");
    let (code, _, said) = scene.home.run(&["diagnose", "--since", "soon"]).await;
    assert!(code == 2 && said.contains("--since"), "{said}");
}
