//! What is counted, and that the page is the one that is documented.

use std::collections::BTreeSet;
use std::time::Duration;

use relay_core::event::{Closing, Transport};
use relay_core::evidence::Operation;
use relay_core::gate::{Place, Shut};
use serde_json::Value;

use super::*;

const DOCUMENTED: &str = include_str!("../../../../../docs/status.md");

/// The keys in the first column of the table under this heading.
fn documented(heading: &str) -> BTreeSet<String> {
    let (_, section) = DOCUMENTED.split_once(&format!("\n## {heading}\n")).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    rows.map(|(key, _)| key.to_owned()).collect()
}

fn keys(value: &Value) -> BTreeSet<String> {
    value.as_object().unwrap().keys().cloned().collect()
}

/// A call that is refused with `faults`, then ends like this.
fn call(status: &Status, id: u64, faults: u32, outcome: Option<Outcome>) {
    let see = |event| status.see(CallId(id), Moment::ZERO, &event);
    let labels = Labels {
        client: "codex",
        dialect: "openai_responses",
        operation: Operation::Generation,
        transport: Transport::Http,
        upstream: "openai".into(),
        model: None,
        profile: "interactive".into(),
        lane: "0f".into(),
        request_id: None,
        pool: None,
        bound: None,
        trace: None,
    };
    see(Event::CallOpened {
        labels: labels.into(),
        inherited: relay_core::event::Inherited::default(),
        wall: 0,
    });
    see(Event::SendStarted { send: 1 });
    let wait = Duration::from_secs(2);
    for send in 2..faults + 2 {
        see(Event::WaitStarted { send, wait, fault: Fault::AtCapacity, status: Some(503), code: None });
        if outcome.is_some() {
            see(Event::SendStarted { send });
        }
    }
    let Some(outcome) = outcome else { return };
    see(Event::CallClosed(Closing {
        sends: faults + 1,
        waited: wait * faults,
        last_fault: (faults > 0).then_some(Fault::AtCapacity),
        capacity_faults: faults,
        maybe_billed_twice: 0,
        took: wait * faults,
        ..Closing::new(outcome)
    }));
}

#[test]
fn the_page_has_the_keys_that_are_documented_and_no_others() {
    let status = Status::default();
    call(&status, 1, 1, None);
    let name = LaneName { id: "0f".into(), model: None, upstream: "api.example".into() };
    let place = Place { call: CallId(1), session: 7 << 32, position: 1, not_before: None };
    let view = View {
        circuit: relay_core::breaker::Circuit::Closed,
        shut: Some((Shut::Slow, Moment::ZERO)),
        next: None,
        hold: None,
        parked: None,
        waiting: 1,
        line: vec![place],
        pending: 0,
        running: 0,
        max_running: None,
        recovery: None,
        rate: None,
        random: false,
    };
    let lanes = vec![(name, view)];
    for news in [News::Loading, News::Again { wait: Duration::ZERO, tries: 2 }] {
        status.notice(&Notice::Warming(Warming { upstream: "home".into(), model: Some("m".into()), news }));
    }
    let way =
        |by: &str, what| Notice::Way(WayNews { upstream: "api.example:443".into(), by: by.into(), what });
    let left = WayWhat::Left { since: Moment::ZERO, why: "dns", pause: Duration::ZERO };
    for (by, what) in
        [("http://p", left), ("direct", left), ("http://p", WayWhat::Back { after: Duration::ZERO })]
    {
        status.notice(&way(by, what));
    }
    let (why, for_good, again) = ("gone".to_owned(), true, false);
    for news in [CredentialNews::Renewed, CredentialNews::Failed { why, for_good, again }] {
        status.notice(&Notice::Credential { name: "mine".into(), news });
    }
    let page = serde_json::to_value(status.page(Moment::ZERO, Moment::ZERO, lanes)).unwrap();
    assert_eq!(keys(&page["ways_left"][0]), documented("Ways that are left"));
    let left =
        serde_json::json!([{"upstream": "api.example:443", "by": "direct", "why": "dns", "left_for_s": 0.0}]);
    assert_eq!(page["ways_left"], left);
    assert_eq!(keys(&page["credentials"][0]), documented("Credentials"));
    assert_eq!(
        page["credentials"],
        serde_json::json!([{"name": "mine", "state": "failed_for_good", "why": "gone"}])
    );
    assert_eq!(keys(&page["lanes"][0]), documented("Lanes"));
    assert_eq!(keys(&page["lanes"][0]["line"][0]), documented("A lane's line"));
    assert_eq!(page["lanes"][0]["line"][0]["session"], "00000007");
    assert_eq!(keys(&page["warming"][0]), documented("Warming"));
    assert_eq!(
        page["warming"][0],
        serde_json::json!({"upstream": "home", "model": "m", "state": "loading", "tries": 2})
    );
    assert_eq!(keys(&page), documented("The page"));
    assert_eq!(keys(&page["totals"]), documented("Totals"));
    assert_eq!(keys(&page["open_calls"][0]), documented("Open calls"));
}

