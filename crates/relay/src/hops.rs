//! The mark by which a relay knows a request that it has sent on itself: two relays that name each other as upstream
//! would else send it in circles. Each adds its own number, drawn at its start, and passes on those of the others.
//!
//! It goes out over plain HTTP alone, which is all that a relay speaks to its clients: no service behind TLS sees it.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::target::Upstream;
use crate::words::{door, lang};

/// The header. It is ours and ends here, unless the next hop may be a relay too.
pub(crate) const HOPS: HeaderName = HeaderName::from_static("x-steady-hop");

/// So many relays in a row nobody means.
const MOST: usize = 16;

/// The number of one relay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hop(HeaderValue);

impl Hop {
    /// The number that was drawn.
    pub(crate) fn of(drawn: u64) -> Self {
        // Digits alone: the rest is there for the compiler.
        Self(HeaderValue::from_str(&format!("{drawn:016x}")).unwrap_or(HeaderValue::from_static("")))
    }

    /// What is to be said of a request that this relay has sent on before. A chain that is longer than anybody means
    /// counts as one that came round.
    pub(crate) fn came_round(&self, headers: &HeaderMap) -> Option<String> {
        let hops: Vec<_> = hops(headers).collect();
        let others = hops.iter().rposition(|hop| self.0 == *hop).map(|at| hops.len() - at - 1);
        let what = match others {
            Some(0) => door::round_alone(lang()),
            Some(1) => door::round_by_one(lang()),
            Some(others) => door::round_by_many(lang(), others),
            None if hops.len() > MOST => door::too_many_hops(lang(), hops.len()),
            None => return None,
        };
        Some(door::came_round(lang(), &what))
    }

    /// Marks what is sent to `upstream` in place of a request that came with `headers`.
    pub(crate) fn mark(&self, sent: &mut HeaderMap, headers: &HeaderMap, upstream: &Upstream) {
        if upstream.is_https() {
            return;
        }
        let mut all = self.0.clone();
        if headers.contains_key(HOPS) {
            let others: String = hops(headers).flat_map(|hop| [hop, ", "]).collect();
            let chain = [others.as_bytes(), self.0.as_bytes()].concat();
            all = HeaderValue::from_bytes(&chain).unwrap_or(all);
        }
        sent.insert(HOPS, all);
    }
}

/// The numbers in a head, oldest first. What is none is nobody's, and goes no further.
fn hops(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lists = headers.get_all(HOPS).into_iter().filter_map(|list| list.to_str().ok());
    let hops = lists.flat_map(|list| list.split(',')).map(str::trim);
    hops.filter(|hop| hop.len() == 16 && hop.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heads(lists: &[&'static str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for list in lists {
            headers.append(HOPS, HeaderValue::from_static(list));
        }
        headers
    }

    #[test]
    fn a_relay_knows_its_own_number_and_no_other() {
        let own = Hop::of(7);
        for (lists, words) in [
            (&[][..], None),
            (&["0000000000000008"][..], None),
            (&["0000000000000007"], Some("to itself")),
            (&["0000000000000007, 0000000000000008"], Some("another relay sent it back")),
            (&["0000000000000007,0000000000000008", "0000000000000009"], Some("2 others")),
            (&["0000000000000008,0000000000000007", "0000000000000009"], Some("another relay")),
            (&["7", "00000000000000070", "000000000000000x"], None),
        ] {
            let told = own.came_round(&heads(lists));
            assert_eq!(told.is_some(), words.is_some(), "{lists:?}");
            let (told, words) = (told.unwrap_or_default(), words.unwrap_or_default());
            assert!(told.contains(words), "{told}");
        }
        let chain = |length| -> String { (100..100 + length).map(|hop| format!("{hop:016x},")).collect() };
        let of = |length| HeaderMap::from_iter([(HOPS, HeaderValue::from_str(&chain(length)).unwrap())]);
        assert_eq!(own.came_round(&of(MOST)), None);
        assert!(own.came_round(&of(MOST + 1)).unwrap().contains("passed 17 relays"));
    }

    #[test]
    fn the_mark_goes_on_in_the_clear_alone_and_without_what_is_no_number() {
        let came = heads(&["0000000000000008, nonsense", "0000000000000009"]);
        for (url, expected) in [
            ("http://127.0.0.1:1", Some("0000000000000008, 0000000000000009, 0000000000000007")),
            ("http://relay.lan/v1", Some("0000000000000008, 0000000000000009, 0000000000000007")),
            ("https://api.example", None),
            ("https://localhost:1", None),
        ] {
            let mut sent = HeaderMap::new();
            Hop::of(7).mark(&mut sent, &came, &Upstream::parse("x", url).unwrap());
            assert_eq!(sent.get(HOPS).map(|hops| hops.to_str().unwrap()), expected, "{url}");
        }
    }
}
