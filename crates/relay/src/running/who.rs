//! Who listens at an address of this machine: the one place that tells a relay from everybody else. It is told nothing,
//! so anybody may listen there. Not a proof of whose relay it is: that is `run::join`, before a credential goes there.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde::Serialize;

/// How long a program on this machine may take to say who it is.
const SOON: Duration = Duration::from_secs(2);
/// Who has not said by then who it is will not.
const LONGEST: u64 = 16 * 1024;

/// How an answer of what stands in for a relay that does not start is known.
pub(crate) const ABSENT_CODE: &str = "relay_absent";

/// Who listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Who {
    /// A Steady Relay, in any language, with a token or without, with https or without.
    Relay,
    /// What takes its place where it cannot be started.
    StandIn,
    /// Another program.
    Stranger,
    /// Somebody holds the port and says nothing, as a service manager does until the relay runs.
    Silent,
    /// Nobody.
    Nobody,
}

/// Asks whoever listens there who it is. Takes two seconds at most to connect, and as long for each piece of an answer.
#[must_use]
pub fn ask(at: SocketAddr) -> Who {
    let at = crate::listen::reached_at(at);
    let Ok(mut stream) = TcpStream::connect_timeout(&at, SOON) else { return Who::Nobody };
    let mut answer = Vec::new();
    let limits = stream.set_read_timeout(Some(SOON)).and_then(|()| stream.set_write_timeout(Some(SOON)));
    let asked = limits
        .and_then(|()| write!(stream, "GET /__steady HTTP/1.1\r\nhost: {at}\r\nconnection: close\r\n\r\n"));
    if asked.is_ok() {
        // Whoever stops or cuts has said enough, or nothing.
        let _end = stream.take(LONGEST).read_to_end(&mut answer);
    }
    by(&answer)
}

/// Who gives such an answer where there is nothing to be had.
fn by(answer: &[u8]) -> Who {
    let text = String::from_utf8_lossy(answer);
    if text.contains(ABSENT_CODE) {
        Who::StandIn
    } else if is_relay(&text) {
        Who::Relay
    } else if answer.is_empty() {
        Who::Silent
    } else {
        Who::Stranger
    }
}

/// Whether a relay refuses something in its own name.
fn is_relay(text: &str) -> bool {
    ["steady-relay: ", "steady-relay："].iter().any(|name| text.contains(name))
}

/// Who gives an answer with this body, which is not what was asked for.
pub(super) fn by_body(body: &[u8]) -> Who {
    by(if body.is_empty() { b"-" } else { body })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn who_answers_is_known_by_the_answer() {
        let rows = [
            ("", Who::Silent),
            ("HTTP/1.1 404 Not Found\r\n\r\nsteady-relay: nothing here\n", Who::Relay),
            ("HTTP/1.1 404 Not Found\r\n\r\nsteady-relay：这里没有内容\n", Who::Relay),
            ("HTTP/1.1 401 x\r\n\r\n{\"message\":\"steady-relay: show the token\"}", Who::Relay),
            (
                "HTTP/1.1 400 x\r\n\r\n{\"code\":\"relay_absent\",\"message\":\"steady-relay: \"}",
                Who::StandIn,
            ),
            ("HTTP/1.1 200 OK\r\n\r\nok\n", Who::Stranger),
            ("HTTP/1.1 200 OK\r\n\r\n<html>", Who::Stranger),
            ("SSH-2.0", Who::Stranger),
        ];
        for (answer, who) in rows {
            assert_eq!(by(answer.as_bytes()), who, "{answer}");
        }
        assert_eq!(by_body(b""), Who::Stranger);
    }

    #[test]
    fn who_says_nothing_is_told_from_nobody() {
        let held = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let at = held.local_addr().unwrap();
        assert_eq!(ask(at), Who::Silent);
        drop(held);
        assert_eq!(ask(at), Who::Nobody);
    }
}