#[test]
fn the_totals_of_the_documented_example_are_those_that_are_counted() {
    assert!(
        DOCUMENTED.contains(
            "refused twice and then answered is one call, three sends, two waits, and one call saved"
        )
    );
    let status = Status::default();
    call(&status, 1, 2, Some(Outcome::Served));
    let saved = Totals {
        calls: 1,
        sends: 3,
        waits: 2,
        waited_s: 4.0,
        calls_sent_again: 1,
        calls_short_of_capacity: 1,
        calls_waited: 1,
        calls_judged: 1,
        calls_served: 1,
        calls_saved: 1,
        met_and_served: 1,
        met_fault: 1,
        met_capacity: 1,
        retried_sends: 3,
        refusals: 2,
        ..Totals::default()
    };
    assert_eq!(status.totals(), saved);
    // An open call counts where it can; one that needs no help and one that is given up are not saved.
    call(&status, 2, 1, None);
    call(&status, 3, 0, Some(Outcome::Served));
    call(&status, 4, 1, Some(Outcome::GaveUp));
    let all = Totals {
        calls: 4,
        sends: 3 + 1 + 1 + 2,
        waits: 4,
        waited_s: 6.0,
        calls_sent_again: 2,
        calls_short_of_capacity: 2,
        calls_lost: 1,
        calls_waited: 2,
        calls_judged: 3,
        calls_served: 2,
        met_fault: 2,
        met_capacity: 2,
        retried_sends: 5,
        refusals: 3,
        met_and_lost: 1,
        ..saved
    };
    assert_eq!(status.totals(), all);
}
#[test]
fn the_closing_line_counts_what_is_lost_among_what_met_a_fault() {
    let status = Status::default();
    let after = |outcome, capacity_faults| {
        let closing = Closing {
            sends: 1,
            waited: Duration::ZERO,
            last_fault: Some(Fault::AtCapacity),
            capacity_faults,
            took: Duration::ZERO,
            ..Closing::new(outcome)
        };
        status.see(CallId(1), Moment::ZERO, &Event::CallClosed(closing));
        let sums = status.sums();
        (sums.calls, sums.at_capacity, sums.lost, sums.sends)
    };
    assert_eq!(after(Outcome::Refused, 1), (1, 1, 1, 1));
    assert_eq!(after(Outcome::Refused, 0), (2, 1, 2, 2));
    assert_eq!(after(Outcome::GaveUp, 1), (3, 2, 3, 3));
    // What is handed back at once is its client's affair.
    assert_eq!(after(Outcome::Returned, 1), (3, 2, 3, 3));
    assert_eq!(status.totals().calls_short_of_capacity, 3);
    // A client that left while it was held has lost its turn, and so has one whose answer broke off.
    assert_eq!(after(Outcome::ClientLeft, 1), (4, 3, 4, 4));
    assert_eq!(after(Outcome::Broken, 0), (5, 3, 5, 5));
}

#[test]
fn a_held_call_says_whether_its_client_shows_it() {
    let status = Status::default();
    call(&status, 1, 1, None);
    let noticed = || {
        let (open, held) = status.held(Moment::ZERO, Vec::new);
        (open, held.iter().map(|held| held.noticed).collect::<Vec<_>>())
    };
    assert_eq!(noticed(), (1, vec![false]));
    let notice = Event::NoticeGiven { send: 2, notices: 1, fault: Some(Fault::AtCapacity) };
    status.see(CallId(1), Moment::ZERO, &notice);
    assert_eq!(noticed(), (1, vec![true]));
}
