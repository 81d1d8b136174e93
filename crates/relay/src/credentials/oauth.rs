//! Tokens that are issued against a refresh token (RFC 6749, section 6). One request, once; when there is another one is not
//! decided here.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderValue, LOCATION, USER_AGENT};
use http::{HeaderMap, Method, Request, StatusCode, Uri, Version};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use relay_core::config::{self, Held, OAuth, Secret, TokenRequest};
use relay_core::failure::label;
use relay_core::retry_after::{Advice, advice};
use ring::digest::{Context, SHA256};
use serde_json::Value;

use super::blank::Blank;
use super::held::{Unfit, key_of, of_file_elsewhere};
use super::store::{Found, Kept, Lock};
use super::{Credential, Had, Kind, Trouble};
use crate::body::SendBody;
use crate::headers::OUR_NAME;
use crate::observe::Notice;
use crate::shared::Shared;
use crate::target::Upstream;
use crate::upstream::Ask;
use crate::words::{credentials as words, lang, start};

/// How long the issuer may take.
const WITHIN: Duration = Duration::from_secs(30);
/// The most of an answer that is read.
const MOST: usize = 64 << 10;
/// A kept token that is over sooner than this is not taken up: a call would hardly arrive with it.
const LEFT: u64 = 5;

/// No token is good for longer than ten years, whatever is said.
const LONGEST_LIFE: Duration = Duration::from_secs(3650 * 24 * 3600);

/// Whoever issues the tokens of one credential.
pub(super) struct Issuer<'a> {
    pub(super) shared: &'a Arc<Shared>,
    pub(super) oauth: &'a OAuth,
    pub(super) credential: &'a Credential,
}

/// What was issued.
#[derive(Debug, PartialEq, Eq)]
struct Granted {
    access: Secret,
    lifetime: Option<Duration>,
    /// The refresh token from now on, where it is another one.
    refresh: Option<Secret>,
}

