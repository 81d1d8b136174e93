//! What a gate promises of services that behave in one known way.

use std::time::Duration;

use relay_core::gate::{Class, Gate, Poll, Preset, Reason, Refusal, Report, Rules, Settled, Shut};
use relay_core::{Dice as _, Fault, Moment, SeededDice};

use crate::scene::{Answer, Asked, Scene, call};

const SECOND: Duration = Duration::from_secs(1);
const MILLI: Duration = Duration::from_millis(1);

fn takes(asked: &mut Asked<'_>) -> Answer {
    Answer::Takes(300 * MILLI + asked.dice.up_to(1700 * MILLI), 2 * SECOND + asked.dice.up_to(8 * SECOND))
}

/// With an upstream that accepts everything from one moment on, everybody is sent soon after it.
#[test]
fn after_a_recovery_nobody_waits_long() {
    for seed in 0..240_u64 {
        let mut dice = SeededDice::new(seed);
        let recovers = 5 * SECOND + dice.up_to(165 * SECOND);
        let latency = 300 * MILLI + dice.up_to(1700 * MILLI);
        let preset = [Preset::Interactive, Preset::Batch, Preset::Strict][usize::try_from(seed % 3).unwrap()];
        let mut scene = Scene::new(Rules::default(), seed, |asked| {
            if asked.at < recovers {
                Answer::Refuses(250 * MILLI)
            } else {
                Answer::Takes(latency, 4 * SECOND)
            }
        });
        let count = 1 + dice.bits() % 60;
        for number in 0..count {
            scene.comes(dice.up_to(4 * SECOND), number % 7, |arrival| {
                arrival.preset = preset;
                arrival.budget = (seed % 2 == 0).then_some(400);
                arrival.deadline = Some(arrival.since + 900 * SECOND);
            });
        }
        scene.plays_until(800 * SECOND).map_err(|why| format!("seed {seed}: {why}")).unwrap();
        let goal = recovers + preset.terms().longest.mul_f64(1.25) + 6 * latency + 3 * SECOND;
        for story in scene.stories.values() {
            let last = story.sends.last().unwrap();
            assert!(story.accepted && last.0 <= goal, "seed {seed}: {recovers:?}, {goal:?}, {story:?}");
        }
        assert!(scene.book.gate.is_idle() && scene.book.gate.shut().is_none(), "seed {seed}");
    }
}

/// A session that always has forty calls waiting starves nobody, whether the number of places is stated or found out.
#[test]
fn a_heavy_session_starves_nobody() {
    const HEAVY: u64 = 1;
    for (seed, stated) in [(1, None), (2, None), (3, Some(4)), (4, Some(4))] {
        let rules = Rules { max_running: stated, ..Rules::default() };
        let mut scene = Scene::new(rules, seed, |asked| {
            if asked.taken < 4 { Answer::Takes(SECOND, 5 * SECOND) } else { Answer::Refuses(200 * MILLI) }
        });
        scene.follows = |session| (session == HEAVY).then_some(Duration::ZERO);
        for _ in 0..44 {
            scene.comes(Duration::ZERO, HEAVY, |_| ());
        }
        for number in 0..100_u32 {
            scene.comes(20 * SECOND * (number + 1), 2, |_| ());
        }
        scene.plays_until(2200 * SECOND).unwrap();
        let light = scene.stories.values().filter(|story| story.session != HEAVY);
        let waits: Vec<_> =
            light.map(|story| story.sends.last().map(|last| last.0.saturating_sub(story.came))).collect();
        assert_eq!(waits.len(), 100);
        assert!(waits.iter().all(|wait| wait.is_some_and(|wait| wait < 60 * SECOND)), "{seed}: {waits:?}");
        let heavy = scene.stories.values().filter(|story| story.session == HEAVY && story.accepted);
        assert!(heavy.count() > 1000, "the heavy one is served all the same");
    }
}

/// An idle, healthy upstream is reached without any wait by the first that come, however many that may be at once.
#[test]
fn a_healthy_lane_adds_no_wait() {
    for preset in Preset::ALL {
        let mut scene = Scene::new(Rules::default(), 1, |mut asked| takes(&mut asked));
        let burst = preset.terms().burst as u64;
        for round in 0..40_u32 {
            for number in 0..burst {
                let session = [number, number % 2, 1][usize::try_from(round % 3).unwrap()];
                scene.comes(5 * SECOND * round, session, |arrival| arrival.preset = preset);
            }
        }
        scene.plays_until(250 * SECOND).unwrap();
        assert!(scene.stories.len() as u64 == 40 * burst);
        for story in scene.stories.values() {
            assert_eq!(story.sends, [(story.came, Reason::Open)], "{preset:?}");
        }
    }
}

