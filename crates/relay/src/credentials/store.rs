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
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use relay_core::config::Secret;
use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex as Turn, OwnedMutexGuard};

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
    /// `None`: they are lost with this relay.
    path: Option<Arc<PathBuf>>,
    /// What was last issued here, and whether it could be written.
    last: Mutex<Option<(Kept, bool)>>,
    /// Of this relay, too, one renews it at a time: after a reload the old settings may still be at it.
    turn: Arc<Turn<()>>,
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

/// While it is held, nobody else renews this credential, here or in another relay.
pub(super) struct Lock {
    file: Option<File>,
    _turn: OwnedMutexGuard<()>,
}

/// What was found where tokens are kept.
#[derive(Default)]
pub(super) struct Found {
    pub(super) kept: Option<Kept>,
    /// What a person should know about it.
    pub(super) advice: Option<String>,
}

impl Store {
    /// In this folder, if there is one. What was kept under the settings `before` goes on from there: where it is told what
    /// issued it, nobody can mistake it for something else.
    pub(super) fn after(before: Option<&Arc<Self>>, folder: Option<&Path>, name: &str) -> Arc<Self> {
        let path = folder.map(|folder| folder.join(format!("{name}.json")));
        match before {
            Some(before) if before.path() == path.as_deref() => Arc::clone(before),
            Some(_) | None => {
                // It is not in that place yet.
                let last = before.and_then(|before| before.last().clone()).map(|(last, _)| (last, false));
                Arc::new(Self { path: path.map(Arc::new), last: Mutex::new(last), turn: Arc::default() })
            }
        }
    }

    pub(super) fn path(&self) -> Option<&Path> {
        self.path.as_deref().map(PathBuf::as_path)
    }

    fn last(&self) -> MutexGuard<'_, Option<(Kept, bool)>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nobody else has the lock, or there is no time left for that. Where there can be none, it goes on without.
    pub(super) async fn lock(&self, no_time: impl Future<Output = ()>) -> Result<Lock, Trouble> {
        let mut no_time = pin!(no_time);
        let broke_off = || Trouble { why: words::broke_off(lang()), kind: Kind::Passing(None) };
        let turn = tokio::select! {
            biased;
            turn = Arc::clone(&self.turn).lock_owned() => turn,
            () = &mut no_time => return Err(broke_off()),
        };
        let Some(path) = self.path.as_ref().map(|path| path.with_extension("lock")) else {
            return Ok(Lock { file: None, _turn: turn });
        };
        let opened = {
            let path = path.clone();
            tokio::task::spawn_blocking(move || open_lock(&path)).await
        };
        let Ok(Ok(file)) = opened else { return Ok(Lock { file: None, _turn: turn }) };
        let tries = LOCKED_FOR.as_millis() / TRIED_EVERY.as_millis();
        for _ in 0..tries {
            match file.try_lock() {
                Ok(()) => return Ok(Lock { file: Some(file), _turn: turn }),
                Err(TryLockError::WouldBlock) => tokio::select! {
                    () = tokio::time::sleep(TRIED_EVERY) => {}
                    () = &mut no_time => return Err(broke_off()),
                },
                Err(TryLockError::Error(_)) => return Ok(Lock { file: None, _turn: turn }),
            }
        }
        let why = words::locked(lang(), &path.display().to_string(), LOCKED_FOR.as_secs());
        Err(Trouble { why, kind: Kind::Passing(None) })
    }

