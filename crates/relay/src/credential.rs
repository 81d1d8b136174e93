//! What a request carries, and who issued it: the ground on which a relay without settings picks an upstream.
//! Not a check of the credential. Nothing here logs, keeps or returns one. And the lending of a key of our own, whose having
//! is not here (that is [`crate::credentials`]).
//!
//! Every header that can hold a credential is judged, because clients send two at once (Claude Code does
//! when both of its variables are set) and the one that is not looked at would go to the wrong house.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{AUTHORIZATION, HeaderMap, HeaderName};
use serde::Deserialize;

use crate::words::{door, lang};

mod account;
mod lending;

pub use account::{AccountKey, account_key, account_material};
pub(crate) use account::{own_account_key, own_account_material};
pub(crate) use lending::{is_key_header, put, strip, without_query_key};

const AZURE_KEY: HeaderName = HeaderName::from_static("api-key");
static GOOGLE_KEY: HeaderName = HeaderName::from_static("x-goog-api-key");
static JUDGED: [HeaderName; 4] = [
    AUTHORIZATION,
    HeaderName::from_static("x-api-key"),
    AZURE_KEY,
    HeaderName::from_static("x-goog-api-key"),
];
/// What comes with a request that is signed the way of AWS.
static SIGNED: [HeaderName; 3] = [
    HeaderName::from_static("x-amz-date"),
    HeaderName::from_static("x-amz-content-sha256"),
    HeaderName::from_static("x-amz-security-token"),
];
const ACCOUNT_ID: HeaderName = HeaderName::from_static("chatgpt-account-id");
const FEDRAMP: HeaderName = HeaderName::from_static("x-openai-fedramp");
/// Who signs the access tokens of a ChatGPT sign-in.
const OPENAI_AUTH: &str = "https://auth.openai.com";
/// "OpenAI" in base64: it stands in the middle of every key that OpenAI makes.
const OPENAI_MARK: &str = "T3BlbkFJ";
/// No access token is longer; more is not decoded.
const LONGEST_TOKEN: usize = 64 * 1024;

/// Who issued a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Issuer {
    /// A key of the OpenAI API.
    OpenAiKey,
    /// The access token of a ChatGPT sign-in.
    ChatGptSignIn,
    /// A key or an OAuth token of Anthropic.
    Anthropic,
    /// A key of the Gemini API.
    Gemini,
}

impl Issuer {
    /// The built-in upstream that this credential is meant for.
    #[must_use]
    pub const fn upstream(self) -> &'static str {
        match self {
            Self::OpenAiKey => "openai",
            Self::ChatGptSignIn => "chatgpt",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }

    /// What to call such a credential in a message.
    #[must_use]
    pub fn describe(self) -> String {
        match self {
            Self::OpenAiKey => door::openai_key(lang()),
            Self::ChatGptSignIn => door::chatgpt_sign_in(lang()),
            Self::Anthropic => door::anthropic_credential(lang()),
            Self::Gemini => door::gemini_key(lang()),
        }
    }
}

/// A service whose address no credential tells: it is the user's own, or part of what is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Elsewhere {
    /// Azure OpenAI: every resource has a host of its own.
    Azure,
    /// Amazon Bedrock: requests are signed for one host and one quarter of an hour.
    Bedrock,
    /// Google's Vertex AI: the host depends on the region.
    Vertex,
}

impl fmt::Display for Elsewhere {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&match self {
            Self::Azure => door::azure(lang()),
            Self::Bedrock => door::bedrock(lang()),
            Self::Vertex => door::vertex(lang()),
        })
    }
}

/// What the credential headers of a request say together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// All that is there comes from one issuer.
    One(Issuer),
    /// No credential at all.
    None,
    /// A credential that we cannot tell, alone or beside others.
    Unknown {
        /// The header it came in.
        header: HeaderName,
        /// An issuer that another header named all the same.
        beside: Option<Issuer>,
        /// The service it is meant for, where that much is clear.
        elsewhere: Option<Elsewhere>,
    },
    /// Two issuers in one request.
    Disagree {
        /// The first header and its issuer.
        one: (HeaderName, Issuer),
        /// The header that contradicts it.
        other: (HeaderName, Issuer),
    },
}

impl Verdict {
    /// Whether any header holds a credential of a cloud that we know.
    #[must_use]
    pub const fn holds_recognised(&self) -> bool {
        match self {
            Self::One(_) | Self::Disagree { .. } => true,
            Self::None => false,
            Self::Unknown { beside, .. } => beside.is_some(),
        }
    }
}

