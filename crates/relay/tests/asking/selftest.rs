//! `steady-relay selftest`.

use relay_sim::{Reply, Script, Upstream};
use serde_json::{Value, json};

use crate::program::{CONFIG, Home, run};

#[tokio::test]
async fn without_an_upstream_nothing_leaves_the_machine() {
    let home = Home::new();
    // Of the settings only what the flag names is asked.
    home.write(CONFIG, "[relay]\nupstream = \"https://up.invalid\"\n");
    let (code, out, said) = home.run(&["selftest", "--json"]).await;
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, said.as_str()), (0, ""), "{out}");
    assert_eq!(
        (&told["v"], &told["ok"], &told["status"], &told["in_pieces"]),
        (&1.into(), &true.into(), &200.into(), &true.into())
    );
    for span in ["dns_ms", "connect_ms", "first_byte_ms", "total_ms", "before_send_ms", "added_ms"] {
        assert!(told[span].is_number(), "{span}: {out}");
    }
    assert!(told["total_ms"].as_f64() >= told["first_byte_ms"].as_f64());
    let (code, out, _) = home.run(&["selftest"]).await;
    assert!(code == 0 && out.ends_with("ok: a request goes through\n"), "{out}");
    assert!(
        out.contains("came piece by piece") && out.lines().all(|line| line.chars().count() <= 80),
        "{out}"
    );
}

#[tokio::test]
async fn a_service_is_asked_with_the_key_that_is_meant_for_it_and_says_so_before() {
    let up = Upstream::start(Script::by(|seen, _| {
        if seen.header("authorization") != Some("Bearer sk-own") {
            return Reply::status(401)
                .json(json!({"error": {"message": "no key", "code": "invalid_api_key"}}));
        }
        Reply::status(200).json(json!({"object": "list", "data": []}))
    }))
    .await
    .unwrap();
    let home = Home::new();
    let (code, out, said) =
        run(home.program(&["selftest", "--upstream", &up.url()]).env("OPENAI_API_KEY", "sk-proj-secret"))
            .await;
    assert_eq!(code, 0, "{out}");
    assert!(said.contains("which costs nothing\n") && said.contains("no key for it was found"), "{said}");
    assert!(out.ends_with("it wants a key, and none was sent\n"), "{out}");
    assert_eq!((up.requests().len(), up.requests()[0].header("authorization")), (1, None));
    home.write(CONFIG, format!("[upstream.own]\nurl = \"{}/v1\"\napi_key = \"sk-own\"\n", up.url()));
    let (code, out, said) = home.run(&["selftest", "--upstream", "own", "--json", "--model", "m"]).await;
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (code, &told["key"], &told["asked"]),
        (0, &true.into(), &"POST /v1/chat/completions".into()),
        "{out}"
    );
    assert!(said.contains("which may cost a fraction of a cent") && !(said + &out).contains("sk-own"));
    assert_eq!(up.requests()[1].json()["model"], "m");
    // A key that is refused is no success.
    home.write(CONFIG, format!("[upstream.own]\nurl = \"{}/v1\"\napi_key = \"sk-wrong\"\n", up.url()));
    let (code, out, _) = home.run(&["selftest", "--upstream", "own"]).await;
    assert!(code == 5 && out.contains("failed (exit code 5)"), "{out}");
    let (code, _, said) = home.run(&["selftest", "--upstream", "none"]).await;
    assert!(code == 2 && said.starts_with("error: "), "{said}");
    let (code, ..) = home.run(&["selftest", "--model", "m"]).await;
    assert_eq!(code, 2);
    let free = relay_sim::upstream::Refused::port().unwrap().release();
    let nobody = format!("http://127.0.0.1:{free}");
    home.write(CONFIG, "[profile.interactive]\nsends = 1\ngate = false\n");
    let (code, out, _) = home.run(&["selftest", "--json", "--upstream", &nobody]).await;
    let told: Value = serde_json::from_str(&out).unwrap();
    assert!(code == 3 && told["ok"] == false && told["connect_ms"].is_null(), "{out}");
}
