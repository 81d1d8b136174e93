//! Who may speak to the relay: pure checks on the head of a request.
//!
//! The danger on loopback is a web page in the user's own browser. It can reach the port, and its requests
//! would spend the user's money (the client's credential is not needed where an upstream adds its own) or
//! read the user's traffic. Three things give it away: the `Host` it used (a name of its own that points to
//! 127.0.0.1: DNS rebinding), its `Origin`, and `Sec-Fetch-Site`, which browsers set and pages cannot.
//!
//! | path | `Host` | `Origin` | `Sec-Fetch-Site` |
//! |---|---|---|---|
//! | control (`/healthz`, `/__steady/…`) | must be ours | absent or ours | absent, `same-origin` or `none`; else only for a page that is shown by itself (`Sec-Fetch-Dest: document`): a link may lead here |
//! | forwarding | ours or allowed where only `Sec-Fetch-Site: same-origin` speaks for the page; an address, `localhost` or allowed where a key would be lent; else not looked at: a proxy or container may rename us | absent, ours or allowed | absent, `same-origin` or `none` |
//!
//! `same-site` is refused as `cross-site` is: a site has no port, so a page of any other program on this
//! machine is "same-site" with us. A page whose `Origin` the user allowed passes with either.
//!
//! Off loopback a token is asked for besides (`x-steady-token`, or a path that begins with `/~TOKEN/`). Whoever changes
//! something needs the local token as well, which is in a private file of the relay's user and is shown as
//! `x-steady-token` alone: the other one then stands in the path, or in a second header of the name.

use std::net::{IpAddr, SocketAddr};

use http::header::{HOST, HeaderMap, HeaderName, ORIGIN};
use http::{StatusCode, Uri};
use relay_core::config::{Config, Secret};
use subtle::ConstantTimeEq;

use crate::words::{door, lang};

/// The header that carries the token. It is ours and is not forwarded.
pub const TOKEN_HEADER: HeaderName = HeaderName::from_static("x-steady-token");

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");
/// The most of a header's value that a message repeats.
const QUOTED: usize = 80;

/// Why a request is turned away at the door.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The `Host` is not one of ours: the mark of DNS rebinding.
    #[error("{}", door::foreign_host(lang(), .0))]
    ForeignHost(String),
    /// A page from elsewhere asks.
    #[error("{}", door::foreign_origin(lang(), .0))]
    ForeignOrigin(String),
    /// A browser says that another site asks.
    #[error("{}", door::foreign_site(lang(), .0))]
    ForeignSite(String),
    /// A token is needed and none came.
    #[error("{}", door::token_missing(lang()))]
    TokenMissing,
    /// The local token is needed and none came.
    #[error("{}", door::local_token_missing(lang()))]
    LocalTokenMissing,
    /// The local token is needed and another one came.
    #[error("{}", door::local_token_wrong(lang()))]
    LocalTokenWrong,
    /// The local token is needed and there is none.
    #[error("{}", door::no_local_token(lang()))]
    NoLocalToken,
    /// The token is not the one we were given.
    #[error("{}", door::token_wrong(lang()))]
    TokenWrong,
}

impl Refusal {
    /// The status of the answer.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        match self {
            Self::TokenMissing | Self::LocalTokenMissing => StatusCode::UNAUTHORIZED,
            Self::ForeignHost(_)
            | Self::ForeignOrigin(_)
            | Self::ForeignSite(_)
            | Self::TokenWrong
            | Self::LocalTokenWrong
            | Self::NoLocalToken => StatusCode::FORBIDDEN,
        }
    }
}

/// What the checks know about us.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    /// The addresses we listen on, ports filled in.
    pub listening: Vec<SocketAddr>,
    /// Further names under which the control endpoints answer.
    pub names: Vec<String>,
    /// Pages that may use the forwarding paths, as browsers spell them: `https://app.example`.
    pub allowed_origins: Vec<String>,
    /// The token that every request must carry, if any.
    pub token: Option<Secret>,
    /// The token of those who may change something, where there is one.
    pub local: Option<Secret>,
}

impl Guard {
    /// Of what listens at these addresses, as the settings want it. Nobody may change anything yet.
    #[must_use]
    pub fn of(config: &Config, listening: Vec<SocketAddr>) -> Self {
        Self {
            listening,
            names: config.names.iter().map(|name| in_authority(name)).collect(),
            allowed_origins: config.allowed_origins.clone(),
            token: config.token.clone(),
            local: None,
        }
    }