/// One session that is refused for ever shuts nothing and holds nobody up. It is sent at its own waits.
#[test]
fn one_refused_session_harms_itself_alone() {
    const REFUSED: u64 = 99;
    for seed in 0..30 {
        let mut scene = Scene::new(Rules::default(), seed, |mut asked| {
            if asked.session == REFUSED { Answer::Refuses(100 * MILLI) } else { takes(&mut asked) }
        });
        let refused = scene.comes(Duration::ZERO, REFUSED, |_| ());
        for number in 0..600_u32 {
            let apart = 2000 * MILLI + scene.book.dice.up_to(100 * MILLI);
            scene.comes(apart * number, u64::from(number % 3), |_| ());
        }
        for second in 0..300_u32 {
            scene.plays_until(4 * SECOND * (second + 1)).unwrap();
            assert_eq!(scene.book.gate.shut(), None, "seed {seed}");
        }
        for story in scene.stories.values().filter(|story| story.session != REFUSED) {
            assert_eq!(story.sends, [(story.came, Reason::Open)], "seed {seed}");
        }
        // Its waits have means of 0.65 s, 1.05 s, 1.85 s, ... 15.25 s: 85 sends in twenty minutes.
        let sends = &scene.stories[&refused].sends;
        assert!((75..95).contains(&sends.len()), "seed {seed}: {}", sends.len());
        let waits: Vec<Duration> = sends.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        for (wait, mean) in waits.iter().zip([0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 15.0, 15.0]) {
            let (least, most) = (0.25 + 0.75 * mean, 0.25 + 1.25 * mean);
            assert!((least..=most).contains(&wait.as_secs_f64()), "seed {seed}: {waits:?}");
        }
    }
}

/// Where each send is refused by chance, holding others back gains nothing: the lane finds that out and stays open.
#[test]
fn a_lane_that_refuses_at_random_is_found_out() {
    let (mut late, mut all) = (0, 0);
    for seed in 0..50_u64 {
        let mut scene = Scene::new(Rules::default(), seed, |asked| {
            if asked.dice.share() < 0.5 {
                Answer::Refuses(200 * MILLI)
            } else {
                Answer::Takes(1200 * MILLI, 6 * SECOND)
            }
        });
        for number in 0..600_u32 {
            scene.comes(SECOND * number, u64::from(number % 8), |_| ());
        }
        scene.plays_until(700 * SECOND).unwrap();
        let new = scene.stories.values().filter(|story| story.came > 300 * SECOND);
        let held: Vec<bool> = new.map(|story| story.found_shut).collect();
        let shut = held.iter().filter(|held| **held).count();
        assert!(shut * 20 <= held.len(), "seed {seed}: {shut} of {} found the lane shut", held.len());
        (late, all) = (late + shut, all + held.len());
    }
    assert!(all > 10_000 && late * 50 <= all, "{late} of {all}");
}

/// Own places, no number stated: the gate finds it, runs into it seldom, and fills it.
#[test]
fn own_places_are_filled_and_seldom_run_into() {
    for seed in 0..20 {
        let mut scene = Scene::new(Rules::default(), seed, |asked| {
            let runs = 3 * SECOND + asked.dice.up_to(6 * SECOND);
            if asked.taken < 8 { Answer::Takes(SECOND, runs) } else { Answer::Refuses(200 * MILLI) }
        });
        scene.follows = |_| Some(SECOND);
        for number in 0..12 {
            scene.comes(SECOND, number % 5, |_| ());
        }
        scene.plays_until(1500 * SECOND).unwrap();
        let sends: usize = scene.stories.values().map(|story| story.sends.len()).sum();
        let served = scene.stories.values().filter(|story| story.accepted).count();
        assert!(served > 1400, "seed {seed}: {served} served");
        assert!(sends * 100 <= served * 113, "seed {seed}: {sends} sends for {served} calls");
    }
}

fn refusal(first_wait: Duration) -> Refusal {
    let class = Class::Capacity(Fault::AtCapacity);
    Refusal { class, told: None, floor: Duration::ZERO, first_wait }
}

