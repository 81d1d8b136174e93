//! Which proxy stands on the way to an upstream, if any: what the settings say, else the environment, else the
//! system. Not the way through it (that is `upstream`).
//!
//! There is none on the way to this machine itself, whatever anybody says: a proxy elsewhere cannot reach it, and
//! one that can would only see what it must not. Nor is the relay ever its own proxy, which would send every
//! request round for ever.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use relay_core::config::{ProxyChoice, ProxyList};

use crate::settings::Env;
use crate::target::Upstream;
use crate::words::{lang, start};

/// How a proxy is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Speech {
    /// HTTP in the clear.
    Http,
    /// HTTP over TLS.
    Https,
    /// SOCKS 4; names are looked up here.
    Socks4,
    /// SOCKS 4a; names are looked up there.
    Socks4a,
    /// SOCKS 5; names are looked up here.
    Socks5,
    /// SOCKS 5; names are looked up there.
    Socks5h,
}

impl Speech {
    const NAMES: [(&'static str, Self, u16); 6] = [
        ("http", Self::Http, 80),
        ("https", Self::Https, 443),
        ("socks4", Self::Socks4, 1080),
        ("socks4a", Self::Socks4a, 1080),
        ("socks5", Self::Socks5, 1080),
        ("socks5h", Self::Socks5h, 1080),
    ];

    fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, speech, _)| *speech == self).map_or("", |(name, _, _)| name)
    }
}

/// A proxy. Its credentials go to it and nowhere else, a message least of all.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Proxy {
    /// How it is spoken to.
    pub speech: Speech,
    /// A name or an address; an IPv6 address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// What an HTTP proxy asks for.
    pub basic: Option<HeaderValue>,
    /// What a SOCKS proxy asks for: name and password.
    pub login: Option<(String, String)>,
}

impl Proxy {
    fn of(found: &Intercept) -> Option<Self> {
        let uri = found.uri();
        let scheme = uri.scheme_str()?;
        let (_, speech, usual_port) = Speech::NAMES.into_iter().find(|(name, ..)| *name == scheme)?;
        let host = uri.host()?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        Some(Self {
            speech,
            host: bare.to_owned(),
            port: uri.port_u16().unwrap_or(usual_port),
            basic: found.basic_auth().cloned(),
            login: found.raw_auth().map(|(name, password)| (name.to_owned(), password.to_owned())),
        })
    }

    /// Whether requests to plain http upstreams are handed to it, rather than sent through a tunnel: proxies let
    /// tunnels be dug to the port of https alone, as a rule.
    #[must_use]
    pub fn takes_plain_requests(&self) -> bool {
        matches!(self.speech, Speech::Http | Speech::Https)
    }

    /// Whether it is the relay itself, as far as can be told without looking names up.
    fn is_at(&self, listening: &[SocketAddr]) -> bool {
        let ip: Option<IpAddr> = self.host.parse().ok();
        let loopback = ip.map_or_else(|| self.host.eq_ignore_ascii_case("localhost"), |ip| ip.is_loopback());
        listening.iter().any(|at| {
            at.port() == self.port
                && (ip.is_some_and(|ip| ip == at.ip() || ip.is_unspecified())
                    || loopback && (at.ip().is_loopback() || at.ip().is_unspecified()))
        })
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "{}://[{}]:{}", self.speech.name(), self.host, self.port)
        } else {
            write!(f, "{}://{}:{}", self.speech.name(), self.host, self.port)
        }
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({self})")
    }
}

/// What the environment or the system says about proxies.
#[derive(Clone)]
pub struct SystemProxies(Arc<Matcher>);

impl SystemProxies {
    /// What `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` say now, in either case, or else the settings of
    /// macOS and Windows.
    #[must_use]
    pub fn found() -> Self {
        Self(Arc::new(Matcher::from_system()))
    }

    /// Nothing.
    #[must_use]
    pub fn none() -> Self {
        Self(Arc::new(Matcher::builder().build()))
    }
}

/// The proxy on the way to `upstream`, the first of several, where these are the choices and nobody listens.
#[must_use]
pub fn on_the_way(system: &SystemProxies, default: &ProxyList, upstream: &Upstream) -> Option<Arc<Proxy>> {
    let all = Proxies::new(system.clone(), default.clone(), Vec::new()).towards(upstream);
    all.first().cloned().flatten()
}

/// The variables that name a proxy, each in both cases. Of two the first that is there counts, be it empty.
const VARIABLES: [[&str; 2]; 3] =
    [["HTTPS_PROXY", "https_proxy"], ["HTTP_PROXY", "http_proxy"], ["ALL_PROXY", "all_proxy"]];

