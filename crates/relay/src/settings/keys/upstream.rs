//! The keys of an `[upstream.NAME]`, and the headers that one may add.

use http::{HeaderName, HeaderValue};
use relay_core::BaseUrl;
use relay_core::config::{Http2, ProxyList, Secret, Warm, Websocket};
use relay_core::dialect::{ALL, GENERIC};
use relay_core::units::Invalid;

use super::super::read::{Given, Key};
use super::{http2, max_running, proxies, websocket};
use std::num::NonZeroU32;

/// What an `[upstream.NAME]` says.
#[derive(Debug, Default)]
pub(in crate::settings) struct UpstreamDraft {
    pub(in crate::settings) url: Option<BaseUrl>,
    pub(in crate::settings) headers: Option<Vec<(HeaderName, HeaderValue)>>,
    pub(in crate::settings) api_key: Option<Secret>,
    pub(in crate::settings) dialects: Option<Vec<&'static str>>,
    pub(in crate::settings) credential: Option<String>,
    pub(in crate::settings) replace_credential: Option<bool>,
    pub(in crate::settings) allow_plaintext: Option<bool>,
    pub(in crate::settings) strip_v1: Option<bool>,
    pub(in crate::settings) http2: Option<Http2>,
    pub(in crate::settings) websocket: Option<Websocket>,
    pub(in crate::settings) proxy: Option<ProxyList>,
    pub(in crate::settings) max_running: Option<NonZeroU32>,
    pub(in crate::settings) warm: Option<Warm>,
    pub(in crate::settings) warm_on_start: Option<bool>,
}

/// `[upstream.NAME]`.
pub(in crate::settings) const UPSTREAM: &[Key<UpstreamDraft>] = &[
    Key {
        name: "url",
        shape: "URL",
        default: "",
        doc: "Where it lives: http or https, host, port, path. The request's path and query are appended; a version \
              segment that both bring appears once.",
        set: |upstream, given| given.parsed().map(|value| upstream.url = Some(value)),
    },
    Key {
        name: "headers",
        shape: "table of texts",
        default: "{}",
        doc: "Headers to add to each send, in place of the client's of the same name: \
              `{ \"x-team\" = \"blue\" }`, or a list of values.",
        set: |upstream, given| {
            upstream.headers = Some(given.named_texts()?.into_iter().map(header).collect::<Result<_, _>>()?);
            Ok(())
        },
    },
    Key {
        name: "api_key",
        shape: "text",
        default: "",
        doc: "A key that the relay adds to requests that carry no credential at all, as `Authorization: Bearer`, as \
              `x-api-key` where it is one of Anthropic, or as `x-goog-api-key` where it is one of Gemini. Whoever \
              reaches the relay can spend it. It never goes over plain http to another host unless `allow_plaintext` says so.",
        set: |upstream, given| {
            super::super::layers::api_key_of(given.text()?).map(|value| upstream.api_key = Some(value))
        },
    },
    Key {
        name: "dialects",
        shape: "list of names",
        default: "",
        doc: "The dialects it speaks: a pool sends it no call in another one. `openai_responses`, `openai_chat`, \
              `anthropic`, `gemini`, `ollama`. Not set: whatever comes.",
        set: |upstream, given| dialects(given).map(|value| upstream.dialects = Some(value)),
    },
    Key {
        name: "credential",
        shape: "name",
        default: "",
        doc: "The `[credential.NAME]` that is added to requests that carry no credential at all, in place of an `api_key`. \
              Whoever reaches the relay can spend it, and it goes to no other host.",
        set: |upstream, given| given.text().map(|text| upstream.credential = Some(text.to_owned())),
    },
    Key {
        name: "replace_credential",
        shape: "true or false",
        default: "false",
        doc: "Whether `credential` is sent in place of what a request carries, for clients that must have some key: then none \
              of the client's own credentials, account headers and cookies go there.",
        set: |upstream, given| given.flag().map(|value| upstream.replace_credential = Some(value)),
    },
    Key {
        name: "allow_plaintext",
        shape: "true or false",
        default: "false",
        doc: "Whether a cloud credential may go to another host over plain http, where anyone on the way can read it.",
        set: |upstream, given| given.flag().map(|value| upstream.allow_plaintext = Some(value)),
    },
    Key {
        name: "strip_v1",
        shape: "true or false",
        default: "",
        doc: "Whether a `/v1` at the start of the request's path is dropped. Not set: yes, where the URL ends in \
              `/backend-api/codex`.",
        set: |upstream, given| given.flag().map(|value| upstream.strip_v1 = Some(value)),
    },
    Key {
        name: "http2",
        shape: "choice",
        default: "",
        doc: "When it is spoken to over HTTP/2: `auto`, `always` or `off`. Not set: as `[relay]` says.",
        set: |upstream, given| http2(given).map(|value| upstream.http2 = Some(value)),
    },
    Key {
        name: "websocket",
        shape: "choice",
        default: "",
        doc: "What becomes of WebSockets to this upstream: `speak`, `refuse` or `tunnel`. Not set: as in `[relay]`.",
        set: |upstream, given| websocket(given).map(|value| upstream.websocket = Some(value)),
    },
    Key {
        name: "proxy",
        shape: "choice, URL or list",
        default: "",
        doc: "The proxy on the way there: `system`, `none` or an address, or several in their order. Not set: as `[relay]` says.",
        set: |upstream, given| proxies(given).map(|value| upstream.proxy = Some(value)),
    },
    Key {
        name: "max_running",
        shape: "whole number",
        default: "",
        doc: "The most calls that run at once, whatever their model and credential, from 1 to 100000: for a server of \
              your own that queues what it cannot work on, instead of refusing it. The rest waits in a fair line, \
              session by session in turn, and a call whose client has left is never sent. Calls of profiles without a \
              gate wait in it, too. Not set: as many as come.",
        set: |upstream, given| max_running(given).map(|value| upstream.max_running = value),
    },
    Key {
        name: "warm",
        shape: "model or table of texts",
        default: "",
        doc: "Loads a model of a server of your own before calls need it: at Ollama its name, `\"llama3\"`, else a \
              request, `{ path = \"/load\", body = '{\"model\":\"m\"}' }`, sent by POST from the root of the host. It is sent \
              when an answer tells that this model is being loaded, and at the start where `warm_on_start` says so; one at \
              a time, again after 2 s, twice as long each time, at most 30 s and chance, for 10 minutes. Each is a line \
              in the log. Not set: nothing is sent that no client asked for.",
        set: |upstream, given| warm(given).map(|value| upstream.warm = Some(value)),
    },
    Key {
        name: "warm_on_start",
        shape: "true or false",
        default: "false",
        doc: "Whether `warm` is sent when the relay starts, too.",
        set: |upstream, given| given.flag().map(|value| upstream.warm_on_start = Some(value)),
    },
];

