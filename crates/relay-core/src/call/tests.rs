//! The life of a call in virtual time. The list of what happened is the assertion.

mod in_line;
mod moves;
mod notices;
mod parked;
mod renewed;
mod untouched;

use super::*;
use crate::evidence::Operation;
use crate::failure::{Bar, Told};
use crate::overrides::ProfileOverrides;

const OPENED: Moment = Moment::after_start(Duration::from_secs(1000));

struct NoChance;
impl Dice for NoChance {
    fn share(&mut self) -> f64 {
        0.0
    }
}

const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

const GENERATION: Nature = Nature { operation: Operation::Generation, self_contained: true, kept: true };

/// Each call by itself, on the curves of its profile.
fn plan(profile: Profile) -> Plan {
    in_lane(Profile { gate: None, ..profile })
}

fn in_lane(profile: Profile) -> Plan {
    Plan {
        profile,
        nature: GENERATION,
        client_limit: None,
        before: Spent::default(),
        not_before: None,
        places: false,
        notices: None,
    }
}

fn answered(status: u16, fault: Fault, evidence: Evidence) -> Failure {
    Failure { told: Told::ByStatus, status: Some(status), ..Failure::of_transport(fault, evidence) }
}

fn busy() -> Failure {
    answered(503, Fault::AtCapacity, Evidence::Refused)
}

fn asks_for(wait: Duration) -> Failure {
    Failure { advice: Advice::Wait(wait), ..answered(429, Fault::Throttled, Evidence::Refused) }
}

fn failed() -> Failure {
    answered(500, Fault::ServerFailed, Evidence::Failed)
}

fn lost() -> Failure {
    Failure::of_transport(Fault::BrokenStream, Evidence::MaybeRan)
}

fn silent() -> Failure {
    Failure::of_transport(Fault::NoAnswer, Evidence::NoAnswer)
}

fn bad_request() -> Failure {
    Failure { evidence: None, ..answered(400, Fault::BadRequest, Evidence::Refused) }
}

/// A call, the clock, and what was seen.
struct Play {
    call: Call,
    now: Moment,
    seen: Vec<String>,
}

impl Play {
    fn new(plan: Plan) -> Self {
        Self { call: Call::new(plan, OPENED), now: OPENED, seen: Vec::new() }
    }

    fn note(&mut self) {
        for event in self.call.take_events() {
            self.seen.push(line(&event));
        }
    }

    /// Waits as told, until a send begins or the call ends.
    fn go(&mut self) -> Step {
        loop {
            let step = self.call.next(self.now);
            self.note();
            let Step::Wait(waiting) = step else { return step };
            assert!(waiting.until > self.now, "a wait that is over is no wait");
            self.now = waiting.not_before.unwrap_or(self.now);
            self.call.granted(self.now);
        }
    }

    /// Sends, which takes `took`, and is answered like this.
    fn send(&mut self, took: Duration, failure: Failure) -> &mut Self {
        assert!(matches!(self.go(), Step::Send { .. }), "{:?}", self.seen);
        self.now = self.now + took;
        self.call.failed(failure, self.now, &mut NoChance);
        self.note();
        self
    }

    fn sends(&mut self, failures: impl IntoIterator<Item = Failure>) -> &mut Self {
        for failure in failures {
            self.send(Duration::ZERO, failure);
        }
        self
    }

    fn commit(&mut self) -> &mut Self {
        assert!(matches!(self.go(), Step::Send { .. }));
        self.call.head_arrived(200, None);
        self.call.committed();
        self.note();
        self
    }

    fn drain(&mut self) {
        self.call.drain(self.now);
    }

    fn ending(&mut self) -> Ending {
        match self.go() {
            Step::End(ending) => ending,
            other @ (Step::Send { .. } | Step::Wait(_)) => panic!("{other:?} after {:?}", self.seen),
        }
    }

    fn end(&mut self) -> String {
        match self.ending() {
            Ending::Committed => "committed".to_owned(),
            Ending::Passed(failure) => format!("passed {}", failure.fault.name()),
            Ending::Returned(failure) => format!("returned {}", failure.fault.name()),
            Ending::Refused(why, failure) => format!("refused {why:?} {}", failure.fault.name()),
            Ending::GaveUp(stop, failure) => {
                format!("gave up {stop:?} {}", failure.map_or("-", |failure| failure.fault.name()))
            }
            Ending::Parked(failure) => format!("parked {}", failure.fault.name()),
            Ending::ClientLeft => "client left".to_owned(),
        }
    }

