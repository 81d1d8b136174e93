//! What the page hears while it is open, as server-sent events.
//!
//! | event | data | when |
//! |---|---|---|
//! | `hello` | which run of the relay this is | first |
//! | `call` | a [`CallRecord`](crate::history::record::CallRecord) as it is now | it changed |
//! | `status` | totals, lanes, models that are loaded | something of it changed; at most once a second |
//!
//! The id is `RUN-CHANGE`, behind the last of the calls that changed together: whoever comes back with it, as
//! `Last-Event-ID` or as `since`, gets what came after. A call that changed twice meanwhile is told once. Nothing is kept
//! for a listener: one that does not read is not asked, and reads later how things are then. Nobody reads thousands of calls
//! a second, so that after many the next are told a little later, together.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, Stream};
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::Instant;

use super::LISTENERS;
use crate::clock::wall_ms;
use crate::query::value;
use crate::reply::{ReplyBody, text};
use crate::shared::Shared;
use crate::words::{door, lang};

/// The status is told no more often.
const STATUS: Duration = Duration::from_secs(1);
/// After so much silence there is a sign of life: whoever has gone is noticed by it.
const SILENCE: Duration = Duration::from_secs(15);
/// So much later the next are told for each call that was.
const EACH: Duration = Duration::from_micros(200);
/// What a browser waits before it comes back, in milliseconds.
const COME_BACK_MS: u32 = 2_000;

/// Begins to tell.
pub(super) fn answer(shared: &Arc<Shared>, headers: &HeaderMap, query: &str) -> Response<ReplyBody> {
    let Ok(place) = Arc::clone(&shared.board.listeners).try_acquire_owned() else {
        let mut response =
            text(StatusCode::SERVICE_UNAVAILABLE, &door::too_many_listeners(lang(), LISTENERS));
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
        return response;
    };
    let seen = headers.get("last-event-id").and_then(|id| id.to_str().ok()).or_else(|| value(query, "since"));
    let feed = Feed::new(Arc::clone(shared), place, seen.unwrap_or(""));
    let mut response = Response::new(ReplyBody::flowing(feed.stream()));
    let to = response.headers_mut();
    to.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    to.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The change that an id of this run names.
fn change_in(id: &str, run: &str) -> Option<u64> {
    id.strip_prefix(run)?.strip_prefix('-')?.parse().ok()
}

/// What one listener has heard.
struct Feed {
    shared: Arc<Shared>,
    _place: OwnedSemaphorePermit,
    changes: Option<watch::Receiver<u64>>,
    /// All up to this change.
    seen: u64,
    has_begun: bool,
    /// The last status, without what only time changes.
    status: Value,
    status_due: Instant,
    /// Calls are told then, and not before.
    calls_due: Instant,
    heard: Instant,
}

impl Feed {
    fn new(shared: Arc<Shared>, place: OwnedSemaphorePermit, id: &str) -> Self {
        let seen = change_in(id, &shared.board.run).unwrap_or(0);
        let changes = shared.recorder.as_ref().map(|recorder| recorder.recent().changes());
        let now = Instant::now();
        Self {
            shared,
            _place: place,
            changes,
            seen,
            has_begun: false,
            status: Value::Null,
            status_due: now,
            calls_due: now,
            heard: now,
        }
    }

    /// Ends when the relay stops.
    fn stream(self) -> impl Stream<Item = Bytes> + Send {
        stream::unfold(self, |mut feed| async move {
            let shared = Arc::clone(&feed.shared);
            let told = tokio::select! {
                () = shared.draining() => return None,
                told = feed.next() => told,
            };
            feed.heard = Instant::now();
            Some((Bytes::from(told), feed))
        })
    }

    /// The next that there is to tell.
    async fn next(&mut self) -> String {
        loop {
            let mut told = String::new();
            self.tell(&mut told);
            if !told.is_empty() {
                return told;
            }
            let silent = self.heard + SILENCE;
            if Instant::now() >= silent {
                return ":\n\n".to_owned();
            }
            let calls_due = self.calls_due;
            let changed = async {
                tokio::time::sleep_until(calls_due).await;
                match &mut self.changes {
                    // The recorder lives as long as the relay does.
                    Some(changes) => drop(changes.changed().await),
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep_until(self.status_due.min(silent)) => {}
            }
        }
    }

    fn tell(&mut self, to: &mut String) {
        let run = &self.shared.board.run;
        if !self.has_begun {
            self.has_begun = true;
            let hello = json!({
                "v": 1, "run": run, "resumes": self.seen > 0, "version": env!("CARGO_PKG_VERSION"),
                "may_change": self.shared.guard.local.is_some(),
            });
            // Writing to a text cannot fail.
            let _always = write!(to, "retry: {COME_BACK_MS}\nevent: hello\ndata: {hello}\n\n");
        }
        let now = Instant::now();
        if now >= self.calls_due
            && let (Some(recorder), Some(changes)) = (&self.shared.recorder, &mut self.changes)
        {
            changes.borrow_and_update();
            let (last, calls) = recorder.recent().since(self.seen);
            for (nth, call) in calls.iter().enumerate() {
                if nth + 1 == calls.len() {
                    let _always = writeln!(to, "id: {run}-{last}");
                }
                let _always = write!(to, "event: call\ndata: {}\n\n", call.json());
            }
            self.seen = last;
            self.calls_due = now + EACH * u32::try_from(calls.len()).unwrap_or(u32::MAX);
        }
        if now >= self.status_due {
            self.status_due = now + STATUS;
            let mut page = self.page();
            let told = page.to_string();
            for passing in ["now", "uptime_s"] {
                page[passing] = Value::Null;
            }
            if page != self.status {
                self.status = page;
                let _always = write!(to, "event: status\ndata: {told}\n\n");
            }
        }
    }

    fn page(&self) -> Value {
        let shared = &self.shared;
        let page = shared.status.page(shared.started, shared.clock.now(), shared.lanes.views(0));
        let mut page = serde_json::to_value(page).unwrap_or_default();
        if let Value::Object(page) = &mut page {
            // Those are told one by one.
            page.remove("open_calls");
            page.insert("open".to_owned(), shared.status.open().into());
            page.insert("now".to_owned(), wall_ms(&*shared.clock).into());
            page.insert("lost".to_owned(), shared.recorder.as_ref().map(|it| it.lost()).into());
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_another_run_says_nothing() {
        for (id, expected) in
            [("0a-17", Some(17)), ("0b-17", None), ("17", None), ("", None), ("0a-", None), ("0a-x", None)]
        {
            assert_eq!(change_in(id, "0a"), expected, "{id}");
        }
    }
}
