//! Several ways to one upstream: which is taken, when another one is, and what is told of it. Directly, a service on
//! this machine is reached by the address of no interface, which no setting takes for this machine.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use relay_core::Moment;
use relay_core::config::{Config, Http2, ProxyList};
use relay_core::event::{CallId, Event};
use steady_relay::app::Relay;
use steady_relay::clock::{Clock, SystemClock};
use steady_relay::observe::{Notice, Observer};
use steady_relay::target::Upstreams;
use steady_relay::upstream::WayWhat;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::support::{
    A_WHILE, Secured, exchange, ms, read_message, relay_seen, secured, soon, towards, turn,
};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 50\r\nConnection: close\r\n\r\n\
                  {\"id\":\"x\",\"choices\":[{\"message\":{\"content\":\"hi\"}}]}";

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let at = listener.local_addr().unwrap();
    (listener, at)
}

/// An address where nobody listens.
async fn nobody() -> SocketAddr {
    listen().await.1
}

/// Settings that send everything to `url` by these ways.
fn by(ways: &[&str], url: &str) -> Config {
    let mut config = towards(url);
    config.proxy = ProxyList::of(ways.iter().map(|way| way.parse().unwrap()).collect()).unwrap();
    config
}

/// The machine's clock, which a test can put forward.
#[derive(Default)]
struct Skipping(AtomicU64);

impl Skipping {
    fn skip(&self, seconds: u64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }
}

impl Clock for Skipping {
    fn now(&self) -> Moment {
        SystemClock.now() + Duration::from_secs(self.0.load(Ordering::SeqCst))
    }

    fn wall(&self) -> SystemTime {
        SystemClock.wall()
    }
}

/// Keeps how sends went, and hands notices of ways on.
struct Seen {
    told: Mutex<Vec<String>>,
    news: UnboundedSender<String>,
}

impl Observer for Seen {
    fn see(&self, _call: CallId, _at: Moment, event: &Event) {
        let told = if let Event::SendStarted { send } = event {
            format!("send {send}")
        } else if let Event::WayTaken { send, detour } = event {
            let missed: Vec<_> = detour.missed.iter().map(|it| format!("{} {}", it.by, it.why)).collect();
            format!("{send} by {:?} after {missed:?}", detour.by.as_deref())
        } else {
            return;
        };
        self.told.lock().unwrap().push(told);
    }

    fn notice(&self, notice: &Notice) {
        let Notice::Way(news) = notice else { return };
        let what = match news.what {
            WayWhat::Left { why, .. } => format!("left: {why}"),
            WayWhat::Back { .. } => "back".to_owned(),
            WayWhat::Forgotten => "forgotten".to_owned(),
        };
        self.news.send(format!("{} {what}", news.by)).unwrap();
    }
}

/// A relay and what is seen of it.
struct Scene {
    at: SocketAddr,
    relay: Relay,
    clock: Arc<Skipping>,
    seen: Arc<Seen>,
    news: UnboundedReceiver<String>,
}

impl Scene {
    async fn of(config: Config) -> Self {
        let socket = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let (sender, news) = unbounded_channel();
        let seen = Arc::new(Seen { told: Mutex::default(), news: sender });
        let clock = Arc::new(Skipping::default());
        let observers = vec![Arc::clone(&seen) as Arc<dyn Observer>];
        let at = socket.local_addr().unwrap();
        let relay = relay_seen(socket, config, Arc::clone(&clock) as _, observers);
        Self { at, relay, clock, seen, news }
    }

    /// What was seen since this was last asked.
    fn told(&self) -> Vec<String> {
        std::mem::take(&mut self.seen.told.lock().unwrap())
    }

    async fn news(&mut self) -> String {
        soon(self.news.recv()).await.unwrap()
    }

    /// The status page.
    async fn status(&self) -> String {
        let asked = format!("GET /__steady/status HTTP/1.0\r\nHost: {}\r\n\r\n", self.at);
        exchange(self.at, asked.as_bytes(), "").await
    }

    /// What a client gets.
    fn call(&self) -> tokio::task::JoinHandle<String> {
        let at = self.at;
        tokio::spawn(async move { exchange(at, &turn(""), "").await })
    }
}

/// Answers the next request of a service in the clear, or of a proxy that is handed such requests.
async fn serve(listener: &TcpListener) -> String {
    let (mut socket, _) = soon(listener.accept()).await.unwrap();
    let request = soon(read_message(&mut socket)).await.unwrap();
    socket.write_all(OK.as_bytes()).await.unwrap();
    request
}

/// Takes the next CONNECT, answers it so, and goes on with the socket.
async fn tunnel(listener: &TcpListener, answer: &str) -> (String, TcpStream) {
    let (mut socket, _) = soon(listener.accept()).await.unwrap();
    let asked = soon(read_message(&mut socket)).await.unwrap();
    socket.write_all(answer.as_bytes()).await.unwrap();
    (asked, socket)
}

