//! Asks upstreams for their list of models, without a credential, by the way that the relay would take.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::future::join_all;
use http::header::{ACCEPT, CONTENT_TYPE, DATE, HOST, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response};
use http_body_util::Empty;
use relay_core::config::{Config, shipped_upstreams};
use serde_json::Value;
use tokio::time::timeout;

use super::super::facts::{Answered, Asked, Step, Unreached};
use super::WITHIN;
use crate::clock::{Clock, SystemClock};
use crate::credential::Verdict;
use crate::headers::OUR_NAME;
use crate::key_variables::KEY_VARIABLES;
use crate::listen::leads_back;
use crate::proxy::{Proxies, Proxy, SystemProxies};
use crate::setup::Folders;
use crate::target::{self, Target, Upstream, Upstreams as Targets};
use crate::upstream::{Ask, Cause, PoolLimits, Proof, SendFailure, Upstreams, Way};

/// The most that are asked.
const MOST: usize = 12;
/// How long `/health` may take, which only advises.
const HEALTH: Duration = Duration::from_secs(3);
/// What every service of these protocols has, and what costs nothing.
const LIST: &str = "/v1/models";

/// How Cloudflare says that it asks for a browser check.
const MITIGATED: HeaderName = HeaderName::from_static("cf-mitigated");

/// What is known of the user's accounts.
pub(super) struct Known<'a> {
    /// The shipped upstreams that somebody here is signed in at, or has a key for.
    pub(super) signed_in: BTreeSet<&'static str>,
    /// The upstreams that calls went to; where any of them is in the settings, these alone are used.
    pub(super) called: &'a BTreeSet<String>,
}

/// Where somebody is signed in, by what lies around. No value is looked at.
pub(super) fn signed_in(
    folders: Option<&Folders>,
    read: &dyn Fn(&Path) -> Option<String>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> BTreeSet<&'static str> {
    let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
    let set = KEY_VARIABLES.iter().filter(|key| is_set(key.name));
    let mut all: BTreeSet<_> = set.map(|key| key.upstream).collect();
    let Some(folders) = folders else { return all };
    let codex = read(&folders.codex.join("auth.json"));
    let codex: Value = codex.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    if codex["tokens"].is_object() {
        all.insert("chatgpt");
    }
    if codex["OPENAI_API_KEY"].is_string() {
        all.insert("openai");
    }
    if folders.claude.join(".credentials.json").exists() {
        all.insert("anthropic");
    }
    all
}

/// Asks those that the settings use, or, where nothing tells which these are, those that ship. Also says how many were
/// left out.
pub(super) async fn ask(
    config: &Config,
    known: Known<'_>,
    (tls, proxies): (&rustls::ClientConfig, Arc<SystemProxies>),
    relay: SocketAddr,
) -> (Vec<Asked>, usize) {
    let targets = Targets::of(config);
    let (mut chosen, is_used) = chosen(&targets, &known);
    let more = chosen.len().saturating_sub(MOST);
    chosen.truncate(MOST);
    let limits = PoolLimits { connect: config.timeouts.connect.min(WITHIN), ..PoolLimits::default() };
    let asking = Asking {
        upstreams: Upstreams::new(tls, Arc::new(SystemClock), limits),
        proxies: Proxies::new((*proxies).clone(), config.proxy.clone(), vec![relay]),
        relay,
        is_used,
    };
    (join_all(chosen.iter().map(|upstream| asking.one(upstream))).await, more)
}

/// Those that are asked, and whether they are used for sure.
fn chosen(targets: &Targets, known: &Known<'_>) -> (Vec<Arc<Upstream>>, bool) {
    let all: Vec<_> = targets.all().cloned().collect();
    if let Some(used) = targets.everything() {
        return (used, true);
    }
    let called: Vec<_> =
        all.iter().filter(|upstream| known.called.contains(&upstream.name)).cloned().collect();
    if !called.is_empty() {
        return (called, true);
    }
    let shipped = shipped_upstreams();
    let is_used = |upstream: &Arc<Upstream>| {
        known.signed_in.contains(upstream.name.as_str()) || !shipped.contains_key(&upstream.name)
    };
    let used: Vec<_> = all.iter().filter(|upstream| is_used(upstream)).cloned().collect();
    if used.is_empty() { (all, false) } else { (used, true) }
}

struct Asking {
    upstreams: Upstreams<Empty<Bytes>>,
    proxies: Proxies,
    relay: SocketAddr,
    is_used: bool,
}

impl Asking {
    async fn one(&self, upstream: &Arc<Upstream>) -> Asked {
        let ask = target::Ask { method: &Method::GET, path_and_query: LIST, verdict: &Verdict::None };
        let target = Targets::at(upstream, ask);
        let path =
            target.as_ref().map_or_else(|_| LIST.to_owned(), |target| target.path_and_query.to_string());
        let ways = self.proxies.towards(upstream);
        let by_each = join_all(ways.iter().map(|via| async {
            let answer = match &target {
                Ok(target) => self.by(upstream, target, via.as_ref()).await,
                Err(_) => Err(unreached(Step::Answer, "")),
            };
            (via.as_ref().map(ToString::to_string), answer)
        }));
        let ((via, answer), lost) = chosen_way(by_each.await);
        let (name, origin) = (upstream.name.clone(), upstream.shown());
        Asked { name, origin, path, via, is_used: self.is_used, answer, lost }
    }