/// Judges every credential header, and the key in the query that Gemini's clients may put there.
#[must_use]
pub fn judge(headers: &HeaderMap, path_and_query: &str) -> Verdict {
    let mut known: Option<(HeaderName, Issuer)> = None;
    let mut clash: Option<(HeaderName, Issuer)> = None;
    let mut unknown: Option<HeaderName> = None;
    let in_query = query_key(path_and_query).map(|key| (&GOOGLE_KEY, key.as_bytes()));
    for (name, value) in credentials(headers).chain(in_query) {
        match issuer(name, value) {
            None => unknown = unknown.or_else(|| Some(name.clone())),
            Some(issuer) => match &known {
                None => known = Some((name.clone(), issuer)),
                Some((_, first)) if *first == issuer => {}
                Some(_) => clash = clash.or_else(|| Some((name.clone(), issuer))),
            },
        }
    }
    let signed = headers.keys().find(|name| SIGNED.contains(name)).filter(|_| known.is_none());
    let unknown = unknown.or_else(|| signed.cloned());
    match (unknown, known, clash) {
        (Some(header), known, _) => {
            let elsewhere = elsewhere(headers, &header);
            Verdict::Unknown { header, beside: known.map(|(_, issuer)| issuer), elsewhere }
        }
        (None, Some(one), Some(other)) => Verdict::Disagree { one, other },
        (None, Some((_, issuer)), None) => Verdict::One(issuer),
        (None, None, _) => Verdict::None,
    }
}

/// The service that a credential is meant for which we cannot tell.
fn elsewhere(headers: &HeaderMap, header: &HeaderName) -> Option<Elsewhere> {
    let value = headers.get(header).map(|value| value.as_bytes().trim_ascii()).unwrap_or_default();
    let signed = *header == AUTHORIZATION && value.starts_with(b"AWS4-");
    if signed || SIGNED.iter().any(|name| headers.contains_key(name)) {
        return Some(Elsewhere::Bedrock);
    }
    if *header == AZURE_KEY {
        return Some(Elsewhere::Azure);
    }
    let vertex = secret(header, value).is_some_and(|secret| secret.starts_with("ya29."));
    vertex.then_some(Elsewhere::Vertex)
}

/// A key of the Gemini API in the query (`?key=`).
fn query_key(path_and_query: &str) -> Option<&str> {
    let (_, query) = path_and_query.split_once('?')?;
    query.split('&').filter_map(|pair| pair.strip_prefix("key=")).find(|key| is_gemini_key(key))
}

/// What every API key of Google looks like.
fn is_gemini_key(secret: &str) -> bool {
    secret.starts_with("AIza")
}

/// Adds a key to a request that carries no credential at all; any other keeps its own.
pub fn lend(key: &str, headers: &mut HeaderMap, path_and_query: &str) {
    if judge(headers, path_and_query) == Verdict::None {
        put(key, None, headers, path_and_query);
    }
}

/// Whose sign-in this is, if it is one: it belongs to the client that made it.
pub(crate) fn sign_in_of(secret: &str) -> Option<&'static str> {
    if secret.starts_with("sk-ant-oat") || secret.starts_with("sk-ant-ort") {
        return Some("Claude");
    }
    claims(secret).is_some_and(|claims| claims.iss == OPENAI_AUTH).then_some("ChatGPT")
}

/// The credential headers that hold something, in a fixed order.
fn credentials(headers: &HeaderMap) -> impl Iterator<Item = (&'static HeaderName, &[u8])> {
    JUDGED.iter().flat_map(|name| {
        headers
            .get_all(name)
            .iter()
            .map(move |value| (name, value.as_bytes().trim_ascii()))
            .filter(|(name, value)| !value.is_empty() && (**name != AUTHORIZATION || !is_bare_scheme(value)))
    })
}

/// `Authorization: Bearer` with nothing behind it: what a client without a key sends.
fn is_bare_scheme(value: &[u8]) -> bool {
    value.eq_ignore_ascii_case(b"bearer")
}

/// The secret itself: what follows `Bearer`, or the whole of a key header.
fn secret<'a>(name: &HeaderName, value: &'a [u8]) -> Option<&'a str> {
    let value = std::str::from_utf8(value).ok()?;
    if *name != AUTHORIZATION {
        return Some(value);
    }
    let (scheme, rest) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| rest.trim())
}

