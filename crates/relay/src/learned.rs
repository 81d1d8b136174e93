//! What lanes learned, kept over a restart in `lanes.json` of the state folder. Not the learning (that is
//! [`relay_core::gate`]), and never a credential: a lane is named by a hash whose key is in the same private file.
//!
//! Nothing depends on the file. One that is damaged is ignored, told of once, and replaced at the next save; where none
//! can be written the relay works from memory. Relays that share a folder keep what the others learned.
//!
//! ```text
//! {"v": 1, "salt": "64 hex digits", "lanes": {"16 hex digits": {"seen": seconds since 1970, "learned": {…}}}}
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use relay_core::gate::Learned;
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::clock::drawn;
use crate::private;
use crate::words::{lang, start};

const NAME: &str = "lanes.json";
/// The version of the format.
const VERSION: u32 = 1;
/// How many lanes are kept: those that learned last.
const LANES: usize = 256;
/// More than so many lanes take.
const LONGEST: u64 = 256 << 10;
/// Seconds after which what was learned tells nothing any more.
const STALE: u64 = 24 * 3600;
/// Seconds by which the clock of another may be ahead.
const AHEAD: u64 = 5 * 60;

type Salt = [u8; 32];
type Lanes = BTreeMap<String, Entry>;

/// The file, and what was learned by the lanes of all relays that share it.
pub struct LearnedFile {
    /// `None`: in memory alone.
    path: Option<PathBuf>,
    salt: Salt,
    key: hmac::Key,
    /// The lanes of this relay, as they were at the last save. Held while it saves.
    own: Mutex<Lanes>,
    known: Mutex<Lanes>,
}

/// The salt stays unsaid.
impl fmt::Debug for LearnedFile {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "LearnedFile at {:?} with {} lanes", self.path, lock(&self.known).len())
    }
}

/// What one lane learned.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Entry {
    /// When it last learned something, in seconds since 1970.
    seen: u64,
    learned: Learned,
}

/// What is in a file.
struct Kept {
    salt: Salt,
    lanes: Lanes,
}

/// What is found where the file should be.
enum Found {
    Nothing,
    Kept(Kept),
    /// A file that cannot be used, and why.
    Damaged(&'static str),
    /// What may not be replaced: a folder, or what the system keeps to itself.
    Closed(io::Error),
}

impl LearnedFile {
    /// Opens the file of this folder, or begins it. The notice says what of that failed: all the rest works.
    #[must_use]
    pub fn open(folder: Option<&Path>, wall: SystemTime) -> (Self, Option<String>) {
        let Some(folder) = folder else { return (Self::in_memory(), None) };
        let path = folder.join(NAME);
        let (kept, notice) = match Self::begin(folder, &path) {
            Ok(begun) => begun,
            Err(error) => {
                let why = format!("{}: {error}", path.display());
                return (Self::in_memory(), Some(forgets(&why)));
            }
        };
        let mut lanes = kept.lanes;
        tidy(&mut lanes, seconds(wall));
        (Self::with(Some(path), kept.salt, lanes), notice)
    }

