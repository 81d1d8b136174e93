//! `undo`: what the journal says was written is taken back, key by key, as far as it still stands there. What somebody
//! changed since stays. It needs neither a relay nor its settings.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use relay_core::Lang;
use serde_json::Value;

use super::apply::{Notebook, NotebookError, put_text};
use super::clients::Client;
use super::diff::seen;
use super::disk::{Disk, clear};
use super::document::{Back, Document};
use super::journal::{Entry, Journal};
use super::machine::{Bad, Held, held};
use crate::words::setup as words;

/// What became of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// The value before is back, or the key is out.
    Restored,
    /// There was nothing of ours in it.
    Nothing,
    /// It stays: why.
    Left(String),
}

impl Fate {
    /// The word for it in JSON.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Restored => "restored",
            Self::Nothing => "nothing",
            Self::Left(_) => "left",
        }
    }
}

/// One key and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undone {
    /// For whom it was written.
    pub client: String,
    /// The file.
    pub file: PathBuf,
    /// The key, as one would say it.
    pub key: String,
    /// The value that is there afterwards, where it was restored; ready to be shown.
    pub value: Option<String>,
    /// What became of it.
    pub fate: Fate,
}

/// One file as it would be.
struct Restored {
    /// `None`: it goes.
    text: Option<String>,
    before: Option<String>,
    undone: Vec<Undone>,
    /// The entries that are done with.
    done: Vec<Entry>,
    folders: Vec<PathBuf>,
}

/// Takes back what was written for these clients, or for all where none is named. With `write` off it only says what
/// would be done.
///
/// # Errors
/// Where the journal cannot be read or written.
pub fn undo(
    lang: Lang,
    disk: &mut dyn Disk,
    notebook: &Notebook,
    only: &[Client],
    write: bool,
) -> Result<Vec<Undone>, NotebookError> {
    let mut journal = notebook.read(disk)?;
    let is_asked = |entry: &Entry| only.is_empty() || only.iter().any(|client| client.name() == entry.client);
    let mut files: Vec<PathBuf> =
        journal.entries.iter().filter(|entry| is_asked(entry)).map(|entry| entry.file.clone()).collect();
    // The last one first: a client leaves the relay before the relay forgets where that client went.
    files.reverse();
    let mut seen = Vec::new();
    files.retain(|file| {
        !seen.contains(file) && {
            seen.push(file.clone());
            true
        }
    });
    let mut undone = Vec::new();
    // Clients with a file that still sends them to the relay.
    let mut held: Vec<String> = Vec::new();
    for file in files {
        let of_file = journal.entries.iter().filter(|entry| entry.file == file && is_asked(entry)).cloned();
        let (waiting, entries): (Vec<Entry>, Vec<Entry>) = of_file.partition(|entry| waits(entry, &held));
        undone.extend(all_left(&waiting, &words::needs_the_other(lang)).undone);
        if entries.is_empty() {
            continue;
        }
        let others = journal.entries.iter().any(|entry| entry.file == file && !entries.contains(entry));
        let mut restored = restored(lang, disk, &file, &entries);
        if others {
            // A file with something for another client in it stays.
            restored.text = restored.text.or_else(|| restored.before.as_ref().map(|_| String::new()));
        }
        if write {
            match carry_out(disk, &file, &restored) {
                Ok(()) => forget(disk, notebook, &mut journal, &restored)?,
                Err(error) => {
                    let why = Bad::of(&error).said_of_writing(lang);
                    for key in &mut restored.undone {
                        key.fate = Fate::Left(why.clone());
                    }
                    held.extend(entries.iter().map(|entry| entry.client.clone()));
                }
            }
        }
        undone.extend(restored.undone);
    }
    Ok(undone)
}

/// Whether this key is of use to a client that could not be taken back: an upstream that it still goes to, and the
/// login without which Gemini CLI stops.
fn waits(entry: &Entry, held: &[String]) -> bool {
    let is_needed =
        entry.path.first().is_some_and(|key| key == "upstream") || entry.client == Client::Gemini.name();
    is_needed && held.contains(&entry.client)
}