    fn closing(&self) -> Closing {
        self.call.closing(Outcome::GaveUp, self.now)
    }
}

fn line(event: &Event) -> String {
    match event {
        Event::SendStarted { send } => format!("send {send}"),
        Event::HeadArrived { send, status, .. } => format!("head {send} {status}"),
        Event::FaultSeen { send, fault, evidence, status, .. } => format!(
            "fault {send} {} {}{}",
            fault.name(),
            evidence.map_or("final", Evidence::name),
            status.map(|status| format!(" {status}")).unwrap_or_default()
        ),
        Event::WaitStarted { send, wait, .. } => format!("wait {:?} for {send}", wait),
        Event::InLine { send, waiting, .. } => format!("in line for {send} of {waiting}"),
        Event::HeldBack { send, by, wait, .. } => format!("held by {by:?} for {wait:?} before {send}"),
        Event::NoticeGiven { send, notices, .. } => format!("notice {notices} before {send}"),
        Event::GrantTaken { send } => format!("grant {send}"),
        Event::Committed { send } => format!("committed {send}"),
        Event::CallOpened { .. }
        | Event::Moved { .. }
        | Event::WayTaken { .. }
        | Event::StreamCut { .. }
        | Event::CallClosed(_) => {
            panic!("not a call's own event: {event:?}")
        }
    }
}

#[test]
fn refused_twice_then_served() {
    let mut play = Play::new(plan(Profile::interactive()));
    play.send(seconds(1), busy()).send(seconds(1), busy()).commit();
    assert_eq!(
        play.seen,
        [
            "send 1",
            "fault 1 at_capacity refused 503",
            "wait 1s for 2",
            "send 2",
            "fault 2 at_capacity refused 503",
            "wait 2s for 3",
            "send 3",
            "head 3 200",
            "committed 3",
        ]
    );
    assert_eq!(play.end(), "committed");
    assert_eq!(play.now.since(OPENED), seconds(5));
    let closing = play.call.closing(Outcome::Served, play.now);
    assert_eq!((closing.sends, closing.waited, closing.took), (3, seconds(3), seconds(5)));
    assert_eq!((closing.capacity_faults, closing.maybe_billed_twice), (2, 0));
    assert_eq!(closing.last_fault, Some(Fault::AtCapacity));
}

#[test]
fn only_after_a_lost_connection_is_the_next_one_fresh() {
    let mut play = Play::new(plan(Profile::interactive()));
    let unreached = Failure::of_transport(Fault::NeverSent, Evidence::NeverSent);
    let mut fresh = Vec::new();
    for failure in [busy(), unreached, busy()] {
        let Step::Send { fresh: is, number } = play.go() else { panic!() };
        fresh.push((number, is));
        play.call.failed(failure, play.now, &mut NoChance);
    }
    let Step::Send { fresh: is, number } = play.go() else { panic!() };
    fresh.push((number, is));
    assert_eq!(fresh, [(1, false), (2, false), (3, true), (4, false)]);
}

#[test]
fn a_floor_is_waited_out_and_one_beyond_patience_ends_the_call_at_once() {
    let mut play = Play::new(plan(Profile::interactive()));
    play.sends([asks_for(seconds(20)), asks_for(seconds(101))]);
    assert_eq!(play.end(), "gave up FloorTooFar throttled");
    assert_eq!(
        play.seen,
        [
            "send 1",
            "fault 1 throttled refused 429",
            "wait 20s for 2",
            "send 2",
            "fault 2 throttled refused 429",
        ],
        "never a shortened wait"
    );
    assert_eq!(play.now.since(OPENED), seconds(20), "and no wait that leads nowhere");
}

#[test]
fn a_floor_of_exactly_the_patience_is_waited_out() {
    let mut play = Play::new(plan(Profile::interactive()));
    play.sends([asks_for(seconds(120))]).commit();
    assert_eq!(play.now.since(OPENED), seconds(120));
}

#[test]
fn a_curve_beyond_patience_is_patience_spent() {
    let profile = Profile { sends: None, ..Profile::interactive() };
    let mut play = Play::new(plan(profile));
    play.sends(std::iter::repeat_n(busy(), 8));
    assert_eq!(play.end(), "gave up PatienceSpent at_capacity");
    assert_eq!(play.closing().waited, seconds(1 + 2 + 4 + 8 + 16 + 30 + 30));
}

