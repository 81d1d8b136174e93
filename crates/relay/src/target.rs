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

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::{Arc, OnceLock};

use http::header::{HeaderName, HeaderValue};
use http::uri::PathAndQuery;
use http::{HeaderMap, Method, StatusCode};
use relay_core::config::{self, Config, Http2, ProxyList, Secret, UpstreamChoice, Warm, Websocket};
use relay_core::dialect::{GENERIC, route, unescaped};
use relay_core::plain::is_unfit;
use relay_core::router;
use relay_core::units::Invalid;
use relay_core::{BaseUrl, Scheme};

use crate::credential::{Elsewhere, Issuer, Verdict, lend};
use crate::proxy::Proxy;
use crate::upstream::Origin;
use crate::words::{door, lang};

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
    /// The entry's name in settings and logs.
    pub name: String,
    /// Where it is.
    pub url: BaseUrl,
    /// A key for requests that carry no credential.
    pub api_key: Option<Secret>,
    /// The name of a credential of the relay's own, for the same.
    pub credential: Option<String>,
    /// Whether that takes the place of what a request carries.
    pub replace_credential: bool,
    /// Headers that are added to every request.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The dialects it speaks; `None`: whatever comes.
    pub dialects: Option<Vec<&'static str>>,
    /// Whether recognised credentials may go there without TLS.
    pub allow_plaintext: bool,
    /// What happens to `/v1`.
    pub v1: V1,
    /// When HTTP/2 is spoken; as the settings say for all where it is `None`.
    pub http2: Option<Http2>,
    /// What becomes of WebSockets; as the settings say for all where it is `None`.
    pub websocket: Option<Websocket>,
    /// The proxy on the way, or several; as the settings say for all where it is `None`.
    pub proxy: Option<ProxyList>,
    /// The most calls that it runs at once; `None`: as many as it takes.
    pub max_running: Option<NonZeroU32>,
    /// What loads a model there.
    pub warm: Option<Warm>,
    /// Whether that is done at the start.
    pub warm_on_start: bool,
    /// Where connections go.
    pub(crate) origin: Arc<Origin>,
    /// What its requests have as `Host`; `None` where no header can hold it.
    pub(crate) host: Option<HeaderValue>,
    /// The proxies that were found for it, in their order, once somebody asked. `None` among them: no proxy.
    pub(crate) via: OnceLock<Arc<[Option<Arc<Proxy>>]>>,
}