    /// Checks a request to the control endpoints.
    ///
    /// # Errors
    /// [`Refusal`] with the reason.
    pub fn control(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        one_host(headers, |host| self.is_us(host, 80))?;
        let mut origins = headers.get_all(ORIGIN).iter();
        if let Some(foreign) = origins.find(|origin| !self.is_our_origin(origin.as_bytes())) {
            return Err(Refusal::ForeignOrigin(quoted(foreign.as_bytes())));
        }
        // A link opens a page for its reader, who is the user; anything else would be for the page with the link.
        let is_link = headers.get(FETCH_DEST).is_some_and(|what| what.as_bytes() == b"document");
        match foreign_site(headers).filter(|_| !is_link) {
            Some(site) => Err(Refusal::ForeignSite(quoted(site.as_bytes()))),
            None => Ok(()),
        }
    }

    /// Checks a request that would change something at the relay: it shows the local token. The one that every request
    /// must carry is no such one, as all clients know it.
    ///
    /// # Errors
    /// [`Refusal`] with the reason.
    pub fn changing(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let Some(local) = &self.local else { return Err(Refusal::NoLocalToken) };
        let mut given = headers.get_all(TOKEN_HEADER).iter().peekable();
        if given.peek().is_none() {
            return Err(Refusal::LocalTokenMissing);
        }
        let is_known = given.any(|given| bool::from(given.as_bytes().ct_eq(local.expose().as_bytes())));
        if is_known { Ok(()) } else { Err(Refusal::LocalTokenWrong) }
    }

    /// Checks a request that would be forwarded.
    ///
    /// # Errors
    /// [`Refusal`] with the reason.
    pub fn forwarding(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        if !headers.contains_key(ORIGIN) && !headers.contains_key(FETCH_SITE) {
            return Ok(());
        }
        let mut allowed = false;
        for origin in headers.get_all(ORIGIN) {
            let named = self.is_allowed(origin.as_bytes());
            if !named && !self.is_our_origin(origin.as_bytes()) {
                return Err(Refusal::ForeignOrigin(quoted(origin.as_bytes())));
            }
            allowed |= named;
        }
        match foreign_site(headers) {
            Some(site) if !allowed => return Err(Refusal::ForeignSite(quoted(site.as_bytes()))),
            Some(_) | None => {}
        }
        // A browser leaves the origin out where it believes to read from its own: under the name that it used.
        let is_own_read = !headers.contains_key(ORIGIN)
            && headers.get_all(FETCH_SITE).iter().any(|site| site.as_bytes() == b"same-origin");
        if is_own_read {
            one_host(headers, |host| self.is_us(host, 80) || self.names_allowed(host))
        } else {
            Ok(())
        }
    }

    /// Checks a request that brings no credential and would be lent one: a page whose own name was led here (DNS
    /// rebinding) reads as from its own origin, and browsers then say nothing of it. An address is no name that could
    /// be led anywhere, and a page knows no token.
    ///
    /// # Errors
    /// [`Refusal`] where it was sent to a name that is neither this machine's nor allowed.
    pub fn lending(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        if self.token.is_some() || !headers.contains_key(HOST) {
            return Ok(());
        }
        one_host(headers, |host| {
            let name = host_and_port(host, 80).map_or("", |(name, _)| name);
            let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
            bare.parse::<IpAddr>().is_ok()
                || name.eq_ignore_ascii_case("localhost")
                || self.names.iter().any(|known| known.eq_ignore_ascii_case(name))
                || self.names_allowed(host)
        })
    }

    /// Whether this is the token that every request must carry.
    pub(crate) fn is_token(&self, given: &str) -> bool {
        self.token.as_ref().is_some_and(|token| bool::from(given.as_bytes().ct_eq(token.expose().as_bytes())))
    }

