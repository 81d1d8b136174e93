//! `steady-relay doctor`.

use relay_sim::{Reply, Script, Upstream};
use serde_json::{Value, json};
use tokio::process::Command;

#[cfg(any(unix, feature = "history"))]
use crate::program::CONFIG;
use crate::program::{Home, run};

/// A service that wants a key.
async fn service() -> Upstream {
    Upstream::start(Script::by(|_, _| Reply::status(401).json(json!({"error": {"message": "no key"}}))))
        .await
        .unwrap()
}

fn free_port() -> String {
    relay_sim::upstream::Refused::port().unwrap().release().to_string()
}

/// The doctor, in a home without any client and with nothing on the PATH.
fn doctor(home: &Home, more: &[&str]) -> Command {
    home.program(&[&["doctor", "--json"], more].concat())
}

/// The findings of a check: level and words.
fn of(report: &str, check: &str) -> Vec<(String, String)> {
    let report: Value = serde_json::from_str(report).unwrap();
    let all = report["findings"].as_array().unwrap().iter().filter(|finding| finding["check"] == check);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    all.map(|finding| (text(&finding["level"]), text(&finding["what"]))).collect()
}

fn level(report: &str, check: &str) -> String {
    of(report, check)[0].0.clone()
}

#[tokio::test]
async fn where_all_is_well_it_says_so() {
    let up = service().await;
    let home = Home::new();
    let relay = home.serve(&["--upstream", &up.url()]).await;
    let port = relay.addr.port().to_string();
    let line = ["--port", &port, "--upstream", &up.url()];
    let (code, out, said) = run(&mut doctor(&home, &line)).await;
    assert_eq!((code, said.as_str()), (0, ""), "{out}");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&report["v"], &report["ok"], &report["fails"], &report["warnings"]),
        (&1.into(), &true.into(), &0.into(), &0.into()),
        "{out}"
    );
    assert!(of(&out, "port")[0].1.starts_with("a relay listens at "), "{out}");
    assert!(of(&out, "version")[0].1.contains("as this program is"), "{out}");
    assert!(of(&out, "path")[0].1.contains("answers 401 to a request without a key"), "{out}");
    // No credential went anywhere.
    for seen in up.requests() {
        assert_eq!((seen.method.as_str(), seen.header("authorization")), ("GET", None));
    }
    let mut people = home.program(&[&["doctor"], &line[..]].concat());
    let (code, out, _) = run(&mut people).await;
    assert!(code == 0 && out.contains(": 0 failed, 0 warnings, ") && !out.contains('\u{1b}'), "{out}");
    assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
    let (_, out, _) = run(people.env("LANG", "zh_CN.UTF-8")).await;
    assert!(out.contains("0 项失败"), "{out}");
}

#[tokio::test]
async fn what_is_wrong_with_the_relay_and_its_service_fails() {
    let home = Home::new();
    home.write("bad.toml", "[relay]\nprot = 1\n");
    let (code, out, _) = run(&mut doctor(&home, &["--config", "bad.toml", "--port", "0"])).await;
    assert!(code == 1 && of(&out, "settings")[0].1.contains("prot"), "{out}");
    // Another program has the port.
    let up = service().await;
    let port = up.url().rsplit(':').next().unwrap().to_owned();
    let (code, out, _) = run(&mut doctor(&home, &["--port", &port])).await;
    assert_eq!(code, 1, "{out}");
    let (level_of_port, words) = of(&out, "port").remove(0);
    assert!(level_of_port == "fail" && words.contains(" is taken by "), "{words}");
    #[cfg(target_os = "linux")]
    assert!(words.contains(&format!("(process {})", std::process::id())), "{words}");
    // The service is the relay itself; or nobody; or says that there is nothing.
    let (code, out, _) = run(&mut doctor(&home, &["--port", &port, "--upstream", &up.url()])).await;
    assert!(code == 1 && of(&out, "settings")[0].1.contains("is this relay itself"), "{out}");
    let nobody = format!("http://127.0.0.1:{}", free_port());
    let (code, out, _) = run(&mut doctor(&home, &["--port", &free_port(), "--upstream", &nobody])).await;
    assert!(code == 1 && of(&out, "upstream")[0].1.contains("no connection to "), "{out}");
    let lost = Upstream::start(Script::by(|_, _| {
        Reply::status(404).header("date", "Mon, 01 Jan 2001 00:00:00 GMT")
    }))
    .await
    .unwrap();
    let (code, out, _) = run(&mut doctor(&home, &["--port", &free_port(), "--upstream", &lost.url()])).await;
    assert_eq!(
        (code, level(&out, "path").as_str(), level(&out, "clock").as_str()),
        (1, "warn", "fail"),
        "{out}"
    );
}

