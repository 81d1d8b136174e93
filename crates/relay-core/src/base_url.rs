//! Where an upstream lives: scheme, host, port and the path that every request's path is appended to.
//! Not a general URL: what an upstream cannot have (a user name, a query, a fragment) is refused when it is read.

use crate::units::Invalid;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// How an upstream is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheme {
    /// In the clear.
    Http,
    /// Over TLS.
    Https,
}

impl Scheme {
    /// The name in a URL.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port where a URL names none.
    #[must_use]
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// A validated base URL.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BaseUrl {
    scheme: Scheme,
    host: String,
    port: u16,
    path: String,
}

const FORM: &str = "write scheme, host and, where needed, port and path: \"https://api.example.com/v1\"";

impl BaseUrl {
    /// How it is spoken to.
    #[must_use]
    pub const fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The host in lower case; an IPv6 address without its brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The host as an address, where it is one.
    #[must_use]
    pub fn ip(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    /// The port, named or the scheme's own.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The path, without a slash at its end: empty, or `/v1`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What the `Host` header says: brackets around IPv6, the port only where it is not the scheme's own.
    #[must_use]
    pub fn authority(&self) -> String {
        let host = match self.ip() {
            Some(IpAddr::V6(ip)) => format!("[{ip}]"),
            Some(IpAddr::V4(_)) | None => self.host.clone(),
        };
        if self.port == self.scheme.default_port() { host } else { format!("{host}:{}", self.port) }
    }

    /// Whether the host is this machine, whatever the network says: a loopback address or a name for it.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.ip().map_or_else(|| names_loopback(&self.host), |ip| ip.to_canonical().is_loopback())
    }
}

/// Whether the name means loopback by convention (RFC 6761, and the names Linux distributions put in `/etc/hosts`).
fn names_loopback(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    host.ends_with(".localhost")
        || matches!(host, "localhost" | "localhost.localdomain" | "ip6-localhost" | "ip6-loopback")
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}://{}{}", self.scheme.name(), self.authority(), self.path)
    }
}

impl FromStr for BaseUrl {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let text = text.trim();
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(Invalid::new("has no scheme", FORM));
        };
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            _ => return Err(Invalid::new("has a scheme other than http and https", FORM)),
        };
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if authority.contains('@') {
            let allowed = "put the credential into the upstream's `headers`, or let the client send it";
            return Err(Invalid::new("has a user name or password before the host", allowed));
        }
        if path.contains('?') {
            return Err(Invalid::new(
                "has a query",
                "end it with the path: each request brings its own query",
            ));
        }
        if path.contains('#') {
            return Err(Invalid::new("has a fragment", "end it with the path"));
        }
        let (host, port) = host_and_port(authority, scheme)?;
        let path = path.trim_end_matches('/');
        if !path.bytes().all(|b| b.is_ascii_graphic() && !br#""<>\^`{|}"#.contains(&b)) {
            let allowed = "write other characters as percent escapes";
            return Err(Invalid::new("has a character that a path cannot have", allowed));
        }
        Ok(Self { scheme, host, port, path: path.to_owned() })
    }
}

fn host_and_port(authority: &str, scheme: Scheme) -> Result<(String, u16), Invalid> {
    if let Some(rest) = authority.strip_prefix('[') {
        let Some((inside, port)) = rest.split_once(']') else {
            return Err(Invalid::new("has a `[` without its `]`", FORM));
        };
        let Ok(ip) = inside.parse::<Ipv6Addr>() else {
            return Err(Invalid::new("has no IPv6 address between its brackets", FORM));
        };
        return Ok((ip.to_string(), read_port(port, scheme)?));
    }
    let (host, port) = authority.split_at(authority.find(':').unwrap_or(authority.len()));
    Ok((read_host(host)?, read_port(port, scheme)?))
}

/// Reads what follows the host: nothing, or a colon and a port.
fn read_port(text: &str, scheme: Scheme) -> Result<u16, Invalid> {
    if text.is_empty() {
        return Ok(scheme.default_port());
    }
    let digits = text.strip_prefix(':').filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
    match digits.and_then(|digits| digits.parse::<u16>().ok()) {
        Some(port) if port > 0 => Ok(port),
        Some(_) | None => Err(Invalid::new("has no valid port", "a port is a number from 1 to 65535")),
    }
}