impl Upstream {
    /// The entry `name` of the settings.
    #[must_use]
    pub fn of(name: &str, entry: &config::Upstream) -> Self {
        let url = &entry.url;
        let https = url.scheme() == Scheme::Https;
        Self {
            name: name.to_owned(),
            origin: Arc::new(Origin { https, host: url.host().to_owned(), port: url.port() }),
            host: HeaderValue::from_str(&url.authority()).ok(),
            via: OnceLock::new(),
            url: url.clone(),
            api_key: entry.api_key.clone(),
            credential: entry.credential.clone(),
            replace_credential: entry.replace_credential,
            headers: entry.headers.clone(),
            dialects: entry.dialects.clone(),
            allow_plaintext: entry.allow_plaintext,
            v1: if entry.strips_v1() { V1::Strip } else { V1::Add },
            http2: entry.http2,
            websocket: entry.websocket,
            proxy: entry.proxy.clone(),
            max_running: entry.max_running,
            warm: entry.warm.clone(),
            warm_on_start: entry.warm_on_start,
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
        self.origin.https
    }

    /// Scheme, host and port, as one reads them.
    #[must_use]
    pub fn shown(&self) -> String {
        format!("{}://{}", self.url.scheme().name(), self.url.authority())
    }

    /// Host and port, as one reads them in a message.
    #[must_use]
    pub fn place(&self) -> &str {
        self.host.as_ref().and_then(|host| host.to_str().ok()).unwrap_or_else(|| self.url.host())
    }

    /// Adds the headers of this upstream, in place of those of the same names.
    pub(crate) fn add_headers(&self, headers: &mut HeaderMap) {
        for (at, (name, value)) in self.headers.iter().enumerate() {
            // A name may have several values.
            if self.headers.iter().take(at).any(|(before, _)| before == name) {
                headers.append(name, value.clone());
            } else {
                headers.insert(name, value.clone());
            }
        }
    }

    /// Whether a pool sends it requests of this dialect; what belongs to none may go to any.
    pub(crate) fn speaks(&self, dialect: &str) -> bool {
        dialect == GENERIC || self.dialects.as_ref().is_none_or(|known| known.contains(&dialect))
    }

    /// Whether it gets requests with the headers that came, and no others.
    pub(crate) fn adds_nothing(&self) -> bool {
        self.lends_nothing() && self.headers.is_empty()
    }

    /// Whether it has no credential of the relay's own.
    pub(crate) fn lends_nothing(&self) -> bool {
        self.api_key.is_none() && self.credential.is_none()
    }

    /// These headers with those of this upstream.
    pub(crate) fn with_headers<'a>(&self, headers: &'a HeaderMap) -> Cow<'a, HeaderMap> {
        let mut headers = Cow::Borrowed(headers);
        if !self.headers.is_empty() {
            self.add_headers(headers.to_mut());
        }
        headers
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
        // What is escaped without need is read without, and kept.
        let (first, plain) = (&*unescaped(first), &*unescaped(path));
        let brought_twice = is_version(last) && is_version(first) && (first == "v1" || first == last);
        let (version, path) = match self.v1 {
            V1::Strip if first == "v1" => ("", rest),
            V1::Add | V1::Keep if brought_twice => ("", rest),
            V1::Add if VERSIONED.contains(&plain) && !self.url.path().split('/').any(is_version) => {
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
    /// The pool that the upstream is the first of, for this request, where it may go to others too.
    pub pool: Option<Pooled>,
}

/// A request that goes to a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pooled {
    /// The pool.
    pub pool: Arc<Pool>,
    /// The path and query as the client asks for them, of which each member makes its own.
    pub asked: Arc<str>,
}

/// Several upstreams that stand in for each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// Its name in settings and logs.
    pub name: String,
    /// In which order its members are preferred.
    pub strategy: router::Strategy,
    /// Its members with their shares; the first that speaks the dialect of a request is where the client's own credential
    /// belongs.
    pub members: Vec<(Arc<Upstream>, u32)>,
}

impl Pool {
    /// The members that speak this dialect.
    pub(crate) fn of_dialect<'a>(
        &'a self,
        dialect: &'a str,
    ) -> impl Iterator<Item = &'a (Arc<Upstream>, u32)> + 'a {
        self.members.iter().filter(move |(upstream, _)| upstream.speaks(dialect))
    }
}

/// Why a request goes nowhere. The relay answers these itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// `CONNECT`, `*` or worse: there is no path to append.
    #[error("{}", door::no_path(lang()))]
    NoPath,
    /// Nothing says where to.
    #[error("{}", door::no_credential(lang(), &door::name_one(lang())))]
    NoCredential,
    /// A credential that no built-in upstream issued.
    #[error("{}", door::unknown_credential(lang(), .0.as_str(), &door::name_one(lang())))]
    UnknownCredential(HeaderName),
    /// Two credentials of two houses.
    #[error("{}", door::disagreement(lang(), &held(.0), &held(.1), &door::name_one(lang())))]
    Disagreement((HeaderName, Issuer), (HeaderName, Issuer)),
    /// The built-in entry is gone from the settings.
    #[error("{}", door::no_entry(lang(), &.0.describe(), .0.upstream(), &door::name_one(lang())))]
    NoEntry(Issuer),
    /// The path names an upstream that is not there.
    #[error("{}", door::no_such_name(lang(), name, &known.join(", ")))]
    NoSuchName {
        /// The name.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// A credential of a service that the relay cannot find by itself.
    #[error("{}", door::meant_for(lang(), &.0.to_string()))]
    Elsewhere(Elsewhere),
    /// A route names an upstream that is not there.
    #[error("{}", door::no_such_entry(lang(), .0))]
    NoSuchEntry(String),
    /// No member of the pool speaks the dialect of the request.
    #[error("{}", door::no_member_speaks(lang(), pool, dialect))]
    NoMember {
        /// The pool's name.
        pool: String,
        /// The dialect's.
        dialect: &'static str,
    },
    /// A sign-in of a person does not go to a pool.
    #[error("{}", door::pool_of_sign_in(lang(), .0))]
    SignIn(String),
    /// A known credential would cross the network in the clear.
    #[error("{}", door::plaintext(lang(), name, origin))]
    Plaintext {
        /// The upstream's name.
        name: String,
        /// Its scheme, host and port.
        origin: String,
    },
}

