//! Every recorded answer of `fixtures/`, and what a file may look like.

use std::path::Path;
use std::time::UNIX_EPOCH;

use super::file::split_notes;
use super::*;

fn wall() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_795_977_660)
}

fn taken(file: &[u8], asked: &TestRule) -> Report {
    let report = test_rule(file, asked, &Config::default(), wall()).unwrap_or_else(|error| panic!("{error}"));
    report.assumed.iter().for_each(|words| can_be_said(words));
    report
}

/// In Chinese, too.
fn can_be_said(words: &str) {
    if let Some(missing) = settings::lacks(words) {
        panic!("{missing}");
    }
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
        ("HTTP/1.1 200 OK\n\n", "empty_answer, maybe ran, -"),
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
    let nothing = TestRule { status: Some(200), ..TestRule::default() };
    assert_eq!(taken(b"", &nothing).summary(), "empty_answer, maybe ran, -");
    let report =
        taken(b"{\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"m\"}}", &body);
    assert_eq!((report.dialect, report.status), ("anthropic", 429));
    assert_eq!(report.summary(), "throttled, refused, -");
}

fn refused(file: impl AsRef<[u8]>, asked: &TestRule) -> String {
    let error = test_rule(file.as_ref(), asked, &Config::default(), wall()).unwrap_err();
    [&error.what, &error.hint].into_iter().for_each(|words| can_be_said(words));
    error.to_string()
}

#[test]
fn what_is_no_answer_is_told_with_its_line_and_what_to_do() {
    let plain = TestRule::default();
    for (file, told) in [
        ("", "the file is empty\nhint: record it with `curl -i"),
        (" \r\n", "the file is empty\nhint: "),
        ("# request: POST /v1/responses\n", "the file is empty\nhint: "),
        ("\u{0}\u{0}", "the file is no text, and no head says how it is encoded\nhint: record it with"),
        ("# a note\nHTTP/1.1\r\n\r\n", "line 2 is no status line\nhint: write it as it came: HTTP/1.1 503"),
        ("HTTP/1.1 99 x\r\n\r\n", "line 1 is no status line"),
        (
            "HTTP/1.1 200 OK\r\na: b\r\nhunter2\r\n\r\n",
            "line 3 stands in the head and is no header\nhint: write NAME",
        ),
        ("HTTP/1.1 102 P\n\nHTTP/1.1 200 OK\n\u{7f}: x\n\n", "line 4 stands in the head and is no header"),
        ("HTTP/1.1 102 P\n\nHTTP/1.1 OK\n\n", "line 3 is no status line"),
        (
            "> POST /v1/x HTTP/1.1\n>\n< HTTP/1.1 503 x\n< a: b\n<\n{}",
            "line 3 looks like what `curl -v` prints\nhint: ",
        ),
        (
            "# request: FOO\n{}",
            "the line `# request:` names no method and path\nhint: write `# request: POST",
        ),
        ("# request: POST responses\n{}", "the line `# request:` names no method and path"),
        (
            "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n\u{1}\u{2}, no gzip at all, whatever is said",
            "the body does not follow its `content-encoding`\nhint: record it plain: `curl -i --compressed`",
        ),
        ("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n\u{1}\u{2}", "the body does not follow"),
    ] {
        let is = refused(file, &plain);
        assert!(is.starts_with(told) && !is.contains("hunter2"), "{file:?}: {is}");
    }
    assert!(refused([0x1f, 0x8b, 0xff], &plain).starts_with("the file is no text"));
    let long = refused(vec![b' '; LONGEST + 1], &plain);
    assert_eq!(
        long,
        "the file is longer than the 16 MiB that are read\nhint: what decides stands at the beginning of an answer: \
         `head -c 1000000 FILE > SHORT`"
    );
    let grpc = TestRule { dialect: Some("grpc".to_owned()), ..TestRule::default() };
    assert!(
        refused("x", &grpc).starts_with("there is no dialect `grpc`\nhint: dialects: openai_responses, ")
    );
    let nobody = TestRule { from: Some("qwen".to_owned()), ..TestRule::default() };
    assert_eq!(
        refused("x", &nobody),
        "the settings have no [upstream.qwen]\nhint: `--from` takes one of: anthropic, chatgpt, gemini, openai"
    );
    assert!(refused("x", &TestRule { status: Some(42), ..plain }).contains("42 is no status"));
}

