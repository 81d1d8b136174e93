//! Peers that are slow, mute, half gone or speak garbage: each has its time, and leaves nothing behind.

use std::time::Duration;

use relay_sim::{Client, Reply, Request, Upstream};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::{Folder, SOON, relay, secured, soon, towards, trusting};

/// The beginning of a handshake that never goes on.
const HALF: &[u8] = &[0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc];

/// Reads until the other side ends it.
async fn ended(stream: &mut TcpStream) {
    let mut rest = [0; 1024];
    while matches!(soon(stream.read(&mut rest)).await, Ok(length) if length > 0) {}
}

#[tokio::test]
async fn each_has_its_time_and_gives_its_place_back() {
    let up = Upstream::start(Reply::status(200)).await.unwrap();
    let folder = Folder::new();
    let mut config = towards(&up.url());
    config.limits.head_time = Duration::from_millis(200);
    config.limits.connections = 4;
    let at = relay(&folder, config).await;
    for _round in 0..3 {
        let mut peers = Vec::new();
        // As many as there may be: they count as connections. Mute, half a handshake, half of that, and one that
        // closes its own side.
        for begin in [&b""[..], HALF, &HALF[..1], HALF] {
            let mut peer = TcpStream::connect(at).await.unwrap();
            peer.write_all(begin).await.unwrap();
            peers.push(peer);
        }
        peers[3].shutdown().await.unwrap();
        for mut peer in peers {
            ended(&mut peer).await;
        }
    }
    // All places are free again; garbage and a handshake of ages ago are told no at once.
    for garbage in [&[0x16; 600][..], b"\x16\x02\x00\x00\x05hello", b"\x80\x2e\x01\x00\x02"] {
        let mut peer = TcpStream::connect(at).await.unwrap();
        peer.write_all(garbage).await.unwrap();
        ended(&mut peer).await;
    }
    let healthy = async {
        loop {
            let mut client = Client::connect(at).await.unwrap().patience(SOON);
            if client.ask(&Request::get("/healthz")).await.is_ok_and(|answer| answer.status == 200) {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    soon(healthy).await;
}

#[tokio::test]
async fn after_the_handshake_silence_is_bounded_as_without_one() {
    let up = Upstream::start(Reply::status(200)).await.unwrap();
    let folder = Folder::new();
    let mut config = towards(&up.url());
    config.limits.head_time = Duration::from_millis(200);
    let at = relay(&folder, config).await;
    for (protocol, begin) in [("http/1.1", &b""[..]), ("http/1.1", b"GET / HT"), ("h2", b"PRI * HT")] {
        let mut stream = secured(&trusting(&folder, &[protocol]), at, "localhost").await.unwrap();
        stream.write_all(begin).await.unwrap();
        stream.flush().await.unwrap();
        let mut rest = Vec::new();
        drop(soon(stream.read_to_end(&mut rest)).await);
        assert!(!rest.starts_with(b"HTTP/1.1 200"), "{protocol}");
    }
}

#[tokio::test]
async fn beyond_the_limit_plain_clients_hear_why_and_those_of_https_an_end() {
    let up = Upstream::start(Reply::status(200)).await.unwrap();
    let folder = Folder::new();
    let mut config = towards(&up.url());
    config.limits.connections = 1;
    let at = relay(&folder, config).await;
    let mut first = Client::connect(at).await.unwrap().patience(SOON);
    assert_eq!(first.ask(&Request::get("/healthz")).await.unwrap().status, 200);
    let mut second = Client::connect(at).await.unwrap().patience(SOON);
    assert_eq!(second.ask(&Request::get("/healthz")).await.unwrap().status, 503);
    assert!(soon(secured(&trusting(&folder, &[]), at, "localhost")).await.is_err());
}
