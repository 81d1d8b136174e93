//! What the tests share: a relay in this process, a recorder of its events, and the requests of known clients.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use relay_core::config::{Config, ProfileChoice, Upstream as Entry, UpstreamChoice};
use relay_core::event::{CallId, Closing, Event, HeldBy};
use relay_core::{Curve, Moment, Profile};
use relay_sim::{Answer, Client, Request, Upstream};
use steady_relay::app::{Parts, Relay};
use steady_relay::clock::{Clock, SystemClock};
use steady_relay::observe::status::{Status, Totals};
use steady_relay::observe::{Notice, Observer};
use steady_relay::proxy::SystemProxies;
use steady_relay::target::Upstreams;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Long enough for anything that should happen.
pub(crate) const SOON: Duration = Duration::from_secs(10);
/// Long enough to say that something does not happen.
pub(crate) const A_WHILE: Duration = Duration::from_millis(120);

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A self-contained turn of the Responses dialect that streams.
pub(crate) const TURN: &str = concat!(
    r#"{"model":"gpt-x","stream":true,"input":[{"type":"message","role":"user","content":"hi"}],"#,
    r#""tools":[{"type":"function","name":"f"}]}"#
);
/// A turn that goes on from what the service keeps.
pub(crate) const CONTINUED: &str =
    r#"{"model":"gpt-x","stream":true,"input":[{"role":"user"}],"previous_response_id":"resp_1"}"#;

/// The defaults with waits of 20 ms.
pub(crate) fn fast() -> Config {
    let mut config = Config::default();
    let quick = |curve: &mut Curve| {
        *curve = Curve { base: ms(20), factor: 2.0, cap: ms(60), jitter: Duration::ZERO };
    };
    for profile in config.profiles.values_mut() {
        quick(&mut profile.curve);
        quick(&mut profile.overloaded);
        quick(&mut profile.never_sent);
        profile.useless_floor = ms(30);
        // As for everyone who sets a curve: calls wait on it, each by itself.
        profile.gate = None;
    }
    config
}

/// The same, with everything sent to `up`.
pub(crate) fn towards(url: &str) -> Config {
    let mut config = fast();
    config.upstream = Some(UpstreamChoice::Url(Entry::at(url.parse().unwrap())));
    config
}

/// The same, with every call bounded by this profile.
pub(crate) fn bounded(url: &str, change: impl FnOnce(&mut Profile)) -> Config {
    let mut config = towards(url);
    let mut profile = config.profiles["interactive"].clone();
    change(&mut profile);
    config.profiles.insert("tested".to_owned(), profile);
    config.profile = ProfileChoice::Named("tested".to_owned());
    config
}

/// The same, with every call under the profile `strict`.
pub(crate) fn strict(url: &str) -> Config {
    let mut config = towards(url);
    config.profile = ProfileChoice::Named("strict".to_owned());
    config
}

/// Keeps all that was observed.
#[derive(Default)]
pub(crate) struct Recorder {
    events: Mutex<Vec<(CallId, Event)>>,
    notices: Mutex<Vec<Notice>>,
    count: watch::Sender<()>,
}

impl Recorder {
    /// What happened to a call so far, in short.
    pub(crate) fn story(&self, call: u64) -> String {
        let events = self.events.lock().unwrap();
        let own = events.iter().filter(|(id, _)| id.0 == call);
        own.map(|(_, event)| told(event)).collect::<Vec<_>>().join(", ")
    }

    /// All events, as they print.
    pub(crate) fn events(&self) -> String {
        format!("{:?}", self.events.lock().unwrap())
    }

    /// The summary of a call that has ended.
    pub(crate) fn closing(&self, call: u64) -> Closing {
        let events = self.events.lock().unwrap();
        let own = events.iter().filter(|(id, _)| id.0 == call);
        let mut ends =
            own.filter_map(
                |(_, event)| if let Event::CallClosed(closing) = event { Some(*closing) } else { None },
            );
        ends.next().unwrap()
    }

