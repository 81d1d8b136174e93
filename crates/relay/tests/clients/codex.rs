//! Codex CLI.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use relay_sim::fixtures::codex::{self, AT_CAPACITY};
use relay_sim::fixtures::openai_jwt;
use relay_sim::{Reply, Script};
use serde_json::{Value, json};

use crate::answers::{self, WORD, responses, script, times};
use crate::home::Home;
use crate::scene::{SENDS, Tools, run};
use crate::{Client, Line, Ran, Via};

/// Nothing but model traffic: no updates, plugins, apps or statistics.
const SETTINGS: &str = r#"# kept by hand
check_for_update_on_startup = false
sandbox_mode = "danger-full-access"

[analytics]
enabled = false

[otel]
metrics_exporter = "none"

[features]
plugins = false
apps = false
"#;

/// Codex with one of its logins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Codex {
    Key,
    ChatGpt,
}

impl Client for Codex {
    fn furnish(&self, home: &Path) -> Result<()> {
        let folder = home.join(".codex");
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("config.toml"), SETTINGS)?;
        let login = match self {
            Self::Key => json!({"OPENAI_API_KEY": "sk-proj-test"}),
            Self::ChatGpt => chatgpt_login(),
        };
        fs::write(folder.join("auth.json"), login.to_string()).context("cannot write the login")
    }

    fn settle(&self, home: &Path, service: &str) -> Result<()> {
        let file = home.join(".codex/config.toml");
        fs::write(file, format!("openai_base_url = '{service}/v1' # mine\n{SETTINGS}"))
            .context("cannot write it")
    }

    fn line(&self, _: &Tools, home: &Path, base: Option<&str>) -> Line {
        let mut words = vec!["codex".to_owned()];
        if let Some(base) = base {
            words.extend(["-c".to_owned(), format!("openai_base_url=\"{base}/v1\"")]);
        }
        words.extend(["exec", "--skip-git-repo-check", "say the word"].map(str::to_owned));
        Line { words, env: vec![("CODEX_HOME", home.join(".codex").display().to_string())] }
    }
}

/// A login of a personal account whose token is good for long.
fn chatgpt_login() -> Value {
    let token = openai_jwt(&json!({"email": "a@example.com", "https://api.openai.com/auth": {
        "chatgpt_plan_type": "plus", "chatgpt_account_id": "account-1", "chatgpt_user_id": "user-1"}}));
    json!({"auth_mode": "chatgpt", "OPENAI_API_KEY": null, "last_refresh": "2099-01-01T00:00:00Z", "tokens": {
        "id_token": token, "access_token": token, "refresh_token": "refresh", "account_id": "account-1"}})
}

async fn turn(via: Via, script: Script) -> Result<Ran> {
    run(&Codex::Key, via, script).await
}

pub(crate) fn assert_done(ran: &Ran) {
    assert_eq!((ran.code, ran.out.trim()), (Some(0), WORD), "{ran}");
}

pub(crate) fn assert_at_capacity(ran: &Ran) {
    assert_eq!((ran.code, ran.out.trim()), (Some(1), ""), "{ran}");
    assert!(ran.err.contains(AT_CAPACITY), "{ran}");
}

#[tokio::test]
async fn it_trusts_the_relay_over_https_by_ssl_cert_file() -> Result<()> {
    let script = script(times(2, &codex::overloaded_503()), responses::good);
    let ran = turn(Via::RelayOverHttps("SSL_CERT_FILE"), script).await?;
    assert_done(&ran);
    assert_eq!(ran.sends(), 3, "{ran}");
    Ok(())
}

#[tokio::test]
async fn overloaded_in_the_stream_twice() -> Result<()> {
    let script = || script(times(2, &responses::overloaded_in_stream()), responses::good);
    let alone = turn(Via::Direct, script()).await?;
    assert_at_capacity(&alone);
    assert_eq!((alone.requests(), alone.sends()), (1, 1), "{alone}");

    let relayed = turn(Via::Relay, script()).await?;
    assert_done(&relayed);
    assert_eq!((relayed.requests(), relayed.sends()), (1, 3), "{relayed}");
    assert!(!relayed.err.contains("Reconnecting"), "{relayed}");
    Ok(())
}

