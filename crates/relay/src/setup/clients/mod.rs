//! What is known of each client: its files, the keys that move it, what else in them would undo that, and what to tell.
//! A file for each; nothing here writes.

mod by_hand;
mod claude;
mod codex;
mod env_file;
mod gemini;
mod opencode;
mod vscode;

use std::path::{Path, PathBuf};

use relay_core::Lang;

use super::address::RelayAt;
use super::document::{Document, Format};
use super::machine::{Bad, Held, Home, Machine, Side, System};
use crate::words::setup as words;

/// A client that `setup` knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Client {
    /// Codex: CLI, IDE extension and desktop, which share one file.
    Codex,
    /// Claude Code.
    Claude,
    /// Claude Code's extension in VS Code and its relatives.
    VsCode,
    /// opencode.
    Opencode,
    /// Gemini CLI.
    Gemini,
    /// Continue.
    Continue,
    /// Cline and Roo Code.
    Cline,
    /// An env file that was named.
    EnvFile,
    /// The relay itself: its port, and upstreams that clients brought along.
    Relay,
}

impl Client {
    /// All that are looked for.
    pub const ALL: [Self; 7] =
        [Self::Codex, Self::Claude, Self::VsCode, Self::Opencode, Self::Gemini, Self::Continue, Self::Cline];

    /// The name, as on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Codex => "codex",
            Self::Claude => "claude",
            Self::VsCode => "vscode",
            Self::Opencode => "opencode",
            Self::Gemini => "gemini",
            Self::Continue => "continue",
            Self::Cline => "cline",
            Self::EnvFile => "env-file",
            Self::Relay => "relay",
        }
    }

    /// The client of a name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        let all = Self::ALL.iter().chain(&[Self::EnvFile, Self::Relay]);
        let name = match name {
            "claude-code" => "claude",
            "code" | "vs-code" => "vscode",
            "gemini-cli" => "gemini",
            "roo" => "cline",
            name => name,
        };
        all.copied().find(|client| client.name() == name)
    }
}

/// One file of a client, looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) client: Client,
    /// What people call it, where one client has several.
    pub(super) title: String,
    pub(super) side: Side,
    pub(super) file: PathBuf,
    pub(super) format: Format,
    /// Whether the file may hold comments.
    pub(super) comments: bool,
    /// What is to be set: the address, or one for each service, and what goes with it.
    pub(super) keys: Vec<Key>,
    /// More addresses in the file, which are not ours to set.
    pub(super) others: Vec<Vec<String>>,
    /// What holds in the surroundings where the file says nothing.
    pub(super) around: Option<String>,
    pub(super) way: Way,
    /// What the user should know, a sentence each.
    pub(super) notes: Vec<String>,
}

/// Whether the client can be moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Way {
    /// By its keys.
    Keys,
    /// By the user alone; what to do.
    ByHand(Vec<String>),
    /// Something stands in the way.
    No(String),
    /// Its file cannot be used.
    Bad(Bad),
}

/// One key that moves a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) path: Vec<String>,
    pub(super) value: Wanted,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The relay's address with this version behind it.
    Address(&'static str),
    /// This text.
    Text(&'static str),
}

/// What clients are looked at with.
#[derive(Clone, Copy)]
pub(super) struct Look<'a> {
    pub(super) machine: &'a Machine<'a>,
    pub(super) relay: &'a RelayAt,
    pub(super) lang: Lang,
    /// The clients that were asked for by name; none: all that are there.
    pub(super) named: &'a [Client],
}

impl Look<'_> {
    /// Whether a client is on this machine: it has left its folder there, or is installed and was never started, or the
    /// user says so.
    fn finds(&self, client: Client, home: &Home, folder: &Path) -> bool {
        let is_said = self.named.contains(&client);
        let is_installed = || self.machine.has_program(client.name());
        self.machine.has(folder) || home.side == Side::Here && (is_said || is_installed())
    }

    /// A file as a document; a finding is made of what went wrong.
    fn open(&self, finding: &mut Finding) -> Option<Document> {
        let bad = match self.machine.text(&finding.file) {
            Held::Nothing => return Document::read(finding.format, "").ok(),
            Held::Bad(bad) => bad,
            Held::Text(text) => match Document::read(finding.format, &text) {
                Ok(document) => return Some(document),
                Err(flaw) => Bad::Flaw(flaw),
            },
        };
        finding.way = Way::Bad(bad);
        None
    }

    /// The document of another file, if there is one that can be read.
    pub(super) fn peek(&self, file: &Path, format: Format) -> Option<Document> {
        peek(self.machine, file, format)
    }
}

