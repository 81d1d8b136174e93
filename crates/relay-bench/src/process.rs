//! Processes that are measured: started, asked for their CPU time and memory (Linux), ended.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

/// How long a process may take to end when it is asked to, under valgrind too.
const ENDS_WITHIN: Duration = Duration::from_secs(30);

/// A running process with an address.
pub(crate) struct Measured {
    child: Child,
    /// `host:port`.
    pub(crate) address: String,
}

impl Measured {
    /// Starts a process that prints its URL as the first line on standard output.
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("a stdout")?).read_line(&mut line)?;
        let address = line.trim().trim_start_matches("http://").to_owned();
        ensure!(!address.is_empty(), "the process printed no address");
        Ok(Self { child, address })
    }

    /// Starts the relay, which says on standard error where it listens.
    pub(crate) fn start_relay(command: &mut Command) -> Result<Self> {
        // Whoever measures sees no notices about it on the desktop.
        command.env_remove("DBUS_SESSION_BUS_ADDRESS").env_remove("XDG_RUNTIME_DIR");
        let mut child = command.stderr(Stdio::piped()).spawn()?;
        let mut lines = BufReader::new(child.stderr.take().context("a stderr")?).lines();
        let address = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| Some(line.split_once("listening on http://")?.1.trim().to_owned()))
            .context("the relay did not start")?;
        // Whatever it says later must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(Self { child, address })
    }

    /// Starts the relay, which was told to listen at `address`, and may be told to say nothing.
    pub(crate) async fn start_silent(command: &mut Command, address: String) -> Result<Self> {
        command.env_remove("DBUS_SESSION_BUS_ADDRESS").env_remove("XDG_RUNTIME_DIR");
        let child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let mut started = Self { child, address };
        let asked = Instant::now();
        while tokio::net::TcpStream::connect(&started.address).await.is_err() {
            ensure!(started.child.try_wait()?.is_none(), "the relay did not start");
            ensure!(asked.elapsed() < ENDS_WITHIN, "the relay does not listen");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(started)
    }

    /// Asks it to end, as a service manager does, and waits until it has. Not all of them catch the signal, so
    /// how they end says nothing.
    pub(crate) async fn end(mut self) -> Result<()> {
        let asked =
            Command::new("sh").args(["-c", "kill -TERM $0", &self.child.id().to_string()]).status()?;
        ensure!(asked.success(), "the process was gone before it was asked to end");
        let asked = Instant::now();
        while self.child.try_wait()?.is_none() {
            if asked.elapsed() > ENDS_WITHIN {
                bail!("the process did not end within {} s", ENDS_WITHIN.as_secs());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    /// CPU time used so far, in microseconds.
    pub(crate) fn cpu_us(&self) -> Result<f64> {
        cpu_us_of(&self.child.id().to_string())
    }

    /// Resident memory, in KiB.
    pub(crate) fn rss_kib(&self) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("VmRSS")?;
        Ok(line.trim().trim_end_matches("kB").trim().parse::<u64>()? as f64)
    }
}

/// CPU time that a process has used so far, in microseconds; `self` is this one.
pub(crate) fn cpu_us_of(process: &str) -> Result<f64> {
    let schedstat = std::fs::read_dir(format!("/proc/{process}/task"))?;
    let mut nanos = 0_u64;
    for task in schedstat {
        let text = std::fs::read_to_string(task?.path().join("schedstat")).unwrap_or_default();
        nanos += text.split_whitespace().next().and_then(|first| first.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(nanos as f64 / 1000.0)
}

impl Drop for Measured {
    fn drop(&mut self) {
        // It may have ended by itself; either way it is gone afterwards.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
