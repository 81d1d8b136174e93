//! What each failure proves.

use super::*;

fn assert_nothing_sent(failed: &SendFailure<TestBody>, cause: Cause) {
    assert_eq!((failed.proof, failed.cause), (Proof::NothingSent, cause), "{failed}");
    assert!(failed.request.is_some(), "an untouched request comes back");
}

#[tokio::test]
async fn a_port_where_nobody_listens_refuses() {
    let (listener, origin) = listen().await;
    drop(listener);
    let failed = failure(soon(upstreams().send(post(&origin))).await);
    assert_nothing_sent(&failed, Cause::Refused);
    assert!(failed.detail.contains(&origin.to_string()), "{failed}");
    assert!(!format!("{failed} {failed:?}").contains("secret"), "{failed:?}");
}

#[tokio::test]
async fn a_name_that_does_not_exist_cannot_be_looked_up() {
    let origin = Origin { https: false, host: "name.invalid".to_owned(), port: 80 };
    let patient = PoolLimits { connect: SOON, ..limits() };
    let upstreams = Upstreams::new(&no_trust(), Arc::new(SystemClock), patient);
    assert_nothing_sent(&failure(upstreams.send(post(&origin)).await), Cause::Dns);
}

#[tokio::test]
async fn a_handshake_that_never_ends_is_a_connect_timeout() {
    let (listener, mut origin) = listen().await;
    origin.https = true;
    let failed = failure(soon(upstreams().send(post(&origin))).await);
    assert_nothing_sent(&failed, Cause::ConnectTimeout);
    drop(listener);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_full_backlog_is_a_connect_timeout() {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&"127.0.0.1:0".parse::<std::net::SocketAddr>().unwrap().into()).unwrap();
    socket.listen(0).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    // A backlog of none still holds one; the second is sure to be left without an answer.
    let fillers: Vec<_> =
        (0..3).map(|_| tokio::spawn(tokio::time::timeout(SOON, TcpStream::connect(address)))).collect();
    let origin = Origin { https: false, host: "127.0.0.1".to_owned(), port: address.port() };
    for _ in 0..20 {
        let failed = match soon(upstreams().send(post(&origin))).await {
            Ok(_) => continue,
            Err(failed) => failed,
        };
        if failed.cause == Cause::ConnectTimeout {
            assert_nothing_sent(&failed, Cause::ConnectTimeout);
            break;
        }
    }
    fillers.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn a_reset_before_the_request_is_read_may_have_run() {
    let (listener, origin) = listen().await;
    let server = tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        assert!(socket.peek(&mut [0]).await.unwrap() > 0);
        reset(socket);
    });
    let failed = failure(soon(upstreams().send(post(&origin))).await);
    server.await.unwrap();
    assert_eq!((failed.proof, failed.cause), (Proof::SomethingSent, Cause::Reset), "{failed}");
}

#[tokio::test]
async fn a_reset_after_the_request_may_have_run() {
    let (listener, origin) = listen().await;
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        read_request(&mut socket).await.unwrap();
        reset(socket);
    });
    let failed = failure(soon(upstreams().send(post(&origin))).await);
    assert_eq!((failed.proof, failed.cause), (Proof::SomethingSent, Cause::Reset), "{failed}");
    assert!(failed.request.is_none());
}

#[tokio::test]
async fn a_close_after_the_request_may_have_run_with_or_without_half_a_head() {
    for half in [&b""[..], b"HTTP/1.1 200 OK\r\nContent-"] {
        let (listener, origin) = listen().await;
        tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            read_request(&mut socket).await.unwrap();
            socket.write_all(half).await.unwrap();
        });
        let failed = failure(soon(upstreams().send(post(&origin))).await);
        assert_eq!((failed.proof, failed.cause), (Proof::SomethingSent, Cause::Closed), "{failed}");
    }
}

#[tokio::test]
async fn an_answer_that_is_no_http_is_malformed() {
    let (listener, origin) = listen().await;
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        read_request(&mut socket).await.unwrap();
        socket.write_all(b"SSH-2.0-OpenSSH_9.9\r\n\r\n").await.unwrap();
    });
    let failed = failure(soon(upstreams().send(post(&origin))).await);
    assert_eq!((failed.proof, failed.cause), (Proof::SomethingSent, Cause::Malformed), "{failed}");
}

#[tokio::test]
async fn an_upload_that_breaks_off_is_the_request_bodys_doing() {
    let (listener, origin) = listen().await;
    let (pieces, body) = pipe();
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        assert!(socket.peek(&mut [0]).await.unwrap() > 0);
        pieces.send(Err("the client left".into())).await.unwrap();
        let mut rest = Vec::new();
        // A reset is as good an end as any.
        drop(socket.read_to_end(&mut rest).await);
        assert!(!rest.ends_with(b"0\r\n\r\n"), "a broken upload is never ended as if it were whole");
    });
    let failed = failure(soon(upstreams().send(ask(&origin, "POST", body))).await);
    assert_eq!((failed.proof, failed.cause), (Proof::SomethingSent, Cause::RequestBody), "{failed}");
    soon(server).await.unwrap();
}

/// The race that a pool cannot avoid: the upstream closes an idle connection just as we send on it. Whichever side
/// wins, "nothing sent" is only ever said where the upstream saw nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_close_on_a_reused_connection_is_never_misjudged() {
    let mut proofs = std::collections::BTreeMap::new();
    for round in 0..200_u32 {
        let (listener, origin) = listen().await;
        let server = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            // Where our side has seen the close, its next connection is refused: nothing sent, and plainly so.
            drop(listener);
            read_request(&mut socket).await.unwrap();
            socket.write_all(OK).await.unwrap();
            for _ in 0..round % 20 {
                tokio::task::yield_now().await;
            }
            let closed = socket.shutdown().await;
            let mut late = Vec::new();
            drop((closed, socket.read_to_end(&mut late).await));
            late.len()
        });
        let upstreams = upstreams();
        let answer = soon(upstreams.send(post(&origin))).await.unwrap();
        assert_eq!(text_of(answer).await.unwrap(), "ok");
        for _ in 0..round % 7 {
            tokio::task::yield_now().await;
        }
        let failed = failure(soon(upstreams.send(post(&origin))).await);
        drop(upstreams);
        let seen = soon(server).await.unwrap();
        match failed.proof {
            Proof::NothingSent => assert_eq!(seen, 0, "round {round}: {failed:?}"),
            Proof::SomethingSent => assert!(failed.reused, "round {round}: {failed:?}"),
        }
        assert!(failed.request.is_none() || failed.proof == Proof::NothingSent);
        *proofs.entry(format!("{:?} {:?}", failed.proof, failed.cause)).or_insert(0) += 1;
    }
    assert_eq!(proofs.values().sum::<u32>(), 200, "{proofs:?}");
}
