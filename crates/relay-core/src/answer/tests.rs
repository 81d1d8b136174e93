//! What each client is told at each end. No case invents a `Retry-After`: [`Own`] has no place for one.

use super::*;
use crate::dialect::{ALL, Heard, Parts, Reply, judge, route};
use crate::evidence::Evidence;
use crate::retry_after::Advice;

const TRIED: Tried =
    Tried { sends: 3, earlier: 0, took: Duration::from_millis(93_240), patience: Duration::from_secs(120) };

fn listener(kind: Kind) -> Listener<'static> {
    let path = match kind {
        Kind::Codex => "/v1/responses",
        Kind::ClaudeCode => "/v1/messages",
        Kind::GeminiCli | Kind::GoogleGenai => "/v1beta/models/m:generateContent",
        Kind::Ollama => "/api/chat",
        Kind::Stainless | Kind::Other => "/v1/chat/completions",
    };
    Listener {
        kind,
        dialect: route(&http::Method::POST, path).dialect,
        generation: true,
        streams: true,
        upstream: "api.example",
        circuits: "",
        tried: TRIED,
        has_answer: true,
        reported: false,
        lang: Lang::English,
    }
}

fn failure(told: Told, status: Option<u16>, fault: Fault, evidence: Evidence) -> Failure {
    let message = Some("Overloaded, try later".into());
    Failure { told, status, message, ..Failure::of_transport(fault, evidence) }
}

fn busy() -> Failure {
    failure(Told::ByStatus, Some(503), Fault::AtCapacity, Evidence::Refused)
}

fn overloaded() -> Failure {
    failure(Told::ByStatus, Some(529), Fault::Overloaded, Evidence::Refused)
}

fn throttled(advice: Advice) -> Failure {
    Failure { advice, ..failure(Told::ByStatus, Some(429), Fault::Throttled, Evidence::Refused) }
}

fn in_stream(code: &str, fault: Fault) -> Failure {
    let code = Some(code.into());
    Failure { code, by_code: true, ..failure(Told::InStream, Some(200), fault, Evidence::Refused) }
}

fn in_body() -> Failure {
    failure(Told::InBody, Some(200), Fault::Overloaded, Evidence::Refused)
}

fn failed() -> Failure {
    failure(Told::ByStatus, Some(500), Fault::ServerFailed, Evidence::Failed)
}

fn page() -> Failure {
    failure(Told::ByStatus, Some(200), Fault::ServerFailed, Evidence::Failed)
}

fn timed_out() -> Failure {
    failure(Told::ByStatus, Some(504), Fault::ServerFailed, Evidence::MaybeRan)
}

fn lost(code: &str) -> Failure {
    let words = "connection reset by peer";
    let code = Some(code.into());
    Failure { code, ..Failure::of_transport(Fault::BrokenStream, Evidence::MaybeRan).saying(words) }
}

fn silent() -> Failure {
    Failure::of_transport(Fault::NoAnswer, Evidence::NoAnswer)
}

fn unreached() -> Failure {
    Failure::of_transport(Fault::NeverSent, Evidence::NeverSent).saying("connection refused")
}

fn certificate() -> Failure {
    Failure { barred: Some(Bar::Certificate), ..unreached().saying("unknown issuer") }
}

fn gave_up(stop: Stop, failure: Failure) -> Ending {
    Ending::GaveUp(stop, Some(Box::new(failure)))
}

/// What is said, without the words.
fn shape(say: &Say) -> String {
    let refuses = |refuse| if refuse { ", no retry" } else { "" };
    match say {
        Say::Upstream(Touch { refuse_retry, status }) => {
            let status = status.map(|status| format!(" as {status}")).unwrap_or_default();
            format!("its own{status}{}", refuses(*refuse_retry))
        }
        Say::Cut => "cut".to_owned(),
        Say::Own(own) => {
            let kind = own.content_type.split([';', '/']).nth(1).unwrap_or("");
            let code = own.body.split(CODES_END).find_map(|part| CODES.iter().find(|code| part == **code));
            format!("{} {kind} {}{}", own.status, code.unwrap_or(&"-"), refuses(own.refuse_retry))
        }
    }
}

