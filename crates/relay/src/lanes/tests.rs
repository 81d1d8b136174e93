use std::time::SystemTime;

use relay_core::evidence::Evidence;
use relay_core::failure::Failure;
use relay_core::fault::Fault;
use relay_core::gate::{Arrival, Class, Preset, Refusal, Report, Settled};

use super::*;
use crate::clock::{SystemClock, TokioClock};
use crate::credential::account_key;

fn lanes() -> Lanes {
    let (file, _) = LearnedFile::open(None, SystemTime::UNIX_EPOCH);
    Lanes::new(Arc::new(SystemClock), Observers::default(), file)
}

fn lane(lanes: &Lanes, model: usize) -> Arc<Lane> {
    let origin = Origin { https: true, host: "api.example".to_owned(), port: 443 };
    let account = account_key(&http::HeaderMap::new(), "/");
    let model = model.to_string();
    let made =
        Made { origin: &origin, upstream: "up", account, added: &[], model: Some(&model), places: None };
    lanes.lane(&made, Vec::new)
}

/// A call that comes to this lane now.
fn coming(lane: &Lane, call: u64) -> (Arrival, Waiting) {
    let now = lane.clock.now();
    let arrival = Arrival {
        call: CallId(call),
        session: call,
        since: now,
        deadline: None,
        preset: Preset::Interactive,
        weight: 1.0,
        sends: 0,
        budget: None,
        not_before: None,
        streams: false,
        plain: false,
    };
    let until = now + Duration::from_secs(60);
    (arrival, Waiting { not_before: None, until, bears: until, plain: false, in_line: true, parks: false })
}

/// A call comes to this lane, is refused, and leaves.
fn refused(lane: &Arc<Lane>, call: u64, told: Option<Duration>) {
    let (arrival, waiting) = coming(lane, call);
    let mut ticket = Ticket::new(Arc::clone(lane), CallId(call));
    assert!(matches!(ticket.enter(arrival, waiting), Turn::Now));
    ticket.sends();
    let refusal = Refusal {
        class: Class::Capacity(Fault::AtCapacity),
        told,
        floor: Duration::ZERO,
        first_wait: Duration::from_secs(1),
    };
    ticket.settled(Settled { report: Report::Refused(refusal), back: None }, None);
}

fn pause(seconds: u64) -> Option<Duration> {
    Some(Duration::from_secs(seconds))
}

fn is_there(lanes: &Lanes, lane: &str) -> bool {
    lanes.every().iter().any(|other| other.name.id == lane)
}

#[test]
fn lanes_that_are_open_make_room_and_those_that_are_held_or_shut_stay() {
    let lanes = lanes();
    let held = lane(&lanes, 0);
    refused(&held, 1, pause(300));
    let shut = lane(&lanes, 1);
    refused(&shut, 2, None);
    refused(&shut, 3, None);
    assert!(held.state().gate.hold(lanes.clock.now()).is_some() && shut.state().gate.shut().is_some());
    let [held, shut] = [held, shut].map(|lane| lane.name.id.clone());
    for model in 2..3 * MANY {
        lane(&lanes, model);
    }
    assert!(lanes.all().len() <= MANY);
    assert_eq!([&held, &shut].map(|lane| is_there(&lanes, lane)), [true, true]);
}

#[test]
fn where_all_are_held_or_shut_the_one_goes_whose_pause_ends_first() {
    let lanes = lanes();
    let ids: Vec<_> = (0..MANY)
        .map(|model| {
            let lane = lane(&lanes, model);
            let seconds = if model == 7 { 30 } else { 300 };
            refused(&lane, 1, pause(seconds));
            lane.name.id.clone()
        })
        .collect();
    let used = lane(&lanes, MANY);
    assert_eq!(ids.iter().position(|id| !is_there(&lanes, id)), Some(7));
    assert_eq!(lanes.all().len(), MANY);
    drop(used);
}

#[test]
fn what_a_lane_learned_outlives_it() {
    let lanes = lanes();
    let limited = lane(&lanes, 0);
    let learned = Learned {
        recoveries: 3.0,
        exposure: 90.0,
        rate: Some(2.0),
        growth: 4.0,
        per_completion: 0.5,
        after_completion: [5.0, 10.0],
        probes: [5.0, 10.0],
        ends: [5.0, 10.0],
    };
    limited.state().gate = Gate::with(Rules::default(), &learned);
    let id = limited.name.id.clone();
    drop(limited);
    for model in 1..=MANY {
        lane(&lanes, model);
    }
    assert!(!is_there(&lanes, &id));
    assert_eq!(lane(&lanes, 0).state().gate.learned(), Some(learned));
}