fn peek(machine: &Machine<'_>, file: &Path, format: Format) -> Option<Document> {
    match machine.text(file) {
        Held::Text(text) => Document::read(format, &text).ok(),
        Held::Nothing | Held::Bad(_) => None,
    }
}

impl Finding {
    fn new(client: Client, title: &str, home: &Home, file: PathBuf, format: Format) -> Self {
        Self {
            client,
            title: title.to_owned(),
            side: home.side.clone(),
            file,
            format,
            comments: format != Format::Json,
            keys: Vec::new(),
            others: Vec::new(),
            around: None,
            way: Way::Keys,
            notes: Vec::new(),
        }
    }

    fn key(mut self, path: &[&str], value: Wanted) -> Self {
        self.keys.push(Key { path: path.iter().map(|step| (*step).to_owned()).collect(), value });
        self
    }

    /// Takes note of an address that is not ours to set, where there is one.
    fn note(&mut self, document: &Document, path: &[&str]) {
        let path: Vec<String> = path.iter().map(|step| (*step).to_owned()).collect();
        if document.has(&path) && self.keys.iter().all(|key| key.path != path) {
            self.others.push(path);
        }
    }
}

/// Every client that is there, in every home; of these clients alone, where some are named.
pub(super) fn find(look: Look<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for home in look.machine.homes() {
        let mut here = Vec::new();
        codex::look(look, &home, &mut here);
        claude::look(look, &home, &mut here);
        vscode::look(look, &home, &mut here);
        opencode::look(look, &home, &mut here);
        gemini::look(look, &home, &mut here);
        by_hand::look(look, &home, &mut here);
        for finding in &mut here {
            on_the_other_side(look, finding);
        }
        found.extend(here);
    }
    found.retain(|finding| look.named.is_empty() || look.named.contains(&finding.client));
    found
}

/// The env file that was named.
pub(super) fn env_file(look: Look<'_>, file: PathBuf) -> Finding {
    env_file::look(look, file)
}

/// What the two sides of Windows can reach of each other.
fn on_the_other_side(look: Look<'_>, finding: &mut Finding) {
    match &finding.side {
        Side::Here => {}
        Side::Windows => finding.notes.push(words::from_windows(look.lang)),
        Side::Wsl(distro) => {
            if !look.machine.wsl_shares_loopback() && finding.way == Way::Keys {
                finding.way = Way::No(words::wsl_apart(look.lang, distro));
            }
        }
    }
}

/// A folder in the home that a variable of this user's may move.
fn folder(machine: &Machine<'_>, home: &Home, variable: &str, usual: &str) -> PathBuf {
    let moved = if home.side == Side::Here { machine.folder_of(variable) } else { None };
    moved.unwrap_or_else(|| home.path.join(usual))
}

/// The folder of settings of programs that follow the habits of their system.
fn settings_folder(machine: &Machine<'_>, home: &Home) -> PathBuf {
    match home.system {
        System::Linux => folder(machine, home, "XDG_CONFIG_HOME", ".config"),
        System::Mac => home.path.join("Library").join("Application Support"),
        System::Windows => folder(machine, home, "APPDATA", "AppData/Roaming"),
    }
}

/// Where clients of this user keep more than settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folders {
    /// The home.
    pub home: PathBuf,
    /// The folder of Codex.
    pub codex: PathBuf,
    /// The folder of Claude Code.
    pub claude: PathBuf,
}

impl Folders {
    /// Those on this machine, as far as it tells.
    #[must_use]
    pub fn on(machine: &Machine<'_>) -> Option<Self> {
        let home = machine.homes().into_iter().find(|home| home.side == Side::Here)?;
        let (codex, claude) = (codex::folder_in(machine, &home), claude::folder_in(machine, &home));
        Some(Self { home: home.path, codex, claude })
    }
}

/// The proxies that editors of this user are told to use, each with the file that says so.
#[must_use]
pub fn editor_proxies(machine: &Machine<'_>) -> Vec<(PathBuf, String)> {
    let homes = machine.homes().into_iter().filter(|home| home.side == Side::Here);
    homes.flat_map(|home| vscode::proxies(machine, &home)).collect()
}

#[cfg(test)]
mod tests;
