//! What a client leaves at home, to be compared between two runs.
//!
//! No two runs leave the same bytes: there are times, random names and counts. What is compared is which kinds of files
//! there are, with their modes; every byte of all files that no run changes, the person's settings and login among them;
//! and of the one file of settings that a client writes anew each time, all but numbers, times and random names.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::Result;
use serde_json::Value;

/// What a client writes anew in each run: what was said, its databases and logs, names that it gives itself.
const ANEW: [&str; 5] = [".jsonl", ".sqlite", ".lock", "installation_id", ".desktop"];
/// The file of settings that Claude Code keeps its counts in too, and its copies.
const COUNTS: &str = ".claude.json";

/// A home, less what differs from run to run.
#[derive(Debug, Default)]
pub(crate) struct Home {
    /// Where it is, which files may name.
    folder: String,
    /// The modes of each kind of file.
    kinds: BTreeMap<String, BTreeSet<u32>>,
    /// What stands in files that stay as they are.
    kept: BTreeMap<String, Vec<u8>>,
    /// The places in settings that are written anew, with what stands there if that is a word.
    set: BTreeSet<String>,
    /// The files that name a relay's session, which is in the address that it has for its client.
    naming_a_session: BTreeSet<String>,
}

impl Home {
    pub(crate) fn of(folder: &Path) -> Result<Self> {
        let mut home = Self { folder: folder.display().to_string(), ..Self::default() };
        let mut folders = vec![folder.to_path_buf()];
        while let Some(next) = folders.pop() {
            for entry in fs::read_dir(&next)? {
                let path = entry?.path();
                let name = path.strip_prefix(folder)?.display().to_string();
                home.takes_in(&path, &name)?;
                if path.is_dir() {
                    folders.push(path);
                }
            }
        }
        Ok(home)
    }

    fn takes_in(&mut self, path: &Path, name: &str) -> Result<()> {
        let kind = without_what_differs(name);
        let about = fs::symlink_metadata(path)?;
        let bytes = if about.is_file() { fs::read(path)? } else { Vec::new() };
        if names_a_session(&bytes) {
            self.naming_a_session.insert(kind.clone());
        }
        // The working files of a database last as long as somebody has it open.
        if name.ends_with("-wal") || name.ends_with("-shm") {
            return Ok(());
        }
        let mode = std::os::unix::fs::PermissionsExt::mode(&about.permissions());
        self.kinds.entry(kind.clone()).or_default().insert(mode);
        if !about.is_file() {
            return Ok(());
        }
        if name.ends_with(COUNTS) {
            collect(&serde_json::from_slice(&bytes)?, "", &mut self.set);
        } else if kind == name && !ANEW.iter().any(|end| name.ends_with(end)) {
            let kept = match String::from_utf8(bytes) {
                Ok(text) => text.replace(&self.folder, "~").into_bytes(),
                Err(no_text) => no_text.into_bytes(),
            };
            self.kept.insert(kind, kept);
        }
        Ok(())
    }

    /// What is otherwise here than there.
    pub(crate) fn differences(&self, there: &Self) -> Vec<String> {
        let mut differences = Vec::new();
        for name in self.kinds.keys().chain(there.kinds.keys()).collect::<BTreeSet<_>>() {
            let (here, there) = (self.kinds.get(name), there.kinds.get(name));
            if here != there {
                differences.push(format!("{name} has the modes {here:?}, there {there:?}"));
            }
        }
        for name in self.kept.keys().chain(there.kept.keys()).collect::<BTreeSet<_>>() {
            let text =
                |home: &Self| home.kept.get(name).map(|kept| String::from_utf8_lossy(kept).into_owned());
            if self.kept.get(name) != there.kept.get(name) {
                differences.push(format!("{name} is {:?}, there {:?}", text(self), text(there)));
            }
        }
        let set = self.set.symmetric_difference(&there.set);
        differences.extend(set.map(|place| format!("{COUNTS}{place} is in one of them")));
        differences
    }

    /// The files that name a relay's session.
    pub(crate) const fn naming_a_session(&self) -> &BTreeSet<String> {
        &self.naming_a_session
    }
}

/// All places in a value, with the words and truths that stand there.
fn collect(value: &Value, place: &str, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(all) => {
            for (key, value) in all {
                collect(value, &format!("{place}/{}", without_what_differs(key)), into);
            }
        }
        Value::Array(all) => {
            for value in all {
                collect(value, &format!("{place}/-"), into);
            }
        }
        Value::String(word) => drop(into.insert(format!("{place}: {}", without_what_differs(word)))),
        Value::Bool(truth) => drop(into.insert(format!("{place}: {truth}"))),
        Value::Null | Value::Number(_) => drop(into.insert(place.to_owned())),
    }
}

/// Whether `/~` stands there with a key behind it.
fn names_a_session(bytes: &[u8]) -> bool {
    let key = |rest: &[u8]| rest.len() >= 32 && rest[..32].iter().all(u8::is_ascii_hexdigit);
    bytes.windows(2).enumerate().any(|(at, window)| window == b"/~" && key(&bytes[at + 2..]))
}

/// A name without the parts that are dates, numbers, or belong to a random name.
fn without_what_differs(name: &str) -> String {
    name.split_inclusive(['/', '-', '.', '_', ':']).filter(|word| !differs(word)).collect()
}

fn differs(word: &str) -> bool {
    let word = word.trim_end_matches(['/', '-', '.', '_', ':']);
    let hexadecimal = word.len() >= 4 && word.chars().all(|c| c.is_ascii_hexdigit());
    hexadecimal || word.contains(|c: char| c.is_ascii_digit())
}
