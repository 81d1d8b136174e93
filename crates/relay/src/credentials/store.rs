//! Tokens that were issued, kept over a restart in `credentials/NAME.json` of the state folder: private, replaced whole, and
//! shared by all relays of a folder, of which one at a time has the lock.
//!
//! ```text
//! {"v": 1, "source": "64 hex digits", "access_token": "…", "expires": seconds since 1970, "refresh_token": "…"}
//! ```
//!
//! `source` tells by a hash what the settings said when it was issued: where they say something else now, the file is of no
//! more use. One that is damaged is put aside.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use relay_core::config::Secret;
use serde::{Deserialize, Serialize};

use super::{Kind, Trouble};
use crate::private;
use crate::words::{credentials as words, lang};

/// The version of the format.
const VERSION: u32 = 1;
/// More than two tokens take.
const LONGEST: u64 = 64 << 10;
/// How long another relay may have the lock: longer than a renewal takes.
const LOCKED_FOR: Duration = Duration::from_secs(45);
/// How often it is tried.
const TRIED_EVERY: Duration = Duration::from_millis(50);

/// Where the tokens of one credential are kept.
pub(super) struct Store {
    path: Arc<PathBuf>,
    /// What was last issued here, and whether it could be written.
    last: Mutex<Option<(Kept, bool)>>,
}

/// What was issued.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Kept {
    v: u32,
    pub(super) source: String,
    pub(super) access_token: String,
    /// In seconds since 1970.
    pub(super) expires: Option<u64>,
    pub(super) refresh_token: Option<String>,
}

impl Kept {
    pub(super) fn new(source: String, access: &Secret) -> Self {
        Self {
            v: VERSION,
            source,
            access_token: access.expose().to_owned(),
            expires: None,
            refresh_token: None,
        }
    }
}

/// While it is held, no other relay renews this credential.
pub(super) struct Lock(Option<File>);

/// What was found where tokens are kept.
#[derive(Default)]
pub(super) struct Found {
    pub(super) kept: Option<Kept>,
    /// What a person should know about it.
    pub(super) advice: Option<String>,
}

impl Store {
    /// In this folder.
    pub(super) fn of(folder: &Path, name: &str) -> Self {
        Self { path: Arc::new(folder.join(format!("{name}.json"))), last: Mutex::default() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until no other relay has the lock. Where there can be none, it goes on without.
    pub(super) async fn lock(&self) -> Result<Lock, Trouble> {
        let path = self.path.with_extension("lock");
        let opened = {
            let path = path.clone();
            tokio::task::spawn_blocking(move || open_lock(&path)).await
        };
        let Ok(Ok(file)) = opened else { return Ok(Lock(None)) };
        let tries = LOCKED_FOR.as_millis() / TRIED_EVERY.as_millis();
        for _ in 0..tries {
            match file.try_lock() {
                Ok(()) => return Ok(Lock(Some(file))),
                Err(TryLockError::WouldBlock) => tokio::time::sleep(TRIED_EVERY).await,
                Err(TryLockError::Error(_)) => return Ok(Lock(None)),
            }
        }
        let why = words::locked(lang(), &path.display().to_string(), LOCKED_FOR.as_secs());
        Err(Trouble { why, kind: Kind::Passing(None) })
    }

    /// What is kept of this source: in the file, where another relay may have put something newer, else what was last
    /// issued here.
    pub(super) async fn read(&self, source: &str) -> Found {
        let path = Arc::clone(&self.path);
        let mut found = tokio::task::spawn_blocking(move || read(&path)).await.unwrap_or_default();
        found.kept = found.kept.filter(|kept| kept.source == source);
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((last, is_written)) = last.filter(|(last, _)| last.source == source)
            && (!is_written || found.kept.is_none())
        {
            found.kept = Some(last);
        }
        found
    }

    /// Keeps this instead.
    ///
    /// # Errors
    /// Where it cannot be written: until the relay ends it is kept all the same.
    pub(super) async fn write(&self, kept: Kept) -> io::Result<()> {
        let path = Arc::clone(&self.path);
        let text = serde_json::to_string(&kept)? + "\n";
        let written = tokio::task::spawn_blocking(move || write(&path, text.as_bytes())).await;
        let written = written.unwrap_or_else(|_broke_off| Err(io::Error::other("it broke off")));
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((kept, written.is_ok()));
        written
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing it would do the same a little later.
        let _unlocked = self.0.as_ref().map(File::unlock);
    }
}

fn open_lock(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        private::folder(folder)?;
    }
    private::options().create(true).truncate(false).write(true).open(path)
}

fn read(path: &Path) -> Found {
    let bytes = match private::read(path, LONGEST) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Found::default(),
        Err(error) if error.kind() == ErrorKind::FileTooLarge => return put_aside(path),
        Err(error) => {
            let advice = words::file_unread(lang(), &path.display().to_string(), &error.to_string());
            return Found { kept: None, advice: Some(advice) };
        }
    };
    match serde_json::from_slice::<Kept>(&bytes) {
        Ok(kept) if kept.v == VERSION => Found { kept: Some(kept), advice: None },
        Ok(_) | Err(_) => put_aside(path),
    }
}

