//! The folder of snapshots: a file for each, which only their owner can read, and no more of them than there may be.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use relay_core::config::SnapshotSettings;
use relay_core::plain::is_unfit;
use relay_core::redact::in_one_line;

use super::file::{Snapshot, VERSION};
use crate::history::Name;
use crate::private;
use crate::words::{lang, snapshots as words};

/// How the files end.
const ENDING: &str = ".json";
/// The longest file that is read; more than one may hold.
const LONGEST: u64 = 128 << 20;

/// Writes one, and removes what is too old then.
///
/// # Errors
/// Where it cannot be written.
pub fn write(folder: &Path, snapshot: &Snapshot, settings: &SnapshotSettings) -> io::Result<()> {
    private::folder(folder)?;
    let path = folder.join(format!("{}{ENDING}", snapshot.id));
    let text = snapshot.text().map_err(io::Error::other)?;
    private::replace(&path, text.as_bytes())?;
    prune(folder, settings)
}

/// Removes the oldest until there are few enough, and they are small enough.
fn prune(folder: &Path, settings: &SnapshotSettings) -> io::Result<()> {
    let mut sum = 0;
    for (nth, (path, size)) in files(folder)?.into_iter().rev().enumerate() {
        sum += size;
        // The newest stays, however long it is.
        let is_one_too_many = nth >= settings.max_count as usize || sum > settings.max_total;
        if nth > 0 && is_one_too_many {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
    }
    Ok(())
}

/// The files of the folder with their sizes, the oldest first. What else lies there is left alone.
fn files(folder: &Path) -> io::Result<Vec<(PathBuf, u64)>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let is_ours = name.to_str().and_then(|name| name.strip_suffix(ENDING)).is_some_and(is_id);
        if let (true, Ok(about)) = (is_ours, entry.metadata())
            && about.is_file()
        {
            found.push((entry.path(), about.len()));
        }
    }
    found.sort();
    Ok(found)
}

/// Whether this can be the name of one: nothing that leads elsewhere.
fn is_id(id: &str) -> bool {
    let digits = |part: &str, most: usize| {
        !part.is_empty() && part.len() <= most && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    match id.split('-').collect::<Vec<_>>().as_slice() {
        [day, time, call] => {
            digits(day, 12) && digits(time, 9) && call.strip_prefix('c').is_some_and(|call| digits(call, 20))
        }
        _ => false,
    }
}

/// The most letters of what is wrong with one.
const SAID: usize = 200;

/// Why a snapshot cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Unread {
    /// There is none of this name.
    #[error("{}", words::none_of_this_name(lang(), .0))]
    None(String),
    /// There is none at all.
    #[error("{}", words::none(lang(), &.0.display().to_string()))]
    Empty(PathBuf),
    /// It is of a newer program.
    #[error("{}", words::newer(lang(), &.0.display().to_string()))]
    Newer(PathBuf),
    /// The file is not what it should be, or cannot be read.
    #[error("{}", words::unreadable(lang(), &.0.display().to_string(), .1))]
    Bad(PathBuf, String),
}

/// All of them that can be read, the newest first, and what is wrong with the others.
///
/// # Errors
/// Where the folder cannot be read.
pub fn list(folder: &Path) -> Result<(Vec<Snapshot>, Vec<Unread>), Unread> {
    let files = files(folder).map_err(|error| Unread::Bad(folder.to_owned(), error.to_string()))?;
    let mut bad = Vec::new();
    let mut all = Vec::new();
    for (path, _) in files.into_iter().rev() {
        match read(&path) {
            Ok(snapshot) => all.push(snapshot),
            Err(why) => bad.push(why),
        }
    }
    Ok((all, bad))
}

/// The one of this name, or the newest of a call of this name.
///
/// # Errors
/// Where there is none that can be read.
pub fn named(folder: &Path, id: &str) -> Result<Snapshot, Unread> {
    let files = files(folder).map_err(|error| Unread::Bad(folder.to_owned(), error.to_string()))?;
    let name = Name::of(id);
    if name == Name::Last {
        let newest = files.last().ok_or_else(|| Unread::Empty(folder.to_owned()))?;
        return read(&newest.0);
    }
    let id = id.trim();
    let id = id.strip_suffix(ENDING).unwrap_or(id);
    let path = folder.join(format!("{id}{ENDING}"));
    if is_id(id) && path.is_file() {
        return read(&path);
    }
    let found = files.iter().rev().filter_map(|(path, _)| read(path).ok());
    let is_asked = |snapshot: &Snapshot| !is_id(id) && name.fits(&snapshot.record);
    found
        .into_iter()
        .find(is_asked)
        .ok_or_else(|| Unread::None(id.chars().filter(|c| !is_unfit(*c)).take(64).collect()))
}

fn read(path: &Path) -> Result<Snapshot, Unread> {
    // It may quote the file.
    let bad = |why: String| Unread::Bad(path.to_owned(), in_one_line(&why, SAID));
    let bytes = private::read(path, LONGEST).map_err(|error| bad(error.to_string()))?;
    let value: serde_json::Value = serde_json::from_slice(&bytes).map_err(|error| bad(error.to_string()))?;
    if value["v"].as_u64().is_some_and(|v| v > u64::from(VERSION)) {
        return Err(Unread::Newer(path.to_owned()));
    }
    serde_json::from_value(value).map_err(|error| bad(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leads_out_of_the_folder() {
        for id in ["20261130-114500123-c12", "20261130-000000000-c18446744073709551615"] {
            assert!(is_id(id), "{id}");
        }
        for id in
            ["", "..", "../20261130-114500123-c12", "20261130-114500123-c", "a-b-c1", "1-2-c3/x", "1-2-3-c4"]
        {
            assert!(!is_id(id), "{id}");
        }
    }
}
