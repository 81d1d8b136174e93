//! Gemini CLI.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use relay_sim::fixtures::gemini as google;
use relay_sim::{Reply, Script};

use crate::answers::{WORD, gemini, script, times};
use crate::scene::{Tools, run};
use crate::{Client, Line, Ran, Via};

/// Gemini CLI with a prompt on its command line.
struct GeminiCli;

/// With an address of its own it asks which way to log in, unless it is told here.
const SETTINGS: &str = r#"{
  "security": {"auth": {"selectedType": "gemini-api-key"}},
  "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
  "privacy": {"usageStatisticsEnabled": false}
}
"#;

impl Client for GeminiCli {
    fn furnish(&self, home: &Path) -> Result<()> {
        fs::create_dir_all(home.join(".gemini"))?;
        fs::write(home.join(".gemini/settings.json"), SETTINGS).context("cannot write the settings")
    }

    /// Without a chosen login, which an address of its own needs.
    fn settle(&self, home: &Path, service: &str) -> Result<()> {
        let env = format!("GEMINI_API_KEY=AIza-test\nGOOGLE_GEMINI_BASE_URL={service}\n");
        fs::write(home.join(".gemini/.env"), env)?;
        let settings = SETTINGS.replace(r#""security": {"auth": {"selectedType": "gemini-api-key"}},"#, "");
        fs::write(home.join(".gemini/settings.json"), settings).context("cannot write the settings")
    }

    fn line(&self, _: &Tools, _: &Path, base: Option<&str>) -> Line {
        let words = ["gemini", "-m", "gemini-2.5-flash", "-p", "say the word"].map(str::to_owned).to_vec();
        let mut env = vec![
            ("GEMINI_API_KEY", "AIza-test".to_owned()),
            ("GEMINI_CLI_TRUST_WORKSPACE", "true".to_owned()),
        ];
        env.extend(base.map(|base| ("GOOGLE_GEMINI_BASE_URL", base.to_owned())));
        Line { words, env }
    }
}

async fn gemini_cli(via: Via, script: Script) -> Result<Ran> {
    run(&GeminiCli, via, script).await
}

fn assert_done(ran: &Ran) {
    assert_eq!((ran.code, ran.out.trim()), (Some(0), WORD), "{ran}");
}

/// The time from the first request for an answer to the last.
fn lasted(ran: &Ran) -> Duration {
    let at: Vec<_> = ran.posts().map(|post| post.at).collect();
    at[at.len() - 1] - at[0]
}

#[tokio::test]
async fn setup_moves_gemini_cli_to_the_relay_and_chooses_its_login() -> Result<()> {
    let relayed = gemini_cli(Via::Setup, script(times(2, &gemini::overloaded()), gemini::good)).await?;
    assert_done(&relayed);
    assert_eq!(relayed.sends(), 3, "{relayed}");
    let env = fs::read_to_string(relayed.home().join(".gemini/.env"))?;
    assert!(env.contains("/to/own-gemini\n"), "{env}");
    Ok(())
}

/// Alone it waits for five seconds and then for ten, give or take a third, and tells each time.
#[tokio::test]
async fn status_503_twice() -> Result<()> {
    let script = || script(times(2, &gemini::overloaded()), gemini::good);
    let (alone, relayed) =
        tokio::try_join!(gemini_cli(Via::Direct, script()), gemini_cli(Via::Relay, script()))?;
    assert_done(&alone);
    assert_eq!((alone.requests(), alone.err.contains("Attempt 2 failed")), (3, true), "{alone}");
    assert!(lasted(&alone) > Duration::from_secs(8), "{alone}");

    assert_done(&relayed);
    assert_eq!((relayed.requests(), relayed.sends()), (1, 3), "{relayed}");
    assert!(!relayed.err.contains("failed") && lasted(&relayed) < Duration::from_secs(3), "{relayed}");
    Ok(())
}

#[tokio::test]
async fn it_trusts_the_relay_over_https_by_node_extra_ca_certs() -> Result<()> {
    let script = script(times(2, &gemini::overloaded()), gemini::good);
    let ran = gemini_cli(Via::RelayOverHttps("NODE_EXTRA_CA_CERTS"), script).await?;
    assert_done(&ran);
    assert_eq!(ran.sends(), 3, "{ran}");
    Ok(())
}

#[tokio::test]
async fn overloaded_by_the_first_event() -> Result<()> {
    let script = || script(times(2, &gemini::overloaded_in_stream()), gemini::good);
    let relayed = gemini_cli(Via::Relay, script()).await?;
    assert_done(&relayed);
    assert_eq!((relayed.requests(), relayed.sends()), (1, 3), "{relayed}");
    Ok(())
}

/// Alone it hangs up after a minute without a head and sends again: the first answer is paid for and lost.
#[tokio::test]
async fn an_answer_that_takes_longer_than_it_waits() -> Result<()> {
    let late = Reply::sse(google::stream(WORD)).after(Duration::from_secs(70));
    let script = || script(times(1, &late), gemini::good);
    let (alone, relayed) =
        tokio::try_join!(gemini_cli(Via::Direct, script()), gemini_cli(Via::Relay, script()))?;
    assert_done(&alone);
    assert_eq!(alone.requests(), 2, "{alone}");
    assert!(lasted(&alone) > Duration::from_secs(60), "{alone}");

    assert_done(&relayed);
    assert_eq!((relayed.requests(), relayed.sends()), (1, 1), "{relayed}");
    let seen = relayed.connections("POST ")[0].interim_answers();
    assert!((12..=14).contains(&seen), "one every five seconds, not {seen}: {relayed}");
    Ok(())
}

/// Where its settings choose a key, it needs no more than the variable.
#[tokio::test]
async fn run_starts_it_where_a_key_is_chosen() -> Result<()> {
    for via in [Via::Run, Via::Joined] {
        let wrapped = gemini_cli(via, script(times(2, &gemini::overloaded()), gemini::good)).await?;
        assert_done(&wrapped);
        assert_eq!(wrapped.sends(), 3, "{wrapped}");
        assert_eq!(fs::read_to_string(wrapped.home().join(".gemini/settings.json"))?, SETTINGS);
    }
    Ok(())
}