/// A file that cannot be understood may hold the only refresh token there is: a person may want to look at it.
fn put_aside(path: &Path) -> Found {
    let aside = path.with_extension("damaged");
    let shown = path.display().to_string();
    let advice = match fs::rename(path, &aside) {
        Ok(()) => words::damaged(lang(), &shown, &aside.display().to_string()),
        Err(error) => words::file_unread(lang(), &shown, &error.to_string()),
    };
    Found { kept: None, advice: Some(advice) }
}

fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    private::folder(folder)?;
    private::replace(path, text)?;
    // That it is there under this name has to reach the disk, too. Not every system can do that, or has to.
    let _where_possible = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("steady-relay-store-{}-{name}", std::process::id()));
        let _gone = fs::remove_dir_all(&folder);
        folder
    }

    const SOURCE: &str = "0f";

    fn kept(token: &str) -> Kept {
        Kept::new(SOURCE.to_owned(), &Secret::new(token.to_owned()))
    }

    #[tokio::test]
    async fn what_is_kept_is_private_and_found_again() {
        let folder = folder("kept");
        let folder = folder.join("credentials");
        let store = Store::of(&folder, "mine");
        assert!(store.read(SOURCE).await.kept.is_none());
        let whole = Kept { expires: Some(7), refresh_token: Some("r".into()), ..kept("one") };
        store.write(whole.clone()).await.unwrap();
        assert!(Store::of(&folder, "mine").read(SOURCE).await.kept == Some(whole));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(store.path()), mode(store.path().parent().unwrap())), (0o600, 0o700));
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[tokio::test]
    async fn a_damaged_file_is_put_aside_and_told_of() {
        let folder = folder("damaged");
        Store::of(&folder, "mine").write(kept("one")).await.unwrap();
        let store = Store::of(&folder, "mine");
        let whole = fs::read_to_string(store.path()).unwrap();
        let other = whole.replace("\"v\":1", "\"v\":2");
        for text in ["", "\0\0\0", "{}", &whole[..whole.len() / 2], &other, &"x".repeat(70_000)] {
            fs::write(store.path(), text).unwrap();
            let Found { kept, advice } = store.read(SOURCE).await;
            assert!(kept.is_none() && advice.is_some_and(|words| words.contains("mine.damaged")), "{text:?}");
            assert_eq!(fs::read_to_string(store.path().with_extension("damaged")).unwrap(), text);
            assert!(!store.path().exists());
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[tokio::test]
    async fn what_cannot_be_written_is_kept_as_long_as_the_relay_runs() {
        let folder = folder("unwritten");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("credentials"), "a file in the place of the folder").unwrap();
        let store = Store::of(&folder.join("credentials"), "mine");
        assert!(store.write(kept("one")).await.is_err());
        assert!(store.read(SOURCE).await.kept == Some(kept("one")));
        fs::remove_file(folder.join("credentials")).unwrap();
        store.write(kept("two")).await.unwrap();
        assert!(store.read(SOURCE).await.kept == Some(kept("two")));
        // Of several relays the one that wrote last was issued last; what is of other settings is no token of these.
        let other = Store::of(&folder.join("credentials"), "mine");
        other.write(kept("three")).await.unwrap();
        assert!(store.read(SOURCE).await.kept == Some(kept("three")));
        other.write(Kept { source: "other".to_owned(), ..kept("four") }).await.unwrap();
        assert!(store.read(SOURCE).await.kept == Some(kept("two")));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[tokio::test]
    async fn one_relay_at_a_time_has_the_lock() {
        let folder = folder("locked");
        let (one, other) = (Store::of(&folder, "mine"), Store::of(&folder, "mine"));
        let held = one.lock().await.ok().unwrap();
        let waits = tokio::spawn(async move { other.lock().await.is_ok() });
        tokio::task::yield_now().await;
        assert!(!waits.is_finished());
        drop(held);
        assert!(waits.await.unwrap());
        fs::remove_dir_all(&folder).unwrap();
    }
}