    /// Checks the token. Answers the path and query without a token prefix, where there was one.
    ///
    /// # Errors
    /// [`Refusal`] where a token is asked for and none, or another one, came.
    pub fn token(&self, headers: &HeaderMap, path_and_query: &str) -> Result<Option<String>, Refusal> {
        let Some(token) = &self.token else { return Ok(None) };
        let right = |given: &[u8]| bool::from(given.ct_eq(token.expose().as_bytes()));
        let prefix = path_and_query.strip_prefix("/~").map(|rest| {
            let end = rest.find(['/', '?']).unwrap_or(rest.len());
            rest.split_at(end)
        });
        if let Some((given, rest)) = prefix
            && right(given.as_bytes())
        {
            let slash = if rest.starts_with('/') { "" } else { "/" };
            return Ok(Some(format!("{slash}{rest}")));
        }
        let mut given = headers.get_all(TOKEN_HEADER).iter().peekable();
        if given.peek().is_none() && prefix.is_none() {
            return Err(Refusal::TokenMissing);
        }
        if given.any(|given| right(given.as_bytes())) { Ok(None) } else { Err(Refusal::TokenWrong) }
    }

    fn is_our_origin(&self, origin: &[u8]) -> bool {
        let Ok(origin) = std::str::from_utf8(origin) else { return false };
        if let Some(rest) = origin.strip_prefix("http://") {
            return self.is_us(rest, 80);
        }
        origin.strip_prefix("https://").is_some_and(|rest| self.is_us(rest, 443))
    }

    fn is_allowed(&self, origin: &[u8]) -> bool {
        self.allowed_origins.iter().any(|allowed| allowed.as_bytes().eq_ignore_ascii_case(origin))
    }

    /// Whether a page at `authority` is allowed, whichever way it was loaded.
    fn names_allowed(&self, authority: &str) -> bool {
        let mut hosts = self.allowed_origins.iter().filter_map(|origin| Some(origin.split_once("://")?.1));
        hosts.any(|host| host.eq_ignore_ascii_case(authority))
    }

    /// Whether `authority` (`host` or `host:port`) is a way to say "this relay".
    fn is_us(&self, authority: &str, usual_port: u16) -> bool {
        let Some((host, port)) = host_and_port(authority, usual_port) else { return false };
        if !self.listening.iter().any(|at| at.port() == port) {
            return false;
        }
        if host.eq_ignore_ascii_case("localhost") || self.names.iter().any(|n| n.eq_ignore_ascii_case(host)) {
            return true;
        }
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let Ok(ip) = bare.parse::<IpAddr>().map(|ip| ip.to_canonical()) else { return false };
        // Rebinding needs a name. Where we listen on every address, any address that reached us is ours.
        ip.is_loopback() || self.listening.iter().any(|at| at.ip() == ip || at.ip().is_unspecified())
    }
}

/// What a browser says where it asks for a page of another site.
fn foreign_site(headers: &HeaderMap) -> Option<&http::HeaderValue> {
    let foreign = |site: &&http::HeaderValue| !matches!(site.as_bytes(), b"same-origin" | b"none");
    headers.get_all(FETCH_SITE).iter().find(foreign)
}

/// A name as it stands in `Host`: an address of IPv6 has brackets there.
fn in_authority(name: &str) -> String {
    if name.contains(':') { format!("[{name}]") } else { name.to_owned() }
}

/// Checks that there is one `Host`, and that it is one of those that are wanted.
fn one_host(headers: &HeaderMap, is_wanted: impl Fn(&str) -> bool) -> Result<(), Refusal> {
    let mut hosts = headers.get_all(HOST).iter();
    let host = hosts.next().map_or(&b""[..], |host| host.as_bytes());
    if hosts.next().is_none() && std::str::from_utf8(host).is_ok_and(is_wanted) {
        Ok(())
    } else {
        Err(Refusal::ForeignHost(quoted(host)))
    }
}

/// Takes `host[:port]` apart; nothing else may be in it.
fn host_and_port(authority: &str, usual_port: u16) -> Option<(&str, u16)> {
    if authority.contains(['/', '@', '?', '#', ' ', '\t']) {
        return None;
    }
    let end_of_host = authority.rfind(']').map_or(0, |at| at + 1);
    match authority[end_of_host..].find(':') {
        None => Some((authority, usual_port)),
        Some(at) => {
            let (host, port) = authority.split_at(end_of_host + at);
            let digits = &port[1..];
            let plain = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
            Some((host, plain.then(|| digits.parse().ok())??))
        }
    }
}

/// The path and query of a request, whatever form its target has; none for `CONNECT` and `*`.
#[must_use]
pub fn path_and_query(target: &Uri) -> Option<&str> {
    target.path_and_query().map(http::uri::PathAndQuery::as_str).filter(|path| path.starts_with('/'))
}