    /// What the relay said about itself.
    pub(crate) fn notices(&self) -> Vec<Notice> {
        self.notices.lock().unwrap().clone()
    }
}

impl Observer for Recorder {
    fn see(&self, call: CallId, _at: Moment, event: &Event) {
        self.events.lock().unwrap().push((call, event.clone()));
        self.count.send_replace(());
    }

    fn notice(&self, notice: &Notice) {
        self.notices.lock().unwrap().push(notice.clone());
        self.count.send_replace(());
    }
}

/// A relay under test. Dropping it stops it.
pub(crate) struct Bench {
    relay: Relay,
    addr: SocketAddr,
    status: Arc<Status>,
    seen: Arc<Recorder>,
}

impl Bench {
    /// A relay with short waits that sends everything to `up`.
    pub(crate) async fn to(up: &Upstream) -> Self {
        Self::with(towards(&up.url())).await
    }

    /// A relay with these settings.
    pub(crate) async fn with(config: Config) -> Self {
        Self::by(Arc::new(SystemClock), config).await
    }

    /// The same, by another clock.
    pub(crate) async fn by(clock: Arc<dyn Clock>, config: Config) -> Self {
        // Reading the system's roots takes longer than most tests.
        static SYSTEM: OnceLock<Arc<rustls::ClientConfig>> = OnceLock::new();
        let read = || steady_relay::tls::client_config(&config.ca_files).unwrap().0;
        let tls = if config.ca_files.is_empty() { Arc::clone(SYSTEM.get_or_init(read)) } else { read() };
        let socket = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let addr = socket.local_addr().unwrap();
        let seen = Arc::new(Recorder::default());
        let relay = Relay::start(Parts {
            targets: Upstreams::of(&config),
            config,
            tls,
            clock,
            observers: vec![Arc::clone(&seen) as Arc<dyn Observer>],
            recorder: None,
            sockets: vec![socket],
            system_proxies: SystemProxies::none(),
            https: None,
        });
        Self { status: relay.status(), relay, addr, seen }
    }

    pub(crate) const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// A new connection of a client.
    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.addr).await.unwrap().patience(SOON)
    }

    /// One request on a connection of its own.
    pub(crate) async fn ask(&self, request: &Request) -> Answer {
        self.client().await.ask(request).await.unwrap()
    }

    /// What the relay counts.
    pub(crate) fn totals(&self) -> Totals {
        self.status.totals()
    }

    /// Waits until what was observed is as wished.
    pub(crate) async fn until(&self, wish: impl Fn(&[(CallId, Event)]) -> bool) {
        let mut changed = self.seen.count.subscribe();
        let granted = changed.wait_for(|()| wish(&self.seen.events.lock().unwrap()));
        let in_time = tokio::time::timeout(SOON, granted).await.is_ok();
        assert!(in_time, "not as wished: {:#?}", self.seen.events.lock().unwrap());
    }

    /// Waits until the call has met so many faults.
    pub(crate) async fn faults(&self, call: u64, count: usize) {
        let is_one =
            |(id, event): &&(CallId, Event)| id.0 == call && matches!(event, Event::FaultSeen { .. });
        self.until(|events| events.iter().filter(is_one).count() >= count).await;
    }

    /// The first event of which this finds something.
    pub(crate) fn first<T>(&self, find: impl Fn(&Event) -> Option<T>) -> T {
        self.seen.events.lock().unwrap().iter().find_map(|(_, event)| find(event)).unwrap()
    }

    /// Waits for the end of a call (they count from 1) and tells what happened to it, in short.
    pub(crate) async fn story(&self, call: u64) -> String {
        let is_end = |(id, event): &(CallId, Event)| id.0 == call && matches!(event, Event::CallClosed(_));
        self.until(|events| events.iter().any(is_end)).await;
        self.seen.story(call)
    }

    /// How long a call waited before each of its resends.
    pub(crate) fn waits(&self, call: u64) -> Vec<Duration> {
        let events = self.seen.events.lock().unwrap();
        let own = events.iter().filter(|(id, _)| id.0 == call);
        own.filter_map(
            |(_, event)| if let Event::WaitStarted { wait, .. } = event { Some(*wait) } else { None },
        )
        .collect()
    }

    /// Sees on when the relay is gone.
    pub(crate) fn recorder(&self) -> Arc<Recorder> {
        Arc::clone(&self.seen)
    }

    /// The status page.
    pub(crate) async fn page(&self) -> serde_json::Value {
        let answer = self.ask(&Request::get("/__steady/status")).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
        // People read it, too.
        assert!(answer.text().starts_with("{\n  \"v\": 1,\n") && answer.text().ends_with("}\n"));
        answer.json()
    }

    /// From now on new calls go by these settings.
    pub(crate) fn reload(&self, config: Config) {
        let targets = Upstreams::of(&config);
        self.relay.reload(config, targets, None);
    }

    /// Drains it.
    pub(crate) async fn drain(self) {
        self.relay.drain(std::future::pending()).await;
    }
}

