//! What the gate has to reach, cell by cell, as data. Cells in which it is known to fall short are here too, with the
//! reason: they are shown and do not fail a check.

use std::fmt;

use crate::clients::Clients;
use crate::measure::Cell;

/// How long calls may wait in the mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Wait {
    /// So many seconds.
    Seconds(f64),
    /// So many times the oracle's wait.
    TimesOracle(f64),
    /// So many seconds more than the oracle's wait.
    OraclePlus(f64),
    /// So many times full jitter's wait.
    TimesFullJitter(f64),
    /// No longer than full jitter's wait with the same seeds, but for 0.05 s, as far as the seeds can tell.
    LikeFullJitter,
}

/// How many sends a success may cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sends {
    /// So many.
    AtMost(f64),
    /// So many times full jitter's.
    TimesFullJitter(f64),
}

/// What one cell has to reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Target {
    /// The service.
    pub service: &'static str,
    /// The clients.
    pub clients: Clients,
    /// The bound on the wait.
    pub wait: Wait,
    /// The bound on sends per success.
    pub sends: Sends,
    /// Why it is known to be missed, if it is.
    pub known: Option<&'static str>,
}

/// The cells a target is held against.
#[derive(Debug, Clone, Copy)]
pub struct Measured<'a> {
    /// The gate's.
    pub gate: &'a Cell,
    /// Full jitter's.
    pub full_jitter: &'a Cell,
    /// The oracle's, where the service has one.
    pub oracle: Option<&'a Cell>,
}

/// Full jitter may be beaten by this many seconds before it counts.
const SLACK: f64 = 0.05;
/// No more than this share of requests may fail that full jitter gets through, as far as the seeds can tell.
const FAILURES: f64 = 0.01;

impl Target {
    /// What is missed, in words; nothing, and the target is met.
    #[must_use]
    pub fn misses(&self, measured: Measured<'_>) -> Vec<String> {
        let Measured { gate, full_jitter, oracle } = measured;
        let oracle = oracle.map_or(f64::NAN, |oracle| oracle.wait.mean);
        let mut misses = Vec::new();
        let mut at_most = |what: &str, value: f64, bound: f64| {
            // What is not a number has not met its bound.
            if value.is_nan() || bound.is_nan() || value > bound {
                misses.push(format!("{what} {value:.2} > {bound:.2}"));
            }
        };
        let wait = gate.wait.mean;
        match self.wait {
            Wait::Seconds(most) => at_most("wait", wait, most),
            Wait::TimesOracle(times) => at_most("wait", wait, times * oracle),
            Wait::OraclePlus(more) => at_most("wait", wait, oracle + more),
            Wait::TimesFullJitter(times) => at_most("wait", wait, times * full_jitter.wait.mean),
            Wait::LikeFullJitter => {
                let longer = gate.longer_than(full_jitter);
                at_most("wait more than full jitter's by", longer.mean, longer.within + SLACK);
            }
        }
        match self.sends {
            Sends::AtMost(most) => at_most("sends", gate.sends.mean, most),
            Sends::TimesFullJitter(times) => {
                at_most("sends", gate.sends.mean, times * full_jitter.sends.mean);
            }
        }
        let failures = gate.fails_more_than(full_jitter);
        at_most("failures more than full jitter's by", failures.mean, failures.within + FAILURES);
        at_most("sends that may have run twice", gate.cut as f64, 0.0);
        at_most("sends before a Retry-After", gate.early as f64, 0.0);
        misses
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.wait {
            Wait::Seconds(most) => write!(f, "<= {most} s")?,
            Wait::TimesOracle(times) => write!(f, "<= {times:.2}x oracle")?,
            Wait::OraclePlus(more) => write!(f, "<= oracle + {more} s")?,
            Wait::TimesFullJitter(1.0) | Wait::LikeFullJitter => write!(f, "<= full jitter")?,
            Wait::TimesFullJitter(times) => write!(f, "<= {times:.2}x full jitter")?,
        }
        match self.sends {
            Sends::AtMost(most) => write!(f, ", {most:.2}"),
            Sends::TimesFullJitter(times) => write!(f, ", {times:.2}x"),
        }
    }
}

const fn target(service: &'static str, clients: Clients, wait: Wait, sends: f64) -> Target {
    Target { service, clients, wait, sends: Sends::AtMost(sends), known: None }
}

const fn known(target: Target, why: &'static str) -> Target {
    Target { known: Some(why), ..target }
}

