//! OpenAI Responses over a WebSocket, as Codex and api.openai.com speak it: each message is one JSON object, those of
//! the service the same as the data of its events over HTTP.
//!
//! Measured with Codex CLI 0.171.0: the error of a message is wrapped together with the status and the headers that an
//! HTTP answer would have had; any message that has a type counts as a sign of life, a ping does not; after a close the
//! turn is sent again in full over a new connection, and the first time nothing is shown, but for a close with 1009, after
//! which it goes over HTTP.

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};

use super::{Dialect, Heard, Parts};
use crate::fault::Fault;
use crate::json::{beginning, type_of, without_odd_numbers};
use crate::sse;

/// A sign of life that every client takes for one and none for output.
pub const KEEPALIVE: &str = r#"{"type":"keepalive"}"#;

/// Whether a client's message asks for an answer of the model.
#[must_use]
pub fn is_create(message: &str) -> bool {
    type_of(message.as_bytes()).as_deref() == Some("response.create")
}

/// The codes of errors that leave the request unanswered because the connection has lost, or never had, what it goes on
/// from. A new connection with the whole input is what heals them.
const WANTS_FULL_INPUT: &str = "previous_response_not_found";
/// The code of a connection that has served for as long as the service allows, an hour.
const CONNECTION_IS_USED_UP: &str = "websocket_connection_limit_reached";

/// Whether an error with this code says that the service does not have what the request goes on from.
#[must_use]
pub fn wants_full_input(code: Option<&str>) -> bool {
    code == Some(WANTS_FULL_INPUT)
}

/// Whether an error with this code says that the connection takes no more requests; this one was not run.
#[must_use]
pub fn is_used_up(code: Option<&str>) -> bool {
    code == Some(CONNECTION_IS_USED_UP)
}

/// What a close of the service with this code says of the request that it came instead of an answer to; `None` where it
/// says nothing, and the request may have run. These say that it was not, and will not be, taken (RFC 6455, section
/// 7.4.1).
#[must_use]
pub const fn fault_of_close(code: u16) -> Option<Fault> {
    match code {
        1002 | 1003 | 1007 | 1008 => Some(Fault::BadRequest),
        1009 => Some(Fault::TooLong),
        _ => None,
    }
}

/// Whether an answer's last word is in this message: its end, or that it failed.
#[must_use]
pub fn is_last(dialect: &dyn Dialect, message: &str) -> bool {
    let data = message.as_bytes();
    let event = sse::Event { name: b"", data, starts: 0, ends: 0, cut_short: false };
    matches!(dialect.hear(&event, &mut Parts::default()), Heard::End | Heard::Fault)
}

/// Which answer a message belongs to, where it says so.
#[must_use]
pub fn answer_of(message: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Message {
        response: Answer,
    }
    #[derive(serde::Deserialize)]
    struct Answer {
        id: String,
    }
    let message = serde_json::from_str::<Message>(message).ok()?;
    // One without a name is told from no other.
    Some(message.response.id).filter(|id| !id.is_empty())
}

/// The status and the headers that an error message is wrapped with: what an HTTP answer would have had.
pub(crate) fn wrapped(message: &[u8]) -> Option<(u16, HeaderMap)> {
    strictly_wrapped(message).or_else(|| strictly_wrapped(without_odd_numbers(message)?.as_bytes()))
}

fn strictly_wrapped(message: &[u8]) -> Option<(u16, HeaderMap)> {
    let members = beginning(message, &["type", "status", "headers"]);
    if members.get("type") != Some("\"error\"") {
        return None;
    }
    let status = members.get("status")?.parse().ok().filter(|status| (100..600).contains(status))?;
    let mut headers = HeaderMap::new();
    let told = members.get("headers").and_then(|told| serde_json::from_str::<Value>(told).ok());
    for (name, value) in told.iter().filter_map(Value::as_object).flatten() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) else {
            continue;
        };
        // There is a limit to how many can be told.
        if headers.try_append(name, value).is_err() {
            break;
        }
    }
    Some((status, headers))
}

/// A refused upgrade as the message that a client would have been told by on an open connection. Of the headers those
/// go along that clients read.
#[must_use]
pub fn wrap(status: u16, headers: &HeaderMap, body: &[u8]) -> String {
    const READ: [&str; 4] = ["retry-after", "retry-after-ms", "x-request-id", "cf-ray"];
    let read = |name: &&'static str| Some(((*name).to_owned(), headers.get(*name)?.to_str().ok()?.into()));
    let headers: serde_json::Map<String, Value> = READ.iter().filter_map(read).collect();
    let mended = without_odd_numbers(body);
    let told = serde_json::from_slice::<Value>(mended.as_deref().map_or(body, str::as_bytes)).ok();
    let error = told.as_ref().and_then(|body| body.get("error")).filter(|error| error.is_object());
    let error = error.cloned().unwrap_or_else(|| {
        let words = String::from_utf8_lossy(&body[..body.len().min(1024)]).trim().to_owned();
        let words = if words.is_empty() { format!("the service answered {status}") } else { words };
        json!({ "type": "error", "code": null, "message": words })
    });
    json!({ "type": "error", "status": status, "error": error, "headers": headers }).to_string()
}

