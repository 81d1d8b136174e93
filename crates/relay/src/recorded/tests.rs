//! Every recorded answer of `fixtures/`, and what a file may look like.

use std::path::Path;
use std::time::UNIX_EPOCH;

use super::*;

fn wall() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_795_977_660)
}

fn taken(file: &[u8], asked: &TestRule) -> Report {
    test_rule(file, asked, &Config::default(), wall()).unwrap_or_else(|error| panic!("{error}"))
}

fn summary(file: &str) -> String {
    taken(file.as_bytes(), &TestRule::default()).summary()
}

#[test]
fn every_fixture_is_taken_for_what_it_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let (mut wrong, mut count) = (Vec::new(), 0);
    for dialect in std::fs::read_dir(folder).unwrap() {
        let dialect = dialect.unwrap();
        for file in std::fs::read_dir(dialect.path()).unwrap() {
            let path = file.unwrap().path();
            let bytes = std::fs::read(&path).unwrap();
            let (notes, _) = split_notes(&bytes);
            let expected = notes.iter().find_map(|note| note.strip_prefix("expect: ")).unwrap_or("nothing");
            let report = taken(&bytes, &TestRule::default());
            let name = format!("{}/{}", report.dialect, path.file_name().unwrap().display());
            assert_eq!(
                report.dialect,
                dialect.file_name().to_str().unwrap(),
                "{name} lies in its dialect's folder"
            );
            let is = report.summary();
            if is != expected {
                wrong.push(format!("{name}: {is}, not {expected}"));
            }
            count += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 50, "{count}");
}