/// Reads the name of a model of Ollama, or a request.
fn warm(given: &Given<'_>) -> Result<Warm, Invalid> {
    const FORM: &str = "write the name of a model, or { path = \"/load\", body = '{\"model\":\"m\"}' }";
    if let Ok(model) = given.text() {
        return if model.is_empty() { Err(Invalid::new("is empty", FORM)) } else { Ok(Warm::ollama(model)) };
    }
    let Ok(pairs) = given.named_texts() else {
        return Err(given.is_not("a model or a table of texts", FORM));
    };
    let (mut path, mut body) = (None, None);
    for (name, text) in pairs {
        match name {
            "path" if path.is_none() => path = Some(text),
            "body" if body.is_none() => body = Some(text),
            _ => return Err(Invalid::new("has more than one `path` and one `body`", FORM)),
        }
    }
    let path = path.ok_or_else(|| Invalid::new("has no `path`", FORM))?;
    if !path.starts_with('/') || path.parse::<http::uri::PathAndQuery>().is_err() {
        return Err(Invalid::new("has a `path` that is none", FORM));
    }
    let body = body.unwrap_or_default();
    let told: Option<serde_json::Value> = serde_json::from_str(body).ok();
    let model = told.as_ref().and_then(|body| body["model"].as_str()).map(str::to_owned);
    Ok(Warm { model, path: path.to_owned(), body: body.to_owned() })
}

/// Whether a header belongs to the connection, which the relay makes itself.
pub(super) fn of_the_connection(name: &HeaderName) -> bool {
    const OURS: [&str; 11] = [
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ];
    OURS.contains(&name.as_str())
}

/// Reads one header to add. Its value is marked as sensitive and stays out of every message.
pub(super) fn header((name, value): (&str, &str)) -> Result<(HeaderName, HeaderValue), Invalid> {
    let name: HeaderName = name.parse().map_err(|_not_a_name| {
        Invalid::new("holds what is no header name", "a name has letters, digits and hyphens")
    })?;
    if of_the_connection(&name) {
        let why = format!("holds `{name}`, which belongs to the connection");
        return Err(Invalid::new(why, "leave it out: the relay sets it itself"));
    }
    let mut value = HeaderValue::from_str(value).map_err(|_not_a_value| {
        let why = format!("holds a value for `{name}` that no header can have");
        Invalid::new(why, "a value is one line of visible characters")
    })?;
    value.set_sensitive(true);
    Ok((name, value))
}

/// Reads the names of dialects.
fn dialects(given: &Given<'_>) -> Result<Vec<&'static str>, Invalid> {
    given.texts()?;
    let named = ALL.iter().map(|dialect| dialect.name()).filter(|name| *name != GENERIC);
    let among: Vec<_> = named.map(|name| (name, name)).collect();
    given.each_or_one().iter().map(|one| one.choice(&among)).collect()
}