fn read_host(host: &str) -> Result<String, Invalid> {
    let host = host.to_ascii_lowercase();
    if host.is_empty() {
        return Err(Invalid::new("has no host", FORM));
    }
    if !host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_')) {
        let allowed = "a host has letters, digits, dots and hyphens; write others in their `xn--` form";
        return Err(Invalid::new("has a character that a host cannot have", allowed));
    }
    let labels = host.strip_suffix('.').unwrap_or(&host);
    if labels.split('.').any(str::is_empty) {
        return Err(Invalid::new("has an empty part in its host", FORM));
    }
    // Resolvers read `127.1` and `0x7f.1` as addresses; one spelling keeps "is this the relay itself" decidable.
    let last = labels.rsplit('.').next().unwrap_or_default();
    let is_number = last.bytes().all(|b| b.is_ascii_digit()) || last.starts_with("0x");
    if is_number && host.parse::<Ipv4Addr>().is_err() {
        return Err(Invalid::new(
            "has a host that is a number but no IPv4 address",
            "write all four parts, such as 127.0.0.1",
        ));
    }
    Ok(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> BaseUrl {
        text.parse().unwrap()
    }

    #[test]
    fn its_parts_are_read() {
        let full = url("HTTPS://API.Example.com:8443/v1/");
        assert_eq!((full.scheme(), full.host(), full.port()), (Scheme::Https, "api.example.com", 8443));
        assert_eq!((full.path(), full.authority().as_str()), ("/v1", "api.example.com:8443"));
        assert_eq!(full.to_string(), "https://api.example.com:8443/v1");
        let short = url("http://[::1]");
        assert_eq!((short.host(), short.port(), short.path()), ("::1", 80, ""));
        assert_eq!(short.authority(), "[::1]");
        assert_eq!(
            url("https://chatgpt.com:443/backend-api/codex").to_string(),
            "https://chatgpt.com/backend-api/codex"
        );
    }

    #[test]
    fn what_an_upstream_cannot_have_is_refused() {
        for (text, why) in [
            ("", "no scheme"),
            ("localhost:9000", "no scheme"),
            ("ftp://host", "scheme other than http"),
            ("https://", "no host"),
            ("https:///v1", "no host"),
            ("https://me:secret@host", "user name"),
            ("https://host/v1?key=1", "a query"),
            ("https://host?", "a query"),
            ("https://host/#top", "a fragment"),
            ("https://host:", "no valid port"),
            ("https://host:0", "no valid port"),
            ("https://host:65536", "no valid port"),
            ("https://host:+1", "no valid port"),
            ("https://::1", "no host"),
            ("https://[::1", "without its `]`"),
            ("https://[nope]", "no IPv6 address"),
            ("https://[::1]x", "no valid port"),
            ("https://a..b", "empty part"),
            ("https://.", "empty part"),
            ("https://a..", "empty part"),
            ("https://ho st", "cannot have"),
            ("https://h\u{f6}st", "cannot have"),
            ("https://host/a b", "cannot have"),
            ("http://127.1", "no IPv4 address"),
            ("http://2130706433", "no IPv4 address"),
            ("http://0x7f.0.0.1", "no IPv4 address"),
            ("http://127.0.0.0x1", "no IPv4 address"),
        ] {
            let error = text.parse::<BaseUrl>().unwrap_err();
            assert!(error.why.contains(why), "{text}: {error}");
            assert!(!error.to_string().contains("secret"));
        }
    }

    #[test]
    fn loopback_is_known_by_address_and_by_name() {
        for text in ["http://127.0.0.1", "http://127.9.9.9", "http://[::1]", "http://[::ffff:127.0.0.1]"] {
            assert!(url(text).is_loopback(), "{text}");
        }
        for text in ["http://localhost", "http://LOCALHOST.", "http://app.localhost:1"] {
            assert!(url(text).is_loopback(), "{text}");
        }
        for text in
            ["http://10.0.0.1", "http://localhost.example.com", "http://notlocalhost", "http://0.0.0.0"]
        {
            assert!(!url(text).is_loopback(), "{text}");
        }
    }
}
