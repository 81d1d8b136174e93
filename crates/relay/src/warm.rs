//! Loads models at servers of one's own, where the settings ask for it: at the start, and when a call's answer tells
//! that its model is being loaded. When, and how often, [`relay_core::warm`] decides; here the requests are sent.
//!
//! A warm-up is no call: it stands in no line, counts in no budget, and ends with the relay.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use http::{Method, Request, Version};
use http_body_util::{BodyExt as _, Limited};
use relay_core::config::Warm;
use relay_core::failure::label;
use relay_core::warm::{Next, TRY_WITHIN, Tried, Warmer};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::body::SendBody;
use crate::clock::{RealDice, sleep_until};
use crate::credentials::Lent;
use crate::headers::OUR_NAME;
use crate::observe::{Notice, Warming};
use crate::shared::Shared;
use crate::target::Upstream;
use crate::upstream::Ask;

/// The most of an answer that is looked at.
const MOST: usize = 64 * 1024;

/// Rung by calls that meet a cold model.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    names: Mutex<BTreeSet<String>>,
    rung: Notify,
}

impl Bell {
    /// A model at this upstream is cold.
    pub(crate) fn ring(&self, upstream: &str) {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).insert(upstream.to_owned());
        self.rung.notify_one();
    }

    async fn names(&self) -> BTreeSet<String> {
        loop {
            let names = std::mem::take(&mut *self.names.lock().unwrap_or_else(PoisonError::into_inner));
            if !names.is_empty() {
                return names;
            }
            self.rung.notified().await;
        }
    }
}

/// One model at one upstream.
struct One {
    what: Warm,
    warmer: Warmer,
}

/// Keeps models warm as long as the relay takes calls; dropping this ends what is under way.
pub(crate) async fn keep(current: Arc<ArcSwap<Shared>>) {
    let mut all = BTreeMap::new();
    let mut trying = JoinSet::new();
    let shared = current.load_full();
    for upstream in shared.targets.entries().filter(|upstream| upstream.warm_on_start) {
        ask(&shared, &mut all, &upstream.name);
    }
    drop(shared);
    loop {
        let before = current.load_full();
        let wake = begin_due(&before, &mut all, &mut trying);
        tokio::select! {
            names = before.warming.names() => {
                // The settings may have changed meanwhile.
                let shared = current.load_full();
                for name in names {
                    ask(&shared, &mut all, &name);
                }
            }
            Some(ended) = trying.join_next() => {
                let Ok((name, how)) = ended else { continue };
                let shared = current.load_full();
                let Some(One { what, warmer }) = all.get_mut(&name) else { continue };
                let news = warmer.tried(how, shared.clock.now(), &mut RealDice::default());
                tell(&shared, &name, what, news);
            }
            () = async {
                match wake {
                    Some(at) => sleep_until(&*before.clock, at).await,
                    None => std::future::pending().await,
                }
            } => {}
        }
    }
}

/// Asks for the warm-up of this upstream, if the settings in force have one for it.
fn ask(shared: &Shared, all: &mut BTreeMap<String, One>, name: &str) {
    let Some(what) = shared.targets.entry(name).and_then(|upstream| upstream.warm.clone()) else { return };
    let one =
        all.entry(name.to_owned()).or_insert_with(|| One { what: what.clone(), warmer: Warmer::default() });
    if one.what != what && one.warmer.next() != Next::Wait {
        *one = One { what, warmer: Warmer::default() };
    }
    if let Some(news) = one.warmer.ask(shared.clock.now()) {
        tell(shared, name, &one.what, news);
    }
}

/// Begins the tries that are due; the moment at which the next one is.
fn begin_due(
    shared: &Arc<Shared>,
    all: &mut BTreeMap<String, One>,
    trying: &mut JoinSet<(String, Tried)>,
) -> Option<relay_core::Moment> {
    let now = shared.clock.now();
    // An entry that a reload has taken away is not tried any more.
    all.retain(|name, one| {
        one.warmer.next() == Next::Wait
            || shared.targets.entry(name).is_some_and(|entry| entry.warm.is_some())
    });
    let mut wake = None;
    for (name, one) in all {
        let Next::TryAt(at) = one.warmer.next() else { continue };
        if at > now {
            wake = Some(wake.map_or(at, |wake: relay_core::Moment| wake.min(at)));
            continue;
        }
        let Some(upstream) = shared.targets.entry(name) else { continue };
        one.warmer.begin();
        let (shared, upstream, what) = (Arc::clone(shared), Arc::clone(upstream), one.what.clone());
        let name = name.clone();
        trying.spawn(async move {
            let within = shared.clock.real(TRY_WITHIN);
            let tried = tokio::time::timeout(within, attempt(&shared, &upstream, &what)).await;
            (name, tried.unwrap_or(Tried::NotYet))
        });
    }
    wake
}

/// Sends one request, and reads its answer.
async fn attempt(shared: &Arc<Shared>, upstream: &Upstream, what: &Warm) -> Tried {
    let Ok(uri) = what.path.parse() else { return Tried::Hopeless };
    let Some(host) = upstream.host.clone() else { return Tried::Hopeless };
    let mut request = Request::new(SendBody::Kept(Some(Bytes::from(what.body.clone()))));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = uri;
    let headers = request.headers_mut();
    headers.insert(HOST, host);
    headers.insert(USER_AGENT, OUR_NAME.clone());
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(what.body.len()));
    upstream.lend_key(headers, &what.path);
    upstream.add_headers(headers);
    if let Some(mut lent) = Lent::of(shared, upstream) {
        let Ok(key) = lent.key(shared).await else { return Tried::NotYet };
        key.put(headers, &what.path);
    }
    let way = shared.way(upstream, Version::HTTP_11);
    let sent = shared.upstreams.send(Ask { way, request, fresh: true, may_reuse_stale: false }).await;
    let Ok(answer) = sent else { return Tried::NotYet };
    let status = answer.status().as_u16();
    // The model is loaded when its answer ends.
    match Limited::new(answer.into_body(), MOST).collect().await {
        Ok(body) => Tried::of(Some(status), tells_error(&body.to_bytes())),
        Err(_) => Tried::NotYet,
    }
}

/// Whether a body is a line of JSON with an error, as Ollama ends a load that failed, with status 200.
fn tells_error(body: &[u8]) -> bool {
    let mut lines = body.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let last = lines.next_back().unwrap_or_default();
    serde_json::from_slice::<serde_json::Value>(last).is_ok_and(|line| line.get("error").is_some())
}

fn tell(shared: &Shared, upstream: &str, what: &Warm, news: relay_core::warm::News) {
    let model = what.model.as_deref().map(label);
    shared.observers.notice(&Notice::Warming(Warming { upstream: label(upstream), model, news }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_told_in_the_last_line() {
        assert!(tells_error(b"{\"error\":\"no memory\"}"));
        assert!(tells_error(b"{\"status\":\"loading\"}\n{\"error\":\"no memory\"}\n"));
        for fine in [&b"{\"done\":true,\"done_reason\":\"load\"}\n"[..], b"", b"loaded", b"\"error\"", b"[1]"]
        {
            assert!(!tells_error(fine), "{fine:?}");
        }
    }
}
