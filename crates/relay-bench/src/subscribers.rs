//! What it costs that everything is told: the relay with all its subscribers, beside one with none that can be left out,
//! interleaved in one run.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::load::{Client, ask_for, body, request};
use crate::process::Measured;
use crate::report::{Goal, Report, percentile};
use crate::scenes::{HowLong, cpu_of, how_long};

/// What can be switched on, and the settings of it. No answer of the service fits the rule, so each is compared with it.
const PARTS: [(&str, &str); 6] = [
    ("log", "[log]\nlevel = \"info\"\nfile = \"relay.log\"\n"),
    ("history", "[history]\nfile = \"history.sqlite\"\n"),
    ("snapshots", "[snapshots]\nenabled = true\nfolder = \"snapshots\"\n"),
    (
        "alerts",
        "[[rule]]\nheader = { name = \"x-never\", equals = \"1\" }\ninside = true\nalert = true\n\
         fault = \"overloaded\"\n",
    ),
    ("metrics", ""),
    ("dashboard", ""),
];

/// The settings where these parts are switched on, and the others are not.
fn settings(is_on: impl Fn(&str) -> bool) -> String {
    let off = |part: &str| match part {
        "log" => "[log]\nlevel = \"error\"\n",
        "history" => "[history]\nenabled = false\n",
        "alerts" => "[alerts]\nkinds = []\nlog = false\n",
        _ => "",
    };
    PARTS.iter().map(|(part, on)| if is_on(part) { *on } else { off(part) }).collect()
}