impl Issuer<'_> {
    /// Another token than the present one: what another relay was issued meanwhile or this one before its start, else what
    /// is issued now.
    pub(super) async fn obtain(&self, present: Option<Arc<Secret>>) -> Result<Had, Trouble> {
        let configured = self.held(&self.oauth.refresh_token).await?;
        let source = self.source(&configured);
        let _lock = self.lock().await?;
        let found = match &self.credential.store {
            Some(store) => store.read(&source).await,
            None => Found::default(),
        };
        found.advice.into_iter().for_each(|words| self.advise(&words));
        let kept = found.kept;
        let now = self.shared.clock.wall().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        if let Some(kept) = &kept
            && present.as_ref().is_none_or(|present| present.expose() != kept.access_token)
            && kept.expires.is_none_or(|expires| expires > now.as_secs() + LEFT)
            && let Ok(value) = key_of(kept.access_token.as_bytes())
        {
            let lifetime = kept.expires.map(|expires| Duration::from_secs(expires).saturating_sub(now));
            return Ok(Had { value, issued: false, lifetime, in_spite_of: None });
        }
        let mut blank = Blank::default();
        blank.also(configured.expose());
        present.iter().for_each(|present| blank.also(present.expose()));
        kept.iter().for_each(|kept| blank.also(&kept.access_token));
        let rotated = kept.and_then(|kept| kept.refresh_token).map(Secret::new);
        rotated.iter().for_each(|rotated| blank.also(rotated.expose()));
        let granted = self.ask(rotated.as_ref().unwrap_or(&configured), blank).await?;
        let mut kept = Kept::new(source, &granted.access);
        kept.expires = granted.lifetime.map(|lifetime| (now + lifetime).as_secs());
        kept.refresh_token = granted.refresh.or(rotated).map(|token| token.expose().to_owned());
        self.keep(kept).await;
        Ok(Had { value: granted.access, issued: true, lifetime: granted.lifetime, in_spite_of: None })
    }

    async fn held(&self, held: &Held) -> Result<Secret, Trouble> {
        match held {
            Held::Text(value) | Held::Variable { value: Some(value), .. } => Ok(value.clone()),
            Held::Variable { name, value: None } => {
                Err(Trouble { why: words::variable_unset(lang(), name), kind: Kind::Final })
            }
            Held::File(path) => of_file_elsewhere(path).await.map_err(Trouble::standing),
        }
    }

    /// What the settings say, in a form that tells it from all else and says nothing of it.
    fn source(&self, refresh_token: &Secret) -> String {
        let url = &self.oauth.token_url;
        let at = url.at().to_string();
        let client = self.oauth.client_id.as_deref().unwrap_or_default();
        let scope = self.oauth.scope.as_deref().unwrap_or_default();
        let mut hash = Context::new(&SHA256);
        for part in [refresh_token.expose(), &at, url.path_and_query(), client, scope] {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        hash.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    async fn lock(&self) -> Result<Option<Lock>, Trouble> {
        match &self.credential.store {
            // Who has to wait has asked nobody yet: that keeps no relay from ending.
            Some(store) => store.lock(self.shared.draining()).await.map(Some),
            None => Ok(None),
        }
    }

    async fn keep(&self, kept: Kept) {
        if let Some(store) = &self.credential.store
            && let Err(error) = store.write(kept).await
        {
            self.advise(&words::unkept(lang(), &self.credential.name, &error.to_string()));
        }
    }

    fn advise(&self, words: &str) {
        self.shared.observers.notice(&Notice::Advice(start::note(lang(), words)));
    }

    /// Asks for a token with this one. What is blanked is not repeated, whatever the issuer says.
    async fn ask(&self, refresh_token: &Secret, mut blank: Blank) -> Result<Granted, Trouble> {
        let place = self.oauth.token_url.at().to_string();
        let secret = match &self.oauth.client_secret {
            Some(held) => Some(self.held(held).await?),
            None => None,
        };
        secret.iter().for_each(|secret| blank.also(secret.expose()));
        let fields = fields(self.oauth, refresh_token, secret.as_ref());
        let within = tokio::time::timeout(self.shared.clock.real(WITHIN), self.answered(&fields, &blank));
        let late = |_elapsed| Err(words::no_answer(lang(), &place, WITHIN.as_secs()));
        let answered = within.await.unwrap_or_else(late);
        let (status, headers, body) = answered.map_err(|why| Trouble { why, kind: Kind::Passing(None) })?;
        let pause = match advice(&headers, None, None, self.shared.clock.wall()) {
            Advice::Wait(told) => Some(told),
            Advice::Useless | Advice::Silent => None,
        };
        let location = headers.get(LOCATION).and_then(|to| to.to_str().ok());
        granted(&place, &Heard { status, pause, location, body: &body }, &blank)
    }

    /// Sends the request. Wherever the answer leads to is not asked: a token goes to its issuer alone.
    async fn answered(
        &self,
        fields: &[(&str, &str)],
        blank: &Blank,
    ) -> Result<(StatusCode, HeaderMap, Bytes), String> {
        let url = &self.oauth.token_url;
        let place = url.at().to_string();
        let unreached = |why: &str| words::unreached(lang(), &place, why);
        // A proxy stands in its way as in that of any other service.
        let there = Upstream::of("credential", &config::Upstream::at(url.at().clone()));
        let (kind, body) = match self.oauth.form {
            TokenRequest::Form => ("application/x-www-form-urlencoded", form(fields)),
            TokenRequest::Json => {
                let object: serde_json::Map<_, _> =
                    fields.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))).collect();
                ("application/json", Value::from(object).to_string())
            }
        };
        let length = body.len();
        let mut request = Request::new(SendBody::Kept(Some(Bytes::from(body))));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = url.path_and_query().parse().map_err(|_odd| unreached("its address is none"))?;
        let headers = request.headers_mut();
        headers.insert(HOST, there.host.clone().ok_or_else(|| unreached("its address is none"))?);
        headers.insert(USER_AGENT, OUR_NAME.clone());
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        let way = self.shared.way(&there, Version::HTTP_11);
        let ask = Ask { way, request, fresh: true, may_reuse_stale: false };
        let answer = self.shared.upstreams.send(ask).await;
        let answer = answer.map_err(|failure| unreached(&blank.of(&failure.detail)))?;
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, MOST).collect().await;
        let body = body.map_err(|error| match error.downcast::<LengthLimitError>() {
            Ok(_too_long) => words::answer_too_long(lang(), &place, MOST >> 10),
            Err(_broken) => words::answer_broke_off(lang(), &place),
        })?;
        Ok((head.status, head.headers, body.to_bytes()))
    }
}

