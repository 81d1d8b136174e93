//! A person is told of what needs one: by a webhook, by a program, in the log. What hangs or fails slows nothing.

use std::time::Duration;

use relay_core::alert::Kind;
use relay_core::config::{AlertSettings, Config};
use relay_core::event::Event;
use relay_sim::fixtures::codex as wire;
use relay_sim::{Reply, Request, Script, Upstream};
use serde_json::Value;
use steady_relay::observe::Notice;
use tokio::time::Instant;

use crate::lanes::{Busy, bytes_for, gated, gets, shut};
use crate::started::{Folder, Serving, program};
use crate::support::{Bench, SOON, TURN, ms, plain, towards};

/// Stands in everything that a client or a service may say.
const CANARY: &str = "CANARY0SECRET";

fn spent() -> Reply {
    let body = format!(
        r#"{{"error":{{"code":"insufficient_quota","type":"insufficient_quota","message":"{CANARY} sk-proj-{CANARY}"}}}}"#
    );
    Reply::status(429).header("set-cookie", format!("a={CANARY}")).header("x-request-id", CANARY).json(body)
}

/// A service whose quota is spent for so many requests.
async fn spent_for(requests: usize) -> Upstream {
    let script =
        Script::by(move |_, number| if number < requests { spent() } else { Reply::sse(wire::turn("x")) });
    Upstream::start(script).await.unwrap()
}

/// A place that alerts are posted to.
async fn hook(reply: impl Fn(usize) -> Reply + Send + Sync + 'static) -> Upstream {
    Upstream::start(Script::by(move |_, number| reply(number))).await.unwrap()
}

fn settings(up: &Upstream, change: impl FnOnce(&mut AlertSettings)) -> Config {
    let mut config = towards(&up.url());
    change(&mut config.alerts);
    config
}

fn posting(up: &Upstream, hook: &Upstream) -> Config {
    settings(up, |alerts| {
        alerts.webhook = Some(format!("{}/services/{CANARY}?x={CANARY}", hook.url()).parse().unwrap());
        alerts.within = ms(300);
    })
}

/// Waits until the relay has said what is wished.
async fn until(bench: &Bench, what: &str, wish: impl Fn(&Notice) -> bool) {
    let by = Instant::now() + SOON;
    while !bench.recorder().notices().iter().any(&wish) {
        assert!(Instant::now() < by, "never told of {what}: {:#?}", bench.recorder().notices());
        tokio::time::sleep(ms(5)).await;
    }
}

fn advice(words: &'static str) -> impl Fn(&Notice) -> bool {
    move |notice| matches!(notice, Notice::Advice(said) if said.contains(words))
}

fn alert(kind: Kind) -> impl Fn(&Notice) -> bool {
    move |notice| matches!(notice, Notice::Alert(alert) if alert.kind == kind)
}

fn names(json: &Value) -> (&str, &str) {
    (json["kind"].as_str().unwrap(), json["state"].as_str().unwrap())
}

#[tokio::test]
async fn a_lane_that_stays_closed_is_posted_and_again_when_it_opens() {
    let (busy, hook) = (Busy::start().await, hook(|_| Reply::status(204)).await);
    let mut config = gated(&busy.up.url(), ms(4000));
    config.alerts = posting(&busy.up, &hook).alerts;
    config.alerts.lane_closed = ms(200);
    let bench = Bench::with(config).await;
    let [mut a, mut b] = shut(&bench).await;
    assert!(hook.wait_for_requests(1, SOON).await);
    let first = hook.requests().swap_remove(0);
    assert_eq!((first.method.as_str(), first.header("content-type")), ("POST", Some("application/json")));
    assert!(first.header("user-agent").unwrap().starts_with("steady-relay/"));
    assert_eq!(first.path(), format!("/services/{CANARY}"));
    let json = first.json();
    assert_eq!(names(&json), ("lane_closed", "raised"));
    assert_eq!((json["model"].as_str(), json["fault"].as_str()), (Some("gpt-x"), Some("at_capacity")));
    assert!(
        json["lasted_s"].as_f64().unwrap() >= 0.2
            && json["text"].as_str().unwrap().contains("has taken no calls")
    );
    assert_eq!(json["lane"].as_str().unwrap().len(), 16);
    busy.back.release();
    busy.door.release();
    gets(&mut a, &bytes_for("a")).await;
    gets(&mut b, &bytes_for("b")).await;
    assert!(hook.wait_for_requests(2, SOON).await);
    let json = hook.requests().swap_remove(1).json();
    assert_eq!(names(&json), ("lane_closed", "resolved"));
    until(&bench, "the lane", alert(Kind::LaneClosed)).await;
}