    /// The name of a lane in the file and in logs: it tells nothing to whoever does not know the salt.
    #[must_use]
    pub fn id(&self, origin: &str, account: &[u8], model: Option<&str>) -> String {
        let mut hash = hmac::Context::with_key(&self.key);
        for part in [Some(origin.as_bytes()), Some(account), model.map(str::as_bytes)].into_iter().flatten() {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hex(hash.sign().as_ref().iter().take(8))
    }

    /// What this lane knew, where that is still worth something.
    #[must_use]
    pub fn recall(&self, id: &str, wall: SystemTime) -> Option<Learned> {
        let entry = *lock(&self.known).get(id)?;
        entry.is_fresh(seconds(wall)).then_some(entry.learned)
    }

    /// Takes in what these lanes learned that are about to go: it is recalled, and in the file after the next save.
    pub fn remember(&self, lanes: impl Iterator<Item = (String, Learned)>, wall: SystemTime) {
        let now = seconds(wall);
        // Those of the last save are not asked, as that may be waiting for the disk.
        let dated = self.dated(lanes, &Lanes::new(), now);
        let mut known = lock(&self.known);
        known.extend(dated);
        tidy(&mut known, now);
    }

    /// Saves what these lanes learned beside what other relays saved meanwhile: of one lane, what was learned last.
    /// Nothing is written where nothing was learned. It waits for the disk.
    ///
    /// # Errors
    /// Where the file cannot be written: the next save tries again.
    pub fn save(&self, lanes: impl Iterator<Item = (String, Learned)>, wall: SystemTime) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let now = seconds(wall);
        let mut own = lock(&self.own);
        *own = self.dated(lanes, &own, now);
        let on_disk = match look(path) {
            Found::Kept(kept) if kept.salt == self.salt => Some(kept.lanes),
            Found::Kept(_) | Found::Nothing | Found::Damaged(_) => None,
            Found::Closed(error) => return Err(error),
        };
        let mut known = lock(&self.known);
        for (id, theirs) in on_disk.iter().flatten() {
            if known.get(id).is_none_or(|entry| entry.seen < theirs.seen) {
                known.insert(id.clone(), *theirs);
            }
        }
        for (id, ours) in own.iter() {
            if known.get(id).is_none_or(|entry| entry.seen <= ours.seen) {
                known.insert(id.clone(), *ours);
            }
        }
        tidy(&mut known, now);
        let all = known.clone();
        drop(known);
        if on_disk.as_ref() == Some(&all) {
            return Ok(());
        }
        if let Some(folder) = path.parent() {
            private::folder(folder)?;
        }
        private::replace(path, text(&self.salt, &all)?.as_bytes())
    }

    /// These lanes with the time at which they learned what they know now.
    fn dated(&self, lanes: impl Iterator<Item = (String, Learned)>, before: &Lanes, now: u64) -> Lanes {
        let known = lock(&self.known);
        let lanes = lanes.map(|(id, learned)| (id, rounded(learned)));
        let lanes = lanes.filter(|(id, learned)| is_id(id) && learned.is_sound());
        let dated = lanes.map(|(id, learned)| {
            let same = before.get(&id).or_else(|| known.get(&id));
            let same = same.filter(|entry| entry.learned == learned && entry.seen <= now);
            (id, Entry { seen: same.map_or(now, |entry| entry.seen), learned })
        });
        dated.collect()
    }

    /// What is there, or a file with a new salt.
    fn begin(folder: &Path, path: &Path) -> io::Result<(Kept, Option<String>)> {
        match look(path) {
            Found::Kept(kept) => return Ok((kept, None)),
            Found::Closed(error) => return Err(error),
            Found::Damaged(why) => {
                let kept = Kept { salt: salt()?, lanes: Lanes::new() };
                let path = path.display();
                let notice = start::replaced(lang(), &path.to_string(), why);
                return Ok((kept, Some(notice)));
            }
            Found::Nothing => {}
        }
        let kept = Kept { salt: salt()?, lanes: Lanes::new() };
        private::folder(folder)?;
        private::put(path, text(&kept.salt, &kept.lanes)?.as_bytes())?;
        // Another relay may have been first: its salt holds.
        match look(path) {
            Found::Kept(theirs) => Ok((theirs, None)),
            Found::Nothing | Found::Damaged(_) | Found::Closed(_) => Ok((kept, None)),
        }
    }

    fn in_memory() -> Self {
        // Where the system gives none, what stays in memory needs no better chance than this.
        let drawn = || std::array::from_fn(|_| drawn().to_le_bytes()[0]);
        Self::with(None, salt().unwrap_or_else(|_none| drawn()), Lanes::new())
    }

    fn with(path: Option<PathBuf>, salt: Salt, lanes: Lanes) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &salt);
        Self { path, salt, key, own: Mutex::default(), known: Mutex::new(lanes) }
    }
}

impl Entry {
    fn is_fresh(&self, now: u64) -> bool {
        self.seen <= now.saturating_add(AHEAD) && now.saturating_sub(self.seen) <= STALE
    }
}