/// Says of each variable that names no proxy we can use that it is passed over. Its value may hold a password.
pub(crate) fn passed_over(env: Env<'_>) -> impl Iterator<Item = String> {
    let anywhere = Uri::from_static("https://upstream.invalid");
    let is_usable = move |text: &str| {
        let found = Matcher::builder().all(text).build().intercept(&anywhere);
        found.as_ref().and_then(Proxy::of).is_some()
    };
    let set = move |names: [&'static str; 2]| {
        names.into_iter().find_map(|name| Some((name, env.value(name)?.into_string().ok()?)))
    };
    let schemes = Speech::NAMES.map(|(name, ..)| name).join(", ");
    VARIABLES.into_iter().filter_map(set).filter(move |(_, text)| !text.is_empty() && !is_usable(text)).map(
        move |(name, _)| {
            format!(
                "{name} in the environment names no proxy that can be used, and is passed over: write it as \
                 scheme://host:port, with one of {schemes}"
            )
        },
    )
}

/// The variable by which a proxy catches what clients on this machine send to the relay.
///
/// Of the two spellings Codex reads the upper one first, and what is written for Node or in Python the lower one: so
/// this machine is left out where every list that is set leaves it out.
pub(crate) fn catching_clients(variable: &dyn Fn(&str) -> Option<String>) -> Option<&'static str> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let is_set = |name: &&str| set(name).is_some();
    let name = ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"].into_iter().find(is_set)?;
    let lists: Vec<_> = ["no_proxy", "NO_PROXY"].into_iter().filter_map(set).collect();
    let spares =
        |list: &String| list.split(',').any(|host| matches!(host.trim(), "*" | "127.0.0.1" | "127.0.0.0/8"));
    (lists.is_empty() || !lists.iter().all(spares)).then_some(name)
}

impl fmt::Debug for SystemProxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SystemProxies")
    }
}

/// All proxies there may be.
pub(crate) struct Proxies {
    system: Arc<Matcher>,
    default: ProxyList,
    listening: Vec<SocketAddr>,
}

impl Proxies {
    /// `default` holds for upstreams whose entry does not say.
    pub(crate) fn new(system: SystemProxies, default: ProxyList, listening: Vec<SocketAddr>) -> Self {
        Self { system: system.0, default, listening }
    }

    /// What the user should know: a proxy that is the relay itself is passed over.
    pub(crate) fn advice(&self) -> Option<String> {
        Some(start::proxy_is_ourselves(lang(), &self.itself()?.to_string()))
    }

    /// The proxy that is the relay itself, where one is.
    pub(crate) fn itself(&self) -> Option<Proxy> {
        let anywhere = ["https://upstream.invalid", "http://upstream.invalid"].map(Uri::from_static);
        let each = |there| self.default.iter().filter_map(move |choice| self.chosen(choice, there));
        anywhere.iter().flat_map(each).find(|proxy| proxy.is_at(&self.listening))
    }

    /// The proxies on the ways to `upstream`, in their order; `None` among them: no proxy. There is at least one way.
    pub(crate) fn towards(&self, upstream: &Upstream) -> Arc<[Option<Arc<Proxy>>]> {
        Arc::clone(upstream.via.get_or_init(|| self.found(upstream).into()))
    }

    fn found(&self, upstream: &Upstream) -> Vec<Option<Arc<Proxy>>> {
        let Some(there) = upstream.shown().parse().ok().filter(|_| !upstream.url.is_loopback()) else {
            return vec![None];
        };
        let mut ways = Vec::new();
        for choice in upstream.proxy.as_ref().unwrap_or(&self.default).iter() {
            let way = self.chosen(choice, &there);
            // What the system says may be what stands there, too.
            let is_again = ways.iter().any(|known: &Option<Arc<Proxy>>| known.as_deref() == way.as_ref());
            if !is_again && !way.as_ref().is_some_and(|proxy| proxy.is_at(&self.listening)) {
                ways.push(way.map(Arc::new));
            }
        }
        if ways.is_empty() {
            ways.push(None);
        }
        ways
    }