/// The targets of services that are short of capacity or limit the rate.
pub const CAPACITY: [Target; 26] = {
    use Clients::{Batch, FiveSessions, HundredAtOnce, OneUser, TenAgents};
    use Wait::{OraclePlus, Seconds, TimesFullJitter, TimesOracle};
    [
        target("U1-shared-slots", OneUser, Seconds(4.5), 2.3),
        target("U1-shared-slots", TenAgents, Seconds(3.8), 1.7),
        target("U1-shared-slots", FiveSessions, Seconds(3.6), 1.3),
        target("U1-shared-slots", HundredAtOnce, Seconds(40.0), 1.8),
        target("U1b-own-slots", TenAgents, TimesOracle(1.15), 1.12),
        target("U1b-own-slots", FiveSessions, TimesOracle(1.05), 1.10),
        target("U1b-own-slots", HundredAtOnce, TimesOracle(1.05), 1.35),
        target("U2-overload-p1", OneUser, TimesOracle(1.30), 2.5),
        target("U2-overload-p1", TenAgents, TimesOracle(1.17), 1.27),
        target("U2-overload-p1", FiveSessions, TimesOracle(1.20), 1.13),
        target("U2-overload-p1", HundredAtOnce, OraclePlus(4.5), 1.13),
        target("U2-overload-p0.8", TenAgents, TimesFullJitter(1.0), 1.7),
        target("U2-overload-p0.8", FiveSessions, TimesFullJitter(1.05), 1.7),
        known(
            target("U2-overload-p0.8", HundredAtOnce, TimesFullJitter(1.0), 1.7),
            "an overload that serves a fifth looks shut to a hundred at once: longer waits, fewer sends",
        ),
        target("U2L-long-overload", OneUser, TimesOracle(1.20), 2.5),
        target("U2L-long-overload", TenAgents, TimesOracle(1.10), 1.22),
        target("U3-rate-RA-accurate", TenAgents, TimesOracle(1.05), 1.10),
        target("U3-rate-RA-absent", TenAgents, TimesOracle(1.05), 1.10),
        target("U3-rate-RA-long", TenAgents, TimesOracle(1.10), 1.10),
        target("U3-rate-rejects-cost", TenAgents, TimesOracle(1.6), 1.15),
        target("U3-rate-RA-zero-untyped", TenAgents, TimesOracle(1.05), 3.0),
        target("U3-rate-RA-accurate", HundredAtOnce, TimesOracle(1.08), 1.12),
        known(
            target("U3-rate-RA-long", Batch, TimesOracle(1.10), 1.10),
            "a Retry-After three times too long is obeyed",
        ),
        target("U4-slow-fail", OneUser, TimesFullJitter(1.10), 1.45),
        target("U4-slow-fail", TenAgents, Seconds(13.5), 1.15),
        target("U5-warm-up", TenAgents, TimesOracle(1.15), 1.13),
    ]
};

/// The services that refuse now one and now another.
pub const INTERMITTENT: [&str; 10] = [
    "R-random-0.06",
    "R-random-0.2",
    "R-random-0.4",
    "R-random-0.6",
    "R-random-0.8",
    "R-random-0.9",
    "R-random-fluct",
    "S-sticky",
    "S-sticky+slots",
    "S-sticky+overload",
];

const BURST: &str =
    "a hundred at once are paced, and a lane without history looks shut until its first false ends";
const FEW: &str = "two refusals in a row of the only sessions there are look like an outage";
const SESSIONS: &str = "with few slots and few sessions a refusal of either kind looks like the other";

/// Cells of intermittent refusals that are known to be missed.
const KNOWN: [(&str, Clients, &str); 14] = [
    ("R-random-0.06", Clients::HundredAtOnce, BURST),
    ("R-random-0.2", Clients::HundredAtOnce, BURST),
    ("R-random-0.4", Clients::HundredAtOnce, BURST),
    ("R-random-0.6", Clients::HundredAtOnce, BURST),
    ("R-random-0.8", Clients::HundredAtOnce, BURST),
    ("R-random-0.9", Clients::HundredAtOnce, BURST),
    ("R-random-fluct", Clients::HundredAtOnce, BURST),
    ("S-sticky", Clients::HundredAtOnce, BURST),
    ("S-sticky+slots", Clients::HundredAtOnce, BURST),
    ("S-sticky+overload", Clients::HundredAtOnce, BURST),
    ("R-random-0.2", Clients::OneUser, FEW),
    ("R-random-0.2", Clients::Batch, FEW),
    ("R-random-0.4", Clients::Batch, FEW),
    ("S-sticky+slots", Clients::FiveSessions, SESSIONS),
];

