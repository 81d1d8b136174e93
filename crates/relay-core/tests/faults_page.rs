//! `docs/faults.md` is for people, and it is true: every cell of its tables is compared with the code.

#![expect(clippy::panic, reason = "a test says so where the page cannot be read")]

use std::time::{Duration, UNIX_EPOCH};

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use relay_core::budget::Spent;
use relay_core::call::{Call, Ending, Plan, Step};
use relay_core::decide::{Right, right};
use relay_core::dialect::{Reply, judge, route};
use relay_core::evidence::{Nature, Operation};
use relay_core::failure::{Bar, Failure, Told};
use relay_core::preamble::{Asked, Head, Hold, Preamble, Verdict};
use relay_core::{ClientLimit, Curve, Dice, Event, Evidence, Fault, Moment, Profile};

const PAGE: &str = include_str!("../../../docs/faults.md");

/// The rows of the first table under a heading, the row of its own heads first.
fn table(heading: &str) -> Vec<Vec<String>> {
    let start = PAGE.find(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("no heading {heading}"));
    let cells = |line: &str| {
        line.trim_matches('|').split(" | ").map(|cell| cell.trim().replace('`', "")).collect::<Vec<_>>()
    };
    let rows: Vec<_> = PAGE[start + 4..]
        .lines()
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'))
        .filter(|line| !line.starts_with("|---"))
        .map(cells)
        .collect();
    assert!(rows.len() > 1, "no table under {heading}");
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "a row of another width under {heading}");
    rows
}

fn body_of(rows: &[Vec<String>]) -> &[Vec<String>] {
    &rows[1..]
}

const fn in_words(right: Right) -> &'static str {
    match right {
        Right::Free => "freely",
        Right::Failed => "as a failed send",
        Right::Grant => "by a grant",
        Right::Never => "never",
    }
}

/// What the code says to these requests, which must be the same for all of them.
fn says(evidence: Evidence, natures: &[Nature], failure: &Failure) -> String {
    let said: Vec<_> = natures.iter().map(|nature| in_words(right(evidence, nature, failure))).collect();
    assert!(said.iter().all(|word| *word == said[0]), "{evidence:?} {natures:?}");
    said[0].to_owned()
}

#[test]
fn the_table_of_resends() {
    let generation = Nature { operation: Operation::Generation, self_contained: true, kept: true };
    let pure = Nature { operation: Operation::Pure, ..generation };
    let other = Nature { operation: Operation::Other, ..generation };
    let stateful = |nature: Nature| Nature { self_contained: false, ..nature };
    let lost = |nature: Nature| Nature { kept: false, ..nature };
    let rows = table("May it be sent again?");
    let names: Vec<_> = body_of(&rows).iter().map(|row| row[0].as_str()).collect();
    assert_eq!(names, Evidence::ALL.map(Evidence::name));
    for (row, evidence) in body_of(&rows).iter().zip(Evidence::ALL) {
        let plain = Failure::of_transport(Fault::ServerFailed, evidence);
        let throttle = Failure { status: Some(429), ..plain.clone() };
        let capacity = Failure { fault: Fault::AtCapacity, by_code: true, ..plain.clone() };
        let certificate = Failure { barred: Some(Bar::Certificate), ..plain.clone() };
        let by_code = says(evidence, &[other], &capacity);
        assert_eq!(by_code, says(evidence, &[other], &throttle), "a 429 and a capacity code weigh the same");
        let expected = [
            evidence.name().to_owned(),
            says(evidence, &[generation], &plain),
            says(evidence, &[stateful(generation)], &plain),
            says(evidence, &[pure, stateful(pure)], &plain),
            says(evidence, &[other, stateful(other)], &plain),
            by_code,
            says(evidence, &[lost(generation), lost(pure), lost(other)], &throttle),
            says(evidence, &[generation], &certificate),
        ];
        assert_eq!(row.as_slice(), expected);
    }
}

#[test]
fn the_list_of_faults() {
    let rows = table("The faults");
    let expected = Fault::ALL.map(|fault| {
        let heals = if fault.heals_by_waiting() { "yes" } else { "no" };
        vec![fault.name().to_owned(), fault.meaning().to_owned(), heals.to_owned()]
    });
    assert_eq!(body_of(&rows), expected);
}