#[test]
fn what_is_assumed_is_said() {
    let assumed = |file: &str, asked: &TestRule| taken(file.as_bytes(), asked).assumed.join("\n");
    let plain = TestRule::default();
    for (file, words) in [
        ("{}", "taken for a body of application/json with status 200 (`--status` names another)"),
        ("data: {}\n\n", "taken for a body of text/event-stream with status 200"),
        ("event: a\ndata: {}\n\n", "taken for a body of text/event-stream with status 200"),
        ("a note of mine", "taken for a body of text/plain with status 200"),
        ("<html>", "taken for a body of text/html with status 200"),
    ] {
        let is = assumed(file, &plain);
        assert!(is.contains(words) && is.contains("nothing says what was asked: heard as generic"), "{is}");
    }
    let told = TestRule { status: Some(503), dialect: Some("anthropic".to_owned()), ..TestRule::default() };
    assert_eq!(assumed("{}", &told), "the file has no head: taken for a body of application/json");
    assert_eq!(assumed("HTTP/1.1 200 OK\n\n{}", &told), "");
    assert_eq!(assumed("# request: POST /v1/responses\nHTTP/1.1 200 OK\n\n{}", &plain), "");
    let json = taken(b"{}", &plain).to_json();
    assert_eq!(json["assumed"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_report_is_in_chinese_too() {
    let told = |file: &str| taken(file.as_bytes(), &TestRule::default()).told(Lang::Chinese);
    let busy = "HTTP/1.1 429 Too Many Requests\nretry-after: 3600\n\n{\"error\":{\"message\":\"slow down\"}}";
    let files = ["HTTP/1.1 200 OK\n\n{}", busy, "HTTP/1.1 500 Oops\n\nno"];
    insta::assert_snapshot!(files.map(told).join("\n\n"));
}

#[test]
fn a_report_is_for_people_and_for_programs() {
    let file = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\n\r\n{\"error\":{\"message\":\"no healthy\\u001b[2J upstream for key sk-proj-SECRETSECRET1234\"}}";
    let report = taken(file.as_bytes(), &TestRule::default());
    insta::assert_snapshot!(report.to_string(), @"
    taken for  at_capacity: the model is at capacity (status 503, heard as generic, told by its status)
    because    the status alone; no rule is about it
    evidence   refused if it comes within 15 s, else maybe_ran
    told wait  none: the profile's curve
    its words  no healthy [2J upstream for key [redacted]
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
        json!({ "sign": "code `slow_down`", "source": "OpenAI API, error codes", "at": null })
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

#[test]
fn a_wait_beyond_the_patience_is_told_and_who_would_bear_it() {
    let file =
        "HTTP/1.1 429 x\r\nretry-after: 600\r\n\r\n{\"error\":{\"code\":\"slow_down\",\"message\":\"m\"}}";
    let report = taken(file.as_bytes(), &TestRule::default());
    insta::assert_snapshot!(report.to_string(), @"
    taken for  throttled: the account is being throttled (status 429, heard as generic, told by its status)
    because    code `slow_down` [OpenAI API, error codes]
    evidence   refused
    told wait  10min at least, which is longer than the patience of interactive (120s): the answer goes back at once; these wait so long: patient (6h), auto with Codex (30min)
    its words  m
    generation not sent again, since the wait is too long: the answer goes to the client as it is
    stateful   not sent again, since the wait is too long: the answer goes to the client as it is
    pure       not sent again, since the wait is too long: the answer goes to the client as it is
    other      not sent again, since the wait is too long: the answer goes to the client as it is
    ");
    let json = report.to_json();
    let patience = json!({ "profile": "interactive", "longest": 120.0, "bears": false, "borne_by": ["patient", "auto with Codex"] });
    assert_eq!(json["failure"]["patience"], patience);
    // The settings' own profile counts, with the numbers that an env file gives to all.
    let mut config = Config { profile: ProfileChoice::Named("patient".to_owned()), ..Config::default() };
    let with = |config: &Config| test_rule(file.as_bytes(), &TestRule::default(), config, wall()).unwrap();
    assert!(with(&config).to_string().contains("told wait  10min at least\n"), "{}", with(&config));
    config.numbers.patience = Some(Duration::from_secs(9));
    let told =
        "longer than the patience of patient (9s): the answer goes back at once; no profile waits so long\n";
    assert!(with(&config).to_string().contains(told), "{}", with(&config));
}

#[test]
fn what_is_final_has_no_wait() {
    for (file, told) in [
        ("HTTP/1.1 401 x\r\n\r\n{}", "told wait  none; nothing is sent again\n"),
        ("HTTP/1.1 401 x\r\nretry-after: 3\r\n\r\n{}", "told wait  3s at least; nothing is sent again\n"),
    ] {
        let report = taken(file.as_bytes(), &TestRule::default()).to_string();
        assert!(report.contains(told), "{report}");
    }
}

#[test]
fn a_rule_of_ones_own_is_named_with_its_place() {
    let text = "[relay]\n\n[[rule]]\nphrase = \"no\"\nfault = \"throttled\"\n\n[[rule]]\nphrase = \"busy\"\nfault = \"overloaded\"\n";
    let flags = crate::cli::Flags { config: Some("my.toml".into()), ..Default::default() };
    let loaded =
        crate::settings::load(&flags, &crate::settings::NO_VARIABLES, &|_| Ok(text.as_bytes().to_vec()))
            .unwrap();
    let file = b"HTTP/1.1 500 x\r\n\r\n{\"error\":{\"message\":\"busy\"}}";
    let mut report = test_rule(file, &TestRule::default(), &loaded.config, wall()).unwrap();
    assert!(report.to_string().contains(", by [[rule]] number 2\n"), "{report}");
    report.name_rule(&loaded.rules_at);
    assert!(report.to_string().contains(", by [[rule]] number 2 (my.toml:7)\n"), "{report}");
    assert_eq!(report.to_json()["failure"]["rule"]["at"], "my.toml:7");
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