#[tokio::test]
async fn what_is_wrong_with_certificates_and_proxies() {
    let home = Home::new();
    let (tls, certificate) = Upstream::start_tls(Script::by(|_, _| Reply::status(401))).await.unwrap();
    let port = free_port();
    let line = ["--port", &port, "--upstream", &tls.url()];
    let (code, out, _) = run(&mut doctor(&home, &line)).await;
    assert!(code == 1 && of(&out, "upstream")[0].1.contains("is not trusted"), "{out}");
    home.write("own.pem", certificate);
    let mut command = doctor(&home, &line);
    let (code, out, _) = run(command.env("SSL_CERT_FILE", home.path("own.pem"))).await;
    assert_eq!((code, level(&out, "upstream").as_str()), (0, "ok"), "{out}");
    let mut command = doctor(&home, &line);
    let (code, out, _) = run(command.env("NODE_EXTRA_CA_CERTS", "/nowhere/at/all.pem")).await;
    assert!(code == 1 && of(&out, "certificates")[0].1.starts_with("NODE_EXTRA_CA_CERTS: "), "{out}");
    let mut command = doctor(&home, &["--port", &port, "--upstream", "https://up.invalid"]);
    let itself = format!("http://127.0.0.1:{port}");
    let (code, out, _) = run(command.env("HTTPS_PROXY", &itself).env("HTTP_PROXY", &itself)).await;
    assert_eq!(
        (code, level(&out, "proxy").as_str(), level(&out, "client-proxy").as_str()),
        (1, "fail", "warn"),
        "{out}"
    );
    let mut command = doctor(&home, &["--port", &port, "--upstream", "https://up.invalid"]);
    let proxy = format!("http://me:hunter2@127.0.0.1:{}", free_port());
    let (code, out, _) = run(command.env("HTTPS_PROXY", &proxy)).await;
    assert!(code == 1 && of(&out, "upstream")[0].1.contains("by the proxy http://127.0.0.1:"), "{out}");
    assert!(!out.contains("hunter2"), "{out}");
}

#[tokio::test]
async fn clients_that_point_at_nothing_are_named_with_the_place() {
    let up = service().await;
    let home = Home::new();
    let (dead, port) = (free_port(), free_port());
    let folder = |name: &str| std::fs::create_dir_all(home.path(name)).unwrap();
    folder(".codex");
    folder(".claude");
    home.write(".codex/config.toml", format!("openai_base_url = \"http://localhost:{dead}/~hunter2/v1\"\n"));
    home.write(".claude/settings.json", json!({"env": {"ANTHROPIC_BASE_URL": up.url()}}).to_string());
    let line = ["--port", &port, "--upstream", &up.url()];
    let mut command = doctor(&home, &line);
    let (code, out, _) = run(command
        .env("USERPROFILE", home.path(""))
        .env("OPENAI_BASE_URL", format!("http://127.0.0.1:{dead}")))
    .await;
    assert_eq!(code, 1);
    let found = of(&out, "client-address");
    assert_eq!(found.len(), 2, "{out}");
    assert!(
        found[0].1.starts_with(&format!(
            "Codex is told to ask http://localhost:{dead}/~…/v1 (`openai_base_url` in "
        )),
        "{out}"
    );
    assert!(found[1].1.contains("`OPENAI_BASE_URL` in environment"), "{out}");
    assert!(!out.contains("hunter2"), "{out}");
}