/// An answer as the first cell has it: a status, then headers.
fn answer(cell: &str) -> (u16, HeaderMap) {
    let mut parts = cell.split(", ");
    let status = parts.next().and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{cell}"));
    let headers = parts.map(|header| {
        let (name, value) = header.split_once(": ").unwrap_or_else(|| panic!("{cell}"));
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap_or_else(|_| panic!("{cell}"));
        (name, HeaderValue::from_str(value).unwrap_or_else(|_| panic!("{cell}")))
    });
    (status, headers.collect())
}

fn evidence_in_words(failure: &Failure) -> String {
    failure.evidence.map_or("final", Evidence::name).to_owned()
}

/// Every dialect: what is said on this page holds in all of them.
const PATHS: [&str; 6] = [
    "/v1/responses",
    "/v1/chat/completions",
    "/v1/messages",
    "/v1beta/models/m:generateContent",
    "/api/chat",
    "/v1/anything",
];

/// What stands in the first cell of a success that is a page.
const WEB_PAGE: &str = "200, a page";

#[test]
fn the_meaning_of_a_page() {
    let rows = table("What a status says");
    let row = rows.iter().find(|row| row[0] == WEB_PAGE).expect("it has a row");
    for (path, streams) in PATHS[..5].iter().flat_map(|path| [(path, false), (path, true)]) {
        let judged = |took| {
            let sent = Moment::after_start(Duration::from_secs(1));
            let hold = Hold { bytes: 1024, time: None };
            let dialect = route(&Method::POST, path).dialect;
            let asked = Asked { dialect, generation: true, streams, hold, withhold: &[] };
            let html = HeaderValue::from_static("text/html; charset=utf-8");
            let headers = [(CONTENT_TYPE, html)].into_iter().collect();
            let arrived = sent + Duration::from_secs(took);
            let head = Head { status: StatusCode::OK, headers, bodiless: false, sent, arrived };
            let mut listener = Preamble::new(asked, head, UNIX_EPOCH);
            assert_eq!(listener.at_head(), Verdict::Hold);
            match listener.hear(b"\n<!doctype html>", 16, arrived) {
                Verdict::Fault(failure) => *failure,
                other @ (Verdict::Hold | Verdict::Pass | Verdict::Cut { .. }) => panic!("{other:?}"),
            }
        };
        let (prompt, slow) = (judged(15), judged(16));
        let says = [
            WEB_PAGE.to_owned(),
            prompt.fault.name().to_owned(),
            evidence_in_words(&prompt),
            evidence_in_words(&slow),
        ];
        assert_eq!(row.as_slice(), says, "{path}");
    }
}

#[test]
fn the_meaning_of_statuses() {
    for row in body_of(&table("What a status says")).iter().filter(|row| row[0] != WEB_PAGE) {
        let (status, headers) = answer(&row[0]);
        for path in PATHS {
            let judged = |took| {
                let wall = UNIX_EPOCH + Duration::from_secs(1_795_977_660);
                let (told, took) = (Told::ByStatus, Duration::from_secs(took));
                let reply = Reply { told, status, headers: &headers, body: b"", took, wall, rules: &[] };
                judge(route(&Method::POST, path).dialect, &reply)
            };
            let (prompt, slow) = (judged(15), judged(16));
            assert_eq!(prompt.fault, slow.fault);
            let says = [
                row[0].clone(),
                prompt.fault.name().to_owned(),
                evidence_in_words(&prompt),
                evidence_in_words(&slow),
            ];
            assert_eq!(row.as_slice(), says, "{path}");
        }
    }
}

