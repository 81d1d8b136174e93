//! What was found out, as plain values. Nothing here holds a credential.

use std::net::IpAddr;

use serde_json::Value;

use crate::credentials::Flaw;
use crate::installed::Way;
use crate::listen::Holder;
use crate::service::act::Status;
use crate::setup::{Bad, Told};

/// All of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// The relay's own settings.
    pub settings: Settings,
    /// How this program came here.
    pub installed: Way,
    /// What brings a newer one.
    pub update: Option<&'static str>,
    /// Where the relay listens, or would.
    pub at: String,
    /// What is there.
    pub here: Here,
    /// The memory of the relay that runs, in MiB, where the system tells.
    pub memory: Option<u64>,
    /// The upstreams that were asked.
    pub upstreams: Vec<Asked>,
    /// How many were not asked, since there are too many.
    pub more_upstreams: usize,
    /// A proxy that is the relay itself.
    pub own_proxy: Option<String>,
    /// The variable that names a proxy for plain requests, where `NO_PROXY` does not leave this machine out.
    pub catching: Option<String>,
    /// Files of certificates that are named and cannot be used: who names them, and what is wrong.
    pub certificates: Vec<(String, String)>,
    /// How many credentials of the relay's own there are.
    pub credentials: usize,
    /// What is wrong with where they are held.
    pub flaws: Vec<Flaw>,
    /// What clients were told.
    pub clients: Clients,
    /// The settings have the relay speak https, too.
    pub has_tls: bool,
    /// The service of this user.
    pub service: Service,
    /// The managed plan of the ChatGPT account that Codex is signed in with.
    pub plan: Option<&'static str>,
    /// The settings keep a workspace's routing.
    pub is_routed: bool,
    /// Clients that were found, with their versions.
    pub versions: Vec<ClientVersion>,
    /// Clients that are there and did not tell theirs.
    pub silent_clients: Vec<&'static str>,
    /// What `localhost` is.
    pub localhost: Vec<IpAddr>,
    /// Files that others may read or change who should not; `None` where files have no modes.
    pub open_files: Option<Vec<OpenFile>>,
    /// Env files with a mark or a coding that many programs do not read.
    pub odd_env_files: Vec<String>,
    /// The file of the history.
    pub history: History,
    /// What alerts go by.
    pub alerts: Alerts,
    /// The network of the Linux in Windows that we are in.
    pub wsl: Option<Wsl>,
}

/// The file of the history.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum History {
    /// The settings, or this program, have none.
    #[default]
    Off,
    /// There is no folder for it.
    Nowhere,
    /// It is to be there, and nothing is in the way.
    Expected,
    /// It is there, and so large, in bytes.
    There(u64),
    /// It cannot be read or written: what is in the way.
    Bad(String),
}

/// What alerts go by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Alerts {
    /// So many ways are set, beside the log.
    pub ways: usize,
    /// The program of `alerts.command` that is not found.
    pub missing: Option<String>,
}

/// The relay's own settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// The configuration file, if there is one.
    pub file: Option<String>,
    /// What is wrong, and how to mend it.
    pub errors: Vec<(String, String)>,
    /// What should be known.
    pub notes: Vec<String>,
}

/// What is at the relay's address.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Here {
    /// Nothing, and the port is free.
    #[default]
    Free,
    /// A relay, and its status page.
    Relay(Value),
    /// A relay whose token the settings do not have.
    Locked,
    /// Another program.
    Taken(Option<Holder>),
    /// Somebody holds the port, and no relay answers: a service manager, or another program.
    Held(Option<Holder>),
}

/// The relay as a service of this user.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Service {
    /// None is installed.
    #[default]
    Absent,
    /// It is installed.
    Installed(Status),
    /// Its files are not what `service install` writes: what it says about them.
    Odd(String),
    /// Nobody can tell: why.
    Unknown(String),
}

/// A file of the relay's that others have rights to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenFile {
    /// The file.
    pub file: String,
    /// Its mode.
    pub mode: u32,
    /// It holds what may be secret.
    pub is_secret: bool,
}

/// What clients were told.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Clients {
    /// Every address.
    pub settings: Vec<ClientSetting>,
    /// The files that cannot be read.
    pub unreadable: Vec<Unreadable>,
    /// The proxy that VS Code, or an editor made from it, was told to use.
    pub vscode_proxy: Option<VsCodeProxy>,
}

/// One address that a client was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientSetting {
    /// The client.
    pub client: String,
    /// The file, or what else says so.
    pub place: String,
    /// The address, and where it leads.
    pub told: Told,
}

/// A file of a client that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// The client.
    pub client: String,
    /// The file.
    pub file: String,
    /// Why.
    pub bad: Bad,
}

/// An upstream that was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Its name in the settings.
    pub name: String,
    /// Scheme, host and port.
    pub origin: String,
    /// What was asked for.
    pub path: String,
    /// The proxy on the way.
    pub via: Option<String>,
    /// Somebody uses it, as far as can be told.
    pub is_used: bool,
    /// What came of it; of several ways, by the first that leads there.
    pub answer: Result<Answered, Unreached>,
    /// Other ways of the settings that do not lead there: the proxy of each, and why.
    pub lost: Vec<(Option<String>, Unreached)>,
}

/// What an upstream answered to a request without a credential.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answered {
    /// The status.
    pub status: u16,
    /// It is a web page.
    pub is_page: bool,
    /// An edge in front of it asks for a browser check.
    pub is_challenge: bool,
    /// How many seconds this machine's clock is ahead.
    pub ahead: Option<i64>,
    /// The status of `/health`, where it was asked for.
    pub health: Option<u16>,
}

/// Why an upstream was not reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreached {
    /// What failed.
    pub step: Step,
    /// What the system said.
    pub detail: String,
}

/// What can fail on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Looking up the name.
    Dns,
    /// Connecting.
    Connect,
    /// Agreeing on TLS.
    Tls,
    /// Its certificate is not trusted.
    Certificate,
    /// The proxy.
    Proxy,
    /// It gave no answer.
    Answer,
    /// It is the relay itself.
    Itself,
}

/// The proxy that VS Code was told to use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VsCodeProxy {
    /// Its address.
    pub proxy: String,
    /// The file that says so.
    pub file: String,
    /// It is the relay.
    pub is_relay: bool,
}

/// A client on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientVersion {
    /// Its name.
    pub client: &'static str,
    /// Its version.
    pub found: [u32; 3],
    /// The version that was measured.
    pub measured: [u32; 3],
}

/// How the Linux in Windows is joined to its network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wsl {
    /// It has a network of its own behind the one of Windows.
    Nat,
    /// It shares that of Windows.
    Mirrored,
    /// In another way, or nobody tells.
    Unknown,
}
