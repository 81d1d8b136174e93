//! Claude Code.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use relay_sim::fixtures::anthropic;
use relay_sim::{Reply, Script};
use serde_json::Value;

use crate::answers::{self, WORD, messages, script, times};
use crate::home::Home;
use crate::scene::{SENDS, Tools, run};
use crate::{Client, Line, Ran, Via};

/// Claude Code in print mode. Its own retries of a 503 are cut down, or the run alone would last three minutes.
pub(crate) struct Claude;

const SETTINGS: &str = "{\"includeCoAuthoredBy\": false}\n";

impl Client for Claude {
    fn furnish(&self, home: &Path) -> Result<()> {
        fs::create_dir_all(home.join(".claude"))?;
        fs::write(home.join(".claude/settings.json"), SETTINGS).context("cannot write the settings")
    }

    fn settle(&self, home: &Path, service: &str) -> Result<()> {
        let settings = format!("{{\n  \"env\": {{\"ANTHROPIC_BASE_URL\": \"{service}\"}}\n}}\n");
        fs::write(home.join(".claude/settings.json"), settings).context("cannot write it")
    }

    fn line(&self, _: &Tools, home: &Path, base: Option<&str>) -> Line {
        let words = ["claude", "-p", "--output-format", "json", "--allowedTools=Bash", "say the word"]
            .map(str::to_owned)
            .to_vec();
        let mut env = vec![
            ("CLAUDE_CONFIG_DIR", home.join(".claude").display().to_string()),
            ("ANTHROPIC_API_KEY", "sk-ant-test".to_owned()),
            ("CLAUDE_CODE_MAX_RETRIES", "3".to_owned()),
        ];
        env.extend(base.map(|base| ("ANTHROPIC_BASE_URL", base.to_owned())));
        Line { words, env }
    }
}

async fn claude(via: Via, script: Script) -> Result<Ran> {
    run(&Claude, via, script).await
}

fn result(ran: &Ran) -> Result<Value> {
    serde_json::from_str(&ran.out).with_context(|| format!("no JSON: {ran}"))
}

fn assert_done(ran: &Ran) -> Result<()> {
    let result = result(ran)?;
    assert_eq!(
        (ran.code, &result["result"], &result["is_error"]),
        (Some(0), &WORD.into(), &false.into()),
        "{ran}"
    );
    Ok(())
}

fn assert_failed(ran: &Ran, status: Option<u16>) -> Result<()> {
    let result = result(ran)?;
    assert_eq!((ran.code, &result["is_error"]), (Some(1), &true.into()), "{ran}");
    assert_eq!(result["api_error_status"], Value::from(status), "{ran}");
    Ok(())
}

#[tokio::test]
async fn it_trusts_the_relay_over_https_by_either_variable() -> Result<()> {
    for variable in ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"] {
        let busy = Reply::status(529).reason("").json(messages::error());
        let ran = claude(Via::RelayOverHttps(variable), script(times(2, &busy), messages::good)).await?;
        assert_done(&ran)?;
        assert!(ran.sends() >= 3, "{ran}");
    }
    Ok(())
}

#[tokio::test]
async fn status_529_more_often_than_it_tries() -> Result<()> {
    let script = || script(times(5, &anthropic::overloaded_529()), messages::good);
    let alone = claude(Via::Direct, script()).await?;
    assert_failed(&alone, Some(529))?;
    assert_eq!(alone.requests(), 3, "{alone}");

    let relayed = claude(Via::Relay, script()).await?;
    assert_done(&relayed)?;
    assert_eq!((relayed.requests(), relayed.sends()), (1, 6), "{relayed}");
    Ok(())
}

/// The user's own service stays where requests go.
#[tokio::test]
async fn setup_moves_claude_code_to_the_relay_and_undo_moves_it_back() -> Result<()> {
    let script = || script(times(5, &anthropic::overloaded_529()), messages::good);
    let address = |ran: &Ran| -> Result<String> {
        let settings: Value = serde_json::from_slice(&fs::read(ran.home().join(".claude/settings.json"))?)?;
        Ok(settings["env"]["ANTHROPIC_BASE_URL"].as_str().unwrap_or_default().to_owned())
    };
    let relayed = claude(Via::Setup, script()).await?;
    assert_done(&relayed)?;
    assert_eq!(relayed.sends(), 6, "{relayed}");
    assert!(address(&relayed)?.ends_with("/to/own-claude"), "{relayed}");

    let undone = claude(Via::Undone, script()).await?;
    assert_failed(&undone, Some(529))?;
    assert_eq!(undone.sends(), 3, "{undone}");
    assert!(!address(&undone)?.contains("/to/"), "{undone}");
    Ok(())
}

#[tokio::test]
async fn overloaded_by_the_first_event() -> Result<()> {
    let script = || script(times(5, &messages::overloaded_in_stream()), messages::good);
    let alone = claude(Via::Direct, script()).await?;
    assert_failed(&alone, None)?;
    assert_eq!(alone.requests(), 4, "{alone}");

    let relayed = claude(Via::Relay, script()).await?;
    assert_done(&relayed)?;
    assert_eq!((relayed.requests(), relayed.sends()), (1, 6), "{relayed}");
    Ok(())
}