/// A header's value for a message: short, printable, quoted.
fn quoted(value: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(value).chars().take(QUOTED).collect();
    format!("{text:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard() -> Guard {
        Guard {
            listening: vec!["127.0.0.1:8787".parse().unwrap(), "[::1]:8787".parse().unwrap()],
            names: vec!["relay.lan".to_owned()],
            allowed_origins: vec!["https://app.example".to_owned()],
            token: None,
            local: None,
        }
    }

    #[test]
    fn a_link_opens_a_page_of_ours_and_nothing_else_of_another_site_does() {
        let guard = guard();
        let asked = |site: &str, what: &str| {
            guard.control(&headers(&[
                ("host", "localhost:8787"),
                ("sec-fetch-site", site),
                ("sec-fetch-dest", what),
            ]))
        };
        for site in ["same-origin", "none"] {
            assert_eq!(asked(site, "empty"), Ok(()), "{site}");
        }
        for site in ["same-site", "cross-site"] {
            assert_eq!(asked(site, "document"), Ok(()), "{site}");
            for what in ["empty", "iframe", "script", "image", ""] {
                assert_eq!(
                    asked(site, what),
                    Err(Refusal::ForeignSite(format!("{site:?}"))),
                    "{site} {what}"
                );
            }
        }
    }

    #[test]
    fn changes_need_the_local_token_alone() {
        const ALL: &str = "abcdefghijklmnop";
        let given = |token: &str| headers(&[("x-steady-token", token)]);
        let mut guard = Guard { token: Some(Secret::new(ALL.to_owned())), ..guard() };
        for none in [headers(&[]), given(""), given("0123"), given(ALL)] {
            assert_eq!(guard.changing(&none), Err(Refusal::NoLocalToken));
        }
        guard.local = Some(Secret::new("0123".to_owned()));
        assert_eq!(guard.changing(&headers(&[])), Err(Refusal::LocalTokenMissing));
        for wrong in ["", "012", "01234", ALL] {
            assert_eq!(guard.changing(&given(wrong)), Err(Refusal::LocalTokenWrong), "{wrong}");
        }
        let both = headers(&[("x-steady-token", ALL), ("x-steady-token", "0123")]);
        for (headers, path) in [(given("0123"), "/~abcdefghijklmnop/x"), (both, "/x")] {
            assert!(guard.token(&headers, path).is_ok());
            assert_eq!(guard.changing(&headers), Ok(()));
        }
        assert_eq!(guard.token(&given("0123"), "/x"), Err(Refusal::TokenWrong));
        assert_eq!(Refusal::LocalTokenMissing.status(), 401);
        assert_eq!(
            (Refusal::LocalTokenWrong.status(), Refusal::NoLocalToken.status()),
            (StatusCode::FORBIDDEN, StatusCode::FORBIDDEN)
        );
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn the_host_of_a_control_request_must_be_ours() {
        let rows = [
            ("127.0.0.1:8787", true),
            ("127.9.9.9:8787", true),
            ("localhost:8787", true),
            ("LOCALHOST:8787", true),
            ("[::1]:8787", true),
            ("relay.lan:8787", true),
            ("localhost", false),
            ("localhost:8788", false),
            ("localhost:+8787", false),
            ("localhost:", false),
            ("evil.example:8787", false),
            ("localhost.evil.example:8787", false),
            ("evil.example@localhost:8787", false),
            ("192.0.2.2:8787", false),
            ("", false),
        ];
        for (host, passes) in rows {
            assert_eq!(guard().control(&headers(&[("host", host)])).is_ok(), passes, "{host}");
        }
        assert!(guard().control(&HeaderMap::new()).is_err());
        assert!(
            guard().control(&headers(&[("host", "localhost:8787"), ("host", "evil.example:8787")])).is_err()
        );
    }

    #[test]
    fn a_wildcard_listener_answers_to_addresses_and_still_not_to_names() {
        let guard = Guard { listening: vec!["0.0.0.0:8787".parse().unwrap()], ..Guard::default() };
        assert!(guard.control(&headers(&[("host", "192.0.2.2:8787")])).is_ok());
        assert!(guard.control(&headers(&[("host", "evil.example:8787")])).is_err());
    }

    #[test]
    fn the_origin_of_a_control_request_must_be_ours() {
        let rows = [
            ("http://127.0.0.1:8787", true),
            ("http://localhost:8787", true),
            ("http://[::1]:8787", true),
            ("http://localhost:3000", false),
            ("https://app.example", false),
            ("null", false),
            ("file://", false),
            ("http://localhost:8787/x", false),
        ];
        for (origin, passes) in rows {
            let headers = headers(&[("host", "localhost:8787"), ("origin", origin)]);
            assert_eq!(guard().control(&headers).is_ok(), passes, "{origin}");
        }
    }

    #[test]
    fn foreign_pages_do_not_get_forwarded() {
        let rows: [(&[(&'static str, &str)], bool); 17] = [
            (&[("sec-fetch-site", "same-origin"), ("host", "localhost:8787")], true),
            (&[("sec-fetch-site", "same-origin"), ("host", "app.example")], true),
            (&[("sec-fetch-site", "same-origin"), ("host", "evil.example:8787")], false),
            (&[("sec-fetch-site", "same-origin")], false),
            (&[], true),
            (&[("host", "relay.somewhere")], true),
            (&[("origin", "http://localhost:8787"), ("sec-fetch-site", "same-origin")], true),
            (&[("origin", "https://app.example")], true),
            (&[("origin", "HTTPS://APP.EXAMPLE")], true),
            (&[("origin", "https://app.example"), ("sec-fetch-site", "cross-site")], true),
            (&[("origin", "https://evil.example")], false),
            (&[("origin", "https://app.example"), ("origin", "https://evil.example")], false),
            (&[("origin", "null")], false),
            (&[("sec-fetch-site", "cross-site")], false),
            (&[("sec-fetch-site", "same-site")], false),
            (&[("origin", "http://localhost:8787"), ("sec-fetch-site", "cross-site")], false),
            (&[("sec-fetch-site", "none")], true),
        ];
        for (pairs, passes) in rows {
            assert_eq!(guard().forwarding(&headers(pairs)).is_ok(), passes, "{pairs:?}");
        }
    }

    #[test]
    fn the_token_is_taken_from_header_or_path() {
        let guard = Guard { token: Some(Secret::new("s3cret".to_owned())), ..Guard::default() };
        let with = headers(&[("x-steady-token", "s3cret")]);
        let wrong = headers(&[("x-steady-token", "s3creT")]);
        let none = HeaderMap::new();
        assert_eq!(guard.token(&with, "/v1/x"), Ok(None));
        assert_eq!(guard.token(&with, "/~other/x"), Ok(None));
        assert_eq!(guard.token(&none, "/~s3cret/v1/x?a=%2F"), Ok(Some("/v1/x?a=%2F".to_owned())));
        assert_eq!(guard.token(&none, "/~s3cret"), Ok(Some("/".to_owned())));
        assert_eq!(guard.token(&none, "/~s3cret?a"), Ok(Some("/?a".to_owned())));
        assert_eq!(guard.token(&wrong, "/~s3cret/x"), Ok(Some("/x".to_owned())));
        assert_eq!(guard.token(&none, "/v1/x"), Err(Refusal::TokenMissing));
        assert_eq!(guard.token(&wrong, "/v1/x"), Err(Refusal::TokenWrong));
        assert_eq!(guard.token(&none, "/~s3cretX/x"), Err(Refusal::TokenWrong));
        assert_eq!(guard.token(&none, "/~/x"), Err(Refusal::TokenWrong));
        assert_eq!(Guard::default().token(&none, "/~s3cret/x"), Ok(None));
        assert_eq!(Refusal::TokenMissing.status(), 401);
        assert_eq!(Refusal::TokenWrong.status(), 403);
    }

    #[test]
    fn messages_do_not_repeat_what_a_terminal_would_obey() {
        let host =
            http::HeaderValue::from_bytes(&[b"\xff\xfeevil".as_slice(), &[b'x'; 500]].concat()).unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host);
        let text = guard().control(&headers).unwrap_err().to_string();
        assert!(text.chars().count() < 260 && text.chars().all(|c| !c.is_control()), "{text}");
    }

    #[test]
    fn only_targets_with_a_path_have_one() {
        for (target, path) in [
            ("/a?b", Some("/a?b")),
            ("http://evil.example/a?b", Some("/a?b")),
            ("http://evil.example", Some("/")),
            ("*", None),
            ("evil.example:443", None),
        ] {
            assert_eq!(path_and_query(&target.parse().unwrap()), path, "{target}");
        }
    }
}
