//! Both ends of a WebSocket as Codex speaks it with the Responses service: one text frame asks, text frames answer.
//!
//! The upgrade is made by hand and not by the WebSocket library, for the reasons the whole crate has: a test wants
//! to see the headers as they came, to refuse, and to fall silent. The frames are the library's. No extension is
//! ever negotiated, so that the bytes of a frame are those of its text.
//!
//! ```text
//!  WsClient  --- the relay under test ---  WsUpstream <- WsScript <- WsStep
//!  (client.rs)                             (upstream.rs)  (script.rs)
//! ```

mod client;
mod script;
mod upstream;

pub use client::{Refusal, WsClient, WsGot};
pub use script::{Upgrade, WsScript, WsStep, steps};
pub use upstream::{WsSeen, WsUpstream, WsWhat};

use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};

/// A header as it is written or came.
type Header = (String, String);

fn owned(headers: &[(&str, &str)]) -> Vec<Header> {
    headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn lines(headers: &[Header]) -> String {
    headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect()
}

/// Neither end has a limit of its own: what may be too long is for the relay to say.
fn without_limits() -> WebSocketConfig {
    WebSocketConfig::default().max_message_size(None).max_frame_size(None)
}

/// Code and reason of a close frame that has any.
fn plain(frame: Option<CloseFrame>) -> Option<(u16, String)> {
    frame.map(|frame| (frame.code.into(), frame.reason.as_str().to_owned()))
}

#[cfg(test)]
mod tests;