#[test]
fn patience_that_a_long_send_used_up_is_no_floor_too_far() {
    // The client hangs up after 100 s; the send alone took longer, and the service asked for nothing much.
    for failure in [busy(), asks_for(seconds(1))] {
        let mut play = Play::new(Plan { client_limit: Some(seconds(100)), ..plan(Profile::interactive()) });
        play.send(seconds(101), failure);
        assert!(play.end().starts_with("gave up PatienceSpent"), "{:?}", play.seen);
    }
}

#[test]
fn the_time_of_a_running_send_is_not_patience() {
    let mut play = Play::new(plan(Profile::interactive()));
    play.send(seconds(3600), busy()).commit();
    assert_eq!(play.end(), "committed");
}

#[test]
fn sends_are_counted_to_their_limit_and_the_last_failure_costs_no_wait() {
    let mut play = Play::new(plan(Profile { gate: None, ..Profile::interactive() }));
    play.sends(std::iter::repeat_n(busy(), 8));
    assert_eq!(play.end(), "gave up SendsSpent at_capacity");
    assert_eq!(play.closing().sends, 8);
    assert_eq!(play.now.since(OPENED), seconds(91));
    assert_eq!(play.end(), "gave up SendsSpent at_capacity", "the end stays the end");
}

#[test]
fn zero_sends_is_zero() {
    let mut play = Play::new(plan(Profile { sends: Some(0), ..Profile::interactive() }));
    assert_eq!(play.end(), "gave up SendsSpent -");
    assert_eq!(play.seen, Vec::<String>::new());
    assert_eq!(play.closing().sends, 0);
}

#[test]
fn three_sends_may_fail_and_under_strict_one() {
    let mut play = Play::new(plan(Profile::interactive()));
    play.sends([failed(), failed(), failed()]);
    assert_eq!(play.end(), "returned server_failed");
    assert_eq!(play.closing().sends, 3);
    let mut strict = Play::new(plan(Profile::strict()));
    strict.sends([failed()]);
    assert_eq!(strict.end(), "returned server_failed");
    assert_eq!(strict.closing().sends, 1);
}

#[test]
fn refusals_between_failures_do_not_count_as_failures() {
    let mut play = Play::new(plan(Profile::interactive()));
    play.sends([failed(), busy(), failed(), busy(), failed()]);
    assert_eq!(play.end(), "returned server_failed");
    assert_eq!(play.closing().sends, 5);
}

#[test]
fn what_may_have_run_is_sent_again_by_one_grant() {
    let mut play = Play::new(plan(Profile::interactive()));
    play.sends([lost()]).commit();
    assert_eq!(
        play.seen,
        [
            "send 1",
            "fault 1 broken_stream maybe_ran",
            "grant 2",
            "wait 1s for 2",
            "send 2",
            "head 2 200",
            "committed 2",
        ]
    );
    assert_eq!(play.closing().maybe_billed_twice, 1);
    let mut twice = Play::new(plan(Profile::interactive()));
    twice.sends([lost(), lost()]);
    assert_eq!(twice.end(), "returned broken_stream");
    assert_eq!(twice.closing().maybe_billed_twice, 1);
}

#[test]
fn a_grant_that_leads_to_no_send_is_not_counted() {
    // Not one second of patience is left for the wait before the resend.
    let profile = Profile { patience: Duration::ZERO, ..Profile::interactive() };
    let mut play = Play::new(plan(profile));
    play.sends([lost()]);
    assert_eq!(play.end(), "gave up PatienceSpent broken_stream");
    assert_eq!(play.closing().maybe_billed_twice, 0);
    // The client leaves in the wait, or the relay is stopped.
    let mut left = Play::new(plan(Profile::interactive()));
    left.sends([lost()]);
    assert_eq!(left.closing().maybe_billed_twice, 0);
    assert_eq!(left.call.bequest(true).ambiguous, 1, "the client's own re-send is the second run");
}

