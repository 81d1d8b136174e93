//! Thirty agents at a service that is short of capacity, over real sockets: with the gate, without it, and without a
//! relay. How calls fare is measured from outside, by the clients and the service.
//!
//! Days of it would be needed to see anything, so time is short in here: all times of the clients and the service are
//! divided by the rate, and the relay is told to let its clock go as much faster. Figures are in the seconds of that
//! world. The three ways are played side by side, in the same minute, with the same seed: the same calls take the same
//! time, and the service has its episodes at the same moments.
//!
//! ```text
//!  clients (three crowds) ---- relay, gate ------- service
//!                         ---- relay, no gate ---- service     three services of one seed
//!                         ------------------------ service
//! ```

mod clients;
mod figures;
mod machine;
mod service;
mod world;

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use crate::process::Measured;
use clients::Kind;
use figures::{Figures, Report};
use machine::Machine;
use service::Service;
use world::{Short, World};

/// From the decision to play to the beginning: enough to start a relay.
const LEAD: Duration = Duration::from_secs(1);
/// How long calls may go on after the last one was made, in seconds of the world: longer than any is held.
const LAST_CALLS: f64 = 35.0 * 60.0;

const USAGE: &str = "relay-bench crowd RELAY [--rate N] [--minutes M] [--seeds K] [--clients C] \
     [--as openai|codex] [--only slots|episodes] [--json]";

/// How the crowd reaches the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    /// Through a relay with its defaults.
    Gate,
    /// Through a relay whose calls each wait by themselves.
    Curves,
    /// Without a relay.
    Alone,
}

impl Way {
    const ALL: [Self; 3] = [Self::Gate, Self::Curves, Self::Alone];

    const fn name(self) -> &'static str {
        match self {
            Self::Gate => "gate",
            Self::Curves => "no gate",
            Self::Alone => "no relay",
        }
    }
}

/// What is played.
struct Options {
    rate: u32,
    minutes: f64,
    seeds: u64,
    clients: usize,
    kind: Kind,
    services: Vec<Short>,
    json: bool,
}

impl Options {
    fn of(words: &[&str]) -> Result<Self> {
        let mut options = Self {
            rate: 30,
            minutes: 30.0,
            seeds: 3,
            clients: 30,
            kind: Kind::OpenAi,
            services: Short::ALL.to_vec(),
            json: false,
        };
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            if word == "--json" {
                options.json = true;
                continue;
            }
            let value = words.next().with_context(|| format!("{word} takes a value\nusage: {USAGE}"))?;
            match word {
                "--rate" => options.rate = value.parse().context("--rate takes a whole number")?,
                "--minutes" => options.minutes = value.parse().context("--minutes takes a number")?,
                "--seeds" => options.seeds = value.parse().context("--seeds takes a whole number")?,
                "--clients" => options.clients = value.parse().context("--clients takes a whole number")?,
                "--as" => options.kind = Kind::named(value).context("--as takes openai or codex")?,
                "--only" => {
                    let short = Short::ALL.into_iter().find(|short| short.name() == value);
                    options.services = vec![short.context("--only takes slots or episodes")?];
                }
                _ => bail!("there is no {word}\nusage: {USAGE}"),
            }
        }
        let plays = options.rate > 0 && options.seeds > 0 && options.clients > 0 && options.minutes > 0.0;
        ensure!(plays, "zero of something plays nothing");
        Ok(options)
    }
}

/// Plays the crowd against the relay at `relay`, and prints what came of it.
///
/// # Errors
/// Where something cannot be started, and where the gate does worse than it may.
pub(crate) async fn run(relay: &str, words: &[&str]) -> Result<()> {
    let options = Options::of(words)?;
    let mut report = Report::default();
    for &short in &options.services {
        for seed in 1..=options.seeds {
            let (figures, machine) = play(relay, &options, short, seed).await?;
            tell(short, seed, &machine);
            report.add(short, figures, machine);
        }
    }
    let missed = if options.json { report.print_json(&options) } else { report.print(&options) };
    ensure!(missed.is_empty(), "{}", missed.join("\n"));
    Ok(())
}

#[expect(clippy::print_stderr, reason = "who waits for minutes is told how far it is")]
fn tell(short: Short, seed: u64, machine: &Machine) {
    eprintln!("{}, seed {seed}: played, {machine}", short.name());
}

/// One seed of one service, all ways side by side.
async fn play(
    relay: &str,
    options: &Options,
    short: Short,
    seed: u64,
) -> Result<([(Way, Figures); 3], Machine)> {
    let begin = Instant::now() + LEAD;
    let world = World { seed, begin, rate: f64::from(options.rate), until: options.minutes * 60.0 };
    let [gate, curves, alone] = Way::ALL.map(|way| along(relay, options, &world, (short, way)));
    let watching = machine::watch(&world);
    let (gate, curves, alone, machine) = tokio::try_join!(gate, curves, alone, watching)?;
    Ok(([(Way::Gate, gate), (Way::Curves, curves), (Way::Alone, alone)], machine))
}

async fn along(relay: &str, options: &Options, world: &World, (short, way): (Short, Way)) -> Result<Figures> {
    let service = Service::start(world, short).await?;
    let folder = Folder::new(way, world.seed)?;
    let process = match way {
        Way::Alone => None,
        Way::Gate | Way::Curves => Some(start(relay, options, &service, (way, &folder))?),
    };
    let address = process.as_ref().map_or_else(|| service.address(), |process| process.address.clone());
    let mut crowd = clients::Crowd::start(world, options.clients, options.kind, address.parse()?);
    world.reach(0.0).await;
    let cpu_us = || process.as_ref().map(Measured::cpu_us).transpose();
    let before = cpu_us()?;
    world.reach(world.until).await;
    let cpu = before.zip(cpu_us()?).map(|(before, after)| (after - before) / 1e6);
    let memory = process.as_ref().map(Measured::rss_kib).transpose()?;
    let calls = crowd.end(world.until + LAST_CALLS).await;
    Ok(Figures::of(world, &calls, &service.seen(), cpu.zip(memory)))
}

fn start(
    relay: &str,
    options: &Options,
    service: &Service,
    (way, folder): (Way, &Folder),
) -> Result<Measured> {
    let mut command = Command::new(relay);
    // Nobody's settings, and nothing learned before.
    command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    command.env("HOME", &folder.0).arg("serve").args(["--port", "0"]).arg("--state-dir").arg(&folder.0);
    command.arg("--upstream").arg(format!("http://{}", service.address()));
    command.arg("--clock-rate").arg(options.rate.to_string());
    if way == Way::Curves {
        command.args(["--gate", "off"]);
    }
    Measured::start_relay(&mut command)
}

/// A folder that is gone afterwards.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(way: Way, seed: u64) -> Result<Self> {
        let name = format!("relay-bench-{}-{way:?}-{seed}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left of it is of no use to anybody, and harms nobody.
        drop(std::fs::remove_dir_all(&self.0));
    }
}
