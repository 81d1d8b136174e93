//! What a key of our own needs of a request's head: its place, and the place of others to be empty. Not the decision which
//! request gets one.

use http::header::{AUTHORIZATION, COOKIE, HeaderMap, HeaderName, HeaderValue};

use super::{ACCOUNT_ID, FEDRAMP, GOOGLE_KEY, JUDGED, SIGNED, is_gemini_key};

/// What says besides whose a request is.
static ACCOUNTS: [HeaderName; 6] = [
    ACCOUNT_ID,
    FEDRAMP,
    HeaderName::from_static("openai-organization"),
    HeaderName::from_static("openai-project"),
    HeaderName::from_static("x-goog-user-project"),
    COOKIE,
];

/// Puts a key where a service looks for it: into this header as it is, or into the one that such keys usually have.
pub(crate) fn put(key: &str, header: Option<&HeaderName>, headers: &mut HeaderMap, path_and_query: &str) {
    // Anthropic takes its keys in a header of their own, and its sign-in tokens like everybody else. So does Google,
    // which refuses a key in the other one, except on the paths that it made for OpenAI's clients.
    let path = path_and_query.split('?').next().unwrap_or_default();
    let (name, value) = if let Some(header) = header.filter(|header| **header != AUTHORIZATION) {
        (header.clone(), HeaderValue::from_str(key))
    } else if header.is_some() {
        (AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {key}")))
    } else if key.starts_with("sk-ant-api") {
        (HeaderName::from_static("x-api-key"), HeaderValue::from_str(key))
    } else if is_gemini_key(key) && !path.contains("/openai/") {
        (GOOGLE_KEY.clone(), HeaderValue::from_str(key))
    } else {
        (AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {key}")))
    };
    // What no header can hold is refused when the settings are read.
    if let Ok(mut value) = value {
        value.set_sensitive(true);
        headers.insert(name, value);
    }
}

/// Whether credentials travel in this header.
pub(crate) fn is_key_header(name: &HeaderName) -> bool {
    JUDGED.contains(name)
}

/// Takes all that says whose a request is from its headers, and what is in `also`. What stays keeps its order.
pub(crate) fn strip(headers: &mut HeaderMap, also: Option<&HeaderName>) {
    let is_theirs = |name: &HeaderName| {
        JUDGED.contains(name) || SIGNED.contains(name) || ACCOUNTS.contains(name) || also == Some(name)
    };
    if !headers.keys().any(is_theirs) {
        return;
    }
    let mut kept = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers.iter().filter(|(name, _)| !is_theirs(name)) {
        kept.append(name.clone(), value.clone());
    }
    *headers = kept;
}

/// A path and query without the keys in it; `None` where there is none.
pub(crate) fn without_query_key(path_and_query: &str) -> Option<String> {
    let (path, query) = path_and_query.split_once('?')?;
    let is_key = |pair: &&str| pair.starts_with("key=");
    query.split('&').find(is_key)?;
    let kept: Vec<_> = query.split('&').filter(|pair| !is_key(pair)).collect();
    Some(if kept.is_empty() { path.to_owned() } else { format!("{path}?{}", kept.join("&")) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn what_says_whose_a_request_is_is_taken_out_and_the_rest_keeps_its_order() {
        let mut all = headers(&[
            ("user-agent", "x"),
            ("authorization", "Bearer a"),
            ("accept", "one"),
            ("x-amz-date", "a"),
            ("accept", "two"),
            ("cookie", "a"),
            ("openai-project", "a"),
            ("x-own", "a"),
            ("te", "y"),
        ]);
        strip(&mut all, Some(&HeaderName::from_static("x-own")));
        let left: Vec<_> = all.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        assert_eq!(left, [("user-agent", "x"), ("accept", "one"), ("accept", "two"), ("te", "y")]);
        for (full, bare) in [
            ("/v1/x?key=a", Some("/v1/x")),
            ("/v1/x?alt=sse&key=a&b=key=c&key=", Some("/v1/x?alt=sse&b=key=c")),
            ("/v1/x?monkey=a", None),
            ("/v1/key=a", None),
        ] {
            assert_eq!(without_query_key(full).as_deref(), bare, "{full}");
        }
    }

    #[test]
    fn a_key_goes_where_its_service_looks_for_it() {
        let azure = HeaderName::from_static("api-key");
        for (key, header, path, expected) in [
            ("sk-a", None, "/v1/x", ("authorization", "Bearer sk-a")),
            ("sk-ant-api03-a", None, "/v1/x", ("x-api-key", "sk-ant-api03-a")),
            ("AIzaA", None, "/v1beta/x", ("x-goog-api-key", "AIzaA")),
            ("AIzaA", None, "/v1beta/openai/x", ("authorization", "Bearer AIzaA")),
            ("sk-a", Some(&azure), "/v1/x", ("api-key", "sk-a")),
            ("sk-ant-api03-a", Some(&AUTHORIZATION), "/v1/x", ("authorization", "Bearer sk-ant-api03-a")),
        ] {
            let mut headers = HeaderMap::new();
            put(key, header, &mut headers, path);
            assert!(headers.len() == 1 && headers.values().all(HeaderValue::is_sensitive), "{headers:?}");
            assert_eq!(headers.get(expected.0).unwrap(), expected.1);
        }
    }
}
