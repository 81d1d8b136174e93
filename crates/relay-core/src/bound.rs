//! The guard between upstreams: what of a request may go to another one than the one it was made for.
//!
//! What says who somebody is ends at its own upstream: another origin, or the same one with another credential, gets
//! neither the client's credential nor its cookies nor what names its account. What only that upstream understands binds
//! the whole call to it: its body is never changed, and so it is not moved at all.

use http::HeaderName;
use http::header::{AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION};

use crate::evidence::Operation;
use crate::json::{Binds, Unreadable};

/// Headers that hold a credential, or say for whom a request is made.
const OWN: &[&str] = &[
    "api-key",
    "x-api-key",
    "x-goog-api-key",
    "x-goog-user-project",
    "x-auth-token",
    "x-access-token",
    "x-amz-date",
    "x-amz-content-sha256",
    "x-amz-security-token",
    "cf-access-client-id",
    "cf-access-client-secret",
    "cf-access-token",
    "chatgpt-account-id",
    "openai-organization",
    "openai-project",
    "anthropic-workspace-id",
    "anthropic-organization-id",
    "helicone-auth",
    "ocp-apim-subscription-key",
    "dpop",
];

/// Beginnings of such names.
const OWN_BEGINNINGS: &[&str] = &["x-openai-", "x-amzn-", "x-portkey-", "x-litellm-", "cf-aig-"];

/// What of a name says that it holds a secret, whoever made it up.
const OWN_PARTS: &[&str] = &["token", "secret", "password", "credential", "session-key", "apikey", "api-key"];

/// Words of a name that say so, or for whom a request is made.
const OWN_WORDS: &[&str] = &[
    "authorization",
    "authentication",
    "auth",
    "oauth",
    "oauth2",
    "jwt",
    "bearer",
    "pat",
    "cred",
    "creds",
    "passwd",
    "passphrase",
    "passcode",
    "pw",
    "otp",
    "sig",
    "signature",
    "hmac",
    "cookie",
    "cookie2",
    "principal",
    "tenant",
    "workspace",
    "customer",
    "account",
    "email",
    "username",
    "userid",
    "forwarded",
];

/// Names that say who somebody is.
const WHO: &[&str] = &["from", "x-user", "x-user-id", "x-real-ip"];

/// Whether a header of this name stays with the upstream that it was meant for.
#[must_use]
pub fn stays_at_home(name: &HeaderName) -> bool {
    let text = name.as_str();
    [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION].contains(name)
        || OWN.contains(&text)
        || WHO.contains(&text)
        || OWN_BEGINNINGS.iter().any(|beginning| text.starts_with(beginning))
        || tells_a_secret(text)
}

/// Whether a name of a header, or of a member of a query, says that it holds a secret or who somebody is; in lower case.
fn tells_a_secret(name: &str) -> bool {
    let name = name.replace('_', "-");
    // What makes a request the same one is no secret.
    let is_key = |word: &str| word == "key" && name != "idempotency-key";
    // A server may take a sloppy name, as `+key`, for the one that was meant.
    let mut words = name.split(|sign: char| !sign.is_ascii_alphanumeric());
    OWN_PARTS.iter().any(|part| name.contains(part))
        || words.any(|word| OWN_WORDS.contains(&word) || is_key(word))
}

/// A path and query without the members of the query that stay with their upstream; the rest as it came.
#[must_use]
pub fn without_own_query(path_and_query: &str) -> String {
    let Some((path, query)) = path_and_query.split_once('?') else { return path_and_query.to_owned() };
    let stays = |pair: &&str| {
        let name = pair.split('=').next().unwrap_or_default();
        let name = crate::dialect::unescaped(name).to_ascii_lowercase();
        // Azure's functions are called with a code.
        name == "code" || tells_a_secret(&name)
    };
    let kept: Vec<&str> = query.split('&').filter(|pair| !stays(pair)).collect();
    if kept.is_empty() { path.to_owned() } else { format!("{path}?{}", kept.join("&")) }
}

/// Why a call goes to no other upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// It does not ask a model for an answer: what it reads or changes lies at one upstream.
    Operation,
    /// This member of its body means something at one upstream alone.
    Member(&'static str),
    /// Its body cannot be read, so nobody knows.
    Unreadable,
}

