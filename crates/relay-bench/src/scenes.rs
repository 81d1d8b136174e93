//! The scenes, each played against all three ways in turn, round after round.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::load::{Client, ask_for, body, request};
use crate::process::Measured;
use crate::report::{Goal, Report, median, percentile};

pub(crate) struct Ways {
    pub(crate) origin: Measured,
    pub(crate) bare: Measured,
    pub(crate) relay: Measured,
}

impl Ways {
    /// The three ways, in another order each round: whoever comes first must not be the one who warms the machine.
    pub(crate) fn all(&self, round: usize) -> [(&'static str, &str, Option<&Measured>); 3] {
        let mut ways = [
            ("direct", self.origin.address.as_str(), None),
            ("bare", self.bare.address.as_str(), Some(&self.bare)),
            ("relay", self.relay.address.as_str(), Some(&self.relay)),
        ];
        ways.rotate_left(round % 3);
        ways
    }
}

/// Measures the relay at `relay` and prints the table.
pub(crate) async fn run(relay: &str, options: &[&str]) -> Result<()> {
    let HowLong { quick, rounds, rest } = how_long(options)?;
    ensure!(rest.is_empty(), "there is no {}", rest.join(" "));
    let me = std::env::current_exe()?;
    let origin = Measured::start(Command::new(&me).arg("origin"))?;
    let upstream = format!("http://{}", origin.address);
    let bare = Measured::start(Command::new(&me).args(["bare", &upstream]))?;
    let mut report = Report::default();
    report.add("binary, MB", "relay", std::fs::metadata(relay)?.len() as f64 / 1e6);
    let relay = start(relay, &upstream, &mut report)?;
    let ways = Ways { origin, bare, relay };
    tokio::time::sleep(Duration::from_millis(200)).await;
    report.add("idle RSS, KiB", "bare", ways.bare.rss_kib()?);
    report.add("idle RSS, KiB", "relay", ways.relay.rss_kib()?);
    let scale = if quick { 1 } else { 4 };
    for round in 0..rounds {
        for (way, address, process) in ways.all(round) {
            requests(&mut report, way, address, process, Duration::from_millis(250 * scale)).await?;
            streams(&mut report, way, address, process, 2500 * usize::try_from(scale)?).await?;
            delays(&mut report, way, address).await?;
            bulk(&mut report, way, address, process, 32 * usize::try_from(scale)?).await?;
        }
        added_latency(&mut report, &ways, round, Duration::from_millis(100 * scale)).await?;
    }
    memory(&mut report, &ways).await?;
    let met = report.print("bare proxy", &goal);
    // No exit here: the three programs end when they are dropped.
    ensure!(met, "a goal was missed");
    Ok(())
}

/// Whether it is to be quick, how many rounds it has, and the words that say something else.
pub(crate) struct HowLong<'a> {
    pub(crate) quick: bool,
    pub(crate) rounds: usize,
    pub(crate) rest: Vec<&'a str>,
}

/// Reads `--quick` and `--rounds N`.
///
/// # Errors
/// Where `--rounds` has no number.
pub(crate) fn how_long<'a>(options: &[&'a str]) -> Result<HowLong<'a>> {
    let (mut quick, mut rounds, mut rest) = (false, None, Vec::new());
    let mut words = options.iter().copied();
    while let Some(word) = words.next() {
        match word {
            "--quick" => quick = true,
            "--rounds" => {
                let stated = words.next().and_then(|word| word.parse().ok()).filter(|rounds| *rounds > 0);
                rounds = Some(stated.context("--rounds takes a whole number from 1")?);
            }
            _ => rest.push(word),
        }
    }
    Ok(HowLong { quick, rounds: rounds.unwrap_or(if quick { 3 } else { 11 }), rest })
}

/// Starts the relay several times, since one start says little, and keeps the last.
fn start(relay: &str, upstream: &str, report: &mut Report) -> Result<Measured> {
    let mut last = None;
    for _ in 0..5 {
        let started = Instant::now();
        let arguments = ["serve", "--port", "0", "--upstream", upstream];
        last = Some(Measured::start_relay(Command::new(relay).args(arguments))?);
        report.add("start, ms", "relay", started.elapsed().as_secs_f64() * 1e3);
    }
    last.context("it was started")
}

fn goal(figure: &str) -> Goal {
    match figure {
        "binary, MB" => Goal::RelayAtMost(8.0),
        "start, ms" => Goal::RelayAtMost(15.0),
        "idle RSS, KiB" => Goal::RelayAtMost(6.0 * 1024.0),
        "KiB per open stream" => Goal::RelayAtMost(12.0),
        "CPU per request, us" => Goal::AtMost(1.10),
        "requests/s" => Goal::AtLeast(0.95),
        "added p50, us" => Goal::AtMost(1.15),
        "event delay p99, us" => Goal::AtMost(1.1),
        "stream events/s" => Goal::AtLeast(3.0),
        "bulk MB/s" => Goal::AtLeast(0.95),
        _ => Goal::None,
    }
}

