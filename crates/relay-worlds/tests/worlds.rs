//! Whole worlds: nothing is lost, one seed gives one run, and full jitter and the oracle come to what an independent
//! simulation of the same services came to.

use std::time::Duration;

use relay_core::dice::Dice;
use relay_core::event::CallId;
use relay_core::moment::Moment;
use relay_worlds::admission::{Admission, Foresight, Newcomer, Poll, Refused};
use relay_worlds::clients::Clients;
use relay_worlds::gate_policy::Setup;
use relay_worlds::jobs::{BASELINES, Contender, FULL_JITTER, Job, play_all};
use relay_worlds::measure::{Cell, Run};
use relay_worlds::service::{self, Model};
use relay_worlds::table::{Table, Wanted};
use relay_worlds::world::{Scene, play};

/// Sends all that waits, whatever the service says.
#[derive(Default)]
struct OpensEverything {
    line: Vec<CallId>,
}

impl Admission for OpensEverything {
    fn arrive(&mut self, newcomer: Newcomer, _now: Moment) {
        self.line.push(newcomer.call);
    }

    fn poll(&mut self, _now: Moment, _service: &dyn Foresight, _dice: &mut dyn Dice) -> Poll {
        self.line.pop().map_or(Poll::Idle, Poll::Send)
    }

    fn refused(&mut self, refused: &Refused, _now: Moment, _dice: &mut dyn Dice) -> bool {
        if !refused.late {
            self.line.push(refused.call);
        }
        !refused.late
    }

    fn left(&mut self, call: CallId, _now: Moment) {
        self.line.retain(|waiting| *waiting != call);
    }
}

fn scene(service: &str, clients: Clients) -> Scene {
    let model = service::named(service).and_then(|named| named.model(clients));
    Scene::new(clients, model.expect("a service that these clients meet"))
}

/// One that never ends, one that cuts, one with a breaker, the gate and the oracle.
fn contenders() -> Vec<(&'static str, Contender)> {
    let some = |name: &str| ["full-jitter", "node-proxy", "codex-retry"].contains(&name);
    let alone = BASELINES.iter().filter(|row| some(row.0));
    let alone = alone.map(|(name, policy)| (*name, Contender::Alone(*policy)));
    alone.chain([("gate", Contender::Gate(Setup::default())), ("oracle", Contender::Oracle)]).collect()
}

/// What holds for any run.
fn nothing_is_lost(run: &Run, patience: f64, what: &str) {
    assert!(run.came > 0, "{what}: nobody came");
    assert_eq!(run.came, run.waits.len() + run.failed, "{what}: came, served and failed");
    assert_eq!(run.sends, run.waits.len() + run.refused.len(), "{what}: sends, served and refused");
    assert_eq!(run.waits.len(), run.light.len() + run.heavy.len(), "{what}: light and heavy");
    assert!(run.refused.is_sorted(), "{what}: refused out of order");
    let most = run.waits.iter().copied().fold(0.0, f64::max);
    assert!(most <= patience, "{what}: waited {most} s");
}

#[test]
fn nothing_is_lost_in_any_world() {
    let mut failed = 0;
    for named in &service::ALL {
        for clients in Clients::ALL {
            let Some(model) = named.model(clients) else { continue };
            let (until, patience) = (Duration::from_secs(90), Duration::from_secs(40));
            let scene = Scene { clients, until, model, patience, way: Duration::ZERO };
            for (name, contender) in contenders() {
                let run = play(&scene, contender.admission().as_mut(), 3);
                nothing_is_lost(&run, 90.0, &format!("{} {} {name}", named.name, clients.name()));
                failed += run.failed;
            }
        }
    }
    assert!(failed > 1000, "no world ran short");
}

#[test]
fn one_that_opens_everything_is_measured_too() {
    let run = play(&scene("U3-rate-RA-accurate", Clients::TenAgents), &mut OpensEverything::default(), 3);
    nothing_is_lost(&run, 600.0, "opens everything");
    assert!(run.early > run.waits.len(), "it minds no Retry-After");
    assert!(run.peak() > 1000);
    let run = play(&scene("U3-rate-RA-accurate", Clients::TenAgents), &mut FULL_JITTER.admission(), 3);
    assert!(run.early > 0, "each call minds its own alone");
}

#[test]
fn a_seed_is_a_run() {
    for (service, clients) in [
        ("U1-shared-slots", Clients::TenAgents),
        ("S-sticky+overload", Clients::FiveSessions),
        ("U6-sustained", Clients::HundredAtOnce),
        ("R-random-fluct", Clients::Batch),
    ] {
        let scene = Scene { until: Duration::from_secs(600), ..scene(service, clients) };
        for (name, contender) in contenders() {
            let run = |seed| play(&scene, contender.admission().as_mut(), seed);
            assert_eq!(run(8), run(8), "{service} {name}");
            assert_ne!(run(8), run(9), "{service} {name}");
        }
    }
}

