//! The answers that the systems Steady Relay starts from quote, as they quote them.

use relay_sim::{Reply, Script, Upstream};

use crate::support::{Bench, TURN, bounded, plain};

fn json(status: u16, body: &'static str) -> Reply {
    Reply::status(status).header("content-type", "application/json").bytes(body)
}

/// What is made of an answer that is followed by a good one.
async fn story(first: Reply) -> (String, usize, u16) {
    let up = Upstream::start(Script::of([first, json(200, r#"{"choices":[]}"#)])).await.unwrap();
    let bench = Bench::with(bounded(&up.url(), |profile| profile.sends = Some(3))).await;
    let answer = bench.ask(&plain(TURN)).await;
    (bench.story(1).await, up.requests().len(), answer.status)
}

#[tokio::test]
async fn each_is_taken_for_what_it_is() {
    for (status, body, told, sends, heard) in [
        (503, r#"{"error":{"message":"Selected model is at capacity"}}"#, "at_capacity refused", 2, 200),
        (500, r#"{"error":{"message":"service is overloaded"}}"#, "overloaded refused", 2, 200),
        // A success that is none.
        (200, r#"{"error":{"message":"service is overloaded","code":503}}"#, "overloaded refused", 2, 200),
        (200, r#"{"error":{"message":"busy","code":"overloaded"}}"#, "overloaded refused", 2, 200),
        // A wrong request stays wrong.
        (400, r#"{"detail":"the 'gpt-5.6-sol' model is not supported"}"#, "bad_request", 1, 400),
        // A proxy's own failure is no refusal of the service.
        (
            502,
            r#"{"error":"cc switch local proxy failed while handling codex endpoint /responses"}"#,
            "server_failed failed",
            2,
            200,
        ),
        // Words in an answer are an answer.
        (
            200,
            r#"{"choices":[{"message":{"content":"service is overloaded, at capacity"}}]}"#,
            "served",
            1,
            200,
        ),
    ] {
        let (story, sent, status) = story(json(status, body)).await;
        assert!(story.contains(told), "{body}: {story}");
        assert_eq!((sent, status), (sends, heard), "{body}: {story}");
    }
}
