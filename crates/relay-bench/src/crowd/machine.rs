//! Whether the machine kept up: a world that runs fast is distorted where timers are late.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::world::World;
use crate::process::cpu_us_of;
use crate::report::percentile;

/// How often it is looked.
const EVERY: Duration = Duration::from_millis(20);

/// How it did while a seed was played.
#[derive(Debug, Clone, Copy)]
pub(super) struct Machine {
    /// How much of all processors was used, by whomever; in percent.
    pub(super) busy: f64,
    /// How much of one processor the clients and the services used; in percent.
    pub(super) own: f64,
    /// 99 of 100 timers were no later than this, in seconds of the world.
    pub(super) late: f64,
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { busy, own, late } = self;
        write!(
            f,
            "machine {busy:.0} % busy, clients and services used {own:.0} % of a processor, timers late by {late:.2} s"
        )
    }
}

/// Looks at the machine from the beginning of the world to the last moment for a call.
pub(super) async fn watch(world: &World) -> Result<Machine> {
    world.reach(0.0).await;
    let (began, before, own) = (Instant::now(), processors()?, cpu_us_of("self")?);
    let mut late = Vec::new();
    while world.now() < world.until {
        let due = Instant::now() + EVERY;
        tokio::time::sleep_until(due.into()).await;
        late.push(due.elapsed().as_secs_f64() * world.rate);
    }
    let after = processors()?;
    let idle = after.idle.saturating_sub(before.idle) as f64 / after.all.saturating_sub(before.all) as f64;
    Ok(Machine {
        busy: 100.0 * (1.0 - idle),
        own: (cpu_us_of("self")? - own) / began.elapsed().as_secs_f64() / 1e4,
        late: percentile(&mut late, 0.99),
    })
}

/// What all processors have done since the machine was started, in ticks.
struct Ticks {
    all: u64,
    idle: u64,
}

fn processors() -> Result<Ticks> {
    ticks(&std::fs::read_to_string("/proc/stat")?).context("ticks of all processors")
}

fn ticks(text: &str) -> Option<Ticks> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    // What guests used is in the first figures already.
    let ticks: Vec<u64> = line.split_whitespace().take(8).filter_map(|tick| tick.parse().ok()).collect();
    Some(Ticks { all: ticks.iter().sum(), idle: ticks.get(3)? + ticks.get(4)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_is_what_waits_for_nothing_and_what_waits_for_a_disk() {
        let ticks = ticks("cpu  10 1 4 80 5 0 0 0 7 0\ncpu0 5 0 2 40 2 0 0 0 0 0\n").unwrap();
        assert_eq!((ticks.all, ticks.idle), (100, 85));
    }
}