#[tokio::test]
async fn overloaded_in_the_stream_for_ever() -> Result<()> {
    let relayed = turn(Via::Relay, answers::always(&responses::overloaded_in_stream())).await?;
    assert_at_capacity(&relayed);
    assert_eq!((relayed.requests(), relayed.sends()), (1, SENDS), "{relayed}");
    Ok(())
}

#[tokio::test]
async fn refused_with_503_and_the_code() -> Result<()> {
    let script = || script(times(6, &codex::overloaded_503()), responses::good);
    let alone = turn(Via::Direct, script()).await?;
    assert_at_capacity(&alone);
    assert_eq!(alone.requests(), 5, "{alone}");

    let relayed = turn(Via::Relay, script()).await?;
    assert_done(&relayed);
    assert_eq!((relayed.requests(), relayed.sends()), (1, 7), "{relayed}");
    Ok(())
}

/// What a user has who has set nothing.
#[tokio::test]
async fn refused_twice_with_the_relay_as_shipped() -> Result<()> {
    let script = script(times(2, &codex::overloaded_503()), responses::good);
    let relayed = turn(Via::RelayAsShipped, script).await?;
    assert_done(&relayed);
    assert_eq!((relayed.requests(), relayed.sends()), (1, 3), "{relayed}");
    Ok(())
}

#[tokio::test]
async fn error_in_a_200() -> Result<()> {
    let script = || script(times(6, &answers::error_in_200(codex::overloaded_body())), responses::good);
    let alone = turn(Via::Direct, script()).await?;
    assert_eq!((alone.code, alone.requests()), (Some(1), 6), "{alone}");

    let relayed = turn(Via::Relay, script()).await?;
    assert_done(&relayed);
    assert_eq!((relayed.requests(), relayed.sends()), (1, 7), "{relayed}");
    Ok(())
}

#[tokio::test]
async fn reset_after_the_request() -> Result<()> {
    let script = || script(times(1, &Reply::reset_after_request()), responses::good);
    let alone = turn(Via::Direct, script()).await?;
    assert_done(&alone);
    assert_eq!(alone.requests(), 2, "{alone}");

    let relayed = turn(Via::Relay, script()).await?;
    assert_done(&relayed);
    assert_eq!((relayed.requests(), relayed.sends()), (1, 2), "{relayed}");
    Ok(())
}

/// The relay has one resend for a request that may have run; after it the client's own patience decides,
/// and each of its tries costs one send.
#[tokio::test]
async fn reset_more_often_than_the_grant() -> Result<()> {
    let script = || script(times(4, &Reply::reset_after_request()), responses::good);
    let alone = turn(Via::Direct, script()).await?;
    assert_done(&alone);
    assert_eq!(alone.requests(), 5, "{alone}");

    let relayed = turn(Via::Relay, script()).await?;
    assert_done(&relayed);
    assert_eq!((relayed.requests(), relayed.sends()), (4, 5), "{relayed}");
    Ok(())
}

#[tokio::test]
async fn throttled_with_a_time_to_come_back() -> Result<()> {
    let error = json!({"error": {"message": "Rate limit reached", "type": "requests", "param": null,
        "code": "rate_limit_exceeded"}});
    let throttled = Reply::status(429).header("Retry-After", 1).json(error);
    let script = || script(times(6, &throttled), responses::good);
    let alone = turn(Via::Direct, script()).await?;
    assert_eq!((alone.code, alone.requests()), (Some(1), 6), "{alone}");

    let relayed = turn(Via::Relay, script()).await?;
    assert_done(&relayed);
    assert_eq!((relayed.requests(), relayed.sends()), (1, 7), "{relayed}");
    let sends: Vec<_> = relayed.posts().collect();
    for pair in sends.windows(2) {
        let answered = pair[0].answered_at.context("every send was answered")?;
        assert!(pair[1].at >= answered + Duration::from_secs(1), "never early: {relayed}");
    }
    Ok(())
}

