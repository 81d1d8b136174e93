//! Who is compared, and the playing of many cells on two threads.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::admission::Admission;
use crate::gate_policy::{Lane, Setup};
use crate::measure::{Cell, Run};
use crate::oracle::Oracle;
use crate::policy::Baseline;
use crate::world::{self, Scene};

/// A policy that takes part.
#[derive(Debug, Clone, PartialEq)]
pub enum Contender {
    /// One that decides for one request alone.
    Alone(Baseline),
    /// The gate.
    Gate(Setup),
    /// The one that sees the service.
    Oracle,
}

/// Any wait up to one that doubles, to 30 s.
pub const FULL_JITTER: Baseline = Baseline::FullJitter { cap: 30.0 };

/// The policies the gate is compared with, by name.
pub const BASELINES: [(&str, Baseline); 9] = [
    ("none", Baseline::Once),
    ("node-proxy", Baseline::NodeProxy { sends: 8, cap: 30.0 }),
    ("node-proxy-batch", Baseline::NodeProxy { sends: 12, cap: 60.0 }),
    ("codex-retry", Baseline::CodexRetry { breaker: true }),
    ("codex-retry-no-breaker", Baseline::CodexRetry { breaker: false }),
    ("opencodex", Baseline::OpenCodex),
    ("client-10x", Baseline::Client { resends: 10, cap: 32.0 }),
    ("sdk-2x", Baseline::Client { resends: 2, cap: 8.0 }),
    ("full-jitter", FULL_JITTER),
];

impl Contender {
    /// A fresh one, for one world.
    #[must_use]
    pub fn admission(&self) -> Box<dyn Admission> {
        match self {
            Self::Alone(baseline) => Box::new(baseline.admission()),
            Self::Gate(setup) => Box::new(Lane::new(setup.clone())),
            Self::Oracle => Box::new(Oracle::default()),
        }
    }
}

/// One cell to be played.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// What is played.
    pub scene: Scene,
    /// Under which policy.
    pub contender: Contender,
}

impl Job {
    /// Plays it once per seed.
    #[must_use]
    pub fn play(&self, seeds: Range<u64>) -> Cell {
        let run = |seed| world::play(&self.scene, self.contender.admission().as_mut(), seed);
        Cell::of(&seeds.map(run).collect::<Vec<Run>>())
    }
}

/// Threads that play.
const THREADS: usize = 2;

/// Plays them all; `done` hears how many are done.
pub fn play_all(jobs: &[Job], seeds: &Range<u64>, done: &(dyn Fn(usize) + Sync)) -> Vec<Cell> {
    let (next, ready) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        let mut cells = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(at) else { return cells };
            cells.push((at, job.play(seeds.clone())));
            done(ready.fetch_add(1, Ordering::Relaxed) + 1);
        }
    };
    let mut cells: Vec<(usize, Cell)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        let join =
            |thread: std::thread::ScopedJoinHandle<'_, _>| thread.join().expect("a world does not panic");
        threads.into_iter().flat_map(join).collect()
    });
    cells.sort_unstable_by_key(|(at, _)| *at);
    cells.into_iter().map(|(_, cell)| cell).collect()
}