#[tokio::test]
async fn of_many_alerts_of_a_kind_one_is_told_in_a_time_with_how_many_were_held_back() {
    let (up, hook) = (spent_for(7).await, hook(|_| Reply::status(200)).await);
    let mut config = posting(&up, &hook);
    config.alerts.every = ms(700);
    let bench = Bench::with(config).await;
    for _ in 0..5 {
        assert_eq!(bench.ask(&plain(TURN)).await.status, 429);
    }
    assert!(hook.wait_for_requests(1, SOON).await);
    tokio::time::sleep(ms(900)).await;
    bench.ask(&plain(TURN)).await;
    assert!(hook.wait_for_requests(2, SOON).await);
    bench.ask(&plain(TURN)).await;
    assert_eq!(bench.ask(&plain(TURN)).await.status, 200);
    assert!(hook.wait_for_requests(3, SOON).await);
    let told: Vec<_> = hook.requests().iter().map(|seen| seen.json()).collect();
    let told: Vec<_> = told.iter().map(|json| (names(json), json["held_back"].as_u64().unwrap())).collect();
    let kind = "quota_spent";
    assert_eq!(told, [((kind, "raised"), 0), ((kind, "raised"), 4), ((kind, "resolved"), 1)]);
}

#[tokio::test]
async fn a_webhook_that_hangs_slows_neither_calls_nor_the_other_ways() {
    let (up, hook) = (spent_for(1).await, hook(|_| Reply::silence()).await);
    let home = Folder::new();
    let mut config = posting(&up, &hook);
    config.alerts.within = Duration::from_secs(30);
    config.alerts.command = shell(&format!("cat > {}", home.path().join("told").display()));
    let bench = Bench::with(config).await;
    bench.ask(&plain(TURN)).await;
    assert!(hook.wait_for_requests(1, SOON).await, "it hangs now");
    let began = Instant::now();
    for _ in 0..20 {
        assert_eq!(bench.ask(&plain(TURN)).await.status, 200);
    }
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    if cfg!(unix) {
        assert!(told_in(&home, "told").await.contains("\"quota_spent\""));
    }
    until(&bench, "the quota", alert(Kind::QuotaSpent)).await;
}

#[tokio::test]
async fn a_webhook_that_fails_is_tried_once_more_and_told_of_once_without_its_path() {
    let (up, hook) =
        (spent_for(2).await, hook(|number| Reply::status(if number == 1 { 200 } else { 500 })).await);
    let mut config = posting(&up, &hook);
    config.alerts.every = Duration::ZERO;
    let bench = Bench::with(config).await;
    bench.ask(&plain(TURN)).await;
    assert!(hook.wait_for_requests(2, SOON).await, "the second try is taken");
    bench.ask(&plain(TURN)).await;
    bench.ask(&plain(TURN)).await;
    assert!(hook.wait_for_requests(6, SOON).await, "raised and resolved, twice each");
    until(&bench, "the failure", advice("it said 500")).await;
    let said: Vec<_> =
        bench.recorder().notices().into_iter().filter(advice("an alert could not be posted")).collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(!format!("{:?}", bench.recorder().notices()).contains(CANARY));
}

#[tokio::test]
async fn a_webhook_is_reached_by_the_proxy_on_the_way() {
    let (up, proxy) = (spent_for(1).await, hook(|_| Reply::status(200)).await);
    let mut config =
        settings(&up, |alerts| alerts.webhook = Some("http://hooks.example/x?a=1".parse().unwrap()));
    config.proxy = proxy.url().parse().unwrap();
    let bench = Bench::with(config).await;
    bench.ask(&plain(TURN)).await;
    assert!(proxy.wait_for_requests(1, SOON).await);
    let seen = proxy.requests().swap_remove(0);
    assert_eq!(
        (seen.target.as_str(), seen.header("host")),
        ("http://hooks.example/x?a=1", Some("hooks.example"))
    );
}

