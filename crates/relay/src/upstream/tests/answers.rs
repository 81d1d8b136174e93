//! What becomes of an answer, and of whoever does not wait for it.

use super::*;
use crate::headers::{forwardable, forwardable_answer, forwardable_extensions};
use hyper_util::rt::TokioIo;

/// Accepts one connection, reads one request, writes `answer` and hands the socket over.
async fn answer_once(listener: TcpListener, answer: &'static [u8]) -> TcpStream {
    let (mut socket, _) = listener.accept().await.unwrap();
    read_request(&mut socket).await.unwrap();
    socket.write_all(answer).await.unwrap();
    socket
}

async fn broken_off(answer: &'static [u8], end: fn(TcpStream)) -> AnswerBreak {
    let (listener, origin) = listen().await;
    let (go, gone) = tokio::sync::oneshot::channel::<()>();
    tokio::spawn(async move {
        let socket = answer_once(listener, answer).await;
        gone.await.unwrap();
        end(socket);
    });
    let response = soon(upstreams().send(post(&origin))).await.unwrap();
    go.send(()).unwrap();
    soon(text_of(response)).await.unwrap_err().kind
}

#[tokio::test]
async fn a_broken_answer_says_how_it_broke() {
    const SHORT: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf";
    const OPEN_CHUNK: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n";
    const BAD_CHUNK: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nzz\r\n";
    assert_eq!(broken_off(SHORT, drop).await, AnswerBreak::Closed);
    assert_eq!(broken_off(OPEN_CHUNK, drop).await, AnswerBreak::Closed);
    assert_eq!(broken_off(SHORT, reset).await, AnswerBreak::Reset);
    assert_eq!(broken_off(BAD_CHUNK, drop).await, AnswerBreak::Malformed);
}

#[tokio::test]
async fn an_answer_that_comes_during_the_upload_is_given_back_at_once() {
    let (listener, origin) = listen().await;
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        assert!(socket.peek(&mut [0]).await.unwrap() > 0);
        socket.write_all(b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 4\r\n\r\nwait").await.unwrap();
        socket
    });
    let (pieces, body) = pipe();
    pieces.send(Ok(Bytes::from_static(b"first"))).await.unwrap();
    let upstreams = upstreams();
    let response = soon(upstreams.send(ask(&origin, "POST", body))).await.unwrap();
    assert_eq!(response.status(), 429);
    assert_eq!(text_of(response).await.unwrap(), "wait");
    // Nobody wants the rest of the upload, and the connection cannot be used again.
    soon(pieces.closed()).await;
    let mut socket = soon(server).await.unwrap();
    let mut rest = Vec::new();
    soon(async { drop(socket.read_to_end(&mut rest).await) }).await;
}

/// An upstream that refuses a long upload and hangs up resets the connection under our writes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_early_answer_survives_the_reset_that_follows_it() {
    for round in 0..30 {
        let (listener, origin) = listen().await;
        tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            assert!(socket.peek(&mut [0]).await.unwrap() > 0);
            let answer = b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 8\r\n\r\ntoo long";
            socket.write_all(answer).await.unwrap();
            // Closing with unread bytes resets.
        });
        let body = Full::new(Bytes::from(vec![b'x'; 8 << 20])).map_err(|never| match never {}).boxed();
        let response =
            soon(upstreams().send(ask(&origin, "POST", body))).await.expect("the answer, not the reset");
        assert_eq!(response.status(), 413);
        assert_eq!(text_of(response).await.expect("the body too"), "too long", "round {round}");
    }
}

#[tokio::test]
async fn leaving_in_the_middle_of_a_stream_closes_the_upstream_at_once() {
    let (listener, origin) = listen().await;
    let server = tokio::spawn(answer_once(
        listener,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n",
    ));
    let mut response = soon(upstreams().send(post(&origin))).await.unwrap();
    assert_eq!(response.body_mut().frame().await.unwrap().unwrap().into_data().unwrap(), "first");
    let mut socket = server.await.unwrap();
    drop(response);
    let closed = tokio::time::timeout(Duration::from_millis(200), socket.read(&mut [0; 16])).await;
    assert!(matches!(closed, Ok(Ok(0) | Err(_))), "{closed:?}");
}

#[tokio::test]
async fn leaving_while_waiting_for_an_answer_closes_the_upstream_at_once() {
    let (listener, origin) = listen().await;
    let upstreams = upstreams();
    let server = tokio::spawn(answer_once(listener, b""));
    let mut socket = {
        let waiting = upstreams.send(post(&origin));
        tokio::pin!(waiting);
        tokio::select! {
            _ = &mut waiting => panic!("there is no answer"),
            socket = server => socket.unwrap(),
        }
    };
    let closed = tokio::time::timeout(Duration::from_millis(200), socket.read(&mut [0; 16])).await;
    assert!(matches!(closed, Ok(Ok(0) | Err(_))), "{closed:?}");
}

