//! When a connection serves again, and when it must not.

use super::*;

async fn connection_of(
    upstreams: &Upstreams<TestBody>,
    asked: Ask<TestBody>,
    seen: &mut mpsc::UnboundedReceiver<(usize, String)>,
) -> usize {
    let response = soon(upstreams.send(asked)).await.unwrap();
    text_of(response).await.unwrap();
    seen.recv().await.unwrap().0
}

#[tokio::test]
async fn one_connection_serves_one_request_after_another() {
    let (listener, origin) = listen().await;
    let mut seen = serve_ok(listener);
    let upstreams = upstreams();
    for method in ["POST", "GET", "HEAD", "POST", "HEAD", "POST"] {
        assert_eq!(connection_of(&upstreams, ask(&origin, method, full("")), &mut seen).await, 1);
    }
}

#[tokio::test]
async fn a_fresh_connection_can_be_demanded() {
    let (listener, origin) = listen().await;
    let mut seen = serve_ok(listener);
    let upstreams = upstreams();
    assert_eq!(connection_of(&upstreams, post(&origin), &mut seen).await, 1);
    let fresh = Ask { fresh: true, ..post(&origin) };
    assert_eq!(connection_of(&upstreams, fresh, &mut seen).await, 2);
    assert_eq!(connection_of(&upstreams, post(&origin), &mut seen).await, 2, "the newest first");
}

#[tokio::test]
async fn two_requests_at_a_time_take_two_connections() {
    let (listener, origin) = listen().await;
    let mut seen = serve_ok(listener);
    let upstreams = upstreams();
    let (one, two) = tokio::join!(upstreams.send(post(&origin)), upstreams.send(post(&origin)));
    for response in [one, two] {
        text_of(response.unwrap()).await.unwrap();
    }
    let mut connections = [seen.recv().await.unwrap().0, seen.recv().await.unwrap().0];
    connections.sort_unstable();
    assert_eq!(connections, [1, 2]);
}

#[tokio::test]
async fn a_connection_idle_for_too_long_carries_no_post() {
    let (listener, origin) = listen().await;
    let mut seen = serve_ok(listener);
    let clock = Arc::new(HandClock::default());
    let upstreams = Upstreams::new(&no_trust(), Arc::<HandClock>::clone(&clock), limits());
    let get = || Ask { may_reuse_stale: true, ..ask(&origin, "GET", full("")) };
    assert_eq!(connection_of(&upstreams, post(&origin), &mut seen).await, 1);
    clock.forward(Duration::from_secs(45));
    assert_eq!(connection_of(&upstreams, post(&origin), &mut seen).await, 1, "45 s is allowed");
    clock.forward(Duration::from_secs(46));
    assert_eq!(connection_of(&upstreams, get(), &mut seen).await, 1, "a GET may");
    clock.forward(Duration::from_secs(46));
    assert_eq!(connection_of(&upstreams, post(&origin), &mut seen).await, 2, "a POST may not");
    clock.forward(Duration::from_secs(91));
    assert_eq!(connection_of(&upstreams, get(), &mut seen).await, 3, "nothing may after 90 s");
}

/// An upstream that closes after its answer without a word would close the one that has just answered.
#[tokio::test]
async fn a_connection_that_has_rested_goes_before_one_that_has_just_answered() {
    let (listener, origin) = listen().await;
    let mut seen = serve_ok(listener);
    let clock = Arc::new(HandClock::default());
    let upstreams = Upstreams::new(&no_trust(), Arc::<HandClock>::clone(&clock), limits());
    let fresh = || Ask { fresh: true, ..post(&origin) };
    assert_eq!(connection_of(&upstreams, post(&origin), &mut seen).await, 1);
    clock.forward(Duration::from_millis(60));
    assert_eq!(connection_of(&upstreams, fresh(), &mut seen).await, 2);
    clock.forward(Duration::from_millis(60));
    assert_eq!(connection_of(&upstreams, post(&origin), &mut seen).await, 1, "idle for 120 ms");
    assert_eq!(connection_of(&upstreams, post(&origin), &mut seen).await, 1, "the newest: none has rested");
    clock.forward(Duration::from_millis(120));
    assert_eq!(connection_of(&upstreams, post(&origin), &mut seen).await, 1, "the newest: both have rested");
}

#[tokio::test]
async fn what_the_upstream_closed_is_not_used() {
    let (listener, origin) = listen().await;
    let (go, mut closed) = mpsc::channel(1);
    tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            read_request(&mut socket).await.unwrap();
            socket.write_all(OK).await.unwrap();
            drop(socket);
            go.send(()).await.unwrap();
        }
    });
    let upstreams = upstreams();
    for _ in 0..20 {
        let response = soon(upstreams.send(post(&origin))).await.unwrap();
        text_of(response).await.unwrap();
        closed.recv().await.unwrap();
        // The close is in our socket by now; the connection's task gets its turn to see it.
        while upstreams.pool.ready_to(&Way::straight(origin.clone())) > 0 {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn an_answer_that_says_close_closes() {
    let (listener, origin) = listen().await;
    let (count, mut counted) = mpsc::channel(8);
    tokio::spawn(async move {
        for connection in 1.. {
            let (mut socket, _) = listener.accept().await.unwrap();
            read_request(&mut socket).await.unwrap();
            count.send(connection).await.unwrap();
            socket
                .write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
                .await
                .unwrap();
            // Open until the relay closes it.
            assert!(read_request(&mut socket).await.is_none());
        }
    });
    let upstreams = upstreams();
    for connection in 1..4 {
        text_of(soon(upstreams.send(post(&origin))).await.unwrap()).await.unwrap();
        assert_eq!(counted.recv().await, Some(connection));
    }
}

#[tokio::test]
async fn idle_connections_are_bounded() {
    let (listener, origin) = listen().await;
    let mut seen = serve_ok(listener);
    let few = PoolLimits { idle_per_origin: 2, ..limits() };
    let upstreams = Upstreams::new(&no_trust(), Arc::new(SystemClock), few);
    let mut answers = Vec::new();
    for _ in 0..4 {
        answers.push(soon(upstreams.send(post(&origin))).await.unwrap());
        seen.recv().await.unwrap();
    }
    for answer in answers {
        text_of(answer).await.unwrap();
    }
    assert!(upstreams.pool.ready_to(&Way::straight(origin.clone())) <= 2);
}