/// However many are refused together: a lane that shuts is asked within the first wait.
#[test]
fn a_lane_that_shuts_is_asked_within_the_first_wait() {
    for seed in 0..400 {
        let mut dice = SeededDice::new(seed);
        let mut gate = Gate::new(Rules::default());
        let mut now = Moment::after_start(100 * SECOND);
        let crowd = 2 + dice.bits() % 9;
        for number in 0..crowd {
            gate.arrive(call(number, number, now), now);
            assert!(matches!(gate.poll(now, &mut dice), Poll::Send(_)));
        }
        let mut shut = None;
        for number in 0..crowd {
            now = now + dice.up_to(30 * MILLI);
            let report = Report::Refused(refusal(SECOND));
            gate.settled(
                relay_core::event::CallId(number),
                Settled { report, back: Some(now) },
                now,
                &mut dice,
            );
            shut = shut.or(gate.shut());
        }
        let (why, since) = shut.unwrap();
        assert_eq!(why, Shut::Refused(Fault::AtCapacity));
        let asked = loop {
            match gate.poll(now, &mut dice) {
                Poll::Send(_) => break now,
                Poll::Wait(at) => now = at,
                Poll::Idle => unreachable!("somebody waits"),
            }
        };
        assert!(asked <= since + SECOND, "seed {seed}: asked {:?} after it shut", asked.since(since));
    }
}

/// What was to be sent and was not is given back: another may go in its place, for the same reason.
#[test]
fn what_was_not_sent_is_given_back() {
    let mut dice = SeededDice::new(1);
    let mut gate = Gate::new(Rules::default());
    let mut now = Moment::after_start(100 * SECOND);
    let next = |gate: &mut Gate, now: Moment, dice: &mut SeededDice| match gate.poll(now, dice) {
        Poll::Send(call) => Some((call, gate.reason(call).unwrap())),
        Poll::Wait(_) | Poll::Idle => None,
    };
    // A burst, and one in the place of one that was not sent.
    for number in 0..12 {
        gate.arrive(call(number, number, now), now);
    }
    let burst: Vec<_> = std::iter::from_fn(|| next(&mut gate, now, &mut dice)).collect();
    assert_eq!(burst.len(), 10);
    gate.left(burst[9].0, true, now);
    assert!(matches!(next(&mut gate, now, &mut dice), Some((_, Reason::Open))));
    assert_eq!(next(&mut gate, now, &mut dice), None);
    // The lane shuts; a probe that is not made lets another ask at once.
    now = now + 100 * MILLI;
    for (call, _) in burst.iter().take(9) {
        let report = Report::Refused(refusal(SECOND));
        gate.settled(*call, Settled { report, back: Some(now) }, now, &mut dice);
    }
    assert!(gate.shut().is_some());
    now = now + SECOND;
    let (asks, reason) = next(&mut gate, now, &mut dice).unwrap();
    assert_eq!((reason, next(&mut gate, now, &mut dice)), (Reason::Timer, None));
    gate.left(asks, true, now);
    let (asks, reason) = next(&mut gate, now, &mut dice).unwrap();
    assert_eq!((reason, next(&mut gate, now, &mut dice)), (Reason::Timer, None));
    // An acceptance lets two follow; one of them is not sent, and a third goes instead.
    now = now + 100 * MILLI;
    gate.accepted(asks, now);
    let follow: Vec<_> = std::iter::from_fn(|| next(&mut gate, now, &mut dice)).collect();
    assert!(follow.iter().all(|(_, reason)| *reason == Reason::Follow) && follow.len() == 2, "{follow:?}");
    gate.left(follow[0].0, true, now);
    assert!(matches!(next(&mut gate, now, &mut dice), Some((_, Reason::Follow))));
    assert_eq!(next(&mut gate, now, &mut dice), None);
    // One of ours ends: its place is taken, not taken after all, and taken.
    gate.left(asks, false, now);
    let (place, reason) = next(&mut gate, now, &mut dice).unwrap();
    assert_eq!((reason, next(&mut gate, now, &mut dice)), (Reason::Completion, None));
    gate.left(place, true, now);
    assert!(matches!(next(&mut gate, now, &mut dice), Some((_, Reason::Completion))));
    assert_eq!(next(&mut gate, now, &mut dice), None);
}
