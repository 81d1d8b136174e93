//! One run of one client: a home of its own, a scripted upstream, the relay or not, and what came of it.

use std::fmt;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use relay_sim::{Script, Seen, Upstream};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStderr, Command};
use tokio::time::{Instant, timeout};

use crate::front::{Carried, Front};

/// No scenario takes this long; one that does hangs.
pub(crate) const LONGEST: Duration = Duration::from_secs(90);

/// Delays short enough for a test; the counts are those of the profile it is based on.
pub(crate) const SETTINGS: &str = r#"[relay]
profile = "fast"

[profile.fast]
based_on = "interactive"
base = "100ms"
cap = "400ms"
jitter = "50ms"
overloaded_base = "100ms"
overloaded_cap = "400ms"
useless_floor = "80ms"

[waiting]
interim = "5s"
"#;

/// The physical sends that `SETTINGS` grant one call.
pub(crate) const SENDS: usize = 8;

/// What stands between the client and the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Via {
    /// Nothing.
    Direct,
    /// `steady-relay serve` with short delays; the client is pointed at it.
    Relay,
    /// The same without any settings.
    RelayAsShipped,
    /// The one with short delays, with `websocket = "refuse"`.
    RelayWithoutWebSocket,
    /// The one with short delays, over https; the client trusts its certificate by this variable.
    RelayOverHttps(&'static str),
    /// `steady-relay run -- client`; the client is told nothing by us.
    Run,
    /// The client's own settings name the service; `steady-relay setup` has pointed it at `serve`.
    Setup,
    /// The same after `steady-relay undo`.
    Undone,
    /// The same, beside a relay that serves and is joined.
    Joined,
}

/// A command line with what it adds to a bare environment.
pub(crate) struct Line {
    pub(crate) words: Vec<String>,
    pub(crate) env: Vec<(&'static str, String)>,
}

/// A client that can be started.
pub(crate) trait Client {
    /// Writes what it expects to find at home: its login and settings.
    fn furnish(&self, home: &Path) -> Result<()>;

    /// Writes the service's address into its own settings.
    fn settle(&self, _home: &Path, _service: &str) -> Result<()> {
        bail!("this client is not tested with an address of its own")
    }

    /// How to start it in `home`, pointed at `base` unless somebody else does that.
    fn line(&self, tools: &Tools, home: &Path, base: Option<&str>) -> Line;
}

/// The programs under test, as `cargo xtask test` hands them in.
pub(crate) struct Tools {
    pub(crate) installed: PathBuf,
    relay: PathBuf,
}

impl Tools {
    pub(crate) fn find() -> Result<Self> {
        let hint = "run these tests with: cargo xtask test --only clients";
        let named =
            |name| std::env::var_os(name).map(PathBuf::from).with_context(|| format!("no {name}; {hint}"));
        Ok(Self { installed: named("STEADY_CLIENTS")?, relay: named("STEADY_RELAY")? })
    }

    pub(crate) fn path(&self) -> String {
        let own = self.installed.join("node/node_modules/.bin");
        format!("{}:{}", own.display(), std::env::var("PATH").unwrap_or_default())
    }
}

/// What came of a run.
pub(crate) struct Ran {
    /// The exit code; none if a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
    /// From the start of the client to its end.
    pub(crate) took: Duration,
    /// What the service saw; empty where the scenario has started one by itself.
    pub(crate) seen: Vec<Seen>,
    pub(crate) carried: Vec<Carried>,
    relay_log: String,
    folder: Folder,
}

impl Ran {
    /// How many requests for an answer the client made. Under [`Via::Run`] nobody can see them.
    pub(crate) fn requests(&self) -> usize {
        let lines = self.carried.iter().flat_map(Carried::requests);
        lines.filter(|line| line.starts_with("POST ")).count()
    }

    /// How many requests for an answer reached the service: what is paid for.
    pub(crate) fn sends(&self) -> usize {
        self.posts().count()
    }

    /// The requests for an answer as the service saw them.
    pub(crate) fn posts(&self) -> impl Iterator<Item = &Seen> {
        self.seen.iter().filter(|seen| seen.method == "POST")
    }

    /// The connections of the client whose first request is this.
    pub(crate) fn connections(&self, start: &str) -> Vec<&Carried> {
        let first = |carried: &&Carried| carried.from_client.starts_with(start.as_bytes());
        self.carried.iter().filter(first).collect()
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.home()
    }

    /// How often the relay that serves told of a wait.
    pub(crate) fn waits_at_the_relay(&self) -> usize {
        self.relay_log.matches("[retry]").count()
    }
}

impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "exit {:?} after {:?}", self.code, self.took)?;
        writeln!(f, "--- stdout\n{}\n--- stderr\n{}\n--- relay\n{}", self.out, self.err, self.relay_log)?;
        writeln!(f, "--- the service saw")?;
        for seen in &self.seen {
            writeln!(f, "{:>9.3?} {} {} ({} bytes)", seen.at, seen.method, seen.target, seen.body.len())?;
        }
        Ok(())
    }
}