#[tokio::test]
async fn a_slow_reader_slows_the_upstream_down() {
    const MOST: usize = 32 << 20;
    let (listener, origin) = listen().await;
    let (stuck, mut is_stuck) = mpsc::channel(1);
    tokio::spawn(async move {
        let mut socket = answer_once(listener, b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n").await;
        let piece = vec![b'x'; 64 * 1024];
        let mut written = 0;
        loop {
            // No progress for this long means that every buffer on the way is full.
            match tokio::time::timeout(Duration::from_millis(300), socket.write(&piece)).await {
                Ok(Ok(length)) if written < MOST => written += length,
                Ok(_) | Err(_) => break,
            }
        }
        stuck.send(written).await.unwrap();
        drop(socket.write_all(&piece).await);
    });
    let response = soon(upstreams().send(post(&origin))).await.unwrap();
    let written = soon(is_stuck.recv()).await.unwrap();
    assert!(written < MOST, "the upstream was let to write {written} bytes that nobody read");
    let read = text_of(response).await.unwrap().len();
    assert!(read >= written, "what was held back comes: {read}");
}

#[tokio::test]
async fn a_short_rest_can_be_drained_and_a_long_one_closes() {
    for (length, most, whole) in [(1000, 4096, true), (1 << 20, 4096, false)] {
        let (listener, origin) = listen().await;
        let upstreams = upstreams();
        let server = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            read_request(&mut socket).await.unwrap();
            let head = format!("HTTP/1.1 503 Service Unavailable\r\nContent-Length: {length}\r\n\r\n");
            let sent = socket.write_all(&[head.into_bytes(), vec![b'x'; length]].concat()).await;
            assert!(sent.is_ok() || !whole);
            read_request(&mut socket).await.is_some()
        });
        let response = soon(upstreams.send(post(&origin))).await.unwrap();
        assert_eq!(soon(response.into_body().drain(most, SOON)).await, whole);
        if whole {
            drop(tokio::time::timeout(Duration::from_millis(100), upstreams.send(post(&origin))).await);
        }
        assert_eq!(soon(server).await.unwrap(), whole, "used again where it was drained");
    }
}

#[tokio::test]
async fn an_upgraded_connection_belongs_to_whoever_takes_it() {
    let (listener, origin) = listen().await;
    tokio::spawn(async move {
        let mut socket = answer_once(
            listener,
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\nhi",
        )
        .await;
        let mut said = [0; 5];
        socket.read_exact(&mut said).await.unwrap();
        socket.write_all(&said).await.unwrap();
    });
    let mut asked = ask(&origin, "GET", full(""));
    asked.request.headers_mut().insert("connection", "upgrade".parse().unwrap());
    asked.request.headers_mut().insert("upgrade", "echo".parse().unwrap());
    let response = soon(upstreams().send(asked)).await.unwrap();
    assert_eq!(response.status(), 101);
    let mut tunnel = TokioIo::new(soon(hyper::upgrade::on(response)).await.unwrap());
    tunnel.write_all(b"hello").await.unwrap();
    let mut echoed = [0; 7];
    soon(tunnel.read_exact(&mut echoed)).await.unwrap();
    assert_eq!(&echoed, b"hihello");
}

/// A raw client, our two halves of hyper in the middle, a raw upstream: names arrive as they were written.
#[tokio::test]
async fn the_letter_case_of_header_names_survives_the_whole_way() {
    const ANSWER: &[u8] = b"HTTP/1.1 200 Fine Indeed\r\nX-AnswerCase: 1\r\nx-lower: 2\r\nSet-Cookie: a=1\r\n\
        set-cookie: b=2\r\nContent-Length: 2\r\nKeep-Alive: timeout=5\r\n\r\nok";
    let (upstream_listener, origin) = listen().await;
    let (listener, relay) = listen().await;
    let upstream = tokio::spawn(async move {
        let (mut socket, _) = upstream_listener.accept().await.unwrap();
        let request = read_request(&mut socket).await.unwrap();
        socket.write_all(ANSWER).await.unwrap();
        request
    });
    let upstreams = upstreams();
    let mut client = TcpStream::connect(("127.0.0.1", relay.port)).await.unwrap();
    let (socket, _) = listener.accept().await.unwrap();
    tokio::spawn(async move {
        let service = hyper::service::service_fn(move |came: Request<hyper::body::Incoming>| {
            let (upstreams, origin) = (upstreams.clone(), origin.clone());
            async move {
                let mut request = Request::new(full("body"));
                *request.method_mut() = came.method().clone();
                *request.uri_mut() = came.uri().clone();
                *request.headers_mut() = forwardable(came.headers());
                request.headers_mut().insert("host", origin.to_string().parse().unwrap());
                *request.extensions_mut() = forwardable_extensions(came.extensions().clone());
                let sent = upstreams
                    .send(Ask {
                        way: Way::straight(origin).into(),
                        request,
                        fresh: false,
                        may_reuse_stale: false,
                    })
                    .await;
                sent.map_err(|failed| failed.detail).map(|answer| {
                    let (parts, body) = answer.into_parts();
                    let mut back = Response::new(body);
                    *back.status_mut() = parts.status;
                    *back.headers_mut() = forwardable_answer(parts.headers);
                    *back.extensions_mut() = forwardable_extensions(parts.extensions);
                    back
                })
            }
        });
        let mut server = hyper::server::conn::http1::Builder::new();
        let served = server.preserve_header_case(true).serve_connection(TokioIo::new(socket), service);
        drop(served.await);
    });
    let request = "POST /v1/responses HTTP/1.1\r\nHost: relay\r\nX-CamelCase: 1\r\nx-lower: 2\r\nX-SHOUT: 3\r\n\
        Connection: close\r\nContent-Length: 4\r\n\r\nbody";
    client.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    soon(client.read_to_string(&mut answer)).await.unwrap();
    let came = soon(upstream).await.unwrap();
    let names = |text: &str| {
        text.lines().filter_map(|line| Some(line.split_once(": ")?.0.to_owned())).collect::<Vec<_>>()
    };
    // `Host` is set anew, so it comes last.
    assert_eq!(names(&came), ["X-CamelCase", "x-lower", "X-SHOUT", "Content-Length", "Host"], "{came}");
    let answered = names(&answer);
    let wanted = ["X-AnswerCase", "x-lower", "Set-Cookie", "set-cookie", "Content-Length"];
    assert_eq!(answered[..wanted.len()], wanted, "{answer}");
    assert!(answer.starts_with("HTTP/1.1 200 Fine Indeed\r\n"), "{answer}");
}
