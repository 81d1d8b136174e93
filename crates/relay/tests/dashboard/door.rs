//! Who is let in, and what the page may do.

use relay_sim::{Answer, Request};

use crate::program::{CONFIG, Home, Serving};

const PATHS: [&str; 9] = [
    "/__steady/",
    "/__steady/app.js",
    "/__steady/app.css",
    "/__steady/icon.svg",
    "/__steady/charts?span=day",
    "/__steady/heat?offset=480",
    "/__steady/config",
    "/__steady/log",
    "/__steady/calls",
];

async fn relay(home: &Home) -> Serving {
    home.serve(&["--upstream", "http://127.0.0.1:9", "--state-dir", "state"]).await
}

fn policy(answer: &Answer) -> Vec<&str> {
    answer.header("content-security-policy").unwrap_or("").split(';').map(str::trim).collect()
}

#[tokio::test]
async fn every_answer_forbids_all_that_the_page_does_not_need() {
    let home = Home::new();
    let relay = relay(&home).await;
    for path in PATHS.into_iter().chain(["/__steady/nothing", "/__steady/status", "/healthz"]) {
        let answer = relay.ask(&Request::get(path)).await;
        assert_eq!(answer.status, if path.ends_with("nothing") { 404 } else { 200 }, "{path}");
        let expected = [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "connect-src 'self'",
            "img-src 'self' data:",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        ];
        assert_eq!(policy(&answer), expected, "{path}");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-resource-policy", "same-origin"),
            ("cross-origin-opener-policy", "same-origin"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{path}");
        }
    }
}

#[tokio::test]
async fn a_page_of_somebody_else_reads_nothing() {
    let home = Home::new();
    let relay = relay(&home).await;
    let port = relay.addr.port();
    for path in PATHS.into_iter().chain(["/__steady", "/__steady/events"]) {
        // A name of theirs that leads here.
        for host in ["evil.example".to_owned(), format!("evil.example:{port}")] {
            let answer = relay.ask(&Request::get(path).header("Host", host)).await;
            assert_eq!(answer.status, 403, "{path}");
        }
        for (name, value) in [
            ("Origin", "https://evil.example"),
            ("Origin", "null"),
            ("Origin", "http://localhost:1"),
            ("Sec-Fetch-Site", "cross-site"),
            ("Sec-Fetch-Site", "same-site"),
        ] {
            let answer = relay.ask(&Request::get(path).header(name, value)).await;
            assert_eq!(answer.status, 403, "{path}: {name}: {value}");
        }
        let framed =
            Request::get(path).header("Sec-Fetch-Site", "cross-site").header("Sec-Fetch-Dest", "iframe");
        assert_eq!(relay.ask(&framed).await.status, 403, "{path}");
    }
    // A link to the page is the user's own doing.
    let linked = Request::get("/__steady/")
        .header("Sec-Fetch-Site", "cross-site")
        .header("Sec-Fetch-Dest", "document");
    assert_eq!(relay.ask(&linked).await.status, 200);
    let own = Request::get("/__steady/calls").header("Sec-Fetch-Site", "same-origin");
    assert_eq!(relay.ask(&own.header("Origin", format!("http://localhost:{port}"))).await.status, 200);
}

#[tokio::test]
async fn a_token_in_the_path_opens_the_page_and_changes_nothing() {
    let home = Home::new();
    home.write(CONFIG, "[relay]\ntoken = \"0123456789abcdef\"\n");
    let relay = relay(&home).await;
    for path in PATHS {
        assert_eq!(relay.ask(&Request::get(path)).await.status, 401, "{path}");
        let answer = relay.ask(&Request::get(&format!("/~0123456789abcdef{path}"))).await;
        assert_eq!(answer.status, 200, "{path}");
    }
    // Relative, so that the token stays before it.
    let moved = relay.ask(&Request::get("/~0123456789abcdef/__steady")).await;
    assert_eq!((moved.status, moved.header("location")), (308, Some("__steady/")));
    let page = relay.ask(&Request::get("/~0123456789abcdef/__steady/")).await.text();
    assert!(page.contains("src=\"./app.js\"") && page.contains("href=\"./app.css\""), "{page}");
    let probe = Request::post("/~0123456789abcdef/__steady/lanes/0f/probe");
    assert_eq!(
        relay.ask(&probe).await.status,
        401,
        "the token of all clients is no right to change anything"
    );
    let local = home.read("state/token");
    assert_eq!(relay.ask(&probe.header("x-steady-token", local.trim())).await.status, 404, "no such lane");
}

#[tokio::test]
async fn it_can_only_be_read() {
    let home = Home::new();
    let relay = relay(&home).await;
    for path in PATHS.into_iter().chain(["/__steady/events"]) {
        for method in ["POST", "PUT", "DELETE"] {
            assert_eq!(relay.ask(&Request::new(method, path)).await.status, 405, "{method} {path}");
        }
    }
}

const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

#[tokio::test]
async fn a_browser_without_the_token_is_asked_for_it_and_a_program_told_as_before() {
    let home = Home::new();
    home.write(CONFIG, "[relay]\ntoken = \"0123456789abcdef\"\n");
    let relay = relay(&home).await;
    for (path, status) in [("/__steady/", 401), ("/", 401), ("/~0123456789abcdeX/__steady/", 403)] {
        let opened = relay.ask(&Request::get(path).header("Accept", BROWSER)).await;
        let page = opened.text();
        assert_eq!(
            (opened.status, opened.header("content-type")),
            (status, Some("text/html; charset=utf-8")),
            "{path}"
        );
        assert!(page.contains("<input type=\"password\"") && page.contains("lang=\"en\""), "{page}");
        assert_eq!(page.contains("the token is not the one"), status == 403, "{page}");
        let rules = policy(&opened);
        assert!(rules.iter().all(|rule| !rule.contains("unsafe") && !rule.contains('*')), "{rules:?}");
        for rule in ["default-src 'none'", "form-action 'none'", "frame-ancestors 'none'", "base-uri 'none'"]
        {
            assert!(rules.contains(&rule), "{rules:?}");
        }
        assert_eq!(
            (opened.header("referrer-policy"), opened.header("cache-control")),
            (Some("no-referrer"), Some("no-store"))
        );
        let program = relay.ask(&Request::get(path).header("Accept", "*/*")).await;
        assert_eq!((program.status, program.header("content-type")), (status, Some("application/json")));
    }
    let elsewhere = relay.ask(&Request::get("/v1/models").header("Accept", BROWSER)).await;
    assert_eq!((elsewhere.status, elsewhere.header("content-type")), (401, Some("application/json")));
}

#[tokio::test]
async fn a_browser_at_the_root_of_a_relay_without_an_upstream_comes_to_the_page() {
    let home = Home::new();
    let relay = home.serve(&[]).await;
    let opened = relay.ask(&Request::get("/").header("Accept", BROWSER)).await;
    assert_eq!((opened.status, opened.header("location")), (303, Some("__steady/")));
    let program = relay.ask(&Request::get("/")).await;
    assert_eq!((program.status, program.header("location")), (400, None));
    assert!(program.text().contains("no_upstream"), "{}", program.text());
    let model = relay.ask(&Request::get("/v1/models").header("Accept", BROWSER)).await;
    assert_eq!(model.status, 400, "{}", model.text());
}