#[cfg(unix)]
#[tokio::test]
async fn files_versions_and_plans_are_looked_at() {
    use std::os::unix::fs::PermissionsExt as _;
    let up = service().await;
    let home = Home::with_config("");
    let open = |name: &str, mode| {
        std::fs::set_permissions(home.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    home.write(CONFIG, "[relay]\ntoken = \"0123456789abcdef\"\n");
    open(CONFIG, 0o644);
    home.write(".env", b"\xff\xfeA\0=\0");
    std::fs::create_dir_all(home.path("bin")).unwrap();
    std::fs::create_dir_all(home.path(".codex")).unwrap();
    for (name, said) in [("codex", "codex-cli 0.100.1"), ("claude", "2.1.400 (Claude Code)")] {
        home.write(&format!("bin/{name}"), format!("#!/bin/sh\necho '{said}'\n"));
        open(&format!("bin/{name}"), 0o755);
    }
    // One that never ends is not waited for.
    home.write("bin/gemini", "#!/bin/sh\nexec sleep 60\n");
    open("bin/gemini", 0o755);
    let token = relay_sim::fixtures::openai_jwt(&json!({
        "iss": "https://auth.openai.com", "https://api.openai.com/auth": {"chatgpt_plan_type": "enterprise"}
    }));
    home.write(".codex/auth.json", json!({"tokens": {"access_token": token}}).to_string());
    let mut command = doctor(&home, &["--port", &free_port(), "--upstream", &up.url()]);
    let path = format!("{}:/usr/bin:/bin", home.path("bin").display());
    let (code, out, _) = run(command.env("PATH", path)).await;
    assert_eq!(code, 0, "{out}");
    let modes = of(&out, "file-modes");
    assert!(
        modes[0].0 == "warn" && modes[0].1.contains("config.toml") && modes[0].1.contains("644"),
        "{out}"
    );
    assert!(of(&out, "env-file")[0].1.contains(".env"), "{out}");
    let versions = of(&out, "client-version");
    assert_eq!(versions.len(), 3, "{out}");
    assert!(versions[0].1.starts_with("Codex is 0.100.1") && versions[0].0 == "warn", "{out}");
    assert!(versions[1].1.starts_with("Claude Code is 2.1.400"), "{out}");
    assert_eq!(versions[2].0, "skip", "{out}");
    let plan = of(&out, "workspace").remove(0);
    assert!(plan.0 == "warn" && plan.1.contains("enterprise"), "{out}");
    assert!(!out.contains(&token), "{out}");
    // Without a secret others may read it, and not write it.
    home.write(CONFIG, "[relay]\nprofile = \"patient\"\n");
    let (_, out, _) = run(&mut doctor(&home, &["--port", &free_port(), "--upstream", &up.url()])).await;
    assert_eq!(level(&out, "file-modes"), "ok", "{out}");
    open(CONFIG, 0o666);
    let (code, out, _) = run(&mut doctor(&home, &["--port", &free_port(), "--upstream", &up.url()])).await;
    assert_eq!((code, level(&out, "file-modes").as_str()), (1, "fail"), "{out}");
}

#[cfg(feature = "history")]
#[tokio::test]
async fn a_history_that_cannot_be_used_and_a_program_that_is_missing_fail() {
    let up = service().await;
    let ask = async |file: &str, more: &str| {
        let home = Home::new();
        home.write("plain", "no database");
        // Names in the configuration file are those of its folder.
        let file = home.path(file);
        home.write(CONFIG, format!("[history]\nfile = {:?}\n{more}", file.display().to_string()));
        let (code, out, _) =
            run(&mut doctor(&home, &["--port", &free_port(), "--upstream", &up.url()])).await;
        let why = home.run(&["why", "--port", &free_port()]).await;
        (code, of(&out, "history").remove(0), of(&out, "alerts").remove(0), why.2)
    };
    let (code, history, alerts, why) = ask("state/history.sqlite", "").await;
    assert_eq!((code, history.0.as_str(), alerts.0.as_str()), (0, "ok", "ok"));
    assert!(history.1.ends_with("nothing is recorded yet"), "{history:?}");
    assert!(why.contains("no relay has recorded a call there yet"), "{why}");
    let (code, history, alerts, why) =
        ask("plain/history.sqlite", "[alerts]\ncommand = [\"no-such-program\"]\n").await;
    assert_eq!((code, history.0.as_str(), alerts.0.as_str()), (1, "fail", "fail"));
    assert!(history.1.contains("cannot be used: ") && history.1.contains("are not recorded"), "{history:?}");
    assert!(alerts.1.starts_with("`no-such-program` of `alerts.command` is not there"), "{alerts:?}");
    // The verbs that read it say the same, and not that there was no call.
    assert!(why.contains("cannot be used: ") && !why.contains("no relay has recorded"), "{why}");
    let (code, history, ..) = ask("plain", "").await;
    assert!(code == 1 && history.1.contains("not a database"), "{history:?}");
}
