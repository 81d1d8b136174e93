//! Where a request goes: which upstream, and which path there. Pure; not the connection (that is `upstream`).
//!
//! Without settings the credential decides, strictly: it only ever goes to the house that issued it. With one
//! upstream for everything, that one is taken. In both cases a credential that we recognise does not cross
//! the network unencrypted unless the upstream's entry says `allow_plaintext`.
//!
//! ```text
//! upstream path         client's path             goes to
//! /v1                   /v1/responses             /v1/responses             a version both bring appears once
//! /api/paas/v4          /v1/chat/completions      /api/paas/v4/chat/…       the upstream's version stands
//! (none)                /chat/completions         /v1/chat/completions      known paths get their version
//! /backend-api/codex    /v1/responses             /backend-api/codex/responses           (V1::Strip)
//! /own/gateway          /responses                /own/gateway/responses                 (V1::Keep)
//! ```
//! Bytes are kept as they came: no escape is touched, no `..` resolved. Scheme, host and port are the
//! upstream's, whatever stands in the request.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::header::{HeaderName, HeaderValue};
use http::uri::PathAndQuery;
use http::{HeaderMap, Method, StatusCode};
use relay_core::config::{self, Config, Http2, ProxyChoice, Secret, UpstreamChoice};
use relay_core::units::Invalid;
use relay_core::{BaseUrl, Scheme};

use crate::credential::{Elsewhere, Issuer, Verdict, lend};
use crate::upstream::Origin;

/// Paths that belong to a version of the API, and that clients send without it if their base URL has none.
const VERSIONED: [&str; 9] = [
    "/responses",
    "/responses/compact",
    "/chat/completions",
    "/completions",
    "/embeddings",
    "/messages",
    "/messages/count_tokens",
    "/models",
    "/moderations",
];

/// What happens to a leading `/v1` of the client's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum V1 {
    /// It appears once; paths that need it get it.
    Add,
    /// It is dropped: this upstream has no versions.
    Strip,
    /// It appears once; no path gets it. For an upstream whose client would append its paths as they are.
    Keep,
}

/// One service that requests can go to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    /// The entry's name in settings, logs and lanes.
    pub name: String,
    /// Where it is.
    pub url: BaseUrl,
    /// A key for requests that carry no credential.
    pub api_key: Option<Secret>,
    /// Headers that are added to every request.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Whether recognised credentials may go there without TLS.
    pub allow_plaintext: bool,
    /// What happens to `/v1`.
    pub v1: V1,
    /// When HTTP/2 is spoken; as the settings say for all where it is `None`.
    pub http2: Option<Http2>,
    /// The proxy on the way; as the settings say for all where it is `None`.
    pub proxy: Option<ProxyChoice>,
}

impl Upstream {
    /// The entry `name` of the settings.
    #[must_use]
    pub fn of(name: &str, entry: &config::Upstream) -> Self {
        Self {
            name: name.to_owned(),
            url: entry.url.clone(),
            api_key: entry.api_key.clone(),
            headers: entry.headers.clone(),
            allow_plaintext: entry.allow_plaintext,
            v1: if entry.strips_v1() { V1::Strip } else { V1::Add },
            http2: entry.http2,
            proxy: entry.proxy.clone(),
        }
    }

    /// An entry for `url`, with `/v1` treated as such URLs need it, nothing added and plaintext not allowed.
    ///
    /// # Errors
    /// Where `url` cannot be an upstream.
    pub fn parse(name: &str, url: &str) -> Result<Self, Invalid> {
        Ok(Self::of(name, &config::Upstream::at(url.parse()?)))
    }

