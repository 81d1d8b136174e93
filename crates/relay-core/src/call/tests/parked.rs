//! A call that meets a spent quota, or comes to a lane of which others found that out.

use super::*;

fn parking(profile: Profile) -> Plan {
    in_lane(Profile { park_quota: true, ..profile })
}

fn spent(wait: Option<Duration>) -> Failure {
    Failure { evidence: None, renews: wait, ..answered(429, Fault::QuotaSpent, Evidence::Refused) }
}

fn met(plan: Plan, wait: Option<Duration>) -> Play {
    let mut play = Play::new(plan);
    play.send(seconds(1), spent(wait));
    play
}

#[test]
fn it_waits_for_its_lane_until_then_and_goes_on() {
    let mut play = met(parking(Profile::patient()), Some(seconds(3600)));
    let Step::Wait(waiting) = play.call.next(play.now) else { panic!("it waits: {:?}", play.seen) };
    assert_eq!(
        (waiting.not_before, waiting.in_line, waiting.parks),
        (None, true, true),
        "a person may end it"
    );
    play.call.stands_in_line(1, Some(seconds(3600)));
    play.now = play.now + seconds(3600);
    play.call.granted(play.now);
    play.commit();
    assert_eq!(play.seen[1..4], ["fault 1 quota_spent final 429", "in line for 2 of 1", "send 2"]);
    assert_eq!((play.closing().sends, play.closing().waited), (2, seconds(3600)));
}

#[test]
fn it_goes_back_at_once_where_nobody_asked_for_a_wait_or_none_is_worth_it() {
    let hour = Some(seconds(3600));
    let unkept = Nature { kept: false, ..GENERATION };
    let pure = Nature { operation: Operation::Pure, ..GENERATION };
    for (plan, wait, why) in [
        (in_lane(Profile::patient()), hour, "off by default"),
        (parking(Profile::interactive()), hour, "patience"),
        (parking(Profile::patient()), None, "no time"),
        (parking(Profile { gate: None, ..Profile::patient() }), hour, "no gate"),
        (Plan { places: true, ..parking(Profile::patient()) }, hour, "a lane for all"),
        (Plan { nature: pure, ..parking(Profile::patient()) }, hour, "it asks no model"),
        (Plan { nature: unkept, ..parking(Profile::patient()) }, hour, "it cannot be sent again"),
        (parking(Profile { sends: Some(1), ..Profile::patient() }), hour, "no send is left"),
        (
            Plan { client_limit: Some(seconds(9)), ..parking(Profile::interactive()) },
            hour,
            "the client's limit",
        ),
    ] {
        let mut play = met(plan, wait);
        assert_eq!(play.end(), "passed quota_spent", "{why}");
        assert_eq!((play.closing().sends, play.closing().why), (1, None), "{why}");
        assert!(!play.call.bequest(false).gave_up);
    }
}

#[test]
fn it_goes_on_elsewhere_where_that_is_sooner_than_it_bears() {
    let beside = |other: Option<Duration>| {
        let mut play = Play::new(parking(Profile::interactive()));
        assert!(matches!(play.go(), Step::Send { .. }), "{:?}", play.seen);
        play.call.failed_beside(spent(Some(seconds(7200))), other, play.now, &mut NoChance);
        play.call.waiting().is_some()
    };
    assert!(beside(Some(Duration::ZERO)) && beside(Some(seconds(5))));
    assert!(!beside(None) && !beside(Some(seconds(7200))));
}

#[test]
fn whoever_waited_in_vain_gets_the_answer_that_it_had() {
    let wait = Some(seconds(60));
    let mut out_of_patience = met(parking(Profile::interactive()), wait);
    let Step::Wait(waiting) = out_of_patience.call.next(out_of_patience.now) else { panic!("it waits") };
    out_of_patience.now = waiting.until;
    assert_eq!(out_of_patience.end(), "passed quota_spent");
    let mut parked_anew = met(parking(Profile::interactive()), wait);
    parked_anew.call.held_parked(busy(), parked_anew.now);
    assert_eq!(parked_anew.end(), "passed quota_spent", "not that of another one");
    let mut paused = met(parking(Profile::interactive()), wait);
    paused.call.held_for_too_long(paused.now);
    assert_eq!(paused.end(), "passed quota_spent");
    let mut stopped = met(parking(Profile::interactive()), wait);
    stopped.drain();
    assert_eq!(stopped.end(), "gave up Draining quota_spent");
}

#[test]
fn whoever_comes_later_and_cannot_wait_gets_what_another_was_answered() {
    for failure in [None, Some(busy())] {
        let mut play = Play::new(parking(Profile::interactive()));
        let sends = u32::from(failure.is_some());
        play.sends(failure);
        let _waits = play.call.next(play.now);
        play.call.held_parked(spent(Some(seconds(3600))), play.now);
        assert_eq!(play.end(), "parked quota_spent");
        let closing = play.closing();
        assert_eq!((closing.sends, closing.why), (sends, Some("quota_parked")));
        assert_eq!(closing.last_fault, Some(Fault::QuotaSpent));
    }
}

#[test]
fn the_time_that_is_named_is_told_even_where_nobody_waits_for_it() {
    let mut call = Call::new(in_lane(Profile::interactive()), OPENED);
    let _waits = call.next(OPENED);
    call.granted(OPENED);
    let _sends = call.next(OPENED);
    call.failed(spent(Some(seconds(3600))), OPENED, &mut NoChance);
    let told = |event| if let Event::FaultSeen { told, .. } = event { told } else { None };
    let told = call.take_events().into_iter().find_map(told);
    assert_eq!(told, Some(seconds(3600)));
}
