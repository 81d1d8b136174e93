//! Metrics of the program: a port of their own, what they count, and who may read them.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use relay_sim::{Client, Request, Script, Upstream};

use crate::program::{Home, QUICK, good, refusal, turn};

/// The text at the address that the relay has told.
async fn scraped(said: &str, headers: &[(&str, &str)]) -> relay_sim::Answer {
    let (_, address) = said.split_once("metrics are at http://").expect(said);
    let address = address.split('/').next().unwrap().parse().unwrap();
    let mut request = Request::get("/metrics");
    for (name, value) in headers {
        request = request.header(name, value);
    }
    Client::connect(address).await.unwrap().ask(&request).await.unwrap()
}

#[tokio::test]
async fn what_the_relay_did_is_read_at_a_port_of_its_own() {
    let up = Upstream::start(Script::of([refusal(503, "server_is_overloaded"), good()])).await.unwrap();
    let home = Home::with_config(&format!("[profile.interactive]\n{QUICK}"));
    let mut relay = home.serve(&["--upstream", &up.url(), "--metrics-port", "0"]).await;
    relay.says("metrics are at").await;
    relay.ask(&turn()).await;
    relay.says("[done]").await;
    let answer = scraped(&relay.said(), &[]).await;
    let kind = answer.header("content-type").unwrap().to_owned();
    assert_eq!((answer.status, kind.starts_with("application/openmetrics-text; version=1.0.0")), (200, true));
    let text = answer.text();
    let of = format!(r#"{{upstream="{}",model="gpt-x"}}"#, up.addr());
    // A lane has the name that its calls have.
    let lane = text.lines().find(|line| line.starts_with("steady_relay_lane_waiting{")).unwrap();
    assert!(lane.ends_with(&format!(",{} 0", of.trim_start_matches('{'))), "{lane}");
    for line in [
        &*format!("steady_relay_sends_total{of} 2"),
        &*format!("steady_relay_calls_saved_total{of} 1"),
        r#"codex_retry_attempts_total{reason="overload"} 1"#,
        "codex_retry_success_rate 1.0",
        "steady_relay_open_calls 0",
    ] {
        assert!(text.lines().any(|there| there == line), "no {line}\n{text}");
    }
    assert!(!text.contains("sk-test") && text.ends_with("# EOF\n"));
    // The path stays the service's own at the relay's port.
    assert_eq!(
        relay.ask(&Request::get("/metrics").header("authorization", "Bearer sk-test")).await.status,
        200
    );
    assert_eq!(scraped(&relay.said(), &[("origin", "https://evil.example")]).await.status, 403);
}

#[tokio::test]
async fn they_are_read_under_every_name_of_the_relay() {
    let home = Home::with_config("[relay]\nnames = [\"relay.lan\"]\n");
    let mut relay = home.serve(&["--metrics-port", "0"]).await;
    relay.says("metrics are at").await;
    let said = relay.said();
    let port = said.split_once("metrics are at http://127.0.0.1:").unwrap().1;
    let port = port.split(|sign: char| !sign.is_ascii_digit()).next().unwrap();
    for (name, status) in [("relay.lan", 200), ("evil.example", 403)] {
        assert_eq!(scraped(&said, &[("host", &format!("{name}:{port}"))]).await.status, status, "{name}");
        let own = format!("{name}:{}", relay.addr.port());
        assert_eq!(relay.ask(&Request::get("/healthz").header("host", &own)).await.status, status, "{name}");
    }
}

#[tokio::test]
async fn a_port_that_is_taken_is_said_by_its_flag() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let home = Home::with_config("");
    let ended = home.program(&["--port", "0", "--metrics-port", &port]).output().await.unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(
        said.contains(&format!("port {port} is taken")) && said.contains("with --metrics-port"),
        "{said}"
    );
}

/// What promtool has to say against alert rules; `None` where it is not installed.
fn promtool(rules: &Path) -> Option<String> {
    let ended = Command::new("promtool").args(["check", "rules"]).arg(rules).output().ok()?;
    Some(if ended.status.success() {
        String::new()
    } else {
        String::from_utf8_lossy(&ended.stderr).into_owned()
    })
}

/// The names of metrics in an expression of PromQL.
fn metrics_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|sign: char| !(sign.is_ascii_alphanumeric() || sign == '_'));
    let ours = words.filter(|word| word.starts_with("steady_relay_") || word.starts_with("codex_retry_"));
    ours.map(str::to_owned).collect()
}

/// The names on the page, with the endings of counters and histograms.
fn known() -> BTreeSet<String> {
    let page = include_str!("../../../../docs/metrics.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let mut names = BTreeSet::new();
    for (name, rest) in rows {
        names.insert(name.to_owned());
        if rest.starts_with("histogram") {
            names.extend(["_bucket", "_sum", "_count"].map(|end| format!("{name}{end}")));
        }
    }
    names
}

#[test]
fn the_dashboard_and_the_alerts_ask_for_metrics_that_there_are() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/metrics");
    let dashboard = std::fs::read_to_string(folder.join("grafana.json")).unwrap();
    let dashboard: serde_json::Value = serde_json::from_str(&dashboard).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let asked: BTreeSet<String> =
        panels.iter().flat_map(|panel| metrics_in(&panel["targets"].to_string())).collect();
    let alerts = std::fs::read_to_string(folder.join("alerts.yml")).unwrap();
    let asked: BTreeSet<String> = asked.into_iter().chain(metrics_in(&alerts)).collect();
    let unknown: Vec<_> = asked.difference(&known()).cloned().collect();
    assert_eq!(unknown, [""; 0]);
    assert!(panels.iter().all(|panel| !panel["targets"][0]["expr"].is_null()), "a panel without a question");
    let complaint = promtool(&folder.join("alerts.yml")).unwrap_or_default();
    assert_eq!(complaint, "");
}