#[test]
fn what_may_have_run_is_refused_where_nothing_is_granted() {
    let profile = Profile { ambiguous_resends: 0, ..Profile::interactive() };
    let mut play = Play::new(plan(profile.clone()));
    play.sends([lost()]);
    assert_eq!(play.end(), "refused MayHaveRun broken_stream");
    // What cannot even be granted is refused all the more: the client must not send it again either.
    for nature in [
        Nature { self_contained: false, ..GENERATION },
        Nature { operation: Operation::Other, ..GENERATION },
        Nature { kept: false, ..GENERATION },
    ] {
        let mut play = Play::new(Plan { nature, ..plan(profile.clone()) });
        play.sends([lost()]);
        assert_eq!(play.end(), "refused MayHaveRun broken_stream", "{nature:?}");
    }
    // A GET may run as often as it likes.
    let nature = Nature { operation: Operation::Pure, ..GENERATION };
    let mut pure = Play::new(Plan { nature, ..plan(profile) });
    pure.sends([lost()]);
    assert_eq!(pure.end(), "returned broken_stream");
}

#[test]
fn what_is_not_self_contained_goes_back_when_it_may_have_run() {
    for nature in [
        Nature { self_contained: false, ..GENERATION },
        Nature { operation: Operation::Pure, ..GENERATION },
        Nature { operation: Operation::Other, ..GENERATION },
        Nature { kept: false, ..GENERATION },
    ] {
        let mut play = Play::new(Plan { nature, ..plan(Profile::interactive()) });
        play.sends([lost()]);
        assert_eq!(play.end(), "returned broken_stream", "{nature:?}");
    }
}

#[test]
fn a_body_that_was_not_kept_is_sent_once() {
    let nature = Nature { kept: false, ..GENERATION };
    let mut play = Play::new(Plan { nature, ..plan(Profile::interactive()) });
    play.sends([busy()]);
    assert_eq!(play.end(), "returned at_capacity");
}

#[test]
fn no_answer_is_never_sent_again() {
    for operation in [Operation::Generation, Operation::Pure, Operation::Other] {
        let nature = Nature { operation, ..GENERATION };
        let mut play = Play::new(Plan { nature, ..plan(Profile::patient()) });
        play.send(seconds(900), silent());
        assert_eq!(play.end(), "refused StillRunning no_answer");
    }
}

#[test]
fn a_certificate_that_is_not_accepted_is_not_tried_again() {
    let mut play = Play::new(plan(Profile::patient()));
    let certificate = Failure {
        barred: Some(Bar::Certificate),
        ..Failure::of_transport(Fault::NeverSent, Evidence::NeverSent)
    };
    play.sends([certificate]);
    assert_eq!(play.end(), "refused Barred(Certificate) never_sent");
}

#[test]
fn a_final_failure_passes_whatever_came_before() {
    let mut play = Play::new(plan(Profile::interactive()));
    play.sends([busy(), bad_request()]);
    assert_eq!(play.end(), "passed bad_request");
    // The service's own `x-should-retry: false` on a 503.
    let mut declined = Play::new(plan(Profile::interactive()));
    declined.sends([Failure { evidence: None, ..busy() }]);
    assert_eq!(declined.end(), "passed at_capacity");
}

#[test]
fn a_clients_limit_replaces_shortens_or_is_ignored() {
    let ended = |profile: Profile, limit: u64| {
        let profile = Profile { sends: None, ..profile };
        let mut play = Play::new(Plan { client_limit: Some(seconds(limit)), ..plan(profile) });
        let patience = play.call.patience();
        while play.closing().sends < 10_000 {
            if let Step::End(_) = play.go() {
                break;
            }
            play.call.failed(busy(), play.now, &mut NoChance);
        }
        (patience, play.now.since(OPENED))
    };
    // 1 + 2 + 4 + 8 + 16 + 30 · n
    assert_eq!(ended(Profile::interactive(), 300), (seconds(300), seconds(31 + 8 * 30)));
    assert_eq!(ended(Profile::interactive(), 20), (seconds(20), seconds(15)));
    let shortens = Profile { client_limit: ClientLimit::Shortens, ..Profile::interactive() };
    assert_eq!(ended(shortens.clone(), 300), (seconds(120), seconds(31 + 2 * 30)));
    assert_eq!(ended(shortens, 20), (seconds(20), seconds(15)));
    let ignored = Profile { client_limit: ClientLimit::Ignored, ..Profile::interactive() };
    assert_eq!(ended(ignored, 20), (seconds(120), seconds(31 + 2 * 30)));
}

