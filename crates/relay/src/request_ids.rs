//! The ids that clients and services give a request, by which a person finds it in the logs of either. Labels.

use http::{HeaderMap, HeaderName};
use relay_core::failure::id;

/// What clients send: Codex and the SDKs of OpenAI the first, gateways and load balancers the others.
static OF_REQUESTS: [HeaderName; 3] = [
    HeaderName::from_static("x-client-request-id"),
    HeaderName::from_static("x-request-id"),
    HeaderName::from_static("x-correlation-id"),
];

/// What services answer with: OpenAI, Anthropic, Azure, Bedrock, Cloudflare before any of them.
static OF_ANSWERS: [HeaderName; 6] = [
    HeaderName::from_static("x-request-id"),
    HeaderName::from_static("request-id"),
    HeaderName::from_static("x-oai-request-id"),
    HeaderName::from_static("apim-request-id"),
    HeaderName::from_static("x-amzn-requestid"),
    HeaderName::from_static("cf-ray"),
];

/// The id that the client gave.
pub(crate) fn of_request(headers: &HeaderMap) -> Option<Box<str>> {
    first(headers, &OF_REQUESTS)
}

/// The id that the service gave.
pub(crate) fn of_answer(headers: &HeaderMap) -> Option<Box<str>> {
    first(headers, &OF_ANSWERS)
}

fn first(headers: &HeaderMap, names: &[HeaderName]) -> Option<Box<str>> {
    let ids = names.iter().filter_map(|name| headers.get(name)?.to_str().ok().map(id));
    ids.into_iter().find(|id| !id.is_empty())
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};

    use super::*;

    #[test]
    fn the_first_id_that_says_something_is_taken_as_a_label() {
        let mut headers = HeaderMap::new();
        assert_eq!(of_request(&headers), None);
        headers.insert("x-client-request-id", HeaderValue::from_static("  "));
        headers.insert("x-request-id", HeaderValue::from_static("req_1 <b>"));
        headers.insert("cf-ray", HeaderValue::from_static("8f-AMS"));
        assert_eq!(of_request(&headers).as_deref(), Some("req_1b"));
        assert_eq!(of_answer(&headers).as_deref(), Some("req_1b"));
        headers.remove("x-request-id");
        assert_eq!((of_request(&headers), of_answer(&headers).as_deref()), (None, Some("8f-AMS")));
        headers.insert("request-id", HeaderValue::from_static("sk-proj-abcdef12345"));
        assert_eq!(of_answer(&headers).as_deref(), Some("redacted"));
    }
}
