//! HTTP/2 towards upstreams: when it is spoken, what its failures prove, and what others on the connection notice.

use bytes::Bytes;
use h2::Reason;
use http::Response;
use relay_core::config::Http2;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;

use crate::support::{
    A_WHILE, Served, TURN, accept, answer, dial, exchange, read_message, read_until, relay, service, soon,
    turn,
};

const OK: &str = r#"{"id":"x","choices":[{"message":{"content":"hello"}}]}"#;

/// Answers every request of every connection with [`OK`]; tells the connection and the head of each.
fn serve_all(
    listener: tokio::net::TcpListener,
    secured: crate::support::Secured,
) -> mpsc::UnboundedReceiver<(u32, http::request::Parts)> {
    let (tell, told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        for number in 0.. {
            let mut connection = accept(&listener, &secured.acceptor).await;
            let tell = tell.clone();
            tokio::spawn(async move {
                while let Some(Ok((request, respond))) = connection.accept().await {
                    if tell.send((number, request.into_parts().0)).is_err() {
                        return;
                    }
                    answer(respond, 200, OK);
                }
            });
        }
    });
    told
}

#[tokio::test]
async fn it_is_spoken_when_the_settings_and_the_upstream_agree() {
    for (setting, offers, spoken) in [
        (Http2::Auto, &["h2", "http/1.1"][..], "http/1.1"),
        (Http2::Off, &["h2", "http/1.1"], "http/1.1"),
        (Http2::Always, &["h2", "http/1.1"], "h2"),
        (Http2::Always, &["http/1.1"], "http/1.1"),
        (Http2::Always, &[], ""),
    ] {
        let (listener, secured, mut config) = service(offers).await;
        config.http2 = setting;
        let at = relay(config).await;
        let client = tokio::spawn(async move { exchange(at, &turn(""), "").await });
        let (socket, _) = soon(listener.accept()).await.unwrap();
        let mut socket = secured.acceptor.accept(socket).await.unwrap();
        assert_eq!(
            socket.get_ref().1.alpn_protocol().unwrap_or_default(),
            spoken.as_bytes(),
            "{setting:?} {offers:?}"
        );
        if spoken == "h2" {
            let mut connection: Served = h2::server::handshake(socket).await.unwrap();
            let (_, respond) = soon(connection.accept()).await.unwrap().unwrap();
            answer(respond, 200, OK);
            tokio::spawn(async move { while connection.accept().await.is_some() {} });
        } else {
            read_message(&mut socket).await.unwrap();
            let whole = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{OK}",
                OK.len()
            );
            socket.write_all(whole.as_bytes()).await.unwrap();
        }
        assert!(soon(client).await.unwrap().contains("hello"));
    }
}

#[tokio::test]
async fn one_connection_carries_all_and_heads_are_what_http2_wants() {
    let (listener, secured, mut config) = service(&["h2"]).await;
    config.http2 = Http2::Always;
    let authority = config.upstream.clone();
    let at = relay(config).await;
    let mut seen = serve_all(listener, secured);
    let turns: Vec<_> = (0..8)
        .map(|number| {
            let request = turn(&format!("X-Turn: {number}\r\nKeep-Alive: timeout=5\r\nTE: trailers\r\n"));
            tokio::spawn(async move { exchange(at, &request, "").await })
        })
        .collect();
    for turn in turns {
        let answer = soon(turn).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("hello"), "{answer}");
    }
    for _ in 0..8 {
        let (connection, head) = soon(seen.recv()).await.unwrap();
        assert_eq!(connection, 0, "no second connection");
        let Some(relay_core::config::UpstreamChoice::Url(upstream)) = &authority else { panic!() };
        assert_eq!(head.uri.authority().unwrap().as_str(), upstream.url.authority());
        assert_eq!((head.uri.scheme_str(), head.uri.path()), (Some("https"), "/v1/chat/completions"));
        assert_eq!(head.headers["content-length"], TURN.len().to_string());
        assert_eq!(head.headers["te"], "trailers");
        for gone in ["host", "connection", "keep-alive", "transfer-encoding"] {
            assert!(!head.headers.contains_key(gone), "{gone}");
        }
    }
}

