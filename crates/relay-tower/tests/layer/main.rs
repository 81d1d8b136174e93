//! The layer around a pretend service, in virtual time; and the example, on real sockets.

mod calls;
mod limits;
#[path = "../../examples/overloaded.rs"]
#[expect(dead_code, reason = "nobody calls its `main` here")]
mod overloaded;
mod pretend;

use std::sync::{Arc, Mutex};

#[tokio::test]
async fn the_example_shows_what_its_page_says() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let shown = Arc::clone(&lines);
    overloaded::play(Arc::new(move |line| shown.lock().unwrap().push(line.to_owned()))).await.unwrap();
    // Times and the port are not the same each time.
    let plain = |line: &String| {
        let line = line.split_once(" at 127.0.0.1").map_or(&**line, |(before, _)| before);
        let line = line.split(", after").next().unwrap_or_default();
        line.split_once(" for 0.").map_or(line, |(before, _)| before).trim().to_owned()
    };
    let shown = lines.lock().unwrap().iter().map(plain).collect::<Vec<_>>();
    let expected = [
        "c1 opened: openai_responses",
        "c1 send 1",
        "c1 failed: the model is at capacity",
        "c1 waits",
        "c1 send 2",
        "c1 failed: the model is at capacity",
        "c1 waits",
        "c1 send 3",
        "c1 failed: the answer broke off",
        "c1 is granted another send, though this one may have run",
        "c1 waits",
        "c1 send 4",
        "c1 is answered",
        "the answer: 200 OK",
        r#"data: {"type":"response.created"}"#,
        r#"data: {"type":"response.output_text.delta","delta":"hello"}"#,
        r#"data: {"type":"response.completed"}"#,
        "c1 ended: served",
        "4 sends, of which these failed:",
        "send 1: answered 503 (the model is at capacity)",
        "send 2: answered 200 server_is_overloaded (the model is at capacity)",
        "send 3: the answer broke off",
    ];
    assert_eq!(shown, expected);
}