#[test]
fn a_clients_limit_is_a_time_on_the_clock() {
    let mut play = Play::new(Plan { client_limit: Some(seconds(100)), ..plan(Profile::interactive()) });
    play.send(seconds(90), asks_for(seconds(10))).send(Duration::ZERO, asks_for(seconds(1)));
    assert_eq!(play.end(), "gave up FloorTooFar throttled", "{:?}", play.seen);
    assert_eq!(play.closing().waited, seconds(10));
}

#[test]
fn a_drain_ends_a_wait_and_leaves_a_send_alone() {
    let mut waiting = Play::new(plan(Profile::interactive()));
    waiting.sends([busy()]);
    waiting.now = waiting.now + Duration::from_millis(300);
    waiting.call.drain(waiting.now);
    assert_eq!(waiting.end(), "gave up Draining at_capacity");
    assert_eq!(waiting.closing().waited, Duration::from_millis(300), "what was not waited is not told");

    let mut flying = Play::new(plan(Profile::interactive()));
    assert!(matches!(flying.go(), Step::Send { number: 1, .. }));
    flying.call.drain(flying.now);
    flying.call.committed();
    assert_eq!(flying.end(), "committed");
    flying.call.drain(flying.now);
    assert_eq!(flying.end(), "committed");

    let mut ready = Play::new(plan(Profile::interactive()));
    ready.call.drain(ready.now);
    assert_eq!(ready.end(), "gave up Draining -");
}

#[test]
fn a_client_that_leaves_a_wait_did_not_wait_for_the_rest() {
    let mut play = Play::new(plan(Profile::interactive()));
    play.sends([busy(), busy()]);
    play.now = play.now + Duration::from_millis(500);
    let closing = play.call.closing(Outcome::ClientLeft, play.now);
    assert_eq!(closing.waited, Duration::from_millis(1500));
}

#[test]
fn a_resumed_turn_waits_before_its_first_send() {
    let not_before = Some(OPENED + seconds(7));
    let mut play = Play::new(Plan { not_before, ..plan(Profile::interactive()) });
    play.commit();
    assert_eq!(play.now.since(OPENED), seconds(7));
    assert_eq!(play.closing().waited, seconds(7));
    let past = Some(OPENED - seconds(7));
    let mut at_once = Play::new(Plan { not_before: past, ..plan(Profile::interactive()) });
    at_once.commit();
    assert_eq!(at_once.now, OPENED);
}

#[test]
fn a_resumed_turn_whose_wait_outlasts_patience_ends_at_once() {
    let not_before = Some(OPENED + seconds(121));
    let mut play = Play::new(Plan { not_before, ..plan(Profile::interactive()) });
    assert_eq!(play.end(), "gave up FloorTooFar -");
    assert_eq!((play.now, play.closing().waited, play.closing().sends), (OPENED, Duration::ZERO, 0));
    let limited = Plan { not_before, client_limit: Some(seconds(100)), ..plan(Profile::patient()) };
    assert!(matches!(Play::new(limited).go(), Step::Send { .. }), "its limit is ignored");
}

#[test]
fn a_bequest_says_what_was_spent_in_every_state() {
    let of = |play: &Play, left| {
        let spent = play.call.bequest(left);
        (spent.sends, spent.failed, spent.ambiguous, spent.gave_up)
    };
    let mut play = Play::new(plan(Profile::interactive()));
    assert_eq!((of(&play, false), of(&play, true)), ((0, 0, 0, false), (0, 0, 0, false)), "ready");
    play.go();
    assert_eq!((of(&play, false), of(&play, true)), ((1, 0, 0, false), (1, 0, 1, false)), "flying");
    play.call.failed(failed(), play.now, &mut NoChance);
    assert_eq!((of(&play, false), of(&play, true)), ((1, 1, 0, false), (1, 1, 0, false)), "waiting");
    play.go();
    play.call.failed(lost(), play.now, &mut NoChance);
    assert_eq!(of(&play, true), (2, 1, 1, false), "waiting with a grant taken");
    play.go();
    assert_eq!(of(&play, true), (3, 1, 2, false), "flying on a grant");
    play.call.committed();
    assert_eq!(of(&play, true), (3, 1, 1, false), "committed");

    let ended = |profile: Profile, failures: Vec<Failure>| {
        let mut play = Play::new(plan(profile));
        play.sends(failures).end();
        of(&play, false)
    };
    assert_eq!(ended(Profile::interactive(), vec![bad_request()]), (1, 0, 0, false), "passed");
    assert_eq!(ended(Profile::strict(), vec![failed()]), (1, 1, 0, false), "returned");
    assert_eq!(ended(Profile::strict(), vec![lost()]), (1, 0, 0, true), "refused");
    assert_eq!(ended(Profile::strict(), vec![busy(); 3]), (3, 0, 0, true), "sends spent");
    assert_eq!(ended(Profile::strict(), vec![asks_for(seconds(61))]), (1, 0, 0, true), "floor too far");
    let mut drained = Play::new(plan(Profile::interactive()));
    drained.sends([busy()]).drain();
    assert_eq!(of(&drained, false), (1, 0, 0, false), "drained");
}