/// What a header holds.
fn held((header, issuer): &(HeaderName, Issuer)) -> String {
    door::holds(lang(), header.as_str(), &issuer.describe())
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
            | Self::NoMember { .. }
            | Self::SignIn(_)
            | Self::Plaintext { .. } => StatusCode::BAD_REQUEST,
        }
    }
}

/// All upstreams that requests can go to.
#[derive(Debug, Clone, Default)]
pub struct Upstreams {
    entries: BTreeMap<String, Arc<Upstream>>,
    pools: BTreeMap<String, Arc<Pool>>,
    everything: Option<Everything>,
}

/// Where all requests go.
#[derive(Debug, Clone)]
enum Everything {
    Upstream(Arc<Upstream>),
    Pool(Arc<Pool>),
}

impl Upstreams {
    /// The upstreams that the settings know.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        let mut upstreams = Self::default();
        for (name, entry) in &config.upstreams {
            upstreams.set(Upstream::of(name, entry));
        }
        for (name, pool) in &config.pools {
            upstreams.pool(name, pool);
        }
        if let Some(UpstreamChoice::Pool(name)) = &config.upstream {
            upstreams.everything = upstreams.pools.get(name).cloned().map(Everything::Pool);
        }
        if let Some(choice) = &config.upstream
            && let Some(entry) = config::Upstream::chosen(choice, &config.upstreams)
        {
            upstreams.send_everything_to(Upstream::of(&choice.name(), entry));
        }
        upstreams
    }

    /// Adds a pool of entries.
    fn pool(&mut self, name: &str, pool: &config::Pool) {
        let weights = pool.weights.iter().map(|weight| weight.get()).chain(std::iter::repeat(1));
        let member = |(name, weight): (&String, u32)| Some((Arc::clone(self.entries.get(name)?), weight));
        let members = pool.members.iter().zip(weights).filter_map(member).collect();
        let pool = Pool { name: name.to_owned(), strategy: pool.strategy, members };
        self.pools.insert(name.to_owned(), Arc::new(pool));
    }

    /// The most calls that the upstream at this place runs at once, as an entry for it says.
    pub(crate) fn max_running(&self, origin: &Origin) -> Option<NonZeroU32> {
        self.all().find_map(|entry| entry.max_running.filter(|_| *entry.origin == *origin))
    }

    /// Adds an entry, or replaces the one of that name.
    pub fn set(&mut self, upstream: Upstream) {
        self.entries.insert(upstream.name.clone(), Arc::new(upstream));
    }

    /// From now on everything goes there.
    pub fn send_everything_to(&mut self, upstream: Upstream) {
        self.everything = Some(Everything::Upstream(Arc::new(upstream)));
    }

    /// Every upstream, the one for everything first.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Upstream>> {
        let everything = match &self.everything {
            Some(Everything::Upstream(upstream)) => Some(upstream),
            Some(Everything::Pool(_)) | None => None,
        };
        everything.into_iter().chain(self.entries.values())
    }

    /// Where all requests go that no route takes elsewhere, if they all go to the same place: an upstream, or the members
    /// of a pool.
    pub(crate) fn everything(&self) -> Option<Vec<Arc<Upstream>>> {
        match self.everything.as_ref()? {
            Everything::Upstream(upstream) => Some(vec![Arc::clone(upstream)]),
            Everything::Pool(pool) => {
                Some(pool.members.iter().map(|(member, _)| Arc::clone(member)).collect())
            }
        }
    }

    /// The entry of this name.
    pub(crate) fn entry(&self, name: &str) -> Option<&Arc<Upstream>> {
        self.entries.get(name)
    }

    /// All entries.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Arc<Upstream>> {
        self.entries.values()
    }

    /// Where a request goes.
    ///
    /// # Errors
    /// [`Refusal`] where it goes nowhere.
    pub fn target(&self, ask: Ask<'_>) -> Result<Target, Refusal> {
        match &self.everything {
            Some(Everything::Upstream(upstream)) => to(upstream, ask),
            Some(Everything::Pool(pool)) => to_pool(pool, ask),
            None => to(self.by_issuer(issuer(ask)?)?, ask),
        }
    }

    /// Where a request goes whose route names an upstream or a pool.
    ///
    /// # Errors
    /// [`Refusal`] where it goes nowhere.
    pub fn named(&self, name: &str, ask: Ask<'_>) -> Result<Target, Refusal> {
        if let Some(pool) = self.pools.get(name) {
            return to_pool(pool, ask);
        }
        let upstream = self.entries.get(name).ok_or_else(|| Refusal::NoSuchEntry(name.to_owned()))?;
        to(upstream, ask)
    }

    /// Where a request goes whose path begins with `/to/NAME`.
    ///
    /// # Errors
    /// [`Refusal`] where it goes nowhere.
    pub fn addressed(&self, name: &str, ask: Ask<'_>) -> Result<Target, Refusal> {
        if self.entries.contains_key(name) || self.pools.contains_key(name) {
            return self.named(name, ask);
        }
        // What came is shown, but not as long as it may be.
        let name = name.chars().take(64).filter(|letter| !is_unfit(*letter)).collect();
        Err(Refusal::NoSuchName {
            name,
            known: self.entries.keys().chain(self.pools.keys()).cloned().collect(),
        })
    }

    /// Where a request goes that is for this one.
    ///
    /// # Errors
    /// [`Refusal`] where it goes nowhere.
    pub(crate) fn at(upstream: &Arc<Upstream>, ask: Ask<'_>) -> Result<Target, Refusal> {
        to(upstream, ask)
    }

    fn by_issuer(&self, issuer: Issuer) -> Result<&Arc<Upstream>, Refusal> {
        self.entries.get(issuer.upstream()).ok_or(Refusal::NoEntry(issuer))
    }
}