async fn serve_secured(socket: TcpStream, secured: &Secured) -> String {
    let mut socket = secured.acceptor.accept(socket).await.unwrap();
    let request = soon(read_message(&mut socket)).await.unwrap();
    socket.write_all(OK.as_bytes()).await.unwrap();
    socket.shutdown().await.unwrap();
    request
}

const THROUGH: &str = "HTTP/1.1 200 OK\r\n\r\n";
const LOCKED: &str = "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n";

#[cfg(not(windows))]
#[tokio::test]
async fn a_dead_proxy_is_passed_over_within_one_send_and_taken_again_when_it_is_back() {
    let (service, there) = listen().await;
    let proxy = nobody().await;
    let (dead, url) = (format!("http://me:hunter2@{proxy}"), format!("http://0.0.0.0:{}", there.port()));
    let mut scene = Scene::of(by(&[&dead, "direct"], &url)).await;
    let client = scene.call();
    let request = serve(&service).await;
    assert!(request.starts_with("POST /v1/chat/completions ") && !request.contains("roxy"), "{request}");
    assert!(soon(client).await.unwrap().starts_with("HTTP/1.1 200 "));
    let missed = format!("1 by Some(\"direct\") after [\"http://{proxy} refused\"]");
    assert_eq!(scene.told(), ["send 1".to_owned(), missed]);
    assert_eq!(scene.news().await, format!("http://{proxy} left: refused"));
    let status = scene.status().await;
    let page: serde_json::Value = serde_json::from_str(status.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    let left = &page["ways_left"][0];
    assert_eq!(
        (left["by"].as_str(), left["why"].as_str()),
        (Some(&*format!("http://{proxy}")), Some("refused"))
    );
    assert!(!status.contains("hunter2"), "{status}");
    // It is known to fail, and not asked at once again.
    let again = TcpListener::bind(proxy).await.unwrap();
    let client = scene.call();
    serve(&service).await;
    assert!(soon(client).await.unwrap().starts_with("HTTP/1.1 200 "));
    assert_eq!(scene.told(), ["send 1", "1 by Some(\"direct\") after []"]);
    assert!(tokio::time::timeout(A_WHILE, again.accept()).await.is_err(), "nobody looks so soon");
    // After the pause a call finds that it is back, and does not wait for that itself.
    scene.clock.skip(7);
    let client = scene.call();
    serve(&service).await;
    assert!(soon(client).await.unwrap().starts_with("HTTP/1.1 200 "));
    assert_eq!(scene.news().await, format!("http://{proxy} back"));
    let looked = soon(again.accept()).await.unwrap();
    drop(looked);
    scene.told();
    let client = scene.call();
    assert!(serve(&again).await.starts_with(&format!("POST {url}/v1/chat/completions ")));
    assert!(soon(client).await.unwrap().starts_with("HTTP/1.1 200 "));
    assert_eq!(scene.told(), ["send 1"]);
    let status = scene.status().await;
    assert!(status.contains("\"ways_left\": []"), "{status}");
}

#[tokio::test]
async fn where_no_way_works_the_client_is_told_of_each_and_none_is_left_out() {
    let (one, other) = (nobody().await, nobody().await);
    let ways = [format!("http://me:hunter2@{one}"), format!("socks5h://me:hunter2@{other}")];
    let mut config = by(&[&ways[0], &ways[1]], "https://api.test");
    config.profiles.get_mut("interactive").unwrap().patience = ms(300);
    let mut scene = Scene::of(config).await;
    let told = soon(scene.call()).await.unwrap();
    assert!(told.starts_with("HTTP/1.1 5"), "{told}");
    let each = [format!("by the proxy http://{one}: "), format!("by the proxy socks5h://{other}: ")];
    assert!(told.contains("api.test:443: none of 2 ways works: "), "{told}");
    assert!(each.iter().all(|way| told.contains(way)) && !told.contains("hunter2"), "{told}");
    let sends = scene.told();
    assert!(sends.len() > 3, "it went on as for any request that was never sent: {sends:?}");
    let none = format!("by None after [\"http://{one} refused\", \"socks5h://{other} refused\"]");
    for pair in sends.chunks(2) {
        assert!(pair[0].starts_with("send ") && pair[1].ends_with(&none), "{pair:?}");
    }
    assert_eq!(scene.news().await, format!("http://{one} left: refused"));
    assert_eq!(scene.news().await, format!("socks5h://{other} left: refused"));
    assert!(scene.news.try_recv().is_err(), "told once");
}

#[tokio::test]
async fn a_proxy_that_hangs_takes_its_share_of_the_time_and_no_more() {
    let (hangs, silent) = listen().await;
    let (works, good) = listen().await;
    let secured = secured(&["http/1.1"]);
    let mut config = by(&[&format!("http://{silent}"), &format!("http://{good}")], "https://api.test");
    config.ca_files = vec![secured.ca.clone()];
    config.timeouts.connect = ms(800);
    // One call connects for all, and all know by then how it went.
    config.http2 = Http2::Always;
    let mut scene = Scene::of(config).await;
    let begun = SystemClock.now();
    let clients = [scene.call(), scene.call()];
    let _held = soon(hangs.accept()).await.unwrap();
    for _ in &clients {
        let (_, socket) = tunnel(&works, THROUGH).await;
        serve_secured(socket, &secured).await;
    }
    let took = SystemClock.now().since(begun);
    assert!(took >= ms(400), "{took:?}");
    for client in clients {
        assert!(soon(client).await.unwrap().starts_with("HTTP/1.1 200 "));
    }
    assert_eq!(scene.news().await, format!("http://{silent} left: connect_timeout"));
    assert!(tokio::time::timeout(A_WHILE, hangs.accept()).await.is_err(), "asked once for both");
    assert_eq!(scene.told().len(), 4, "one send each");
}

#[tokio::test]
async fn a_proxy_that_refuses_is_no_end_where_there_is_another_and_hears_nothing_of_its_password() {
    let ((locks, locked), (works, good)) = (listen().await, listen().await);
    let secured = secured(&["http/1.1"]);
    let ways = [format!("http://me:one@{locked}"), format!("http://me:two@{good}")];
    let mut config = by(&[&ways[0], &ways[1]], "https://api.test");
    config.ca_files = vec![secured.ca.clone()];
    let mut scene = Scene::of(config).await;
    let client = scene.call();
    // `me:one` and `me:two`.
    let (first, _closed) = tunnel(&locks, LOCKED).await;
    assert!(first.contains("bWU6b25l") && !first.contains("bWU6dHdv"), "{first}");
    let (second, socket) = tunnel(&works, THROUGH).await;
    assert!(second.contains("bWU6dHdv") && !second.contains("bWU6b25l"), "{second}");
    let request = serve_secured(socket, &secured).await;
    assert!(!request.to_ascii_lowercase().contains("proxy"), "{request}");
    assert!(soon(client).await.unwrap().starts_with("HTTP/1.1 200 "));
    assert_eq!(scene.news().await, format!("http://{locked} left: proxy_refused"));
}

/// Takes the next request that a proxy is handed, and answers it so.
async fn refuse(listener: &TcpListener, answer: &str) -> String {
    tunnel(listener, answer).await.0
}

#[tokio::test]
async fn a_proxy_that_refuses_a_plain_request_is_passed_over_within_one_send() {
    let ((locks, locked), (works, good)) = (listen().await, listen().await);
    let ways = [format!("http://me:one@{locked}"), format!("http://me:two@{good}")];
    let mut scene = Scene::of(by(&[&ways[0], &ways[1]], "http://api.test")).await;
    let client = scene.call();
    let first = refuse(&locks, LOCKED).await;
    assert!(first.starts_with("POST http://api.test/v1/chat/completions "), "{first}");
    let second = serve(&works).await;
    // `me:one` and `me:two`; all else is the same.
    assert!(first.contains("bWU6b25l") && !first.contains("bWU6dHdv"), "{first}");
    assert_eq!(second, first.replace("bWU6b25l", "bWU6dHdv"));
    assert!(soon(client).await.unwrap().starts_with("HTTP/1.1 200 "));
    let missed = format!("1 by Some(\"http://{good}\") after [\"http://{locked} proxy_refused\"]");
    assert_eq!(scene.told(), ["send 1".to_owned(), missed]);
    assert_eq!(scene.news().await, format!("http://{locked} left: proxy_refused"));
    // It is known to refuse, and not asked at once again.
    let client = scene.call();
    serve(&works).await;
    assert!(soon(client).await.unwrap().starts_with("HTTP/1.1 200 "));
    assert_eq!(scene.told(), ["send 1".to_owned(), format!("1 by Some(\"http://{good}\") after []")]);
    assert!(scene.news.try_recv().is_err(), "told once");
}

#[tokio::test]
async fn a_plain_request_that_every_proxy_refuses_ends_with_that_and_no_way_is_said_to_be_back() {
    let ((one, first), (other, second)) = (listen().await, listen().await);
    let ways = [format!("http://me:hunter2@{first}"), format!("http://{second}")];
    let mut scene = Scene::of(by(&[&ways[0], &ways[1]], "http://api.test")).await;
    for _ in 0..2 {
        let client = scene.call();
        refuse(&one, LOCKED).await;
        refuse(&other, LOCKED).await;
        let told = soon(client).await.unwrap();
        assert!(told.contains("proxy_refused") && told.contains("none of 2 ways works"), "{told}");
        assert!(!told.contains("hunter2") && !told.starts_with("HTTP/1.1 407 "), "{told}");
    }
    assert_eq!(scene.news().await, format!("http://{first} left: proxy_refused"));
    assert_eq!(scene.news().await, format!("http://{second} left: proxy_refused"));
    assert!(scene.news.try_recv().is_err(), "told once");
}

#[tokio::test]
async fn what_is_too_large_to_keep_goes_no_other_way_after_a_proxy_had_it() {
    let ((locks, locked), (other, unasked)) = (listen().await, listen().await);
    let mut config = by(&[&format!("http://{locked}"), &format!("http://{unasked}")], "http://api.test");
    config.bodies.each = 8;
    let mut scene = Scene::of(config).await;
    let client = scene.call();
    refuse(&locks, LOCKED).await;
    let told = soon(client).await.unwrap();
    assert!(told.contains("proxy_refused") && told.contains("407"), "{told}");
    assert!(tokio::time::timeout(A_WHILE, other.accept()).await.is_err());
    assert_eq!(scene.news().await, format!("http://{locked} left: proxy_refused"));
}

#[tokio::test]
async fn a_certificate_of_the_service_that_is_not_trusted_is_no_reason_for_another_way() {
    let ((works, good), (other, unasked)) = (listen().await, listen().await);
    let secured = secured(&["http/1.1"]);
    let ways = [format!("http://{good}"), format!("http://{unasked}")];
    let mut scene = Scene::of(by(&[&ways[0], &ways[1]], "https://api.test")).await;
    let client = scene.call();
    let (_, socket) = tunnel(&works, THROUGH).await;
    assert!(secured.acceptor.accept(socket).await.is_err());
    let told = soon(client).await.unwrap();
    assert!(told.contains("certificate") && told.contains(&good.to_string()), "{told}");
    assert!(tokio::time::timeout(A_WHILE, other.accept()).await.is_err());
    assert!(scene.news.try_recv().is_err());
    assert_eq!(scene.told(), ["send 1"]);
}

#[cfg(not(windows))]
#[tokio::test]
async fn a_reload_keeps_what_is_known_of_ways_that_stay_and_forgets_the_others() {
    let (service, there) = listen().await;
    let url = format!("http://0.0.0.0:{}", there.port());
    let [one, other] = [nobody().await, nobody().await].map(|at| format!("http://{at}"));
    let mut scene = Scene::of(by(&[&one, &other, "direct"], &url)).await;
    let served = async |scene: &Scene| {
        let client = scene.call();
        serve(&service).await;
        assert!(soon(client).await.unwrap().starts_with("HTTP/1.1 200 "));
    };
    served(&scene).await;
    assert_eq!(
        [scene.news().await, scene.news().await].map(|news| news.ends_with(" left: refused")),
        [true; 2]
    );
    scene.told();
    let config = by(&[&other, "direct"], &url);
    scene.relay.reload(config.clone(), Upstreams::of(&config), None);
    assert_eq!(scene.news().await, format!("{one} forgotten"));
    let status = scene.status().await;
    assert!(!status.contains(&one) && status.contains(&other), "{status}");
    served(&scene).await;
    assert_eq!(scene.told(), ["send 1", "1 by Some(\"direct\") after []"], "it is known to fail");
}

#[cfg(not(windows))]
#[tokio::test]
async fn websockets_go_the_same_ways() {
    let (service, there) = listen().await;
    let dead = format!("socks5h://{}", nobody().await);
    let scene = Scene::of(by(&[&dead, "direct"], &format!("http://0.0.0.0:{}", there.port()))).await;
    // The one is spoken by the relay, the other only tunnelled.
    for path in ["/v1/responses", "/v1/realtime"] {
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: relay\r\nAuthorization: Bearer sk-case\r\nConnection: Upgrade\r\n\
             Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MTIzNDU2Nzg5MDEyMzQ1Ng==\r\n\r\n"
        );
        let at = scene.at;
        let client = tokio::spawn(async move { exchange(at, head.as_bytes(), "\r\n\r\n").await });
        let (mut socket, _) = soon(service.accept()).await.unwrap();
        let asked = soon(read_message(&mut socket)).await.unwrap().to_ascii_lowercase();
        assert!(
            asked.starts_with(&format!("get {path} ")) && asked.contains("upgrade: websocket"),
            "{asked}"
        );
        socket.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n").await.unwrap();
        assert!(soon(client).await.unwrap().starts_with("HTTP/1.1 4"));
    }
}