#[test]
fn who_inherits_a_call_that_gave_up_has_one_send_and_so_have_its_heirs() {
    // No count of sends: only the memory that it gave up stands between the client's loop and the service.
    let profile = Profile { sends: None, patience: Duration::ZERO, ..Profile::interactive() };
    let mut first = Play::new(plan(profile.clone()));
    first.sends([busy()]);
    assert_eq!(first.end(), "gave up PatienceSpent at_capacity");
    let mut before = first.call.bequest(false);
    let patient = Profile { patience: seconds(1800), ..profile };
    for last in [busy(), failed(), lost(), bad_request(), busy()] {
        let mut heir = Play::new(Plan { before, ..plan(patient.clone()) });
        heir.sends([last]).end();
        assert_eq!(heir.closing().sends, 1);
        before = heir.call.bequest(false);
    }
    let mut left = Play::new(Plan { before, ..plan(patient.clone()) });
    left.go();
    let mut heir = Play::new(Plan { before: left.call.bequest(true), ..plan(patient) });
    heir.sends([busy()]).end();
    assert_eq!(heir.closing().sends, 1);
}

#[test]
fn an_heir_continues_counts_and_curve() {
    let mut first = Play::new(plan(Profile::interactive()));
    first.sends([busy(), failed(), lost()]);
    let before = first.call.bequest(true);
    let mut heir = Play::new(Plan { before, ..plan(Profile::interactive()) });
    heir.sends([busy(), failed(), lost()]);
    assert_eq!(heir.end(), "returned broken_stream");
    assert_eq!(
        heir.seen,
        [
            "send 1",
            "fault 1 at_capacity refused 503",
            "wait 8s for 2",
            "send 2",
            "fault 2 server_failed failed 500",
            "wait 16s for 3",
            "send 3",
            "fault 3 broken_stream maybe_ran",
        ]
    );
}

#[test]
fn nothing_is_sent_after_commit() {
    let mut play = Play::new(plan(Profile::interactive()));
    play.commit();
    play.call.failed(busy(), play.now, &mut NoChance);
    assert_eq!(play.end(), "committed");
    play.call.failed(lost(), play.now, &mut NoChance);
    assert_eq!(play.end(), "committed");
}

#[test]
#[should_panic(expected = "a send is under way")]
fn whoever_asks_again_while_a_send_is_under_way_is_stopped() {
    let mut play = Play::new(plan(Profile::interactive()));
    play.go();
    play.go();
}

#[test]
fn what_an_earlier_send_was_answered_is_kept_with_a_failure_that_nothing_was_answered_to() {
    let mut play = Play::new(plan(Profile::strict()));
    let busy = Failure { message: Some("Overloaded".into()), ..busy() };
    play.sends([busy.clone(), lost()]);
    let Ending::Refused(Why::MayHaveRun, failure) = play.ending() else { panic!() };
    assert_eq!(failure.earlier.as_deref(), Some(&busy));
    let mut answered = Play::new(plan(Profile::strict()));
    answered.sends([busy.clone(), failed()]);
    let Ending::Returned(failure) = answered.ending() else { panic!() };
    assert_eq!(failure.earlier, None, "the last answer speaks for itself");
    let mut only = Play::new(plan(Profile::strict()));
    only.sends([lost()]);
    let Ending::Refused(_, failure) = only.ending() else { panic!() };
    assert_eq!(failure.earlier, None);
}

#[test]
fn a_turn_that_is_cut_again_waits_a_step_longer() {
    let waits = [0, 1, 2, 9].map(|earlier| {
        let mut call = Call::new(plan(Profile::interactive()), OPENED);
        call.wait_after_cut(&busy(), earlier, &mut NoChance)
    });
    assert_eq!(waits, [1, 2, 4, 30].map(seconds));
}