#[test]
fn threads_change_nothing() {
    let wanted =
        Wanted { clients: Some(Clients::OneUser), service: Some("U2".to_owned()), ..Wanted::default() };
    let jobs: Vec<Job> = Table::Capacity.jobs(&wanted).into_iter().map(|(_, job)| job).collect();
    assert!(jobs.len() > 8);
    let together = play_all(&jobs, &(1..3), &|_| {});
    let one_by_one: Vec<Cell> = jobs.iter().map(|job| job.play(1..3)).collect();
    // Debug, because what is not a number is not equal to itself.
    assert_eq!(format!("{together:?}"), format!("{one_by_one:?}"));
}

#[test]
fn the_oracle_is_never_refused_but_to_begin_loading() {
    for named in service::ALL.iter().filter(|named| named.name.starts_with('U')) {
        for clients in Clients::ALL {
            let Some(model) = named.model(clients) else { continue };
            let scene = Scene { until: Duration::from_secs(900), ..Scene::new(clients, model) };
            let run = play(&scene, Contender::Oracle.admission().as_mut(), 11);
            let begins = usize::from(matches!(model, Model::Loading { .. }));
            assert_eq!(run.refused.len(), begins, "{} {}", named.name, clients.name());
            assert_eq!(run.early, 0, "{} {}", named.name, clients.name());
        }
    }
}

#[test]
fn own_slots_are_never_idle_under_the_oracle() {
    // A hundred at once on 20 slots: the wait of the last is about that of four rounds of five.
    let scene = scene("U1b-own-slots", Clients::HundredAtOnce);
    let run = play(&scene, Contender::Oracle.admission().as_mut(), 2);
    assert_eq!(run.waits.iter().filter(|wait| **wait < 1e-9).count(), 60, "three times twenty begin at once");
}

#[test]
fn an_own_server_serves_everybody_whoever_waits() {
    let scene = Scene::new(Clients::Mixed, Model::Queue { slots: 20 });
    let run = play(&scene, Contender::Alone(BASELINES[0].1).admission().as_mut(), 4);
    nothing_is_lost(&run, 600.0, "own server");
    assert_eq!((run.failed, run.refused.len()), (0, 0));
    let mean = |waits: &[f64]| waits.iter().sum::<f64>() / waits.len() as f64;
    let (light, heavy) = (mean(&run.light), mean(&run.heavy));
    assert!((light / heavy - 1.0).abs() < 0.1, "{light} {heavy}: it knows no sessions");
    assert!((heavy / 25.5 - 1.0).abs() < 0.1, "{heavy}");
}

/// Mean wait and sends per success of an independent simulation, over 400 seeds of its own.
const INDEPENDENT: [(&str, Clients, Contender, f64, f64); 8] = [
    ("U1b-own-slots", Clients::FiveSessions, Contender::Alone(FULL_JITTER), 3.04, 2.19),
    ("U1b-own-slots", Clients::FiveSessions, Contender::Oracle, 2.49, 1.0),
    ("U2-overload-p1", Clients::TenAgents, Contender::Alone(FULL_JITTER), 5.49, 1.86),
    ("U2-overload-p1", Clients::TenAgents, Contender::Oracle, 3.94, 1.0),
    ("U3-rate-RA-accurate", Clients::TenAgents, Contender::Alone(FULL_JITTER), 6.07, 2.62),
    ("U1-shared-slots", Clients::FiveSessions, Contender::Alone(FULL_JITTER), 10.66, 3.16),
    ("R-random-0.4", Clients::TenAgents, Contender::Alone(FULL_JITTER), 0.92, 1.66),
    ("S-sticky+slots", Clients::FiveSessions, Contender::Alone(FULL_JITTER), 8.87, 2.45),
];

#[test]
fn an_independent_simulation_comes_to_the_same() {
    let jobs: Vec<Job> = INDEPENDENT
        .into_iter()
        .map(|(service, clients, contender, ..)| Job { scene: scene(service, clients), contender })
        .collect();
    let cells = play_all(&jobs, &(500..505), &|_| {});
    for ((service, clients, contender, wait, sends), cell) in INDEPENDENT.iter().zip(cells) {
        let off = |value: f64, expected: f64| (value / expected - 1.0).abs();
        let what = format!("{service} {} {contender:?}", clients.name());
        assert!(off(cell.wait.mean, *wait) < 0.25, "{what}: waits {} s, not {wait}", cell.wait.mean);
        assert!(off(cell.sends.mean, *sends) < 0.1, "{what}: {} sends, not {sends}", cell.sends.mean);
    }
}
