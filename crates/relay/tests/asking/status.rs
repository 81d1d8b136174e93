//! `steady-relay status` and `steady-relay health`.

use relay_sim::{Reply, Request, Script, Upstream};
use serde_json::Value;

use crate::program::{CONFIG, Home};

#[tokio::test]
async fn a_relay_that_runs_is_told_of_and_one_that_does_not_is_exit_6() {
    let up = Upstream::start(Script::by(|_, _| Reply::status(200).text("hi"))).await.unwrap();
    let home = Home::new();
    let relay = home.serve(&["--upstream", &up.url()]).await;
    relay.ask(&Request::get("/v1/models")).await;
    let port = relay.addr.port().to_string();
    let (code, out, said) = home.run(&["status", "--port", &port]).await;
    assert_eq!((code, said.as_str()), (0, ""));
    assert!(out.contains(&format!(" at 127.0.0.1:{port}, up for ")), "{out}");
    assert!(out.contains("\ncalls: 1, of them 0 saved, 0 lost, 0 handed back\nsends: 1, "), "{out}");
    let (code, out, _) = home.run(&["status", "--json", "--port", &port]).await;
    let page: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &page["v"], &page["totals"]["calls"]), (0, &1.into(), &1.into()));
    assert_eq!(home.run(&["health", "--port", &port]).await, (0, "ok\n".to_owned(), String::new()));
    drop(relay);
    let free = relay_sim::upstream::Refused::port().unwrap();
    let port = free.release().to_string();
    for verb in ["status", "health"] {
        let (code, out, said) = home.run(&[verb, "--port", &port]).await;
        let told = format!("error: no relay runs at 127.0.0.1:{port}\nhint: ");
        assert!(code == 6 && out.is_empty() && said.starts_with(&told), "{said}");
    }
    let (code, out, _) = home.run(&["health", "--json", "--port", &port]).await;
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &told["v"], &told["ok"]), (6, &1.into(), &false.into()));
}

#[tokio::test]
async fn another_program_is_no_relay_and_a_token_is_asked_for() {
    let other = Upstream::start(Script::by(|_, _| Reply::status(200).text("ok"))).await.unwrap();
    let home = Home::new();
    let port = other.url().rsplit(':').next().unwrap().to_owned();
    for verb in ["status", "health"] {
        let (code, _, said) = home.run(&[verb, "--port", &port]).await;
        assert!(code == 6 && said.contains("is no relay\nhint: "), "{said}");
    }
    // A relay says no in its own language, and is known by it.
    for lang in ["en", "zh"] {
        home.write(CONFIG, format!("[relay]\ntoken = \"0123456789abcdef\"\nlang = \"{lang}\"\n"));
        let relay = home.serve(&[]).await;
        let port = relay.addr.port().to_string();
        for verb in ["status", "health"] {
            assert_eq!(home.run(&[verb, "--port", &port]).await.0, 0);
            home.write("none.toml", "");
            let (code, _, said) = home.run(&[verb, "--port", &port, "--config", "none.toml"]).await;
            assert!(code == 2 && said.contains("asks for a token\nhint: set STEADY_RELAY_TOKEN"), "{said}");
        }
    }
}
