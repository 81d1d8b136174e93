//! What the person in front of Codex sees while a turn is held, on a terminal: Codex itself says it, and goes on.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::Result;
use relay_sim::fixtures::codex as wire;
use relay_sim::websocket::{WsScript, WsUpstream, steps};
use relay_sim::{Reply, Script, Upstream};

use crate::answers::{WORD, responses};
use crate::codex::Codex;
use crate::scene::{Tools, on_terminal};
use crate::{Client, Line};

/// Waits of some seconds, and a notice in the first of them.
const SETTINGS: &str = "[relay]\nprofile = \"held\"\n[profile.held]\nbased_on = \"interactive\"\nbase = \"6s\"\n\
                        cap = \"6s\"\njitter = \"0ms\"\n[waiting]\nnotice = \"1s\"\n";
const HELD: &str = "is at capacity. Steady Relay holds this turn and sends it as soon as it may";

/// Codex with its screen.
struct OnScreen;

impl Client for OnScreen {
    fn furnish(&self, home: &Path) -> Result<()> {
        Codex::Key.furnish(home)?;
        let file = home.join(".codex/config.toml");
        let work = fs::canonicalize(home)?.join("work");
        let trusts = format!("\n[projects.\"{}\"]\ntrust_level = \"trusted\"\n", work.display());
        fs::write(&file, fs::read_to_string(&file)? + &trusts)?;
        Ok(())
    }

    fn line(&self, _: &Tools, home: &Path, base: Option<&str>) -> Line {
        let base = base.unwrap_or_default();
        let words =
            ["codex", "-c", &format!("openai_base_url=\"{base}/v1\""), "say the word"].map(str::to_owned);
        Line { words: words.to_vec(), env: vec![("CODEX_HOME", home.join(".codex").display().to_string())] }
    }
}

/// The screen while the turn was held; none without tmux.
async fn held(service: SocketAddr) -> Result<Option<String>> {
    let screens = on_terminal(&OnScreen, SETTINGS, service, &[HELD, WORD]).await?;
    if screens.is_none() {
        crate::tools::missing("tmux");
    }
    Ok(screens.map(|screens| screens[0].clone()))
}

/// Its title for the session is asked for in a thread of Codex's own.
fn is_title(metadata: Option<&str>) -> bool {
    metadata.is_some_and(|metadata| metadata.contains("thread_title"))
}

#[tokio::test(flavor = "multi_thread")]
async fn codex_shows_that_a_turn_is_held_and_goes_on_over_http() -> Result<()> {
    let refused = std::sync::atomic::AtomicBool::new(false);
    let script = Script::by(move |seen, _| match (seen.method.as_str(), seen.path()) {
        ("POST", _) if is_title(seen.header("x-codex-turn-metadata")) => responses::good(seen),
        ("POST", _) if !refused.swap(true, std::sync::atomic::Ordering::Relaxed) => {
            responses::overloaded_in_stream()
        }
        ("POST", _) => responses::good(seen),
        _ if seen.header("upgrade").is_some() => Reply::status(426),
        ("GET", "/v1/models") => Reply::status(200).json(wire::models()),
        _ => Reply::status(404),
    });
    let service = Upstream::start(script).await?;
    let Some(screen) = held(service.addr()).await? else { return Ok(()) };
    assert!(screen.contains("Reconnecting... 1/5"), "{screen}");
    Ok(())
}

/// Codex does not show the first failure of a WebSocket, which is why there are two.
#[tokio::test(flavor = "multi_thread")]
async fn codex_shows_that_a_turn_is_held_and_goes_on_over_a_websocket() -> Result<()> {
    // The turn, and the thread for its title.
    let script = WsScript::good(WORD).creates([
        steps::overloaded_failed(),
        steps::overloaded_failed(),
        steps::good(WORD),
    ]);
    let service = WsUpstream::start(script).await?;
    let Some(screen) = held(service.addr()).await? else { return Ok(()) };
    assert!(screen.contains("Reconnecting... 2/5"), "{screen}");
    Ok(())
}