#[tokio::test]
async fn storm_of_503_stays_within_one_budget() -> Result<()> {
    let alone = claude(Via::Direct, answers::always(&answers::unavailable())).await?;
    assert_failed(&alone, Some(503))?;
    assert_eq!(alone.requests(), 4, "{alone}");

    let relayed = claude(Via::Relay, answers::always(&answers::unavailable())).await?;
    assert_failed(&relayed, Some(503))?;
    assert_eq!((relayed.requests(), relayed.sends()), (1, SENDS), "{relayed}");
    Ok(())
}

#[tokio::test]
async fn error_in_a_200() -> Result<()> {
    let script = || script(times(2, &answers::error_in_200(messages::error())), messages::good);
    let alone = claude(Via::Direct, script()).await?;
    assert_eq!((alone.code, alone.requests()), (Some(1), 2), "{alone}");

    let relayed = claude(Via::Relay, script()).await?;
    assert_done(&relayed)?;
    assert_eq!((relayed.requests(), relayed.sends()), (1, 3), "{relayed}");
    Ok(())
}

#[tokio::test]
async fn early_end_before_anything_was_said() -> Result<()> {
    let script = || script(times(1, &messages::empty()), messages::good);
    let alone = claude(Via::Direct, script()).await?;
    assert_done(&alone)?;
    assert_eq!(alone.requests(), 2, "{alone}");

    let relayed = claude(Via::Relay, script()).await?;
    assert_done(&relayed)?;
    assert_eq!((relayed.requests(), relayed.sends()), (1, 2), "{relayed}");
    Ok(())
}

/// It runs a tool as soon as it has heard all of the call, and goes on with the result.
#[tokio::test]
async fn overloaded_after_a_tool_call() -> Result<()> {
    for via in [Via::Direct, Via::Relay] {
        let overloaded = messages::overloaded_after_tool("echo ran >> tool.txt");
        let ran = claude(via, script(times(1, &overloaded), messages::good)).await?;
        assert_done(&ran)?;
        assert_eq!(
            fs::read_to_string(ran.home().join("work/tool.txt"))?,
            "ran\n",
            "the tool ran once: {ran}"
        );
        assert_eq!((ran.requests(), ran.sends()), (2, 2), "{ran}");
    }
    Ok(())
}

/// Its first words are `HEAD /api/hello`; whoever then waits for a body of that answer never hears the request
/// that follows on the same connection.
#[tokio::test]
async fn greeting_and_request_share_a_connection() -> Result<()> {
    for via in [Via::Direct, Via::Relay] {
        let ran = claude(via, script(Vec::new(), messages::good)).await?;
        assert_done(&ran)?;
        let greeted = ran.connections("HEAD /api/hello ");
        assert_eq!(greeted.len(), 1, "{ran}");
        let lines = greeted[0].requests();
        assert_eq!(lines, ["HEAD /api/hello", "POST /v1/messages?beta=true"], "{ran}");
    }
    Ok(())
}

/// After output nothing is sent again by the relay; the client sees the break and sends again by itself.
#[tokio::test]
async fn early_end_after_output() -> Result<()> {
    for end in [messages::early_end(), messages::early_end().fin_without_terminator()] {
        let script = || script(times(1, &end), messages::good);
        for via in [Via::Direct, Via::Relay] {
            let ran = claude(via, script()).await?;
            assert_done(&ran)?;
            assert_eq!((ran.requests(), ran.sends()), (2, 2), "{ran}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn run_starts_it_with_what_it_needs_and_leaves_the_home_as_it_does_alone() -> Result<()> {
    let alone = claude(Via::Direct, script(Vec::new(), messages::good)).await?;
    assert_done(&alone)?;
    let alone = Home::of(&alone.home())?;
    for via in [Via::Run, Via::Joined] {
        let wrapped = claude(via, script(times(5, &anthropic::overloaded_529()), messages::good)).await?;
        assert_done(&wrapped)?;
        assert_eq!(wrapped.sends(), 6, "{wrapped}");
        assert_eq!(wrapped.waits_at_the_relay(), if via == Via::Joined { 5 } else { 0 }, "{wrapped}");
        let home = Home::of(&wrapped.home())?;
        assert_eq!(home.differences(&alone), [""; 0], "{wrapped}");
        assert_eq!(home.naming_a_session(), &BTreeSet::new(), "{wrapped}");
        assert_eq!(fs::read_to_string(wrapped.home().join(".claude/settings.json"))?, SETTINGS);
    }
    let denied = anthropic::error("permission_error", "not for you");
    let refused = claude(Via::Run, answers::always(&Reply::status(403).json(denied))).await?;
    assert_eq!((refused.code, refused.sends()), (Some(1), 1), "{refused}");
    Ok(())
}
