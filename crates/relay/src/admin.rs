//! The relay's own endpoints: `/healthz` and everything under `/__steady/`. Nothing else is ours.

use std::sync::Arc;

use http::{HeaderValue, Method, Response, StatusCode, header};

use crate::reply::{ReplyBody, text, typed};
use crate::shared::Shared;

/// Whether a path is the relay's own.
pub(crate) fn is_ours(path: &str) -> bool {
    path == "/healthz" || path == "/__steady" || path.starts_with("/__steady/")
}

/// Answers a request for one of our own endpoints.
pub(crate) fn answer(shared: &Arc<Shared>, method: &Method, path: &str) -> Response<ReplyBody> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        let mut response =
            text(StatusCode::METHOD_NOT_ALLOWED, "steady-relay: this address can only be read\n");
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    match path {
        "/healthz" => text(StatusCode::OK, "ok\n"),
        "/__steady/status" => {
            let page = shared.status.page(shared.started, shared.clock.now());
            match serde_json::to_vec_pretty(&page) {
                Ok(mut json) => {
                    json.push(b'\n');
                    typed(StatusCode::OK, "application/json", json)
                }
                Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, &format!("steady-relay: {error}\n")),
            }
        }
        _ => text(
            StatusCode::NOT_FOUND,
            "steady-relay: nothing here\nhint: /healthz tells that the relay lives, /__steady/status what it does\n",
        ),
    }
}