/// The target of a service that refuses now one and now another: full jitter's wait and sends. A batch has one only
/// where it is known to be missed, and a single user meets no slots.
#[must_use]
pub fn intermittent(service: &'static str, clients: Clients) -> Option<Target> {
    let known = KNOWN.iter().find(|row| row.0 == service && row.1 == clients).map(|row| row.2);
    let held = match clients {
        Clients::OneUser => service != "S-sticky+slots",
        Clients::TenAgents | Clients::FiveSessions | Clients::HundredAtOnce => true,
        Clients::Batch | Clients::Mixed => known.is_some(),
    };
    let sends = Sends::TimesFullJitter(1.05);
    held.then_some(Target { service, clients, wait: Wait::LikeFullJitter, sends, known })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Figure, Run};
    use crate::service::named;
    use std::time::Duration;

    fn every() -> Vec<Target> {
        let random = INTERMITTENT.iter().flat_map(|service| {
            Clients::ALL.into_iter().filter_map(|clients| intermittent(service, clients))
        });
        CAPACITY.into_iter().chain(random).collect()
    }

    #[test]
    fn each_target_is_of_a_service_that_exists_and_stands_once() {
        let mut cells: Vec<_> = every().iter().map(|target| (target.service, target.clients)).collect();
        for (service, clients) in &cells {
            assert!(named(service).unwrap().model(*clients).is_some(), "{service} {}", clients.name());
        }
        let count = cells.len();
        cells.sort_unstable();
        cells.dedup();
        assert_eq!(cells.len(), count, "a cell stands twice");
        assert_eq!(every().iter().filter(|target| target.known.is_some()).count(), 16);
    }

    fn cell(wait: f64, sends: usize, came: usize) -> Cell {
        let run = |more| Run {
            came,
            waits: vec![wait + more; 100],
            sends,
            took: Duration::from_secs(60),
            ..Run::default()
        };
        Cell::of(&[run(-0.01), run(0.01)])
    }

    #[test]
    fn each_bound_is_missed_just_beyond_it() {
        let (full_jitter, oracle) = (cell(4.0, 200, 100), cell(2.0, 100, 100));
        let misses = |wait, sends, gate: &Cell| {
            let target = Target { service: "", clients: Clients::OneUser, wait, sends, known: None };
            let measured = Measured { gate, full_jitter: &full_jitter, oracle: Some(&oracle) };
            target.misses(measured).len()
        };
        for (wait, bound) in [
            (Wait::Seconds(3.0), 3.0),
            (Wait::TimesOracle(1.5), 3.0),
            (Wait::OraclePlus(1.0), 3.0),
            (Wait::TimesFullJitter(0.75), 3.0),
            (Wait::LikeFullJitter, 4.05),
        ] {
            let sends = Sends::AtMost(1.5);
            assert_eq!(misses(wait, sends, &cell(bound - 0.001, 150, 100)), 0, "{wait:?}");
            assert_eq!(misses(wait, sends, &cell(bound + 0.001, 150, 100)), 1, "{wait:?}");
            assert_eq!(misses(wait, sends, &cell(bound + 0.001, 151, 100)), 2, "{wait:?}");
        }
        let like = Sends::TimesFullJitter(1.05);
        assert_eq!(misses(Wait::Seconds(3.0), like, &cell(3.0, 210, 100)), 0);
        assert_eq!(misses(Wait::Seconds(3.0), like, &cell(3.0, 211, 100)), 1);
        assert_eq!(misses(Wait::Seconds(3.0), like, &cell(3.0, 200, 101)), 0, "1 % may fail");
        assert_eq!(misses(Wait::Seconds(3.0), like, &cell(3.0, 200, 102)), 1);
        assert_eq!(misses(Wait::Seconds(3.0), like, &Cell { cut: 1, ..cell(3.0, 200, 100) }), 1);
        assert_eq!(misses(Wait::Seconds(3.0), like, &Cell { early: 1, ..cell(3.0, 200, 100) }), 1);
        let nobody = Figure { mean: f64::NAN, within: 0.0 };
        assert_eq!(misses(Wait::Seconds(3.0), like, &Cell { wait: nobody, ..cell(3.0, 200, 100) }), 1);
    }
}
