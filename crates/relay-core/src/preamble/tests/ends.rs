//! When an answer is whole: by its last word, or by all its parts and a tidy end.

use super::*;

const GEMINI: &str = "/v1beta/models/m:streamGenerateContent";
const LEGACY: &str = "/v1/completions";

fn data(json: &str) -> String {
    format!("data: {json}\n\n")
}

fn choice(index: u64, content: &str, reason: &str) -> String {
    data(&format!(
        r#"{{"choices":[{{"index":{index},"delta":{{"content":"{content}"}},"finish_reason":{reason}}}]}}"#
    ))
}

fn text(index: u64, reason: &str) -> String {
    data(&format!(r#"{{"choices":[{{"index":{index},"text":"a","finish_reason":{reason}}}]}}"#))
}

fn candidate(index: u64, finish: &str) -> String {
    format!(r#"{{"candidates":[{{"index":{index},"content":{{"parts":[{{"text":"a"}}]}}{finish}}}]}}"#)
}

const STOP: &str = r#","finishReason":"STOP""#;

fn broken() -> (bool, String) {
    committed("broken_stream committed ByTransport -")
}

/// What comes of the stream where it ends tidily, and where its connection is lost.
fn ends(path: &str, head: &Head, stream: &str) -> [bool; 2] {
    [Stop::Tidy, Stop::Broken].map(|stop| {
        let told = of_whole(asked(path), head.clone(), stream, stop);
        assert!(told == committed("pass") || told == broken(), "{stream}: {told:?}");
        told == committed("pass")
    })
}

const WHOLE: [bool; 2] = [true, true];
const WHOLE_IF_TIDY: [bool; 2] = [true, false];
const CUT: [bool; 2] = [false, false];

#[test]
fn a_choice_that_is_finished_does_not_end_the_others() {
    let one = choice(0, "a", "null") + &choice(0, "", "\"stop\"");
    let half = one.clone() + &choice(1, "half of th", "null");
    let both = half.clone() + &choice(1, "", "\"length\"");
    let usage = data(r#"{"choices":[],"usage":{"total_tokens":3}}"#);
    let filtered = data(r#"{"choices":[{"index":0,"content_filter_offsets":{},"finish_reason":null}]}"#);
    for (stream, is) in [
        (one.clone(), WHOLE_IF_TIDY),
        (one.clone() + &usage, WHOLE_IF_TIDY),
        (one.clone() + &filtered, WHOLE_IF_TIDY),
        (one.clone() + "data: {\"usa", WHOLE_IF_TIDY),
        (half.clone(), CUT),
        (choice(1, "a", "null") + &one, CUT),
        (both.clone(), WHOLE_IF_TIDY),
        (both + "data: [DONE]\n\n", WHOLE),
        (half + "data: [DONE]\n\n", WHOLE),
    ] {
        assert_eq!(ends(CHAT, &events(), &stream), is, "{stream}");
    }
    let half = text(0, "\"stop\"") + &text(1, "null");
    assert_eq!(ends(LEGACY, &events(), &half), CUT);
    assert_eq!(ends(LEGACY, &events(), &(half + &text(1, "\"stop\""))), WHOLE_IF_TIDY);
}

#[test]
fn a_reason_without_a_letter_finishes_nothing() {
    let role =
        data(r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":""}]}"#);
    let stream = role.clone() + &choice(0, "half of th", "\"\"");
    assert_eq!(ends(CHAT, &events(), &stream), CUT);
    let refused = role + &data(r#"{"error":{"message":"m","code":"server_is_overloaded"}}"#);
    let told = of_whole(asked(CHAT), events(), &refused, Stop::Tidy);
    assert_eq!(told, held("at_capacity refused InStream server_is_overloaded"));
}

#[test]
fn a_candidate_that_is_finished_does_not_end_the_others() {
    let half = [candidate(0, STOP), candidate(1, "")];
    let both = [candidate(0, STOP), candidate(1, ""), candidate(1, STOP)];
    let nested = |it: &String| format!(r#"{{"response":{it}}}"#);
    for (candidates, is) in [(&half[..1], WHOLE_IF_TIDY), (&half, CUT), (&both, WHOLE_IF_TIDY)] {
        let stream: String = candidates.iter().map(|it| data(it)).collect();
        assert_eq!(ends(GEMINI, &events(), &stream), is, "{stream}");
        let stream: String = candidates.iter().map(|it| data(&nested(it))).collect();
        assert_eq!(ends(GEMINI, &events(), &stream), is, "{stream}");
        let list = format!("[{}", candidates.join(",\n"));
        let json = head(200, "application/json");
        assert_eq!(ends(GEMINI, &json, &list), is, "{list}");
        assert_eq!(ends(GEMINI, &json, &format!("{list}]")), is, "{list}]");
    }
    let blocked = data(r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#);
    assert_eq!(ends(GEMINI, &events(), &blocked), WHOLE_IF_TIDY);
}

#[test]
fn a_stream_whose_parts_are_finished_may_end_in_silence() {
    for (stream, ended) in
        [(choice(0, "a", "\"stop\""), true), (choice(0, "a", "\"stop\"") + &choice(1, "a", "null"), false)]
    {
        let mut listener = listener(asked(CHAT), events());
        assert_eq!(listener.hear(stream.as_bytes(), stream.len(), HEAD), Verdict::Pass);
        assert_eq!(listener.has_ended(), ended, "{stream}");
    }
}

#[test]
fn a_turn_is_completed_by_its_own_event_alone() {
    for (end, completed) in [
        (event("response.completed", r#""response":{"error":null}"#), true),
        (event("response.completed", "") + "data: [DONE]\n\n", true),
        (event("response.incomplete", r#""response":{}"#), false),
        (failed_event("server_error"), false),
        (error_event("server_is_overloaded"), false),
        ("data: [DONE]\n\n".to_owned(), false),
        (String::new(), false),
    ] {
        let stream = created() + &delta() + &end;
        let mut listener = listener(asked(RESPONSES), events());
        assert_eq!(listener.hear(stream.as_bytes(), stream.len(), HEAD), Verdict::Pass);
        assert_eq!(listener.has_completed(), completed, "{end}");
    }
}
