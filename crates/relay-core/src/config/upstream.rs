//! One upstream: its address, what is added for it, and the way there. Not which requests go to it (that is a
//! route, or the relay's `target`).

use crate::base_url::BaseUrl;
use crate::units::Invalid;
use http::{HeaderName, HeaderValue};
use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

/// A text that never shows in a log, a message or a debug print. What is dropped is overwritten: a page of memory that is
/// given back, and read with a dump of it, is not to hold a key that was changed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps the text as a secret.
    #[must_use]
    pub const fn new(text: String) -> Self {
        Self(text)
    }

    /// The text itself, for comparing and sending.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret(…)")
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        let mut bytes = std::mem::take(&mut self.0).into_bytes();
        bytes.fill(0);
        // Whoever may look at it keeps the compiler from leaving that out.
        std::hint::black_box(&bytes);
    }
}

impl FromStr for Secret {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        const ALLOWED: &str = "a token has 16 to 1024 letters, digits and signs of ASCII, and no space";
        if !text.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(Invalid::new("has a space or a character beyond ASCII", ALLOWED));
        }
        // Sixteen is out of reach of guessing over a network, even in hexadecimal digits.
        match text.len() {
            16..=1024 => Ok(Self(text.to_owned())),
            0..16 => Err(Invalid::new("is too short", ALLOWED)),
            _ => Err(Invalid::new("is too long", ALLOWED)),
        }
    }
}

/// The one upstream that everything goes to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there is one of it")]
pub enum UpstreamChoice {
    /// The entry of this name, which exists.
    Named(String),
    /// The pool of this name, which exists.
    Pool(String),
    /// An upstream that has no entry.
    Url(Upstream),
}

impl UpstreamChoice {
    /// What it is called in all that is told of it: as its entry, or else as its host, with the port where that is not
    /// the usual one, since two servers of one machine differ in nothing else.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Named(name) | Self::Pool(name) => name.clone(),
            Self::Url(upstream) => upstream.url.authority(),
        }
    }
}

/// One upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    /// Where it lives; the request's path is appended.
    pub url: BaseUrl,
    /// Headers added to each send, in place of the client's of the same name. Marked as sensitive.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// A key of the relay's own, for requests that carry no credential. `None`: such requests stay without one.
    pub api_key: Option<Secret>,
    /// The dialects it speaks, by name: a pool sends it nothing else. `None`: whatever comes.
    pub dialects: Option<Vec<&'static str>>,
    /// The name of a credential of the relay's own, which exists, for the same. Never beside a key.
    pub credential: Option<String>,
    /// Whether that takes the place of what a request carries. False: a client's own credential is its own affair.
    pub replace_credential: bool,
    /// Whether a cloud credential may go there in the clear. False: anyone on the way could read it.
    pub allow_plaintext: bool,
    /// Whether a `/v1` at the start of the request's path is dropped. `None`: as the URL suggests.
    pub strip_v1: Option<bool>,
    /// When it is spoken to over HTTP/2. `None`: as the relay's default says.
    pub http2: Option<Http2>,
    /// What becomes of WebSockets for answers of a model; `None`: as the relay is set.
    pub websocket: Option<Websocket>,
    /// The proxy on the way there, or several. `None`: as the relay's default says.
    pub proxy: Option<ProxyList>,
    /// The most calls that it works on at once, all together: a server of one's own that queues the rest instead of
    /// refusing it. `None`: it refuses what exceeds its capacity.
    pub max_running: Option<NonZeroU32>,
    /// What loads a model there before it is needed. `None`: nothing is sent that no client asked for.
    pub warm: Option<Warm>,
    /// Whether that is done at the start of the relay, too. False: a model takes memory that others may need.
    pub warm_on_start: bool,
}

impl Upstream {
    /// An upstream of which only the address is known.
    #[must_use]
    pub const fn at(url: BaseUrl) -> Self {
        Self {
            url,
            headers: Vec::new(),
            api_key: None,
            dialects: None,
            credential: None,
            replace_credential: false,
            allow_plaintext: false,
            strip_v1: None,
            http2: None,
            websocket: None,
            proxy: None,
            max_running: None,
            warm: None,
            warm_on_start: false,
        }
    }

    /// Whether a `/v1` at the start of the request's path is dropped: where the entry says so, or where its URL
    /// ends in `/backend-api/codex`, whose service has no `/v1`.
    #[must_use]
    pub fn strips_v1(&self) -> bool {
        self.strip_v1.unwrap_or_else(|| self.url.path().ends_with("/backend-api/codex"))
    }

    /// The upstream of everything, resolved; `None` where that is a pool.
    #[must_use]
    pub fn chosen<'a>(choice: &'a UpstreamChoice, among: &'a BTreeMap<String, Self>) -> Option<&'a Self> {
        match choice {
            UpstreamChoice::Named(name) => among.get(name),
            UpstreamChoice::Pool(_) => None,
            UpstreamChoice::Url(upstream) => Some(upstream),
        }
    }
}

/// The request that loads a model at a server of one's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warm {
    /// The model, where it is known: calls for another one do not ask for it.
    pub model: Option<String>,
    /// The path, from the root of the host.
    pub path: String,
    /// The body.
    pub body: String,
}

