//! A terminal of tmux with a shell in it, and what a person does in front of it: types, looks at the screen and the
//! title, waits for the prompt.
//!
//! The shell writes the exit code of each command to a file before its next prompt, so that nobody has to guess from the
//! screen whether a command is over. Whatever is started here is known by its `HOME`, which it shares with nobody.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::time::Instant;

use crate::scene::{Folder, LONGEST, Relay, Tools, wrapper};
use crate::{Client, Line, Via};

/// How large it is at first.
pub(crate) const COLUMNS: usize = 120;
const ROWS: usize = 40;
/// What the shell says when it waits for a command.
const PROMPT: &str = "at your service>";
/// How often it is looked whether something has come.
const LOOK: Duration = Duration::from_millis(50);
/// What is typed shows after this time, or never.
const AGAIN: Duration = Duration::from_secs(5);

/// A terminal, gone when dropped, with whatever still runs in it.
pub(crate) struct Terminal {
    socket: PathBuf,
    relay: Option<Relay>,
    folder: Folder,
}

/// A process that was started in a terminal.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    pid: u32,
    pub(crate) line: String,
}

impl Terminal {
    /// A terminal at home, in which [`Self::starts`] starts the client. The relay has these settings, or those of all
    /// scenes. `None`, which is told, where there is no tmux.
    pub(crate) async fn open(
        client: &dyn Client,
        via: Via,
        service: SocketAddr,
        settings: Option<&str>,
    ) -> Result<Option<Self>> {
        if std::process::Command::new("tmux").arg("-V").output().is_err() {
            crate::tools::missing("tmux");
            return Ok(None);
        }
        let tools = Tools::find()?;
        let folder = Folder::new()?;
        client.furnish(&folder.home())?;
        if let Some(settings) = settings {
            fs::write(folder.settings(), settings)?;
        }
        let (relay, base) = match via {
            Via::Direct => (None, Some(service)),
            Via::Run => (None, None),
            Via::Relay => {
                let relay = Relay::start(&tools, Some(&folder.settings()), service).await?;
                let addr = relay.addr;
                (Some(relay), Some(addr))
            }
            Via::RelayAsShipped
            | Via::RelayWithoutWebSocket
            | Via::RelayOverHttps(_)
            | Via::Setup
            | Via::Undone
            | Via::Joined => bail!("no terminal is made for {via:?}"),
        };
        let base = base.map(|addr| format!("http://{addr}"));
        let mut line = client.line(&tools, &folder.home(), base.as_deref());
        if via == Via::Run {
            line.words.splice(0..0, wrapper(&tools, &folder, &format!("http://{service}")));
        }
        // Short: the path of a socket may not be long.
        let socket = std::env::temp_dir().join(folder.0.file_name().unwrap_or_default());
        let terminal = Self { socket, relay, folder };
        terminal.begin(&line, &tools)?;
        terminal.until_prompts(1).await?;
        Ok(Some(terminal))
    }

    /// Starts the shell, with the client's line in a file.
    fn begin(&self, line: &Line, tools: &Tools) -> Result<()> {
        let words: Vec<_> = line.words.iter().map(|word| quoted(word)).collect();
        fs::write(self.folder.0.join("client"), format!("exec {}\n", words.join(" ")))?;
        let codes = format!("echo $? >> {}", quoted(&self.codes().display().to_string()));
        let own = [
            ("HOME", self.folder.home().display().to_string()),
            ("PATH", tools.path()),
            ("LANG", "C.UTF-8".to_owned()),
            ("PS1", format!("{PROMPT} ")),
            ("PROMPT_COMMAND", codes),
            ("HISTFILE", String::new()),
        ];
        let mut script = format!("cd {}\n", quoted(&self.folder.work().display().to_string()));
        script += "exec env -i TERM=\"$TERM\"";
        for (name, value) in own.iter().chain(&line.env) {
            script += &format!(" {name}={}", quoted(value));
        }
        script += " bash --norc --noprofile -i\n";
        let file = self.folder.0.join("shell");
        fs::write(&file, script)?;
        let (columns, rows) = (COLUMNS.to_string(), ROWS.to_string());
        let start = ["-f", "/dev/null", "new-session", "-d", "-x", &columns, "-y", &rows];
        let command = format!("sh {}", quoted(&file.display().to_string()));
        self.ask(&[&start[..], &[&command]].concat()).map(drop)
    }

    /// Types the command that starts the client.
    pub(crate) fn starts(&self) -> Result<()> {
        self.types(&format!("sh {}", quoted(&self.folder.0.join("client").display().to_string())))?;
        self.presses("Enter")
    }

    /// Has the shell do this; its exit code.
    pub(crate) async fn does(&self, command: &str) -> Result<i32> {
        let before = self.prompts().len();
        self.types(command)?;
        self.presses("Enter")?;
        self.until_prompts(before + 1).await
    }

    /// How the terminal takes keys and shows text.
    pub(crate) async fn modes(&self) -> Result<String> {
        let file = self.folder.0.join("modes");
        self.does(&format!("stty -a > {}", quoted(&file.display().to_string()))).await?;
        let said = fs::read_to_string(&file).context("stty says nothing")?;
        // But not how large it is.
        let (_, modes) = said.split_once('\n').context("stty says too little")?;
        Ok(modes.to_owned())
    }

    pub(crate) fn types(&self, text: &str) -> Result<()> {
        self.ask(&["send-keys", "-l", "--", text]).map(drop)
    }

