//! The report for a bug tracker holds no secret, wherever one was put.

use relay_sim::{Reply, Request};
use serde_json::json;

use crate::scene::{Scene, always, quick};

const CANARIES: [&str; 9] = [
    "canary-key",
    "canary-prompt",
    "canary-cookie",
    "canary-path",
    "canary-answer",
    "canary-token",
    "canary-header",
    "canary-model",
    "canary-user",
];

#[tokio::test]
async fn no_secret_no_home_and_no_user_name_is_in_it() {
    let answer = Reply::status(401)
        .header("x-request-id", "sk-canary-header-0123456789")
        .header("set-cookie", "a=canary-cookie")
        .json(json!({"error": {"code": "sk-canary-answer-0123456789", "message": "canary-answer"}}));
    let up = always(answer).await;
    let config = format!(
        "{}[upstream.gw]\nurl = \"{}\"\nheaders = {{ x-gateway-key = \"canary-key-9\" }}\n",
        quick(),
        up.url()
    );
    let mut scene = Scene::new("gw", &config).await;
    let request = Request::post("/v1/responses?key=canary-path")
        .header("authorization", "Bearer canary-key-1")
        .header("x-api-key", "canary-key-2")
        .header("cookie", "a=canary-cookie")
        .header("x-client-request-id", "sk-canary-header-9876543210")
        .json(json!({"model": "sk-canary-model-0123456789", "stream": true, "input": "canary-prompt"}));
    assert_eq!([scene.ask(&request).await, scene.call("gpt-x").await], [401, 401]);
    scene.settle().await;
    let flags: Vec<_> = scene.flags.iter().map(String::as_str).collect();
    let home = scene.home.path("").display().to_string();
    let mut command = scene.home.program(&[&["diagnose", "--report", "report.md"], &flags[..]].concat());
    command.env("USER", "canary-user").env("STEADY_RELAY_TOKEN", "canary-token-0123456789");
    let (code, out, said) = crate::program::run(&mut command).await;
    assert_eq!(code, 0, "{said}");
    assert!(said.starts_with("the report is in report.md: read it"), "{said}");
    assert!(out.starts_with("verdict: "), "{out}");
    let report = scene.home.read("report.md");
    for part in
        ["## Steady Relay: ", "### Verdict", "profile = \"quick\"", "### The last calls", "```jsonl\n{"]
    {
        assert!(report.contains(part), "{part} is not in {report}");
    }
    for canary in CANARIES.iter().copied().chain([home.trim_end_matches('/')]) {
        assert!(!report.contains(canary), "{canary}: {report}");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(scene.home.path("report.md")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    // The same on standard output, alone.
    let (code, out, said) = scene.home.run(&[&["diagnose", "--report", "-"], &flags[..]].concat()).await;
    assert_eq!((code, said.as_str()), (0, ""));
    assert!(out.starts_with("## Steady Relay: ") && !out.contains("canary"), "{out}");
    let (code, _, said) =
        scene.home.run(&[&["diagnose", "--report", "no/such/x.md"], &flags[..]].concat()).await;
    assert!(code == 1 && said.contains("cannot be written") && said.contains("\nhint: "), "{said}");
}
