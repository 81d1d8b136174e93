//! What it costs that everything is told: the relay with all its subscribers, beside one with none that can be left out,
//! interleaved in one run.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::load::{Client, ask_for};
use crate::process::Measured;
use crate::report::{Goal, Report, percentile};
use crate::scenes::{cpu_of, how_long};

/// Nothing but what no setting switches off: the status, and the last calls in memory.
const QUIET: &str =
    "[log]\nlevel = \"error\"\n[history]\nenabled = false\n[alerts]\nkinds = []\nlog = false\n";

/// Everything that can be switched on. No answer of the service fits the rule, so each is compared with it.
const WATCHED: &str = "[log]\nlevel = \"info\"\nfile = \"relay.log\"\n[history]\nfile = \"history.sqlite\"\n\
                       [snapshots]\nenabled = true\nfolder = \"snapshots\"\n\
                       [[rule]]\nheader = { name = \"x-never\", equals = \"1\" }\n\
                       inside = true\nalert = true\nfault = \"overloaded\"\n";

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

/// Measures the relay at `relay` without subscribers and with all of them; `--otlp` with a collector besides, for a program
/// that has the feature.
pub(crate) async fn run(relay: &str, options: &[&str]) -> Result<()> {
    let (quick, rounds) = how_long(options);
    let span = Duration::from_millis(if quick { 400 } else { 1500 });
    let origin = Measured::start(Command::new(std::env::current_exe()?).arg("origin"))?;
    let upstream = format!("http://{}", origin.address);
    let folders = (Folder::new("quiet")?, Folder::new("watched")?);
    let metrics = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let quiet = start(relay, &upstream, &folders.0.0, (QUIET, &[]))?;
    let mut watched = WATCHED.to_owned();
    if options.contains(&"--otlp") {
        // It takes whatever it is sent.
        watched += &format!("[otlp]\nendpoint = \"{upstream}\"\ninterval = \"1s\"\n");
    }
    let port = metrics.port().to_string();
    let watched = start(relay, &upstream, &folders.1.0, (&watched, &["--metrics-port", &port]))?;
    let mut watching = JoinSet::new();
    watching.spawn(look(watched.address.clone()));
    watching.spawn(scrape(metrics.to_string()));
    let mut report = Report::default();
    // Both are warm before anything counts.
    for process in [&quiet, &watched] {
        ask_for(&process.address, 16, span).await?;
    }
    for round in 0..rounds {
        let mut ways = [("bare", &quiet), ("relay", &watched)];
        ways.rotate_left(round % 2);
        let mut alone = [0.0; 2];
        for (way, process) in ways {
            let ((count, _), cpu) = cpu_of(Some(process), ask_for(&process.address, 16, span)).await?;
            report.add("requests/s", way, count as f64 / span.as_secs_f64());
            report.add("CPU per request, us", way, cpu.context("a process")? / count as f64);
            let (_, mut latencies) = ask_for(&process.address, 1, span).await?;
            report.add("one client, p50, us", way, percentile(&mut latencies, 0.5));
            let p99 = percentile(&mut latencies, 0.99);
            report.add("one client, p99, us", way, p99);
            alone[usize::from(way == "relay")] = p99;
            ensure!(watching.try_join_next().is_none(), "somebody who looked was turned away");
        }
        report.add("added to p99, us", "relay", alone[1] - alone[0]);
    }
    let met = report.print("quiet", &goal);
    ensure!(met, "a goal was missed");
    Ok(())
}

fn goal(figure: &str) -> Goal {
    match figure {
        "requests/s" => Goal::AtLeast(0.97),
        "added to p99, us" => Goal::RelayAtMost(100.0),
        _ => Goal::None,
    }
}

fn start(relay: &str, upstream: &str, folder: &Path, (settings, flags): (&str, &[&str])) -> Result<Measured> {
    let file = folder.join("relay.toml");
    std::fs::write(&file, settings)?;
    let mut command = Command::new(relay);
    command.args(["serve", "--port", "0", "--listen", "127.0.0.1", "--upstream", upstream]).args(flags);
    command.arg("--config").arg(&file).arg("--state-dir").arg(folder);
    Measured::start_relay(&mut command)
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

/// Reads the metrics every second, over one connection, as Prometheus does at most.
async fn scrape(address: String) -> Result<()> {
    let asked = format!("GET /metrics HTTP/1.1\r\nhost: {address}\r\n\r\n");
    let mut client = Client::connect(&address).await?;
    loop {
        let began = Instant::now();
        client.ask(asked.as_bytes()).await?;
        tokio::time::sleep(Duration::from_secs(1).saturating_sub(began.elapsed())).await;
    }
}