fn issuer(name: &HeaderName, value: &[u8]) -> Option<Issuer> {
    let secret = secret(name, value)?;
    if let Some(claims) = claims(secret) {
        return (claims.iss == OPENAI_AUTH).then_some(Issuer::ChatGptSignIn);
    }
    if secret.starts_with("sk-ant-") {
        return Some(Issuer::Anthropic);
    }
    if is_gemini_key(secret) {
        return Some(Issuer::Gemini);
    }
    let openai = secret.starts_with("sk-proj-") || secret.starts_with("sk-svcacct-");
    (openai || secret.starts_with("sk-") && secret.contains(OPENAI_MARK)).then_some(Issuer::OpenAiKey)
}

/// The few claims of an access token that are looked at. The signature is not: the upstream checks it.
#[derive(Deserialize)]
struct Claims {
    iss: String,
    /// A value, not a type: a claim that changes its form must not make the whole token unknown.
    #[serde(rename = "https://api.openai.com/auth", default)]
    auth: serde_json::Value,
}

impl Claims {
    fn auth(&self, name: &str) -> Option<&str> {
        self.auth.get(name)?.as_str()
    }
}

/// The claims of `token` if it is a JWT; what cannot be read has none.
fn claims(token: &str) -> Option<Claims> {
    let mut parts = token.split('.');
    let (Some(_), Some(payload), Some(_), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return None;
    };
    if payload.len() > LONGEST_TOKEN {
        return None;
    }
    let payload = URL_SAFE_NO_PAD.decode(payload.trim_end_matches('=')).ok()?;
    serde_json::from_slice(&payload).ok()
}

/// The claims of the first credential that is the token of a ChatGPT sign-in.
fn sign_in(headers: &HeaderMap) -> Option<Claims> {
    credentials(headers)
        .filter_map(|(name, value)| claims(secret(name, value)?))
        .find(|claims| claims.iss == OPENAI_AUTH)
}

/// Whether the request is made by a person who signed in at ChatGPT or Claude, rather than with a key: such tokens are
/// for their own client and service alone.
#[must_use]
pub fn is_sign_in(headers: &HeaderMap) -> bool {
    let claude = |(name, value)| secret(name, value).is_some_and(|secret| secret.starts_with("sk-ant-oat"));
    headers.contains_key(ACCOUNT_ID) || credentials(headers).any(claude) || sign_in(headers).is_some()
}

/// A plan whose workspace may be routed elsewhere, which a base URL loses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ManagedPlan {
    /// ChatGPT Business.
    Business,
    /// ChatGPT Enterprise.
    Enterprise,
    /// ChatGPT Edu.
    Edu,
    /// ChatGPT Team, the older name of Business.
    Team,
    /// A workspace under FedRAMP rules, whatever its plan.
    FedRamp,
}

impl ManagedPlan {
    /// The plan's name in a message.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Business => "business",
            Self::Enterprise => "enterprise",
            Self::Edu => "edu",
            Self::Team => "team",
            Self::FedRamp => "fedramp",
        }
    }
}