/// An error of the relay's own, for clients that read the status.
#[must_use]
pub(crate) fn error_message(status: u16, body: &str) -> String {
    wrap(status, &HeaderMap::new(), body.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_unwrapped_with_status_and_headers_whatever_their_form() {
        let told = br#"{"type":"error","error":{"code":"x"},"status":429,"headers":{"Retry-After":"3","x-n":5,"b ad":"1","x":"a\nb"}}"#;
        let (status, headers) = wrapped(told).unwrap();
        assert_eq!((status, headers.len()), (429, 2));
        assert_eq!(
            (&headers["retry-after"], &headers["x-n"]),
            (&"3".parse().unwrap(), &"5".parse().unwrap())
        );
        let odd = br#"{"type":"error","error":{"code":"usage_limit_reached","resets_at":NaN},"status":429}"#;
        assert_eq!(wrapped(odd).map(|(status, _)| status), Some(429));
        for other in [
            r#"{"type":"error","error":{"code":"x"}}"#,
            r#"{"type":"response.failed","status":503}"#,
            r#"{"type":"error","status":"503"}"#,
            r#"{"type":"error","status":7}"#,
            "no json",
        ] {
            assert_eq!(wrapped(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn more_headers_than_there_is_room_for_are_left_out() {
        let headers: serde_json::Map<String, Value> =
            (0..40_000).map(|number| (format!("x-{number}"), "1".into())).collect();
        let told = json!({"type": "error", "status": 503, "headers": headers}).to_string();
        let (status, headers) = wrapped(told.as_bytes()).unwrap();
        assert!(status == 503 && headers.len() > 1000);
    }

    #[test]
    fn a_message_names_its_answer() {
        assert_eq!(
            answer_of(r#"{"type":"response.failed","response":{"id":"r","x":[1]}}"#).as_deref(),
            Some("r")
        );
        for other in [r#"{"type":"error","response":null}"#, r#"{"response":{"id":3}}"#, "[]", ""] {
            assert_eq!(answer_of(other), None, "{other}");
        }
    }

    #[test]
    fn closes_that_speak_of_the_request_are_told_from_those_that_do_not() {
        let faults =
            [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1011, 1012, 1013, 3000, 4008].map(fault_of_close);
        let (bad, long) = (Some(Fault::BadRequest), Some(Fault::TooLong));
        assert_eq!(faults, [None, None, bad, bad, bad, bad, long, None, None, None, None, None]);
    }

    #[test]
    fn a_refused_upgrade_is_told_in_the_words_of_the_service() {
        let headers = HeaderMap::from_iter([
            (http::header::RETRY_AFTER, HeaderValue::from_static("2")),
            (http::header::SERVER, HeaderValue::from_static("edge")),
        ]);
        let told = wrap(503, &headers, br#"{"error":{"code":"server_is_overloaded","message":"m"}}"#);
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!(told["error"], json!({"code": "server_is_overloaded", "message": "m"}));
        assert_eq!((&told["status"], &told["headers"]), (&json!(503), &json!({"retry-after": "2"})));
        let odd = wrap(429, &headers, br#"{"error":{"type":"usage_limit_reached","resets_at":NaN}}"#);
        let odd: Value = serde_json::from_str(&odd).unwrap();
        assert_eq!(odd["error"], json!({"type": "usage_limit_reached", "resets_at": null}));
        let page: Value = serde_json::from_str(&wrap(502, &headers, b" <html>bad</html>\n")).unwrap();
        assert_eq!(page["error"]["message"], "<html>bad</html>");
        let bare: Value = serde_json::from_str(&wrap(502, &headers, b"")).unwrap();
        assert_eq!(bare["error"]["message"], "the service answered 502");
    }

    #[test]
    fn only_response_create_asks() {
        assert!(is_create(r#"{"type":"response.create","model":"m"}"#));
        assert!(is_create(r#"{"model":"m","type":"response.create"}"#));
        assert!(!is_create(r#"{"type":"response.cancel"}"#) && !is_create("[]") && !is_create(""));
    }
}