#[tokio::test]
async fn a_refused_stream_is_sent_again_and_any_other_reset_is_not() {
    for (reason, sends) in [
        (Reason::REFUSED_STREAM, 2),
        (Reason::INTERNAL_ERROR, 1),
        (Reason::CANCEL, 1),
        (Reason::ENHANCE_YOUR_CALM, 1),
        (Reason::NO_ERROR, 1),
    ] {
        let (listener, secured, mut config) = service(&["h2"]).await;
        config.http2 = Http2::Always;
        let at = relay(config).await;
        let (count, mut counted) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut reset = false;
            loop {
                let mut connection = accept(&listener, &secured.acceptor).await;
                let first = !std::mem::replace(&mut reset, true);
                let count = count.clone();
                tokio::spawn(async move {
                    while let Some(Ok((_request, mut respond))) = connection.accept().await {
                        count.send(()).unwrap();
                        if first { respond.send_reset(reason) } else { answer(respond, 200, OK) }
                    }
                });
            }
        });
        let told = exchange(at, &turn(""), "").await;
        assert_eq!(told.starts_with("HTTP/1.1 200 "), sends == 2, "{reason:?}: {told}");
        let mut sent = 0;
        while counted.try_recv().is_ok() {
            sent += 1;
        }
        assert_eq!(sent, sends, "{reason:?}");
    }
}

/// Reads frames of HTTP/2 until one of a kind has come; answers with its stream.
async fn until_frame(from: &mut (impl tokio::io::AsyncRead + Unpin), kind: u8, flags: u8) -> u32 {
    loop {
        let mut head = [0; 9];
        from.read_exact(&mut head).await.unwrap();
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        let mut rest = vec![0; length];
        from.read_exact(&mut rest).await.unwrap();
        if head[3] == kind && head[4] & flags == flags {
            return u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        }
    }
}

fn goaway(last: u32, reason: u32) -> Vec<u8> {
    let mut frame = vec![0, 0, 8, 7, 0, 0, 0, 0, 0];
    frame.extend_from_slice(&last.to_be_bytes());
    frame.extend_from_slice(&reason.to_be_bytes());
    frame
}

#[tokio::test]
async fn a_goodbye_proves_only_what_it_does_not_cover() {
    const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
    for (covers, reason, served) in [(false, 0, true), (false, 11, true), (true, 0, false), (true, 2, false)]
    {
        let (listener, secured, mut config) = service(&["h2"]).await;
        config.http2 = Http2::Always;
        let at = relay(config).await;
        let peer = tokio::spawn(async move {
            let (socket, _) = listener.accept().await.unwrap();
            let mut socket = secured.acceptor.accept(socket).await.unwrap();
            socket.read_exact(&mut [0; 24]).await.unwrap();
            socket.write_all(SETTINGS).await.unwrap();
            // The end of the request's body.
            let stream = until_frame(&mut socket, 0, 1).await;
            socket.write_all(&goaway(if covers { stream } else { 0 }, reason)).await.unwrap();
            socket.shutdown().await.unwrap();
            drop(socket);
            let again = tokio::time::timeout(A_WHILE * 4, accept(&listener, &secured.acceptor)).await;
            let Ok(mut connection) = again else { return false };
            let (_request, respond) = connection.accept().await.unwrap().unwrap();
            answer(respond, 200, OK);
            tokio::spawn(async move { while connection.accept().await.is_some() {} });
            true
        });
        let told = exchange(at, &turn(""), "").await;
        assert_eq!(soon(peer).await.unwrap(), served, "covers {covers}, reason {reason}");
        assert_eq!(told.starts_with("HTTP/1.1 200 "), served, "{told}");
        assert!(
            served || told.contains("x-should-retry: false") && !told.starts_with("HTTP/1.1 5"),
            "{told}"
        );
    }
}