    fn chosen(&self, choice: &ProxyChoice, there: &Uri) -> Option<Proxy> {
        let found = match choice {
            ProxyChoice::Direct => None,
            ProxyChoice::System => self.system.intercept(there),
            ProxyChoice::At(url) => Matcher::builder().all(url.expose()).build().intercept(there),
        };
        found.as_ref().and_then(Proxy::of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upstream(url: &str, proxy: Option<&str>) -> Upstream {
        let choice = proxy.map(|choice| choice.parse().unwrap());
        Upstream { proxy: choice, ..Upstream::parse("x", url).unwrap() }
    }

    fn proxies(default: &str) -> Proxies {
        let system = Matcher::builder()
            .http("http://plain.example:8080")
            .https("http://Aladdin:open%20sesame@secure.example")
            .no("direct.example, 10.0.0.0/8")
            .build();
        Proxies::new(
            SystemProxies(Arc::new(system)),
            default.parse().unwrap(),
            vec!["127.0.0.1:8787".parse().unwrap()],
        )
    }

    fn first(proxies: &Proxies, upstream: &Upstream) -> Option<Arc<Proxy>> {
        proxies.towards(upstream).first().cloned().unwrap()
    }

    #[test]
    fn the_entry_is_asked_before_the_default_and_the_default_before_the_system() {
        let rows = [
            ("system", "https://api.example/v1", None, Some("http://secure.example:80")),
            ("system", "http://api.example/v1", None, Some("http://plain.example:8080")),
            ("system", "https://direct.example", None, None),
            ("system", "https://eu.direct.example", None, None),
            ("system", "https://10.1.2.3", None, None),
            ("system", "https://api.example", Some("none"), None),
            ("none", "https://api.example", None, None),
            ("none", "https://api.example", Some("system"), Some("http://secure.example:80")),
            ("none", "https://api.example", Some("socks5h://s.example"), Some("socks5h://s.example:1080")),
            ("socks4://[fd00::1]:99", "https://api.example", None, Some("socks4://[fd00::1]:99")),
            ("https://p.example", "https://direct.example", None, Some("https://p.example:443")),
        ];
        for (default, url, own, expected) in rows {
            let found = first(&proxies(default), &upstream(url, own)).map(|proxy| proxy.to_string());
            assert_eq!(found.as_deref(), expected, "{default} {url} {own:?}");
        }
    }

    #[test]
    fn this_machine_is_never_behind_a_proxy_and_the_relay_is_none() {
        for url in ["http://127.0.0.1:1234", "https://localhost:1", "http://[::1]:5", "http://a.localhost"] {
            assert_eq!(
                first(&proxies("http://p.example"), &upstream(url, Some("http://q.example"))),
                None,
                "{url}"
            );
        }
        for own in ["http://127.0.0.1:8787", "http://localhost:8787", "socks5://0.0.0.0:8787"] {
            assert_eq!(first(&proxies(own), &upstream("https://api.example", None)), None, "{own}");
        }
        assert!(first(&proxies("http://127.0.0.1:8788"), &upstream("https://api.example", None)).is_some());
    }

    #[test]
    fn several_ways_keep_their_order_and_none_stands_there_twice() {
        let ways = |choices: &[&str], url: &str| {
            let choices = choices.iter().map(|choice| choice.parse().unwrap()).collect();
            let own = Some(ProxyList::of(choices).unwrap());
            let upstream = Upstream { proxy: own, ..Upstream::parse("x", url).unwrap() };
            let found = proxies("none").towards(&upstream);
            found
                .iter()
                .map(|way| way.as_ref().map_or("direct".into(), |p| p.to_string()))
                .collect::<Vec<_>>()
        };
        let url = "https://api.example";
        let (own, there) = ("http://127.0.0.1:8787", "http://secure.example:80");
        assert_eq!(
            ways(&["http://p.example:1", "system", "none"], url),
            ["http://p.example:1", there, "direct"]
        );
        assert_eq!(ways(&["direct", "system", "http://p.example:1"], "https://10.1.2.3").len(), 2);
        assert_eq!(ways(&[own, "http://p.example:1"], url), ["http://p.example:1"], "the relay is no proxy");
        assert_eq!(ways(&[own], url), ["direct"]);
        assert_eq!(ways(&["http://p.example:1", "http://q.example:1"], "http://127.0.0.1:99"), ["direct"]);
    }

    #[test]
    fn credentials_are_kept_and_not_shown() {
        let proxy = first(&proxies("system"), &upstream("https://api.example", None)).unwrap();
        assert_eq!(proxy.basic.as_ref().unwrap(), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        let socks =
            first(&proxies("socks5://me:hunter2@s.example"), &upstream("https://api.example", None)).unwrap();
        assert_eq!(socks.login, Some(("me".to_owned(), "hunter2".to_owned())));
        for shown in [format!("{proxy} {proxy:?}"), format!("{socks} {socks:?}")] {
            assert!(
                !shown.contains("sesame") && !shown.contains("hunter2") && !shown.contains("Basic"),
                "{shown}"
            );
        }
    }

    #[test]
    fn a_proxy_catches_clients_unless_every_list_leaves_this_machine_out() {
        let of = |set: &[(&str, &str)]| {
            catching_clients(&|name| {
                set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("HTTPS_PROXY", "http://p")]), None);
        for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
            assert_eq!(of(&[(name, "http://p")]), Some(name));
            assert_eq!(of(&[(name, "")]), None);
            for list in ["127.0.0.1", "localhost, 127.0.0.1", "*", "127.0.0.0/8"] {
                for spelled in ["NO_PROXY", "no_proxy"] {
                    assert_eq!(of(&[(name, "http://p"), (spelled, list)]), None, "{list}");
                }
                for (one, other) in [("NO_PROXY", "no_proxy"), ("no_proxy", "NO_PROXY")] {
                    let two = |also: &str| of(&[(name, "http://p"), (one, list), (other, also)]);
                    assert_eq!((two("corp.example"), two("127.0.0.1"), two("")), (Some(name), None, None));
                }
            }
        }
    }
}