fn told(event: &Event) -> String {
    match event {
        Event::CallOpened { inherited, .. } if inherited.sends == 0 => "opened".to_owned(),
        Event::CallOpened { inherited, .. } => format!("opened after {}", inherited.sends),
        Event::SendStarted { send } => format!("send {send}"),
        Event::WayTaken { detour, .. } => format!("by {}", detour.by.as_deref().unwrap_or("no way")),
        Event::HeadArrived { status, .. } => status.to_string(),
        Event::FaultSeen { fault, evidence, .. } => {
            format!("{} {}", fault.name(), evidence.map_or("final", |evidence| evidence.name()))
        }
        Event::WaitStarted { .. } => "wait".to_owned(),
        Event::InLine { .. } => "line".to_owned(),
        Event::HeldBack { by: HeldBy::Circuits, .. } => "cut off".to_owned(),
        Event::HeldBack { by: HeldBy::Credential, .. } => "renewing".to_owned(),
        Event::NoticeGiven { notices, .. } => format!("notice {notices}"),
        Event::Moved { to, why, .. } => format!("{} to {}", why.name(), to.upstream),
        Event::GrantTaken { .. } => "grant".to_owned(),
        Event::Committed { .. } => "committed".to_owned(),
        Event::StreamCut { cuts, .. } => format!("cut {cuts}"),
        Event::CallClosed(closing) => closing.outcome.name().to_owned(),
    }
}

/// What nobody in particular asks.
pub(crate) fn plain(body: &str) -> Request {
    Request::post("/v1/responses").header("authorization", "Bearer sk-test").json(body)
}

/// What Codex asks within a turn of its one thread.
pub(crate) fn codex(turn: &str, body: &str) -> Request {
    Request::post("/v1/responses")
        .header("authorization", "Bearer sk-test")
        .header("originator", "codex_cli_rs")
        .header("user-agent", "codex_cli_rs/0.171.0 (Linux 6.1; x86_64) xterm")
        .header("thread-id", "thread-1")
        .header("x-codex-turn-metadata", format!(r#"{{"turn_id":"{turn}","sandbox":"none"}}"#))
        .json(body)
}

/// What an SDK asks for the n-th time, from zero.
pub(crate) fn sdk(tries: u32, body: &str) -> Request {
    Request::post("/v1/responses")
        .header("authorization", "Bearer sk-test")
        .header("user-agent", "OpenAI/Python 2.8.1")
        .header("x-stainless-lang", "python")
        .header("x-stainless-retry-count", tries)
        .json(body)
}

/// What Claude Code asks.
pub(crate) fn claude() -> Request {
    Request::post("/v1/messages?beta=true")
        .header("authorization", "Bearer sk-ant-oat01-test")
        .header("user-agent", "claude-cli/2.1.332 (external, cli)")
        .json(r#"{"model":"claude-x","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}"#)
}

/// Nothing of the relay's own making tells a client when to come back.
pub(crate) fn invents_no_time(answer: &Answer) {
    for name in ["retry-after", "retry-after-ms"] {
        assert_eq!(answer.header(name), None, "{}", answer.text());
    }
}
