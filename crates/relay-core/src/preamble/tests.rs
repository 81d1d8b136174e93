//! What is held, what commits, what fails and what is cut, however the network cuts the bytes.

use std::time::UNIX_EPOCH;

use http::{HeaderName, HeaderValue, Method};
use proptest::prelude::*;

use super::*;
use crate::dialect::route;

mod ends;
mod labels;
mod values;

const SENT: Moment = Moment::after_start(Duration::from_secs(100));
const HEAD: Moment = Moment::after_start(Duration::from_secs(101));
const RESPONSES: &str = "/v1/responses";
const CHAT: &str = "/v1/chat/completions";
const CLAUDE: &str = "/v1/messages";
const OTHER: &str = "/v1/other";
const FATAL: &[&str] = &["server_is_overloaded", "policy_capacity_unavailable", "flex_unavailable"];
const LIMIT: usize = 4096;

fn asked(path: &str) -> Asked {
    let generation = path != OTHER;
    let hold = Hold { bytes: LIMIT, time: Some(Duration::from_secs(20)) };
    Asked {
        dialect: route(&Method::POST, path).dialect,
        generation,
        streams: generation,
        hold,
        withhold: &[],
    }
}

fn codex() -> Asked {
    Asked { withhold: FATAL, hold: Hold { bytes: LIMIT, time: None }, ..asked(RESPONSES) }
}

fn head(status: u16, kind: &'static str) -> Head {
    let mut headers = HeaderMap::new();
    if !kind.is_empty() {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    let status = StatusCode::from_u16(status).unwrap();
    Head { status, headers, bodiless: false, sent: SENT, arrived: HEAD }
}

fn events() -> Head {
    head(200, "text/event-stream; charset=utf-8")
}

fn listener(asked: Asked, head: Head) -> Preamble {
    Preamble::new(asked, head, UNIX_EPOCH)
}

/// A failure in a few words.
fn words(failure: &Failure) -> String {
    format!(
        "{} {} {:?} {}",
        failure.fault.name(),
        failure.evidence.map_or("final", Evidence::name),
        failure.told,
        failure.code.as_deref().unwrap_or("-")
    )
}

fn in_words(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Hold => "hold".to_owned(),
        Verdict::Pass => "pass".to_owned(),
        Verdict::Fault(failure) => words(failure),
        Verdict::Cut { at, fault } => format!("cut at {at}: {}", words(fault)),
    }
}

/// How the connection stops after the bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Stop {
    Tidy,
    Broken,
    Open,
}

/// Whether anything was committed, and the last verdict: what must not depend on how the bytes were cut.
fn heard<'a>(
    asked: Asked,
    head: Head,
    chunks: impl IntoIterator<Item = &'a [u8]>,
    stop: Stop,
) -> (bool, String) {
    let mut listener = listener(asked, head);
    let mut verdict = listener.at_head();
    let mut committed = verdict == Verdict::Pass;
    for chunk in chunks {
        if matches!(verdict, Verdict::Fault(_) | Verdict::Cut { .. }) {
            break;
        }
        verdict = listener.hear(chunk, chunk.len(), HEAD);
        assert!(!(committed && verdict == Verdict::Hold), "what was committed is not held again");
        committed |= matches!(verdict, Verdict::Pass | Verdict::Cut { .. });
    }
    if !matches!(verdict, Verdict::Fault(_) | Verdict::Cut { .. }) {
        verdict = match stop {
            Stop::Tidy => listener.ended(),
            Stop::Broken => listener.broke(),
            Stop::Open => verdict,
        };
        committed |= verdict == Verdict::Pass;
    }
    (committed, in_words(&verdict))
}

fn of_whole(asked: Asked, head: Head, bytes: &str, stop: Stop) -> (bool, String) {
    heard(asked, head, [bytes.as_bytes()], stop)
}

fn committed(words: &str) -> (bool, String) {
    (true, words.to_owned())
}

fn held(words: &str) -> (bool, String) {
    (false, words.to_owned())
}

