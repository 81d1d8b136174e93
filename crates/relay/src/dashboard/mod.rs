//! The dashboard at `/__steady/`: one page that is compiled in, and what it reads.
//!
//! ```text
//! /__steady/         files    the page, its script, its style: compiled in, the same for everybody
//! /__steady/events   events   server-sent: calls as they change, totals and lanes
//! /__steady/charts   charts   sums per minute, quarter of an hour or hour, out of the history's file
//! /__steady/heat     charts   how often a model had no capacity, by hour and weekday
//! /__steady/config   here     the settings in force, secrets masked
//! /__steady/log      here     the last lines of the log
//! elsewhere          entrance a browser that was turned away is asked for the token, or led here
//! ```
//!
//! All of it only reads: nothing that may have run is run again from here. It asks what others keep, at its own pace, so
//! that nobody who looks slows a call. [`crate::guard`] has said before that the request comes from this machine's user.

mod charts;
pub(crate) mod entrance;
mod events;
mod files;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::clock::drawn;
use crate::observe::tail::Tail;
use crate::query::number;
use crate::reply::{ReplyBody, as_json, text};
use crate::settings::Shown;
use crate::shared::Shared;
use crate::words::{door, lang};

/// Who may listen at a time. A browser opens one for each page.
const LISTENERS: usize = 32;

/// What may be loaded, and from where: nothing but the page's own files.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// What the dashboard keeps as long as the relay runs.
pub(crate) struct Board {
    /// Tells this run from others: changes are numbered anew in each.
    run: String,
    listeners: Arc<Semaphore>,
    shown: Mutex<Arc<[Shown]>>,
    tail: OnceLock<Arc<Tail>>,
    charts: charts::Cache,
}

impl Default for Board {
    fn default() -> Self {
        Self {
            run: format!("{:016x}", drawn()),
            listeners: Arc::new(Semaphore::new(LISTENERS)),
            shown: Mutex::new(Arc::from([])),
            tail: OnceLock::new(),
            charts: charts::Cache::default(),
        }
    }
}

impl Board {
    /// The settings in force are these.
    pub(crate) fn show(&self, shown: &[Shown]) {
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = Arc::from(shown);
    }

    /// The last lines of the log are there. The first word stands.
    pub(crate) fn show_log(&self, tail: Arc<Tail>) {
        drop(self.tail.set(tail));
    }

    fn shown(&self) -> Arc<[Shown]> {
        Arc::clone(&self.shown.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Answers a `GET` of one of its paths; `None`: it is none.
pub(crate) async fn answer(
    shared: &Arc<Shared>,
    headers: &HeaderMap,
    path: &str,
    query: &str,
) -> Option<Response<ReplyBody>> {
    let name = match path.strip_prefix("/__steady") {
        Some("") => return Some(moved()),
        Some(rest) => rest.strip_prefix('/')?,
        None => return None,
    };
    if let Some(file) = files::named(name) {
        return Some(file.answer(headers));
    }
    Some(match name {
        "events" => events::answer(shared, headers, query),
        "charts" => charts::answer(shared, query).await,
        "heat" => charts::heat(shared, query).await,
        "config" => config(&shared.board.shown()),
        "log" => log(shared, query),
        _ => return None,
    })
}

/// What every answer of the relay itself carries, so that no other page can show it or read it.
pub(crate) fn protect(headers: &mut HeaderMap) {
    const SAME_ORIGIN: HeaderValue = HeaderValue::from_static("same-origin");
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // The path may hold the token.
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(HeaderName::from_static("cross-origin-resource-policy"), SAME_ORIGIN);
    headers.insert(HeaderName::from_static("cross-origin-opener-policy"), SAME_ORIGIN);
}

/// The page reads what lies beside it, so its own path ends in `/`. Relative, since a token may stand before it. The words
/// are what [`crate::running`] knows a relay by.
fn moved() -> Response<ReplyBody> {
    let mut response = text(StatusCode::PERMANENT_REDIRECT, &door::page_is_beside(lang()));
    response.headers_mut().insert(header::LOCATION, HeaderValue::from_static("__steady/"));
    response
}

/// The settings in force, key by key, with who set each.
fn config(shown: &[Shown]) -> Response<ReplyBody> {
    let keys: Vec<_> = shown
        .iter()
        .map(|it| {
            json!({
                "section": it.section, "nth": it.nth, "key": it.key, "value": it.value, "origin": it.origin,
            })
        })
        .collect();
    as_json(&json!({ "v": 1, "keys": keys }))
}

/// The lines of the log that came after this one.
fn log(shared: &Shared, query: &str) -> Response<ReplyBody> {
    let Ok(since) = number(query, "since") else {
        return text(StatusCode::BAD_REQUEST, &door::no_number(lang()));
    };
    let (last, lines) =
        shared.board.tail.get().map_or((0, Vec::new()), |tail| tail.since(since.unwrap_or(0)));
    as_json(&json!({ "v": 1, "last": last, "lines": lines }))
}