const CODES_END: [char; 4] = ['"', '[', ']', ' '];
const CODES: [&str; 12] = [
    "relay_stopping",
    "sends_exhausted",
    "patience_exhausted",
    "upstream_no_response",
    "upstream_closed_before_response",
    "upstream_reset_replay_refused",
    "upstream_error_replay_refused",
    "upstream_certificate_refused",
    "relay_credential_missing",
    "server_is_overloaded",
    "slow_down",
    "overloaded_error",
];

/// The columns. What is true of others is true of the clients of Gemini and Ollama, but for Gemini CLI's statuses.
const KINDS: [Kind; 4] = [Kind::Codex, Kind::ClaudeCode, Kind::Stainless, Kind::Other];

type Row = (&'static str, Ending, [&'static str; 4]);

fn check(rows: Vec<Row>) {
    let mut wrong = Vec::new();
    for (name, ending, expected) in rows {
        for (kind, expected) in KINDS.into_iter().zip(expected) {
            let told = shape(&say(&listener(kind), &ending));
            if told != expected {
                wrong.push(format!("{name}, {}: {told}, not {expected}", kind.name()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

const SPENT: Stop = Stop::SendsSpent;
const LONG: Stop = Stop::FloorTooFar;
const ITS_OWN: [&str; 4] = ["its own"; 4];

#[test]
#[rustfmt::skip]
fn what_goes_back_as_it_was() {
    let passed = |failure: Failure| Ending::Passed(Box::new(Failure { evidence: None, ..failure }));
    let returned = |failure: Failure| Ending::Returned(Box::new(failure));
    check(vec![
        ("a definite error", passed(failed()), ITS_OWN),
        ("a definite error in a 200", passed(in_body()), ITS_OWN),
        ("failed_sends spent", returned(failed()), ITS_OWN),
        ("failed in a stream", returned(in_stream("server_error", Fault::ServerFailed)), ITS_OWN),
        ("failed in a body", returned(in_body()), ITS_OWN),
        ("the grant spent", returned(timed_out()), ITS_OWN),
        ("the grant spent, lost", returned(lost("reset")), ["cut"; 4]),
        ("stopped", Ending::GaveUp(Stop::Draining, Some(Box::new(busy()))), ["cut"; 4]),
        ("stopped before a send", Ending::GaveUp(Stop::Draining, None), ["cut"; 4]),
        ("nobody is there", Ending::ClientLeft, ["cut"; 4]),
    ]);
}

#[test]
fn who_is_told_how_it_went_is_told_of_a_cut_in_words() {
    let returned = |failure: Failure| Ending::Returned(Box::new(failure));
    let refused = |why, failure: Failure| Ending::Refused(why, Box::new(failure));
    for (ending, said, unreported) in [
        (returned(lost("reset")), "502 json upstream_reset_replay_refused, no retry", "cut"),
        (returned(timed_out()), "its own", "its own"),
        (Ending::GaveUp(Stop::Draining, Some(Box::new(busy()))), "503 json relay_stopping, no retry", "cut"),
        (Ending::GaveUp(Stop::Draining, None), "503 json relay_stopping, no retry", "cut"),
        (
            Ending::GaveUp(Stop::Draining, Some(Box::new(lost("closed")))),
            "502 json upstream_closed_before_response, no retry",
            "cut",
        ),
        (
            refused(Why::MayHaveRun, lost("closed")),
            "502 json upstream_closed_before_response, no retry",
            "429 json upstream_closed_before_response, no retry",
        ),
        (
            refused(Why::StillRunning, timed_out()),
            "504 json upstream_no_response, no retry",
            "429 json upstream_no_response, no retry",
        ),
    ] {
        for (reported, said) in [(true, said), (false, unreported)] {
            let listener = Listener { reported, ..listener(Kind::Other) };
            assert_eq!(shape(&say(&listener, &ending)), said, "{ending:?}");
        }
    }
}

#[test]
fn where_every_breaker_is_open_each_upstream_is_named() {
    let shut_out = [gave_up(Stop::CircuitsOpen, busy()), Ending::GaveUp(Stop::CircuitsOpen, None)];
    for ending in shut_out {
        for (kind, status) in [(Kind::Codex, 400), (Kind::ClaudeCode, 503), (Kind::Other, 503)] {
            let circuits = "one (the service failed; asked again in 20s), other (…)";
            let Say::Own(own) = say(&Listener { circuits, ..listener(kind) }, &ending) else { panic!() };
            assert_eq!((own.status, own.refuse_retry), (status, true));
            assert!(own.body.contains(circuits) && own.body.contains("circuits_open"), "{}", own.body);
        }
    }
}

#[test]
fn a_spent_quota_whose_answer_is_not_at_hand_is_told_in_own_words_with_its_status() {
    let told = failure(Told::ByStatus, Some(429), Fault::QuotaSpent, Evidence::Refused);
    let spent = Box::new(Failure { evidence: None, ..told });
    for ending in [Ending::Passed(spent.clone()), Ending::Parked(spent)] {
        for kind in [Kind::Codex, Kind::ClaudeCode, Kind::GeminiCli, Kind::Other] {
            assert_eq!(say(&listener(kind), &ending), Say::Upstream(Touch::default()), "its own");
            let Say::Own(own) = say(&Listener { has_answer: false, ..listener(kind) }, &ending) else {
                panic!("own words")
            };
            // Gemini CLI sends a 429 again, and Codex prints a 400 whole.
            let status = if matches!(kind, Kind::Codex | Kind::GeminiCli) { 400 } else { 429 };
            assert_eq!((own.status, own.refuse_retry), (status, true), "{kind:?}");
            assert!(own.body.contains("Overloaded, try later"), "{}", own.body);
        }
    }
}

#[test]
#[rustfmt::skip]
fn what_is_said_where_sends_or_patience_ran_out() {
    let final_ = "its own, no retry";
    let capacity = "200 event-stream server_is_overloaded, no retry";
    let plain = "400 plain sends_exhausted, no retry";
    let patience = "400 plain patience_exhausted, no retry";
    let told = Advice::Wait(Duration::from_secs(3600));
    check(vec![
        // ending, then Codex, Claude Code, Stainless, others
        ("503", gave_up(SPENT, busy()), [capacity, final_, final_, final_]),
        ("529", gave_up(Stop::PatienceSpent, overloaded()), [capacity, final_, final_, final_]),
        ("503, asks for an hour", gave_up(LONG, Failure { advice: told, ..busy() }), [capacity, final_, final_, final_]),
        ("429, asks for an hour", gave_up(LONG, throttled(told)), [patience, final_, final_, final_]),
        ("429, silent", gave_up(SPENT, throttled(Advice::Silent)), [final_, final_, final_, final_]),
        ("429, Retry-After: 0", gave_up(SPENT, throttled(Advice::Useless)), [plain, final_, final_, final_]),
        ("500", gave_up(SPENT, failed()), [plain, final_, final_, final_]),
        ("504", gave_up(SPENT, timed_out()), [plain, final_, final_, final_]),
        ("a page", gave_up(SPENT, page()), [plain, "its own as 502, no retry", "its own as 502, no retry", "its own as 502, no retry"]),
        ("in a body", gave_up(SPENT, in_body()), [capacity, "its own as 529, no retry", "its own as 529, no retry", "its own as 529, no retry"]),
        ("in a stream", gave_up(SPENT, in_stream("server_is_overloaded", Fault::AtCapacity)),
            ["its own", "503 json server_is_overloaded, no retry", final_, final_]),
        ("in a stream, no capacity", gave_up(SPENT, in_stream("slow_down", Fault::Throttled)),
            [plain, "429 json slow_down, no retry", final_, final_]),
        ("unreached", gave_up(SPENT, unreached()),
            [plain, "502 json sends_exhausted, no retry", "502 json sends_exhausted, no retry", "502 json sends_exhausted, no retry"]),
        ("lost", gave_up(Stop::PatienceSpent, lost("closed")),
            [patience, "429 json patience_exhausted, no retry", "429 json patience_exhausted, no retry", "429 json patience_exhausted, no retry"]),
        ("no send allowed", Ending::GaveUp(SPENT, None),
            [plain, "502 json sends_exhausted, no retry", "502 json sends_exhausted, no retry", "502 json sends_exhausted, no retry"]),
        ("a first wait too long", Ending::GaveUp(LONG, None),
            [capacity, "503 json patience_exhausted, no retry", "503 json patience_exhausted, no retry", "503 json patience_exhausted, no retry"]),
    ]);
}

#[test]
#[rustfmt::skip]
fn what_is_said_where_the_relay_refuses() {
    let refused = |why, failure| Ending::Refused(why, Box::new(failure));
    let late = Failure { evidence: Some(Evidence::MaybeRan), ..in_stream("server_error", Fault::ServerFailed) };
    let all = |codex: &'static str, others: &'static str| [codex, others, others, others];
    check(vec![
        ("reset", refused(Why::MayHaveRun, lost("reset")),
            all("400 plain upstream_reset_replay_refused, no retry", "429 json upstream_reset_replay_refused, no retry")),
        ("closed", refused(Why::MayHaveRun, lost("closed")),
            all("400 plain upstream_closed_before_response, no retry", "429 json upstream_closed_before_response, no retry")),
        // Who obeys `x-should-retry` gets the service's own answer; others might send every 5xx again.
        ("504", refused(Why::MayHaveRun, timed_out()),
            ["400 plain upstream_error_replay_refused, no retry", "its own, no retry", "its own, no retry", "429 json upstream_error_replay_refused, no retry"]),
        ("late in a stream", refused(Why::MayHaveRun, late),
            all("400 plain upstream_error_replay_refused, no retry", "429 json upstream_error_replay_refused, no retry")),
        ("504 with a code of its own", refused(Why::MayHaveRun, Failure { code: Some("reset".into()), ..timed_out() }),
            ["400 plain upstream_error_replay_refused, no retry", "its own, no retry", "its own, no retry", "429 json upstream_error_replay_refused, no retry"]),
        ("silent", refused(Why::StillRunning, silent()),
            all("400 plain upstream_no_response, no retry", "429 json upstream_no_response, no retry")),
        ("certificate", refused(Why::Barred(Bar::Certificate), certificate()),
            all("400 plain upstream_certificate_refused, no retry", "502 json upstream_certificate_refused, no retry")),
        ("credential", refused(Why::Barred(Bar::Credential), certificate()),
            all("400 plain relay_credential_missing, no retry", "502 json relay_credential_missing, no retry")),
    ]);
}

#[test]
fn gemini_cli_gets_no_status_that_it_sends_again_where_the_request_may_have_run() {
    let told = |ending: &Ending| shape(&say(&listener(Kind::GeminiCli), ending));
    let refused = |why, failure| Ending::Refused(why, Box::new(failure));
    let reset = "400 json upstream_reset_replay_refused, no retry";
    assert_eq!(told(&refused(Why::MayHaveRun, lost("reset"))), reset);
    assert_eq!(told(&refused(Why::StillRunning, silent())), "400 json upstream_no_response, no retry");
    let certificate = refused(Why::Barred(Bar::Certificate), certificate());
    assert_eq!(told(&certificate), "400 json upstream_certificate_refused, no retry");
    // What was refused may be sent again, and it decides for itself.
    assert_eq!(told(&gave_up(SPENT, busy())), "its own, no retry");
    assert_eq!(told(&gave_up(SPENT, unreached())), "502 json sends_exhausted, no retry");
}

#[test]
fn codex_off_the_responses_path_is_a_client_like_others() {
    for listener in [
        Listener { generation: false, ..listener(Kind::Codex) },
        Listener { kind: Kind::Codex, ..listener(Kind::Other) },
    ] {
        assert_eq!(shape(&say(&listener, &gave_up(SPENT, busy()))), "its own, no retry");
    }
    let whole = Listener { streams: false, ..listener(Kind::Codex) };
    assert_eq!(shape(&say(&whole, &gave_up(SPENT, busy()))), "400 plain sends_exhausted, no retry");
}

fn body(kind: Kind, ending: &Ending) -> String {
    match say(&listener(kind), ending) {
        Say::Own(own) => own.body,
        other @ (Say::Upstream(_) | Say::Cut) => panic!("{other:?}"),
    }
}

/// The words alone, which are the same for every client; at most three lines.
fn words(ending: &Ending) -> String {
    let codex = body(Kind::Codex, ending);
    assert!(codex.lines().count() <= 3, "{codex}");
    let other: serde_json::Value = serde_json::from_str(&body(Kind::Other, ending)).unwrap();
    let said = other["error"]["message"].as_str().unwrap();
    let code = other["error"]["code"].as_str().unwrap();
    assert_eq!(codex, format!("{said} [{code}]"));
    codex
}

#[test]
fn what_never_arrived_is_no_question_of_patience() {
    for stop in [Stop::SendsSpent, Stop::PatienceSpent, Stop::FloorTooFar] {
        let failure = Failure::of_transport(Fault::NeverSent, Evidence::NeverSent);
        let said = words(&gave_up(stop, failure));
        assert!(said.contains("check that this is the right address"), "{said}");
        assert!(!said.contains("raise"), "{said}");
    }
}

#[test]
fn a_credential_that_the_relay_lacks_is_not_blamed_on_the_service() {
    let mut failure = Failure::of_transport(Fault::NeverSent, Evidence::NeverSent);
    failure = failure.saying("credential `team`: auth.example answered 503".to_owned());
    failure.code = Some(CREDENTIAL.into());
    assert_eq!(
        words(&gave_up(Stop::PatienceSpent, failure.clone())),
        "steady-relay: the relay's own credential for api.example cannot be had: credential `team`: auth.example \
         answered 503.\n\
         hint: where it comes from is slow or has trouble: try again later, or raise `patience`; if that goes on, \
         `steady-relay doctor` checks the `[credential.NAME]` of the relay's settings [patience_exhausted]"
    );
    let barred = words(&Ending::Refused(Why::Barred(Bar::Credential), Box::new(failure)));
    assert!(barred.contains("hint: mend the `[credential.NAME]`"), "{barred}");
}

#[test]
fn the_words_say_who_what_and_what_to_do() {
    assert_eq!(
        words(&gave_up(Stop::PatienceSpent, lost("closed"))),
        "steady-relay: gave up after 3 sends in 93.2 s: api.example could not answer (the answer broke off: \
         connection reset by peer).\n\
         hint: patience is 120 s; raise `patience`, or choose another model [patience_exhausted]"
    );
    assert_eq!(
        words(&gave_up(SPENT, unreached())),
        "steady-relay: gave up after 3 sends in 93.2 s: api.example could not answer (the service could not be \
         reached: connection refused).\n\
         hint: check that this is the right address, that the service runs, and that the network leads there \
         [sends_exhausted]"
    );
    assert_eq!(
        words(&Ending::Refused(Why::MayHaveRun, Box::new(lost("reset")))),
        "steady-relay: api.example: the connection ended without a whole answer (3 sends, 93.2 s); the request \
         may have run, so it was not sent again (ambiguous_resends = 0).\n\
         hint: try again yourself, or set `ambiguous_resends = 1` [upstream_reset_replay_refused]"
    );
    assert_eq!(
        words(&Ending::Refused(Why::StillRunning, Box::new(silent()))),
        "steady-relay: api.example did not answer in time (3 sends, 93.2 s); the request is probably still \
         running there, so it was not sent again.\n\
         hint: try again later, or raise `timeouts.first_byte` and `timeouts.idle` [upstream_no_response]"
    );
    assert_eq!(
        words(&Ending::Refused(Why::Barred(Bar::Certificate), Box::new(certificate()))),
        "steady-relay: the certificate of api.example was not accepted: unknown issuer.\n\
         hint: give your company's CA by `ca_file` or SSL_CERT_FILE; checking cannot be turned off \
         [upstream_certificate_refused]"
    );
    assert_eq!(
        words(&Ending::GaveUp(SPENT, None)),
        "steady-relay: this call may not be sent: its profile allows no send.\n\
         hint: raise `sends` of the profile [sends_exhausted]"
    );
    let resent = Listener { tried: Tried { sends: 0, earlier: 3, ..TRIED }, ..listener(Kind::Codex) };
    let Say::Own(own) = say(&resent, &Ending::GaveUp(SPENT, None)) else { panic!() };
    assert_eq!(
        own.body,
        "steady-relay: this call was not sent: 3 sends of it went before, and its profile allows no more.\n\
         hint: try again later, or raise `sends` of the profile [sends_exhausted]"
    );
}

#[test]
fn the_words_of_an_answer_are_quoted() {
    let told = Advice::Wait(Duration::from_secs(3600));
    assert_eq!(
        body(Kind::Codex, &gave_up(LONG, throttled(told))),
        "steady-relay: gave up after 3 sends in 93.2 s: api.example answered 429, \"Overloaded, try later\".\n\
         hint: the service asks for a wait of 3600 s, patience is 120 s; come back then, or raise `patience` \
         [patience_exhausted]"
    );
    let one = Listener { tried: Tried { sends: 1, ..TRIED }, ..listener(Kind::Codex) };
    let Say::Own(own) = say(&one, &gave_up(SPENT, Failure { message: None, ..failed() })) else { panic!() };
    let start =
        "steady-relay: gave up after 1 send in 93.2 s: api.example answered 500, \"the service failed\".";
    assert!(own.body.starts_with(start), "{}", own.body);
}

#[test]
fn the_capacity_answer_of_codex() {
    assert_eq!(
        body(Kind::Codex, &gave_up(SPENT, busy())),
        "event: response.failed\n\
         data: {\"response\":{\"error\":{\"code\":\"server_is_overloaded\",\"message\":\"Overloaded, try later\"},\
         \"id\":\"resp_steady_relay\",\"object\":\"response\",\"status\":\"failed\"},\"sequence_number\":0,\
         \"type\":\"response.failed\"}\n\n"
    );
}

#[test]
fn the_answer_in_each_dialect() {
    let ending = gave_up(SPENT, in_stream("overloaded_error", Fault::Overloaded));
    assert_eq!(
        body(Kind::ClaudeCode, &ending),
        r#"{"error":{"code":"overloaded_error","message":"Overloaded, try later","type":"overloaded_error"},"type":"error"}"#
    );
    let refused = Ending::Refused(Why::StillRunning, Box::new(silent()));
    let openai = body(Kind::Stainless, &refused);
    assert!(
        openai.starts_with(r#"{"error":{"code":"upstream_no_response","message":"steady-relay: "#),
        "{openai}"
    );
    assert!(openai.ends_with(r#","param":null,"type":"server_error"}}"#), "{openai}");
}

#[test]
fn what_was_answered_before_is_not_forgotten() {
    let earlier = Some(Box::new(busy()));
    for ending in [
        gave_up(SPENT, Failure { earlier: earlier.clone(), ..lost("reset") }),
        Ending::Refused(Why::MayHaveRun, Box::new(Failure { earlier: earlier.clone(), ..lost("reset") })),
        Ending::Refused(Why::StillRunning, Box::new(Failure { earlier: earlier.clone(), ..silent() })),
        Ending::Refused(Why::Barred(Bar::Certificate), Box::new(Failure { earlier, ..certificate() })),
    ] {
        let words = words(&ending);
        let lines: Vec<_> = words.lines().collect();
        assert_eq!(lines.len(), 3, "{words}");
        assert_eq!(lines[1], "before that: api.example answered 503, \"Overloaded, try later\"");
        assert!(lines[2].starts_with("hint: "), "{words}");
    }
}

#[test]
fn secrets_and_home_folders_are_not_repeated() {
    let leaky = "bad key sk-proj-SECRETSECRET\nin /home/jane/.codex/auth.json\r\nBearer abcdef123456";
    let failures = [
        Failure { message: Some(leaky.into()), ..failed() },
        Failure { message: Some(leaky.into()), ..busy() },
        Failure { message: Some(leaky.into()), ..in_stream("slow_down", Fault::Throttled) },
        Failure { earlier: Some(Box::new(Failure { message: Some(leaky.into()), ..busy() })), ..silent() },
        lost("reset").saying(leaky),
        certificate().saying(leaky),
    ];
    for failure in failures {
        let failure = Box::new(failure);
        for ending in [
            Ending::GaveUp(Stop::PatienceSpent, Some(failure.clone())),
            Ending::Refused(Why::MayHaveRun, failure.clone()),
            Ending::Refused(Why::StillRunning, failure.clone()),
            Ending::Refused(Why::Barred(Bar::Certificate), failure),
        ] {
            for kind in Kind::ALL {
                let Say::Own(own) = say(&listener(kind), &ending) else { continue };
                for secret in ["SECRET", "jane", "abcdef"] {
                    assert!(!own.body.contains(secret), "{}", own.body);
                }
                if own.content_type.starts_with("text/plain") {
                    assert!(own.body.lines().count() <= 3, "{}", own.body);
                }
            }
        }
    }
}

#[test]
fn long_words_are_cut() {
    let long = Failure { message: Some("word ".repeat(1000).into()), ..failed() };
    assert!(body(Kind::Codex, &gave_up(SPENT, long)).len() < 600);
}

/// Another relay in front of this one reads it too, and must not take it for a failure that heals.
#[test]
fn an_answer_that_is_lost_behind_an_early_stream_is_sent_again_by_nobody() {
    for dialect in ALL.into_iter().filter(|dialect| dialect.heartbeat().is_some()) {
        let name = dialect.name();
        let text = not_streamed(Lang::English, dialect, "the service answered 200 whole");
        let mut events = 0;
        crate::sse::Splitter::new(1 << 20).push(text.as_bytes(), |event| {
            events += 1;
            // A dialect that nobody knows has no failures of its own.
            assert!(
                name == "generic" || dialect.hear(&event, &mut Parts::default()) == Heard::Fault,
                "{name}: {text}"
            );
            let headers = http::HeaderMap::new();
            let judged = judge(
                dialect,
                &Reply {
                    told: Told::InStream,
                    status: 200,
                    headers: &headers,
                    body: event.data,
                    took: Duration::ZERO,
                    wall: std::time::SystemTime::UNIX_EPOCH,
                    rules: &[],
                },
            );
            assert_eq!(judged.evidence, None, "{name}: {judged:?}");
            let told = judged.message.unwrap_or_default();
            assert!(told.contains("may have been billed") && told.contains("\nhint: "), "{name}: {told}");
        });
        assert_eq!(events, 1, "{name}: {text}");
    }
}

/// What is said on a WebSocket, without the words.
fn in_message(kind: Kind, has_answer: bool, ending: &Ending) -> String {
    let listener = Listener { has_answer, ..listener(kind) };
    match say_in_message(&listener, ending) {
        SayMessage::Upstream => "its own".to_owned(),
        SayMessage::Close => "close".to_owned(),
        SayMessage::Own(message) => {
            let message: serde_json::Value = serde_json::from_str(&message).unwrap();
            let code = message.pointer("/response/error/code").unwrap_or(&message["status"]);
            format!("{} {code}", message["type"].as_str().unwrap())
        }
    }
}

#[test]
fn what_is_said_on_a_websocket() {
    let refused = |why, failure| Ending::Refused(why, Box::new(failure));
    let told = failure(Told::InStream, None, Fault::AtCapacity, Evidence::Refused);
    let armed = Failure { advice: Advice::Wait(Duration::from_secs(9)), ..told.clone() };
    let unfit = Failure { barred: Some(Bar::Unfit), ..lost("malformed") };
    let rows = [
        ("definite", Ending::Passed(Box::new(told.clone())), true, ["its own", "its own"]),
        ("definite, by a close", Ending::Passed(Box::new(lost("closed"))), false, ["close", "close"]),
        ("returned", Ending::Returned(Box::new(told.clone())), true, ["its own", "its own"]),
        ("returned, lost", Ending::Returned(Box::new(lost("reset"))), false, ["close", "close"]),
        (
            "may have run",
            refused(Why::MayHaveRun, lost("reset")),
            false,
            [r#"response.failed "invalid_prompt""#, "error 429"],
        ),
        (
            "unfit",
            refused(Why::Barred(Bar::Unfit), unfit),
            false,
            [r#"response.failed "invalid_prompt""#, "error 429"],
        ),
        (
            "gave up",
            gave_up(Stop::SendsSpent, told),
            true,
            [r#"response.failed "server_is_overloaded""#, "its own"],
        ),
        // Its own words would have Codex send it again.
        (
            "gave up, told when",
            gave_up(Stop::FloorTooFar, armed),
            true,
            [r#"response.failed "server_is_overloaded""#, "its own"],
        ),
        (
            "unsent",
            Ending::GaveUp(Stop::PatienceSpent, None),
            false,
            [r#"response.failed "server_is_overloaded""#, "error 503"],
        ),
        ("stopping", Ending::GaveUp(Stop::Draining, None), false, ["close", "close"]),
    ];
    for (name, ending, has_answer, expected) in rows {
        let said = [Kind::Codex, Kind::Other].map(|kind| in_message(kind, has_answer, &ending));
        assert_eq!(said, expected, "{name}");
    }
}

#[test]
fn in_chinese_the_same_is_said() {
    let tried = |tried| Listener { tried, lang: Lang::Chinese, ..listener(Kind::Codex) };
    let words = |ending: &Ending| match say(&tried(TRIED), ending) {
        Say::Own(own) => own.body,
        other @ (Say::Upstream(_) | Say::Cut) => panic!("{other:?}"),
    };
    let refused = |why, failure| words(&Ending::Refused(why, Box::new(failure)));
    let told = Advice::Wait(Duration::from_secs(3600));
    let said = [
        words(&gave_up(SPENT, Failure { earlier: Some(Box::new(busy())), ..failed() })),
        words(&gave_up(LONG, throttled(told))),
        words(&gave_up(SPENT, Failure::of_transport(Fault::NeverSent, Evidence::NeverSent))),
        words(&gave_up(Stop::PatienceSpent, failed())),
        words(&Ending::GaveUp(SPENT, None)),
        refused(Why::StillRunning, Failure::of_transport(Fault::NoAnswer, Evidence::MaybeRan)),
        refused(Why::MayHaveRun, Failure::of_transport(Fault::BrokenStream, Evidence::MaybeRan)),
        refused(Why::Barred(Bar::Certificate), certificate()),
        refused(Why::Barred(Bar::Proxy), certificate()),
        refused(Why::Barred(Bar::Unfit), certificate()),
        refused(Why::Barred(Bar::Credential), certificate()),
    ];
    let expected = [
        "steady-relay：在 93.2 秒内发送 3 次后放弃：api.example 返回 500，“Overloaded, try later”。 / 此前：api.example 返回 503，“Overloaded, try later” / 提示：调大该策略的 `sends`，或换一个模型 [sends_exhausted]",
        "steady-relay：在 93.2 秒内发送 3 次后放弃：api.example 返回 429，“Overloaded, try later”。 / 提示：服务要求等待 3600 秒，而 patience 为 120 秒；届时再来，或调大 `patience` [patience_exhausted]",
        "steady-relay：在 93.2 秒内发送 3 次后放弃：api.example 无法响应（无法连接到服务）。 / 提示：检查地址是否正确、服务是否在运行、网络是否可达 [sends_exhausted]",
        "steady-relay：在 93.2 秒内发送 3 次后放弃：api.example 返回 500，“Overloaded, try later”。 / 提示：patience 为 120 秒；请调大 `patience`，或换一个模型 [patience_exhausted]",
        "steady-relay：此请求不能发送：其策略不允许任何发送。 / 提示：调大该策略的 `sends` [sends_exhausted]",
        "steady-relay：api.example 未及时响应（发送 3 次，93.2 秒）；请求很可能仍在那里执行，所以没有重新发送。 / 提示：稍后再试，或调大 `timeouts.first_byte` 和 `timeouts.idle` [upstream_no_response]",
        "steady-relay：api.example：连接在响应完整之前中断（发送 3 次，93.2 秒）；请求可能已经执行，所以没有重新发送（ambiguous_resends = 0）。 / 提示：请自行重试，或设置 `ambiguous_resends = 1` [upstream_closed_before_response]",
        "steady-relay：api.example 的证书不被接受：unknown issuer。 / 提示：用 `ca_file` 或 SSL_CERT_FILE 指定贵公司的 CA；证书检查无法关闭 [upstream_certificate_refused]",
        "steady-relay：通往 api.example 的代理不让中继通过：unknown issuer。 / 提示：把代理的用户名和密码写入 HTTPS_PROXY 或键 `proxy`，让代理放行此连接，或设置 `proxy = \"none\"` [proxy_refused]",
        "steady-relay：api.example 的响应无法转交：unknown issuer（发送 3 次，93.2 秒）；请求可能已经执行，所以没有重新发送。 / 提示：如果是过长，请调大 `limits.message`；或为该服务设置 `websocket = \"refuse\"` [upstream_answer_unfit]",
        "steady-relay：无法取得中继自己用于 api.example 的凭据：unknown issuer。 / 提示：请修正中继设置中的 `[credential.NAME]`；`steady-relay doctor` 会逐一检查 [relay_credential_missing]",
    ];
    assert_eq!(said.map(|said| said.replace('\n', " / ")), expected);
}
