//! What the person in front of Codex sees while a turn is held, on a terminal: Codex itself says it, and goes on.

use std::net::SocketAddr;

use anyhow::Result;
use relay_sim::Upstream;
use relay_sim::websocket::{WsScript, WsUpstream, steps};

use crate::Via;
use crate::answers::WORD;
use crate::screens::OnScreen;
use crate::terminal::Terminal;

/// Waits of some seconds, and a notice in the first of them.
const SETTINGS: &str = "[relay]\nprofile = \"held\"\n[profile.held]\nbased_on = \"interactive\"\nbase = \"6s\"\n\
                        cap = \"6s\"\njitter = \"0ms\"\n[waiting]\nnotice = \"1s\"\n";
const HELD: &str = "is at capacity. Steady Relay holds this turn and sends it as soon as it may";

/// The screen while the turn was held; none without tmux.
async fn held(service: SocketAddr) -> Result<Option<String>> {
    let codex = OnScreen::Codex;
    let Some(terminal) = Terminal::open(&codex, Via::Relay, service, Some(SETTINGS)).await? else {
        return Ok(None);
    };
    codex.starts(&terminal).await?;
    codex.is_asked(&terminal, "say the word").await?;
    let held = terminal.until_shows(HELD).await?;
    terminal.until_shows(WORD).await?;
    Ok(Some(held))
}

#[tokio::test(flavor = "multi_thread")]
async fn codex_shows_that_a_turn_is_held_and_goes_on_over_http() -> Result<()> {
    let codex = OnScreen::Codex;
    let service =
        Upstream::start(codex.script(move |number| (number == 0).then(|| codex.overloaded()))).await?;
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
