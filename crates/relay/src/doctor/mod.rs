//! `steady-relay doctor`: looks at everything between the clients and the services that can be wrong without anybody
//! saying so, and names one remedy for each trouble.
//!
//! ```text
//!  gather (reads, asks; side by side, within a time limit) --> Facts --> judge (pure) --> findings --> report
//! ```
//! Nothing is changed, and no credential is sent, printed or kept. `docs/doctor.md` lists the checks.

pub mod facts;
pub mod gather;
pub mod judge;
pub mod report;

use clap::Args;

/// What the doctor is told.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
pub struct Options {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// How it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Something does not work.
    Fail,
    /// Something may not work, or not for everybody.
    Warn,
    /// All is well.
    Ok,
    /// It could not be looked at.
    Skip,
}

impl Level {
    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Warn => "warn",
            Self::Ok => "ok",
            Self::Skip => "skip",
        }
    }
}

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// The settings can be read.
    Settings,
    /// The port is the relay's, or free.
    Port,
    /// How this program came here, and how a newer one would.
    Program,
    /// The relay that runs is of the version of this program.
    Version,
    /// Calls that fail are saved.
    Failures,
    /// No call hangs.
    Hanging,
    /// Nothing was sent that may have run already.
    Duplicates,
    /// The relay's memory is within bounds.
    Memory,
    /// Upstreams can be reached: name, connection, TLS, through the proxy that is used.
    Upstream,
    /// They answer where the relay will ask.
    Path,
    /// This machine's clock agrees with theirs.
    Clock,
    /// No proxy on the way is the relay itself.
    Proxy,
    /// The files of certificates that are named are there.
    Certificates,
    /// Credentials of the relay's own can be had.
    Credentials,
    /// The service that starts the relay works.
    Service,
    /// Clients point where something answers.
    ClientAddress,
    /// Clients do not ask a proxy for this machine.
    ClientProxy,
    /// VS Code uses no proxy for it, either.
    VsCodeProxy,
    /// A workspace of ChatGPT keeps its routing.
    Workspace,
    /// Clients are of a version that was measured.
    ClientVersion,
    /// `localhost` is where the relay listens.
    Localhost,
    /// Files with secrets are their owner's alone.
    FileModes,
    /// Env files are of a form that all programs read.
    EnvFile,
    /// The history can be written and read.
    History,
    /// Alerts have a way out.
    Alerts,
    /// Windows and the Linux in it reach each other.
    Wsl,
}

impl Check {
    /// Every one, in the order of the report.
    pub const ALL: [Self; 26] = [
        Self::Settings,
        Self::Port,
        Self::Program,
        Self::Version,
        Self::Failures,
        Self::Hanging,
        Self::Duplicates,
        Self::Memory,
        Self::Upstream,
        Self::Path,
        Self::Clock,
        Self::Proxy,
        Self::Certificates,
        Self::Credentials,
        Self::Service,
        Self::ClientAddress,
        Self::ClientProxy,
        Self::VsCodeProxy,
        Self::Workspace,
        Self::ClientVersion,
        Self::Localhost,
        Self::FileModes,
        Self::EnvFile,
        Self::History,
        Self::Alerts,
        Self::Wsl,
    ];

    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Settings => "settings",
            Self::Port => "port",
            Self::Program => "program",
            Self::Version => "version",
            Self::Failures => "failures",
            Self::Hanging => "hanging",
            Self::Duplicates => "duplicates",
            Self::Memory => "memory",
            Self::Upstream => "upstream",
            Self::Path => "path",
            Self::Clock => "clock",
            Self::Proxy => "proxy",
            Self::Certificates => "certificates",
            Self::Credentials => "credentials",
            Self::Service => "service",
            Self::ClientAddress => "client-address",
            Self::ClientProxy => "client-proxy",
            Self::VsCodeProxy => "vscode-proxy",
            Self::Workspace => "workspace",
            Self::ClientVersion => "client-version",
            Self::Localhost => "localhost",
            Self::FileModes => "file-modes",
            Self::EnvFile => "env-file",
            Self::History => "history",
            Self::Alerts => "alerts",
            Self::Wsl => "wsl",
        }
    }
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// By this check.
    pub check: Check,
    /// How it is.
    pub level: Level,
    /// What it is.
    pub what: String,
    /// What to do about it.
    pub remedy: Option<String>,
}

impl Finding {
    /// A finding whose words are what it is and, on the next line, what to do about it.
    #[must_use]
    pub fn new(check: Check, level: Level, words: &str) -> Self {
        let (what, remedy) = match words.split_once('\n') {
            Some((what, remedy)) => (what, Some(remedy.to_owned())),
            None => (words, None),
        };
        Self { check, level, what: what.to_owned(), remedy }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_page_lists_every_check() {
        const PAGE: &str = include_str!("../../../../docs/doctor.md");
        let (_, section) = PAGE.split_once("\n## The checks\n").unwrap();
        let section = section.split("\n## ").next().unwrap();
        let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
        let listed: Vec<_> = rows.map(|(name, _)| name).collect();
        assert_eq!(listed, Check::ALL.map(Check::name));
        assert_eq!(BTreeSet::from(Check::ALL).len(), Check::ALL.len());
    }
}
