//! The soak: the release program under mixed load for some time, and what it holds on to.
//!
//! ```text
//! soak PROGRAM SECONDS
//!
//!  crowd (healthy, refused, streams, aborted, resets) --- PROGRAM --- generations of pretend services
//!                                                           |
//!                                       once a second: memory, descriptors
//! ```
//!
//! It fails where memory still grows after it has warmed up, where descriptors stay open once the load is gone, and
//! where a call ends otherwise than its kind must. `cargo xtask soak` builds and starts it.
#![expect(clippy::print_stderr, reason = "a chore reports to the terminal it was started from")]

mod crowd;
mod program;
mod services;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crowd::{Crowd, Kind};
use program::{Program, Sample};
use services::Services;

/// How many clients call at a time.
const CLIENTS: usize = 48;
/// How much the last third of a run may hold beyond the middle third.
const GROWTH: f64 = 1.10;
/// How long the program has to close what the load has left.
const TO_SETTLE: Duration = Duration::from_secs(20);

#[tokio::main]
async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let run = async {
        let [program, seconds] = args.as_slice() else { anyhow::bail!("usage: soak PROGRAM SECONDS") };
        soak(program, Duration::from_secs(seconds.parse().context("SECONDS is a number")?)).await
    };
    match run.await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn soak(path: &str, time: Duration) -> Result<()> {
    let services = Services::reserve(time)?;
    let program = Program::start(path, services.settings()).await?;
    let idle = program.sample()?;
    let crowd = Arc::new(Crowd::new(program.addr));
    let clients: Vec<_> = (0..CLIENTS).map(|_| tokio::spawn(Arc::clone(&crowd).call_on())).collect();
    let watching = watch(&program, time);
    let serving = services.take_turns(&crowd, time);
    let (samples, served) = tokio::join!(watching, serving);
    crowd.stop();
    for client in clients {
        client.await.context("a client of the crowd fell")?;
    }
    let (samples, services) = (samples?, served?);
    services.stop().await;
    let settled = settle(&program, idle.descriptors).await?;
    report(&crowd, time, &samples, (idle, settled));
    judge(&crowd, &samples, (idle, settled))
}

/// A sample each second.
async fn watch(program: &Program, time: Duration) -> Result<Vec<Sample>> {
    let mut samples = Vec::new();
    let mut seconds = tokio::time::interval(Duration::from_secs(1));
    seconds.tick().await;
    for _ in 0..time.as_secs() {
        seconds.tick().await;
        samples.push(program.sample()?);
    }
    Ok(samples)
}

/// Waits until no more is open than before the load, or for as long as that may take.
async fn settle(program: &Program, descriptors: usize) -> Result<Sample> {
    let end = tokio::time::Instant::now() + TO_SETTLE;
    loop {
        let sample = program.sample()?;
        if sample.descriptors <= descriptors || tokio::time::Instant::now() > end {
            return Ok(sample);
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
}

/// The median of what was held in the middle and in the last third.
fn plateaus(samples: &[Sample]) -> (f64, f64) {
    let third = samples.len() / 3;
    let median = |samples: &[Sample]| {
        let mut held: Vec<u64> = samples.iter().map(|sample| sample.memory).collect();
        held.sort_unstable();
        held.get(held.len() / 2).copied().unwrap_or_default() as f64
    };
    (median(&samples[third..2 * third]), median(&samples[2 * third..]))
}

fn report(crowd: &Crowd, time: Duration, samples: &[Sample], (idle, settled): (Sample, Sample)) {
    let mib = |bytes: f64| bytes / f64::from(1 << 20);
    let total: u64 = Kind::ALL.iter().map(|kind| crowd.count(*kind).done).sum();
    eprintln!("{total} calls in {} s, {:.0} a second", time.as_secs(), total as f64 / time.as_secs_f64());
    for kind in Kind::ALL {
        let count = crowd.count(kind);
        eprintln!("  {:<22} {:>9}, otherwise than they must {}", kind.name(), count.done, count.odd);
    }
    let (middle, last) = plateaus(samples);
    let most = samples.iter().map(|sample| sample.memory).max().unwrap_or_default();
    eprintln!(
        "memory {:.1} MiB idle, {:.1} in the middle third, {:.1} in the last, {:.1} at most, {:.1} after",
        mib(idle.memory as f64),
        mib(middle),
        mib(last),
        mib(most as f64),
        mib(settled.memory as f64)
    );
    let most = samples.iter().map(|sample| sample.descriptors).max().unwrap_or_default();
    eprintln!("descriptors {} idle, {most} at most, {} after", idle.descriptors, settled.descriptors);
}

fn judge(crowd: &Crowd, samples: &[Sample], (idle, settled): (Sample, Sample)) -> Result<()> {
    for kind in Kind::ALL {
        let count = crowd.count(kind);
        let told = crowd.odd(kind);
        ensure!(count.odd == 0, "{} calls of kind {} went wrong: {told}", count.odd, kind.name());
        ensure!(count.done > 0, "no call of kind {} was made", kind.name());
    }
    let (middle, last) = plateaus(samples);
    ensure!(
        last <= middle * GROWTH,
        "memory grows: {middle:.0} bytes in the middle third, {last:.0} in the last"
    );
    ensure!(
        settled.descriptors <= idle.descriptors,
        "descriptors stay open: {} before the load, {} after it",
        idle.descriptors,
        settled.descriptors
    );
    Ok(())
}
