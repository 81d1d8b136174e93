//! What the layer does at its limits: of size, of time, and of what it can read.

use std::time::Duration;

use crate::pretend::{Beat, EVENTS, JSON, Observed, Play, Played, Pretend, answer, asks, asks_with, exact};
use crate::pretend::{pause, piece, refused, send, served, text};
use bytes::Bytes;
use http::Request;
use http_body::Body as _;
use http_body_util::BodyExt as _;
use steady_relay_tower::relay_core::Fault;
use steady_relay_tower::relay_core::call::{Ending, Why};
use steady_relay_tower::relay_core::dialect::{Rule, Sign, Statuses};
use steady_relay_tower::relay_core::event::Outcome;
use steady_relay_tower::relay_core::evidence::Says;
use steady_relay_tower::relay_core::preamble::Hold;
use steady_relay_tower::{Error, SteadyLayer, Summary};
use tokio::time::Instant;
use tower::{Layer as _, ServiceExt as _};

const STREAM: &str = r#"{"model":"m","stream":true,"input":"hello"}"#;
const OVERLOADED: &str = "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"server_is_overloaded\"}}}\n\n";

fn summary<B>(response: &http::Response<B>) -> Summary {
    response.extensions().get::<Summary>().cloned().expect("each answer has one")
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_too_large_is_sent_once_and_whole() {
    let layer = SteadyLayer::new(exact()).keep(16, 1 << 20);
    let service = Pretend::new([refused(503)]);
    let response = send(&layer, &service, asks()).await.unwrap();
    assert_eq!((response.status().as_u16(), summary(&response).outcome), (503, Outcome::Returned));
    assert_eq!(service.came()[0].body, r#"{"model":"m","input":"hello"}"#);

    // One that says so is not read first.
    let slow = Played::new([pause(9), piece("{}")]).announcing(17);
    let request = Request::post("http://llm.example/v1/responses").body(slow).unwrap();
    let service = Pretend::new([served()]);
    layer.layer(service.clone()).oneshot(request).await.unwrap();
    assert_eq!(service.times(), [0]);

    // One that does not say so passes with what was read of it, and with its trailers.
    let beats = [piece(r#"{"model":"m","#), pause(1), piece(r#""input":"hello"}"#), Beat::Trailers];
    let request = Request::post("http://llm.example/v1/responses").body(Played::new(beats)).unwrap();
    let service = Pretend::new([Play::Error("refused")]);
    // Not even where nothing of it arrived: it is gone.
    let got = layer.nothing_sent(|_| true).layer(service.clone()).oneshot(request).await;
    let Err(Error::Ended(ended)) = got else { panic!("{got:?}") };
    assert!(matches!(ended.ending, Ending::Returned(_)) && ended.summary.sends == 1, "{ended:?}");
    assert_eq!(service.came()[0].body, r#"{"model":"m","input":"hello"}"#);
}

#[tokio::test(start_paused = true)]
async fn all_bodies_together_have_a_limit_and_give_their_room_back() {
    let one = usize::try_from(asks().body().size_hint().exact().unwrap()).unwrap();
    let layer = SteadyLayer::new(exact()).keep(1 << 20, one + 1);
    let busy = Pretend::new([refused(503), served()]);
    let other = Pretend::new([refused(503), refused(503), served()]);
    let held = send(&layer, &busy, asks());
    let late = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        // The first one waits, and has the room.
        let response = send(&layer, &other, asks()).await.unwrap();
        assert_eq!((summary(&response).outcome, summary(&response).sends), (Outcome::Returned, 1));
    };
    let (held, ()) = tokio::join!(held, late);
    assert_eq!(summary(&held.unwrap()).sends, 2);
    let response = send(&layer, &other, asks()).await.unwrap();
    assert_eq!(summary(&response).sends, 2, "there is room again");
}

#[tokio::test(start_paused = true)]
async fn what_was_read_of_a_body_that_is_too_large_takes_room_until_it_is_sent() {
    let kept = usize::try_from(asks().body().size_hint().exact().unwrap()).unwrap();
    // Room for the first part of a large one, and for one that is kept, but not for both.
    let layer = SteadyLayer::new(exact()).keep(kept + 10, kept + 20);
    let begins = Beat::Piece(Bytes::from(vec![b' '; kept + 5]));
    let large = Played::new([begins, piece("          "), pause(10), piece("{}")]);
    let request = Request::post("http://llm.example/v1/responses").body(large).unwrap();
    let (first, second) = (Pretend::new([served()]), Pretend::new([refused(503), refused(503), served()]));
    let steady = layer.layer(first.holding(Duration::from_secs(5)));
    let passing = steady.oneshot(request);
    let late = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let response = send(&layer, &second, asks()).await.unwrap();
        assert_eq!(summary(&response).sends, 1, "the other has the room");
        tokio::time::sleep(Duration::from_secs(6)).await;
        let response = send(&layer, &second, asks()).await.unwrap();
        assert_eq!(summary(&response).sends, 2, "what it had is on its way");
    };
    let (passed, ()) = tokio::join!(passing, late);
    assert_eq!(passed.unwrap().status(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_request_whose_body_breaks_off_is_not_sent() {
    let service = Pretend::new([]);
    let body = Played::new([piece("{"), Beat::Break]);
    let request = Request::post("http://llm.example/v1/responses").body(body).unwrap();
    let got = SteadyLayer::new(exact()).layer(service.clone()).oneshot(request).await;
    assert!(matches!(&got, Err(Error::RequestBody(_))), "{got:?}");
    assert_eq!(got.unwrap_err().to_string(), "the cable was pulled");
}

#[tokio::test(start_paused = true)]
async fn what_is_held_has_a_limit_of_size() {
    let comment = Bytes::from(vec![b':'; 100].into_iter().chain(*b"\n\n").collect::<Vec<u8>>());
    let beats: Vec<Beat> = std::iter::repeat_n(Beat::Piece(comment), 20).chain([piece(OVERLOADED)]).collect();
    let hold = |bytes| SteadyLayer::new(exact()).hold(Hold { bytes, time: None });
    let service = Pretend::new([answer(200, &[EVENTS], &beats)]);
    let response = send(&hold(1000), &service, asks_with(STREAM)).await.unwrap();
    assert_eq!(summary(&response).outcome, Outcome::Served);
    let text = text(response).await;
    assert!(text.len() == 20 * 102 + OVERLOADED.len() && text.ends_with(OVERLOADED));

    let service = Pretend::new([answer(200, &[EVENTS], &beats), served()]);
    let response = send(&hold(10_000), &service, asks_with(STREAM)).await.unwrap();
    assert_eq!(summary(&response).sends, 2);
}

#[tokio::test(start_paused = true)]
async fn what_is_held_has_a_limit_of_time() {
    let slow = || answer(200, &[EVENTS], &[piece(": one\n\n"), pause(30), piece(OVERLOADED)]);
    let start = Instant::now();
    let response =
        send(&SteadyLayer::new(exact()), &Pretend::new([slow()]), asks_with(STREAM)).await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 20);
    assert_eq!(text(response).await, [": one\n\n", OVERLOADED].concat());

    let patient = SteadyLayer::new(exact()).hold(Hold { bytes: 1000, time: None });
    let service = Pretend::new([slow(), served()]);
    assert_eq!(summary(&send(&patient, &service, asks_with(STREAM)).await.unwrap()).sends, 2);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_says_nothing_is_not_asked_again() {
    let layer = SteadyLayer::new(exact()).first_byte(Some(Duration::from_secs(60)));
    let silent = answer(200, &[EVENTS], &[piece(": one\n\n"), pause(1000)]);
    let patient = layer.clone().idle(Duration::from_secs(60)).hold(Hold { bytes: 1000, time: None });
    for (layer, play) in [(layer, Play::Silence), (patient, silent)] {
        let (service, start) = (Pretend::new([play]), Instant::now());
        let got = send(&layer, &service, asks_with(STREAM)).await;
        let Err(Error::Ended(ended)) = got else { panic!("{got:?}") };
        assert!(matches!(ended.ending, Ending::Refused(Why::StillRunning, _)), "{ended:?}");
        assert_eq!(start.elapsed().as_secs(), 60);
        assert!(ended.to_string().contains("probably still running"), "{ended}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_that_never_ends_is_judged_by_what_came() {
    let endless = answer(503, &[JSON], &[piece(r#"{"error":"#), pause(1 << 20)]);
    let (service, start) = (Pretend::new([endless, served()]), Instant::now());
    let response = send(&SteadyLayer::new(exact()), &service, asks()).await.unwrap();
    assert_eq!((summary(&response).sends, service.times()), (2, vec![0, 21_000]));
    assert_eq!(start.elapsed().as_secs(), 21, "nobody waits for the rest of it");
}

#[tokio::test(start_paused = true)]
async fn an_encoded_answer_is_judged_by_its_status_alone() {
    let gzip = ("content-encoding", "gzip");
    let service = Pretend::new([answer(503, &[JSON, gzip], &[piece("\u{1f}")]), served()]);
    let response = send(&SteadyLayer::new(exact()), &service, asks()).await.unwrap();
    assert_eq!(summary(&response).sends, 2);

    let error = piece(r#"{"error":{"code":"server_is_overloaded"}}"#);
    let hides = |encoding| answer(200, &[JSON, ("content-encoding", encoding)], std::slice::from_ref(&error));
    let observed = Observed::default();
    let layer = observed.by(SteadyLayer::new(exact()));
    let response = send(&layer, &Pretend::new([hides("gzip")]), asks()).await.unwrap();
    assert_eq!(summary(&response).outcome, Outcome::Served);
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes().len(), 41);
    assert!(observed.story().ends_with("closed served"));
    let service = Pretend::new([hides("identity"), served()]);
    assert_eq!(summary(&send(&layer, &service, asks()).await.unwrap()).sends, 2);
}

#[tokio::test(start_paused = true)]
async fn an_encoded_request_is_not_read() {
    let mut request = asks();
    request.headers_mut().insert("content-encoding", "gzip".parse().unwrap());
    let got = send(&SteadyLayer::new(exact()), &Pretend::new([Play::Error("reset")]), request).await;
    assert!(matches!(&got, Err(Error::Ended(ended)) if ended.summary.sends == 1), "{got:?}");
}

#[tokio::test(start_paused = true)]
async fn rules_of_ones_own_come_first() {
    let teapot = Rule {
        sign: Sign::Phrase("no tea".into()),
        on: Statuses::Only(418),
        fault: Fault::AtCapacity,
        says: Says::Refused,
        floor: Duration::from_secs(5),
        source: "a test".into(),
    };
    let empty = || answer(418, &[JSON], &[piece(r#"{"error":{"message":"no tea left"}}"#)]);
    let response = send(&SteadyLayer::new(exact()), &Pretend::new([empty()]), asks()).await.unwrap();
    assert_eq!(summary(&response).outcome, Outcome::Passed);
    let service = Pretend::new([empty(), served()]);
    send(&SteadyLayer::new(exact()).rules([teapot]), &service, asks()).await.unwrap();
    assert_eq!(service.times(), [0, 5000]);
}
