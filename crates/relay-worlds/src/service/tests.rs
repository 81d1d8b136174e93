use super::*;

/// Asks `ask` of a service of these clients every `step` seconds, for so many seconds.
fn over_time(name: &str, seconds_in_all: f64, step: f64, mut ask: impl FnMut(&mut Service, Moment)) {
    let model = named(name).unwrap().model(Clients::TenAgents).unwrap();
    let mut service = Service::new(model, 5);
    for number in 0..(seconds_in_all / step) as u64 {
        let now = Moment::after_start(seconds(number as f64 * step));
        service.advance(now);
        ask(&mut service, now);
    }
}

/// The share of sends that are refused, where one is made every `step` seconds and ends at once.
fn refused(name: &str, seconds_in_all: f64, step: f64) -> f64 {
    let (mut all, mut refused) = (0.0, 0.0);
    over_time(name, seconds_in_all, step, |service, _| {
        all += 1.0;
        match service.send(CallId(1), 0) {
            Answer::Accepted => assert_eq!(service.finished(), None),
            Answer::Queued => panic!("{name} has a line of its own"),
            Answer::Refused(_) => refused += 1.0,
        }
    });
    refused / all
}

/// Whether `value` lies within so much of `expected`.
fn close(value: f64, expected: f64, within: f64) {
    assert!((value - expected).abs() <= within, "{value} is not within {within} of {expected}");
}

fn refusal(answer: Answer) -> Refusal {
    let Answer::Refused(refusal) = answer else { panic!("{answer:?} is no refusal") };
    refusal
}

#[test]
fn refusals_at_random_have_their_share() {
    close(refused("R-random-0.06", 100_000.0, 1.0), 0.06, 0.003);
    close(refused("R-random-0.4", 100_000.0, 1.0), 0.4, 0.006);
    close(refused("R-random-0.9", 100_000.0, 1.0), 0.9, 0.004);
    close(refused("R-random-fluct", 1_000_000.0, 10.0), 0.38, 0.02);
}

#[test]
fn overload_takes_its_share_of_time() {
    // Means of 70 s and, no shorter than 5 s, 30.4 s.
    close(refused("U2-overload-p1", 1_000_000.0, 10.0), 0.303, 0.01);
    close(refused("U2-overload-p0.8", 1_000_000.0, 10.0), 0.8 * 0.303, 0.01);
    // Means of 200 s and, no longer than 180 s, 93.3 s.
    close(refused("U2L-long-overload", 2_000_000.0, 10.0), 93.3 / 293.3, 0.012);
    // Ten sends a second that prolong it by 0.05 s each make it twice as long.
    close(refused("U6-sustained", 200_000.0, 0.1), 0.465, 0.02);
}

#[test]
fn a_refusal_is_quick_but_where_it_is_slow() {
    let span = |name: &str| {
        let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
        over_time(name, 20_000.0, 1.0, |service, _| {
            if let Answer::Refused(refusal) = service.send(CallId(1), 0) {
                least = least.min(refusal.takes.as_secs_f64());
                most = most.max(refusal.takes.as_secs_f64());
            }
        });
        (least, most)
    };
    let (least, most) = span("U2-overload-p1");
    assert!((0.1..0.12).contains(&least) && (0.33..0.35).contains(&most), "{least} {most}");
    let (least, most) = span("U4-slow-fail");
    assert!((10.0..11.0).contains(&least) && (170.0..190.0).contains(&most), "{least} {most}");
}

#[test]
fn own_slots_are_as_many_as_they_are() {
    let model = Model::Slots { slots: 8, outside: None };
    let mut service = Service::new(model, 1);
    let accepted =
        |service: &mut Service| (0..20).filter(|_| service.send(CallId(1), 0) == Answer::Accepted).count();
    assert_eq!(accepted(&mut service), 8);
    assert!(!service.would_accept());
    assert_eq!(service.finished(), None);
    assert!(service.would_accept());
    assert_eq!(accepted(&mut service), 1);
}

#[test]
fn others_fill_a_shared_pool_and_never_overfill_it() {
    let (mut used, mut full, mut count) = (0.0, 0.0, 0.0);
    over_time("U1-shared-slots", 200_000.0, 1.0, |service, _| {
        let Kind::Slots(pool) = &service.kind else { panic!("no slots") };
        assert!(pool.used() <= 40);
        assert_eq!(pool.has_room(), pool.used() < 40);
        count += 1.0;
        used += pool.used() as f64;
        full += f64::from(u8::from(pool.used() == 40));
    });
    close(used / count / 40.0, 0.86, 0.04);
    close(full / count, 0.33, 0.06);
}

