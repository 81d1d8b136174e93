//! `steady-relay alerts test`: one alert by every way, and what came of each.

use relay_sim::{Reply, Script, Upstream};
use serde_json::Value;

use crate::program::Home;

async fn hook(status: u16) -> Upstream {
    Upstream::start(Script::by(move |_, _| Reply::status(status))).await.unwrap()
}

/// A home whose alerts are posted there, with more below `[alerts]`.
fn home(hook: &Upstream, more: &str) -> Home {
    Home::with_config(&format!("[alerts]\nwebhook = \"{}/secret-path\"\nwithin = \"2s\"\n{more}", hook.url()))
}

#[tokio::test]
async fn every_way_gets_one_and_what_came_of_it_is_said() {
    let hook = hook(204).await;
    let command = if cfg!(unix) { "command = [\"sh\", \"-c\", \"cat > told.json\"]\n" } else { "" };
    let home = home(&hook, command);
    let (code, out, said) = home.run(&["alerts", "test"]).await;
    assert_eq!((code, said.as_str()), (0, ""), "{out}");
    assert!(out.starts_with(&format!("ok    webhook: {} took it\n", hook.url())), "{out}");
    assert!(!out.contains("secret-path"), "{out}");
    let posted = hook.requests();
    assert_eq!((posted.len(), posted[0].path()), (1, "/secret-path"));
    let json = posted[0].json();
    assert_eq!((&json["v"], &json["kind"], &json["state"]), (&1.into(), &"test".into(), &"raised".into()));
    assert!(json["text"].as_str().unwrap().contains("nothing is wrong"), "{json}");
    if cfg!(unix) {
        assert!(out.contains("\nok    command: `sh` took it\n"), "{out}");
        let told: Value = serde_json::from_slice(&std::fs::read(home.path("told.json")).unwrap()).unwrap();
        assert_eq!(told, json);
    }
    // No state is left behind.
    assert!(!home.path("state").exists());
}

#[tokio::test]
async fn a_way_that_fails_is_told_with_the_reason_and_the_code() {
    let hook = hook(500).await;
    let home = home(&hook, "command = [\"no-such-program\"]\n");
    let (code, out, _) = home.run(&["alerts", "test", "--json"]).await;
    let page: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &page["v"]), (1, &1.into()), "{out}");
    let of =
        |at: usize| (page["ways"][at]["way"].as_str().unwrap(), page["ways"][at]["ok"].as_bool().unwrap());
    assert_eq!((of(0), of(1)), (("webhook", false), ("command", false)));
    assert!(page["ways"][0]["why"].as_str().unwrap().ends_with("it said 500"), "{out}");
    let (code, out, _) = home.run(&["alerts", "test"]).await;
    assert!(
        code == 1 && out.contains("fail  command: `no-such-program` of `alerts.command` could not"),
        "{out}"
    );
}

#[tokio::test]
async fn where_no_way_is_set_that_is_said() {
    let home = Home::new();
    let (code, out, said) = home.run(&["alerts", "test"]).await;
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(
        said.starts_with("error: no way to tell of alerts is set but the log\nhint: set `webhook`"),
        "{said}"
    );
    let (_, _, said) = home.run(&["alerts", "test", "--lang", "zh"]).await;
    assert!(said.contains("除日志外没有设置任何告警方式"), "{said}");
}