#[tokio::test]
async fn an_answer_of_a_rule_that_asks_for_it_is_told() {
    let busy = |load: &str| Reply::status(503).header("x-codex-system-load", load).json("{}");
    let up = Upstream::start(Script::of([busy("98%"), Reply::sse(wire::turn("x"))])).await.unwrap();
    let hook = hook(|_| Reply::status(200)).await;
    let home = Folder::new();
    let text = format!(
        "[relay]\nupstream = \"{}\"\n[alerts]\nwebhook = \"{}/x\"\n[[rule]]\nstatus = [429, \"5xx\"]\n\
         header = {{ name = \"x-codex-system-load\", at_least = \"95%\" }}\nfault = \"overloaded\"\nalert = true\n\
         [profile.interactive]\nbase = \"10ms\"\noverloaded_base = \"10ms\"\njitter = \"0s\"\n",
        up.url(),
        hook.url()
    );
    let relay = serving(&home, &text).await;
    let mut client = relay_sim::Client::connect(relay.addr).await.unwrap().patience(SOON);
    assert_eq!(client.ask(&plain(TURN)).await.unwrap().status, 200);
    assert!(hook.wait_for_requests(2, SOON).await);
    let [raised, resolved] = [0, 1].map(|at| hook.requests()[at].json());
    assert_eq!((names(&raised), raised["rule"].as_str()), (("rule", "raised"), Some("[[rule]] number 1")));
    assert_eq!((names(&resolved), raised["fault"].as_str()), (("rule", "resolved"), Some("overloaded")));
    relay
        .until(
            "[alert] state=raised kind=rule lasted=0.0s fault=overloaded rule=[[rule]]_number_1 model=gpt-x",
        )
        .await;
}

#[cfg(unix)]
async fn serving(home: &Folder, text: &str) -> Serving {
    let file = home.write("relay.toml", text);
    let mut command = program(home);
    command.args(["--listen", "127.0.0.1", "--port", "0", "--config"]).arg(file);
    Serving::start(&mut command).await
}

fn shell(script: &str) -> Vec<String> {
    ["sh", "-c", script].map(str::to_owned).to_vec()
}