fn lock(lanes: &Mutex<Lanes>) -> MutexGuard<'_, Lanes> {
    lanes.lock().unwrap_or_else(PoisonError::into_inner)
}

fn forgets(why: &str) -> String {
    start::unkept(lang(), why)
}

/// Seconds since 1970. A clock before shows 1970.
fn seconds(wall: SystemTime) -> u64 {
    wall.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn salt() -> io::Result<Salt> {
    let mut salt = [0; 32];
    let filled = SystemRandom::new().fill(&mut salt);
    filled.map_err(|_none| io::Error::other("the system gives no random numbers"))?;
    Ok(salt)
}

fn hex<'a>(bytes: impl Iterator<Item = &'a u8>) -> String {
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

/// Reads what [`hex`] writes.
fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.bytes().map(|digit| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    });
    let digits: Vec<u8> = digits.collect::<Option<_>>()?;
    let bytes: Vec<u8> =
        digits.chunks(2).map(|pair| pair.iter().fold(0, |all, digit| all << 4 | digit)).collect();
    (digits.len() == 2 * N).then(|| bytes.try_into().ok())?
}

fn is_id(text: &str) -> bool {
    unhex::<8>(text).is_some()
}

/// As exact as it has to be, so that what is read equals what was written.
fn rounded(learned: Learned) -> Learned {
    let round = |number: f64| (number * 1e6).round() / 1e6;
    let Learned { recoveries, exposure, rate, growth, per_completion, after_completion, probes, ends } =
        learned;
    Learned {
        recoveries: round(recoveries),
        exposure: round(exposure),
        rate: rate.map(round),
        growth: round(growth),
        per_completion: round(per_completion),
        after_completion: after_completion.map(round),
        probes: probes.map(round),
        ends: ends.map(round),
    }
}

/// Drops what is stale, and then the oldest of what is too much.
fn tidy(lanes: &mut Lanes, now: u64) {
    lanes.retain(|_, entry| entry.is_fresh(now));
    let mut times: Vec<_> = lanes.iter().map(|(id, entry)| (entry.seen, id.clone())).collect();
    times.sort();
    for (_, id) in times.iter().take(lanes.len().saturating_sub(LANES)) {
        lanes.remove(id);
    }
}

fn look(path: &Path) -> Found {
    match private::read(path, LONGEST) {
        Ok(bytes) => parse(&bytes).map_or_else(Found::Damaged, Found::Kept),
        Err(error) if error.kind() == ErrorKind::NotFound => Found::Nothing,
        Err(error) if error.kind() == ErrorKind::FileTooLarge => Found::Damaged("it is too large"),
        Err(error) => Found::Closed(error),
    }
}

/// Reads a file: all of its lanes that are valid, or why none are.
fn parse(bytes: &[u8]) -> Result<Kept, &'static str> {
    #[derive(Deserialize)]
    struct Version {
        v: u32,
    }
    #[derive(Deserialize)]
    struct Content<'a> {
        salt: &'a str,
        #[serde(borrow)]
        lanes: BTreeMap<String, &'a RawValue>,
    }
    const DAMAGED: &str = "it is damaged";
    let Version { v } = serde_json::from_slice(bytes).map_err(|_what| DAMAGED)?;
    if v != VERSION {
        return Err("another version of the relay wrote it");
    }
    let Content { salt, lanes } = serde_json::from_slice(bytes).map_err(|_what| DAMAGED)?;
    let lanes = lanes.into_iter().filter_map(|(id, entry)| {
        let entry: Entry = serde_json::from_str(entry.get()).ok()?;
        (is_id(&id) && entry.learned.is_sound()).then_some((id, entry))
    });
    Ok(Kept { salt: unhex(salt).ok_or(DAMAGED)?, lanes: lanes.collect() })
}

fn text(salt: &Salt, lanes: &Lanes) -> io::Result<String> {
    #[derive(Serialize)]
    struct Content<'a> {
        v: u32,
        salt: String,
        lanes: &'a Lanes,
    }
    Ok(serde_json::to_string(&Content { v: VERSION, salt: hex(salt.iter()), lanes })? + "\n")
}

#[cfg(test)]
mod tests;