/// What is asked for.
fn fields<'a>(
    oauth: &'a OAuth,
    refresh_token: &'a Secret,
    client_secret: Option<&'a Secret>,
) -> Vec<(&'static str, &'a str)> {
    let mut fields = vec![("grant_type", "refresh_token"), ("refresh_token", refresh_token.expose())];
    fields.extend(oauth.client_id.as_deref().map(|id| ("client_id", id)));
    fields.extend(client_secret.map(|secret| ("client_secret", secret.expose())));
    fields.extend(oauth.scope.as_deref().map(|scope| ("scope", scope)));
    fields
}

/// `application/x-www-form-urlencoded`, as the URL standard writes it.
fn form(fields: &[(&str, &str)]) -> String {
    let escaped = |text: &str| -> String {
        let one = |byte: u8| match byte {
            b'*' | b'-' | b'.' | b'_' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => {
                char::from(byte).to_string()
            }
            b' ' => "+".to_owned(),
            other => format!("%{other:02X}"),
        };
        text.bytes().map(one).collect()
    };
    let pairs: Vec<_> = fields.iter().map(|(name, value)| format!("{name}={}", escaped(value))).collect();
    pairs.join("&")
}

/// What the issuer answered.
struct Heard<'a> {
    status: StatusCode,
    /// It asks for a pause.
    pause: Option<Duration>,
    location: Option<&'a str>,
    body: &'a [u8],
}

/// What an answer says. Of an error its code alone is repeated: anything may stand in its words.
fn granted(place: &str, heard: &Heard<'_>, blank: &Blank) -> Result<Granted, Trouble> {
    let told = serde_json::from_slice::<Value>(heard.body).unwrap_or_default();
    let (status, number) = (heard.status, heard.status.as_u16());
    if status.is_redirection() {
        // Nobody has judged the refresh token, so it is as good as before.
        return Err(Trouble::standing(match heard.location {
            Some(location) => words::redirected(lang(), place, number, &led_to(place, location, blank)),
            None => words::failed(lang(), place, number),
        }));
    }
    if !status.is_success() {
        let code = error_code(&told, blank);
        let is_passing = matches!(number, 408 | 425 | 429 | 500..)
            || matches!(&*code, "temporarily_unavailable" | "server_error" | "slow_down");
        return Err(if is_passing {
            Trouble { why: words::failed(lang(), place, number), kind: Kind::Passing(heard.pause) }
        } else {
            Trouble { why: words::refused(lang(), place, number, &code), kind: Kind::Final }
        });
    }
    let text = |name: &str| told[name].as_str().filter(|text| !text.is_empty());
    let is_bearer = text("token_type").is_none_or(|kind| kind.eq_ignore_ascii_case("bearer"));
    let unfit = |why| Trouble { why, kind: Kind::Passing(None) };
    let no_token = || unfit(words::no_token(lang(), place));
    let access = text("access_token").filter(|_| is_bearer).ok_or_else(no_token)?;
    let access = key_of(access.as_bytes()).map_err(|why| match why {
        Unfit::NoKey => no_token(),
        Unfit::SignIn(whose) => Trouble { why: words::a_sign_in(lang(), whose), kind: Kind::Final },
    })?;
    let refresh = text("refresh_token").and_then(|token| key_of(token.as_bytes()).ok());
    Ok(Granted { access, lifetime: lifetime(&told["expires_in"]), refresh })
}