#[test]
fn where_no_number_of_places_is_stated_any_more_nobody_waits_for_one() {
    let lanes = lanes();
    let places = |lane: &Arc<Lane>| lane.state().gate.view(0, lanes.clock.now()).max_running;
    let origin = Origin { https: true, host: "api.example".to_owned(), port: 443 };
    let made = Made {
        origin: &origin,
        upstream: "up",
        account: account_key(&http::HeaderMap::new(), "/"),
        added: &[],
        model: None,
        places: Some(Places { most: NonZeroU32::MIN, route: None }),
    };
    let lane = lanes.lane(&made, Vec::new);
    assert_eq!(places(&lane), Some(1));
    lanes.renumber(|_, _| NonZeroU32::new(3));
    assert_eq!(places(&lane), Some(3));
    lanes.renumber(|_, _| None);
    assert_eq!(places(&lane), None);
    lanes.renumber(|_, _| NonZeroU32::new(2));
    assert_eq!(places(&lane), Some(2));
}

/// Hears what lanes do, and passes it on.
struct Hears(std::sync::mpsc::Sender<What>);

impl crate::observe::Observer for Hears {
    fn see(&self, _call: CallId, _at: Moment, _event: &relay_core::event::Event) {}

    fn notice(&self, notice: &Notice) {
        if let Notice::Lane(change) = notice {
            self.0.send(change.what).unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_fails_is_told_of_each_time() {
    let (hears, heard) = std::sync::mpsc::channel();
    let clock = Arc::new(TokioClock::starting_at(SystemTime::UNIX_EPOCH));
    let (file, _) = LearnedFile::open(None, SystemTime::UNIX_EPOCH);
    let lanes = Lanes::new(clock.clone(), Observers::new(vec![Arc::new(Hears(hears))]), file);
    let lane = lane(&lanes, 1);
    let pause = Duration::from_secs(30);
    let rules = relay_core::breaker::Rules { failures: 1, pause, ..relay_core::breaker::Rules::default() };
    for call in 1..=3 {
        let mut ticket = Ticket::new(Arc::clone(&lane), CallId(call));
        ticket.sends();
        let fault = Fault::NeverSent;
        ticket.failed(&Failure::of_transport(fault, Evidence::NeverSent), Some(&rules));
        let again = What::CircuitStaysOpen { fault, pause };
        let told = if call == 1 { What::CircuitOpened { fault, failures: 1, pause } } else { again };
        assert_eq!(heard.try_recv(), Ok(told));
        assert_eq!(lane.circuit(clock.now()), (Circuit::Open(clock.now() + pause), Some(fault)));
        tokio::time::sleep(pause).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_lane_that_nobody_asks_any_more_is_told_of_as_open() {
    let (hears, heard) = std::sync::mpsc::channel();
    let clock = Arc::new(TokioClock::starting_at(SystemTime::UNIX_EPOCH));
    let (file, _) = LearnedFile::open(None, SystemTime::UNIX_EPOCH);
    let lanes = Lanes::new(clock.clone(), Observers::new(vec![Arc::new(Hears(hears))]), file);
    let lane = lane(&lanes, 1);
    refused(&lane, 1, None);
    refused(&lane, 2, pause(20));
    let mut ticket = Ticket::new(Arc::clone(&lane), CallId(3));
    let (arrival, waiting) = coming(&lane, 3);
    assert!(matches!(ticket.enter(arrival, waiting), Turn::Later { .. }));
    tokio::time::sleep(NEWS * 2).await;
    assert!(matches!(heard.try_recv(), Ok(What::LaneShut { waiting: 1, .. })));
    drop(ticket);
    let begun = clock.now();
    while heard.try_recv().is_err() {
        assert!(clock.now().since(begun) < Duration::from_secs(100), "it is never told of");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert!(clock.now().since(begun) >= Duration::from_secs(60));
    assert_eq!(lanes.views(1)[0].1.shut, None);
}
