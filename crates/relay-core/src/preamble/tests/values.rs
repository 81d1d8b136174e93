//! Streams of JSON values: lines (Ollama) and lists (Gemini). And a user's own rules.

use super::*;
use crate::dialect::{Sign, Statuses, Test};
use crate::evidence::Says;

const OLLAMA: &str = "/api/chat";
const GEMINI: &str = "/v1beta/models/m:streamGenerateContent";

const OPENING: &str = "{\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":false}\n";
const WORD: &str = "{\"message\":{\"content\":\"hi\"},\"done\":false}\n";
const LAST: &str = "{\"message\":{\"content\":\"\"},\"done_reason\":\"stop\",\"done\":true}\n";
const BUSY: &str = "{\"error\":\"server busy, please try again.  maximum pending requests exceeded\"}\n";

fn lines() -> Head {
    head(200, "application/x-ndjson")
}

fn json() -> Head {
    head(200, "application/json; charset=UTF-8")
}

#[test]
fn lines_of_ollama() {
    let refused = "at_capacity refused InStream -";
    let broken = "broken_stream maybe_ran ByTransport -";
    for (stream, stop, expected) in [
        (format!("{OPENING}{WORD}{LAST}"), Stop::Tidy, committed("pass")),
        (OPENING.to_owned(), Stop::Open, held("hold")),
        (BUSY.to_owned(), Stop::Open, held(refused)),
        (format!("{OPENING}{BUSY}"), Stop::Tidy, held(refused)),
        (format!("{OPENING}{WORD}{BUSY}"), Stop::Tidy, committed("pass")),
        (format!("{OPENING}{WORD}"), Stop::Tidy, committed("broken_stream committed ByTransport -")),
        (OPENING.to_owned(), Stop::Tidy, held(broken)),
        (OPENING.to_owned(), Stop::Broken, held(broken)),
        (format!("{WORD}{LAST}"), Stop::Broken, committed("pass")),
        (String::new(), Stop::Tidy, held("empty_answer maybe_ran ByTransport -")),
        ("\n\r\n".to_owned(), Stop::Tidy, held("empty_answer maybe_ran ByTransport -")),
    ] {
        for head in [lines(), json()] {
            assert_eq!(of_whole(asked(OLLAMA), head, &stream, stop), expected, "{stream}");
        }
    }
    let whole = Asked { streams: false, ..asked(OLLAMA) };
    assert_eq!(of_whole(whole, json(), BUSY, Stop::Tidy), held("at_capacity refused InBody -"));
    assert_eq!(of_whole(whole, json(), LAST, Stop::Tidy), committed("pass"));
}

#[test]
fn a_download_has_no_end_that_must_come() {
    let pull = Asked { generation: false, streams: false, ..asked("/api/pull") };
    let progress = "{\"status\":\"pulling manifest\"}\n{\"status\":\"verifying\"}\n";
    assert_eq!(of_whole(pull, lines(), progress, Stop::Tidy), committed("pass"));
    assert_eq!(
        of_whole(pull, lines(), progress, Stop::Broken),
        committed("broken_stream committed ByTransport -")
    );
}

#[test]
fn lists_of_gemini() {
    let opening = r#"[{"candidates":[{"content":{"parts":[{"text":""}],"role":"model"}}]}"#;
    let word = ",\r\n{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"hi\"}]}}]}";
    let last = ",\n{\"candidates\":[{\"content\":{\"parts\":[]},\"finishReason\":\"STOP\"}]}\n]";
    let error = r#"[{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}]"#;
    let refused = "at_capacity refused InStream 503";
    for (stream, stop, expected) in [
        (format!("{opening}{word}{last}"), Stop::Tidy, committed("pass")),
        (opening.to_owned(), Stop::Open, held("hold")),
        (error.to_owned(), Stop::Tidy, held(refused)),
        (format!("{opening},{}", &error[1..]), Stop::Tidy, held(refused)),
        (format!("{opening}{word}"), Stop::Tidy, committed("broken_stream committed ByTransport -")),
        (format!("{opening}]"), Stop::Tidy, held("broken_stream maybe_ran ByTransport -")),
        ("[]".to_owned(), Stop::Tidy, held("empty_answer maybe_ran ByTransport -")),
        // No list at all.
        (error[1..error.len() - 1].to_owned(), Stop::Tidy, held(refused)),
    ] {
        // The last two: services that label it as a stream of events, or not at all.
        for head in [json(), events(), head(200, "")] {
            assert_eq!(of_whole(asked(GEMINI), head, &stream, stop), expected, "{stream}");
        }
    }
}

#[test]
fn events_of_gemini() {
    let error = "data: {\"error\":{\"code\":503,\"message\":\"The model is overloaded.\",\"status\":\"UNAVAILABLE\"}}\r\n\r\n";
    let blocked = "data: {\"promptFeedback\":{\"blockReason\":\"SAFETY\"}}\n\n";
    assert_eq!(
        of_whole(asked(GEMINI), events(), error, Stop::Tidy),
        held("at_capacity refused InStream 503")
    );
    assert_eq!(of_whole(asked(GEMINI), events(), blocked, Stop::Tidy), committed("pass"));
}