/// Does something, and says how much CPU time a process used meanwhile, in microseconds.
pub(crate) async fn cpu_of<T>(
    process: Option<&Measured>,
    work: impl Future<Output = Result<T>>,
) -> Result<(T, Option<f64>)> {
    let before = process.map(Measured::cpu_us).transpose()?;
    let done = work.await?;
    let after = process.map(Measured::cpu_us).transpose()?;
    Ok((done, before.zip(after).map(|(before, after)| after - before)))
}

async fn requests(
    report: &mut Report,
    way: &'static str,
    address: &str,
    process: Option<&Measured>,
    span: Duration,
) -> Result<()> {
    let ((count, mut latencies), cpu) = cpu_of(process, ask_for(address, 16, span)).await?;
    report.add("requests/s", way, count as f64 / span.as_secs_f64());
    if let Some(cpu) = cpu {
        report.add("CPU per request, us", way, cpu / count as f64);
    }
    report.add("latency p50, us", way, percentile(&mut latencies, 0.5));
    report.add("latency p99, us", way, percentile(&mut latencies, 0.99));
    Ok(())
}

/// What each way adds to the latency of a direct connection, for one client that asks alone: a crowd would measure
/// how many requests there are in a second, once more.
async fn added_latency(report: &mut Report, ways: &Ways, round: usize, span: Duration) -> Result<()> {
    let mut halves = BTreeMap::new();
    for (way, address, _) in ways.all(round) {
        let (_, mut latencies) = ask_for(address, 1, span).await?;
        halves.insert(way, percentile(&mut latencies, 0.5));
    }
    for way in ["bare", "relay"] {
        report.add("added p50, us", way, halves[way] - halves["direct"]);
    }
    Ok(())
}

async fn streams(
    report: &mut Report,
    way: &'static str,
    address: &str,
    process: Option<&Measured>,
    events: usize,
) -> Result<()> {
    let request = request(&format!("stream={events}"), &body(8 * 1024, true));
    let start = Instant::now();
    let reading = async {
        let mut reading = tokio::task::JoinSet::new();
        for _ in 0..4 {
            let (request, mut client) = (request.clone(), Client::connect(address).await?);
            reading.spawn(async move { client.stream(&request, None).await });
        }
        let mut count = 0;
        while let Some(read) = reading.join_next().await {
            count += read??;
        }
        Ok(count)
    };
    let (count, cpu) = cpu_of(process, reading).await?;
    report.add("stream events/s", way, count as f64 / start.elapsed().as_secs_f64());
    if let Some(cpu) = cpu {
        report.add("CPU per event, us", way, cpu / count as f64);
    }
    Ok(())
}

async fn delays(report: &mut Report, way: &'static str, address: &str) -> Result<()> {
    let request = request("paced=300", &body(8 * 1024, true));
    let mut delays = Vec::new();
    Client::connect(address).await?.stream(&request, Some(&mut delays)).await?;
    report.add("event delay p50, us", way, percentile(&mut delays, 0.5));
    report.add("event delay p99, us", way, percentile(&mut delays, 0.99));
    Ok(())
}

async fn bulk(
    report: &mut Report,
    way: &'static str,
    address: &str,
    process: Option<&Measured>,
    megabytes: usize,
) -> Result<()> {
    let request = request(&format!("bulk={megabytes}"), b"");
    let mut client = Client::connect(address).await?;
    let start = Instant::now();
    let (bytes, cpu) = cpu_of(process, client.ask(&request)).await?;
    let megabytes = bytes as f64 / f64::from(1 << 20);
    report.add("bulk MB/s", way, megabytes / start.elapsed().as_secs_f64());
    if let Some(cpu) = cpu {
        report.add("CPU per MB, us", way, cpu / megabytes);
    }
    Ok(())
}

/// Memory per open stream and per body that is kept while a call waits.
async fn memory(report: &mut Report, ways: &Ways) -> Result<()> {
    const STREAMS: usize = 400;
    const BODIES: usize = 64;
    const KIB: usize = 256;
    for (way, process) in [("bare", &ways.bare), ("relay", &ways.relay)] {
        let before = process.rss_kib()?;
        let request = request("hang", &body(8 * 1024, true));
        let mut open = Vec::new();
        for _ in 0..STREAMS {
            let mut client = Client::connect(&process.address).await?;
            client.open(&request).await?;
            open.push(client);
        }
        report.add("KiB per open stream", way, (process.rss_kib()? - before) / STREAMS as f64);
        drop(open);
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    let before = ways.relay.rss_kib()?;
    let request = request("busy", &body(KIB * 1024, true));
    let mut held = Vec::new();
    for _ in 0..BODIES {
        let mut client = Client::connect(&ways.relay.address).await?;
        client.send(&request).await?;
        held.push(client);
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let grown = ways.relay.rss_kib()? - before;
    report.add("KiB per kept body of 256 KiB", "relay", grown / BODIES as f64);
    let all = median(vec![grown]);
    all.is_finite().then_some(()).context("memory was measured")
}