/// The managed plan behind a ChatGPT sign-in, if it is one. No header names the plan; the token does.
#[must_use]
pub fn plan(headers: &HeaderMap) -> Option<ManagedPlan> {
    if headers.contains_key(FEDRAMP) {
        return Some(ManagedPlan::FedRamp);
    }
    let claims = sign_in(headers)?;
    let plan = claims.auth("chatgpt_plan_type")?;
    [ManagedPlan::Business, ManagedPlan::Enterprise, ManagedPlan::Edu, ManagedPlan::Team]
        .into_iter()
        .find(|managed| managed.name().eq_ignore_ascii_case(plan))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_sign_in_is_known_by_what_it_is() {
        let jwt = |claims: &str| format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims));
        assert_eq!(sign_in_of(&jwt(r#"{"iss":"https://auth.openai.com"}"#)), Some("ChatGPT"));
        assert_eq!(sign_in_of(&jwt(r#"{"iss":"https://auth.example"}"#)), None);
        assert_eq!([sign_in_of("sk-ant-oat01-a"), sign_in_of("sk-ant-ort01-a")], [Some("Claude"); 2]);
        assert_eq!([sign_in_of("sk-ant-api03-a"), sign_in_of("sk-proj-a"), sign_in_of("")], [None; 3]);
    }

    fn judge(headers: &HeaderMap) -> Verdict {
        super::judge(headers, "/v1/x")
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn a_key_is_lent_only_to_a_request_without_any_credential() {
        let lent = |key: &str, before: &[(&'static str, &str)]| {
            let mut headers = headers(before);
            lend(key, &mut headers, "/v1/responses");
            ["authorization", "x-api-key"].map(|name| Some(headers.get(name)?.to_str().ok()?.to_owned()))
        };
        let text = |value: &str| Some(value.to_owned());
        assert_eq!(lent("sk-1", &[]), [text("Bearer sk-1"), None]);
        assert_eq!(lent("sk-1", &[("authorization", "Bearer")]), [text("Bearer sk-1"), None]);
        assert_eq!(lent("sk-1", &[("authorization", "Bearer dummy")]), [text("Bearer dummy"), None]);
        assert_eq!(lent("sk-1", &[("x-api-key", "mine")]), [None, text("mine")]);
        assert_eq!(lent("sk-ant-api03-1", &[]), [None, text("sk-ant-api03-1")]);
        assert_eq!(lent("sk-ant-oat01-1", &[]), [text("Bearer sk-ant-oat01-1"), None]);
        // Measured by many: Google answers a key behind `Bearer` with 401, but for its paths in OpenAI's form.
        for (path, name, value) in [
            ("/v1beta/models/g:generateContent?x=/openai/", "x-goog-api-key", "AIzaSyAbc"),
            ("/v1beta/openai/chat/completions", "authorization", "Bearer AIzaSyAbc"),
        ] {
            let mut headers = HeaderMap::new();
            lend("AIzaSyAbc", &mut headers, path);
            assert_eq!((headers.len(), headers.get(name).unwrap()), (1, &HeaderValue::from_static(value)));
        }
    }

    fn jwt(payload: &str) -> String {
        format!("eyJhbGciOiJSUzI1NiJ9.{}.c2ln", URL_SAFE_NO_PAD.encode(payload))
    }

    fn signed_in(plan: &str, serial: u32) -> String {
        let auth = format!(
            r#"{{"chatgpt_plan_type":"{plan}","chatgpt_account_id":"acc-1","chatgpt_user_id":"user-1"}}"#
        );
        let claims =
            format!(r#"{{"iss":"{OPENAI_AUTH}","jti":"{serial}","https://api.openai.com/auth":{auth}}}"#);
        format!("Bearer {}", jwt(&claims))
    }

    #[test]
    fn every_kind_of_credential_is_told() {
        use Issuer::{Anthropic, ChatGptSignIn, Gemini, OpenAiKey};
        let sign_in = signed_in("plus", 1);
        let elsewhere = format!("Bearer {}", jwt(r#"{"iss":"https://login.example"}"#));
        let odd_claims = format!(
            "Bearer {}",
            jwt(r#"{"iss":"https://auth.openai.com","https://api.openai.com/auth":{"chatgpt_plan_type":7}}"#)
        );
        let lookalike = format!("Bearer {}", jwt(r#"{"iss":"https://auth.openai.com.evil.example"}"#));
        let rows: [(&'static str, &str, Option<Issuer>); 24] = [
            ("authorization", &sign_in, Some(ChatGptSignIn)),
            ("authorization", "Bearer sk-proj-abc", Some(OpenAiKey)),
            ("authorization", "bearer  sk-proj-abc", Some(OpenAiKey)),
            ("authorization", "Bearer sk-svcacct-abc", Some(OpenAiKey)),
            ("authorization", "Bearer sk-abcT3BlbkFJdef", Some(OpenAiKey)),
            ("authorization", "Bearer sk-admin-abcT3BlbkFJdef", Some(OpenAiKey)),
            ("authorization", "Bearer sk-ant-oat01-abc", Some(Anthropic)),
            ("x-api-key", "sk-ant-api03-abc", Some(Anthropic)),
            ("api-key", "sk-proj-abc", Some(OpenAiKey)),
            ("x-api-key", "sk-proj-abc", Some(OpenAiKey)),
            ("authorization", &odd_claims, Some(ChatGptSignIn)),
            ("authorization", &elsewhere, None),
            ("authorization", &lookalike, None),
            ("authorization", "Basic c2stcHJvai1hYmM=", None),
            ("authorization", "sk-proj-abc", None),
            ("authorization", "Bearer sk-abc", None),
            ("authorization", "Bearer sk-or-v1-abc", None),
            ("authorization", "Bearer xT3BlbkFJ", None),
            ("authorization", "Bearer a.b.c", None),
            ("authorization", "Bearer a.!!!.c", None),
            ("x-goog-api-key", "AIzaSyAbc", Some(Gemini)),
            ("authorization", "Bearer AIzaSyAbc", Some(Gemini)),
            ("x-goog-api-key", "my-gateways-key", None),
            ("authorization", "Bearer a.b.c.d", None),
        ];
        for (name, value, issuer) in rows {
            let expected = issuer.map_or_else(
                || Verdict::Unknown { header: HeaderName::from_static(name), beside: None, elsewhere: None },
                Verdict::One,
            );
            assert_eq!(judge(&headers(&[(name, value)])), expected, "{name}: {value}");
        }
    }

    #[test]
    fn what_is_meant_for_a_service_we_cannot_find_is_told() {
        type Row = (&'static [(&'static str, &'static str)], Option<Elsewhere>);
        let rows: [Row; 9] = [
            (&[("api-key", "0123456789abcdef")], Some(Elsewhere::Azure)),
            (&[("authorization", "Bearer ya29.a0Af")], Some(Elsewhere::Vertex)),
            (&[("authorization", "AWS4-HMAC-SHA256 Credential=AKIA/x")], Some(Elsewhere::Bedrock)),
            (&[("x-amz-date", "20260101T000000Z")], Some(Elsewhere::Bedrock)),
            (&[("authorization", "Bearer x"), ("x-amz-security-token", "t")], Some(Elsewhere::Bedrock)),
            (&[("authorization", "Bearer mine")], None),
            (&[("x-api-key", "mine")], None),
            (&[("x-goog-api-key", "mine")], None),
            (&[("x-api-key", "sk-ant-a"), ("api-key", "mine")], Some(Elsewhere::Azure)),
        ];
        for (pairs, expected) in rows {
            let Verdict::Unknown { elsewhere, .. } = judge(&headers(pairs)) else { panic!("{pairs:?}") };
            assert_eq!(elsewhere, expected, "{pairs:?}");
        }
        let known = headers(&[("authorization", "Bearer sk-proj-a"), ("x-amz-date", "20260101T000000Z")]);
        assert_eq!(judge(&known), Verdict::One(Issuer::OpenAiKey));
    }

    #[test]
    fn a_gemini_key_in_the_query_counts_as_one_in_a_header() {
        let path = "/v1beta/models/g:generateContent?alt=sse&key=AIzaSyAbc";
        let verdict = |pairs: &[(&'static str, &str)], path| super::judge(&headers(pairs), path);
        assert_eq!(verdict(&[], path), Verdict::One(Issuer::Gemini));
        assert_eq!(verdict(&[("x-goog-api-key", "AIzaSyOther")], path), Verdict::One(Issuer::Gemini));
        assert!(matches!(verdict(&[("x-api-key", "sk-ant-a")], path), Verdict::Disagree { .. }));
        assert_eq!(verdict(&[], "/v1/x?key=mine&monkey=AIza"), Verdict::None);
        assert_eq!(verdict(&[], "/v1/key=AIzaSy"), Verdict::None);
        let none = HeaderMap::new();
        assert_ne!(account_key(&none, path), account_key(&none, "/v1/x?key=AIzaSyOther"));
        assert_eq!(account_key(&none, path), account_key(&none, "/elsewhere?key=AIzaSyAbc"));
    }

    #[test]
    fn all_credentials_of_a_request_count() {
        assert_eq!(judge(&headers(&[])), Verdict::None);
        assert_eq!(judge(&headers(&[("authorization", "Bearer "), ("x-api-key", "")])), Verdict::None);
        assert_eq!(
            judge(&headers(&[("authorization", "Bearer sk-ant-a"), ("x-api-key", "sk-ant-b")])),
            Verdict::One(Issuer::Anthropic)
        );
        let disagree = judge(&headers(&[("x-api-key", "sk-ant-b"), ("authorization", "Bearer sk-proj-a")]));
        let one = (AUTHORIZATION, Issuer::OpenAiKey);
        let other = (HeaderName::from_static("x-api-key"), Issuer::Anthropic);
        assert_eq!(disagree, Verdict::Disagree { one, other });
        assert!(disagree.holds_recognised());
        let unknown = judge(&headers(&[("x-api-key", "sk-ant-b"), ("authorization", "Bearer mine")]));
        assert_eq!(
            unknown,
            Verdict::Unknown { header: AUTHORIZATION, beside: Some(Issuer::Anthropic), elsewhere: None }
        );
        assert!(unknown.holds_recognised());
        let twice = judge(&headers(&[("x-api-key", "sk-ant-b"), ("x-api-key", "mine")]));
        assert!(matches!(twice, Verdict::Unknown { beside: Some(Issuer::Anthropic), .. }));
    }

    #[test]
    fn managed_plans_are_seen_and_personal_ones_are_not() {
        let rows = [
            ("business", Some(ManagedPlan::Business)),
            ("Enterprise", Some(ManagedPlan::Enterprise)),
            ("edu", Some(ManagedPlan::Edu)),
            ("team", Some(ManagedPlan::Team)),
            ("plus", None),
            ("pro", None),
            ("free", None),
        ];
        for (name, managed) in rows {
            assert_eq!(plan(&headers(&[("authorization", &signed_in(name, 1))])), managed, "{name}");
        }
        let fedramp = headers(&[("authorization", &signed_in("plus", 1)), ("x-openai-fedramp", "true")]);
        assert_eq!(plan(&fedramp), Some(ManagedPlan::FedRamp));
        assert_eq!(plan(&headers(&[("authorization", "Bearer sk-proj-a")])), None);
    }

    #[test]
    fn an_account_outlives_its_tokens() {
        let of = |pairs: &[(&'static str, &str)]| account_key(&headers(pairs), "/");
        let (old, new) = (signed_in("plus", 1), signed_in("plus", 2));
        assert_ne!(old, new);
        assert_eq!(of(&[("authorization", &old)]), of(&[("authorization", &new)]));
        let account = ("chatgpt-account-id", "acc-1");
        assert_eq!(of(&[("authorization", &old), account]), of(&[("authorization", &new)]));
        let other = ("chatgpt-account-id", "acc-2");
        assert_ne!(of(&[("authorization", &old), other]), of(&[("authorization", &new)]));
    }

    #[test]
    fn keys_differ_by_credential_and_an_account_header_alone_is_no_proof() {
        let of = |pairs: &[(&'static str, &str)]| account_key(&headers(pairs), "/");
        assert_eq!(of(&[("x-api-key", "a")]), of(&[("x-api-key", "a")]));
        assert_ne!(of(&[("x-api-key", "a")]), of(&[("x-api-key", "b")]));
        assert_ne!(of(&[("x-api-key", "a")]), of(&[]));
        let account = ("chatgpt-account-id", "acc-1");
        assert_ne!(of(&[("x-api-key", "a"), account]), of(&[("x-api-key", "b"), account]));
        assert!(!format!("{:?}", of(&[("x-api-key", "hush")])).contains("hush"));
    }

    #[test]
    fn the_material_of_an_account_tells_what_its_key_tells() {
        let path = "/v1beta/models/g:generateContent?key=AIzaSyAbc";
        let (old, new) = (signed_in("plus", 1), signed_in("plus", 2));
        let account = ("chatgpt-account-id", "acc-2");
        let requests: Vec<(Vec<(&'static str, &str)>, &str)> = vec![
            (vec![], "/"),
            (vec![], path),
            (vec![("authorization", &old)], "/"),
            (vec![("authorization", &new)], "/"),
            (vec![("authorization", &old), account], "/"),
            (vec![("x-api-key", "a")], "/"),
            (vec![("x-api-key", "a"), ("authorization", "b")], "/"),
            (vec![("api-key", "a")], "/"),
            (vec![("x-api-key", "ab")], "/"),
            (vec![("x-api-key", "a"), ("x-api-key", "b")], "/"),
        ];
        let of = |(pairs, path): &(Vec<_>, &str)| {
            let headers = headers(pairs);
            (account_key(&headers, path), account_material(&headers, path))
        };
        let all: Vec<_> = requests.iter().map(of).collect();
        for (one, other) in all.iter().flat_map(|one| all.iter().map(move |other| (one, other))) {
            assert_eq!(one.0 == other.0, one.1 == other.1, "{:?}", one.0);
        }
        assert_eq!(all[2].1, all[3].1, "the token was renewed");
        // Written down once: what is stored under it has to be found by later versions.
        assert_eq!(all[5].1, b"\x09\0\0\0\0\0\0\0x-api-key\x01\0\0\0\0\0\0\0a");
    }
}