#[test]
fn an_event_too_large_to_be_read_may_have_been_the_last() {
    let image = "x".repeat(EVENT);
    let large = format!(
        "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"inlineData\":\"{image}\"}}]}}}}]}}\n\n"
    );
    let word = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"hi\"}]}}]}\n\n";
    assert_eq!(of_whole(asked(GEMINI), events(), &large, Stop::Tidy), committed("pass"));
    let broken = committed("broken_stream committed ByTransport -");
    assert_eq!(of_whole(asked(GEMINI), events(), &large, Stop::Broken), broken);
    assert_eq!(of_whole(asked(GEMINI), events(), &format!("{large}{word}"), Stop::Tidy), broken);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn the_cuts_of_the_network_do_not_matter(
        parts in proptest::collection::vec(0_usize..7, 0..6),
        cuts in proptest::collection::vec(0_usize..400, 0..6),
        is_list in any::<bool>(),
        tidy in any::<bool>(),
    ) {
        let pieces = [OPENING, WORD, LAST, BUSY, "\n", "[", "]"];
        let gemini = [
            "{\"candidates\":[{}]}", "{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]}}]},",
            "{\"candidates\":[{\"finishReason\":\"STOP\"}]}", "{\"error\":{\"code\":503}}", ",\n", "[", "]",
        ];
        let stream: String = parts.iter().map(|part| if is_list { gemini[*part] } else { pieces[*part] }).collect();
        let (path, head) = if is_list { (GEMINI, json()) } else { (OLLAMA, lines()) };
        let stop = if tidy { Stop::Tidy } else { Stop::Broken };
        let bytes = stream.as_bytes();
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.sort_unstable();
        let mut from = 0;
        let mut chunks = Vec::new();
        for cut in cuts {
            chunks.push(&bytes[from..cut]);
            from = cut;
        }
        chunks.push(&bytes[from..]);
        prop_assert_eq!(heard(asked(path), head.clone(), chunks, stop), heard(asked(path), head, [bytes], stop));
    }
}

fn own(sign: Sign, inside: bool) -> Arc<[Arc<Rule>]> {
    let on = Statuses::Chosen { among: Vec::new(), inside };
    let floor = Duration::from_secs(7);
    let rule = Rule { sign, on, fault: Fault::Overloaded, says: Says::Refused, floor, source: "test".into() };
    [Arc::new(rule)].into()
}

fn by(rules: &Arc<[Arc<Rule>]>, asked: Asked, head: Head, bytes: &str) -> String {
    let mut listener = listener(asked, head).by(Arc::clone(rules));
    let mut verdict = listener.at_head();
    if verdict == Verdict::Hold {
        verdict = listener.hear(bytes.as_bytes(), bytes.len(), HEAD);
    }
    if verdict == Verdict::Hold {
        verdict = listener.ended();
    }
    if let Verdict::Fault(failure) = &verdict {
        assert!(matches!(listener.because(), Some(Because::Yours(_))), "{failure:?}");
        assert_eq!(failure.advice, crate::retry_after::Advice::Wait(Duration::from_secs(7)));
    }
    in_words(&verdict)
}

#[test]
fn a_users_rule_may_find_a_failure_in_a_success() {
    let found = "overloaded refused InBody -";
    let path = own(Sign::Path("state.kind".into(), Test::Is("busy".into())), true);
    let busy = r#"{"state":{"kind":"busy"},"choices":[{}]}"#;
    let whole = Asked { streams: false, ..asked(CHAT) };
    assert_eq!(by(&path, whole, json(), busy), found);
    assert_eq!(by(&path, whole, json(), r#"{"state":{"kind":"idle"},"choices":[{}]}"#), "pass");
    let event = |data: &str| format!("data: {data}\n\n");
    assert_eq!(by(&path, asked(CHAT), events(), &event(busy)), "overloaded refused InStream -");
    let first = r#"{"choices":[{"delta":{"content":"hi"}}]}"#;
    let late = format!("{}{}", event(first), event(busy));
    assert_eq!(by(&path, asked(CHAT), events(), &late), "pass", "what is committed stays so");
    let mut told = json();
    told.headers.insert("x-codex-status", HeaderValue::from_static("overloaded"));
    let header = own(Sign::Header("x-codex-status".into(), Test::Is("overloaded".into())), true);
    assert_eq!(by(&header, whole, told.clone(), r#"{"choices":[{}]}"#), found);
    assert_eq!(by(&header, whole, json(), r#"{"choices":[{}]}"#), "pass");
    let not_inside = own(Sign::Header("x-codex-status".into(), Test::Is("overloaded".into())), false);
    assert_eq!(by(&not_inside, whole, told, r#"{"choices":[{}]}"#), "pass");
}

#[test]
fn a_users_words_are_looked_for_in_errors_alone() {
    let words = own(Sign::Sentence("come back".into()), true);
    let whole = Asked { streams: false, ..asked(CHAT) };
    assert_eq!(by(&words, whole, json(), r#"{"choices":[{"message":{"content":"come back"}}]}"#), "pass");
    let error = r#"{"error":{"message":"Come back later","code":"invalid_prompt"}}"#;
    assert_eq!(by(&words, whole, json(), error), "overloaded refused InBody invalid_prompt");
    assert_eq!(
        by(&words, whole, head(404, "application/json"), error),
        "overloaded refused ByStatus invalid_prompt"
    );
}
