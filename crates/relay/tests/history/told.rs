//! What `why` and `stats` say after the real program has relayed.

use relay_sim::{Reply, Request, Script, Upstream};
use serde_json::Value;

use crate::program::{Home, Serving, good, refusal, turn};
use crate::soon::soon;

/// Waits of a tenth of a second: long enough to be told of.
const PROFILE: &str = "[profile.quick]\nbased_on = \"interactive\"\nsends = 3\nbase = \"100ms\"\ncap = \"100ms\"\n\
                       overloaded_base = \"100ms\"\noverloaded_cap = \"100ms\"\njitter = \"0s\"\n";

pub(crate) fn home() -> Home {
    Home::with_config(PROFILE)
}

pub(crate) async fn serve(home: &Home, up: &Upstream) -> Serving {
    home.serve(&["--upstream", &up.url(), "--profile", "quick", "--gate", "off", "--state-dir", &state(home)])
        .await
}

fn state(home: &Home) -> String {
    home.path("state").display().to_string()
}

/// Runs it with the same state folder; it ends well, and says nothing but data.
async fn told(home: &Home, arguments: &[&str]) -> String {
    let state = state(home);
    let arguments = [arguments, &["--state-dir", &state]].concat();
    let (code, out, said) = home.run(&arguments).await;
    assert_eq!((code, said.as_str()), (0, ""), "{arguments:?}: {out}");
    out
}

/// The output, once this is in it: the file is written a moment after a call.
async fn told_once(home: &Home, arguments: &[&str], words: &str) -> String {
    let state = state(home);
    soon(&format!("{arguments:?} never says {words}"), async || {
        let (_, out, _) = home.run(&[arguments, &["--state-dir", &state]].concat()).await;
        out.contains(words).then_some(out)
    })
    .await
}

fn full() -> Reply {
    refusal(503, "server_is_overloaded").header("x-request-id", "req-of-the-service")
}

#[tokio::test]
async fn why_tells_of_a_call_that_was_saved_by_each_of_its_names() {
    let up = Upstream::start(Script::of([full(), good(), good()])).await.unwrap();
    let home = home();
    let relay = serve(&home, &up).await;
    let asked = turn().header("x-request-id", "req-of-the-client");
    assert!(relay.ask(&asked).await.text().contains("response.completed"));
    relay.ask(&turn()).await;
    // The relay still runs.
    told_once(&home, &["why", "c2"], "nothing to do").await;
    let out = told(&home, &["why"]).await;
    assert!(out.starts_with("1-c1 (serve), 20"), "{out}");
    for words in [
        &*format!(" asked {} for gpt-x", up.addr()),
        " for gpt-x (generation, openai_responses, over http)\n",
        "send 1: 503 after ",
        "code server_is_overloaded)",
        "evidence refused: it was not run",
        "request id of the service: req-of-the-service",
        "backoff of the profile quick",
        "send 2: 200 after ",
        "served: the client got the answer, whole, with status 200",
        "; the relay waited 0.",
        " and got the answer.\n",
    ] {
        assert!(out.contains(words), "{words} is not in {out}");
    }
    for name in ["last", "c1", "1", "1-c1", "1-1", "c1-c1", "req-of-the-service"] {
        assert_eq!(told(&home, &["why", name]).await, out, "{name}");
    }
    let record: Value = serde_json::from_str(&told(&home, &["why", "--json"]).await).unwrap();
    assert_eq!(
        (&record["v"], &record["call"], &record["run"], &record["others"]),
        (&1.into(), &1.into(), &1.into(), &0.into())
    );
    assert_eq!(record["sends"][0]["failed"]["code"], "server_is_overloaded");
    let chinese = told(&home, &["why", "--lang", "zh"]).await;
    assert!(chinese.contains("后得到了回答。"), "{chinese}");
    let (code, out, said) = home.run(&["why", "c99", "--state-dir", &state(&home)]).await;
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(said.starts_with("error: the history has no call named c99\nhint: "), "{said}");
}