impl Warm {
    /// What loads a model at Ollama: a request for an answer without a prompt.
    #[must_use]
    pub fn ollama(model: &str) -> Self {
        let body = serde_json::json!({ "model": model }).to_string();
        Self { model: Some(model.to_owned()), path: "/api/generate".to_owned(), body }
    }

    /// Whether a call for this model, which is cold, asks for it. To Ollama a name without a tag is the latest.
    #[must_use]
    pub fn is_for(&self, model: Option<&str>) -> bool {
        fn bare(name: &str) -> &str {
            name.strip_suffix(":latest").unwrap_or(name)
        }
        match (&self.model, model) {
            (Some(own), Some(model)) => bare(own) == bare(model),
            (None, _) | (_, None) => true,
        }
    }
}

/// When an upstream is spoken to over HTTP/2, which takes TLS and the upstream's consent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Http2 {
    /// For clients that speak it themselves. The default: a client of HTTP/1.1 keeps the letter case of its headers
    /// and a connection of its own, which is what it would have without the relay.
    #[default]
    Auto,
    /// Never.
    Off,
    /// For every client.
    Always,
}

impl Http2 {
    /// Every choice.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Off, Self::Always];

    /// The name in settings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Off => "off",
            Self::Always => "always",
        }
    }
}

/// What becomes of a WebSocket on which a client asks for answers of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Websocket {
    /// The relay speaks it on both sides, and each request on it is a call like any other. The default: a client that
    /// has to go on over HTTP uploads its whole history with each request.
    #[default]
    Speak,
    /// The client is told to use HTTP: for networks that do not bear WebSockets.
    Refuse,
    /// Bytes pass as they come, and nothing on it is protected.
    Tunnel,
}

impl Websocket {
    /// Every choice.
    pub const ALL: [Self; 3] = [Self::Speak, Self::Refuse, Self::Tunnel];

    /// The name in settings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Speak => "speak",
            Self::Refuse => "refuse",
            Self::Tunnel => "tunnel",
        }
    }
}

/// Which proxy is on the way to an upstream. There is never one on the way to this machine itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ProxyChoice {
    /// The one that the environment or the system names. The default: where one is needed, nothing else works.
    #[default]
    System,
    /// None.
    Direct,
    /// This one.
    At(ProxyUrl),
}

impl FromStr for ProxyChoice {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        match text {
            "system" => Ok(Self::System),
            "none" | "direct" => Ok(Self::Direct),
            url => url.parse().map(Self::At),
        }
    }
}

/// The ways to an upstream, each by a proxy or by none, in order: the first is taken as long as it works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyList(Vec<ProxyChoice>);

impl ProxyList {
    /// More ways are no help: each has its share of the time that a connection may take.
    const MOST: usize = 8;

    /// These ways.
    ///
    /// # Errors
    /// Where there is none, or too many, or one stands there twice.
    pub fn of(ways: Vec<ProxyChoice>) -> Result<Self, Invalid> {
        const ALLOWED: &str = "write one proxy, or up to 8 different ones in their order, such as \
                               [\"http://proxy.example:3128\", \"direct\"]";
        let is_again = |(at, way)| ways.iter().take(at).any(|before| before == way);
        if ways.is_empty() {
            Err(Invalid::new("is an empty list", ALLOWED))
        } else if ways.len() > Self::MOST {
            Err(Invalid::new("is too long a list", ALLOWED))
        } else if ways.iter().enumerate().any(is_again) {
            Err(Invalid::new("names the same proxy twice", ALLOWED))
        } else {
            Ok(Self(ways))
        }
    }

    /// Each way, in order.
    pub fn iter(&self) -> impl Iterator<Item = &ProxyChoice> {
        self.0.iter()
    }
}

impl From<ProxyChoice> for ProxyList {
    fn from(only: ProxyChoice) -> Self {
        Self(vec![only])
    }
}

impl Default for ProxyList {
    fn default() -> Self {
        ProxyChoice::default().into()
    }
}

/// One way.
impl FromStr for ProxyList {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        text.parse::<ProxyChoice>().map(Self::from)
    }
}

/// The address of a proxy. It may hold a password, so it never shows as it is.
#[derive(Clone, PartialEq, Eq)]
pub struct ProxyUrl(String);

impl ProxyUrl {
    /// The address itself, for connecting.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ProxyUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("ProxyUrl(…)")
    }
}

impl FromStr for ProxyUrl {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        const SCHEMES: [&str; 6] = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"];
        const ALLOWED: &str = "write \"system\", \"none\" or \"direct\", or an address such as \"http://proxy.example:3128\", with http, \
                               https, socks4, socks4a, socks5 or socks5h";
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(Invalid::new("is no proxy", ALLOWED));
        };
        if !SCHEMES.contains(&scheme) {
            return Err(Invalid::new("has a scheme that no proxy has", ALLOWED));
        }
        // Read as a URL, whatever the scheme: only the part before the first slash counts.
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host = authority
            .parse::<http::uri::Authority>()
            .map_err(|_not_one| Invalid::new("has no host", ALLOWED))?;
        if host.host().is_empty() || rest.len() > authority.len() + 1 {
            return Err(Invalid::new("is more, or less, than scheme, host and port", ALLOWED));
        }
        Ok(Self(text.to_owned()))
    }
}
