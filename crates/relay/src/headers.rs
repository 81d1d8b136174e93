//! Which headers travel on. What it is not: the place that sets `Host`, a credential or a length; whoever sends
//! does that. Names, values, multiplicity, order and letter case of everything end-to-end stay as they came.
//!
//! The list of what ends at each hop is that of RFC 9110, section 7.6.1, and the proxy credentials of section
//! 11.7, which are meant for the next proxy and never for the service behind it.

use http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HOST, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRANSFER_ENCODING,
    UPGRADE,
};
use http::{Extensions, HeaderMap, HeaderName, HeaderValue};
use relay_core::bound::stays_at_home;

use crate::wishes::is_ours;

/// What a request of our own says that it comes from.
pub(crate) static OUR_NAME: HeaderValue =
    HeaderValue::from_static(concat!("steady-relay/", env!("CARGO_PKG_VERSION")));
const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// The headers of a request that travel on to the upstream.
///
/// `Host` is the upstream's, `Expect` has been answered here and what begins with `x-steady` is the relay's, so none
/// of them is among them. `TE: trailers` is, with the `Connection: TE` that it needs (RFC 9110, 10.1.4), if the
/// client said so: it is how trailers are asked for.
#[must_use]
pub fn forwardable(from: &HeaderMap) -> HeaderMap {
    let mut to = end_to_end(from, |name| *name == HOST || *name == EXPECT || is_ours(name));
    if accepts_trailers(from) {
        to.append(TE, HeaderValue::from_static("trailers"));
        to.append(CONNECTION, HeaderValue::from_static("TE"));
    }
    to
}

/// These without what says who the client is: that is for the upstream it was meant for alone.
#[must_use]
pub fn without_own(from: HeaderMap) -> HeaderMap {
    if from.keys().any(stays_at_home) { end_to_end(&from, stays_at_home) } else { from }
}

/// The headers of an answer that travel back to the client.
#[must_use]
pub fn forwardable_answer(from: HeaderMap) -> HeaderMap {
    // Most have nothing else.
    if !from.keys().any(ends_at_this_hop) {
        return from;
    }
    // Beside chunks a length counts for nothing, and must not go on (RFC 9112, section 6.3).
    let is_chunked = from.contains_key(TRANSFER_ENCODING);
    end_to_end(&from, |name| is_chunked && *name == CONTENT_LENGTH)
}

/// The length that an answer announces. One that is told several times alike, in one header or in more, is told once
/// from here on (RFC 9110, section 8.6).
pub fn announced(headers: &mut HeaderMap) -> Option<u64> {
    let values = headers.get_all(CONTENT_LENGTH).into_iter().filter_map(|value| value.to_str().ok());
    let mut lengths = values.flat_map(|value| value.split(',')).map(|length| length.trim().parse().ok());
    let first: u64 = lengths.next()??;
    let others: Vec<_> = lengths.collect();
    if others.iter().any(|length| *length != Some(first)) {
        return None;
    }
    if !others.is_empty() {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(first));
    }
    Some(first)
}

/// The extensions of a message for the one that is sent in its place. hyper keeps in them what only it can read: the
/// letter case of header names, and the reason phrase. An upgrade is not handed on: it belongs to the connection it
/// came on.
#[must_use]
pub fn forwardable_extensions(mut from: Extensions) -> Extensions {
    from.remove::<hyper::upgrade::OnUpgrade>();
    from
}

/// Copies in order: `HeaderMap::remove` would move the last header into the gap.
fn end_to_end(from: &HeaderMap, also_dropped: impl Fn(&HeaderName) -> bool) -> HeaderMap {
    let named = named_by_connection(from);
    let mut to = HeaderMap::with_capacity(from.len());
    for (name, value) in from {
        if !ends_at_this_hop(name) && !named.contains(name) && !also_dropped(name) {
            to.append(name.clone(), value.clone());
        }
    }
    to
}

fn ends_at_this_hop(name: &HeaderName) -> bool {
    const ENDING: [HeaderName; 8] = [
        CONNECTION,
        KEEP_ALIVE,
        PROXY_CONNECTION,
        PROXY_AUTHENTICATE,
        PROXY_AUTHORIZATION,
        TE,
        TRANSFER_ENCODING,
        UPGRADE,
    ];
    ENDING.contains(name)
}

fn named_by_connection(from: &HeaderMap) -> Vec<HeaderName> {
    tokens(from, &CONNECTION).filter_map(|token| HeaderName::from_bytes(token.as_bytes()).ok()).collect()
}

/// A weight on `trailers` is not allowed, but some send it: only the coding's name counts.
fn accepts_trailers(from: &HeaderMap) -> bool {
    tokens(from, &TE).any(|token| {
        let name = token.split(';').next().unwrap_or_default();
        name.trim().eq_ignore_ascii_case("trailers")
    })
}

fn tokens<'a>(from: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    from.get_all(name)
        .into_iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|list| list.split(','))
        .map(str::trim)
        .filter(|token| !token.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).fold(
            HeaderMap::new(),
            |mut map, (name, value): (HeaderName, _)| {
                map.append(name, value);
                map
            },
        )
    }

    fn lines(map: &HeaderMap) -> Vec<(&str, &str)> {
        map.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect()
    }

    #[test]
    fn order_and_multiplicity_survive_and_what_ends_at_this_hop_does_not() {
        let from = map(&[
            ("a", "1"),
            ("host", "relay"),
            ("connection", "keep-alive, x-hop"),
            ("connection", "X-Hop-Two"),
            ("keep-alive", "timeout=5"),
            ("x-hop", "gone"),
            ("b", "2"),
            ("x-hop-two", "gone"),
            ("proxy-connection", "keep-alive"),
            ("proxy-authorization", "Basic x"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "websocket"),
            ("expect", "100-continue"),
            ("x-steady-token", "secret"),
            ("x-steady-profile", "batch"),
            ("x-steady", "off"),
            ("x-steadyish", "stays"),
            ("c", "3"),
            ("c", "4"),
            ("trailer", "x-checksum"),
            ("content-length", "5"),
            ("z", "last"),
        ]);
        let kept = [
            ("a", "1"),
            ("b", "2"),
            ("x-steadyish", "stays"),
            ("c", "3"),
            ("c", "4"),
            ("trailer", "x-checksum"),
            ("content-length", "5"),
            ("z", "last"),
        ];
        assert_eq!(lines(&forwardable(&from)), kept);
    }

    #[test]
    fn an_answer_loses_the_same_and_keeps_the_rest() {
        let from = map(&[
            ("connection", "close"),
            ("set-cookie", "a=1"),
            ("set-cookie", "b=2"),
            ("proxy-authenticate", "Basic"),
            ("transfer-encoding", "chunked"),
            ("expect", "kept: it means nothing here"),
            ("retry-after", "3"),
        ]);
        let kept = [
            ("set-cookie", "a=1"),
            ("set-cookie", "b=2"),
            ("expect", "kept: it means nothing here"),
            ("retry-after", "3"),
        ];
        assert_eq!(lines(&forwardable_answer(from)), kept);
    }

    #[test]
    fn only_trailers_of_te_travel_on_and_only_if_the_client_said_so() {
        let from = map(&[("te", "gzip;q=0.5, Trailers"), ("connection", "TE"), ("a", "1")]);
        assert_eq!(lines(&forwardable(&from)), [("a", "1"), ("te", "trailers"), ("connection", "TE")]);
        assert!(forwardable(&map(&[("te", "gzip")])).is_empty());
    }
}