#[tokio::test]
async fn of_several_calls_of_one_name_the_newest_is_told_and_the_others_counted() {
    let up = Upstream::start(Script::by(|_, _| good())).await.unwrap();
    let home = home();
    for run in 1..=3 {
        let relay = serve(&home, &up).await;
        relay.ask(&turn()).await;
        told_once(&home, &["why", &format!("{run}-c1")], "nothing to do").await;
    }
    let (code, out, said) = home.run(&["why", "c1", "--state-dir", &state(&home)]).await;
    assert!(code == 0 && out.starts_with("3-c1 (serve)"), "{out}");
    assert!(said.starts_with("note: 2 older calls go by that name; "), "{said}");
    assert!(told(&home, &["why", "2-c1"]).await.starts_with("2-c1 (serve)"));
}

#[tokio::test]
async fn stats_tell_what_was_saved_and_lost() {
    let script = Script::by(|seen, count| match seen.header("x-test") {
        Some("lost") => refusal(503, "server_is_overloaded"),
        Some("bad") => Reply::status(400).json(r#"{"error":{"code":"bad","message":"no"}}"#),
        _ if count == 0 => full(),
        _ => good(),
    });
    let up = Upstream::start(script).await.unwrap();
    let home = home();
    let mut relay = serve(&home, &up).await;
    relay.ask(&turn()).await;
    for _ in 0..2 {
        relay.ask(&turn()).await;
    }
    relay.ask(&turn().header("x-test", "lost")).await;
    relay.ask(&turn().header("x-test", "bad")).await;
    told_once(&home, &["why", "c5"], "passed").await;
    let out = told(&home, &["stats", "--by", "model"]).await;
    for words in [
        ": 5 calls, 8 sends\n",
        "success        75.0 % with the relay, 50.0 % without\n",
        "saved          1 call: the first send failed, and the client was served\n",
        "not served     1 lost, 0 handed back, 0 broken off, 0 left by their client\n",
        "errors         1 definite error of the services, passed on;",
        "  gpt-x                        5   75.0 %   50.0 %",
        "gpt-x: sends refused for want of capacity, by local hour: ",
        "best for long jobs: too little is known to say (0 of 6 hours of the day)\n",
    ] {
        assert!(out.contains(words), "{words} is not in {out}");
    }
    let page: Value =
        serde_json::from_str(&told(&home, &["stats", "--json", "--by", "client"]).await).unwrap();
    assert_eq!(
        (&page["v"], &page["sums"]["saved"], &page["sums"]["refusals"]),
        (&1.into(), &1.into(), &4.into())
    );
    assert_eq!(page["rows"].as_array().map(Vec::len), Some(1));
    // Nothing is older than that.
    assert!(told(&home, &["stats", "--since", "0s"]).await.starts_with("no call since 20"));
    let night = told(&home, &["stats", "--last-run"]).await;
    assert!(
        night.contains(" s: 4 refusals, ") && night.ends_with(" waited, 1 turn lost, 8 sends\n"),
        "{night}"
    );
    let night: Value = serde_json::from_str(&told(&home, &["stats", "--last-run", "--json"]).await).unwrap();
    assert_eq!((&night["run"], &night["lost"], &night["kind"]), (&1.into(), &1.into(), &"serve".into()));
    let lines = told(&home, &["stats", "--export", "jsonl"]).await;
    let numbers: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["call"].clone()).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5].map(Value::from));
    let retries: Value =
        serde_json::from_str(&told(&home, &["stats", "--export", "retry-stats"]).await).unwrap();
    let success: Vec<_> =
        retries.as_array().unwrap().iter().map(|retry| retry["success"].as_bool().unwrap()).collect();
    assert_eq!(success, [true, false, false]);
    #[cfg(unix)]
    relay.stop().await;
    drop(relay);
    let night = told(&home, &["stats", "--last-run", "--export", "jsonl"]).await;
    assert_eq!(night.lines().count(), 5);
}

