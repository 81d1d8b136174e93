//! The program under load, and what Linux says it holds.

use std::fs;
use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStderr, Command};
use tokio::time::timeout;

/// What is held at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    /// Resident bytes.
    pub(crate) memory: u64,
    pub(crate) descriptors: usize,
}

/// `steady-relay serve`, killed when dropped.
pub(crate) struct Program {
    pub(crate) addr: SocketAddr,
    id: u32,
    settings: std::path::PathBuf,
    _process: Child,
}

impl Program {
    pub(crate) async fn start(path: &str, settings: String) -> Result<Self> {
        let file = std::env::temp_dir().join(format!("steady-soak-{}.toml", std::process::id()));
        fs::write(&file, settings).context("cannot write the settings")?;
        let mut command = Command::new(path);
        command.args(["serve", "--listen", "127.0.0.1", "--port", "0", "--config"]).arg(&file);
        command.env_clear().kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().with_context(|| format!("cannot start {path}"))?;
        let mut reader = BufReader::new(process.stderr.take().context("its stderr is piped")?);
        let addr = timeout(Duration::from_secs(10), address(&mut reader)).await;
        let addr = addr.context("the program names no address")??;
        // What it says of its waits is read, or it would stand still when the pipe is full.
        tokio::spawn(async move {
            let mut line = String::new();
            while reader.read_line(&mut line).await.is_ok_and(|count| count > 0) {
                line.clear();
            }
        });
        let id = process.id().context("it has just been started")?;
        Ok(Self { addr, id, settings: file, _process: process })
    }

    pub(crate) fn sample(&self) -> Result<Sample> {
        let folder = format!("/proc/{}", self.id);
        let status =
            fs::read_to_string(format!("{folder}/status")).context("only Linux tells what it holds")?;
        let line =
            status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("the program ended")?;
        let kib: u64 = line.trim().trim_end_matches(" kB").parse().context("VmRSS")?;
        let descriptors = fs::read_dir(format!("{folder}/fd")).context("its descriptors")?.count();
        Ok(Sample { memory: kib * 1024, descriptors })
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // A file left in the temporary folder is no reason to fail.
        drop(fs::remove_file(&self.settings));
    }
}

async fn address(reader: &mut BufReader<ChildStderr>) -> Result<SocketAddr> {
    let mut said = String::new();
    loop {
        let start = said.len();
        if reader.read_line(&mut said).await? == 0 {
            bail!("the program ended: {said}");
        }
        if let Some((_, rest)) = said[start..].split_once("http://127.0.0.1:") {
            let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
            return Ok(SocketAddr::from(([127, 0, 0, 1], port.parse().context("a port")?)));
        }
    }
}