/// The file without what was written. The key that was written last is taken back first.
fn restored(lang: Lang, disk: &mut dyn Disk, file: &Path, entries: &[Entry]) -> Restored {
    let before = match text(disk, file) {
        Ok(before) => before,
        Err(bad) => return all_left(entries, &bad.said(lang)),
    };
    let format = entries.first().map(|entry| entry.format);
    let read = format.map(|format| Document::read(format, before.as_deref().unwrap_or_default()));
    let mut document = match read {
        Some(Ok(document)) => document,
        Some(Err(flaw)) => return all_left(entries, &Bad::Flaw(flaw).said(lang)),
        None => return all_left(entries, ""),
    };
    let mut undone = Vec::new();
    let mut done = Vec::new();
    for entry in entries.iter().rev() {
        let fate = take_back(lang, &mut document, entry);
        // A key that somebody took out of a file has nothing of ours any more; that is told once. A file that is missing
        // may come back with the folder that it is in.
        let taken_out = before.is_some() && !document.has(&entry.path);
        if taken_out || !matches!(fate, Fate::Left(_)) {
            done.push(entry.clone());
        }
        undone.push(Undone {
            client: entry.client.clone(),
            file: file.to_owned(),
            key: entry.key(),
            value: entry.old.as_ref().map(seen),
            fate,
        });
    }
    let is_ours = entries.iter().any(|entry| entry.made_file) && done.len() == entries.len();
    let signs: String = document.text().split_whitespace().collect();
    let is_blank = matches!(signs.as_str(), "" | "{}");
    let folders = entries.iter().flat_map(|entry| entry.made_folders.clone()).collect();
    let text = before.is_some().then(|| document.text().to_owned()).filter(|_| !(is_ours && is_blank));
    Restored { text, before, undone, done, folders }
}

fn text(disk: &mut dyn Disk, file: &Path) -> Result<Option<String>, Bad> {
    match disk.read(file) {
        Ok(bytes) => match held(&bytes) {
            Held::Text(text) => Ok(Some(text)),
            Held::Nothing => Ok(None),
            Held::Bad(bad) => Err(bad),
        },
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(Bad::of(&error)),
    }
}

fn all_left(entries: &[Entry], why: &str) -> Restored {
    let undone = entries.iter().map(|entry| Undone {
        client: entry.client.clone(),
        file: entry.file.clone(),
        key: entry.key(),
        value: None,
        fate: Fate::Left(why.to_owned()),
    });
    let undone = undone.collect();
    Restored { text: None, before: None, undone, done: Vec::new(), folders: Vec::new() }
}

fn take_back(lang: Lang, document: &mut Document, entry: &Entry) -> Fate {
    let now = match document.get(&entry.path) {
        Ok(now) => now.cloned(),
        Err(flaw) => return Fate::Left(Bad::Flaw(flaw).said(lang)),
    };
    let is_there = document.has(&entry.path);
    if now == entry.old && now.is_some() == is_there {
        return Fate::Nothing;
    }
    let Some(now) = now.filter(|now| entry.ours.contains(now)) else {
        return match is_there {
            true => Fate::Left(words::changed_since(lang, &said(entry.old.as_ref(), lang))),
            false => Fate::Left(words::removed_since(lang, &said(entry.old.as_ref(), lang))),
        };
    };
    let back = Back {
        path: &entry.path,
        old: entry.old.as_ref(),
        raw: &entry.raw,
        splice: &entry.splice,
        comment: &entry.comment,
    };
    match document.put_back(&back) {
        Ok(after) => {
            *document = after;
            Fate::Restored
        }
        Err(_) => {
            let now = said(Some(&now), lang);
            Fate::Left(words::cannot_take_back(lang, &now, &said(entry.old.as_ref(), lang)))
        }
    }
}

fn said(value: Option<&Value>, lang: Lang) -> String {
    value.map_or_else(|| words::not_set(lang), seen)
}

fn carry_out(disk: &mut dyn Disk, file: &Path, restored: &Restored) -> std::io::Result<()> {
    clear(disk, file);
    if restored.text == restored.before && restored.text.is_some() {
        return Ok(());
    }
    match (&restored.text, &restored.before) {
        (Some(text), _) => {
            let target = disk.target(file)?;
            put_text(disk, &target, text)
        }
        (None, before) => {
            if before.is_some() {
                let target = disk.target(file)?;
                disk.remove(&target)?;
            }
            for folder in restored.folders.iter().rev() {
                // One that is in use stays.
                let _in_use = disk.remove_folder(folder);
            }
            Ok(())
        }
    }
}

fn forget(
    disk: &mut dyn Disk,
    notebook: &Notebook,
    journal: &mut Journal,
    restored: &Restored,
) -> Result<(), NotebookError> {
    if restored.done.is_empty() {
        return Ok(());
    }
    journal.entries.retain(|entry| !restored.done.contains(entry));
    notebook.write(disk, journal)
}