#[test]
fn a_rate_limit_gives_out_its_rate_and_says_when() {
    let mut accepted = 0.0;
    let mut told = None;
    over_time("U3-rate-RA-accurate", 10_000.0, 0.5, |service, now| match service.send(CallId(1), 0) {
        Answer::Accepted => {
            let early = told.take().is_some_and(|told| now < told);
            assert!(!early, "accepted earlier than told");
            accepted += 1.0;
        }
        answer @ (Answer::Queued | Answer::Refused(_)) => {
            let refusal = refusal(answer);
            assert_eq!(refusal.class, Class::Rate);
            told = refusal.told.map(|told| now + told);
            assert_eq!(
                service.next_change().map(|next| next.since(now)),
                refusal.told.map(|told| told + Duration::from_micros(1))
            );
        }
    });
    close(accepted, 5004.0, 1.0);
}

#[test]
fn each_hint_is_what_it_is_called() {
    let told = |name: &str| {
        let mut service = Service::new(named(name).unwrap().model(Clients::TenAgents).unwrap(), 1);
        assert!((0..4).all(|_| service.send(CallId(1), 0) == Answer::Accepted), "a burst of four");
        let refusal = refusal(service.send(CallId(1), 0));
        (refusal.told.map(|told| told.as_secs_f64()), refusal.class)
    };
    assert_eq!(told("U3-rate-RA-accurate"), (Some(2.0), Class::Rate));
    assert_eq!(told("U3-rate-RA-short"), (Some(0.6), Class::Rate));
    assert_eq!(told("U3-rate-RA-long"), (Some(6.0), Class::Rate));
    assert_eq!(told("U3-rate-RA-absent"), (None, Class::Rate));
    assert_eq!(told("U3-rate-RA-zero-untyped"), (Some(0.0), Class::Capacity(Fault::Throttled)));
}

#[test]
fn refused_sends_that_cost_leave_nothing_for_anybody() {
    // Twice the rate is asked for: the level falls to its deepest and stays there.
    assert!(refused("U3-rate-rejects-cost", 10_000.0, 1.0) > 0.99);
    close(refused("U3-rate-RA-absent", 10_000.0, 1.0), 0.5, 0.01);
}

#[test]
fn loading_begins_with_the_first_send_and_takes_20_to_30_s() {
    let mut first = None;
    over_time("U5-warm-up", 100.0, 0.1, |service, now| {
        if now < Moment::after_start(seconds(40.0)) {
            assert!(service.would_accept() && service.next_change().is_none(), "nobody has asked");
        } else if first.is_none() && service.send(CallId(1), 0) == Answer::Accepted {
            first = Some(now.since_start().as_secs_f64() - 40.0);
        }
    });
    assert!(first.is_some_and(|first| (20.0..30.2).contains(&first)), "{first:?}");
}

#[test]
fn a_refusal_sticks_to_its_session_and_to_no_other() {
    let model = Model::Sticky { slots: None, episodes: false };
    let mut service = Service::new(model, 3);
    let (mut stuck, mut same, mut turns, mut all) = (0.0, 0.0, 0.0, 0.0);
    let mut before = [None; 100];
    for second in 0..20_000 {
        service.advance(Moment::after_start(Duration::from_secs(second)));
        for (session, before) in before.iter_mut().enumerate() {
            let refused = service.send(CallId(1), session as u64) != Answer::Accepted;
            if !refused {
                service.finished();
            }
            all += 1.0;
            stuck += f64::from(u8::from(refused));
            same += f64::from(u8::from(*before == Some(refused)));
            turns += f64::from(u8::from(*before == Some(!refused)));
            *before = Some(refused);
        }
    }
    close(stuck / all, 0.294, 0.01);
    // A session turns twice in each 212.5 s.
    close(turns / (turns + same), 2.0 / 212.5, 0.0005);
}

#[test]
fn an_own_line_is_served_in_its_order() {
    let mut service = Service::new(Model::Queue { slots: 2 }, 1);
    let answers = [1, 2, 3, 4].map(|call| service.send(CallId(call), 0));
    assert_eq!(answers, [Answer::Accepted, Answer::Accepted, Answer::Queued, Answer::Queued]);
    let begun = [0; 4].map(|_| service.finished());
    assert_eq!(begun, [Some(CallId(3)), Some(CallId(4)), None, None]);
    assert_eq!(service.send(CallId(5), 0), Answer::Accepted);
}

#[test]
fn each_service_stands_once_and_a_single_user_meets_no_limit_of_its_own() {
    let names: std::collections::BTreeSet<&str> = ALL.iter().map(|service| service.name).collect();
    assert_eq!(names.len(), ALL.len());
    let alone = ALL.iter().filter(|service| service.model(Clients::OneUser).is_some()).count();
    assert_eq!(alone, 16);
    assert!(ALL.iter().all(|service| service.model(Clients::TenAgents).is_some()));
}