    /// Types this until it is on the screen. A client that has just been started, or taken up again, may drop what comes
    /// before it has looked at its terminal.
    pub(crate) async fn types_until_shown(&self, text: &str) -> Result<()> {
        let until = Instant::now() + LONGEST;
        loop {
            self.types(text)?;
            let again = Instant::now() + AGAIN;
            while Instant::now() < again {
                if self.screen()?.contains(text) {
                    return Ok(());
                }
                tokio::time::sleep(LOOK).await;
            }
            anyhow::ensure!(Instant::now() < until, "it takes no keys:\n{}", self.screen()?);
        }
    }

    /// One key, as tmux calls it.
    pub(crate) fn presses(&self, key: &str) -> Result<()> {
        self.ask(&["send-keys", key]).map(drop)
    }

    pub(crate) fn resizes(&self, columns: usize) -> Result<()> {
        let (columns, rows) = (columns.to_string(), ROWS.to_string());
        self.ask(&["resize-window", "-x", &columns, "-y", &rows]).map(drop)
    }

    pub(crate) fn screen(&self) -> Result<String> {
        self.ask(&["capture-pane", "-p"])
    }

    pub(crate) fn title(&self) -> Result<String> {
        Ok(self.ask(&["display-message", "-p", "#{pane_title}"])?.trim_end().to_owned())
    }

    /// The screen as soon as it shows this.
    pub(crate) async fn until_shows(&self, words: &str) -> Result<String> {
        self.until(&format!("the screen shows {words:?}"), || {
            Ok(Some(self.screen()?).filter(|screen| screen.contains(words)))
        })
        .await
    }

    /// The screen as soon as it is like this.
    pub(crate) async fn until_screen(&self, what: &str, fits: impl Fn(&str) -> bool) -> Result<String> {
        self.until(what, || Ok(Some(self.screen()?).filter(|screen| fits(screen)))).await
    }

    /// The title as soon as it is like this.
    pub(crate) async fn until_title(&self, what: &str, fits: impl Fn(&str) -> bool) -> Result<String> {
        self.until(what, || Ok(Some(self.title()?).filter(|title| fits(title)))).await
    }

    /// The exit code of the command before the prompt of this number, as soon as it is shown.
    async fn until_prompts(&self, count: usize) -> Result<i32> {
        self.until("the shell has its prompt", || Ok(self.prompts().get(count - 1).copied())).await
    }

    /// The exit code of the client, as soon as the shell knows it: of the command that is running now.
    pub(crate) async fn until_over(&self, before: usize) -> Result<i32> {
        self.until_prompts(before + 1).await
    }

    /// The exit codes of all commands that are over.
    pub(crate) fn prompts(&self) -> Vec<i32> {
        let codes = fs::read_to_string(self.codes()).unwrap_or_default();
        let whole = codes.rfind('\n').map_or("", |end| &codes[..end]);
        whole.lines().filter_map(|code| code.parse().ok()).collect()
    }

    /// Looks again and again.
    pub(crate) async fn until<T>(&self, what: &str, look: impl Fn() -> Result<Option<T>>) -> Result<T> {
        let until = Instant::now() + LONGEST;
        loop {
            if let Some(seen) = look()? {
                return Ok(seen);
            }
            if Instant::now() > until {
                let log = self.relay.as_ref().map(Relay::log).unwrap_or_default();
                let (title, screen) = (self.title()?, self.screen()?);
                let processes = self.processes()?;
                bail!("never: {what}\n--- {title}\n{screen}\n--- relay\n{log}\n--- {processes:#?}");
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// All that runs here but the shell.
    pub(crate) fn processes(&self) -> Result<Vec<Process>> {
        let home = format!("HOME={}", self.folder.home().display());
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc")? {
            let folder = entry?.path();
            if let Some(process) =
                process(&folder, &home).filter(|process| !process.line.starts_with("bash --norc"))
            {
                found.push(process);
            }
        }
        Ok(found)
    }

    /// The first with such a line.
    pub(crate) fn process(&self, fits: impl Fn(&str) -> bool) -> Result<Process> {
        let all = self.processes()?;
        let found = all.iter().find(|process| fits(&process.line));
        found.cloned().with_context(|| format!("there is none: {all:?}"))
    }

    /// The window is closed.
    pub(crate) fn closes(&self) -> Result<()> {
        self.ask(&["kill-server"]).map(drop)
    }

    /// Sends a signal to it, as somebody in another terminal would.
    pub(crate) fn kills(&self, signal: &str, process: &Process) -> Result<()> {
        let told = std::process::Command::new("kill").args(["-s", signal, &process.pid.to_string()]).status();
        anyhow::ensure!(told?.success(), "nobody to tell: {process:?}");
        Ok(())
    }

    /// Waits until nothing runs here any more.
    pub(crate) async fn until_empty(&self) -> Result<()> {
        self.until("nothing is left running", || Ok(self.processes()?.is_empty().then_some(()))).await
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.home()
    }

    fn codes(&self) -> PathBuf {
        self.folder.0.join("codes")
    }

    fn ask(&self, words: &[&str]) -> Result<String> {
        let asked = std::process::Command::new("tmux").arg("-S").arg(&self.socket).args(words).output();
        let asked = asked.context("cannot start tmux")?;
        Ok(String::from_utf8_lossy(&asked.stdout).into_owned())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        drop(self.closes());
    }
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// A process with this variable; it may end meanwhile, and not all may be looked at.
fn process(folder: &Path, variable: &str) -> Option<Process> {
    let pid = folder.file_name()?.to_str()?.parse().ok()?;
    let environment = fs::read(folder.join("environ")).ok()?;
    environment.split(|byte| *byte == 0).find(|set| *set == variable.as_bytes())?;
    let line = fs::read(folder.join("cmdline")).ok()?;
    let line = String::from_utf8_lossy(&line).trim_end_matches('\0').replace('\0', " ");
    Some(Process { pid, line })
}