    /// What comes of it by this proxy, or by none.
    async fn by(
        &self,
        upstream: &Upstream,
        target: &Target,
        via: Option<&Arc<Proxy>>,
    ) -> Result<Answered, Unreached> {
        match timeout(WITHIN, self.answer(upstream, target, via)).await {
            Ok(Ok(answered)) => Ok(Answered { health: self.health(upstream, via).await, ..answered }),
            Ok(Err(unreached)) => Err(unreached),
            Err(_elapsed) => Err(unreached(Step::Answer, &format!("nothing within {} s", WITHIN.as_secs()))),
        }
    }

    async fn answer(
        &self,
        upstream: &Upstream,
        target: &Target,
        via: Option<&Arc<Proxy>>,
    ) -> Result<Answered, Unreached> {
        if upstream.is_at(&[self.relay])
            || leads_back(upstream.url.host(), upstream.url.port(), &[self.relay]).await
        {
            return Err(unreached(Step::Itself, ""));
        }
        let response = self.get(upstream, target.path_and_query.as_str(), via).await?;
        let text = |name: HeaderName| {
            response.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok())
        };
        let is_page = text(CONTENT_TYPE).is_some_and(|kind| kind.starts_with("text/html"));
        let ahead = text(DATE).and_then(|date| httpdate::parse_http_date(date).ok()).map(ahead);
        let is_challenge = text(MITIGATED) == Some("challenge");
        Ok(Answered { status: response.status().as_u16(), is_page, is_challenge, ahead, health: None })
    }

    /// What a server of one's own says at `/health`; of the clouds, none has it.
    async fn health(&self, upstream: &Upstream, via: Option<&Arc<Proxy>>) -> Option<u16> {
        if shipped_upstreams().contains_key(&upstream.name) {
            return None;
        }
        let asked = timeout(HEALTH, self.get(upstream, "/health", via)).await;
        asked.ok()?.ok().map(|response| response.status().as_u16())
    }

    async fn get(
        &self,
        upstream: &Upstream,
        path: &str,
        via: Option<&Arc<Proxy>>,
    ) -> Result<Response<()>, Unreached> {
        let mut request = Request::new(Empty::new());
        *request.uri_mut() = path.parse().map_err(|_odd| unreached(Step::Answer, "its path"))?;
        let mut headers = HeaderMap::new();
        if let Some(host) = &upstream.host {
            headers.insert(HOST, host.clone());
        }
        headers.insert(USER_AGENT, OUR_NAME.clone());
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        *request.headers_mut() = headers;
        let way = Way { origin: Arc::clone(&upstream.origin), via: via.cloned(), http2: false };
        let ask = Ask { way: way.into(), request, fresh: true, may_reuse_stale: false };
        self.upstreams.send(ask).await.map(|response| response.map(drop)).map_err(|failure| failed(&failure))
    }
}

/// A proxy, or none, and what came of asking that way.
type ByWay<T> = (Option<String>, T);

/// The way that counts, which is the first that leads there, and the others that do not.
fn chosen_way(
    mut all: Vec<ByWay<Result<Answered, Unreached>>>,
) -> (ByWay<Result<Answered, Unreached>>, Vec<ByWay<Unreached>>) {
    let first = all.iter().position(|(_, answer)| answer.is_ok()).unwrap_or(0);
    let chosen = all.remove(first);
    (chosen, all.into_iter().filter_map(|(via, answer)| Some((via, answer.err()?))).collect())
}

fn unreached(step: Step, detail: &str) -> Unreached {
    Unreached { step, detail: detail.to_owned() }
}

fn failed<B>(failure: &SendFailure<B>) -> Unreached {
    let step = match (failure.cause, failure.proof) {
        (Cause::Dns, _) => Step::Dns,
        (Cause::Refused | Cause::ConnectTimeout | Cause::Connect, _) => Step::Connect,
        (Cause::TlsHandshake, _) => Step::Tls,
        (Cause::Certificate, _) => Step::Certificate,
        (Cause::ProxyFailed | Cause::ProxyRefused, _) => Step::Proxy,
        (
            Cause::HandedBack | Cause::Reset | Cause::Closed | Cause::Malformed | Cause::RequestBody,
            Proof::NothingSent | Proof::SomethingSent,
        ) => Step::Answer,
    };
    // It begins with the way, which is told already.
    let detail = failure.detail.split_once(": ").map_or(failure.detail.as_str(), |(_, detail)| detail);
    unreached(step, detail)
}

