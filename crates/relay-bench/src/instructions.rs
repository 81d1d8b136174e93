//! Instructions per request and per event, counted by valgrind. Unlike time they come out the same on a busy machine,
//! so that a ceiling can stand in the tests.
//!
//! Each load is played twice, the second time three times as long; the difference leaves out the start, the first
//! connection and the end.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::load::{Client, body, request};
use crate::process::Measured;
use crate::report::{Goal, Report};

/// The most instructions that the relay may use per request, in thousands. `cargo xtask bench --instructions` shows
/// what it uses. Lower this to 15 % above that after making the relay cheaper; raise it only for something that is
/// worth its price, and say in the commit what that is.
const CEILING_THOUSANDS: f64 = 172.0;

/// Far more than a load takes on a slow machine: whoever hangs is to fail and not to wait for.
const PLAYED_WITHIN: Duration = Duration::from_secs(120);

const PER_REQUEST: &str = "thousand instructions per request";

/// What is asked for, over one connection.
#[derive(Clone, Copy)]
enum Load {
    /// The standard request, one after another.
    Requests,
    /// One stream whose events come as fast as they are taken: many fit into one read.
    Flood,
    /// One stream whose events come one by one.
    Paced,
}

const LOADS: [(Load, &str, usize); 3] = [
    (Load::Requests, PER_REQUEST, 400),
    (Load::Flood, "the same per event, in a flood", 10_000),
    (Load::Paced, "the same per event, one by one", 400),
];

/// Counts for the bare proxy and the relay at `relay`, and prints the table.
pub(crate) async fn run(relay: &str) -> Result<()> {
    let me = std::env::current_exe()?;
    let origin = Measured::start(Command::new(&me).arg("origin"))?;
    let upstream = format!("http://{}", origin.address);
    let mut report = Report::default();
    for (load, figure, count) in LOADS {
        for way in ["bare", "relay"] {
            let program = || match way {
                "bare" => (me.as_path(), ["bare", &upstream].to_vec()),
                _ => (Path::new(relay), ["serve", "--port", "0", "--upstream", &upstream].to_vec()),
            };
            let few = counted(program(), load, count).await?;
            let many = counted(program(), load, 3 * count).await?;
            report.add(figure, way, (many - few) / (2 * count) as f64 / 1000.0);
        }
    }
    ensure!(
        report.print("bare proxy", &goal),
        "a request costs more than the ceiling in crates/relay-bench/src/instructions.rs"
    );
    Ok(())
}

fn goal(figure: &str) -> Goal {
    if figure == PER_REQUEST { Goal::RelayAtMost(CEILING_THOUSANDS) } else { Goal::None }
}

/// The instructions of a program from its start to its end, with a load of `count` in between.
async fn counted((program, arguments): (&Path, Vec<&str>), load: Load, count: usize) -> Result<f64> {
    let counts = std::env::temp_dir().join(format!("relay-bench-{}.callgrind", std::process::id()));
    let mut command = Command::new("valgrind");
    command.args(["--quiet", "--tool=callgrind"]).arg(format!("--callgrind-out-file={}", counts.display()));
    // Nobody's settings, and one worker: how often threads wake each other depends on the machine.
    command.arg(program).args(&arguments).env_clear().env("TOKIO_WORKER_THREADS", "1");
    command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    let measured = match arguments[0] {
        "bare" => Measured::start(&mut command),
        _ => Measured::start_relay(&mut command),
    };
    let measured = measured.context("cannot start valgrind")?;
    let played = tokio::time::timeout(PLAYED_WITHIN, play(&measured.address, load, count)).await;
    played.context("the load came to no end")??;
    measured.end().await?;
    let text = std::fs::read_to_string(&counts).context("valgrind wrote no counts")?;
    std::fs::remove_file(&counts)?;
    summary(&text).context("valgrind's counts have no sum")
}

async fn play(address: &str, load: Load, count: usize) -> Result<()> {
    let mut client = Client::connect(address).await?;
    let order = match load {
        Load::Requests => {
            let request = request("answer", &body(8 * 1024, false));
            for _ in 0..count {
                client.ask(&request).await?;
            }
            return Ok(());
        }
        Load::Flood => format!("stream={count}"),
        Load::Paced => format!("paced={count}"),
    };
    let events = client.stream(&request(&order, &body(8 * 1024, true)), None).await?;
    ensure!(events > count, "{events} events came, {count} were asked for");
    Ok(())
}

/// The sum at the end of a file of callgrind's.
fn summary(text: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix("summary:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_found() {
        assert_eq!(summary("events: Ir\nsummary: 258156454\n\nfn=x\n1 2\n"), Some(258_156_454.0));
        assert_eq!(summary("events: Ir\n"), None);
    }
}