    /// Whether TLS is spoken.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.url.scheme() == Scheme::Https
    }

    /// Where connections go.
    #[must_use]
    pub fn origin(&self) -> Origin {
        Origin { https: self.is_https(), host: self.url.host().to_owned(), port: self.url.port() }
    }

    /// Scheme, host and port, as one reads them.
    #[must_use]
    pub fn shown(&self) -> String {
        format!("{}://{}", self.url.scheme().name(), self.url.authority())
    }

    /// Adds the key of this upstream, where there is one, to a request that carries no credential at all.
    pub fn lend_key(&self, headers: &mut HeaderMap, path_and_query: &str) {
        if let Some(key) = &self.api_key {
            lend(key.expose(), headers, path_and_query);
        }
    }

    /// Whether this upstream is the relay itself, as far as can be told without looking names up.
    #[must_use]
    pub fn is_at(&self, listening: &[SocketAddr]) -> bool {
        listening.iter().any(|at| {
            let same_address = self.url.ip().is_some_and(|ip| ip == at.ip() || ip.is_unspecified());
            at.port() == self.url.port()
                && (same_address || self.url.is_loopback() && reaches_from_loopback(at.ip()))
        })
    }

    /// The path of a request there: this upstream's, then the client's.
    fn join(&self, client: &str) -> String {
        let (path, query) = client.split_at(client.find('?').unwrap_or(client.len()));
        let (first, rest) = first_segment(path);
        let last = self.url.path().rsplit('/').next().unwrap_or_default();
        let brought_twice = is_version(last) && is_version(first) && (first == "v1" || first == last);
        let (version, path) = match self.v1 {
            V1::Strip if first == "v1" => ("", rest),
            V1::Add | V1::Keep if brought_twice => ("", rest),
            V1::Add if VERSIONED.contains(&path) && !self.url.path().split('/').any(is_version) => {
                ("/v1", path)
            }
            V1::Add | V1::Strip | V1::Keep => ("", path),
        };
        let slash =
            if self.url.path().is_empty() && version.is_empty() && path.is_empty() { "/" } else { "" };
        [self.url.path(), version, path, slash, query].concat()
    }
}

/// Whether a listener on `ip` is reached through a loopback name.
fn reaches_from_loopback(ip: IpAddr) -> bool {
    ip.is_loopback() || ip.is_unspecified()
}

/// The first segment of a path, and all behind it.
fn first_segment(path: &str) -> (&str, &str) {
    let Some(inner) = path.strip_prefix('/') else { return ("", path) };
    inner.split_at(inner.find('/').unwrap_or(inner.len()))
}

/// Whether a path segment names a version: `v1`, `v4`, `v1beta`, `v1.1`, `v1beta2`.
#[must_use]
pub fn is_version(segment: &str) -> bool {
    let Some(number) = segment.strip_prefix('v') else { return false };
    let after = number.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let after_point = match after.strip_prefix('.') {
        Some(minor) => {
            let left = minor.trim_start_matches(|letter: char| letter.is_ascii_digit());
            if left.len() == minor.len() {
                return false;
            }
            left
        }
        None => after,
    };
    let stage = after_point.trim_end_matches(|letter: char| letter.is_ascii_digit());
    after.len() < number.len() && matches!(stage, "" | "alpha" | "beta")
}

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// The method.
    pub method: &'a Method,
    /// Path and query as they came, see [`crate::guard::path_and_query`].
    pub path_and_query: &'a str,
    /// What the credentials say.
    pub verdict: &'a Verdict,
}

/// Where a request goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The service: its name, scheme, host, port, and the headers to add.
    pub upstream: Arc<Upstream>,
    /// The path and query there.
    pub path_and_query: PathAndQuery,
}

const NAME_ONE: &str = "hint: start the relay with `--upstream URL` or STEADY_RELAY_UPSTREAM, or choose an entry [upstream.NAME] of the \
     settings: by `upstream = \"NAME\"`, by a [[route]], or by a path that begins with /to/NAME";

/// Why a request goes nowhere. The relay answers these itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// `CONNECT`, `*` or worse: there is no path to append.
    #[error("this relay forwards paths (`/v1/responses`); it is no general proxy")]
    NoPath,
    /// Nothing says where to.
    #[error(
        "the request carries no credential, so nothing says where it should go\n{NAME_ONE}; or sign the client in"
    )]
    NoCredential,
    /// A credential that no built-in upstream issued.
    #[error("the credential in `{0}` is not one this relay can tell, so it is sent nowhere\n{NAME_ONE}")]
    UnknownCredential(HeaderName),
    /// Two credentials of two houses.
    #[error("`{}` holds {} and `{}` holds {}: one request cannot go to both\n{NAME_ONE}, or send one credential", .0.0, .0.1.describe(), .1.0, .1.1.describe())]
    Disagreement((HeaderName, Issuer), (HeaderName, Issuer)),
    /// The built-in entry is gone from the settings.
    #[error("the request carries {}, and there is no upstream `{}` for it\n{NAME_ONE}", .0.describe(), .0.upstream())]
    NoEntry(Issuer),
    /// The path names an upstream that is not there.
    #[error("the path names the upstream `{name}`, and there is none of that name\nhint: those there are: {}", known.join(", "))]
    NoSuchName {
        /// The name.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// A credential of a service that the relay cannot find by itself.
    #[error("the request is meant for {0}")]
    Elsewhere(Elsewhere),
    /// A route names an upstream that is not there.
    #[error("a [[route]] names the upstream `{0}`, and there is no entry [upstream.{0}]")]
    NoSuchEntry(String),
    /// A known credential would cross the network in the clear.
    #[error(
        "upstream `{name}` is {origin}: the credential would cross the network unencrypted\nhint: use https, or say allow_plaintext = true in [upstream.{name}]"
    )]
    Plaintext {
        /// The upstream's name.
        name: String,
        /// Its scheme, host and port.
        origin: String,
    },
}

