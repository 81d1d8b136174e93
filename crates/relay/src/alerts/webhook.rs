//! Posts an alert: one request, and one more where that fails.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use http::{Method, Request, Version};
use relay_core::config::{self, WebhookUrl};

use super::message::Message;
use crate::body::SendBody;
use crate::headers::OUR_NAME;
use crate::shared::Shared;
use crate::target::Upstream;
use crate::upstream::Ask;
use crate::words::{alerts as words, lang};

/// How many tries there are.
const TRIES: u32 = 2;
/// How long the second one comes after the first.
const PAUSE: Duration = Duration::from_secs(1);

/// Posts it where the settings say.
pub(super) async fn post(shared: Arc<Shared>, message: Arc<Message>) -> Result<(), String> {
    let Some(url) = shared.config.alerts.webhook.clone() else { return Ok(()) };
    let within = shared.config.alerts.within;
    let mut why = String::new();
    for tries in 0..TRIES {
        if tries > 0 {
            tokio::time::sleep(PAUSE).await;
        }
        match tokio::time::timeout(within, once(&shared, &url, &message.json)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(failed)) => why = failed,
            Err(_elapsed) => why = words::no_answer(lang(), within.as_secs_f64()),
        }
    }
    // The path may be a secret.
    Err(words::webhook_failed(lang(), &url.at().to_string(), &why))
}

async fn once(shared: &Shared, url: &WebhookUrl, json: &str) -> Result<(), String> {
    // A proxy stands in its way as in that of any other service.
    let there = Upstream::of("alerts", &config::Upstream::at(url.at().clone()));
    let mut request = Request::new(SendBody::Kept(Some(Bytes::copy_from_slice(json.as_bytes()))));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = url.expose().parse().map_err(|_odd| words::no_url(lang()))?;
    let headers = request.headers_mut();
    headers.insert(HOST, there.host.clone().ok_or_else(|| words::no_url(lang()))?);
    headers.insert(USER_AGENT, OUR_NAME.clone());
    headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(json.len()));
    let way = shared.way(&there, Version::HTTP_11);
    let sent = shared.upstreams.send(Ask { way, request, fresh: true, may_reuse_stale: false }).await;
    let answer = sent.map_err(|failure| failure.detail)?;
    if answer.status().is_success() { Ok(()) } else { Err(words::said(lang(), answer.status().as_u16())) }
}
