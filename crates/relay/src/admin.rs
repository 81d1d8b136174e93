//! The relay's own endpoints: `/healthz` and everything under `/__steady/`. Nothing else is ours.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};

use crate::reply::{ReplyBody, text, typed};
use crate::shared::Shared;
use crate::words::{door, lang};

/// Whether a path is the relay's own.
pub(crate) fn is_ours(path: &str) -> bool {
    path == "/healthz" || path == "/__steady" || path.starts_with("/__steady/")
}

/// The lane that is to be asked now.
fn probed(path: &str) -> Option<&str> {
    path.strip_prefix("/__steady/lanes/")?.strip_suffix("/probe")
}

/// Sends the next call of a lane now.
fn probe(shared: &Shared, method: &Method, headers: &HeaderMap, id: &str) -> Response<ReplyBody> {
    if *method != Method::POST {
        let mut response = text(StatusCode::METHOD_NOT_ALLOWED, &door::ask_with_post(lang()));
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
        return response;
    }
    if let Err(refusal) = shared.guard.changing(headers) {
        return text(refusal.status(), &(door::refusal(lang(), &refusal.to_string()) + "\n"));
    }
    match shared.lanes.ask_now(id) {
        Some(asked) => {
            let body = serde_json::json!({ "v": 1, "lane": id, "asked": asked });
            typed(StatusCode::OK, "application/json", format!("{body}\n").into_bytes())
        }
        None => text(StatusCode::NOT_FOUND, &door::no_such_lane(lang())),
    }
}

/// The most calls of a lane that the status page lists.
const LISTED: usize = 100;

/// Answers a request for one of our own endpoints.
pub(crate) fn answer(
    shared: &Arc<Shared>,
    method: &Method,
    headers: &HeaderMap,
    path: &str,
) -> Response<ReplyBody> {
    if let Some(id) = probed(path) {
        return probe(shared, method, headers, id);
    }
    if !matches!(*method, Method::GET | Method::HEAD) {
        let mut response = text(StatusCode::METHOD_NOT_ALLOWED, &door::only_read(lang()));
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    match path {
        "/healthz" => text(StatusCode::OK, "ok\n"),
        "/__steady/status" => {
            let lanes = shared.lanes.views(LISTED);
            let page = shared.status.page(shared.started, shared.clock.now(), lanes);
            match serde_json::to_vec_pretty(&page) {
                Ok(mut json) => {
                    json.push(b'\n');
                    typed(StatusCode::OK, "application/json", json)
                }
                Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, &format!("steady-relay: {error}\n")),
            }
        }
        _ => text(StatusCode::NOT_FOUND, &door::nothing_here(lang())),
    }
}