/// The host that a redirect leads to, and its path where that is the host which was asked: else it would seem to lead to
/// itself. Its query may hold anything, and is not repeated; nor is a path that looks as if it held a secret.
fn led_to(place: &str, location: &str, blank: &Blank) -> String {
    let Ok(uri) = location.trim().parse::<Uri>() else { return words::elsewhere(lang()) };
    match (uri.scheme_str(), uri.authority()) {
        (Some(scheme), Some(authority)) => {
            let port = authority.port().map(|port| format!(":{port}")).unwrap_or_default();
            let host = format!("{scheme}://{}{port}", authority.host());
            match path(&uri, blank).filter(|_| host.eq_ignore_ascii_case(place)) {
                Some(path) => format!("{place}{path}"),
                None if host.eq_ignore_ascii_case(place) => words::another_path(lang()),
                None => label(&blank.of(&host)).into(),
            }
        }
        (None, None) => path(&uri, blank).unwrap_or_else(|| words::another_path(lang())),
        (Some(_), None) | (None, Some(_)) => words::elsewhere(lang()),
    }
}

/// The path of a redirect, where it can be told whole.
fn path(uri: &Uri, blank: &Blank) -> Option<String> {
    let path = uri.path();
    let can_be_told = path.starts_with('/') && blank.of(path) == path && *label(path) == *path;
    can_be_told.then(|| path.to_owned())
}

/// The code of an error, as a label; some put it into an object, as services of models do.
fn error_code(told: &Value, blank: &Blank) -> Cow<'static, str> {
    let error = &told["error"];
    let code = [error, &error["code"], &error["type"]].into_iter().find_map(Value::as_str);
    let code = code.map(|code| label(&blank.of(code)));
    code.filter(|code| !code.is_empty()).map_or(Cow::Borrowed("-"), |code| Cow::Owned(code.into()))
}