#[tokio::test]
async fn hours_are_those_of_the_time_zone() {
    let up = Upstream::start(Script::of([full(), good()])).await.unwrap();
    let home = home();
    let relay = serve(&home, &up).await;
    relay.ask(&turn()).await;
    told_once(&home, &["why"], "got the answer").await;
    let mut shown = Vec::new();
    for zone in ["UTC0", "XXX-8"] {
        let mut command = home.program(&["why", "--state-dir", &state(&home)]);
        let (code, out, said) = crate::program::run(command.env("TZ", zone)).await;
        assert_eq!((code, said.as_str()), (0, ""));
        let hour = out.split(' ').nth(3).unwrap()[..2].parse::<u32>().unwrap();
        shown.push(hour);
    }
    assert_eq!((shown[0] + 8) % 24, shown[1]);
}

#[tokio::test]
async fn what_is_asked_wrongly_is_told() {
    let home = home();
    let rows: [(&[&str], &str); 5] = [
        (&["stats", "--since", "7"], "error: the value of --since has no unit\nhint: "),
        (&["stats", "--since", "7d", "--last-run"], "cannot be used with"),
        (&["stats", "--last-run", "--by", "model"], "cannot be used with"),
        (&["stats", "--by", "moon"], "invalid value 'moon'"),
        (&["stats", "--export", "xml"], "invalid value 'xml'"),
    ];
    for (arguments, words) in rows {
        let (code, out, said) = home.run(arguments).await;
        assert!(code == 2 && out.is_empty() && said.contains(words), "{arguments:?}: {said}");
    }
    // Another request than one for a model is a call, too.
    let up = Upstream::start(Script::by(|_, _| Reply::status(200).text("hi"))).await.unwrap();
    let relay = serve(&home, &up).await;
    relay.ask(&Request::get("/v1/models")).await;
    told_once(&home, &["why"], "(pure, ").await;
}

/// Everything below a folder, as bytes.
fn contents(folder: &std::path::Path) -> Vec<u8> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let read = |path: std::path::PathBuf| {
        if path.is_dir() { contents(&path) } else { std::fs::read(path).unwrap() }
    };
    entries.flat_map(read).collect()
}