#[test]
fn the_meaning_of_codes() {
    let (headers, took) = (HeaderMap::new(), Duration::from_secs(1));
    for row in body_of(&table("What a code says")) {
        let code = &row[0];
        let value = if code.parse::<u16>().is_ok() { code.clone() } else { format!("\"{code}\"") };
        for path in PATHS {
            for (told, body) in [
                (Told::InBody, format!(r#"{{"error":{{"message":"words","code":{value}}}}}"#)),
                (Told::InStream, format!(r#"{{"type":"error","code":{value},"message":"words"}}"#)),
            ] {
                let body = body.as_bytes();
                let wall = UNIX_EPOCH;
                let reply = Reply { told, status: 200, headers: &headers, body, took, wall, rules: &[] };
                let failure = judge(route(&Method::POST, path).dialect, &reply);
                let says = [code.clone(), failure.fault.name().to_owned(), evidence_in_words(&failure)];
                assert_eq!(row.as_slice(), says, "{path} {told:?}");
            }
        }
    }
}

const NAMES: [&str; 4] = ["interactive", "batch", "patient", "strict"];

/// The profiles that ship, in the order of their names.
const fn profiles() -> [Profile; 4] {
    [Profile::interactive(), Profile::batch(), Profile::patient(), Profile::strict()]
}

fn in_seconds(span: Duration) -> String {
    format!("{} s", span.as_secs_f64())
}

fn curve_in_words(curve: &Curve) -> String {
    let Curve { base, factor, cap, jitter } = curve;
    format!("{} ×{factor}, cap {}, +0–{}", in_seconds(*base), in_seconds(*cap), in_seconds(*jitter))
}

#[test]
fn the_numbers_of_the_profiles() {
    let limit = |it: &Profile| match it.client_limit {
        ClientLimit::Replaces => "replaces it",
        ClientLimit::Shortens => "shortens it",
        ClientLimit::Ignored => "is ignored",
    };
    let count = |sends: Option<u32>| sends.map_or("no count".to_owned(), |sends| sends.to_string());
    let resend = |it: &Profile| if it.serves_resends { "is served once" } else { "is refused" };
    let says = |it: &Profile| {
        [
            ("sends", count(it.sends)),
            ("sends in the gate", count(it.most_sends())),
            ("failed_sends", it.failed_sends.to_string()),
            ("ambiguous_resends", it.ambiguous_resends.to_string()),
            ("patience", in_seconds(it.patience)),
            ("a client's own limit", limit(it).to_owned()),
            ("a re-send after the end", resend(it).to_owned()),
            ("curve", curve_in_words(&it.curve)),
            ("curve of overloaded", curve_in_words(&it.overloaded)),
            ("least wait on a useless value", in_seconds(it.useless_floor)),
        ]
    };
    let rows = table("How hard it tries");
    assert_eq!(rows[0][1..], NAMES);
    for (column, profile) in profiles().iter().enumerate() {
        let listed: Vec<_> =
            body_of(&rows).iter().map(|row| (row[0].as_str(), row[column + 1].clone())).collect();
        assert_eq!(listed, says(profile), "{}", NAMES[column]);
    }
}

struct NoChance;
impl Dice for NoChance {
    fn share(&mut self) -> f64 {
        0.0
    }
}

/// The waits of a call whose every send ends in this fault, in a profile without a client's limit and without its gate.
fn waits(fault: Fault, profile: Profile) -> Vec<f64> {
    let profile = Profile { gate: None, ..profile };
    let evidence = if fault == Fault::ServerFailed {
        Evidence::Failed
    } else if fault == Fault::NeverSent {
        Evidence::NeverSent
    } else {
        Evidence::Refused
    };
    let nature = Nature { operation: Operation::Generation, self_contained: true, kept: true };
    let plan = Plan {
        profile,
        nature,
        client_limit: None,
        before: Spent::default(),
        not_before: None,
        places: false,
        notices: None,
    };
    let mut now = Moment::ZERO;
    let mut call = Call::new(plan, now);
    loop {
        match call.next(now) {
            Step::Send { .. } => call.failed(Failure::of_transport(fault, evidence), now, &mut NoChance),
            Step::Wait(waiting) => {
                now = waiting.not_before.unwrap_or(now);
                call.granted(now);
            }
            Step::End(ending) => {
                assert!(matches!(ending, Ending::GaveUp(..) | Ending::Returned(_)));
                break;
            }
        }
    }
    let events = call.take_events();
    let wait_of = |event: &Event| {
        if let Event::WaitStarted { wait, .. } = event { Some(wait.as_secs_f64()) } else { None }
    };
    events.iter().filter_map(wait_of).collect()
}

#[test]
fn the_waits() {
    for row in body_of(&table("How long it waits")) {
        let fault = Fault::ALL.into_iter().find(|fault| fault.name() == row[0]);
        let profile = NAMES.into_iter().zip(profiles()).find(|(name, _)| *name == row[1]);
        let (Some(fault), Some((_, profile))) = (fault, profile) else { panic!("{row:?}") };
        let waits = waits(fault, profile);
        let listed: Vec<_> = waits.iter().map(f64::to_string).collect();
        let sum = (waits.iter().sum::<f64>() * 1000.0).round() / 1000.0;
        assert_eq!(row[2..], [listed.join(", "), sum.to_string()], "{row:?}");
    }
}
