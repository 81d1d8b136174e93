//! Env files and the environment, on the wire.

use relay_sim::{Request, Upstream};

use crate::program::{Home, QUICK, good, refusal, serve, turn};

fn plain() -> Request {
    turn()
}

#[tokio::test]
async fn a_dot_env_in_the_working_directory_is_never_read_by_itself() {
    let evil = Upstream::start(good()).await.unwrap();
    let home = Home::new();
    let text = format!("UPSTREAM_URL={0}\nCODEX_ENDPOINT={0}\nSTEADY_RELAY_UPSTREAM={0}\n", evil.url());
    for name in [".env", "env", "relay.env", "config.toml"] {
        home.write(name, &text);
    }
    let relay = home.serve(&[]).await;
    let answer = relay.ask(&plain().header("authorization", "Bearer sk-mine")).await;
    assert_eq!((answer.status, evil.requests().len()), (400, 0));
    let named = home.serve(&["--env-file", ".env"]).await;
    assert_eq!(named.ask(&plain()).await.status, 200);
}

#[tokio::test]
async fn the_env_file_of_the_configuration_folder_is_read() {
    let up = Upstream::start(good()).await.unwrap();
    let home = Home::new();
    let wide = format!("\u{feff}export UPSTREAM_URL=\"{}\"\r\n", up.url());
    home.write("config/steady-relay/env", wide.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>());
    let mut relay = home.serve(&[]).await;
    assert_eq!(relay.ask(&plain()).await.status, 200);
    relay.says("is an older name and still read: write STEADY_RELAY_UPSTREAM").await;
}

#[tokio::test]
async fn codex_api_key_is_added_from_an_env_file_and_never_from_the_environment() {
    let up = Upstream::start(good()).await.unwrap();
    let home = Home::new();
    let file = format!("CODEX_ENDPOINT={}/v1\nCODEX_API_KEY=sk-from-file\n", up.url());
    home.write("relay.env", file);
    let mut relay = home.serve(&["--env-file", "relay.env"]).await;
    relay.ask(&plain()).await;
    relay.ask(&plain().header("Authorization", "Bearer sk-mine")).await;
    relay.ask(&plain().header("x-api-key", "mine")).await;
    let sent: Vec<_> =
        up.requests().iter().map(|seen| seen.header("authorization").map(str::to_owned)).collect();
    assert_eq!(sent, [Some("Bearer sk-from-file".to_owned()), Some("Bearer sk-mine".to_owned()), None]);
    assert!(!relay.said().contains("sk-from-file"));
    relay.says("CODEX_API_KEY in relay.env is an older name and still read").await;

    let mut command = home.program(&["--port", "0", "--upstream", &up.url()]);
    let relay = serve(command.env("CODEX_API_KEY", "sk-of-codex")).await;
    relay.ask(&plain()).await;
    assert_eq!(up.requests().last().unwrap().header("authorization"), None);
}

#[tokio::test]
async fn the_api_key_of_an_upstream_is_added_where_there_is_none() {
    let up = Upstream::start(good()).await.unwrap();
    let text = format!(
        "[relay]\nupstream = \"mine\"\n[upstream.mine]\nurl = \"{}\"\napi_key = \"sk-1\"\n",
        up.url()
    );
    let relay = Home::with_config(&text).serve(&[]).await;
    relay.ask(&plain()).await;
    assert_eq!(up.requests()[0].header_values("authorization"), ["Bearer sk-1"]);
}

#[tokio::test]
async fn max_retries_and_total_timeout_bound_every_profile() {
    let up = Upstream::start(refusal(503, "server_is_overloaded")).await.unwrap();
    let home = Home::with_config(&format!("[profile.interactive]\n{QUICK}[profile.batch]\n{QUICK}"));
    home.write("relay.env", "MAX_RETRIES=1\n");
    for profile in ["auto", "batch"] {
        let before = up.requests().len();
        let relay =
            home.serve(&["--env-file", "relay.env", "--upstream", &up.url(), "--profile", profile]).await;
        relay.ask(&plain()).await;
        assert_eq!(up.requests().len() - before, 2, "{profile}");
    }
    let later = Upstream::start(refusal(429, "rate_limit_exceeded").header("retry-after", 2)).await.unwrap();
    home.write("relay.env", "TOTAL_TIMEOUT=1.5\n");
    let relay = home.serve(&["--env-file", "relay.env", "--upstream", &later.url()]).await;
    // The client would bear ten minutes: what was asked for holds all the same.
    let patient = plain().header("x-stainless-timeout", 600).header("x-stainless-lang", "python");
    assert_eq!((relay.ask(&patient).await.status, later.requests().len()), (429, 1));
}

#[tokio::test]
async fn an_env_file_that_is_missing_or_wrong_stops_the_start() {
    let home = Home::new();
    let (code, _, said) = home.run(&["--env-file", "none.env"]).await;
    assert_eq!((code, said.as_str()), (2, "error: none.env: there is no such file\nhint: check the path\n"));
    home.write("relay.env", "PORT=hunter\n");
    let (code, _, said) = home.run(&["--env-file", "relay.env"]).await;
    assert!(code == 2 && said.contains("relay.env:1: PORT: `hunter` is no port"), "{said}");
}

#[tokio::test]
async fn beyond_loopback_the_first_lines_name_an_address_to_use_and_that_a_token_is_needed() {
    let home = Home::new();
    let mut command = home.program(&["--listen", "0.0.0.0", "--port", "0"]);
    let relay = serve(command.env("STEADY_RELAY_TOKEN", "hunter2hunter2hunter2")).await;
    assert!(relay.addr.ip().is_loopback(), "{}", relay.said());
    let port = relay.addr.port();
    let words = format!(
        "  open: to other machines, on every IPv4 address of this one, port {port}\n        every client needs the \
         token:\n        as header `x-steady-token`, or as /~TOKEN in front of the path\n"
    );
    assert!(relay.said().contains(&words) && !relay.said().contains("hunter2"), "{}", relay.said());
    assert_eq!(relay.ask(&Request::get("/healthz")).await.status, 401);
    assert_eq!(relay.ask(&Request::get("/~hunter2hunter2hunter2/healthz")).await.status, 200);
    assert!(!home.serve(&[]).await.said().contains("  open: "));
}

#[tokio::test]
async fn the_mode_of_an_older_tool_is_accepted() {
    let mut relay = Home::new().serve(&["--mode", "proxy"]).await;
    relay.says("--mode proxy is an older flag").await;
}