#[tokio::test]
async fn no_secret_and_no_word_of_a_prompt_or_an_answer_is_kept() {
    const CANARY: &str = "canary-7f3a91";
    let says = |status: u16, code: &str| {
        let error = format!(r#"{{"error":{{"code":"{code}","message":"no {CANARY}"}}}}"#);
        Reply::status(status).header("x-note", CANARY).json(error)
    };
    let answer = format!(r#"{{"id":"x","output":[{{"type":"message","content":"{CANARY}"}}]}}"#);
    let script = Script::by(move |_, count| match count {
        0 => says(503, "server_is_overloaded"),
        1 => Reply::status(200).json(answer.clone()),
        _ => says(400, "invalid_request"),
    });
    let up = Upstream::start(script).await.unwrap();
    let home = home();
    let mut relay = serve(&home, &up).await;
    for _ in 0..2 {
        let body = format!(r#"{{"model":"gpt-x","input":"{CANARY}","metadata":{{"a":"{CANARY}"}}}}"#);
        let asked = Request::post(&format!("/v1/responses?key={CANARY}")).json(body);
        let asked =
            asked.header("authorization", format!("Bearer {CANARY}")).header("cookie", format!("a={CANARY}"));
        let asked =
            asked.header("x-api-key", CANARY).header("user-agent", CANARY).header("session_id", CANARY);
        relay.ask(&asked).await;
    }
    told_once(&home, &["why", "c2"], "passed").await;
    let has_it = |bytes: &[u8]| bytes.windows(CANARY.len()).any(|part| part == CANARY.as_bytes());
    for arguments in
        [&["why", "c1"][..], &["why", "--json"], &["stats", "--json"], &["stats", "--export", "jsonl"]]
    {
        let out = told(&home, arguments).await;
        assert!(!has_it(out.as_bytes()), "{arguments:?}: {out}");
    }
    assert!(!has_it(&contents(&home.path("state"))), "while it runs");
    let page = relay.ask(&Request::get("/__steady/calls")).await;
    assert!(!has_it(page.text().as_bytes()), "{}", page.text());
    #[cfg(unix)]
    relay.stop().await;
    relay.child.kill().await.unwrap();
    assert!(!has_it(&contents(&home.path("state"))), "when it is over");
}

#[tokio::test]
async fn why_right_after_a_call_knows_its_end_and_says_where_no_call_met_a_fault() {
    let up = Upstream::start(Script::of([good(), full(), good()])).await.unwrap();
    let home = home();
    let relay = serve(&home, &up).await;
    let port = relay.addr.port().to_string();
    relay.ask(&turn()).await;
    let (code, out, said) = home.run(&["why", "--port", &port, "--state-dir", &state(&home)]).await;
    assert!(code == 0 && out.contains("served: the client got the answer, whole"), "{out}");
    assert!(said.starts_with("note: no call met a fault or was left unserved; this is the newest"), "{said}");
    relay.ask(&turn()).await;
    let (code, out, said) = home.run(&["why", "--port", &port, "--state-dir", &state(&home)]).await;
    assert!(code == 0 && out.starts_with("1-c2 ") && out.contains("served: the client got"), "{out}");
    assert_eq!(said, "");
}

#[tokio::test]
async fn what_passes_untouched_is_called_what_its_head_says() {
    let bad = Reply::status(400).json(r#"{"error":{"code":"bad","message":"no"}}"#);
    let up = Upstream::start(Script::of([full(), bad])).await.unwrap();
    let home = home();
    let relay = serve(&home, &up).await;
    let off = || turn().header("x-steady", "off");
    for status in [503, 400] {
        assert_eq!(relay.ask(&off()).await.status, status);
    }
    assert_eq!(up.requests().len(), 2, "each was sent once");
    told_once(&home, &["why", "c2"], "passed: ").await;
    let refused = told(&home, &["why", "c1"]).await;
    for words in [
        "the model is at capacity (at_capacity)",
        "returned: the client got the failure as it came, with status 503",
        "The service was at capacity; the relay passed that on untouched, since the",
    ] {
        assert!(refused.contains(words), "{words} is not in {refused}");
    }
    let page: Value = serde_json::from_str(&told(&home, &["stats", "--json"]).await).unwrap();
    let sums = ["handed_back", "definite_errors", "refusals", "lost"].map(|sum| page["sums"][sum].clone());
    assert_eq!(sums, [1, 1, 1, 0].map(Value::from));
}

#[tokio::test]
async fn stats_right_after_a_call_count_it() {
    let up = Upstream::start(Script::by(|_, _| good())).await.unwrap();
    let home = home();
    let relay = serve(&home, &up).await;
    let port = relay.addr.port().to_string();
    // One of them alone might be written by then.
    for count in 1..=5 {
        relay.ask(&turn()).await;
        let (code, out, _) =
            home.run(&["stats", "--json", "--port", &port, "--state-dir", &state(&home)]).await;
        let page: Value = serde_json::from_str(&out).unwrap();
        assert_eq!((code, &page["sums"]["served"], &page["sums"]["open"]), (0, &count.into(), &0.into()));
    }
}

#[tokio::test]
async fn what_the_file_lacks_the_relay_tells() {
    let up = Upstream::start(Script::of([full(), good()])).await.unwrap();
    let home = Home::with_config(&format!("{PROFILE}[history]\nenabled = false\n"));
    let relay = serve(&home, &up).await;
    let port = relay.addr.port().to_string();
    relay.ask(&turn()).await;
    let (code, out, said) = home.run(&["why", "c1", "--port", &port, "--state-dir", &state(&home)]).await;
    assert!(code == 0 && out.starts_with("c1, 20") && out.contains("send 1: 503 after"), "{out}");
    assert!(
        said.starts_with("note: only the calls in the memory of the relay that runs are known: "),
        "{said}"
    );
}