impl Bound {
    /// What binds, as a label.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Operation => "operation",
            Self::Member(name) => name,
            Self::Unreadable => "unreadable",
        }
    }

    /// What binds a request, if anything does; `binds`: what its body holds, where it was looked at.
    #[must_use]
    pub const fn of(operation: Operation, binds: Option<Binds>) -> Option<Self> {
        match (operation, binds) {
            (Operation::Pure | Operation::Other, _) => Some(Self::Operation),
            (Operation::Generation, Some(Ok(Some(member)))) => Some(Self::Member(member)),
            (Operation::Generation, Some(Ok(None))) => None,
            (Operation::Generation, Some(Err(Unreadable)) | None) => Some(Self::Unreadable),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::binding_member;

    #[test]
    fn what_says_who_somebody_is_stays_at_home() {
        for name in [
            "authorization",
            "cookie",
            "proxy-authorization",
            "x-api-key",
            "api-key",
            "x-goog-api-key",
            "chatgpt-account-id",
            "openai-organization",
            "x-openai-fedramp",
            "x-amz-security-token",
            "x-my-gateway-token",
            "x-team-secret",
            "x-authorization",
            "x-forwarded-authorization",
            "x-original-authorization",
            "authentication",
            "x_api_key",
            "x-auth",
            "x-oauth",
            "cf-access-jwt-assertion",
            "x-bearer",
            "x-pat",
            "x-creds",
            "x-passwd",
            "x-passphrase",
            "x-otp",
            "x-signature",
            "x-hmac",
            "cookie2",
            "set-cookie",
            "x-ms-client-principal",
            "x-tenant-id",
            "x-workspace-id",
            "x-customer-id",
            "x-account",
            "x-user-id",
            "x-email",
            "x-username",
            "from",
            "x-forwarded-for",
        ] {
            assert!(stays_at_home(&HeaderName::from_static(name)), "{name}");
        }
        for name in [
            "content-type",
            "accept",
            "user-agent",
            "anthropic-version",
            "anthropic-beta",
            "openai-beta",
            "x-stainless-retry-count",
            "session_id",
            "idempotency-key",
            "x-monkey",
            "x-client-request-id",
            "traceparent",
        ] {
            assert!(!stays_at_home(&HeaderName::from_static(name)), "{name}");
        }
    }

    #[test]
    fn keys_in_a_query_stay_at_home_and_the_rest_goes_on_as_it_came() {
        for (came, goes) in [
            ("/v1/x", "/v1/x"),
            ("/v1/x?alt=sse&key=AIza1", "/v1/x?alt=sse"),
            ("/v1/x?key=AIza1", "/v1/x"),
            ("/v1/x?%6bey=AIza1&a=%20", "/v1/x?a=%20"),
            ("/v1/x?KEY=1&keys=2&beta=true", "/v1/x?keys=2&beta=true"),
            ("/v1/x??key=1&+key=2&key%20=3&a=4", "/v1/x?a=4"),
            ("/v1/x?X-Amz-Signature=1&X-Amz-Security-Token=2&X-Amz-Credential=3&a=4", "/v1/x?a=4"),
            ("/v1/x?subscription-key=1&code=2&id_token=3&client_secret=4&jwt=5&auth=6&pw=7", "/v1/x"),
        ] {
            assert_eq!(without_own_query(came), goes);
        }
    }

    #[test]
    fn a_call_is_bound_by_what_it_does_and_by_what_it_holds() {
        let of = |body: &[u8]| Bound::of(Operation::Generation, Some(binding_member(body)));
        assert_eq!(of(br#"{"model":"m","input":"x"}"#), None);
        assert_eq!(of(br#"{"input":[{"encrypted_content":"x"}]}"#), Some(Bound::Member("encrypted_content")));
        assert_eq!(of(b"--boundary"), Some(Bound::Unreadable));
        assert_eq!(Bound::of(Operation::Generation, None), Some(Bound::Unreadable));
        for operation in [Operation::Pure, Operation::Other] {
            assert_eq!(Bound::of(operation, Some(Ok(None))), Some(Bound::Operation));
        }
    }
}