    /// What is kept of this source: in the file, where another relay may have put something newer, else what was last
    /// issued here.
    pub(super) async fn read(&self, source: &str) -> Found {
        let mut found = match self.path.clone() {
            Some(path) => tokio::task::spawn_blocking(move || read(&path)).await.unwrap_or_default(),
            None => Found::default(),
        };
        found.kept = found.kept.filter(|kept| kept.source == source);
        let last = self.last().clone();
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
        let Some(path) = self.path.clone() else {
            *self.last() = Some((kept, false));
            return Ok(());
        };
        let text = serde_json::to_string(&kept)? + "\n";
        let written = tokio::task::spawn_blocking(move || write(&path, text.as_bytes())).await;
        let written = written.unwrap_or_else(|_broke_off| Err(io::Error::other("it broke off")));
        *self.last() = Some((kept, written.is_ok()));
        written
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing it would do the same a little later.
        let _unlocked = self.file.as_ref().map(File::unlock);
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
    use std::future::pending;

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("steady-relay-store-{}-{name}", std::process::id()));
        let _gone = fs::remove_dir_all(&folder);
        folder
    }

    fn kept_in(folder: &Path) -> Arc<Store> {
        Store::after(None, Some(folder), "mine")
    }

    fn in_file(store: &Store) -> &Path {
        store.path().unwrap()
    }

    const SOURCE: &str = "0f";

    fn kept(token: &str) -> Kept {
        Kept::new(SOURCE.to_owned(), &Secret::new(token.to_owned()))
    }

    #[tokio::test]
    async fn what_is_kept_is_private_and_found_again() {
        let folder = folder("kept");
        let folder = folder.join("credentials");
        let store = kept_in(&folder);
        assert!(store.read(SOURCE).await.kept.is_none());
        let whole = Kept { expires: Some(7), refresh_token: Some("r".into()), ..kept("one") };
        store.write(whole.clone()).await.unwrap();
        assert!(kept_in(&folder).read(SOURCE).await.kept == Some(whole));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(in_file(&store)), mode(in_file(&store).parent().unwrap())), (0o600, 0o700));
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[tokio::test]
    async fn a_damaged_file_is_put_aside_and_told_of() {
        let folder = folder("damaged");
        kept_in(&folder).write(kept("one")).await.unwrap();
        let store = kept_in(&folder);
        let whole = fs::read_to_string(in_file(&store)).unwrap();
        let other = whole.replace("\"v\":1", "\"v\":2");
        for text in ["", "\0\0\0", "{}", &whole[..whole.len() / 2], &other, &"x".repeat(70_000)] {
            fs::write(in_file(&store), text).unwrap();
            let Found { kept, advice } = store.read(SOURCE).await;
            assert!(kept.is_none() && advice.is_some_and(|words| words.contains("mine.damaged")), "{text:?}");
            assert_eq!(fs::read_to_string(in_file(&store).with_extension("damaged")).unwrap(), text);
            assert!(!in_file(&store).exists());
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[tokio::test]
    async fn what_cannot_be_written_is_kept_as_long_as_the_relay_runs() {
        let folder = folder("unwritten");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("credentials"), "a file in the place of the folder").unwrap();
        let store = kept_in(&folder.join("credentials"));
        assert!(store.write(kept("one")).await.is_err());
        assert!(store.read(SOURCE).await.kept == Some(kept("one")));
        fs::remove_file(folder.join("credentials")).unwrap();
        store.write(kept("two")).await.unwrap();
        assert!(store.read(SOURCE).await.kept == Some(kept("two")));
        // Of several relays the one that wrote last was issued last; what is of other settings is no token of these.
        let other = kept_in(&folder.join("credentials"));
        other.write(kept("three")).await.unwrap();
        assert!(store.read(SOURCE).await.kept == Some(kept("three")));
        other.write(Kept { source: "other".to_owned(), ..kept("four") }).await.unwrap();
        assert!(store.read(SOURCE).await.kept == Some(kept("two")));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[tokio::test]
    async fn one_relay_at_a_time_has_the_lock() {
        let folder = folder("locked");
        let (one, other) = (kept_in(&folder), kept_in(&folder));
        let held = one.lock(pending()).await.ok().unwrap();
        let waits = tokio::spawn(async move { other.lock(pending()).await.is_ok() });
        tokio::task::yield_now().await;
        assert!(!waits.is_finished());
        drop(held);
        assert!(waits.await.unwrap());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[tokio::test]
    async fn what_was_issued_under_other_settings_goes_on() {
        let (whole, folder) = (kept("one"), folder("after"));
        let first = Store::after(None, None, "mine");
        first.write(whole.clone()).await.unwrap();
        let second = Store::after(Some(&first), None, "mine");
        assert!(second.read(SOURCE).await.kept == Some(whole.clone()));
        assert!(second.read("other").await.kept.is_none());
        // One at a time renews it, and none begins to when the relay ends.
        let held = first.lock(pending()).await.ok().unwrap();
        assert!(second.lock(std::future::ready(())).await.is_err());
        drop(held);
        assert!(second.lock(std::future::ready(())).await.is_ok());
        // In a folder it is found as well.
        let third = Store::after(Some(&second), Some(&folder), "mine");
        assert!(third.read(SOURCE).await.kept == Some(whole));
    }
}
