//! Proxies on the way to upstreams. The upstream calls itself `api.test`, which no name service knows: only a proxy
//! gets there.

use std::net::SocketAddr;
use std::process::Stdio;

use bytes::Bytes;
use relay_core::config::{Config, Http2};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{
    A_WHILE, Secured, answer, exchange, ms, read_message, relay, secured, soon, towards, turn,
};

const OK: &str = r#"{"id":"x","choices":[{"message":{"content":"hello"}}]}"#;

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let at = listener.local_addr().unwrap();
    (listener, at)
}

/// Settings that send everything to `url` by the proxy.
fn by(proxy: &str, url: &str, secured: Option<&Secured>) -> Config {
    let mut config = towards(url);
    config.proxy = proxy.parse().unwrap();
    config.ca_files = secured.iter().map(|secured| secured.ca.clone()).collect();
    config
}

/// Plays the service at the end of a tunnel.
async fn serve(socket: TcpStream, secured: &Secured) -> String {
    let mut socket = secured.acceptor.accept(socket).await.unwrap();
    if socket.get_ref().1.alpn_protocol() == Some(b"h2") {
        let mut connection: h2::server::Connection<_, Bytes> = h2::server::handshake(socket).await.unwrap();
        let (request, respond) = soon(connection.accept()).await.unwrap().unwrap();
        answer(respond, 200, OK);
        tokio::spawn(async move { while connection.accept().await.is_some() {} });
        return format!("{:?}", request.into_parts().0);
    }
    let request = read_message(&mut socket).await.unwrap();
    socket.write_all(whole(OK).as_bytes()).await.unwrap();
    request
}