#[tokio::test]
async fn overloaded_after_a_tool_call() -> Result<()> {
    let script =
        || script(times(1, &responses::overloaded_after_tool("echo ran >> tool.txt")), responses::good);
    let tool_ran = |ran: &Ran| fs::read_to_string(ran.home().join("work/tool.txt"));
    let alone = turn(Via::Direct, script()).await?;
    assert_at_capacity(&alone);
    assert_eq!(tool_ran(&alone)?, "ran\n", "{alone}");

    let relayed = turn(Via::Relay, script()).await?;
    assert_done(&relayed);
    assert_eq!(tool_ran(&relayed)?, "ran\n", "the tool ran once: {relayed}");
    assert_eq!((relayed.requests(), relayed.sends()), (2, 2), "{relayed}");
    let second = relayed.posts().nth(1).context("two sends")?;
    assert!(second.text().contains("function_call_output"), "it resumes with the result: {relayed}");
    Ok(())
}

#[tokio::test]
async fn overloaded_with_a_chatgpt_login() -> Result<()> {
    let script = || script(times(2, &responses::overloaded_in_stream()), responses::good);
    let alone = run(&Codex::ChatGpt, Via::Direct, script()).await?;
    assert_at_capacity(&alone);
    assert_eq!(alone.requests(), 1, "{alone}");

    let relayed = run(&Codex::ChatGpt, Via::Relay, script()).await?;
    assert_done(&relayed);
    assert_eq!((relayed.requests(), relayed.sends()), (1, 3), "{relayed}");
    let first = relayed.posts().next().context("three sends")?;
    for send in relayed.posts() {
        assert_eq!(send.body, first.body, "byte for byte");
        assert_eq!(send.header("content-encoding"), Some("zstd"));
        assert_eq!(send.header("chatgpt-account-id"), Some("account-1"));
        assert_eq!(send.header("authorization"), first.header("authorization"));
    }
    Ok(())
}

#[tokio::test]
async fn run_leaves_the_home_as_codex_alone_does() -> Result<()> {
    let alone = turn(Via::Direct, script(Vec::new(), responses::good)).await?;
    assert_done(&alone);
    for via in [Via::Run, Via::Joined] {
        let wrapped =
            turn(via, script(times(2, &responses::overloaded_in_stream()), responses::good)).await?;
        assert_done(&wrapped);
        assert_eq!(wrapped.sends(), 3, "{wrapped}");
        assert_eq!(wrapped.waits_at_the_relay(), if via == Via::Joined { 2 } else { 0 }, "{wrapped}");
        let line = "steady-relay: 1 call met capacity errors, recovered, ";
        assert!(wrapped.err.contains(line), "{wrapped}");

        let home = Home::of(&wrapped.home())?;
        assert_eq!(home.differences(&Home::of(&alone.home())?), [""; 0], "{wrapped}");
        assert_eq!(home.naming_a_session(), &BTreeSet::new(), "{wrapped}");
        assert_eq!(fs::read_to_string(wrapped.home().join(".codex/config.toml"))?, SETTINGS);
    }
    Ok(())
}

#[tokio::test]
async fn run_ends_with_the_exit_code_of_codex() -> Result<()> {
    let refusal = Reply::status(400).text("no such thing");
    for via in [Via::Run, Via::Joined] {
        let wrapped = turn(via, answers::always(&refusal)).await?;
        assert_eq!((wrapped.code, wrapped.sends()), (Some(1), 1), "{wrapped}");
        assert!(wrapped.err.contains("no such thing"), "{wrapped}");
    }
    Ok(())
}

/// The user's own service stays where requests go, and `undo` leaves the file as it was, byte for byte.
#[tokio::test]
async fn setup_moves_codex_to_the_relay_and_undo_moves_it_back() -> Result<()> {
    let script = || script(times(2, &responses::overloaded_in_stream()), responses::good);
    let config = |ran: &Ran| fs::read_to_string(ran.home().join(".codex/config.toml"));
    let relayed = turn(Via::Setup, script()).await?;
    assert_done(&relayed);
    assert_eq!(relayed.sends(), 3, "{relayed}");
    assert!(relayed.posts().all(|seen| seen.path() == "/v1/responses"), "{relayed}");
    assert!(config(&relayed)?.contains("/to/own-codex/v1\" # mine\n"), "{relayed}");

    let undone = turn(Via::Undone, script()).await?;
    assert_at_capacity(&undone);
    assert_eq!(undone.sends(), 1, "{undone}");
    let text = config(&undone)?;
    let own = text.strip_suffix(SETTINGS).unwrap_or_default();
    assert!(
        own.starts_with("openai_base_url = 'http://127.0.0.1:") && own.ends_with("/v1' # mine\n"),
        "{text}"
    );
    Ok(())
}
