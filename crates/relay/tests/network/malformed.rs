//! What is no HTTP/1.1, or could be read in two ways, is refused and goes nowhere (RFC 9112).

use std::sync::Arc;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::sync::Mutex;

use crate::support::{exchange, read_message, relay, towards};

/// A service that answers every request and remembers it, and a relay before it.
async fn bench() -> (std::net::SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let remembered = Arc::clone(&seen);
    tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            let remembered = Arc::clone(&remembered);
            tokio::spawn(async move {
                while let Some(request) = read_message(&mut socket).await {
                    remembered.lock().await.push(request);
                    socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone").await.unwrap();
                }
            });
        }
    });
    (relay(towards(&url)).await, seen)
}

fn post(lines: &str, body: &str) -> String {
    format!("POST /v1/x HTTP/1.1\r\nHost: relay\r\n{lines}\r\n{body}")
}

#[tokio::test]
async fn what_can_be_read_in_two_ways_is_refused_and_the_connection_closed() {
    let (at, seen) = bench().await;
    let chunked = "Transfer-Encoding: chunked\r\n";
    let rows: [(&str, String, u16); 34] = [
        ("two lengths", post("Content-Length: 3\r\nContent-Length: 4\r\n", "abcd"), 400),
        ("a list of lengths", post("Content-Length: 3, 3\r\n", "abc"), 400),
        ("a length with a sign", post("Content-Length: +3\r\n", "abc"), 400),
        ("a negative length", post("Content-Length: -3\r\n", "abc"), 400),
        ("a length beyond numbers", post("Content-Length: 99999999999999999999999\r\n", "abc"), 400),
        ("an unknown coding", post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"), 400),
        ("chunked is not the last", post("Transfer-Encoding: chunked, gzip\r\n", "0\r\n\r\n"), 400),
        ("a coding before chunked", post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"), 501),
        ("chunked twice", post(&format!("{chunked}{chunked}"), "0\r\n\r\n"), 501),
        ("identity", post("Transfer-Encoding: identity\r\nContent-Length: 3\r\n", "abc"), 400),
        ("a space before the colon", post("Transfer-Encoding : chunked\r\n", "0\r\n\r\n"), 400),
        ("the same of a length", post("Content-Length : 3\r\n", "abc"), 400),
        ("chunks in HTTP/1.0", format!("POST /x HTTP/1.0\r\n{chunked}\r\n0\r\n\r\n"), 400),
        ("a size that is none", post(chunked, "zz\r\nabc\r\n0\r\n\r\n"), 400),
        ("a size in C", post(chunked, "0x3\r\nabc\r\n0\r\n\r\n"), 400),
        ("a negative size", post(chunked, "-3\r\nabc\r\n0\r\n\r\n"), 400),
        ("a size beyond numbers", post(chunked, "ffffffffffffffffff\r\nabc\r\n0\r\n\r\n"), 400),
        ("a chunk longer than its size", post(chunked, "3\r\nabcd\r\n0\r\n\r\n"), 400),
        ("a size that ends in LF", post(chunked, "3\nabc\r\n0\r\n\r\n"), 400),
        ("an extension with LF", post(chunked, "3;a\nb\r\nabc\r\n0\r\n\r\n"), 400),
        ("a folded header", post("A: b\r\n c\r\nContent-Length: 0\r\n", ""), 400),
        ("a folded coding", post("Transfer-Encoding:\r\n chunked\r\n", "0\r\n\r\n"), 400),
        ("NUL in a value", post("A: b\0c\r\nContent-Length: 0\r\n", ""), 400),
        ("NUL in a name", post("A\0: b\r\nContent-Length: 0\r\n", ""), 400),
        ("CR in a value", post("A: b\rc\r\nContent-Length: 0\r\n", ""), 400),
        ("no host", "GET /x HTTP/1.1\r\n\r\n".to_owned(), 400),
        ("two hosts", "GET /x HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n".to_owned(), 400),
        ("another version", "GET /x HTTP/2.0\r\nHost: a\r\n\r\n".to_owned(), 400),
        ("no version", "GET /x\r\n\r\n".to_owned(), 400),
        ("a space in the target", "GET /x y HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), 400),
        ("NUL in the target", "GET /x\0y HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), 400),
        ("a handshake of TLS", "\x16\x03\x01\x02\0\x01\0\x01\u{7c}\x03\x03".to_owned(), 400),
        ("a huge head", post(&format!("A: {}\r\n", "x".repeat(300 << 10)), ""), 431),
        ("too many headers", post(&"A: 1\r\n".repeat(600), ""), 431),
    ];
    for (what, request, status) in rows {
        // Until the relay closes: nothing that follows is read as another request.
        let request = format!("{request}GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n");
        let answer = exchange(at, request.as_bytes(), "").await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{what}: {answer}");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{what}: {answer}");
    }
    assert_eq!(seen.lock().await.as_slice(), [""; 0], "nothing of it went on");
}

#[tokio::test]
async fn a_length_beside_chunks_counts_for_nothing_and_ends_the_connection() {
    let (at, seen) = bench().await;
    let smuggled = "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    for lines in [
        "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
    ] {
        let answer = exchange(at, post(lines, smuggled).as_bytes(), "").await;
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("done"), "{answer}");
    }
    let seen = seen.lock().await;
    assert_eq!(seen.len(), 2, "{seen:?}");
    for request in seen.iter() {
        assert!(request.starts_with("POST /v1/x "), "{request}");
        assert!(
            !request.contains("Transfer-Encoding") && !request.contains("Content-Length: 3"),
            "{request}"
        );
    }
}

#[tokio::test]
async fn what_is_odd_and_clear_goes_on_in_one_plain_form() {
    let (at, seen) = bench().await;
    let rows = [
        (post("Content-Length: 3\r\nContent-Length: 3\r\n", "abc"), "Content-Length: 3\r\n", "abc"),
        (post("A: b\nContent-Length: 3\r\n", "abc"), "A: b\r\nContent-Length: 3\r\n", "abc"),
        (post("Transfer-Encoding: chunked\r\n", "3;x=y\r\nabc\r\n0\r\n\r\n"), "content-length: 3\r\n", "abc"),
        ("\r\n\r\nGET /x HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), "GET /x HTTP/1.1\r\n", ""),
        ("GET http://evil.example/x HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), "GET /x HTTP/1.1\r\n", ""),
    ];
    for (request, line, body) in rows {
        let answer = exchange(at, request.as_bytes(), "done").await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{request}: {answer}");
        let sent = seen.lock().await.pop().unwrap();
        assert!(sent.contains(line) && sent.ends_with(body), "{sent}");
        assert!(!sent.contains("evil") && sent.matches("\r\nHost: 127.0.0.1:").count() == 1, "{sent}");
    }
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_their_order() {
    let (at, seen) = bench().await;
    let two = format!(
        "{}GET /v1/b HTTP/1.1\r\nHost: relay\r\nConnection: close\r\n\r\n",
        post("Content-Length: 2\r\n", "hi")
    );
    let answers = exchange(at, two.as_bytes(), "").await;
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 2, "{answers}");
    let seen = seen.lock().await;
    assert!(seen[0].starts_with("POST /v1/x ") && seen[1].starts_with("GET /v1/b "), "{seen:?}");
}

#[tokio::test]
async fn a_wish_for_http2_is_not_passed_on() {
    let (at, seen) = bench().await;
    let request = "GET /x HTTP/1.1\r\nHost: relay\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\
                   HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n";
    assert!(exchange(at, request.as_bytes(), "done").await.starts_with("HTTP/1.1 200 "));
    let sent = seen.lock().await.pop().unwrap().to_ascii_lowercase();
    assert!(!sent.contains("h2c") && !sent.contains("http2-settings") && !sent.contains("upgrade"), "{sent}");
}