/// How many seconds this machine's clock is ahead of a date.
fn ahead(date: SystemTime) -> i64 {
    let now = SystemClock.wall();
    let whole = |span: Duration| i64::try_from(span.as_secs()).unwrap_or(i64::MAX);
    match now.duration_since(date) {
        Ok(ahead) => whole(ahead),
        Err(behind) => -whole(behind.duration()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Flags, NO_VARIABLES, load};

    fn names(text: &str, signed_in: &[&'static str]) -> (Vec<String>, bool) {
        let flags = Flags { config: Some("config.toml".into()), ..Flags::default() };
        let config = load(&flags, &NO_VARIABLES, &|_| Ok(text.as_bytes().to_vec())).unwrap().config;
        let known = Known { signed_in: signed_in.iter().copied().collect(), called: &BTreeSet::new() };
        let (chosen, is_used) = chosen(&Targets::of(&config), &known);
        (chosen.iter().map(|upstream| upstream.name.clone()).collect(), is_used)
    }

    #[test]
    fn those_are_asked_that_are_used() {
        let all = ["anthropic", "chatgpt", "gemini", "openai"].map(str::to_owned).to_vec();
        assert_eq!(names("", &[]), (all, false));
        assert_eq!(names("", &["openai"]), (vec!["openai".to_owned()], true));
        let own = "[upstream.gw]\nurl = \"https://gw.example\"\n";
        assert_eq!(names(own, &["gemini"]), (vec!["gemini".to_owned(), "gw".to_owned()], true));
        let one = format!("[relay]\nupstream = \"gw\"\n{own}");
        assert_eq!(names(&one, &["gemini"]), (vec!["gw".to_owned()], true));
    }

    #[test]
    fn the_first_way_that_leads_there_counts_and_the_others_that_do_not_are_told() {
        let way = |name: &str| Some(name.to_owned());
        let (good, bad) = (|| Ok(Answered::default()), || Err(unreached(Step::Connect, "why")));
        let all = vec![(way("a"), bad()), (way("b"), good()), (None, good()), (way("c"), bad())];
        let ((via, answer), lost) = chosen_way(all);
        assert_eq!((via, answer), (way("b"), good()));
        assert_eq!(lost.into_iter().map(|(via, _)| via).collect::<Vec<_>>(), [way("a"), way("c")]);
        let ((via, answer), lost) = chosen_way(vec![(way("a"), bad()), (None, bad())]);
        assert_eq!((via, answer, lost.len()), (way("a"), bad(), 1));
    }

    #[test]
    fn those_that_calls_went_to_come_before_all_others() {
        let config = Config::default();
        let chosen = |called: &[&str]| {
            let called = called.iter().map(|name| (*name).to_owned()).collect();
            let known = Known { signed_in: BTreeSet::from(["chatgpt"]), called: &called };
            let (chosen, _) = chosen(&Targets::of(&config), &known);
            chosen.iter().map(|upstream| upstream.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(chosen(&["openai", "gone.example"]), ["openai"]);
        assert_eq!(chosen(&["gone.example"]), ["chatgpt"]);
    }

    #[tokio::test]
    async fn a_service_is_not_reached_where_a_proxy_refuses_the_request_for_it() {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let proxy = format!("http://me:hunter2@{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let mut asked = [0; 4096];
                let _length = socket.read(&mut asked).await.unwrap();
                let refusal = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n";
                socket.write_all(refusal).await.unwrap();
            }
        });
        let text = format!(
            "[relay]\nupstream = \"gw\"\nproxy = \"{proxy}\"\n[upstream.gw]\nurl = \"http://10.9.8.7\"\n"
        );
        let flags = Flags { config: Some("config.toml".into()), ..Flags::default() };
        let config = load(&flags, &NO_VARIABLES, &|_| Ok(text.as_bytes().to_vec())).unwrap().config;
        let known = Known { signed_in: BTreeSet::new(), called: &BTreeSet::new() };
        let (tls, _) = crate::tls::client_config(&[]).unwrap();
        let ways = (&*tls, Arc::new(SystemProxies::none()));
        let (asked, _) = ask(&config, known, ways, SocketAddr::from(([127, 0, 0, 1], 1))).await;
        let unreached = asked[0].answer.as_ref().unwrap_err();
        assert_eq!(unreached.step, Step::Proxy);
        let told = &unreached.detail;
        assert!(told.contains("407") && !told.contains("hunter2"), "{told}");
    }

    #[test]
    fn sign_ins_are_known_without_a_look_at_them() {
        let folders = Folders { home: "/h".into(), codex: "/c".into(), claude: "/nowhere/at/all".into() };
        let read = |_: &Path| Some(r#"{"OPENAI_API_KEY":null,"tokens":{"access_token":"x"}}"#.to_owned());
        let variable = |name: &str| (name == "GEMINI_API_KEY").then(|| "AIza".to_owned());
        assert_eq!(signed_in(Some(&folders), &read, &variable), BTreeSet::from(["chatgpt", "gemini"]));
        assert!(signed_in(Some(&folders), &|_| Some("[".to_owned()), &|_| Some(String::new())).is_empty());
    }
}
