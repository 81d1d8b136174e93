//! A crowd behind a pool of three services that misbehave in every way there is, by turns and all at once. What must hold
//! whatever they do: no request runs twice, every request has an end in time, what looks like a success is one, and the
//! relay is as it was when all is over.
//!
//! The relay runs with no grant to send again what may have run, so a request that two services worked on is a fault of
//! the relay's, not of its settings. Times are short in here: a minute holds what ten do elsewhere.

mod clients;
mod services;

use std::fmt::Write as _;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use relay_sim::{Client, Request};

use crate::process::Measured;
use clients::{Crowd, End};
use services::{Mood, Service};

const USAGE: &str = "relay-bench chaos RELAY [--seconds N] [--clients C] [--seed S]";

/// Requests that are still under way may take so long after the last one was made.
const LAST: Duration = Duration::from_secs(60);

struct Options {
    seconds: u64,
    clients: usize,
    seed: u64,
}

impl Options {
    fn of(words: &[&str]) -> Result<Self> {
        let mut options = Self { seconds: 60, clients: 50, seed: 1 };
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            let value = words.next().with_context(|| format!("{word} takes a value\nusage: {USAGE}"))?;
            match word {
                "--seconds" => options.seconds = value.parse().context("--seconds takes a whole number")?,
                "--clients" => options.clients = value.parse().context("--clients takes a whole number")?,
                "--seed" => options.seed = value.parse().context("--seed takes a whole number")?,
                _ => bail!("there is no {word}\nusage: {USAGE}"),
            }
        }
        ensure!(options.seconds > 0 && options.clients > 0, "zero of something plays nothing");
        Ok(options)
    }
}

/// Plays it against the relay at `relay`, and prints what came of it.
///
/// # Errors
/// Where something cannot be started, and where anything did not hold.
pub(crate) async fn run(relay: &str, words: &[&str]) -> Result<()> {
    let options = Options::of(words)?;
    let folder = Folder::new()?;
    let mut services = Service::three().await?;
    let process = start(relay, &folder, &services)?;
    let memory_before = process.rss_kib()?;
    let mut chance = fastrand::Rng::with_seed(options.seed);
    let crowd = Crowd::start(process.address.parse()?, options.clients);
    let until = Instant::now() + Duration::from_secs(options.seconds);
    while Instant::now() < until {
        for service in &mut services {
            service.turns(Mood::any(&mut chance)).await?;
        }
        tokio::time::sleep(Duration::from_millis(chance.u64(200..2_500))).await;
    }
    for service in &mut services {
        service.turns(Mood::Well).await?;
    }
    let calls = crowd.end(LAST).await?;
    let seen = services::ran(&services);
    let mut broken = found(&calls, &seen);
    broken.extend(afterwards(&process).await?);
    say(&options, &calls, (memory_before, process.rss_kib()?));
    ensure!(broken.is_empty(), "{}", broken.join("\n"));
    Ok(())
}

/// What did not hold.
fn found(calls: &[clients::Call], ran: &std::collections::BTreeMap<String, u32>) -> Vec<String> {
    let mut broken = Vec::new();
    for call in calls {
        let times = ran.get(&call.name).copied().unwrap_or(0);
        if times > 1 {
            broken.push(format!("{} ran {times} times and ended as {:?}", call.name, call.end));
        }
        match &call.end {
            End::Served if times == 0 => broken.push(format!("{} was answered by nobody", call.name)),
            End::Dishonest(what) => broken.push(format!("{}: {what}", call.name)),
            End::Lost => broken.push(format!("{} had no end within {} s", call.name, LAST.as_secs())),
            End::Served | End::Refused(_) | End::Cut => {}
        }
    }
    broken
}

/// When all are well again, so is the relay: it serves, and holds nothing open.
async fn afterwards(process: &Measured) -> Result<Vec<String>> {
    let mut broken = Vec::new();
    let mut client = Client::connect(process.address.parse()?).await?.patience(LAST);
    let after = clients::request("afterwards");
    let served = async {
        for _ in 0..30 {
            let answer = client.ask(&after).await?;
            if answer.status == 200 {
                return Ok::<_, std::io::Error>(true);
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            client = Client::connect(process.address.parse().map_err(std::io::Error::other)?)
                .await?
                .patience(LAST);
        }
        Ok(false)
    };
    if !served.await? {
        broken.push("nothing is served although all services are well".to_owned());
    }
    let mut asking = Client::connect(process.address.parse()?).await?.patience(LAST);
    let page = asking.ask(&Request::get("/__steady/status")).await?.json();
    let open = page["open_calls"].as_array().map(Vec::len);
    if open != Some(0) {
        broken.push(format!("calls are open when all is over: {}", page["open_calls"]));
    }
    Ok(broken)
}

#[expect(clippy::print_stdout, reason = "the sums are what was asked for")]
fn say(options: &Options, calls: &[clients::Call], (before, after): (f64, f64)) {
    let count = |wish: &dyn Fn(&End) -> bool| calls.iter().filter(|call| wish(&call.end)).count();
    let served = count(&|end| matches!(end, End::Served));
    let refused = count(&|end| matches!(end, End::Refused(_)));
    let cut = count(&|end| matches!(end, End::Cut));
    let mut statuses = std::collections::BTreeMap::<u16, usize>::new();
    for call in calls {
        if let End::Refused(status) = call.end {
            *statuses.entry(status).or_default() += 1;
        }
    }
    let mut listed = String::new();
    for (status, times) in statuses {
        _ = write!(listed, " {status} x {times}");
    }
    println!(
        "{} clients for {} s, seed {}: {} requests, {served} served, {refused} refused ({}), {cut} cut short",
        options.clients,
        options.seconds,
        options.seed,
        calls.len(),
        listed.trim()
    );
    println!("memory of the relay: {:.1} MiB before, {:.1} MiB after", before / 1024.0, after / 1024.0);
}

fn start(relay: &str, folder: &Folder, services: &[Service]) -> Result<Measured> {
    let mut text = String::from(
        "[relay]\nport = 0\nupstream = \"all\"\nprofile = \"chaos\"\nca_file = \"ca.pem\"\nproxy = \"none\"\n\
         [profile.chaos]\nbased_on = \"interactive\"\nambiguous_resends = 0\npatience = \"20s\"\n\
         client_limit = \"ignored\"\nfailed_sends = 6\n\
         [timeouts]\nconnect = \"1s\"\nfirst_byte = \"3s\"\nidle = \"3s\"\n\
         [breaker]\nfailures = 5\nwindow = \"6s\"\npause = \"1s\"\n\
         [pool.all]\nmembers = [\"s0\", \"s1\", \"s2\"]\nstrategy = \"least_waiting\"\n",
    );
    for (number, service) in services.iter().enumerate() {
        _ = write!(text, "[upstream.s{number}]\nurl = \"{}\"\n", service.url());
    }
    std::fs::write(folder.0.join("config.toml"), text)?;
    let pems: Vec<&str> = services.iter().filter_map(Service::pem).collect();
    std::fs::write(folder.0.join("ca.pem"), pems.concat())?;
    let mut command = Command::new(relay);
    command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    command.env("HOME", &folder.0).args(["serve", "--config"]).arg(folder.0.join("config.toml"));
    command.arg("--state-dir").arg(&folder.0);
    Measured::start_relay(&mut command)
}

/// A folder that is gone afterwards.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("relay-bench-chaos-{}", std::process::id()));
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
