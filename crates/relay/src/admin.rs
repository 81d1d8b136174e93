//! The relay's own endpoints: `/healthz` and everything under `/__steady/`. Nothing else is ours.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};

use crate::query::number;
use crate::reply::{ReplyBody, as_json, text, typed};
use crate::shared::Shared;
use crate::words::{door, lang};
use crate::{dashboard, history};

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
        Some(asked) => as_json(&serde_json::json!({ "v": 1, "lane": id, "asked": asked })),
        None => text(StatusCode::NOT_FOUND, &door::no_such_lane(lang())),
    }
}

/// The most calls of an answer.
const CALLS: usize = 1000;

/// Calls, as [`crate::history::record::CallRecord`] has them: without a query those in memory, with `since=CHANGE` those
/// of them that changed after that; with `before=MILLISECONDS` the ones in the history's file that were accepted before,
/// the newest first, and no more than `limit`. With `written=1` it tells of none, once all that has happened is in that file,
/// where that can be within a moment.
async fn calls(shared: &Arc<Shared>, query: &str) -> Response<ReplyBody> {
    let [Ok(since), Ok(before), Ok(limit), Ok(written)] =
        ["since", "before", "limit", "written"].map(|key| number::<u64>(query, key))
    else {
        return text(StatusCode::BAD_REQUEST, &door::no_number(lang()));
    };
    let Some(recorder) = &shared.recorder else {
        return text(StatusCode::NOT_FOUND, &door::nothing_recorded(lang()));
    };
    if let Some(before) = before {
        let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(CALLS);
        let found = history::before(&shared.config, before, limit.min(CALLS)).await;
        return match found {
            Ok(calls) => as_json(&serde_json::json!({ "v": 1, "calls": calls })),
            Err(why) => text(StatusCode::SERVICE_UNAVAILABLE, &format!("steady-relay: {why}\n")),
        };
    }
    let since = if written.is_some_and(|written| written != 0) {
        recorder.written().await;
        *recorder.recent().changes().borrow()
    } else {
        recorder.settled().await;
        since.unwrap_or(0)
    };
    let (change, calls) = recorder.recent().since(since);
    let calls: Vec<_> = calls.iter().map(|call| &call.record).collect();
    let lost = recorder.lost();
    as_json(&serde_json::json!({ "v": 1, "change": change, "lost": lost, "calls": calls }))
}

/// The most calls of a lane that the status page lists.
const LISTED: usize = 100;

/// Answers a request for one of our own endpoints.
pub(crate) async fn answer(
    shared: &Arc<Shared>,
    method: &Method,
    headers: &HeaderMap,
    full: &str,
) -> Response<ReplyBody> {
    let mut response = answered(shared, method, headers, full).await;
    dashboard::protect(response.headers_mut());
    response
}

async fn answered(
    shared: &Arc<Shared>,
    method: &Method,
    headers: &HeaderMap,
    full: &str,
) -> Response<ReplyBody> {
    let (path, query) = full.split_once('?').unwrap_or((full, ""));
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
            let mut pretty = serde_json::to_vec_pretty(&page).unwrap_or_default();
            pretty.push(b'\n');
            typed(StatusCode::OK, "application/json", pretty)
        }
        "/__steady/calls" => calls(shared, query).await,
        _ => match dashboard::answer(shared, headers, path, query).await {
            Some(response) => response,
            None => text(StatusCode::NOT_FOUND, &door::nothing_here(lang())),
        },
    }
}
