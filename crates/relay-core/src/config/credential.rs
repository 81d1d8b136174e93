//! A credential of the relay's own: where its value comes from, and the header it goes into. Not the upstreams that it is
//! for (they name it), and not the having of it (that is the relay's `credentials`).

use super::{Secret, WebhookUrl};
use crate::base_url::{BaseUrl, Scheme};
use crate::units::Invalid;
use http::HeaderName;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// How long before its end a token is renewed where nobody says. A minute: a call that was just sent with it arrives, and
/// clocks that differ by some seconds do no harm.
pub const REFRESH_BEFORE: Duration = Duration::from_secs(60);
/// The variable of a refresh token where none is named: what earlier tools read.
pub const REFRESH_TOKEN: &str = "REFRESH_TOKEN";

/// A credential of the relay's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// Where its value comes from.
    pub source: Source,
    /// The header that it goes into. `None`: the one that such a key usually has.
    pub header: Option<HeaderName>,
}

/// Where the value of a credential comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// It is held somewhere.
    Key(Held),
    /// A program writes it to its standard output.
    Command {
        /// The program and its arguments.
        argv: Vec<String>,
        /// How long it is good. `None`: until it is refused.
        ttl: Option<Duration>,
    },
    /// It is issued against a refresh token.
    OAuth(Box<OAuth>),
}

/// Where a secret is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Held {
    /// In the settings.
    Text(Secret),
    /// In a variable, as it was when the settings were read.
    Variable {
        /// Its name.
        name: String,
        /// What it holds; `None`: it is not set.
        value: Option<Secret>,
    },
    /// In a file.
    File(PathBuf),
}

/// How an access token is had against a refresh token (RFC 6749, section 6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OAuth {
    /// The refresh token.
    pub refresh_token: Held,
    /// Where tokens are issued.
    pub token_url: TokenUrl,
    /// Who asks.
    pub client_id: Option<String>,
    /// What proves that.
    pub client_secret: Option<Held>,
    /// What the token is to be good for. `None`: what it was good for before.
    pub scope: Option<String>,
    /// How the request is written.
    pub form: TokenRequest,
    /// How long before its end a token is renewed.
    pub before: Duration,
}

/// How the request for a token is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TokenRequest {
    /// As the fields of a form, as the standard has it.
    #[default]
    Form,
    /// As an object of JSON.
    Json,
}

impl TokenRequest {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Form, Self::Json];

    /// The name in settings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Form => "form",
            Self::Json => "json",
        }
    }
}

/// Where tokens are issued: over TLS or on this machine, and nowhere that sign-ins of a client are renewed.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenUrl(WebhookUrl);

impl TokenUrl {
    /// The scheme, host and port.
    #[must_use]
    pub const fn at(&self) -> &BaseUrl {
        self.0.at()
    }

    /// What is asked for there.
    #[must_use]
    pub fn path_and_query(&self) -> &str {
        self.0.expose()
    }
}

impl fmt::Debug for TokenUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "TokenUrl({}/…)", self.at())
    }
}

impl FromStr for TokenUrl {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let url: WebhookUrl = text.parse()?;
        let at = url.at();
        if at.scheme() == Scheme::Http && !at.is_loopback() {
            let hint = "write https: a refresh token goes there, and anyone on the way could read it";
            return Err(Invalid::new("is plain http to another machine", hint));
        }
        if let Some(whose) = sign_ins_at(at.host()) {
            return Err(Invalid::new(
                format!("is where sign-ins of {whose} are renewed, which the relay never does"),
                "leave it to the client, which owns its sign-in and renews it itself: without a `credential` it passes as \
                 it comes",
            ));
        }
        Ok(Self(url))
    }
}

/// Whose sign-ins are renewed at this host: a second party that renews one breaks it for the client that owns it.
fn sign_ins_at(host: &str) -> Option<&'static str> {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let is_at =
        |domain: &str| host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    let owners = [
        ("ChatGPT", &["openai.com", "chatgpt.com"][..]),
        ("Claude", &["anthropic.com", "claude.ai", "claude.com"][..]),
    ];
    owners.into_iter().find(|(_, domains)| domains.iter().any(|domain| is_at(domain))).map(|(whose, _)| whose)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_asked_for_in_the_clear_on_this_machine_alone() {
        for fine in [
            "https://auth.example/oauth/token",
            "https://auth.example/o/token/?tenant=1",
            "http://localhost:9/token",
            "http://127.0.0.1:8317/auth/refresh",
        ] {
            let url: TokenUrl = fine.parse().unwrap();
            assert!(fine.ends_with(url.path_and_query()), "{url:?}");
        }
        let refused = "http://auth.example/token".parse::<TokenUrl>().unwrap_err();
        assert_eq!(refused.why, "is plain http to another machine");
    }

    #[test]
    fn sign_ins_of_clients_are_never_renewed() {
        for (host, whose) in [
            ("auth.openai.com", "ChatGPT"),
            ("AUTH.OpenAI.com.", "ChatGPT"),
            ("openai.com", "ChatGPT"),
            ("chatgpt.com", "ChatGPT"),
            ("console.anthropic.com", "Claude"),
            ("platform.claude.com", "Claude"),
            ("claude.ai", "Claude"),
        ] {
            let refused = format!("https://{host}/oauth/token").parse::<TokenUrl>().unwrap_err();
            assert!(refused.why.contains(whose), "{host}: {}", refused.why);
        }
        assert!("https://notopenai.com/token".parse::<TokenUrl>().is_ok());
        assert!("https://openai.com.example/token".parse::<TokenUrl>().is_ok());
    }
}
