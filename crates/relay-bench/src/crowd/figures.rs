//! What is said of a way: its figures, the table of all, and what the gate must not fall short of.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::clients::Call;
use super::machine::Machine;
use super::service::Sends;
use super::world::{Short, World};
use super::{Options, Way};
use crate::report::percentile;

const SERVED_PERCENT: &str = "served_percent";
const WAIT_MEAN: &str = "wait_mean_s";
const SENDS_PER_SERVED: &str = "sends_per_served_call";

/// Each figure: its key, its name, and its decimals.
const FIGURES: [(&str, &str, usize); 13] = [
    ("calls", "calls", 0),
    (SERVED_PERCENT, "calls served, %", 2),
    ("served_per_minute", "calls served per minute", 1),
    (WAIT_MEAN, "extra wait of those, s", 2),
    ("wait_p50_s", "the same, half of them", 1),
    ("wait_p95_s", "the same, 95 of 100", 1),
    ("wait_longest_s", "the same, longest", 1),
    ("lost_per_served_call_s", "lost per served call, s", 2),
    (SENDS_PER_SERVED, "sends per served call", 2),
    ("refused_per_minute", "refused per minute", 1),
    ("refused_peak_60s", "refused in the worst minute", 0),
    ("relay_cpu_ms_per_call", "relay: CPU per call, ms", 2),
    ("relay_memory_mb", "relay: memory, MB", 1),
];

/// The figures of a way in one seed, in the order of [`FIGURES`]; not a number where there is none.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Figures([f64; FIGURES.len()]);

impl Figures {
    /// From what the clients and the service saw; `used` are the seconds of CPU and the KiB of memory of the relay.
    pub(super) fn of(world: &World, calls: &[Call], sends: &Sends, used: Option<(f64, f64)>) -> Self {
        let minutes = world.until / 60.0;
        let mut waits: Vec<f64> = calls.iter().filter_map(|call| call.waited).collect();
        let served = waits.len() as f64;
        let waited: f64 = waits.iter().sum();
        // Whoever is told of a failure has waited for nothing. What never ended is told of by its own figure.
        let failed = calls.iter().filter(|call| call.waited.is_none());
        let for_nothing: f64 = failed.filter_map(|call| Some(call.ended? - call.began)).sum();
        let in_time = |at: f64| at <= world.until;
        let served_in_time =
            calls.iter().filter(|call| call.waited.is_some() && call.ended.is_some_and(in_time)).count();
        let refused: Vec<f64> = sends.refused.iter().copied().filter(|at| in_time(*at)).collect();
        let (cpu, memory) = used.unwrap_or((f64::NAN, f64::NAN));
        Self([
            calls.len() as f64,
            100.0 * served / calls.len() as f64,
            served_in_time as f64 / minutes,
            waited / served,
            percentile(&mut waits, 0.5),
            percentile(&mut waits, 0.95),
            percentile(&mut waits, 1.0),
            (waited + for_nothing) / served,
            sends.all as f64 / served,
            refused.len() as f64 / minutes,
            most_within(&refused, 60.0) as f64,
            1e3 * cpu / calls.len() as f64,
            memory / 1024.0,
        ])
    }

    fn get(&self, key: &str) -> f64 {
        let place = FIGURES.iter().position(|figure| figure.0 == key);
        place.map_or(f64::NAN, |place| self.0[place])
    }
}

/// The most of these moments, which are in order, that lie within a span.
fn most_within(moments: &[f64], span: f64) -> usize {
    let mut first = 0;
    let within = |(last, at): (usize, &f64)| {
        while at - moments[first] >= span {
            first += 1;
        }
        last + 1 - first
    };
    moments.iter().enumerate().map(within).max().unwrap_or(0)
}

/// All seeds of all services.
#[derive(Default)]
pub(super) struct Report {
    played: BTreeMap<Short, BTreeMap<Way, Vec<Figures>>>,
    machine: BTreeMap<Short, Vec<Machine>>,
}

impl Report {
    pub(super) fn add(&mut self, short: Short, figures: [(Way, Figures); 3], machine: Machine) {
        let ways = self.played.entry(short).or_default();
        for (way, figures) in figures {
            ways.entry(way).or_default().push(figures);
        }
        self.machine.entry(short).or_default().push(machine);
    }

    fn seeds(&self, short: Short, way: Way, key: &str) -> Vec<f64> {
        let seeds = self.played.get(&short).and_then(|ways| ways.get(&way));
        seeds.into_iter().flatten().map(|figures| figures.get(key)).collect()
    }

    /// Prints the tables, and returns what the gate falls short of.
    #[expect(clippy::print_stdout, reason = "the tables are what was asked for")]
    pub(super) fn print(&self, options: &Options) -> Vec<String> {
        println!(
            "{} clients as {}, {} seeds of {} minutes each, {} times as fast; mean (least..most) of the seeds",
            options.clients,
            options.kind.name(),
            options.seeds,
            options.minutes,
            options.rate
        );
        for &short in self.played.keys() {
            let heads = Way::ALL.map(|way| format!("{:>26}", way.name())).concat();
            println!("\n{:<28}{heads}", short.name());
            for (key, name, decimals) in FIGURES {
                let cell = |way| format!("{:>26}", spread(&self.seeds(short, way, key), decimals));
                println!("{name:<28}{}", Way::ALL.map(cell).concat());
            }
            println!("{}", self.wait_compared(short));
        }
        self.missed()
    }