fn event(kind: &str, rest: &str) -> String {
    let rest = if rest.is_empty() { String::new() } else { format!(",{rest}") };
    format!("event: {kind}\ndata: {{\"type\":\"{kind}\"{rest}}}\n\n")
}

fn created() -> String {
    event("response.created", r#""response":{"id":"r","status":"in_progress","error":null}"#)
        + &event("response.in_progress", r#""response":{"id":"r","error":null}"#)
}

fn delta() -> String {
    event("response.output_text.delta", r#""delta":"the word error, and overloaded""#)
}

fn error_event(code: &str) -> String {
    event("error", &format!(r#""error":{{"code":"{code}","message":"m"}}"#))
}

fn failed_event(code: &str) -> String {
    event("response.failed", &format!(r#""response":{{"error":{{"code":"{code}","message":"m"}}}}"#))
}

/// A stream cut in two at every byte, and into single bytes, in each line end; what is expected of each.
fn at_every_cut(asked: Asked, stream: &str, stop: Stop, expected: impl Fn(&str) -> (bool, String)) {
    for line_end in ["\n", "\r\n", "\r"] {
        let stream = stream.replace('\n', line_end);
        let expected = expected(&stream);
        let bytes = stream.as_bytes();
        assert_eq!(heard(asked, events(), [bytes], stop), expected, "whole, {line_end:?}");
        for at in 0..=bytes.len() {
            let (one, other) = bytes.split_at(at);
            assert_eq!(heard(asked, events(), [one, other], stop), expected, "at {at}, {line_end:?}");
        }
        assert_eq!(heard(asked, events(), bytes.chunks(1), stop), expected, "byte by byte, {line_end:?}");
    }
}

#[test]
fn a_healthy_answer_passes() {
    let responses = ": working\n\n".to_owned()
        + &created()
        + &delta()
        + &event("response.completed", r#""response":{"error":null}"#);
    let chat = concat!(
        "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":null}]}\n\n",
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
    );
    let claude = event("message_start", r#""message":{"content":[]}"#)
        + &event("ping", "")
        + &event("content_block_start", r#""content_block":{"type":"text","text":""}"#)
        + &event("message_stop", "");
    for (path, stream) in [(RESPONSES, responses.as_str()), (CHAT, chat), (CLAUDE, &claude)] {
        for stop in [Stop::Tidy, Stop::Broken] {
            at_every_cut(asked(path), stream, stop, |_| committed("pass"));
        }
    }
}

#[test]
fn a_failure_before_output_is_a_fault() {
    let chat = concat!(
        ": OPENROUTER PROCESSING\n\n",
        "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"\"},\"finish_reason\":\"error\"}],",
        "\"error\":{\"code\":502,\"message\":\"m\"}}\n\ndata: [DONE]\n\n",
    );
    let claude = event("message_start", r#""message":{"content":[]}"#)
        + &event("ping", "")
        + &event("error", r#""error":{"type":"overloaded_error","message":"Overloaded"}"#);
    let responses = created() + &failed_event("slow_down");
    for (path, stream, words) in [
        (RESPONSES, responses.as_str(), "throttled refused InStream slow_down"),
        (CHAT, chat, "server_failed failed InStream 502"),
        (CLAUDE, &claude, "overloaded refused InStream overloaded_error"),
    ] {
        at_every_cut(asked(path), stream, Stop::Tidy, |_| held(words));
    }
}

#[test]
fn lifecycle_alone_is_held() {
    let stream = ": working\n\n\n\n".to_owned() + &created() + ": working\n\n";
    at_every_cut(asked(RESPONSES), &stream, Stop::Open, |_| held("hold"));
    at_every_cut(asked(RESPONSES), &stream, Stop::Tidy, |_| held("broken_stream maybe_ran ByTransport -"));
    at_every_cut(asked(RESPONSES), &stream, Stop::Broken, |_| held("broken_stream maybe_ran ByTransport -"));
}

#[test]
fn a_stream_that_ends_after_output_without_its_last_word_is_broken() {
    let stream = created() + &delta();
    for stop in [Stop::Tidy, Stop::Broken] {
        at_every_cut(asked(RESPONSES), &stream, stop, |_| committed("broken_stream committed ByTransport -"));
    }
    // What no dialect knows has no last word.
    let told = of_whole(asked(OTHER), events(), "data: {\"x\":1}\n\n", Stop::Tidy);
    assert_eq!(told, committed("pass"));
}

#[test]
fn a_stream_without_an_event_is_empty() {
    for stream in ["", "\n\n", ": working\n\n", "event: response.created\n\n", "data: {\"unfin"] {
        let told = of_whole(asked(RESPONSES), events(), stream, Stop::Tidy);
        assert_eq!(told, held("empty_answer maybe_ran ByTransport -"), "{stream:?}");
        let other = of_whole(asked(OTHER), events(), stream, Stop::Tidy);
        assert_eq!(other, committed("pass"), "nobody asked a model for anything: {stream:?}");
    }
}

#[test]
fn a_fatal_event_after_output_is_cut_off_at_its_first_byte() {
    let before = created() + &delta() + ": comment\n\n";
    for code in FATAL {
        let stream = before.clone() + &failed_event(code) + &delta();
        at_every_cut(codex(), &stream, Stop::Tidy, |stream| {
            let at = stream.find("event: response.failed").unwrap();
            (true, format!("cut at {at}: at_capacity refused InStream {code}"))
        });
    }
    // The `error` event before it is withheld too.
    let both = before + &error_event("server_is_overloaded") + &failed_event("server_is_overloaded");
    at_every_cut(codex(), &both, Stop::Tidy, |stream| {
        let at = stream.find("event: error").unwrap();
        (true, format!("cut at {at}: at_capacity refused InStream server_is_overloaded"))
    });
}

#[test]
fn other_failures_after_output_pass() {
    for code in ["rate_limit_exceeded", "slow_down", "server_error", "context_length_exceeded"] {
        let stream = created() + &delta() + &error_event(code) + &failed_event(code);
        at_every_cut(codex(), &stream, Stop::Tidy, |_| committed("pass"));
    }
    let fatal = created() + &delta() + &failed_event("server_is_overloaded");
    at_every_cut(asked(RESPONSES), &fatal, Stop::Tidy, |_| committed("pass"));
    let claude = event("message_start", "")
        + &event("content_block_delta", "")
        + &event("error", r#""error":{"type":"overloaded_error","message":"Overloaded"}"#);
    let chat =
        "data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\ndata: {\"error\":{\"code\":503}}\n\n";
    for (path, stream) in [(CLAUDE, claude.as_str()), (CHAT, chat)] {
        // The failure is the last word: a connection that ends after it was not cut.
        for stop in [Stop::Tidy, Stop::Broken] {
            at_every_cut(asked(path), stream, stop, |_| committed("pass"));
        }
    }
}

#[test]
fn a_refusal_by_the_model_is_an_answer() {
    let whole = r#"{"type":"message","content":[],"stop_reason":"refusal"}"#;
    let told = of_whole(asked(CLAUDE), head(200, "application/json"), whole, Stop::Tidy);
    assert_eq!(told, committed("pass"));
    let stream = created() + &event("response.incomplete", r#""response":{"error":null}"#);
    at_every_cut(codex(), &stream, Stop::Tidy, |_| committed("pass"));
}

#[test]
fn a_failure_that_goes_back_after_all_passes_whole() {
    // Codex is to see its own words for being at capacity, which the second event brings.
    let mut listener = listener(codex(), events());
    let first = created() + &error_event("server_is_overloaded");
    let Verdict::Fault(_) = listener.hear(first.as_bytes(), first.len(), HEAD) else { panic!() };
    listener.release();
    let second = failed_event("server_is_overloaded");
    assert_eq!(listener.hear(second.as_bytes(), second.len(), HEAD), Verdict::Pass);
    assert_eq!((listener.ended(), listener.is_passing()), (Verdict::Pass, true));
}

#[test]
fn too_much_or_too_long_a_beginning_commits() {
    let mut listener_ = listener(asked(RESPONSES), events());
    let beat = event("response.in_progress", "");
    let mut heard = 0;
    while listener_.hear(beat.as_bytes(), beat.len(), HEAD) == Verdict::Hold {
        heard += beat.len();
    }
    assert!(heard <= LIMIT && heard + beat.len() > LIMIT, "{heard}");

    let mut slow = listener(asked(RESPONSES), events());
    assert_eq!(slow.due(), Some(HEAD + Duration::from_secs(20)));
    assert_eq!(slow.hear(beat.as_bytes(), beat.len(), HEAD), Verdict::Hold);
    assert_eq!(slow.timed_out(), Verdict::Pass);
    assert_eq!(slow.due(), None);
    let failure = failed_event("server_is_overloaded");
    assert_eq!(slow.hear(failure.as_bytes(), failure.len(), HEAD), Verdict::Pass, "too late to hide it");
    assert_eq!(listener(codex(), events()).due(), None, "Codex waits for an hour");
}

#[test]
fn the_limit_counts_what_lies_on_the_wire_and_what_it_unfolds_to() {
    for (decoded, wire) in [(0, LIMIT + 1), (LIMIT + 1, 10)] {
        let mut listener = listener(asked(RESPONSES), events());
        let comment = ":".repeat(decoded);
        assert_eq!(listener.hear(comment.as_bytes(), wire, HEAD), Verdict::Pass, "{decoded} {wire}");
    }
}

#[test]
fn a_failure_inside_an_answer_is_as_late_as_itself() {
    const GEMINI: &str = "/v1beta/models/m:streamGenerateContent";
    let kept_alive = r#" {"error":{"code":"server_error","message":"m"}}"#;
    let unavailable = r#"{"error":{"code":503,"status":"UNAVAILABLE","message":"m"}}"#;
    for (asked, head, start, failure, fault) in [
        (codex(), events(), created(), failed_event("server_error"), "server_failed"),
        (codex(), events(), "\n".to_owned(), kept_alive.to_owned(), "server_failed"),
        (asked(CHAT), head(200, "application/json"), "\n".to_owned(), kept_alive.to_owned(), "server_failed"),
        (asked(GEMINI), events(), String::new(), format!("data: {unavailable}\n\n"), "at_capacity"),
        (asked(GEMINI), head(200, "application/json"), "[".to_owned(), unavailable.to_owned(), "at_capacity"),
    ] {
        for (took, evidence) in [(15, None), (16, Some("maybe_ran"))] {
            let mut listener = listener(asked, head.clone());
            assert_eq!(listener.hear(start.as_bytes(), start.len(), HEAD), Verdict::Hold);
            let now = SENT + Duration::from_secs(took);
            let mut verdict = listener.hear(failure.as_bytes(), failure.len(), now);
            if verdict == Verdict::Hold {
                verdict = listener.ended();
            }
            let prompt = if fault == "at_capacity" { "refused" } else { "failed" };
            let told = format!("{fault} {} ", evidence.unwrap_or(prompt));
            assert!(in_words(&verdict).starts_with(&told), "{failure} {took}: {verdict:?}");
        }
    }
}

const QUOTES: &str =
    r#"{"id":"c","error":null,"choices":[{"message":{"content":"{\"error\":{\"code\":503}} overloaded"}}]}"#;
const HIDES: &str = "\n\n {\"error\":{\"message\":\"service is overloaded\",\"code\":503}}";

#[test]
fn an_error_in_a_body_of_200() {
    let overloaded = held("overloaded refused InBody 503");
    for kind in ["application/json", "application/problem+json", "Application/JSON; charset=utf-8"] {
        assert_eq!(of_whole(asked(CHAT), head(200, kind), HIDES, Stop::Tidy), overloaded, "{kind}");
        assert_eq!(of_whole(asked(CHAT), head(200, kind), QUOTES, Stop::Tidy), committed("pass"), "{kind}");
    }
    let json = || head(200, "application/json");
    assert_eq!(of_whole(asked(CHAT), json(), QUOTES, Stop::Open), held("hold"), "until it is whole");
    let lost = held("broken_stream maybe_ran ByTransport -");
    assert_eq!(of_whole(asked(CHAT), json(), &QUOTES[..30], Stop::Broken), lost);
    let empty = held("empty_answer maybe_ran ByTransport -");
    assert_eq!(of_whole(asked(CHAT), json(), " \n", Stop::Tidy), empty);
    assert_eq!(of_whole(asked(CHAT), json(), &"x".repeat(LIMIT + 1), Stop::Open), committed("pass"));
    let late = HIDES.to_owned() + &" ".repeat(LIMIT);
    assert_eq!(of_whole(asked(CHAT), json(), &late, Stop::Tidy), committed("pass"), "beyond the limit");
}

#[test]
fn an_error_that_belongs_to_a_thing_kept_at_the_service_is_an_answer() {
    let json = || head(200, "application/json");
    for body in [
        r#"{"id":"resp_1","object":"response","status":"failed","error":{"code":"server_error"},"output":[]}"#,
        r#"{"object":"fine_tuning.job","id":"j","error":{"code":"rate_limit_exceeded","message":"m"}}"#,
    ] {
        assert_eq!(of_whole(asked(OTHER), json(), body, Stop::Tidy), committed("pass"), "{body}");
    }
    let own = r#"{"id":"resp_1","object":"response","status":"failed","error":{"code":"server_error"},"output":[]}"#;
    let told = of_whole(asked(RESPONSES), json(), own, Stop::Tidy);
    assert_eq!(told, held("server_failed failed InBody server_error"), "its own answer failed");
    let told = of_whole(asked(OTHER), json(), r#"{"error":{"code":429,"message":"m"}}"#, Stop::Tidy);
    assert_eq!(told, held("throttled refused InBody 429"));
}

#[test]
fn what_is_neither_success_nor_failure_passes_at_once() {
    for (status, kind) in [(302, "text/html"), (304, ""), (204, "")] {
        assert_eq!(listener(asked(CHAT), head(status, kind)).at_head(), Verdict::Pass, "{status}");
    }
    let bodiless = || Head { bodiless: true, ..head(200, "application/json") };
    assert_eq!(listener(asked(OTHER), bodiless()).at_head(), Verdict::Pass);
    let empty = in_words(&listener(asked(CHAT), bodiless()).at_head());
    assert_eq!(empty, "empty_answer maybe_ran ByTransport -", "a success without an answer");
    assert_eq!(listener(asked(OTHER), head(200, "image/png")).at_head(), Verdict::Pass);
}

const BUSY: &str = r#"{"error":{"code":"server_is_overloaded","message":"m"}}"#;

#[test]
fn the_body_of_an_error_is_read_as_far_as_it_helps() {
    let json = |status| head(status, "application/json");
    let by_code = held("at_capacity refused ByStatus server_is_overloaded");
    let by_status = held("at_capacity refused ByStatus -");
    assert_eq!(of_whole(asked(CHAT), json(503), BUSY, Stop::Tidy), by_code);
    assert_eq!(heard(asked(CHAT), json(503), BUSY.as_bytes().chunks(1), Stop::Broken), by_code);
    assert_eq!(of_whole(asked(CHAT), json(503), &BUSY[..20], Stop::Broken), by_status);
    assert_eq!(of_whole(asked(CHAT), json(503), BUSY, Stop::Open), held("hold"));
    let bodiless = Head { bodiless: true, ..json(503) };
    assert_eq!(heard(asked(CHAT), bodiless, [], Stop::Open), by_status);
    let huge = "x".repeat(LIMIT + 1);
    assert_eq!(of_whole(asked(CHAT), json(503), &huge, Stop::Open), by_status);
    let roomy = Asked { hold: Hold { bytes: 1 << 20, time: None }, ..asked(CHAT) };
    let endless = std::iter::repeat_n(&[b' '; 1000][..], 1000);
    assert_eq!(heard(roomy, json(503), endless, Stop::Open), by_status, "64 KiB say enough");
}

#[test]
fn an_error_that_trickles_is_judged_by_what_came() {
    for asked in [asked(RESPONSES), codex()] {
        let mut listener = listener(asked, head(503, "application/json"));
        assert_eq!(listener.hear(BUSY.as_bytes(), BUSY.len(), HEAD), Verdict::Hold);
        assert_eq!(listener.due(), Some(HEAD + Duration::from_secs(20)));
        let mut silent = listener.clone();
        for told in [listener.timed_out(), silent.fell_silent()] {
            assert_eq!(in_words(&told), "at_capacity refused ByStatus server_is_overloaded");
        }
    }
    // Whoever has not said that it failed, has not answered.
    for kind in ["text/event-stream", "application/json", "text/html"] {
        let mut listener = listener(asked(RESPONSES), head(200, kind));
        assert_eq!((listener.at_head(), listener.fell_silent()), (Verdict::Hold, Verdict::Hold), "{kind}");
    }
}

#[test]
fn what_cannot_be_decoded_passes_unread_and_an_error_is_judged_by_the_rest() {
    let mut stream = listener(codex(), events());
    assert_eq!(stream.undecodable(), Verdict::Pass);
    let fatal = failed_event("server_is_overloaded");
    assert_eq!(stream.hear(fatal.as_bytes(), 10, HEAD), Verdict::Pass);
    assert_eq!(stream.ended(), Verdict::Pass);

    let mut error = listener(codex(), head(503, "application/json"));
    assert_eq!(error.hear(BUSY.as_bytes(), 10, HEAD), Verdict::Hold);
    assert_eq!(in_words(&error.undecodable()), "at_capacity refused ByStatus server_is_overloaded");
    let mut unread = listener(codex(), head(503, ""));
    assert_eq!(in_words(&unread.undecodable()), "at_capacity refused ByStatus -");
}

#[test]
fn progress_is_made_by_events_and_by_nothing_else() {
    let mut listener = listener(asked(RESPONSES), events());
    let mut after = |bytes: &str| {
        let _verdict = listener.hear(bytes.as_bytes(), bytes.len(), HEAD);
        listener.progress()
    };
    assert_eq!([after(": beat\n\n"), after("\n\n"), after(&created()), after(&delta())], [0, 0, 2, 3]);
    assert_eq!(after(": beat\n\n"), 3);
}

/// Bytes that mean something, in pieces.
fn pieces() -> impl Strategy<Value = Vec<(String, usize)>> {
    let piece = prop_oneof![
        Just(created()),
        Just(delta()),
        Just(": comment\n\n".to_owned()),
        Just(error_event("server_is_overloaded")),
        Just(failed_event("rate_limit_exceeded")),
        Just(event("response.completed", "")),
        Just(event("message_start", "")),
        Just(event("content_block_delta", "")),
        Just("data: [DONE]\r\n\r\n".to_owned()),
        Just("data: {\"choices\":[{\"delta\":{\"role\":\"a\"}}]}\r\r".to_owned()),
        Just(HIDES.to_owned()),
        Just("data: {\"x\":".to_owned()),
        "\\PC{0,40}",
        "[\r\n: ]{0,6}",
    ];
    prop::collection::vec((piece, 1_usize..200), 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn whatever_comes_nothing_is_held_beyond_the_limit(
        pieces in pieces(),
        path in prop::sample::select(vec![RESPONSES, CHAT, CLAUDE, OTHER]),
        status in prop::sample::select(vec![200_u16, 200, 200, 204, 307, 404, 503]),
        kind in prop::sample::select(vec!["text/event-stream", "application/json", "text/html", ""]),
        limit in 1_usize..600,
        stop in prop::sample::select(vec![Stop::Tidy, Stop::Broken]),
    ) {
        let hold = Hold { bytes: limit, time: None };
        let mut listener = listener(Asked { hold, withhold: FATAL, ..asked(path) }, head(status, kind));
        let (mut verdict, mut total) = (listener.at_head(), 0);
        let stream: Vec<u8> = pieces.iter().flat_map(|(text, _)| text.bytes()).collect();
        let mut sizes = pieces.iter().map(|(_, size)| *size).cycle();
        let mut rest = stream.as_slice();
        while !rest.is_empty() && !matches!(verdict, Verdict::Fault(_) | Verdict::Cut { .. }) {
            let (chunk, after) = rest.split_at(sizes.next().unwrap_or(1).min(rest.len()));
            let was_passing = listener.is_passing();
            verdict = listener.hear(chunk, chunk.len(), HEAD);
            total += chunk.len();
            rest = after;
            prop_assert!(!was_passing || verdict != Verdict::Hold);
            prop_assert!(verdict != Verdict::Hold || total <= limit);
            if let Verdict::Cut { at, .. } = &verdict {
                prop_assert!(*at < total as u64);
            }
        }
        if matches!(verdict, Verdict::Hold | Verdict::Pass) {
            let last = if stop == Stop::Tidy { listener.ended() } else { listener.broke() };
            prop_assert!(last != Verdict::Hold);
        }
    }

    #[test]
    fn where_the_network_cuts_changes_nothing(pieces in pieces(), path in prop::sample::select(vec![RESPONSES, CHAT, CLAUDE])) {
        let roomy = Hold { bytes: 1 << 20, time: None };
        let asked = Asked { hold: roomy, withhold: FATAL, ..asked(path) };
        let stream: Vec<u8> = pieces.iter().flat_map(|(text, _)| text.bytes()).collect();
        let mut rest = stream.as_slice();
        let mut chunks = Vec::new();
        let mut sizes = pieces.iter().map(|(_, size)| *size).cycle();
        while !rest.is_empty() {
            let (chunk, after) = rest.split_at(sizes.next().unwrap_or(1).min(rest.len()));
            chunks.push(chunk);
            rest = after;
        }
        let whole = heard(asked, events(), [stream.as_slice()], Stop::Tidy);
        prop_assert_eq!(heard(asked, events(), chunks, Stop::Tidy), whole);
    }
}

#[test]
fn what_a_head_says_of_resending_is_not_about_an_event_of_its_stream() {
    let mut odd = events();
    odd.headers.insert(HeaderName::from_static("x-should-retry"), HeaderValue::from_static("true"));
    let stream = created() + &failed_event("model_not_found");
    let told = of_whole(asked(RESPONSES), odd, &stream, Stop::Tidy);
    assert_eq!(
        told,
        held("bad_request final InStream model_not_found"),
        "a word about the status, not the event"
    );
}

#[test]
fn a_fatal_event_may_repeat_the_request() {
    // Instructions and tools of an agent, in front of the error and behind it.
    let long = "x".repeat(100_000);
    let error = r#""error":{"code":"server_is_overloaded","message":"busy"}"#;
    for response in
        [format!(r#"{{"instructions":"{long}",{error}}}"#), format!(r#"{{{error},"instructions":"{long}"}}"#)]
    {
        let event = format!(
            "event: response.failed\ndata: {{\"type\":\"response.failed\",\"response\":{response}}}\n\n"
        );
        let roomy = |asked: Asked| Asked { hold: Hold { bytes: 256 * 1024, ..asked.hold }, ..asked };
        for pieces in [event.len(), 1000] {
            let mut first = listener(roomy(asked(RESPONSES)), events());
            let last =
                event.as_bytes().chunks(pieces).map(|piece| first.hear(piece, piece.len(), HEAD)).last();
            assert_eq!(in_words(&last.unwrap()), "at_capacity refused InStream server_is_overloaded");
            let mut later = listener(codex(), events());
            let output =
                b"event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\"}\n\n";
            assert_eq!(later.hear(output, output.len(), HEAD), Verdict::Pass);
            let last =
                event.as_bytes().chunks(pieces).map(|piece| later.hear(piece, piece.len(), HEAD)).last();
            let cut = format!("cut at {}: at_capacity refused InStream server_is_overloaded", output.len());
            assert_eq!(in_words(&last.unwrap()), cut);
        }
    }
}