#[tokio::test]
async fn a_connection_that_said_goodbye_takes_no_more_and_finishes_what_it_has() {
    let (listener, secured, mut config) = service(&["h2"]).await;
    config.http2 = Http2::Always;
    let at = relay(config).await;
    let first = tokio::spawn(async move { exchange(at, &turn(""), "").await });
    let mut connection = accept(&listener, &secured.acceptor).await;
    let (_request, respond) = soon(connection.accept()).await.unwrap().unwrap();
    connection.graceful_shutdown();
    // Whoever drives the connection sends what it has to say.
    tokio::spawn(async move { while connection.accept().await.is_some() {} });
    tokio::time::sleep(A_WHILE).await;
    let second = tokio::spawn(async move { exchange(at, &turn(""), "").await });
    let mut other = accept(&listener, &secured.acceptor).await;
    let (_request, other_respond) = soon(other.accept()).await.unwrap().unwrap();
    tokio::spawn(async move { while other.accept().await.is_some() {} });
    answer(other_respond, 200, OK);
    assert!(soon(second).await.unwrap().starts_with("HTTP/1.1 200 "));
    answer(respond, 200, OK);
    assert!(soon(first).await.unwrap().starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn no_connection_carries_more_than_its_peer_allows() {
    let (listener, secured, mut config) = service(&["h2"]).await;
    config.http2 = Http2::Always;
    let at = relay(config).await;
    let (tell, mut told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        for number in 0.. {
            let (socket, _) = listener.accept().await.unwrap();
            let socket = secured.acceptor.accept(socket).await.unwrap();
            let mut connection: Served =
                h2::server::Builder::new().max_concurrent_streams(2).handshake(socket).await.unwrap();
            let tell = tell.clone();
            tokio::spawn(async move {
                while let Some(Ok((_request, respond))) = connection.accept().await {
                    tell.send((number, respond)).unwrap();
                }
            });
        }
    });
    // Long enough for the peer's limit to be known.
    let first = tokio::spawn(async move { exchange(at, &turn(""), "").await });
    let (_, respond) = soon(told.recv()).await.unwrap();
    answer(respond, 200, OK);
    soon(first).await.unwrap();
    let turns: Vec<_> =
        (0..6).map(|_| tokio::spawn(async move { exchange(at, &turn(""), "").await })).collect();
    let mut open = std::collections::BTreeMap::new();
    let mut responds = Vec::new();
    for _ in 0..6 {
        let (number, respond) = soon(told.recv()).await.unwrap();
        *open.entry(number).or_insert(0) += 1;
        responds.push(respond);
    }
    assert!(open.values().all(|count| *count <= 2), "{open:?}");
    for respond in responds {
        answer(respond, 200, OK);
    }
    for turn in turns {
        assert!(soon(turn).await.unwrap().starts_with("HTTP/1.1 200 "));
    }
}

/// A stream of events that stays open.
fn begin(mut respond: h2::server::SendResponse<Bytes>) -> h2::SendStream<Bytes> {
    let head = Response::builder().header("content-type", "text/event-stream").body(()).unwrap();
    let mut stream = respond.send_response(head, false).unwrap();
    let delta = "data: {\"choices\":[{\"delta\":{\"content\":\"hello\"}}]}\n\n";
    stream.send_data(Bytes::from_static(delta.as_bytes()), false).unwrap();
    stream
}

#[tokio::test]
async fn a_client_that_leaves_resets_its_stream_and_nothing_else() {
    let (listener, secured, mut config) = service(&["h2"]).await;
    config.http2 = Http2::Always;
    let at = relay(config).await;
    let mut client = dial(at).await;
    client.write_all(&turn("")).await.unwrap();
    let mut connection = accept(&listener, &secured.acceptor).await;
    let (_request, respond) = soon(connection.accept()).await.unwrap().unwrap();
    let mut stream = begin(respond);
    let (next, mut nexts) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok((_request, respond))) = connection.accept().await {
            next.send(respond).unwrap();
        }
    });
    let mut seen = String::new();
    soon(read_until(&mut client, &mut seen, "hello")).await;
    drop(client);
    let reason = soon(std::future::poll_fn(|cx| stream.poll_reset(cx))).await.unwrap();
    assert_eq!(reason, Reason::CANCEL);
    // The connection goes on: for one that leaves before any answer, and for one that stays.
    let mut waiting = dial(at).await;
    waiting.write_all(&turn("")).await.unwrap();
    let mut unanswered = soon(nexts.recv()).await.unwrap();
    drop(waiting);
    let reason = soon(std::future::poll_fn(|cx| unanswered.poll_reset(cx))).await.unwrap();
    assert_eq!(reason, Reason::CANCEL);
    let staying = tokio::spawn(async move { exchange(at, &turn(""), "").await });
    answer(soon(nexts.recv()).await.unwrap(), 200, OK);
    assert!(soon(staying).await.unwrap().starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn an_answer_that_breaks_off_never_ends_tidily() {
    for reason in [Some(Reason::CANCEL), Some(Reason::NO_ERROR), Some(Reason::INTERNAL_ERROR), None] {
        let (listener, secured, mut config) = service(&["h2"]).await;
        config.http2 = Http2::Always;
        let at = relay(config).await;
        let client = tokio::spawn(async move { exchange(at, &turn(""), "").await });
        let mut connection = accept(&listener, &secured.acceptor).await;
        let (request, respond) = soon(connection.accept()).await.unwrap().unwrap();
        let mut upload = request.into_body();
        let driving = tokio::spawn(async move { while connection.accept().await.is_some() {} });
        // The whole request is here: a NO_ERROR is no word on the rest of it.
        while soon(upload.data()).await.is_some() {}
        let mut stream = begin(respond);
        tokio::time::sleep(A_WHILE).await;
        match reason {
            Some(reason) => stream.send_reset(reason),
            None => driving.abort(),
        }
        let seen = soon(client).await.unwrap();
        assert!(seen.contains("hello"), "{reason:?}: {seen}");
        assert!(!seen.ends_with("0\r\n\r\n"), "{reason:?}: a broken answer has no end: {seen}");
        drop(stream);
    }
}

#[tokio::test]
async fn a_reader_that_stops_slows_its_own_upstream_and_nobody_else() {
    const MOST: usize = 16 << 20;
    let (listener, secured, mut config) = service(&["h2"]).await;
    config.http2 = Http2::Always;
    let at = relay(config).await;
    let mut stuck = dial(at).await;
    stuck.write_all(&turn("")).await.unwrap();
    let mut connection = accept(&listener, &secured.acceptor).await;
    let (_request, respond) = soon(connection.accept()).await.unwrap().unwrap();
    let mut stream = begin(respond);
    let (next, mut nexts) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok((_request, respond))) = connection.accept().await {
            next.send(respond).unwrap();
        }
    });
    let mut sent = 0;
    while sent < MOST {
        stream.reserve_capacity(64 << 10);
        let room =
            tokio::time::timeout(A_WHILE * 2, std::future::poll_fn(|cx| stream.poll_capacity(cx))).await;
        let Ok(Some(Ok(room))) = room else { break };
        sent += room;
        stream.send_data(Bytes::from(vec![b'\n'; room]), false).unwrap();
    }
    assert!(sent < MOST, "{sent} bytes were let in that nobody read");
    let staying = tokio::spawn(async move { exchange(at, &turn(""), "").await });
    answer(soon(nexts.recv()).await.unwrap(), 200, OK);
    assert!(soon(staying).await.unwrap().starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn trailers_and_interim_answers() {
    let (listener, secured, mut config) = service(&["h2"]).await;
    config.http2 = Http2::Always;
    let at = relay(config).await;
    let request = "GET /v1/files/x HTTP/1.1\r\nHost: relay\r\nTE: trailers\r\nConnection: TE, close\r\n\r\n";
    let client = tokio::spawn(async move { exchange(at, request.as_bytes(), "").await });
    let mut connection = accept(&listener, &secured.acceptor).await;
    let (_request, mut respond) = soon(connection.accept()).await.unwrap().unwrap();
    tokio::spawn(async move { while connection.accept().await.is_some() {} });
    let hints = Response::builder().status(103).header("link", "</a>; rel=preload").body(()).unwrap();
    respond.send_informational(hints).unwrap();
    let head = Response::builder().header("trailer", "x-checksum").body(()).unwrap();
    let mut stream = respond.send_response(head, false).unwrap();
    stream.send_data(Bytes::from_static(b"hello"), false).unwrap();
    let mut trailers = http::HeaderMap::new();
    trailers.insert("x-checksum", "abc".parse().unwrap());
    stream.send_trailers(trailers).unwrap();
    let seen = soon(client).await.unwrap();
    assert!(seen.starts_with("HTTP/1.1 200 "), "an interim answer of the upstream is dropped: {seen}");
    assert!(seen.contains("hello") && seen.to_lowercase().ends_with("x-checksum: abc\r\n\r\n"), "{seen}");
}

#[tokio::test]
async fn an_answer_to_head_keeps_its_length_and_has_no_body() {
    let (listener, secured, mut config) = service(&["h2"]).await;
    config.http2 = Http2::Always;
    let at = relay(config).await;
    let mut client = dial(at).await;
    let head = "HEAD /v1/models/x HTTP/1.1\r\nHost: relay\r\n\r\n";
    let served = tokio::spawn(async move {
        let mut connection = accept(&listener, &secured.acceptor).await;
        while let Some(Ok((request, mut respond))) = connection.accept().await {
            assert_eq!(request.method(), "HEAD");
            let head = Response::builder().header("content-length", "42").body(()).unwrap();
            respond.send_response(head, true).unwrap();
        }
    });
    // Twice on one connection: what does not come is not waited for.
    for _ in 0..2 {
        client.write_all(head.as_bytes()).await.unwrap();
        let mut seen = String::new();
        soon(read_until(&mut client, &mut seen, "\r\n\r\n")).await;
        assert!(seen.starts_with("HTTP/1.1 200 ") && seen.contains("content-length: 42"), "{seen}");
    }
    served.abort();
}

#[tokio::test]
async fn an_early_answer_arrives_and_ends_the_upload() {
    let (listener, secured, mut config) = service(&["h2"]).await;
    config.http2 = Http2::Always;
    // A body too large to keep is passed through as it comes.
    config.bodies.each = 1024;
    let at = relay(config).await;
    let mut client = dial(at).await;
    let head = "POST /v1/files HTTP/1.1\r\nHost: relay\r\nContent-Length: 67108864\r\n\r\n";
    client.write_all(head.as_bytes()).await.unwrap();
    client.write_all(&[b'x'; 4096]).await.unwrap();
    let mut connection = accept(&listener, &secured.acceptor).await;
    let (request, respond) = soon(connection.accept()).await.unwrap().unwrap();
    tokio::spawn(async move { while connection.accept().await.is_some() {} });
    let mut upload = request.into_body();
    assert!(soon(upload.data()).await.unwrap().is_ok());
    answer(respond, 413, "too large");
    let mut seen = String::new();
    soon(read_until(&mut client, &mut seen, "too large")).await;
    assert!(seen.starts_with("HTTP/1.1 413 "), "{seen}");
    drop(client);
    let ended = async {
        while let Some(Ok(data)) = upload.data().await {
            drop(upload.flow_control().release_capacity(data.len()));
        }
    };
    soon(ended).await;
}

#[tokio::test]
async fn trailers_of_an_upload_pass_as_they_come() {
    for offers in [&["h2"][..], &["http/1.1"]] {
        let (listener, secured, mut config) = service(offers).await;
        config.http2 = Http2::Always;
        let at = relay(config).await;
        let request = "POST /v1/files HTTP/1.1\r\nHost: relay\r\nTrailer: x-checksum\r\nTransfer-Encoding: chunked\r\n\
                       Connection: close\r\n\r\n5\r\nhello\r\n0\r\nx-checksum: abc\r\n\r\n";
        let client = tokio::spawn(async move { exchange(at, request.as_bytes(), "").await });
        let (socket, _) = soon(listener.accept()).await.unwrap();
        let mut socket = secured.acceptor.accept(socket).await.unwrap();
        if offers == ["h2"] {
            let mut connection: Served = h2::server::handshake(socket).await.unwrap();
            let (request, respond) = soon(connection.accept()).await.unwrap().unwrap();
            tokio::spawn(async move { while connection.accept().await.is_some() {} });
            let mut upload = request.into_body();
            assert_eq!(soon(upload.data()).await.unwrap().unwrap(), "hello");
            while soon(upload.data()).await.is_some() {}
            assert_eq!(soon(upload.trailers()).await.unwrap().unwrap()["x-checksum"], "abc");
            answer(respond, 200, OK);
        } else {
            let mut seen = String::new();
            soon(read_until(&mut socket, &mut seen, "x-checksum: abc\r\n\r\n")).await;
            assert!(seen.contains("\r\n\r\n5\r\nhello\r\n0\r\n"), "{seen}");
            socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await.unwrap();
        }
        assert!(soon(client).await.unwrap().starts_with("HTTP/1.1 200 "), "{offers:?}");
    }
}
