//! `steady-relay setup` and `undo`: pointing clients at the relay for good, by their own settings files, and taking that
//! back.
//!
//! ```text
//!  Machine --> clients --> findings --> plan (pure) --> diff, consent --> journal --> files
//!                             '--> survey                                     |
//!                                                            undo <-----------'
//! ```
//!
//! What decides sees a [`Machine`] that is handed in, and texts; only [`here`] and [`RealDisk`] touch the real one.

mod address;
mod apply;
mod clients;
mod diff;
mod disk;
pub(crate) mod document;
pub mod here;
mod journal;
mod machine;
mod plan;
mod survey;
mod undo;

use std::path::PathBuf;

use clap::Args;
use relay_core::Lang;

pub use address::{RelayAt, shown};
pub use apply::{Notebook, NotebookError};
pub use clients::{Client, Folders, editor_proxies};
pub use disk::{Disk, RealDisk, lock_file};
pub use document::Flaw;
pub use journal::Unusable;
pub use machine::{Bad, Machine, Side, System};
pub use plan::{Plan, Wish};
pub use survey::{ClientState, Standing, Told, survey, told};
pub use undo::{Fate, Undone, undo};

use self::journal::Journal;
use crate::cli::suggested::{CLIENTS, UNDONE};
use crate::words::setup as words;

/// What `setup` is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Options {
    /// The clients: codex, claude, vscode, opencode, gemini, continue, cline, or `env-file PATH`
    ///
    /// Where none is named, every client that is found.
    #[arg(value_name = "CLIENT", value_parser = CLIENTS, hide_possible_values = true)]
    pub clients: Vec<String>,
    /// Say which clients point to the relay, and write nothing.
    #[arg(long, conflicts_with_all = ["yes", "dry_run", "clients"])]
    pub status: bool,
    /// Show what would be written, and write nothing.
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
    /// Write without asking.
    #[arg(long, short)]
    pub yes: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// What `undo` is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct UndoOptions {
    /// The clients, as for `setup`; `relay` for what was written into the relay's own settings
    ///
    /// Where none is named, everything that was written.
    #[arg(value_name = "CLIENT", value_parser = UNDONE, hide_possible_values = true)]
    pub clients: Vec<String>,
    /// Say what would be taken back, and write nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// The clients and env files that the words of a command line name.
///
/// # Errors
/// With a message, where one is none.
pub fn asked(lang: Lang, named: &[String]) -> Result<(Vec<Client>, Vec<PathBuf>), String> {
    let (mut clients, mut env_files) = (Vec::new(), Vec::new());
    let mut named = named.iter();
    while let Some(name) = named.next() {
        match Client::of(name) {
            Some(Client::EnvFile) => match named.next() {
                Some(path) => env_files.push(PathBuf::from(path)),
                None => return Err(words::env_file_without_path(lang)),
            },
            Some(Client::Relay) | None => {
                let known: Vec<&str> = Client::ALL.iter().map(|client| client.name()).collect();
                return Err(words::unknown_client(lang, name, &known.join(", ")));
            }
            Some(client) => clients.push(client),
        }
    }
    Ok((clients, env_files))
}

/// Decides what is to be written, and writes nothing.
///
/// # Errors
/// Where the journal cannot be read: what was written before would be taken for the user's own.
pub fn prepare(
    lang: Lang,
    machine: &Machine<'_>,
    relay: &RelayAt,
    (disk, notebook): (&mut dyn Disk, &Notebook),
    wish: &Wish,
) -> Result<Plan, NotebookError> {
    let journal = notebook.read(disk)?;
    Ok(plan::plan(lang, machine, &known_at(relay, &journal), &journal, wish))
}

/// Writes what was decided. The files that could not be written are told, and why.
///
/// # Errors
/// Where the journal cannot be written: then no client's file is touched any more.
pub fn carry_out(
    lang: Lang,
    disk: &mut dyn Disk,
    notebook: &Notebook,
    plan: &Plan,
) -> Result<Vec<(PathBuf, String)>, NotebookError> {
    apply::apply(lang, disk, notebook, plan)
}

/// Every client as it stands, and every env file that was written, for the relay that the journal knows.
///
/// # Errors
/// Where the journal cannot be read: a client at a port that the relay had before would be taken for one elsewhere.
pub fn standings(
    lang: Lang,
    machine: &Machine<'_>,
    relay: &RelayAt,
    (disk, notebook): (&mut dyn Disk, &Notebook),
) -> Result<Vec<ClientState>, NotebookError> {
    let journal = notebook.read(disk)?;
    Ok(survey::survey(lang, machine, &known_at(relay, &journal), &journal.files_of(Client::EnvFile)))
}

/// The relay with the ports at which clients were told that it is.
fn known_at(relay: &RelayAt, journal: &Journal) -> RelayAt {
    let mut relay = relay.clone();
    relay.earlier.extend(journal.ports());
    relay
}

#[cfg(test)]
mod tests;
