//! What the layer does with a call, in virtual time: when it is sent, what comes back, and what is never done.

use std::time::Duration;

use crate::pretend::{
    Beat, EVENTS, Got, JSON, Observed, Play, Pretend, answer, asks, asks_with, exact, pause, piece, refused,
    send, served, text,
};
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use steady_relay_tower::relay_core::call::{Ending, Stop, Why};
use steady_relay_tower::relay_core::event::Outcome;
use steady_relay_tower::relay_core::{Evidence, Fault, Lang, Profile};
use steady_relay_tower::{Ended, Error, SteadyLayer, Summary};
use tokio::time::{Instant, timeout};

const CREATED: &str = "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{}}\n\n";
const OVERLOADED: &str = "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"server_is_overloaded\",\"message\":\"Selected model is at capacity.\"}}}\n\n";
const DELTA: &str =
    "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"hi\"}\n\n";
const COMPLETED: &str = "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":3,\"output_tokens\":5}}}\n\n";

const STREAM: &str = r#"{"model":"m","stream":true,"input":"hello"}"#;

fn ended(got: Got) -> Ended {
    let Error::Ended(ended) = got.expect_err("there is no answer") else { unreachable!("it ended") };
    *ended
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_twice_is_served_at_the_third_send() {
    let (service, observed) = (Pretend::new([refused(503), refused(429), served()]), Observed::default());
    let layer = observed.by(SteadyLayer::new(exact()));
    let response = send(&layer, &service, asks()).await.unwrap();
    assert_eq!(
        (response.status(), &response.headers()["x-request-id"]),
        (StatusCode::OK, &"req_1".parse().unwrap())
    );
    let summary = response.extensions().get::<Summary>().unwrap().clone();
    assert_eq!(
        (summary.outcome, summary.sends, summary.waited),
        (Outcome::Served, 3, Duration::from_secs(3))
    );
    let told: Vec<_> = summary.attempts.iter().map(|attempt| attempt.words(Lang::English)).collect();
    assert_eq!(
        told,
        [
            "send 1: answered 503 (the model is at capacity), after 0.0 s; then a wait of 1.0 s",
            "send 2: answered 429 (the account is being throttled), after 0.0 s; then a wait of 2.0 s",
        ]
    );
    assert_eq!(text(response).await, r#"{"id":"a","output":[]}"#);
    assert_eq!(service.times(), [0, 1000, 3000]);
    let came = service.came();
    assert!(came.iter().all(|came| came.body == r#"{"model":"m","input":"hello"}"#), "{came:?}");
    assert_eq!(came.iter().map(|came| came.this.number).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(
        observed.story(),
        "opened openai_responses, send 1, head 503, at_capacity, wait 1 s, \
         send 2, head 429, throttled, wait 2 s, send 3, head 200, committed, closed served"
    );
}

#[tokio::test(start_paused = true)]
async fn a_named_wait_is_waited_for_exactly() {
    let limited = answer(429, &[JSON, ("retry-after", "7")], &[piece("{}")]);
    let service = Pretend::new([limited, served()]);
    send(&SteadyLayer::new(exact()), &service, asks()).await.unwrap();
    assert_eq!(service.times(), [0, 7000]);
}

#[tokio::test(start_paused = true)]
async fn chance_only_adds_to_a_wait() {
    for _ in 0..20 {
        let service = Pretend::new([answer(429, &[("retry-after", "7")], &[]), served()]);
        send(&SteadyLayer::new(Profile::interactive()), &service, asks()).await.unwrap();
        let times = service.times();
        assert!((7000..=8001).contains(&times[1]), "{times:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_tells_of_a_failure_before_output_is_sent_again() {
    let busy = answer(200, &[EVENTS], &[piece(CREATED), pause(3), piece(OVERLOADED)]);
    let well = answer(200, &[EVENTS], &[piece(CREATED), piece(DELTA), piece(COMPLETED)]);
    let (service, observed) = (Pretend::new([busy, well]), Observed::default());
    let response = send(&observed.by(SteadyLayer::new(exact())), &service, asks_with(STREAM)).await.unwrap();
    assert_eq!(text(response).await, [CREATED, DELTA, COMPLETED].concat());
    assert_eq!(service.times(), [0, 4000]);
    assert_eq!(
        observed.story(),
        "opened openai_responses, send 1, head 200, at_capacity, wait 1 s, send 2, head 200, committed, closed served"
    );
}

#[tokio::test(start_paused = true)]
async fn an_error_in_a_whole_success_is_sent_again_too() {
    let busy = answer(200, &[JSON], &[piece(r#"{"error":{"code":"server_is_"#), piece(r#"overloaded"}}"#)]);
    let service = Pretend::new([busy, served()]);
    let response = send(&SteadyLayer::new(exact()), &service, asks()).await.unwrap();
    assert_eq!(text(response).await, r#"{"id":"a","output":[]}"#);
    assert_eq!(service.times(), [0, 1000]);
}

#[tokio::test(start_paused = true)]
async fn a_definite_error_passes_at_once_and_untouched() {
    let wrong =
        answer(400, &[JSON, ("x-odd", "1")], &[piece("{\"error\":"), piece(" \"no\"}"), Beat::Trailers]);
    let (service, observed) = (Pretend::new([wrong]), Observed::default());
    let response = send(&observed.by(SteadyLayer::new(exact())), &service, asks()).await.unwrap();
    assert_eq!((response.status().as_u16(), response.headers().len()), (400, 2));
    assert_eq!(response.extensions().get::<Summary>().unwrap().outcome, Outcome::Passed);
    let whole = response.into_body().collect().await.unwrap();
    assert_eq!(whole.trailers().unwrap()["x-sum"], "7");
    assert_eq!(whole.to_bytes(), r#"{"error": "no"}"#);
    assert_eq!(service.times(), [0]);
    assert!(observed.story().ends_with("head 400, bad_request, closed passed"), "{}", observed.story());
}

#[tokio::test(start_paused = true)]
async fn what_may_have_run_is_not_sent_again() {
    // Not under a profile that grants none.
    let strict = SteadyLayer::new(Profile::strict());
    let service = Pretend::new([Play::Error("reset")]);
    let told = ended(send(&strict, &service, asks()).await);
    assert!(matches!(told.ending, Ending::Refused(Why::MayHaveRun, _)), "{told:?}");
    assert_eq!(told.summary.attempts[0].evidence, Some(Evidence::MaybeRan));
    assert_eq!(
        told.to_string(),
        "llm.example could not answer (the answer broke off: reset) (1 send, 0.0 s); \
         the request may have run, so it was not sent again."
    );
    let source = std::error::Error::source(&told).unwrap();
    assert!(source.downcast_ref::<std::io::Error>().is_some(), "the error of the service is the source");

    // Not where the service keeps a part of the conversation, or does work of its own.
    for body in [
        r#"{"model":"m","input":"x","previous_response_id":"r"}"#,
        r#"{"model":"m","input":"x","tools":[{"type":"code_interpreter"}]}"#,
        "not JSON",
    ] {
        let service = Pretend::new([Play::Error("reset")]);
        let told = ended(send(&SteadyLayer::new(exact()), &service, asks_with(body)).await);
        assert!(matches!(told.ending, Ending::Returned(_)), "{body}: {told:?}");
    }

    // And once where it is granted.
    let service = Pretend::new([Play::Error("reset"), Play::Error("reset")]);
    let told = ended(send(&SteadyLayer::new(exact()), &service, asks()).await);
    assert_eq!((told.summary.sends, told.summary.maybe_billed_twice), (2, 1));
    assert!(service.came()[1].this.fresh, "the connection was lost");
}

#[tokio::test(start_paused = true)]
async fn an_error_that_proves_that_nothing_was_sent_is_no_reason_to_stop() {
    let refuses = || (0..8).map(|_| Play::Error("connection refused"));
    let layer = SteadyLayer::new(exact()).nothing_sent(|error| {
        error.downcast_ref::<std::io::Error>().is_some_and(|error| error.to_string().ends_with("refused"))
    });
    let service = Pretend::new(refuses().take(2).chain([served()]));
    let bound = asks_with(r#"{"model":"m","input":"x","previous_response_id":"r"}"#);
    let response = send(&layer, &service, bound).await.unwrap();
    assert_eq!(response.extensions().get::<Summary>().unwrap().maybe_billed_twice, 0);
    assert_eq!(service.times(), [0, 150, 450]);

    let service = Pretend::new(refuses());
    let told = ended(send(&layer.lang(Lang::Chinese), &service, asks()).await);
    assert!(matches!(told.ending, Ending::GaveUp(Stop::SendsSpent, _)), "{told:?}");
    assert_eq!(
        told.to_string(),
        "在 19.1 秒内发送 8 次后放弃：llm.example 无法响应（无法连接到服务：connection refused）。"
    );
}

#[tokio::test(start_paused = true)]
async fn at_the_end_the_last_answer_is_handed_on() {
    let (service, observed) = (Pretend::new((0..8).map(|_| refused(503))), Observed::default());
    let response = send(&observed.by(SteadyLayer::new(exact())), &service, asks()).await.unwrap();
    let summary = response.extensions().get::<Summary>().unwrap();
    assert_eq!((summary.outcome, summary.why, summary.sends), (Outcome::GaveUp, Some("sends_spent"), 8));
    assert_eq!(response.status(), 503);
    assert_eq!(text(response).await, r#"{"error":{"message":"no room"}}"#);
    assert!(observed.story().ends_with("closed gave_up"));

    // A wait that does not fit into the patience is not begun.
    let service = Pretend::new([answer(429, &[("retry-after", "600")], &[])]);
    let response = send(&SteadyLayer::new(exact()), &service, asks()).await.unwrap();
    assert_eq!(response.extensions().get::<Summary>().unwrap().why, Some("told_to_wait_longer"));
    assert_eq!(response.headers()["retry-after"], "600");
}

#[tokio::test(start_paused = true)]
async fn a_request_may_bring_a_profile_of_its_own() {
    let (service, observed) = (Pretend::new([refused(500), refused(500)]), Observed::default());
    let mut request = asks();
    request.extensions_mut().insert(Profile::strict());
    let response = send(&observed.by(SteadyLayer::new(exact())), &service, request).await.unwrap();
    assert_eq!(response.extensions().get::<Summary>().unwrap().sends, 1);
    let none = Profile { sends: Some(0), ..exact() };
    let told = ended(send(&SteadyLayer::new(none), &service, asks()).await);
    assert!(told.to_string().contains("may not be sent"), "{told}");
    assert_eq!(service.times(), [0]);
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_live() {
    let slow = answer(
        200,
        &[EVENTS],
        &[piece(CREATED), pause(2), piece(DELTA), pause(3600), piece(COMPLETED), Beat::Trailers],
    );
    let (service, observed) = (Pretend::new([slow]), Observed::default());
    let start = Instant::now();
    let response = send(&observed.by(SteadyLayer::new(exact())), &service, asks_with(STREAM)).await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 2, "the head is there with the first output");
    let mut body = response.into_body();
    let mut came = Vec::new();
    while came.len() < CREATED.len() + DELTA.len() {
        came.extend_from_slice(body.frame().await.unwrap().unwrap().data_ref().unwrap());
    }
    assert_eq!(came, [CREATED, DELTA].concat().as_bytes());
    assert_eq!(start.elapsed().as_secs(), 2, "and so is that, long before the last word");
    let rest = body.collect().await.unwrap();
    assert_eq!(rest.trailers().unwrap()["x-sum"], "7");
    assert_eq!(rest.to_bytes(), COMPLETED);
    assert_eq!(start.elapsed().as_secs(), 3602);
    let events = observed.events();
    let Some(steady_relay_tower::relay_core::Event::CallClosed(closing)) = events.last() else {
        panic!("{events:?}")
    };
    let usage = closing.usage.unwrap();
    assert_eq!((closing.outcome, usage.input, usage.output), (Outcome::Served, 3, 5));
    assert_eq!(closing.sent, (CREATED.len() + DELTA.len() + COMPLETED.len()) as u64);
}

#[tokio::test(start_paused = true)]
async fn a_break_stays_a_break() {
    // After output it is the caller's.
    let cut = answer(200, &[EVENTS], &[piece(DELTA), pause(1), Beat::Break]);
    let (service, observed) = (Pretend::new([cut]), Observed::default());
    let response = send(&observed.by(SteadyLayer::new(exact())), &service, asks_with(STREAM)).await.unwrap();
    let error = response.into_body().collect().await.unwrap_err();
    assert_eq!(error, "the cable was pulled");
    assert!(observed.story().ends_with("closed broken"), "{}", observed.story());

    // An end that lacks the last word looks whole to the caller, as it came, and is told for what it is.
    let short = answer(200, &[EVENTS], &[piece(DELTA)]);
    let (service, observed) = (Pretend::new([short]), Observed::default());
    let response = send(&observed.by(SteadyLayer::new(exact())), &service, asks_with(STREAM)).await.unwrap();
    assert_eq!(text(response).await, DELTA);
    assert!(observed.story().ends_with("closed broken"), "{}", observed.story());

    // Before output it is one that may have run; where it goes back, so do its bytes, and then the break.
    let cut = || answer(200, &[EVENTS], &[piece(CREATED), Beat::Break]);
    let service = Pretend::new([cut(), cut()]);
    let response = send(&SteadyLayer::new(exact()), &service, asks_with(STREAM)).await.unwrap();
    let summary = response.extensions().get::<Summary>().unwrap();
    assert_eq!((summary.outcome, summary.sends), (Outcome::Returned, 2));
    assert!(summary.attempts.iter().all(|attempt| attempt.fault == Fault::BrokenStream));
    let mut body = response.into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), CREATED);
    assert_eq!(body.frame().await.unwrap().unwrap_err(), "the cable was pulled");
    assert!(body.frame().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn whoever_leaves_stops_all_of_it() {
    // While it waits.
    let (service, observed) = (Pretend::new([refused(503)]), Observed::default());
    let layer = observed.by(SteadyLayer::new(exact()));
    let left = timeout(Duration::from_millis(500), send(&layer, &service, asks())).await;
    assert!(left.is_err());
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(service.times(), [0]);
    assert!(observed.story().ends_with("wait 1 s, closed client_left"), "{}", observed.story());

    // While a send is under way.
    let (service, observed) = (Pretend::new([Play::Silence]), Observed::default());
    let layer = observed.by(SteadyLayer::new(exact()));
    assert!(timeout(Duration::from_secs(5), send(&layer, &service, asks())).await.is_err());
    assert!(observed.story().ends_with("send 1, closed client_left"), "{}", observed.story());

    // While it is answered.
    let slow = answer(200, &[EVENTS], &[piece(DELTA), pause(9), piece(COMPLETED)]);
    let (service, observed) = (Pretend::new([slow]), Observed::default());
    let response = send(&observed.by(SteadyLayer::new(exact())), &service, asks_with(STREAM)).await.unwrap();
    drop(response);
    assert!(observed.story().ends_with("committed, closed client_left"), "{}", observed.story());

    // Whoever has the last word need not wait for the end.
    let whole = answer(200, &[EVENTS], &[piece(DELTA), piece(COMPLETED), pause(9)]);
    let (service, observed) = (Pretend::new([whole]), Observed::default());
    let response = send(&observed.by(SteadyLayer::new(exact())), &service, asks_with(STREAM)).await.unwrap();
    let mut body = response.into_body();
    let mut came = 0;
    while came < DELTA.len() + COMPLETED.len() {
        came += body.frame().await.unwrap().unwrap().data_ref().unwrap().len();
    }
    drop(body);
    assert!(observed.story().ends_with("committed, closed served"), "{}", observed.story());
}

#[tokio::test(start_paused = true)]
async fn a_service_that_takes_no_more_ends_the_call() {
    let (service, observed) = (Pretend::new([refused(503)]).breaking_after(1), Observed::default());
    let got = send(&observed.by(SteadyLayer::new(exact())), &service, asks()).await;
    assert!(matches!(got, Err(Error::NotReady(_))), "{got:?}");
    assert!(observed.story().ends_with("send 2, closed gave_up"), "{}", observed.story());
}

#[tokio::test(start_paused = true)]
async fn what_is_no_question_to_a_model_goes_by_its_own_rules() {
    let list = Request::get("http://llm.example/v1/models").body(Full::<Bytes>::default()).unwrap();
    let service = Pretend::new([refused(503), answer(200, &[JSON], &[piece("[]")])]);
    let response = send(&SteadyLayer::new(exact()), &service, list).await.unwrap();
    assert_eq!(text(response).await, "[]");

    // An upload that nobody knows may have effects: a status that an edge may have made up is no right.
    let upload = Request::post("http://llm.example/v1/files").body(Full::from("x")).unwrap();
    let service = Pretend::new([refused(503)]);
    let response = send(&SteadyLayer::new(exact()), &service, upload).await.unwrap();
    assert_eq!(response.status(), 503);

    let head = Request::builder().method(Method::HEAD).uri("http://llm.example/v1/models");
    let service = Pretend::new([answer(200, &[("content-length", "12")], &[])]);
    let response =
        send(&SteadyLayer::new(exact()), &service, head.body(Full::default()).unwrap()).await.unwrap();
    assert_eq!(response.headers()["content-length"], "12");
}