/// Where a request goes that is meant for this upstream.
pub(crate) fn to(upstream: &Arc<Upstream>, ask: Ask<'_>) -> Result<Target, Refusal> {
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
    Ok(Target { upstream: Arc::clone(upstream), path_and_query, pool: None })
}

/// Where a request goes that is meant for this pool: to the first member that speaks its dialect, as far as its
/// credential goes.
fn to_pool(pool: &Arc<Pool>, ask: Ask<'_>) -> Result<Target, Refusal> {
    let path = ask.path_and_query.split('?').next().unwrap_or_default();
    let dialect = route(ask.method, path).dialect.name();
    let mut members = pool.of_dialect(dialect);
    let Some((home, _)) = members.next() else {
        return Err(Refusal::NoMember { pool: pool.name.clone(), dialect });
    };
    let has_others = members.next().is_some();
    let pooled = || Pooled { pool: Arc::clone(pool), asked: ask.path_and_query.into() };
    Ok(Target { pool: has_others.then(pooled), ..to(home, ask)? })
}

/// Whose the request is. Where it carries nothing that could reach a wrong house, a sure path is enough.
fn issuer(ask: Ask<'_>) -> Result<Issuer, Refusal> {
    match ask.verdict {
        Verdict::One(issuer) => Ok(*issuer),
        Verdict::Unknown { elsewhere: Some(service), .. } => Err(Refusal::Elsewhere(*service)),
        Verdict::Unknown { header, elsewhere: None, .. } => Err(Refusal::UnknownCredential(header.clone())),
        Verdict::Disagree { one, other } => Err(Refusal::Disagreement(one.clone(), other.clone())),
        Verdict::None => {
            let path = &*unescaped(ask.path_and_query.split('?').next().unwrap_or_default());
            // Claude Code asks `HEAD /api/hello` before it sends anything.
            let anthropic =
                matches!(path, "/api/hello" | "/v1/messages") || path.starts_with("/v1/messages/");
            let reads = *ask.method == Method::GET || *ask.method == Method::HEAD;
            if anthropic && reads { Ok(Issuer::Anthropic) } else { Err(Refusal::NoCredential) }
        }
    }
}

#[cfg(test)]
mod tests;
