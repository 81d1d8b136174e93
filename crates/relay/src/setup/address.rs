//! Base URLs as clients' settings hold them: whether one is the relay's own, in whatever spelling, and how one is shown.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use relay_core::BaseUrl;
use relay_core::config::{Config, Secret, Upstream, UpstreamChoice};
use relay_core::plain::is_unfit;

use crate::running::{self, Who};

/// Where the relay is, as clients are told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RelayAt {
    /// The host that clients name, brackets included.
    pub host: String,
    /// The port.
    pub port: u16,
    /// What clients show in the path, where the relay asks for it.
    pub token: Option<Secret>,
    /// Ports that were the relay's before: an address with one of them is no service of the user's.
    pub earlier: Vec<u16>,
    /// Where the settings send everything, if they do; then what a client's address said does not count.
    pub one_upstream: Option<String>,
    /// The upstreams that the settings know, with their addresses.
    pub upstreams: Vec<(String, String)>,
}

impl RelayAt {
    /// The relay on loopback at this port, without settings of its own.
    #[must_use]
    pub fn local(port: u16) -> Self {
        Self { host: "127.0.0.1".to_owned(), port, ..Self::default() }
    }

    /// Where clients reach the relay that these settings make.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        let at = running::address(config);
        let chosen = config.upstream.as_ref().and_then(|choice| match choice {
            // Its paths are those that clients are told of.
            UpstreamChoice::Pool(name) => config.upstreams.get(config.pools.get(name)?.members.first()?),
            UpstreamChoice::Named(_) | UpstreamChoice::Url(_) => Upstream::chosen(choice, &config.upstreams),
        });
        let upstreams = config.upstreams.iter().map(|(name, entry)| (name.clone(), entry.url.to_string()));
        Self {
            host: match at.ip() {
                IpAddr::V4(ip) => ip.to_string(),
                IpAddr::V6(ip) => format!("[{ip}]"),
            },
            port: at.port(),
            token: config.token.clone(),
            earlier: Vec::new(),
            one_upstream: chosen.map(|entry| entry.url.to_string()),
            upstreams: upstreams.collect(),
        }
    }

    /// The base URL without a path of the client's.
    #[must_use]
    pub fn base(&self) -> String {
        let token = self.token.as_ref().map_or_else(String::new, |token| format!("/~{}", token.expose()));
        format!("http://{}:{}{token}", self.host, self.port)
    }

    /// Whether this address leads to this machine.
    pub(super) fn is_here(&self, url: &BaseUrl) -> bool {
        is_this_machine(url) || url.host() == self.host.trim_start_matches('[').trim_end_matches(']')
    }

    /// Whether this address is the relay's, now or before: any spelling of this machine, http or https, with a port of
    /// ours.
    #[must_use]
    pub fn is(&self, address: &str) -> bool {
        let Some(url) = authority(address) else { return false };
        self.is_here(&url) && (url.port() == self.port || self.earlier.contains(&url.port()))
    }
}

/// Whether the host of this address is this machine.
pub(super) fn is_this_machine(url: &BaseUrl) -> bool {
    url.is_loopback() || url.ip().is_some_and(|ip| ip.to_canonical().is_unspecified())
}

/// Who answers at an address of this machine. Clients try both loopback addresses for a name.
pub(super) fn who_is_at(url: &BaseUrl, who: &dyn Fn(SocketAddr) -> Who) -> Who {
    let both = [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()];
    let exact = url.ip().map(|ip| [ip.to_canonical()]).filter(|[ip]| !ip.is_unspecified());
    let places = exact.as_ref().map_or(&both[..], |one| &one[..]);
    let mut found = places.iter().map(|ip| who(SocketAddr::new(*ip, url.port())));
    found.find(|who| *who != Who::Nobody).unwrap_or(Who::Nobody)
}

/// Scheme, host and port of an address, whatever else is in it.
pub(super) fn authority(address: &str) -> Option<BaseUrl> {
    let (scheme, rest) = address.trim().split_once("://")?;
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let host = rest.get(..end)?.rsplit('@').next()?;
    format!("{scheme}://{host}").parse().ok()
}

/// A value for a screen: what may be a secret in it is hidden, and nothing moves the cursor.
pub fn shown(value: &str) -> String {
    without_secrets(value).chars().filter(|letter| !is_unfit(*letter)).collect()
}

fn without_secrets(value: &str) -> String {
    let Some((scheme, rest)) = value.split_once("://") else {
        return relay_core::redact::redact(value).into_owned();
    };
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = match authority.rsplit_once('@') {
        Some((_, host)) => Cow::Owned(format!("…@{host}")),
        None => Cow::Borrowed(authority),
    };
    let path_end = path.find(['?', '#']).unwrap_or(path.len());
    let (path, query) = path.split_at(path_end);
    let segments: Vec<Cow<'_, str>> = path.split('/').map(segment).collect();
    let query = if query.is_empty() { "" } else { "?…" };
    format!("{scheme}://{host}{}{query}", segments.join("/"))
}

/// A segment of a path; tokens stand in paths, too.
fn segment(segment: &str) -> Cow<'_, str> {
    if segment.starts_with('~') {
        return Cow::Borrowed("~…");
    }
    let random = segment.len() >= 24 && segment.chars().any(|c| c.is_ascii_digit());
    if random { Cow::Borrowed("…") } else { relay_core::redact::redact(segment) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_relay_is_known_in_every_spelling() {
        let relay = RelayAt { earlier: vec![9000], ..RelayAt::local(8787) };
        for ours in [
            "http://127.0.0.1:8787/v1",
            "http://localhost:8787",
            "https://localhost:8787/v1/",
            "http://LOCALHOST:8787/to/gw/v1",
            "http://127.9.9.9:8787",
            "http://[::1]:8787/v1",
            "http://[::ffff:127.0.0.1]:8787/v1",
            "http://0.0.0.0:8787",
            "http://user:pass@127.0.0.1:8787/~token/v1?x=1",
            "http://127.0.0.1:9000/v1",
            " http://relay.localhost:8787/ ",
        ] {
            assert!(relay.is(ours), "{ours}");
        }
        for other in [
            "http://127.0.0.1:11434/v1",
            "https://api.openai.com/v1",
            "http://gateway:8787/v1",
            "http://192.168.0.1:8787",
            "",
            "8787",
        ] {
            assert!(!relay.is(other), "{other}");
        }
        let elsewhere = RelayAt { host: "192.168.0.1".to_owned(), ..RelayAt::local(8787) };
        assert!(elsewhere.is("http://192.168.0.1:8787/v1"));
    }

    #[test]
    fn what_may_be_a_secret_is_hidden() {
        let rows = [
            ("https://gw.example/v1", "https://gw.example/v1"),
            ("https://me:pass@gw.example/v1?key=abc", "https://…@gw.example/v1?…"),
            ("http://127.0.0.1:8787/~token/v1", "http://127.0.0.1:8787/~…/v1"),
            ("https://gw.example/t/0123456789abcdef0123456789abcdef/v1", "https://gw.example/t/…/v1"),
            ("sk-proj-abcdefgh", "[redacted]"),
            ("\u{1b}[2J", "[2J"),
        ];
        for (value, seen) in rows {
            assert_eq!(shown(value), seen);
        }
        let token = RelayAt { token: Some(Secret::new("t0".to_owned())), ..RelayAt::local(1) };
        assert_eq!(token.base(), "http://127.0.0.1:1/~t0");
        assert!(!format!("{token:?}").contains("t0"));
    }
}
