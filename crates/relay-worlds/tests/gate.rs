//! The gate in whole worlds: what it keeps to, and what each of its parts is there for.

use std::time::Duration;

use relay_core::gate::{Preset, Rules};
use relay_worlds::clients::Clients;
use relay_worlds::gate_policy::{Lane, Setup};
use relay_worlds::jobs::{Contender, FULL_JITTER, Job, play_all};
use relay_worlds::measure::Cell;
use relay_worlds::service::{self, Model};
use relay_worlds::world::{Scene, play};

fn scene(service: &str, clients: Clients) -> Scene {
    let model = service::named(service).and_then(|named| named.model(clients));
    Scene::new(clients, model.expect("a service that these clients meet"))
}

/// The cells of these clients and this service: the whole gate, the gate without a part, full jitter and the oracle.
fn compare<const COUNT: usize>(scene: Scene, contenders: [Contender; COUNT]) -> [Cell; COUNT] {
    let jobs = contenders.map(|contender| Job { scene, contender });
    let cells = play_all(&jobs, &(900..904), &|_| {});
    cells.try_into().expect("one cell of each")
}

fn gate(without: impl FnOnce(&mut Rules)) -> Contender {
    let mut setup = Setup::default();
    without(&mut setup.rules);
    Contender::Gate(setup)
}

fn whole() -> Contender {
    gate(|_| {})
}

#[test]
fn it_comes_close_to_the_oracle_where_slots_are_its_own() {
    let scene = scene("U1b-own-slots", Clients::FiveSessions);
    let [gate, oracle] = compare(scene, [whole(), Contender::Oracle]);
    assert!(gate.wait.mean < 1.05 * oracle.wait.mean, "{} {}", gate.wait.mean, oracle.wait.mean);
    assert!(gate.sends.mean < 1.1, "{}", gate.sends.mean);
    assert!(gate.success.mean > 0.9999);
}

#[test]
fn own_slots_far_away_are_not_taken_for_a_service_that_refuses_at_random() {
    let slots = Model::Slots { slots: 3, outside: None };
    let (until, way) = (Duration::from_secs(900), Duration::from_millis(25));
    let scene = Scene { until, way, ..Scene::new(Clients::TenAgents, slots) };
    for seed in 0..60 {
        let run = play(&scene, &mut Lane::new(Setup::default()), seed);
        assert!(run.peak() < 50, "seed {seed}: {} were refused in a minute", run.peak());
    }
}

#[test]
fn it_never_sends_before_it_was_told_to_and_fails_nobody() {
    for clients in [Clients::TenAgents, Clients::HundredAtOnce, Clients::Batch] {
        let told = scene("U3-rate-RA-accurate", clients);
        let run = play(&told, &mut Lane::new(Setup::default()), 6);
        assert!(!run.refused.is_empty(), "{}: it was never told", clients.name());
        assert_eq!((run.early, run.failed), (0, 0), "{}", clients.name());
    }
}

#[test]
fn it_keeps_to_a_stated_number_of_places() {
    let twelve = Scene::new(Clients::FiveSessions, Model::Slots { slots: 12, outside: None });
    let stated = Setup::default().with_places(12);
    let run = play(&twelve, &mut Lane::new(stated), 6);
    assert_eq!((run.refused.len(), run.failed), (0, 0));
    let mean = |waits: &[f64]| waits.iter().sum::<f64>() / waits.len() as f64;
    assert!(mean(&run.light) < 0.5 * mean(&run.heavy), "light sessions go first");
    assert!(!play(&twelve, &mut Lane::new(Setup::default()), 6).refused.is_empty(), "unless they are stated");
}

#[test]
fn a_stricter_preset_bothers_a_service_less() {
    let overload = scene("U2-overload-p1", Clients::TenAgents);
    let preset = |preset| Contender::Gate(Setup { preset, ..Setup::default() });
    let presets = [preset(Preset::Interactive), preset(Preset::Batch), preset(Preset::Strict)];
    let [interactive, batch, strict] = compare(overload, presets);
    let sends = [interactive.sends.mean, batch.sends.mean, strict.sends.mean];
    assert!(sends[0] > sends[2] && sends[1] > sends[2], "{sends:?}");
}

#[test]
fn own_completions_and_the_remembered_limit_earn_their_place_on_own_slots() {
    let slots = scene("U1b-own-slots", Clients::TenAgents);
    let parts = [whole(), gate(|rules| rules.completions = false), gate(|rules| rules.room = false)];
    let [whole, no_completions, no_room] = compare(slots, parts);
    assert!(no_completions.wait.mean > 1.2 * whole.wait.mean, "{}", no_completions.wait.mean);
    assert!(no_room.sends.mean > whole.sends.mean + 0.2, "{}", no_room.sends.mean);
}

#[test]
fn without_the_judgement_of_randomness_lanes_shut_that_should_not() {
    let random = scene("R-random-0.4", Clients::TenAgents);
    let parts = [whole(), gate(|rules| rules.random = false), Contender::Alone(FULL_JITTER)];
    let [whole, without, full_jitter] = compare(random, parts);
    assert!(whole.wait.mean < full_jitter.wait.mean, "{} {}", whole.wait.mean, full_jitter.wait.mean);
    assert!(without.wait.mean > 2.0 * whole.wait.mean, "{}", without.wait.mean);
}

#[test]
fn without_the_measured_rate_a_limit_costs_sends() {
    let limit = scene("U3-rate-RA-absent", Clients::TenAgents);
    let [whole, without] = compare(limit, [whole(), gate(|rules| rules.rate = false)]);
    assert!(whole.sends.mean < 1.1, "{}", whole.sends.mean);
    assert!(without.sends.mean > whole.sends.mean + 0.2, "{}", without.sends.mean);
}

#[test]
fn suspicion_keeps_calls_from_hanging() {
    let slow = scene("U4-slow-fail", Clients::TenAgents);
    let parts = [whole(), gate(|rules| rules.suspicion = false)];
    let [whole, without] = compare(slow, parts);
    assert!(without.wait.mean > 1.1 * whole.wait.mean, "{} {}", without.wait.mean, whole.wait.mean);
}

#[test]
fn what_is_known_of_recoveries_saves_sends_in_long_outages() {
    let long = scene("U2L-long-overload", Clients::TenAgents);
    let [whole, without] = compare(long, [whole(), gate(|rules| rules.recovery = false)]);
    assert!(without.sends.mean > whole.sends.mean + 0.05, "{} {}", without.sends.mean, whole.sends.mean);
}