impl Refusal {
    /// The status of the answer. Codex prints the text of a 400 as it is, and no client sends it again.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::NoSuchName { .. } => StatusCode::NOT_FOUND,
            Self::NoPath
            | Self::NoCredential
            | Self::UnknownCredential(_)
            | Self::Disagreement(..)
            | Self::Elsewhere(_)
            | Self::NoEntry(_)
            | Self::NoSuchEntry(_)
            | Self::Plaintext { .. } => StatusCode::BAD_REQUEST,
        }
    }
}

/// All upstreams that requests can go to.
#[derive(Debug, Clone, Default)]
pub struct Upstreams {
    entries: BTreeMap<String, Arc<Upstream>>,
    everything: Option<Arc<Upstream>>,
}

impl Upstreams {
    /// The upstreams that the settings know.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        let mut upstreams = Self::default();
        for (name, entry) in &config.upstreams {
            upstreams.set(Upstream::of(name, entry));
        }
        if let Some(choice) = &config.upstream
            && let Some(entry) = config::Upstream::chosen(choice, &config.upstreams)
        {
            let name = match choice {
                UpstreamChoice::Named(name) => name.as_str(),
                UpstreamChoice::Url(_) => entry.url.host(),
            };
            upstreams.send_everything_to(Upstream::of(name, entry));
        }
        upstreams
    }

    /// Adds an entry, or replaces the one of that name.
    pub fn set(&mut self, upstream: Upstream) {
        self.entries.insert(upstream.name.clone(), Arc::new(upstream));
    }

    /// From now on everything goes there.
    pub fn send_everything_to(&mut self, upstream: Upstream) {
        self.everything = Some(Arc::new(upstream));
    }

    /// Every upstream, the one for everything first.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Upstream>> {
        self.everything.iter().chain(self.entries.values())
    }

    /// Where a request goes.
    ///
    /// # Errors
    /// [`Refusal`] where it goes nowhere.
    pub fn target(&self, ask: Ask<'_>) -> Result<Target, Refusal> {
        let upstream = match &self.everything {
            Some(upstream) => upstream,
            None => self.by_issuer(issuer(ask)?)?,
        };
        to(upstream, ask)
    }

    /// Where a request goes whose route names an upstream.
    ///
    /// # Errors
    /// [`Refusal`] where it goes nowhere.
    pub fn named(&self, name: &str, ask: Ask<'_>) -> Result<Target, Refusal> {
        let upstream = self.entries.get(name).ok_or_else(|| Refusal::NoSuchEntry(name.to_owned()))?;
        to(upstream, ask)
    }

    /// Where a request goes whose path begins with `/to/NAME`.
    ///
    /// # Errors
    /// [`Refusal`] where it goes nowhere.
    pub fn addressed(&self, name: &str, ask: Ask<'_>) -> Result<Target, Refusal> {
        let Some(upstream) = self.entries.get(name) else {
            // What came is shown, but not as long as it may be.
            let name = name.chars().take(64).filter(|letter| !letter.is_control()).collect();
            return Err(Refusal::NoSuchName { name, known: self.entries.keys().cloned().collect() });
        };
        to(upstream, ask)
    }

    fn by_issuer(&self, issuer: Issuer) -> Result<&Arc<Upstream>, Refusal> {
        self.entries.get(issuer.upstream()).ok_or(Refusal::NoEntry(issuer))
    }
}