/// A number of seconds, which some write as a text.
fn lifetime(told: &Value) -> Option<Duration> {
    let seconds = told.as_f64().or_else(|| told.as_str()?.trim().parse().ok())?;
    let lifetime = Duration::try_from_secs_f64(seconds).ok().filter(|lifetime| lifetime.as_secs() > 0);
    lifetime.map(|lifetime| lifetime.min(LONGEST_LIFE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn heard(heard: &Heard<'_>) -> Result<Granted, Trouble> {
        let mut blank = Blank::default();
        for secret in ["rt+/7", "at-CANARY", "hush"] {
            blank.also(secret);
        }
        granted("https://a.example", heard, &blank)
    }

    fn said(status: u16, body: &str) -> Result<Granted, Trouble> {
        let status = StatusCode::from_u16(status).unwrap();
        heard(&Heard { status, pause: None, location: None, body: body.as_bytes() })
    }

    #[test]
    fn a_form_is_escaped() {
        let fields = [("grant_type", "refresh_token"), ("refresh_token", "a+b/c=&é"), ("scope", "x y")];
        let expected = "grant_type=refresh_token&refresh_token=a%2Bb%2Fc%3D%26%C3%A9&scope=x+y";
        assert_eq!(form(&fields), expected);
    }

    #[test]
    fn tokens_are_read_as_issuers_write_them() {
        let secret = |text: &str| Secret::new(text.to_owned());
        let granted = |lifetime: Option<u64>, refresh: Option<&str>| Granted {
            access: secret("at-1"),
            lifetime: lifetime.map(Duration::from_secs),
            refresh: refresh.map(secret),
        };
        for (body, expected) in [
            (json!({"access_token": "at-1"}), granted(None, None)),
            (
                json!({"access_token": "at-1", "token_type": "Bearer", "expires_in": 3600, "refresh_token": "rt-2"}),
                granted(Some(3600), Some("rt-2")),
            ),
            (json!({"access_token": "at-1", "expires_in": "3599"}), granted(Some(3599), None)),
            (json!({"access_token": "at-1", "expires_in": 0, "refresh_token": ""}), granted(None, None)),
            (json!({"access_token": "at-1", "expires_in": -5}), granted(None, None)),
            (json!({"access_token": "at-1", "expires_in": "soon"}), granted(None, None)),
        ] {
            assert_eq!(said(200, &body.to_string()), Ok(expected), "{body}");
        }
    }

    #[test]
    fn what_is_no_token_is_not_taken() {
        for body in [
            "",
            "<html>sign in</html>",
            "[]",
            "{\"access_token\": 7}",
            "{\"access_token\": \"two words\"}",
            "{\"access_token\": \"\"}",
            "{\"access_token\": \"at\", \"token_type\": \"DPoP\"}",
        ] {
            let trouble = said(200, body).unwrap_err();
            assert_eq!(trouble.kind, Kind::Passing(None), "{body}");
            assert!(trouble.why.contains("no access token"), "{}", trouble.why);
        }
        let sign_in = said(200, r#"{"access_token": "sk-ant-oat01-abc"}"#).unwrap_err();
        assert!(sign_in.kind == Kind::Final && sign_in.why.contains("Claude"), "{sign_in:?}");
    }

    #[test]
    fn refusals_are_final_and_failures_pass() {
        let body = r#"{"error": "invalid_grant", "error_description": "token hunter2 is over"}"#;
        let refused = said(400, body).unwrap_err();
        assert_eq!(refused.kind, Kind::Final);
        assert!(refused.why.contains("400 invalid_grant") && !refused.why.contains("hunter2"), "{refused:?}");
        for (status, body) in [(401, "{\"error\": {\"code\": \"invalid_client\"}}"), (404, "gone")] {
            assert_eq!(said(status, body).unwrap_err().kind, Kind::Final, "{status}");
        }
        let passing =
            [(500, ""), (503, "{}"), (429, ""), (408, ""), (400, "{\"error\":\"temporarily_unavailable\"}")];
        for (status, body) in passing {
            assert_eq!(said(status, body).unwrap_err().kind, Kind::Passing(None), "{status} {body}");
        }
        let told = Some(Duration::from_secs(9));
        let status = StatusCode::SERVICE_UNAVAILABLE;
        let busy = heard(&Heard { status, pause: told, location: None, body: b"" }).unwrap_err();
        assert_eq!(busy.kind, Kind::Passing(told));
        // No secret hides in a code.
        let odd = said(400, r#"{"error": "sk-proj-abcdef12345 was refused"}"#).unwrap_err();
        assert!(!odd.why.contains("abcdef12345"), "{odd:?}");
    }

    #[test]
    fn a_redirect_is_no_refusal_and_says_where_it_leads() {
        for (location, expected) in [
            (
                Some("https://u:pw@new.example:8443/token?rt=CANARY#x"),
                "redirects to https://new.example:8443 (308)",
            ),
            (Some("/v2/token?rt=CANARY"), "redirects to /v2/token (308)"),
            (Some("https://a.example/v2/token?rt=CANARY"), "redirects to https://a.example/v2/token (308)"),
            (Some("https://a.example/hush/token"), "redirects to another path there (308)"),
            (Some("/hush"), "redirects to another path there (308)"),
            (Some("https://hush.new.example/"), "redirects to https://.new.example (308)"),
            (Some("?? CANARY"), "redirects to elsewhere (308)"),
            (None, "https://a.example answered 308"),
        ] {
            let status = StatusCode::PERMANENT_REDIRECT;
            let trouble = heard(&Heard { status, pause: None, location, body: b"" }).unwrap_err();
            assert_eq!(trouble.kind, Kind::Standing, "{location:?}");
            let why = trouble.why;
            assert!(why.contains(expected) && !why.contains("CANARY") && !why.contains("pw"), "{why}");
            assert!(
                !why.contains("refresh token") && (location.is_none() || why.contains("`token_url`")),
                "{why}"
            );
        }
    }

    #[test]
    fn an_issuer_that_echoes_a_secret_is_not_repeated() {
        for code in
            ["bad_rt+/7_x", "bad_rt%2B%2f7_x", r"bad_rt+\/7_x", r"bad_rt\u002b\u002F7_x", "bad_RT+/7_x"]
        {
            let told = said(400, &format!(r#"{{"error":"{code}"}}"#)).unwrap_err();
            assert!(told.why.contains("400 bad_") && told.why.contains("_x;"), "{code}: {}", told.why);
            assert!(!told.why.contains("rt") && !told.why.contains("7_"), "{code}: {}", told.why);
        }
        let body = r#"{"error":{"code":"at-CANARY hush"}}"#;
        assert!(!said(401, body).unwrap_err().why.contains("CANARY"));
        assert!(!said(401, body).unwrap_err().why.contains("hush"));
    }
}