/// What a file says, once it says something whole.
async fn told_in(home: &Folder, name: &str) -> String {
    let by = Instant::now() + SOON;
    loop {
        let text = std::fs::read_to_string(home.path().join(name)).unwrap_or_default();
        if text.ends_with(['}', '\n']) {
            return text;
        }
        assert!(Instant::now() < by, "{name} was never written");
        tokio::time::sleep(ms(5)).await;
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_program_gets_the_alert_on_its_standard_input_and_in_variables() {
    let up = spent_for(1).await;
    let home = Folder::new();
    let at = home.path().display();
    let script = format!(
        "env | grep ^STEADY_ > {at}/fresh; mv {at}/fresh {at}/variables; cat > {at}/told; [ -z \"$1$STEADY_RELAY_TOKEN\" ]"
    );
    let bench = Bench::with(settings(&up, |alerts| alerts.command = shell(&script))).await;
    bench.ask(&plain(TURN)).await;
    let json: Value = serde_json::from_str(&told_in(&home, "told").await).unwrap();
    assert_eq!(names(&json), ("quota_spent", "raised"));
    let variables = told_in(&home, "variables").await;
    for line in ["STEADY_ALERT_KIND=quota_spent", "STEADY_ALERT_STATE=raised", "STEADY_ALERT_MODEL=gpt-x"] {
        assert!(variables.lines().any(|found| found == line), "{line}: {variables}");
    }
    assert!(variables.contains(&format!("STEADY_ALERT_TEXT={}", json["text"].as_str().unwrap())));
}

#[cfg(unix)]
#[tokio::test]
async fn a_program_that_takes_too_long_is_killed_with_all_that_it_started() {
    let up = spent_for(1).await;
    let home = Folder::new();
    let at = home.path().display();
    let script = format!("sleep 600 & echo $! > {at}/fresh; mv {at}/fresh {at}/child; wait");
    let config = settings(&up, |alerts| (alerts.command, alerts.within) = (shell(&script), ms(400)));
    let bench = Bench::with(config).await;
    bench.ask(&plain(TURN)).await;
    let child = told_in(&home, "child").await;
    until(&bench, "the kill", advice("was killed: it took longer than 0.4 s")).await;
    let pid = rustix::process::Pid::from_raw(child.trim().parse().unwrap()).unwrap();
    let by = Instant::now() + SOON;
    // Whoever adopts it may take a moment to hear of its end.
    while rustix::process::test_kill_process(pid).is_ok() && !is_zombie(child.trim()) {
        assert!(Instant::now() < by, "{pid:?} goes on");
        tokio::time::sleep(ms(5)).await;
    }
}

#[cfg(unix)]
fn is_zombie(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "))
}

#[tokio::test]
async fn a_program_that_fails_or_is_not_there_is_told_of() {
    for (command, words) in [
        (shell("exit 3"), "failed (exit status: 3)"),
        (vec!["/no/such/program".to_owned()], "could not be started"),
    ] {
        if !cfg!(unix) && command.len() > 1 {
            continue;
        }
        let up = spent_for(1).await;
        let bench = Bench::with(settings(&up, |alerts| alerts.command = command)).await;
        assert_eq!(bench.ask(&plain(TURN)).await.status, 429);
        until(&bench, words, advice(words)).await;
    }
}

#[tokio::test]
async fn settings_of_alerts_change_while_the_relay_runs() {
    let (up, hook) = (spent_for(9).await, hook(|_| Reply::status(200)).await);
    let mut none = settings(&up, |alerts| alerts.kinds.clear());
    none.alerts.every = Duration::ZERO;
    let bench = Bench::with(none).await;
    bench.ask(&plain(TURN)).await;
    bench.reload(posting(&up, &hook));
    bench.ask(&plain(TURN)).await;
    assert!(hook.wait_for_requests(1, SOON).await);
    until(&bench, "the quota", alert(Kind::QuotaSpent)).await;
    let mut quiet = posting(&up, &hook);
    (quiet.alerts.log, quiet.alerts.every) = (false, Duration::ZERO);
    let before = bench.recorder().notices().into_iter().filter(alert(Kind::QuotaSpent)).count();
    bench.reload(quiet);
    bench.ask(&plain(TURN)).await;
    assert!(hook.wait_for_requests(2, SOON).await);
    assert_eq!(bench.recorder().notices().into_iter().filter(alert(Kind::QuotaSpent)).count(), before);
}

#[tokio::test]
async fn alerts_hold_no_secret() {
    let (up, hook) = (spent_for(9).await, hook(|_| Reply::status(200)).await);
    let home = Folder::new();
    let mut config = posting(&up, &hook);
    config.alerts.kinds = Kind::ALL.into();
    config.alerts.command = shell(&format!("env >> {0}/all; cat >> {0}/all", home.path().display()));
    let bench = Bench::with(config).await;
    let body = TURN.replace("gpt-x", &format!("sk-ant-{CANARY}")).replace("hi", CANARY);
    let request = Request::post(&format!("/v1/responses?key={CANARY}"))
        .header("authorization", format!("Bearer sk-proj-{CANARY}"))
        .header("cookie", format!("session={CANARY}"))
        .header("user-agent", format!("codex_cli_rs/0.171.0 {CANARY}"))
        .header("x-request-id", CANARY)
        .json(body);
    bench.ask(&request).await;
    let is_end = |event: &Event| matches!(event, Event::CallClosed(_));
    bench.until(|events| events.iter().any(|(_, event)| is_end(event))).await;
    assert!(hook.wait_for_requests(1, SOON).await);
    let seen = hook.requests().swap_remove(0);
    assert!(!seen.text().contains(CANARY), "{}", seen.text());
    // The address is what the settings name; nothing else of the request is the client's.
    assert!(seen.headers.iter().all(|(_, value)| !value.contains(CANARY)), "{:?}", seen.headers);
    assert!(!format!("{:?}", bench.recorder().notices()).contains(CANARY));
    if cfg!(unix) {
        let told = told_in(&home, "all").await;
        assert!(!told.contains(CANARY), "{told}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_history_or_a_log_that_cannot_be_written_is_told() {
    let up = spent_for(0).await;
    let home = Folder::new();
    std::fs::create_dir(home.path().join("taken")).unwrap();
    let text = format!(
        "[relay]\nupstream = \"{}\"\n[log]\nfile = \"logs/relay.log\"\nlevel = \"debug\"\n[history]\nfile = \"taken\"\n",
        up.url()
    );
    let relay = serving(&home, &text).await;
    relay.until("[alert] state=raised kind=cannot_write lasted=0.0s what=history").await;
    let folder = home.path().join("logs");
    let ask = async || {
        let mut client = relay_sim::Client::connect(relay.addr).await.unwrap().patience(SOON);
        assert_eq!(client.ask(&plain(TURN)).await.unwrap().status, 200);
    };
    std::fs::rename(&folder, home.path().join("away")).unwrap();
    std::fs::write(&folder, "").unwrap();
    let by = Instant::now() + SOON;
    while !relay.said().contains("kind=cannot_write lasted=0.0s what=log") {
        ask().await;
        assert!(Instant::now() < by, "{}", relay.said());
        tokio::time::sleep(ms(200)).await;
    }
    std::fs::remove_file(&folder).unwrap();
    std::fs::create_dir(&folder).unwrap();
    ask().await;
    relay.until("[alert] state=resolved kind=cannot_write").await;
}