/// Runs the client once.
pub(crate) async fn run(client: &dyn Client, via: Via, script: Script) -> Result<Ran> {
    let upstream = Upstream::start(script).await?;
    let mut ran = run_at(client, via, upstream.addr()).await?;
    ran.seen = upstream.requests();
    Ok(ran)
}

/// Runs the client once, with a service that listens already.
pub(crate) async fn run_at(client: &dyn Client, via: Via, service: SocketAddr) -> Result<Ran> {
    let tools = Tools::find()?;
    let folder = Folder::new()?;
    client.furnish(&folder.home())?;
    let relay = match via {
        Via::Relay => Some(Relay::start(&tools, Some(&folder.settings()), service).await?),
        Via::RelayWithoutWebSocket => {
            let settings = SETTINGS.replacen("[relay]\n", "[relay]\nwebsocket = \"refuse\"\n", 1);
            fs::write(folder.settings(), settings)?;
            Some(Relay::start(&tools, Some(&folder.settings()), service).await?)
        }
        Via::RelayAsShipped => Some(Relay::start(&tools, None, service).await?),
        Via::Setup | Via::Undone => {
            client.settle(&folder.home(), &format!("http://{service}"))?;
            Some(Relay::set_up(&tools, &folder, via, service).await?)
        }
        Via::RelayOverHttps(_) => {
            let state = toml_text(&folder.state());
            let settings =
                SETTINGS.replacen("[relay]\n", &format!("[relay]\ntls = true\nstate_dir = {state}\n"), 1);
            fs::write(folder.settings(), settings)?;
            Some(Relay::start(&tools, Some(&folder.settings()), service).await?)
        }
        Via::Joined => Some(Relay::start(&tools, Some(&folder.settings()), service).await?),
        Via::Direct | Via::Run => None,
    };
    let front = Front::to(relay.as_ref().map_or(service, |relay| relay.addr)).await?;
    let base = (!matches!(via, Via::Run | Via::Joined | Via::Setup | Via::Undone)).then(|| front.url());
    let secured = base.as_ref().map(|base| base.replacen("http:", "https:", 1));
    let base = if matches!(via, Via::RelayOverHttps(_)) { secured } else { base };
    let mut line = client.line(&tools, &folder.home(), base.as_deref());
    if let Via::RelayOverHttps(variable) = via {
        line.env.push((variable, folder.state().join("tls/ca.pem").display().to_string()));
    }
    if via == Via::Run {
        line.words.splice(0..0, wrapper(&tools, &folder, &format!("http://{service}")));
    }
    if let (Via::Joined, Some(relay)) = (via, &relay) {
        line.words.splice(0..0, [tools.relay.display().to_string(), "run".to_owned(), "--".to_owned()]);
        line.env.push(("STEADY_RELAY_PORT", relay.addr.port().to_string()));
        line.env.push(("STEADY_RELAY_STATE_DIR", folder.state().display().to_string()));
    }
    let begun = Instant::now();
    let ended = timeout(LONGEST, command(&line, &tools, &folder).output()).await;
    let took = begun.elapsed();
    let relay_log = relay.map_or_else(String::new, |relay| relay.log());
    let done = ended.with_context(|| format!("{} hangs\n{relay_log}", line.words[0]))?;
    let done = done.with_context(|| format!("cannot start {}", line.words[0]))?;
    Ok(Ran {
        code: done.status.code(),
        out: String::from_utf8_lossy(&done.stdout).into_owned(),
        err: String::from_utf8_lossy(&done.stderr).into_owned(),
        took,
        seen: Vec::new(),
        carried: front.carried(),
        relay_log,
        folder,
    })
}

/// A path in a file of settings.
fn toml_text(path: &Path) -> String {
    serde_json::Value::from(path.display().to_string()).to_string()
}

/// `steady-relay run --` in front of the client.
pub(crate) fn wrapper(tools: &Tools, folder: &Folder, upstream: &str) -> Vec<String> {
    let (relay, settings) = (tools.relay.display().to_string(), folder.settings().display().to_string());
    [relay.as_str(), "run", "--config", &settings, "--upstream", upstream, "--"].map(str::to_owned).to_vec()
}

