//! The journal: what `setup` wrote, key by key, with what was there before. `undo` needs nothing else.
//!
//! An entry is on disk before the first byte of a client's file changes, and leaves after the last one is back. So
//! wherever a program is stopped, the journal knows at least what was written, and at most what was about to be.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::address::authority;
use super::clients::Client;
use super::document::{Format, Splice};

/// The file, in the state folder.
pub(super) const NAME: &str = "setup.json";
/// The version that is written, and the only one that is read.
const VERSION: u32 = 1;
/// More entries than a machine has clients.
const MOST: usize = 1000;
/// So many values of ours are known of one key: each port that was ever written.
const MOST_OURS: usize = 8;

/// All that is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Journal {
    v: u32,
    pub(super) entries: Vec<Entry>,
}

/// One key of one file.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// For whom it was written.
    pub(super) client: String,
    pub(super) file: PathBuf,
    pub(super) format: Format,
    pub(super) path: Vec<String>,
    /// The value before; `None`: the key was not there.
    pub(super) old: Option<Value>,
    /// The text of that value.
    pub(super) raw: String,
    /// The values that were written, the last one last.
    pub(super) ours: Vec<Value>,
    pub(super) splice: Splice,
    /// The line above it.
    pub(super) comment: String,
    /// Whether the file is ours.
    pub(super) made_file: bool,
    /// The folders that were made for it, the outermost first.
    pub(super) made_folders: Vec<PathBuf>,
}

/// Without the values, which may be secrets.
impl fmt::Debug for Entry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = out.debug_struct("Entry");
        out.field("client", &self.client).field("file", &self.file).field("path", &self.path);
        out.finish_non_exhaustive()
    }
}

impl Entry {
    pub(super) fn is_of(&self, file: &Path, path: &[String]) -> bool {
        self.file == file && self.path == path
    }

    /// One more value of ours.
    pub(super) fn also(mut self, value: Value) -> Self {
        self.ours.retain(|known| *known != value);
        self.ours.push(value);
        let many = self.ours.len().saturating_sub(MOST_OURS);
        self.ours.drain(..many);
        self
    }

    /// The key, as one would say it.
    pub(super) fn key(&self) -> String {
        self.path.join(".")
    }
}

/// Why the journal cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unusable {
    /// It is not what this program writes.
    Broken,
    /// A newer program wrote it.
    Newer,
    /// It is full.
    Full,
}

impl Default for Journal {
    fn default() -> Self {
        Self { v: VERSION, entries: Vec::new() }
    }
}

impl Journal {
    /// Reads it. No bytes: nothing is written yet.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, Unusable> {
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        let value: Value = serde_json::from_slice(bytes).map_err(|_not_ours| Unusable::Broken)?;
        match value.get("v").and_then(Value::as_u64) {
            Some(version) if version == u64::from(VERSION) => {}
            Some(version) if version > u64::from(VERSION) => return Err(Unusable::Newer),
            Some(_) | None => return Err(Unusable::Broken),
        }
        let mut journal: Self = serde_json::from_value(value).map_err(|_not_ours| Unusable::Broken)?;
        // A key that said `null` and one that was not there are written alike, but for the text.
        for entry in &mut journal.entries {
            if entry.old.is_none() && !entry.raw.is_empty() {
                entry.old = Some(Value::Null);
            }
        }
        Ok(journal)
    }

    /// Its bytes.
    pub(super) fn bytes(&self) -> Result<Vec<u8>, Unusable> {
        if self.entries.len() > MOST {
            return Err(Unusable::Full);
        }
        let mut bytes = serde_json::to_vec_pretty(self).map_err(|_not_a_text| Unusable::Broken)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    pub(super) fn entry(&self, file: &Path, path: &[String]) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.is_of(file, path))
    }

    /// Puts these in, each in place of the one of the same key.
    pub(super) fn put(&mut self, fresh: &[Entry]) {
        for entry in fresh {
            match self.entries.iter_mut().find(|known| known.is_of(&entry.file, &entry.path)) {
                Some(known) => *known = entry.clone(),
                None => self.entries.push(entry.clone()),
            }
        }
    }

    /// The files that were written for a client.
    pub(super) fn files_of(&self, client: Client) -> Vec<PathBuf> {
        let entries = self.entries.iter().filter(|entry| entry.client == client.name());
        entries.map(|entry| entry.file.clone()).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The ports at which clients were told that the relay is.
    pub(super) fn ports(&self) -> BTreeSet<u16> {
        let ours = self
            .entries
            .iter()
            .filter(|entry| entry.client != "relay" && entry.path.last().is_none_or(|key| key != "url"));
        let texts = ours.flat_map(|entry| entry.ours.iter().filter_map(Value::as_str));
        texts.filter_map(authority).map(|url| url.port()).collect()
    }
}