/// A folder that goes with the run.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Result<Self> {
        let path = std::env::temp_dir().join(format!("relay-bench-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// Measures the relay at `relay` with nothing but what no setting switches off, which is the status and the last calls in
/// memory, and with all that can be told; `--only PART` with that alone, and `--otlp` with a collector besides, for a
/// program that has the feature.
pub(crate) async fn run(relay: &str, options: &[&str]) -> Result<()> {
    let HowLong { quick, rounds, rest } = how_long(options)?;
    let span = Duration::from_millis(if quick { 100 } else { 300 });
    let (mut only, mut otlp) = (None, false);
    let mut words = rest.into_iter();
    while let Some(word) = words.next() {
        match word {
            "--otlp" => otlp = true,
            "--only" => {
                let known = words.next().filter(|word| PARTS.iter().any(|(part, _)| part == word));
                only = Some(known.with_context(|| {
                    format!("--only takes one of {}", PARTS.map(|(part, _)| part).join(" "))
                })?);
            }
            _ => bail!("there is no {word}"),
        }
    }
    let is_on = |part: &str| only.is_none_or(|only| only == part);
    let origin = Measured::start(Command::new(std::env::current_exe()?).arg("origin"))?;
    let upstream = format!("http://{}", origin.address);
    let folders = (Folder::new("quiet")?, Folder::new("watched")?);
    let quiet = start(relay, &upstream, &folders.0.0, (&settings(|_| false), &[])).await?;
    let mut all = settings(is_on);
    if otlp {
        // It takes whatever it is sent.
        all += &format!("[otlp]\nendpoint = \"{upstream}\"\ninterval = \"1s\"\n");
    }
    let metrics = free()?;
    let port = metrics.port().to_string();
    let flags: &[&str] = if is_on("metrics") { &["--metrics-port", &port] } else { &[] };
    let watched = start(relay, &upstream, &folders.1.0, (&all, flags)).await?;
    let mut watching = JoinSet::new();
    if is_on("dashboard") {
        let address = watched.address.clone();
        watching.spawn(async { look(address).await.context("the dashboard's events") });
    }
    if is_on("metrics") {
        watching.spawn(async move { scrape(metrics.to_string()).await.context("the metrics") });
    }
    let mut report = Report::default();
    // Both are warm before anything counts.
    for process in [&quiet, &watched] {
        ask_for(&process.address, 16, span).await?;
    }
    for round in 0..rounds {
        let mut played =
            [("bare", &quiet), ("relay", &watched)].map(|(way, process)| Played::new(way, process));
        for turn in 0..TURNS {
            for at in 0..2 {
                played[(round + turn + at) % 2].plays(span).await?;
                if let Some(ended) = watching.try_join_next() {
                    ended??;
                    bail!("somebody who looked was turned away");
                }
            }
        }
        let [alone, beside] = played.map(|played| played.report(&mut report, span));
        report.add("added to that p99, us", "relay", beside - alone);
    }
    let met = report.print("quiet", &goal);
    ensure!(met, "a goal was missed");
    Ok(())
}

/// In so many turns each round is played, so that both relays meet the same moments of a machine whose speed varies.
const TURNS: usize = 5;

/// What one relay did in the turns of a round.
struct Played<'a> {
    way: &'static str,
    process: &'a Measured,
    requests: usize,
    cpu: f64,
    /// In microseconds, of a client that asks without a pause.
    alone: Vec<f64>,
    /// The same of one that asks two hundred times a second.
    paced: Vec<f64>,
}

impl<'a> Played<'a> {
    const fn new(way: &'static str, process: &'a Measured) -> Self {
        Self { way, process, requests: 0, cpu: 0.0, alone: Vec::new(), paced: Vec::new() }
    }

    /// Plays one turn of each load.
    async fn plays(&mut self, span: Duration) -> Result<()> {
        let address = &self.process.address;
        let ((count, _), cpu) = cpu_of(Some(self.process), ask_for(address, 16, span)).await?;
        self.requests += count;
        self.cpu += cpu.context("a process")?;
        self.alone.extend(ask_for(address, 1, span).await?.1);
        self.paced.extend(paced(address, span).await?);
        Ok(())
    }

    /// Adds the round to the report; the latency of 99 of 100 paced requests.
    fn report(mut self, report: &mut Report, span: Duration) -> f64 {
        let mut add = |figure, value| report.add(figure, self.way, value);
        add("requests/s", self.requests as f64 / (span.as_secs_f64() * TURNS as f64));
        add("CPU per request, us", self.cpu / self.requests as f64);
        add("without a pause, p50, us", percentile(&mut self.alone, 0.5));
        add("without a pause, p99, us", percentile(&mut self.alone, 0.99));
        add("200 requests/s, p50, us", percentile(&mut self.paced, 0.5));
        let p99 = percentile(&mut self.paced, 0.99);
        add("200 requests/s, p99, us", p99);
        p99
    }
}

fn goal(figure: &str) -> Goal {
    match figure {
        "requests/s" => Goal::AtLeast(0.97),
        "added to that p99, us" => Goal::RelayAtMost(100.0),
        _ => Goal::None,
    }
}

async fn start(
    relay: &str,
    upstream: &str,
    folder: &Path,
    (settings, flags): (&str, &[&str]),
) -> Result<Measured> {
    let file = folder.join("relay.toml");
    std::fs::write(&file, settings)?;
    let address = free()?;
    let mut command = Command::new(relay);
    command.args(["serve", "--listen", "127.0.0.1", "--port", &address.port().to_string()]);
    command.args(["--upstream", upstream]).args(flags);
    command.arg("--config").arg(&file).arg("--state-dir").arg(folder);
    Measured::start_silent(&mut command, address.to_string()).await
}

/// An address that nobody listens at.
fn free() -> Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

/// One client asks two hundred times a second, which is more than a crowd of agents does. The latency of each in
/// microseconds.
async fn paced(address: &str, span: Duration) -> Result<Vec<f64>> {
    let request = request("answer", &body(8 * 1024, false));
    let mut client = Client::connect(address).await?;
    let mut ticks = tokio::time::interval(Duration::from_millis(5));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut latencies, until) = (Vec::new(), Instant::now() + span);
    while Instant::now() < until {
        ticks.tick().await;
        let asked = Instant::now();
        client.ask(&request).await?;
        latencies.push(asked.elapsed().as_secs_f64() * 1e6);
    }
    Ok(latencies)
}

/// Keeps the dashboard's stream of events open, and reads it as fast as it comes. It ends where there is none.
async fn look(address: String) -> Result<()> {
    let mut stream = TcpStream::connect(&address).await?;
    let asked = format!("GET /__steady/events HTTP/1.1\r\nhost: {address}\r\n\r\n");
    stream.write_all(asked.as_bytes()).await?;
    let mut buffer = vec![0; 256 * 1024];
    let read = stream.read(&mut buffer).await?;
    ensure!(buffer[..read].starts_with(b"HTTP/1.1 200"), "no events");
    while stream.read(&mut buffer).await? > 0 {}
    Ok(())
}

/// Reads the metrics every second, as Prometheus does at most; over a connection for each, since none lasts longer than a
/// minute.
async fn scrape(address: String) -> Result<()> {
    let asked = format!("GET /metrics HTTP/1.1\r\nhost: {address}\r\n\r\n");
    loop {
        let began = Instant::now();
        Client::connect(&address).await?.ask(asked.as_bytes()).await?;
        tokio::time::sleep(Duration::from_secs(1).saturating_sub(began.elapsed())).await;
    }
}