#[test]
fn a_file_may_be_what_curl_prints_or_a_body_alone() {
    for (file, is) in [
        ("HTTP/1.1 503 Service Unavailable\r\nretry-after: 3\r\n\r\nbusy", "at_capacity, refused, 3s"),
        ("HTTP/2 503 \nretry-after: 3\n\n", "at_capacity, refused, 3s"),
        ("\u{feff}# a note\n#expect: nothing\nHTTP/1.0 500 Oops\n\n", "server_failed, failed, -"),
        ("HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 529 \r\n\r\n", "overloaded, refused, -"),
        ("{\"error\":{\"code\":503,\"message\":\"m\"}}", "at_capacity, refused, -"),
        ("data: {\"error\":{\"code\":503,\"message\":\"m\"}}\n\n", "at_capacity, refused, -"),
        ("{\"error\":\"server busy\"}\n{\"done\":true}\n", "at_capacity, refused, -"),
        ("[{\"error\":{\"code\":503,\"message\":\"m\"}}]", "at_capacity, refused, -"),
        ("<html>portal</html>", "server_failed, failed, -"),
        ("", "empty_answer, maybe ran, -"),
        (
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n24\r\n{\"error\":{\"code\":503,\"message\":\"m\"}}\r\n0\r\n\r\n",
            "at_capacity, refused, -",
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\n\r\n{\"error\":{\"code\":503,\"message\":\"m\"}}",
            "at_capacity, refused, -",
        ),
    ] {
        assert_eq!(summary(file), is, "{file}");
    }
    let body = TestRule { status: Some(429), dialect: Some("anthropic".to_owned()), ..TestRule::default() };
    let report =
        taken(b"{\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"m\"}}", &body);
    assert_eq!((report.dialect, report.status), ("anthropic", 429));
    assert_eq!(report.summary(), "throttled, refused, -");
}

#[test]
fn what_is_no_answer_is_said() {
    let error = |file: &str, asked: &TestRule| {
        test_rule(file.as_bytes(), asked, &Config::default(), wall()).unwrap_err().to_string()
    };
    let plain = TestRule::default();
    assert!(error("HTTP/1.1\r\n\r\n", &plain).contains("no status line"));
    assert!(error("HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", &plain).contains("no header"));
    assert!(
        error(
            "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n\u{1}\u{2}, no gzip at all, whatever is said",
            &plain
        )
        .contains("curl")
    );
    let grpc = TestRule { dialect: Some("grpc".to_owned()), ..TestRule::default() };
    assert!(error("x", &grpc).contains("there is no dialect `grpc`"));
    assert!(error("x", &TestRule { status: Some(42), ..plain }).contains("42 is no status"));
}

#[test]
fn a_report_is_for_people_and_for_programs() {
    let file = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\n\r\n{\"error\":{\"message\":\"no healthy upstream for key sk-proj-SECRETSECRET1234\"}}";
    let report = taken(file.as_bytes(), &TestRule::default());
    insta::assert_snapshot!(report.to_string(), @"
    taken for  at_capacity: the model is at capacity (status 503, heard as generic, told by its status)
    because    the status alone; no rule is about it
    evidence   refused if it comes within 15 s, else maybe_ran
    told wait  none: the profile's curve
    its words  no healthy upstream for key [redacted]
    generation sent again, as often as the profile allows; if it comes late, sent again by a grant (`ambiguous_resends`): it may be billed twice
    stateful   sent again, as often as the profile allows; if it comes late, not sent again: the answer goes to the client as it is
    pure       sent again, as often as the profile allows; if it comes late, not sent again: the answer goes to the client as it is
    other      not sent again: the answer goes to the client as it is
    ");
    let json = report.to_json();
    assert_eq!(json["v"], 1);
    assert_eq!(json["failure"]["fault"], "at_capacity");
    assert_eq!(json["failure"]["evidence"], json!({ "prompt": "refused", "late": "maybe_ran" }));
    assert_eq!(json["failure"]["resend"]["generation"], json!({ "prompt": "free", "late": "grant" }));
    let file =
        "HTTP/1.1 429 x\r\nretry-after: 2\r\n\r\n{\"error\":{\"code\":\"slow_down\",\"message\":\"m\"}}";
    let json = taken(file.as_bytes(), &TestRule::default()).to_json();
    assert_eq!(
        json["failure"]["rule"],
        json!({ "sign": "code `slow_down`", "source": "OpenAI API, error codes" })
    );
    assert_eq!(json["failure"]["told_wait"], 2.0);
    let served = taken(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"choices\":[{}]}",
        &TestRule::default(),
    );
    insta::assert_snapshot!(served.to_string(), @"
    taken for  an answer (status 200, heard as generic)
    held       16 bytes of its body, then it is the client's; it ends as it should
    ");
    assert_eq!(served.to_json()["answer"], json!({ "commits_at": 16, "breaks_off": false }));
}

/// The settings in the first fenced block under a heading of the page about rules.
fn example(heading: &str) -> Config {
    const PAGE: &str = include_str!("../../../../docs/rules.md");
    let (_, after) = PAGE.split_once(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("no {heading}"));
    let text = after.split("```").nth(1).unwrap().strip_prefix("toml\n").unwrap();
    let flags = crate::cli::Flags { config: Some("config.toml".into()), ..Default::default() };
    let loaded =
        crate::settings::load(&flags, &crate::settings::NO_VARIABLES, &|_| Ok(text.as_bytes().to_vec()));
    loaded.unwrap_or_else(|error| panic!("{error}")).config
}

fn by(config: &Config, file: &str) -> String {
    let report = test_rule(file.as_bytes(), &TestRule::default(), config, wall()).unwrap();
    let Taken::Failure(finding) = &report.verdict else { return report.summary() };
    let yours = if matches!(finding.because, Some(Because::Yours(_))) { "yours: " } else { "" };
    format!("{yours}{}", report.summary())
}

#[test]
fn the_headers_that_nobody_has_seen_are_rules_that_can_be_switched_on() {
    let config = example("Headers that nobody has seen");
    let json = "content-type: application/json\r\n";
    let served = "{\"choices\":[{\"message\":{\"content\":\"hi\"}}]}";
    let answer = |status: u16, header: &str, body: &str| {
        format!("HTTP/1.1 {status} x\r\n{json}{header}\r\n\r\n{body}")
    };
    for (header, status, is) in [
        ("x-codex-status: overloaded", 200, "yours: overloaded, refused, -"),
        ("x-codex-status: overloaded", 500, "yours: overloaded, refused, -"),
        ("x-codex-status: ready", 200, "commits at 42"),
        ("x-codex-model-capacity: 4/4", 503, "yours: at_capacity, refused, -"),
        ("x-codex-model-capacity: 3/4", 503, "at_capacity, refused if prompt, -"),
        ("x-codex-system-load: 98%", 503, "yours: overloaded, refused, 10s"),
        ("x-codex-system-load: 60%", 503, "at_capacity, refused if prompt, -"),
        ("x-codex-system-load: 98%", 200, "commits at 42"),
    ] {
        let body = if status == 200 { served } else { "" };
        assert_eq!(by(&config, &answer(status, header, body)), is, "{status} {header}");
        let off = by(&Config::default(), &answer(status, header, body));
        assert!(!off.starts_with("yours"), "none of them ships");
    }
}

#[test]
fn the_examples_of_the_page_do_what_it_says() {
    let config = example("Examples");
    for (file, is) in [
        (
            "HTTP/1.1 422 x\r\n\r\n{\"error\":{\"message\":\"Cold start in progress\"}}",
            "yours: model_loading, refused, 5s",
        ),
        ("HTTP/1.1 422 x\r\n\r\n{\"error\":{\"message\":\"bad tool\"}}", "bad_request, final, -"),
        (
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"state\":{\"kind\":\"queue_full\"}}",
            "yours: at_capacity, refused, -",
        ),
        (
            "HTTP/1.1 503 x\r\n\r\n{\"error\":{\"message\":\"Scheduled maintenance until 06:00\"}}",
            "yours: server_failed, final, -",
        ),
        (
            "HTTP/1.1 503 x\r\nx-should-retry: false\r\n\r\n{\"error\":{\"message\":\"Cold start\"}}",
            "at_capacity, final, -",
        ),
    ] {
        assert_eq!(by(&config, file), is, "{file}");
    }
    let asked = TestRule { from: Some("qwen".to_owned()), status: Some(429), ..TestRule::default() };
    let quota = br#"{"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}"#;
    assert_eq!(test_rule(quota, &asked, &config, wall()).unwrap().summary(), "throttled, refused, -");
    let other = TestRule { from: None, ..asked };
    assert_eq!(test_rule(quota, &other, &config, wall()).unwrap().summary(), "quota_spent, final, -");
}
