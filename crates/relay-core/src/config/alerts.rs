//! What a person is told of, and how.

use crate::alert::Kind;
use crate::base_url::BaseUrl;
use crate::units::Invalid;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// What a person is told of, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlertSettings {
    /// What is told. All that asks for somebody; of a resend that may be billed twice the log tells anyway.
    pub kinds: BTreeSet<Kind>,
    /// After how long of being closed a lane is told of. 5 min: most lacks of capacity are over by then.
    pub lane_closed: Duration,
    /// How long a wait is to be told of. 50 s lies near the 60 s at which the longest curves end.
    pub long_wait: Duration,
    /// So many of them in a row. 3 are no accident.
    pub long_waits: u32,
    /// The shortest time between two of the same kind and lane. 10 min interrupt nobody too often.
    pub every: Duration,
    /// Whether they are in the log.
    pub log: bool,
    /// Where they are posted to. `None`: nowhere.
    pub webhook: Option<WebhookUrl>,
    /// The program that is run, and its arguments. Empty: none.
    pub command: Vec<String>,
    /// Whether the desktop shows them. Off: a notice interrupts.
    pub desktop: bool,
    /// How long the webhook and the command may take. 10 s are long for either.
    pub within: Duration,
}

impl Default for AlertSettings {
    fn default() -> Self {
        Self {
            kinds: Kind::ALL.into_iter().filter(|kind| *kind != Kind::MaybeBilledTwice).collect(),
            lane_closed: Duration::from_secs(300),
            long_wait: Duration::from_secs(50),
            long_waits: 3,
            every: Duration::from_secs(600),
            log: true,
            webhook: None,
            command: Vec::new(),
            desktop: false,
            within: Duration::from_secs(10),
        }
    }
}

/// An address that alerts are posted to. Whoever knows it can post there too, so it never shows.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookUrl {
    at: BaseUrl,
    path_and_query: String,
}

impl WebhookUrl {
    /// The scheme, host and port.
    #[must_use]
    pub const fn at(&self) -> &BaseUrl {
        &self.at
    }

    /// What is asked for there.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.path_and_query
    }
}

impl fmt::Debug for WebhookUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "WebhookUrl({}/…)", self.at)
    }
}

impl FromStr for WebhookUrl {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        const FORM: &str = "write scheme, host and path: \"https://hooks.example/services/alerts\"";
        let text = text.trim();
        let text = text.split_once('#').map_or(text, |(text, _)| text);
        let from = text.find("://").map_or(0, |at| at + 3);
        let end = text[from..].find(['/', '?']).map_or(text.len(), |at| from + at);
        let (at, rest) = text.split_at(end);
        if at.contains('@') {
            return Err(Invalid::new("has a user name or password before the host", FORM));
        }
        if !rest.bytes().all(|byte| byte.is_ascii_graphic() && !br#""<>\^`{|}"#.contains(&byte)) {
            return Err(Invalid::new("has a character that a URL cannot have", FORM));
        }
        let slash = if rest.starts_with('/') { "" } else { "/" };
        Ok(Self { at: at.parse()?, path_and_query: format!("{slash}{rest}") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_webhook_keeps_its_path_and_query_and_shows_neither() {
        let rows = [
            (
                "https://hooks.example/services/T0/B0/secret",
                "https://hooks.example",
                "/services/T0/B0/secret",
            ),
            (" http://127.0.0.1:9/x?token=secret#top ", "http://127.0.0.1:9", "/x?token=secret"),
            ("https://hooks.example?a", "https://hooks.example", "/?a"),
            ("https://hooks.example", "https://hooks.example", "/"),
        ];
        for (text, at, asked) in rows {
            let url: WebhookUrl = text.parse().unwrap();
            assert_eq!((url.at().to_string().as_str(), url.expose()), (at, asked), "{text}");
            assert!(!format!("{url:?}").contains("secret"));
        }
        for text in
            ["hooks.example/x", "ftp://a/x", "https://u:p@a.example/x", "https://a.example/ü", "", "https://"]
        {
            assert!(text.parse::<WebhookUrl>().is_err(), "{text}");
        }
    }
}