fn command(line: &Line, tools: &Tools, folder: &Folder) -> Command {
    let mut command = Command::new(&line.words[0]);
    command.args(&line.words[1..]).current_dir(folder.work()).kill_on_drop(true);
    command.env_clear().env("PATH", tools.path()).env("HOME", folder.home());
    command
        .env("LANG", "C.UTF-8")
        .env("TERM", "dumb")
        .envs(line.env.iter().map(|(name, value)| (*name, value)));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// `steady-relay serve`, killed when dropped.
pub(crate) struct Relay {
    pub(crate) addr: SocketAddr,
    lines: Arc<Mutex<String>>,
    _process: Child,
}

impl Relay {
    pub(crate) async fn start(tools: &Tools, settings: Option<&Path>, service: SocketAddr) -> Result<Self> {
        let url = format!("http://{service}");
        Self::launch(tools, settings, &["--port", "0", "--upstream", &url], service).await
    }

    /// Points the clients at home to a relay and starts that one; or takes it back once more.
    async fn set_up(tools: &Tools, folder: &Folder, via: Via, service: SocketAddr) -> Result<Self> {
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string();
        let (settings, state) = (folder.settings(), folder.home().join("state"));
        let file = settings.display().to_string();
        let setup = ["setup", "--yes", "--port", &port, "--config", &file];
        let verbs: [&[&str]; 2] = [&setup, &["undo"]];
        for verb in verbs.iter().take(if via == Via::Undone { 2 } else { 1 }) {
            let mut command = Command::new(&tools.relay);
            command.args(*verb).env_clear().env("HOME", folder.home()).env("STEADY_RELAY_STATE_DIR", &state);
            let ended = command.stdin(Stdio::null()).output().await?;
            if !ended.status.success() {
                bail!("{verb:?}: {}", String::from_utf8_lossy(&ended.stderr));
            }
        }
        Self::launch(tools, Some(&settings), &["--port", &port], service).await
    }

    /// With these arguments; `service` is an address that is not its own.
    pub(crate) async fn launch(
        tools: &Tools,
        settings: Option<&Path>,
        arguments: &[&str],
        service: SocketAddr,
    ) -> Result<Self> {
        let mut command = Command::new(&tools.relay);
        command.args(["serve", "--listen", "127.0.0.1"]).args(arguments);
        if let Some(settings) = settings {
            command.arg("--config").arg(settings);
            command.arg("--state-dir").arg(settings.with_file_name("state"));
        }
        command.env_clear().kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process =
            command.spawn().with_context(|| format!("cannot start {}", tools.relay.display()))?;
        let stderr = process.stderr.take().context("its stderr is piped")?;
        let lines = Arc::new(Mutex::new(String::new()));
        let mut reader = BufReader::new(stderr);
        let addr = timeout(Duration::from_secs(10), address(&mut reader, &lines, service)).await;
        let addr = addr.context("the relay names no address")??;
        tokio::spawn(keep(reader, Arc::clone(&lines)));
        Ok(Self { addr, lines, _process: process })
    }

    pub(crate) fn log(&self) -> String {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Reads until a line names an address that is not the service's.
async fn address(
    reader: &mut BufReader<ChildStderr>,
    lines: &Mutex<String>,
    service: SocketAddr,
) -> Result<SocketAddr> {
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).await? == 0 {
            bail!("the relay ended: {}", lines.lock().unwrap_or_else(PoisonError::into_inner));
        }
        lines.lock().unwrap_or_else(PoisonError::into_inner).push_str(&line);
        let named = line.split("http://").skip(1).filter_map(|rest| {
            let end =
                rest.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ':')).unwrap_or(rest.len());
            rest[..end].trim_end_matches(['.', ':']).parse().ok()
        });
        if let Some(addr) = named.into_iter().find(|addr| *addr != service) {
            return Ok(addr);
        }
    }
}

async fn keep(mut reader: BufReader<ChildStderr>, lines: Arc<Mutex<String>>) {
    let mut line = String::new();
    while reader.read_line(&mut line).await.is_ok_and(|count| count > 0) {
        lines.lock().unwrap_or_else(PoisonError::into_inner).push_str(&line);
        line.clear();
    }
}

/// A folder that lasts as long as the run: the client's home and working folder, and the relay's settings.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Result<Self> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("clients-{}-{number}", std::process::id());
        let folder = Self(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name));
        for part in [folder.home(), folder.work()] {
            fs::create_dir_all(&part).with_context(|| format!("cannot make {}", part.display()))?;
        }
        fs::write(folder.settings(), SETTINGS).context("cannot write the settings of the relay")?;
        Ok(folder)
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.0.join("home")
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.0.join("home/work")
    }

    pub(crate) fn settings(&self) -> PathBuf {
        self.0.join("relay.toml")
    }

    /// What the relay keeps.
    fn state(&self) -> PathBuf {
        self.0.join("state")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A background process of a client may still write there; what is left is in the target folder.
        drop(fs::remove_dir_all(&self.0));
    }
}
