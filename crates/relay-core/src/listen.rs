//! Where the relay listens, and whether an upstream would be the relay itself.
//! Not the listening (that is the relay's `listen`).

use crate::base_url::BaseUrl;
use crate::units::Invalid;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// The addresses to listen on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Listen {
    /// 127.0.0.1 and ::1: what `localhost` may resolve to, whichever a client tries first.
    /// The default, since anyone who reaches the relay can spend the credentials that pass through it.
    #[default]
    Localhost,
    /// This address alone. `0.0.0.0` and `::` stand for every interface.
    Address(IpAddr),
}

impl Listen {
    /// Whether only this machine can connect.
    #[must_use]
    pub const fn is_loopback(self) -> bool {
        match self {
            Self::Localhost => true,
            Self::Address(ip) => ip.to_canonical().is_loopback(),
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Localhost => out.write_str("localhost"),
            Self::Address(ip) => ip.fmt(out),
        }
    }
}

impl FromStr for Listen {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let text = text.trim();
        if text.eq_ignore_ascii_case("localhost") {
            return Ok(Self::Localhost);
        }
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        if let Ok(ip) = bare.parse() {
            return Ok(Self::Address(ip));
        }
        let with_port = text.parse::<SocketAddr>().is_ok() || text.starts_with("localhost:");
        let why = if with_port { "has a port" } else { "is no IP address" };
        let allowed = if with_port {
            "name the port with `--port` or the key `port`"
        } else {
            "write an IP address, or localhost for 127.0.0.1 and ::1"
        };
        Err(Invalid::new(why, allowed))
    }
}

/// Whether a request to `url` would come back to a relay that listens there.
///
/// Only what the text alone shows: a host name that the network resolves to this machine is not recognised,
/// and a relay on port 0 does not know its port yet.
#[must_use]
pub fn is_self(url: &BaseUrl, listen: Listen, port: u16) -> bool {
    if url.port() != port {
        return false;
    }
    let local = [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)];
    let host = url.ip().map(|ip| ip.to_canonical());
    match listen {
        Listen::Localhost => {
            host.map_or_else(|| url.is_loopback(), |ip| local.contains(&ip) || ip.is_unspecified())
        }
        Listen::Address(ip) => {
            let ip = ip.to_canonical();
            // Connecting to an unspecified address reaches loopback.
            let local_host = host.map_or_else(|| url.is_loopback(), |host| host.is_unspecified());
            if ip.is_unspecified() {
                return local_host || url.is_loopback();
            }
            host == Some(ip) || (local.contains(&ip) && local_host)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        assert_eq!("localhost".parse(), Ok(Listen::Localhost));
        assert_eq!("LocalHost ".parse(), Ok(Listen::Localhost));
        for text in ["0.0.0.0", "192.168.1.5", "::1"] {
            assert_eq!(text.parse(), Ok(Listen::Address(text.parse().unwrap())));
        }
        assert_eq!("[::1]".parse(), Ok(Listen::Address(Ipv6Addr::LOCALHOST.into())));
    }

    #[test]
    fn what_is_no_address_says_what_is_allowed() {
        for (text, allowed) in [
            ("127.0.0.1:9000", "--port"),
            ("localhost:9000", "--port"),
            ("[::1]:9000", "--port"),
            ("example.com", "IP address"),
            ("", "IP address"),
        ] {
            let error = text.parse::<Listen>().unwrap_err();
            assert!(error.allowed.contains(allowed), "{text}: {error}");
        }
    }

    #[test]
    fn only_loopback_is_loopback() {
        for (text, loopback) in [
            ("localhost", true),
            ("127.0.0.1", true),
            ("127.5.5.5", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("0.0.0.0", false),
            ("::", false),
            ("10.0.0.1", false),
        ] {
            assert_eq!(text.parse::<Listen>().unwrap().is_loopback(), loopback, "{text}");
        }
    }

    #[test]
    fn an_upstream_that_is_the_relay_itself_is_recognised() {
        for (url, listen, itself) in [
            ("http://127.0.0.1:8787", "localhost", true),
            ("http://127.0.0.1:8787/v1", "127.0.0.1", true),
            ("https://localhost:8787", "localhost", true),
            ("http://localhost:8787", "127.0.0.1", true),
            ("http://relay.localhost:8787", "::1", true),
            ("http://[::1]:8787", "localhost", true),
            ("http://[::ffff:127.0.0.1]:8787", "localhost", true),
            ("http://0.0.0.0:8787", "localhost", true),
            ("http://127.0.0.2:8787", "0.0.0.0", true),
            ("http://localhost:8787", "::", true),
            ("http://10.0.0.1:8787", "10.0.0.1", true),
            ("http://127.0.0.1:8788", "localhost", false),
            ("http://127.0.0.1", "localhost", false),
            ("http://127.0.0.2:8787", "127.0.0.1", false),
            ("http://localhost:8787", "10.0.0.1", false),
            ("http://example.com:8787", "0.0.0.0", false),
        ] {
            let parsed = (url.parse().unwrap(), listen.parse().unwrap());
            assert_eq!(is_self(&parsed.0, parsed.1, 8787), itself, "{url} with {listen}");
        }
    }
}