    /// Prints the figures of every seed as JSON, and returns what the gate falls short of.
    #[expect(clippy::print_stdout, reason = "the figures are what was asked for")]
    pub(super) fn print_json(&self, options: &Options) -> Vec<String> {
        let missed = self.missed();
        let mut services = serde_json::Map::new();
        for &short in self.played.keys() {
            let mut ways = serde_json::Map::new();
            for way in Way::ALL {
                let figure =
                    |(key, ..): (&str, &str, usize)| (key.to_owned(), json!(self.seeds(short, way, key)));
                ways.insert(way.name().replace(' ', "_"), FIGURES.into_iter().map(figure).collect());
            }
            let machine = self.machine.get(&short).into_iter().flatten();
            let machine = machine.map(|machine| {
                json!({
                    "busy_percent": machine.busy, "own_percent": machine.own, "late_s": machine.late
                })
            });
            ways.insert("machine".to_owned(), machine.collect());
            services.insert(short.name().to_owned(), Value::Object(ways));
        }
        let all = json!({
            "clients": options.clients, "as": options.kind.name(), "rate": options.rate,
            "minutes": options.minutes, "seeds": options.seeds, "services": services, "missed": missed,
        });
        println!("{all:#}");
        missed
    }

    /// A wait is longer where it is so by a twentieth and in every seed; less is chance. Calls that fail are not among
    /// those that wait, so the shares that were served belong to it.
    fn wait_compared(&self, short: Short) -> String {
        let both = |key| [Way::Gate, Way::Curves].map(|way| self.seeds(short, way, key));
        let [gate, curves] = both(WAIT_MEAN);
        let always = gate.iter().zip(&curves).all(|(gate, curves)| gate > curves);
        let word = if always && mean(&gate) > 1.05 * mean(&curves) { "LONGER" } else { "no longer" };
        let [served, served_by_curves] = both(SERVED_PERCENT).map(|percents| mean(&percents));
        format!(
            "calls wait {word} with the gate: {:.2} s ({served:.1} % served), without {:.2} s ({served_by_curves:.1} %)",
            mean(&gate),
            mean(&curves)
        )
    }

    /// What must not be.
    fn missed(&self) -> Vec<String> {
        let mut missed = Vec::new();
        for &short in self.played.keys() {
            let name = short.name();
            let served = self.seeds(short, Way::Gate, SERVED_PERCENT);
            if let Some(few) = served.iter().find(|percent| percent.is_nan() || **percent < 99.0) {
                missed.push(format!(
                    "{name}: with the gate only {few:.2} % of the calls of a seed were served"
                ));
            }
            let [gate, curves] =
                [Way::Gate, Way::Curves].map(|way| mean(&self.seeds(short, way, SENDS_PER_SERVED)));
            if gate > curves {
                missed.push(format!(
                    "{name}: {gate:.2} sends per served call with the gate, {curves:.2} without"
                ));
            }
        }
        missed
    }
}

fn mean(figures: &[f64]) -> f64 {
    figures.iter().sum::<f64>() / figures.len() as f64
}

fn spread(figures: &[f64], decimals: usize) -> String {
    if figures.iter().any(|figure| figure.is_nan()) {
        return "-".to_owned();
    }
    let least = figures.iter().copied().fold(f64::INFINITY, f64::min);
    let most = figures.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{:.decimals$} ({least:.decimals$}..{most:.decimals$})", mean(figures))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn the_worst_minute_may_begin_at_any_moment() {
        assert_eq!(most_within(&[], 60.0), 0);
        assert_eq!(most_within(&[0.0, 59.0, 61.0, 62.0, 118.9, 119.0, 500.0], 60.0), 4);
        assert_eq!(most_within(&[0.0, 60.0], 60.0), 1);
    }

    fn figures(served: usize, refused: usize) -> Figures {
        let world = World { seed: 1, begin: Instant::now(), rate: 1.0, until: 60.0 };
        let mut calls = vec![Call { began: 0.0, ended: Some(10.0), waited: Some(2.0) }; served];
        calls.push(Call { began: 3.0, ended: Some(7.0), waited: None });
        Figures::of(&world, &calls, &Sends { all: served + refused, refused: vec![1.0; refused] }, None)
    }

    #[test]
    fn a_failed_call_costs_those_that_are_served() {
        let figures = figures(4, 6);
        let shown = [SERVED_PERCENT, WAIT_MEAN, "lost_per_served_call_s", SENDS_PER_SERVED]
            .map(|key| figures.get(key));
        assert_eq!(shown, [80.0, 2.0, 3.0, 2.5]);
        assert!(figures.get("relay_memory_mb").is_nan());
    }

    #[test]
    fn the_gate_has_to_serve_and_may_not_send_more() {
        let report = |gate, curves| {
            let mut report = Report::default();
            let machine = Machine { busy: 0.0, own: 0.0, late: 0.0 };
            let ways = [(Way::Gate, gate), (Way::Curves, curves), (Way::Alone, figures(1, 1))];
            report.add(Short::Slots, ways, machine);
            report.missed().len()
        };
        assert_eq!(report(figures(200, 10), figures(200, 10)), 0);
        assert_eq!(report(figures(200, 11), figures(200, 10)), 1);
        assert_eq!(report(figures(50, 11), figures(200, 10)), 2);
    }
}
