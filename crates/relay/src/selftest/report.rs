//! What a self-test came to, for people and for programs.

use std::time::Duration;

use relay_core::Lang;
use serde_json::{Value, json};

use super::measure::{Exchange, Steps};
use crate::terminal;
use crate::words::selftest as words;

/// All that was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The service that was asked; `None`: the pretend one.
    pub service: Option<String>,
    /// What was asked, as method and path.
    pub asked: String,
    /// The proxy on the way.
    pub via: Option<String>,
    /// A key was sent along.
    pub has_key: bool,
    /// The steps of the way.
    pub steps: Steps,
    /// The request and its answer; or why there was none.
    pub exchange: Result<Exchange, String>,
    /// How long it was with the relay before it was sent on.
    pub before_send: Option<Duration>,
    /// What the relay adds to a request, of the pretend service alone.
    pub added: Option<Duration>,
    /// The pretend stream came piece by piece.
    pub in_pieces: Option<bool>,
    /// The exit code of the request.
    pub exit: u8,
}

impl Default for Measured {
    fn default() -> Self {
        Self {
            service: None,
            asked: String::new(),
            via: None,
            has_key: false,
            steps: Steps::default(),
            exchange: Ok(Exchange::default()),
            before_send: None,
            added: None,
            in_pieces: None,
            exit: 0,
        }
    }
}

impl Measured {
    /// The service was reached and wants a key, which nobody has given.
    fn wants_key(&self) -> bool {
        let status = self.exchange.as_ref().map_or(0, |exchange| exchange.status);
        !self.has_key && matches!(status, 401 | 403)
    }

    /// The exit code: a service that is reached and wants a key is as good as it gets without one.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self.exit {
            0 if self.in_pieces == Some(false) => 1,
            5 if self.wants_key() => 0,
            exit => exit,
        }
    }

    /// For people.
    #[must_use]
    pub fn text(&self, lang: Lang) -> String {
        let mut lines = vec![match &self.service {
            None => words::opening_pretend(lang),
            Some(service) => words::opening(lang, service),
        }];
        let mut row = |name: String, value: String| lines.push(format!("  {}{value}", padded(&name)));
        match &self.exchange {
            Ok(exchange) => row(words::request(lang), format!("{} -> {}", self.asked, exchange.status)),
            Err(why) => row(words::request(lang), format!("{}: {why}", self.asked)),
        }
        if let Some(via) = &self.via {
            row(words::proxy(lang), via.clone());
        }
        let shown = |span: Option<Duration>| span.map_or_else(|| "-".to_owned(), spelled);
        row(words::dns(lang), shown(self.steps.dns));
        row(words::connect(lang), shown(self.steps.connect));
        row(words::tls(lang), shown(self.steps.tls));
        if let Ok(exchange) = &self.exchange {
            row(words::first_byte(lang), spelled(exchange.first_byte));
            row(words::total(lang), spelled(exchange.total));
        }
        if let Some(own) = self.before_send {
            row(words::before_send(lang), spelled(own));
        }
        if let Some(added) = self.added {
            row(words::added(lang), spelled(added));
        }
        if let Some(in_pieces) = self.in_pieces {
            row(words::stream(lang), if in_pieces { words::in_pieces(lang) } else { words::in_one(lang) });
        }
        lines.push(match self.exit_code() {
            0 if self.wants_key() => words::wants_key(lang),
            0 => words::good(lang),
            code => words::bad(lang, u64::from(code)),
        });
        lines.join("\n")
    }

    /// For programs.
    #[must_use]
    pub fn json(&self) -> Value {
        let span = |span: Option<Duration>| span.map(millis);
        let exchange = self.exchange.as_ref();
        json!({
            "v": 1,
            "ok": self.exit_code() == 0,
            "exit": self.exit_code(),
            "service": self.service,
            "asked": self.asked,
            "proxy": self.via,
            "key": self.has_key,
            "status": exchange.map(|exchange| exchange.status).ok(),
            "error": exchange.err(),
            "dns_ms": span(self.steps.dns),
            "connect_ms": span(self.steps.connect),
            "tls_ms": span(self.steps.tls),
            "first_byte_ms": span(exchange.map(|exchange| exchange.first_byte).ok()),
            "total_ms": span(exchange.map(|exchange| exchange.total).ok()),
            "before_send_ms": span(self.before_send),
            "added_ms": span(self.added),
            "in_pieces": self.in_pieces,
        })
    }
}

/// A name in the first column, which is as wide in every language.
fn padded(name: &str) -> String {
    terminal::padded(&format!("{name} "), 20)
}

fn millis(span: Duration) -> f64 {
    (span.as_secs_f64() * 100_000.0).round() / 100.0
}

fn spelled(span: Duration) -> String {
    let millis = millis(span);
    if millis >= 1000.0 { format!("{:.2} s", millis / 1000.0) } else { format!("{millis} ms") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(status: u16, has_key: bool, exit: u8) -> Measured {
        let exchange = Exchange {
            status,
            first_byte: Duration::from_micros(312_040),
            total: Duration::from_millis(1250),
            ..Exchange::default()
        };
        Measured {
            service: Some("openai (https://api.openai.com)".to_owned()),
            asked: "GET /v1/models".to_owned(),
            has_key,
            steps: Steps {
                dns: Some(Duration::from_micros(4200)),
                connect: Some(Duration::from_millis(11)),
                tls: None,
            },
            exchange: Ok(exchange),
            before_send: Some(Duration::from_micros(210)),
            exit,
            ..Measured::default()
        }
    }

    #[test]
    fn the_report_for_people() {
        insta::assert_snapshot!(measured(200, true, 0).text(Lang::English), @r"
        Self-test: a request through a relay to openai (https://api.openai.com)
          request             GET /v1/models -> 200
          name                4.2 ms
          connection          11 ms
          TLS                 -
          first byte          312.04 ms
          total               1.25 s
          relay, before send  0.21 ms
        ok: a request goes through
        ");
    }

    #[test]
    fn without_a_key_a_service_that_wants_one_is_reached_all_the_same() {
        let rows = [
            (measured(401, false, 5), 0),
            (measured(401, true, 5), 5),
            (measured(404, false, 5), 5),
            (measured(503, false, 3), 3),
            (Measured { in_pieces: Some(false), ..measured(200, false, 0) }, 1),
            (Measured { in_pieces: Some(true), ..measured(200, false, 0) }, 0),
        ];
        for (measured, code) in rows {
            assert_eq!(
                (measured.exit_code(), measured.json()["ok"] == true),
                (code, code == 0),
                "{measured:?}"
            );
        }
        let unreached = Measured { exchange: Err("refused".to_owned()), exit: 1, ..Measured::default() };
        let json = unreached.json();
        assert!(json["status"].is_null() && json["error"] == "refused" && json["exit"] == 1);
        assert!(unreached.text(Lang::Chinese).contains("refused"));
    }
}
