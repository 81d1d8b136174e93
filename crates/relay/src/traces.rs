//! A call's place in a trace, in the headers of requests: the client's, which is read, and the upstream's, which the
//! settings may want to be the relay's own. What the place is, [`relay_core::trace`] decides.

use http::{HeaderMap, HeaderName, HeaderValue};
use relay_core::trace::Trace;

use crate::clock::drawn;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The place of a call whose client sends these headers.
pub(crate) fn of(headers: &HeaderMap) -> Trace {
    let mut stated = headers.get_all(TRACEPARENT).iter();
    // Two of them are none, as the specification has it.
    let one = stated.next().filter(|_| stated.next().is_none());
    Trace::of(one.and_then(|value| value.to_str().ok()), [drawn(), drawn(), drawn()])
}

/// Puts this send of the call in place of what the client said. Its `tracestate` belongs to its `traceparent`, and goes
/// with one that is not valid.
pub(crate) fn put(trace: &Trace, send: u32, headers: &mut HeaderMap) {
    let Ok(value) = HeaderValue::try_from(trace.traceparent(send)) else { return };
    headers.insert(TRACEPARENT, value);
    if trace.parent.is_none() {
        headers.remove(TRACESTATE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn one_valid_header_is_the_parent_and_its_state_goes_on() {
        let mut sent = headers(&[("traceparent", PARENT), ("tracestate", "a=1"), ("tracestate", "b=2")]);
        let trace = of(&sent);
        assert_eq!(trace.parent, Some(0xb7ad_6b71_6920_3331));
        put(&trace, 1, &mut sent);
        let expected = trace.traceparent(1);
        assert_eq!(sent.get_all("traceparent").iter().collect::<Vec<_>>(), [expected.as_str()]);
        assert_eq!(sent.get_all("tracestate").iter().count(), 2);
    }

    #[test]
    fn none_or_two_begin_a_trace_of_their_own_without_a_state() {
        for pairs in [
            &[("tracestate", "a=1")][..],
            &[("traceparent", PARENT), ("traceparent", PARENT), ("tracestate", "a=1")],
            &[("traceparent", "00-no"), ("tracestate", "a=1")],
        ] {
            let mut sent = headers(pairs);
            let trace = of(&sent);
            assert_eq!(trace.parent, None);
            assert_ne!(trace, of(&sent), "each is drawn anew");
            put(&trace, 1, &mut sent);
            assert_eq!(sent.len(), 1, "{sent:?}");
        }
    }
}