fn to(upstream: &Arc<Upstream>, ask: Ask<'_>) -> Result<Target, Refusal> {
    if *ask.method == Method::CONNECT || !ask.path_and_query.starts_with('/') {
        return Err(Refusal::NoPath);
    }
    let in_the_clear = !upstream.is_https() && !upstream.url.is_loopback() && !upstream.allow_plaintext;
    if in_the_clear && ask.verdict.holds_recognised() {
        return Err(Refusal::Plaintext { name: upstream.name.clone(), origin: upstream.shown() });
    }
    let Ok(path_and_query) = PathAndQuery::try_from(upstream.join(ask.path_and_query)) else {
        return Err(Refusal::NoPath);
    };
    Ok(Target { upstream: Arc::clone(upstream), path_and_query })
}

/// Whose the request is. Where it carries nothing that could reach a wrong house, a sure path is enough.
fn issuer(ask: Ask<'_>) -> Result<Issuer, Refusal> {
    match ask.verdict {
        Verdict::One(issuer) => Ok(*issuer),
        Verdict::Unknown { elsewhere: Some(service), .. } => Err(Refusal::Elsewhere(*service)),
        Verdict::Unknown { header, elsewhere: None, .. } => Err(Refusal::UnknownCredential(header.clone())),
        Verdict::Disagree { one, other } => Err(Refusal::Disagreement(one.clone(), other.clone())),
        Verdict::None => {
            let path = ask.path_and_query.split('?').next().unwrap_or_default();
            // Claude Code asks `HEAD /api/hello` before it sends anything.
            let anthropic =
                matches!(path, "/api/hello" | "/v1/messages") || path.starts_with("/v1/messages/");
            let reads = *ask.method == Method::GET || *ask.method == Method::HEAD;
            if anthropic && reads { Ok(Issuer::Anthropic) } else { Err(Refusal::NoCredential) }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn joined(url: &str, v1: Option<V1>, path: &str) -> String {
        let mut upstream = Upstream::parse("x", url).unwrap();
        upstream.v1 = v1.unwrap_or(upstream.v1);
        upstream.join(path)
    }

    #[test]
    fn paths_are_joined() {
        let keep = Some(V1::Keep);
        let strip = Some(V1::Strip);
        let rows = [
            ("https://h/v1", None, "/v1/responses", "/v1/responses"),
            ("https://h/v1/", None, "/responses?a=1", "/v1/responses?a=1"),
            ("https://h", None, "/v1/responses", "/v1/responses"),
            ("https://h", None, "/responses", "/v1/responses"),
            ("https://h", None, "/responses/compact", "/v1/responses/compact"),
            ("https://h", None, "/models?client_version=1", "/v1/models?client_version=1"),
            ("https://h", None, "/messages/count_tokens", "/v1/messages/count_tokens"),
            ("https://h", None, "/responses/resp_1", "/responses/resp_1"),
            ("https://h", None, "/api/chat", "/api/chat"),
            ("https://h", None, "/api/hello", "/api/hello"),
            ("https://h", None, "/", "/"),
            ("https://h", None, "/?a", "/?a"),
            ("https://h/v1", None, "/v1", "/v1"),
            ("https://h/v1", None, "/v1?a", "/v1?a"),
            ("https://h/v1", None, "/v10/x", "/v1/v10/x"),
            ("https://h/api/paas/v4", None, "/v1/chat/completions", "/api/paas/v4/chat/completions"),
            ("https://h/api/paas/v4", None, "/chat/completions", "/api/paas/v4/chat/completions"),
            (
                "https://h/v1beta",
                None,
                "/v1beta/models/g:generateContent",
                "/v1beta/models/g:generateContent",
            ),
            ("https://h/v1beta/openai", None, "/chat/completions", "/v1beta/openai/chat/completions"),
            ("https://h/v1/acc/gw/openai", None, "/responses", "/v1/acc/gw/openai/responses"),
            ("https://h/anthropic", None, "/v1/messages?beta=true", "/anthropic/v1/messages?beta=true"),
            ("https://h/api", None, "/chat/completions", "/api/v1/chat/completions"),
            ("https://h/backend-api/codex", None, "/v1/responses", "/backend-api/codex/responses"),
            ("https://h/backend-api/codex", None, "/responses", "/backend-api/codex/responses"),
            ("https://h/backend-api/codex", None, "/v1", "/backend-api/codex"),
            ("https://h", strip, "/v1", "/"),
            ("https://h", strip, "/v1?q", "/?q"),
            ("https://h", strip, "/v2/x", "/v2/x"),
            ("https://h/gateway", keep, "/responses", "/gateway/responses"),
            ("https://h/gateway/v1", keep, "/v1/responses", "/gateway/v1/responses"),
            ("https://h", keep, "/responses", "/responses"),
            ("https://h/v1", None, "/v1/a%2Fb%20c?q=%3F&&=", "/v1/a%2Fb%20c?q=%3F&&="),
            ("https://h/v1", None, "/../../x", "/v1/../../x"),
            ("https://h", None, "//evil.example/x", "//evil.example/x"),
            ("https://h/v1", None, "/v1//x/", "/v1//x/"),
            ("https://h", None, "/responses/", "/responses/"),
            ("https://h/v1", None, "/x?next=/v1/y", "/v1/x?next=/v1/y"),
        ];
        for (url, v1, path, expected) in rows {
            assert_eq!(joined(url, v1, path), expected, "{url} + {path}");
        }
    }

    #[test]
    fn versions_are_told_from_names() {
        for version in ["v1", "v4", "v12", "v1beta", "v1alpha", "v1beta2", "v1.1"] {
            assert!(is_version(version), "{version}");
        }
        for name in ["", "v", "vbeta", "1", "v1x", "version", "v1.", "V1", "v1-beta"] {
            assert!(!is_version(name), "{name}");
        }
    }

    #[test]
    fn the_relay_itself_is_told() {
        let both = ["127.0.0.1:8787".parse().unwrap(), "[::1]:8787".parse().unwrap()];
        let wild = ["0.0.0.0:8787".parse().unwrap()];
        let rows: [(&str, &[SocketAddr], bool); 10] = [
            ("http://127.0.0.1:8787/v1", &both, true),
            ("http://localhost:8787", &both, true),
            ("http://[::1]:8787", &both, true),
            ("http://127.0.0.2:8787", &both, true),
            ("http://0.0.0.0:8787", &both, true),
            ("https://localhost:8787", &both, true),
            ("http://localhost:8788", &both, false),
            ("http://192.0.2.2:8787", &both, false),
            ("http://localhost:8787", &wild, true),
            ("https://api.example:8787", &wild, false),
        ];
        for (url, listening, itself) in rows {
            assert_eq!(Upstream::parse("x", url).unwrap().is_at(listening), itself, "{url}");
        }
    }

    fn ask<'a>(method: &'a Method, path: &'a str, verdict: &'a Verdict) -> Ask<'a> {
        Ask { method, path_and_query: path, verdict }
    }

    #[test]
    fn without_settings_the_credential_decides() {
        let upstreams = Upstreams::of(&Config::default());
        let rows = [
            (Issuer::OpenAiKey, "/v1/responses", "https://api.openai.com", "/v1/responses"),
            (Issuer::OpenAiKey, "/responses", "https://api.openai.com", "/v1/responses"),
            (
                Issuer::Gemini,
                "/v1beta/models/g:generateContent?key=AIza",
                "https://generativelanguage.googleapis.com",
                "/v1beta/models/g:generateContent?key=AIza",
            ),
            (Issuer::ChatGptSignIn, "/v1/responses", "https://chatgpt.com", "/backend-api/codex/responses"),
            (
                Issuer::Anthropic,
                "/v1/messages?beta=true",
                "https://api.anthropic.com",
                "/v1/messages?beta=true",
            ),
        ];
        for (issuer, path, origin, there) in rows {
            let target = upstreams.target(ask(&Method::POST, path, &Verdict::One(issuer))).unwrap();
            assert_eq!((target.upstream.shown().as_str(), target.path_and_query.as_str()), (origin, there));
        }
    }

    #[test]
    fn what_names_no_upstream_goes_nowhere() {
        let key = HeaderName::from_static("x-api-key");
        let both = ((key.clone(), Issuer::Anthropic), (http::header::AUTHORIZATION, Issuer::OpenAiKey));
        let unknown = Verdict::Unknown { header: key, beside: Some(Issuer::Anthropic), elsewhere: None };
        let disagree = Verdict::Disagree { one: both.0, other: both.1 };
        let one = Verdict::One(Issuer::OpenAiKey);
        let rows = [
            (Method::POST, "/v1/messages", &unknown),
            (Method::POST, "/v1/messages", &disagree),
            (Method::POST, "/v1/messages", &Verdict::None),
            (Method::GET, "/v1/models", &Verdict::None),
            (Method::HEAD, "/", &Verdict::None),
            (Method::GET, "/v1/messagesX", &Verdict::None),
        ];
        for (method, path, verdict) in rows {
            let refusal = Upstreams::of(&Config::default()).target(ask(&method, path, verdict)).unwrap_err();
            assert!(refusal.status().is_client_error());
            for way in ["--upstream URL", "STEADY_RELAY_UPSTREAM", "[upstream.", "[[route]]", "/to/NAME"] {
                assert!(refusal.to_string().contains(way), "{refusal}");
            }
        }
        assert!(matches!(
            Upstreams::default().target(ask(&Method::GET, "/", &one)),
            Err(Refusal::NoEntry(_))
        ));
        for (method, path) in
            [(Method::CONNECT, "/"), (Method::OPTIONS, "*"), (Method::GET, "evil.example:443")]
        {
            assert_eq!(
                Upstreams::of(&Config::default()).target(ask(&method, path, &one)),
                Err(Refusal::NoPath)
            );
        }
    }

    #[test]
    fn a_path_that_names_an_upstream_goes_there_and_a_wrong_name_is_told() {
        let upstreams = Upstreams::of(&Config::default());
        let unknown = Verdict::Unknown { header: http::header::AUTHORIZATION, beside: None, elsewhere: None };
        for verdict in [Verdict::None, unknown, Verdict::One(Issuer::Anthropic)] {
            let target = upstreams.addressed("openai", ask(&Method::POST, "/responses", &verdict)).unwrap();
            assert_eq!(target.upstream.name, "openai");
            assert_eq!(target.path_and_query, "/v1/responses");
        }
        let refusal =
            upstreams.addressed("opnai\u{7}", ask(&Method::POST, "/x", &Verdict::None)).unwrap_err();
        assert_eq!(refusal.status(), 404);
        let words = refusal.to_string();
        assert!(words.contains("`opnai`") && words.contains("anthropic, chatgpt, gemini, openai"), "{words}");
        let mut plain = Upstreams::default();
        plain.set(Upstream::parse("lan", "http://10.0.0.5").unwrap());
        let known = Verdict::One(Issuer::Anthropic);
        let refusal = plain.addressed("lan", ask(&Method::POST, "/x", &known)).unwrap_err();
        assert!(matches!(refusal, Refusal::Plaintext { .. }));
    }

    #[test]
    fn a_service_that_no_credential_finds_is_named_with_what_to_do() {
        for (service, name, way) in [
            (Elsewhere::Azure, "Azure OpenAI", "--upstream https://RESOURCE.openai.azure.com"),
            (Elsewhere::Bedrock, "Amazon Bedrock", "let the client connect to Bedrock itself"),
            (Elsewhere::Vertex, "Vertex AI", "--upstream https://REGION-aiplatform.googleapis.com"),
        ] {
            let header = http::header::AUTHORIZATION;
            let verdict = Verdict::Unknown { header, beside: None, elsewhere: Some(service) };
            let upstreams = Upstreams::of(&Config::default());
            let refusal = upstreams.target(ask(&Method::POST, "/x", &verdict)).unwrap_err();
            let words = refusal.to_string();
            assert!(words.contains(name) && words.contains(way), "{words}");
            assert!(words.lines().count() <= 3 && refusal.status() == 400, "{words}");
        }
    }

    #[test]
    fn claudes_greeting_needs_no_credential() {
        for (method, path) in [(Method::HEAD, "/api/hello"), (Method::GET, "/v1/messages/batches?limit=1")] {
            let target =
                Upstreams::of(&Config::default()).target(ask(&method, path, &Verdict::None)).unwrap();
            assert_eq!(target.upstream.name, "anthropic");
            assert_eq!(target.path_and_query, path);
        }
    }

    #[test]
    fn with_one_upstream_everything_goes_there() {
        let mut upstreams = Upstreams::of(&Config::default());
        upstreams.send_everything_to(Upstream::parse("own", "http://127.0.0.1:4000").unwrap());
        let unknown = Verdict::Unknown { header: http::header::AUTHORIZATION, beside: None, elsewhere: None };
        for verdict in [Verdict::None, unknown, Verdict::One(Issuer::Anthropic)] {
            let target = upstreams.target(ask(&Method::POST, "/responses", &verdict)).unwrap();
            assert_eq!(
                (target.upstream.name.as_str(), target.path_and_query.as_str()),
                ("own", "/v1/responses")
            );
        }
    }

    #[test]
    fn a_known_credential_does_not_cross_the_network_in_the_clear() {
        let one = Verdict::One(Issuer::OpenAiKey);
        let beside = Verdict::Unknown {
            header: http::header::AUTHORIZATION,
            beside: Some(Issuer::Anthropic),
            elsewhere: None,
        };
        let unknown = Verdict::Unknown { header: http::header::AUTHORIZATION, beside: None, elsewhere: None };
        let rows = [
            ("http://10.0.0.5:4000", false, &one, false),
            ("http://10.0.0.5:4000", false, &beside, false),
            ("http://10.0.0.5:4000", true, &one, true),
            ("http://10.0.0.5:4000", false, &unknown, true),
            ("http://10.0.0.5:4000", false, &Verdict::None, true),
            ("https://10.0.0.5:4000", false, &one, true),
            ("http://127.0.0.1:4000", false, &one, true),
            ("http://localhost:4000", false, &one, true),
            ("http://localhost.evil.example:4000", false, &one, false),
        ];
        for (url, allow_plaintext, verdict, passes) in rows {
            let mut upstreams = Upstreams::default();
            let upstream = Upstream { allow_plaintext, ..Upstream::parse("own", url).unwrap() };
            upstreams.send_everything_to(upstream);
            let target = upstreams.target(ask(&Method::POST, "/v1/responses", verdict));
            assert_eq!(target.is_ok(), passes, "{url} {verdict:?}: {target:?}");
        }
    }

    fn any_path() -> impl Strategy<Value = String> {
        let segment = prop_oneof![
            "[a-zA-Z0-9._~:@!$&'()*+,;=-]{0,6}",
            Just("v1".to_owned()),
            Just("v1beta".to_owned()),
            Just("..".to_owned()),
            Just("%2e%2E%2F".to_owned()),
            Just("responses".to_owned()),
        ];
        (prop::collection::vec(segment, 0..5), prop::option::of("[a-zA-Z0-9?/%&=._:@-]{0,20}")).prop_map(
            |(path, query)| {
                let query = query.map(|query| format!("?{query}")).unwrap_or_default();
                format!("/{}{query}", path.join("/"))
            },
        )
    }

    fn any_upstream() -> impl Strategy<Value = Upstream> {
        let path = prop::sample::select(vec!["", "/v1", "/a/v4", "/backend-api/codex", "/a/b/", "/v1beta"]);
        let v1 = prop::sample::select(vec![V1::Add, V1::Strip, V1::Keep]);
        (path, v1).prop_map(|(path, v1)| {
            let url = format!("https://api.example:444{path}");
            Upstream { v1, ..Upstream::parse("x", &url).unwrap() }
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

        #[test]
        fn joining_never_changes_the_origin_and_keeps_the_query(path in any_path(), upstream in any_upstream()) {
            let mut upstreams = Upstreams::default();
            upstreams.send_everything_to(upstream.clone());
            let target = upstreams.target(ask(&Method::POST, &path, &Verdict::None)).unwrap();
            prop_assert_eq!(&*target.upstream, &upstream);
            let there = target.path_and_query.as_str();
            prop_assert!(there.starts_with(upstream.url.path()) && there.starts_with('/'));
            prop_assert_eq!(target.path_and_query.query(), path.split_once('?').map(|(_, query)| query));
            // As a whole URL, too, the origin is the upstream's.
            let whole: http::Uri = format!("{}{there}", upstream.shown()).parse().unwrap();
            prop_assert_eq!(whole.host(), Some("api.example"));
            prop_assert_eq!(whole.port_u16(), Some(444));
        }

        #[test]
        fn the_clients_path_is_only_ever_shortened_by_its_version(path in any_path(), upstream in any_upstream()) {
            let there = upstream.join(&path);
            let kept = first_segment(path.split('?').next().unwrap_or_default());
            let bare = path.split('?').next().unwrap_or_default();
            let whole = there.contains(bare);
            prop_assert!(whole || is_version(kept.0) && there.contains(kept.1));
        }

        #[test]
        fn nothing_panics(path in "\\PC{0,30}", upstream in any_upstream()) {
            let mut upstreams = Upstreams::default();
            upstreams.send_everything_to(upstream);
            drop(upstreams.target(ask(&Method::POST, &path, &Verdict::None)));
            drop(Upstream::parse("x", &path));
        }
    }
}
