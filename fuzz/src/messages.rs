//! The messages of a WebSocket: each is judged without a panic, no more of an answer is held than the limit allows, and
//! what has begun to pass is held or failed no more. What is no wrapped error is the same as the event that it would have
//! been over HTTP.

use std::time::{Duration, UNIX_EPOCH};

use http::{HeaderMap, StatusCode};
use relay_core::Moment;
use relay_core::dialect::responses_socket::{answer_of, is_create, is_last};
use relay_core::dialect::{Dialect, named};
use relay_core::preamble::{Asked, Head, Hold, Preamble, Verdict};

const SENT: Moment = Moment::after_start(Duration::from_secs(100));
const FATAL: &[&str] = &["server_is_overloaded", "policy_capacity_unavailable", "flex_unavailable"];
const LIMIT: usize = 1024;

/// Each line is a message.
pub fn messages(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Some(dialect) = named("openai_responses") else { return };
    let hold = Hold { bytes: LIMIT, time: None };
    let asked = Asked { dialect, generation: true, streams: true, hold, withhold: FATAL };
    let mut socket = Preamble::of_messages(asked, SENT, UNIX_EPOCH);
    let head = Head {
        status: StatusCode::OK,
        headers: HeaderMap::from_iter([(
            http::header::CONTENT_TYPE,
            http::HeaderValue::from_static("text/event-stream"),
        )]),
        bodiless: false,
        sent: SENT,
        arrived: SENT,
    };
    let mut stream = Preamble::new(asked, head, UNIX_EPOCH);
    let (mut held, mut passes, mut alike) = (0, false, true);
    for message in text.lines() {
        judged_alone(dialect, message);
        let verdict = socket.hear(message.as_bytes(), message.len(), SENT);
        let event = format!("data: {message}\n\n");
        let over_http = stream.hear(event.as_bytes(), message.len(), SENT);
        // A line that ends in a carriage return, or is empty, is no event; an error with a status is told by that.
        alike &= !message.is_empty() && !message.contains('\r') && !message.contains("\"status\"");
        if alike && held + message.len() < LIMIT / 2 {
            let (here, there) = (kind(&verdict), kind(&over_http));
            assert_eq!(here, there, "{message}");
        }
        held += message.len();
        match verdict {
            Verdict::Hold => assert!(!passes && held <= LIMIT, "{held} bytes are held"),
            Verdict::Pass => passes = true,
            Verdict::Fault(_) => {
                assert!(!passes, "it had begun");
                return;
            }
            Verdict::Cut { .. } => {
                assert!(passes, "nothing had begun");
                return;
            }
        }
    }
}

fn judged_alone(dialect: &dyn Dialect, message: &str) {
    let _asks = (is_create(message), is_last(dialect, message));
    if let Some(id) = answer_of(message) {
        assert!(message.len() > id.len() / 6, "a name from nowhere");
    }
}

const fn kind(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Hold => "hold",
        Verdict::Pass => "pass",
        Verdict::Fault(_) => "fault",
        Verdict::Cut { .. } => "cut",
    }
}