fn whole(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

#[tokio::test]
async fn an_https_upstream_is_reached_by_a_tunnel_and_the_password_stays_with_the_proxy() {
    for http2 in [Http2::Off, Http2::Always] {
        let (listener, proxy) = listen().await;
        let secured = secured(&["h2", "http/1.1"]);
        let mut config =
            by(&format!("http://Aladdin:open%20sesame@{proxy}"), "https://api.test/v1", Some(&secured));
        config.http2 = http2;
        let at = relay(config).await;
        let client = tokio::spawn(async move { exchange(at, &turn(""), "").await });
        let (mut socket, _) = soon(listener.accept()).await.unwrap();
        let asked = soon(read_message(&mut socket)).await.unwrap();
        assert!(asked.starts_with("CONNECT api.test:443 HTTP/1.1\r\n"), "{asked}");
        let asked = asked.to_ascii_lowercase();
        assert!(asked.contains("\r\nhost: api.test:443\r\n"), "{asked}");
        assert!(asked.contains("\r\nproxy-authorization: basic qwxhzgrpbjpvcgvuihnlc2ftzq==\r\n"), "{asked}");
        assert!(!asked.contains("sk-case"), "{asked}");
        socket.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
        let request = soon(serve(socket, &secured)).await.to_ascii_lowercase();
        assert!(request.contains("/v1/chat/completions") && !request.contains("proxy-auth"), "{request}");
        let told = soon(client).await.unwrap();
        assert!(told.starts_with("HTTP/1.1 200 ") && told.contains("hello"), "{told}");
    }
}

#[tokio::test]
async fn a_proxy_that_asks_for_a_password_is_named_and_asked_once() {
    let (listener, proxy) = listen().await;
    let at = relay(by(&format!("http://me:hunter2@{proxy}"), "https://api.test", None)).await;
    let client = tokio::spawn(async move { exchange(at, &turn(""), "").await });
    let (mut socket, _) = soon(listener.accept()).await.unwrap();
    read_message(&mut socket).await.unwrap();
    let refusal = "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n";
    socket.write_all(refusal.as_bytes()).await.unwrap();
    let told = soon(client).await.unwrap();
    assert!(told.contains("proxy_refused") && told.contains("407"), "{told}");
    assert!(
        told.contains(&proxy.to_string()) && !told.contains("hunter2") && !told.contains("me:"),
        "{told}"
    );
    let again = tokio::time::timeout(A_WHILE, listener.accept()).await;
    assert!(again.is_err(), "a password does not come by asking again");
}

#[tokio::test]
async fn a_proxy_that_fails_has_sent_nothing() {
    let (listener, proxy) = listen().await;
    let secured = secured(&["http/1.1"]);
    let at = relay(by(&format!("http://{proxy}"), "https://api.test", Some(&secured))).await;
    let client = tokio::spawn(async move { exchange(at, &turn(""), "").await });
    for failure in ["HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n", "", "no HTTP at all\r\n\r\n"] {
        let (mut socket, _) = soon(listener.accept()).await.unwrap();
        read_message(&mut socket).await.unwrap();
        socket.write_all(failure.as_bytes()).await.unwrap();
    }
    let (mut socket, _) = soon(listener.accept()).await.unwrap();
    read_message(&mut socket).await.unwrap();
    socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
    soon(serve(socket, &secured)).await;
    assert!(soon(client).await.unwrap().starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn a_proxy_that_is_not_there_is_named() {
    let (listener, proxy) = listen().await;
    drop(listener);
    let mut config = by(&format!("http://me:hunter2@{proxy}"), "https://api.test", None);
    config.profiles.get_mut("interactive").unwrap().patience = std::time::Duration::from_millis(100);
    let told = exchange(relay(config).await, &turn(""), "").await;
    assert!(told.contains(&format!("by the proxy http://{proxy}")), "{told}");
    assert!(!told.contains("hunter2"), "{told}");
}

#[tokio::test]
async fn a_plain_upstream_is_left_to_the_proxy() {
    let (listener, proxy) = listen().await;
    let mut config = by(&format!("http://me:hunter2@{proxy}"), "http://api.test:8080/v1", None);
    config.http2 = Http2::Always;
    let at = relay(config).await;
    let client = tokio::spawn(async move { exchange(at, &turn(""), "").await });
    let (mut socket, _) = soon(listener.accept()).await.unwrap();
    let request = soon(read_message(&mut socket)).await.unwrap();
    assert!(request.starts_with("POST http://api.test:8080/v1/chat/completions HTTP/1.1\r\n"), "{request}");
    let lower = request.to_ascii_lowercase();
    assert!(lower.contains("\r\nhost: api.test:8080\r\n"), "{request}");
    assert!(lower.contains("\r\nproxy-authorization: basic bwu6ahvudgvymg==\r\n"), "{request}");
    socket.write_all(whole(OK).as_bytes()).await.unwrap();
    assert!(soon(client).await.unwrap().starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn a_proxy_that_asks_for_a_password_for_a_plain_request_is_named_and_asked_once() {
    let (listener, proxy) = listen().await;
    let at = relay(by(&format!("http://me:hunter2@{proxy}"), "http://api.test", None)).await;
    let client = tokio::spawn(async move { exchange(at, &turn(""), "").await });
    let (mut socket, _) = soon(listener.accept()).await.unwrap();
    read_message(&mut socket).await.unwrap();
    let refusal = "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\nContent-Length: 7\r\n\r\nno-body";
    socket.write_all(refusal.as_bytes()).await.unwrap();
    let told = soon(client).await.unwrap();
    assert!(told.contains("proxy_refused") && told.contains("407"), "{told}");
    assert!(told.contains(&proxy.to_string()) && !told.contains("hunter2"), "{told}");
    assert!(!told.starts_with("HTTP/1.1 407 ") && !told.contains("no-body"), "{told}");
    let again = tokio::time::timeout(A_WHILE, listener.accept()).await;
    assert!(again.is_err(), "a password does not come by asking again");
}

#[tokio::test]
async fn all_other_statuses_of_a_plain_request_and_a_407_through_a_tunnel_are_the_services_own() {
    let (listener, proxy) = listen().await;
    let at = relay(by(&format!("http://{proxy}"), "http://api.test", None)).await;
    let client = tokio::spawn(async move { exchange(at, &turn(""), "").await });
    let (mut socket, _) = soon(listener.accept()).await.unwrap();
    read_message(&mut socket).await.unwrap();
    socket.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\n\r\nmine").await.unwrap();
    let told = soon(client).await.unwrap();
    assert!(told.starts_with("HTTP/1.1 403 ") && told.ends_with("mine"), "{told}");
    let secured = secured(&["http/1.1"]);
    let at = relay(by(&format!("http://{proxy}"), "https://api.test", Some(&secured))).await;
    let client = tokio::spawn(async move { exchange(at, &turn(""), "").await });
    let (mut socket, _) = soon(listener.accept()).await.unwrap();
    read_message(&mut socket).await.unwrap();
    socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
    let mut socket = secured.acceptor.accept(socket).await.unwrap();
    read_message(&mut socket).await.unwrap();
    socket.write_all(b"HTTP/1.1 407 Odd\r\nContent-Length: 4\r\n\r\nmine").await.unwrap();
    let told = soon(client).await.unwrap();
    assert!(told.starts_with("HTTP/1.1 407 ") && told.ends_with("mine"), "{told}");
}

#[tokio::test]
async fn a_proxy_may_itself_be_reached_over_tls() {
    let (listener, proxy) = listen().await;
    let secured = secured(&["http/1.1"]);
    let url = format!("https://localhost:{}", proxy.port());
    let at = relay(by(&url, "https://api.test", Some(&secured))).await;
    let client = tokio::spawn(async move { exchange(at, &turn(""), "").await });
    let (socket, _) = soon(listener.accept()).await.unwrap();
    let mut outer = secured.acceptor.accept(socket).await.unwrap();
    assert!(soon(read_message(&mut outer)).await.unwrap().starts_with("CONNECT api.test:443 "));
    outer.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
    let mut inner = secured.acceptor.accept(outer).await.unwrap();
    soon(read_message(&mut inner)).await.unwrap();
    inner.write_all(whole(OK).as_bytes()).await.unwrap();
    inner.shutdown().await.unwrap();
    assert!(soon(client).await.unwrap().starts_with("HTTP/1.1 200 "));
}

async fn take(socket: &mut TcpStream, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    soon(socket.read_exact(&mut bytes)).await.unwrap();
    bytes
}

#[tokio::test]
async fn socks5_asks_for_name_and_password_and_looks_names_up_there() {
    let (listener, proxy) = listen().await;
    let secured = secured(&["http/1.1"]);
    let at = relay(by(&format!("socks5h://me:hunter2@{proxy}"), "https://api.test", Some(&secured))).await;
    let client = tokio::spawn(async move { exchange(at, &turn(""), "").await });
    let (mut socket, _) = soon(listener.accept()).await.unwrap();
    assert_eq!(take(&mut socket, 3).await, [5, 1, 2]);
    socket.write_all(&[5, 2]).await.unwrap();
    assert_eq!(take(&mut socket, 12).await, b"\x01\x02me\x07hunter2");
    socket.write_all(&[1, 0]).await.unwrap();
    assert_eq!(take(&mut socket, 15).await, b"\x05\x01\x00\x03\x08api.test\x01\xbb");
    socket.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
    soon(serve(socket, &secured)).await;
    assert!(soon(client).await.unwrap().starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn socks5_and_socks4_look_names_up_here_and_socks4a_there() {
    let secured = secured(&["http/1.1"]);
    for (scheme, url, expected) in [
        ("socks5", "https://10.1.2.3", &b"\x05\x01\x00\x01\x0a\x01\x02\x03\x01\xbb"[..]),
        ("socks4", "https://10.1.2.3", b"\x04\x01\x01\xbb\x0a\x01\x02\x03\x00"),
        ("socks4a", "https://api.test", b"\x04\x01\x01\xbb\x00\x00\x00\xff\x00api.test\x00"),
    ] {
        let (listener, proxy) = listen().await;
        let mut config = by(&format!("{scheme}://{proxy}"), url, Some(&secured));
        config.profiles.get_mut("interactive").unwrap().patience = std::time::Duration::ZERO;
        let at = relay(config).await;
        let client = tokio::spawn(async move { exchange(at, &turn(""), "").await });
        let (mut socket, _) = soon(listener.accept()).await.unwrap();
        if scheme == "socks5" {
            assert_eq!(take(&mut socket, 3).await, [5, 1, 0]);
            socket.write_all(&[5, 0]).await.unwrap();
        }
        assert_eq!(take(&mut socket, expected.len()).await, expected, "{scheme}");
        drop(socket);
        let told = soon(client).await.unwrap();
        assert!(told.contains(&format!("{scheme}://{proxy}")), "{told}");
    }
}

/// What a SOCKS proxy says, in its turns, after each time the relay has spoken.
struct Refusal {
    url: fn(SocketAddr) -> String,
    turns: &'static [&'static [u8]],
    words: &'static str,
}

fn by_name(proxy: SocketAddr) -> String {
    format!("socks5h://{proxy}")
}

fn with_password(proxy: SocketAddr) -> String {
    format!("socks5h://me:hunter2@{proxy}")
}

fn of_old(proxy: SocketAddr) -> String {
    format!("socks4a://{proxy}")
}

/// Takes the next connection and plays its turns; what the relay says is not looked at.
async fn play(listener: &TcpListener, turns: &[&[u8]]) -> TcpStream {
    let (mut socket, _) = soon(listener.accept()).await.unwrap();
    for turn in turns {
        let mut said = [0; 512];
        assert_ne!(soon(socket.read(&mut said)).await.unwrap(), 0);
        socket.write_all(turn).await.unwrap();
    }
    socket
}

#[tokio::test]
async fn a_socks_proxy_that_forbids_is_named_and_asked_once() {
    let rows = [
        Refusal { url: by_name, turns: &[&[5, 0], &[5, 2, 0, 1, 0, 0, 0, 0, 0, 0]], words: "reply 2" },
        Refusal { url: by_name, turns: &[&[5, 0], &[5, 7, 0, 1, 0, 0, 0, 0, 0, 0]], words: "reply 7" },
        // As some say no: the code, and nothing behind it.
        Refusal { url: by_name, turns: &[&[5, 0], &[5, 8]], words: "reply 8" },
        Refusal { url: by_name, turns: &[&[5, 0xFF]], words: "no user name and password are set" },
        Refusal { url: with_password, turns: &[&[5, 0xFF]], words: "takes no user name" },
        Refusal { url: with_password, turns: &[&[5, 2], &[1, 1]], words: "does not accept the user name" },
        Refusal { url: of_old, turns: &[&[0, 93, 0, 0, 0, 0, 0, 0]], words: "reply 93" },
    ];
    for Refusal { url, turns, words } in rows {
        let (listener, proxy) = listen().await;
        let at = relay(by(&url(proxy), "https://api.test", None)).await;
        let client = tokio::spawn(async move { exchange(at, &turn(""), "").await });
        let socket = play(&listener, turns).await;
        let told = soon(client).await.unwrap();
        assert!(told.starts_with("HTTP/1.1 502 ") && told.contains("x-should-retry: false"), "{told}");
        assert!(told.contains("proxy_refused") && told.contains(words), "{words}: {told}");
        assert!(told.contains(&proxy.to_string()) && told.contains("hint: "), "{told}");
        assert!(!told.contains("hunter2") && !told.contains("me:"), "{told}");
        drop(socket);
        let again = tokio::time::timeout(A_WHILE, listener.accept()).await;
        assert!(again.is_err(), "{words}: what is forbidden is not allowed by asking again");
    }
}

#[tokio::test]
async fn a_socks_proxy_that_did_not_get_there_has_sent_nothing_and_is_asked_again() {
    for (url, failures, good) in [
        (
            by_name as fn(SocketAddr) -> String,
            &[&[5, 1][..], &[5, 3], &[5, 4], &[5, 5], &[5, 6], &[5, 9], &[9, 9], &[]][..],
            &[&[5, 0][..], &[5, 0, 0, 3, 4, b'h', b'o', b's', b't', 0, 80]][..],
        ),
        (of_old, &[&[0, 91, 0, 0, 0, 0, 0, 0], &[]], &[&[0, 90, 0, 0, 0, 0, 0, 0]]),
    ] {
        let (listener, proxy) = listen().await;
        let secured = secured(&["http/1.1"]);
        let mut config = by(&url(proxy), "https://api.test", Some(&secured));
        config.profiles.get_mut("interactive").unwrap().sends = None;
        let curve = &mut config.profiles.get_mut("interactive").unwrap().never_sent;
        (curve.base, curve.cap, curve.jitter) = (ms(10), ms(10), ms(0));
        let at = relay(config).await;
        let client = tokio::spawn(async move { exchange(at, &turn(""), "").await });
        let greetings = &good[..good.len() - 1];
        for failure in failures {
            play(&listener, &[greetings, &[failure]].concat()).await;
        }
        let socket = play(&listener, good).await;
        soon(serve(socket, &secured)).await;
        let told = soon(client).await.unwrap();
        assert!(told.starts_with("HTTP/1.1 200 "), "{told}");
    }
}

/// The program itself, since what the environment says is read when it starts.
async fn program(
    url: &str,
    ca: &Secured,
    variables: &[(&str, String)],
) -> (tokio::process::Child, SocketAddr) {
    let mut program = tokio::process::Command::new(env!("CARGO_BIN_EXE_steady-relay"));
    program.args(["serve", "--port", "0", "--upstream", url]);
    for name in [
        "HTTPS_PROXY",
        "https_proxy",
        "HTTP_PROXY",
        "http_proxy",
        "ALL_PROXY",
        "all_proxy",
        "NO_PROXY",
        "no_proxy",
    ] {
        program.env_remove(name);
    }
    program
        .env("LC_ALL", "C")
        .env("XDG_CONFIG_HOME", "/nowhere")
        .env("SSL_CERT_FILE", &ca.ca)
        .envs(variables.iter().cloned());
    let mut child = program.stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let found = async {
        loop {
            let line = lines.next_line().await.unwrap().expect("a line that says where");
            if let Some(at) =
                line.split("http://").nth(1).and_then(|rest| rest.split_whitespace().next()?.parse().ok())
            {
                return at;
            }
        }
    };
    let at = soon(found).await;
    tokio::spawn(async move { while lines.next_line().await.is_ok_and(|line| line.is_some()) {} });
    (child, at)
}

#[tokio::test]
async fn the_environment_is_heeded() {
    let (listener, proxy) = listen().await;
    let secured = secured(&["http/1.1"]);
    for name in ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"] {
        let variables = [(name, format!("http://{proxy}")), ("NO_PROXY", "other.test".to_owned())];
        let (_program, at) = program("https://api.test", &secured, &variables).await;
        let client = tokio::spawn(async move { exchange(at, &turn(""), "").await });
        let (mut socket, _) = soon(listener.accept()).await.unwrap();
        assert!(soon(read_message(&mut socket)).await.unwrap().starts_with("CONNECT api.test:443 "));
        socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        soon(serve(socket, &secured)).await;
        assert!(soon(client).await.unwrap().starts_with("HTTP/1.1 200 "), "{name}");
    }
}

#[tokio::test]
async fn this_machine_is_never_behind_the_proxy_of_the_environment() {
    let (trap, proxy) = listen().await;
    let (listener, upstream) = listen().await;
    let secured = secured(&["http/1.1"]);
    let variables = ["HTTP_PROXY", "http_proxy", "ALL_PROXY"].map(|name| (name, format!("http://{proxy}")));
    let (_program, at) = program(&format!("http://{upstream}"), &secured, &variables).await;
    let client = tokio::spawn(async move { exchange(at, &turn(""), "").await });
    let (mut socket, _) = soon(listener.accept()).await.unwrap();
    soon(read_message(&mut socket)).await.unwrap();
    socket.write_all(whole(OK).as_bytes()).await.unwrap();
    assert!(soon(client).await.unwrap().starts_with("HTTP/1.1 200 "));
    assert!(tokio::time::timeout(A_WHILE, trap.accept()).await.is_err());
}
