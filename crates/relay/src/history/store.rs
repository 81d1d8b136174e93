//! The history's file: SQLite with a write-ahead log, so that whoever reads never waits for the relay and a kill at any
//! moment leaves whole calls. Relays that share a state folder share it. `docs/history.md` tells its tables to those
//! who open it with something else.

mod rows;
mod schema;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, params};

use super::place::in_the_way;
use super::record::CallRecord;
use super::{Name, Point};
use crate::private;
use crate::words::{self, lang};

/// How long a reader waits for who writes.
const BUSY: Duration = Duration::from_secs(5);
/// How long a relay waits for another that writes: it comes back, and has other things to do.
const BUSY_TO_WRITE: Duration = Duration::from_secs(1);
/// So much of the oldest goes at a time where the file is too large: a tenth.
const SHARE: i64 = 10;

/// Why there is no history.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file cannot be opened, read or written.
    #[error("{}", words::history::unusable(lang(), &path.display().to_string(), why))]
    File {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        why: String,
    },
    /// What lies there is no database, or a broken one.
    #[error("{}", words::history::unusable(lang(), &path.display().to_string(), why))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        why: String,
    },
    /// A newer relay has written it.
    #[error("{}", words::history::newer(lang(), &path.display().to_string()))]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
    },
    /// There is none.
    #[error("{}", words::history::missing(lang(), &.0.display().to_string()))]
    Missing(PathBuf),
}

impl StoreError {
    /// What SQLite says of this file.
    fn of(path: &Path, why: &rusqlite::Error) -> Self {
        use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
        let (path, said) = (path.to_owned(), why.to_string());
        match why.sqlite_error_code() {
            Some(NotADatabase | DatabaseCorrupt) => Self::Damaged { path, why: said },
            _ => Self::File { path, why: said },
        }
    }
}

/// What is kept of it, and no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Calls older than this go.
    pub age: Duration,
    /// The most bytes of the file.
    pub size: u64,
}

/// One run of a relay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// `serve`, `run` or what else has started it.
    pub kind: String,
    /// The relay's version.
    pub version: String,
    /// The number of its process.
    pub pid: u32,
}

/// A run as the file has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRecord {
    /// Its number.
    pub run: i64,
    /// When it began, in milliseconds since 1970.
    pub started: u64,
    /// When it ended. `None`: it goes on, or was killed.
    pub ended: Option<u64>,
    /// What has started it.
    pub kind: String,
}

/// The file, open for writing.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    connection: Connection,
    /// What lay at the path when it was opened.
    identity: Option<private::Identity>,
}

/// Opened for writing, and what there is to tell about that.
#[derive(Debug)]
pub struct Opened {
    /// The file.
    pub store: Store,
    /// Where the damaged one lies that was in its place.
    pub damaged: Option<PathBuf>,
}

impl Store {
    /// Opens the file for a run that begins now, whose number comes besides.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_for(path: &Path, run: &Run, now: u64) -> Result<(Opened, i64), StoreError> {
        let mut opened = Self::open(path)?;
        match opened.store.begin(run, now) {
            Ok(number) => Ok((opened, number)),
            // Its first page alone tells nothing of the others.
            Err(StoreError::Damaged { .. }) => {
                drop(opened);
                let mut fresh = Self::in_place_of(path)?;
                let number = fresh.store.begin(run, now)?;
                Ok((fresh, number))
            }
            Err(why) => Err(why),
        }
    }

    /// Opens the file, or makes it. One that is damaged is put aside.
    ///
    /// # Errors
    /// Where it cannot be written, or is of a newer relay.
    pub fn open(path: &Path) -> Result<Opened, StoreError> {
        let error = |why: &dyn ToString| StoreError::File { path: path.to_owned(), why: why.to_string() };
        if let Some(folder) = path.parent() {
            private::folder(folder).map_err(|why| error(&why))?;
        }
        make_private(path).map_err(|why| error(&why))?;
        match Self::try_open(path) {
            Err(StoreError::Damaged { .. }) => Self::in_place_of(path),
            opened => Ok(Opened { store: opened?, damaged: None }),
        }
    }

    /// Puts a damaged one aside, and begins another.
    fn in_place_of(path: &Path) -> Result<Opened, StoreError> {
        let error = |why: io::Error| StoreError::File { path: path.to_owned(), why: why.to_string() };
        let aside = put_aside(path).map_err(error)?;
        make_private(path).map_err(error)?;
        Ok(Opened { store: Self::try_open(path)?, damaged: Some(aside) })
    }

    fn try_open(path: &Path) -> Result<Self, StoreError> {
        let error = |why: rusqlite::Error| StoreError::of(path, &why);
        let mut connection = Connection::open(path).map_err(error)?;
        connection.busy_timeout(BUSY_TO_WRITE).map_err(error)?;
        let found = schema::version(&connection).map_err(error)?;
        if found > schema::VERSION {
            return Err(StoreError::Newer { path: path.to_owned(), found });
        }
        schema::prepare(&mut connection).map_err(error)?;
        Ok(Self { path: path.to_owned(), connection, identity: identity(path) })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the path still leads to the file that is open: what is written to another is lost.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        let found = identity(&self.path);
        found.is_some() && found == self.identity
    }

    /// A run begins; its number.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn begin(&mut self, run: &Run, now: u64) -> Result<i64, StoreError> {
        let number = self.connection.execute(
            "INSERT INTO runs (started, kind, version, pid) VALUES (?1, ?2, ?3, ?4)",
            params![rows::whole(now), run.kind, run.version, run.pid],
        );
        number.map_err(|why| self.error(&why))?;
        Ok(self.connection.last_insert_rowid())
    }

    /// Writes calls as they are now, all of them or none.
    ///
    /// # Errors
    /// Where they cannot be written.
    pub fn write<'a>(
        &mut self,
        run: i64,
        calls: impl IntoIterator<Item = &'a CallRecord>,
    ) -> Result<(), StoreError> {
        let written = (|| {
            let transaction = self.connection.transaction()?;
            for call in calls {
                rows::put(&transaction, run, call)?;
            }
            transaction.commit()
        })();
        written.map_err(|why| self.error(&why))
    }

    /// A run ends tidily.
    ///
    /// # Errors
    /// Where that cannot be written.
    pub fn end(&mut self, run: i64, now: u64) -> Result<(), StoreError> {
        let ended = self
            .connection
            .execute("UPDATE runs SET ended = ?2 WHERE run = ?1", params![run, rows::whole(now)]);
        ended.map(|_one| ()).map_err(|why| self.error(&why))
    }

    /// Removes what is too old, and the oldest where there is too much.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn prune(&mut self, bounds: Bounds, now: u64) -> Result<(), StoreError> {
        let pruned = (|| {
            let age = u64::try_from(bounds.age.as_millis()).unwrap_or(u64::MAX);
            self.remove_before(rows::whole(now.saturating_sub(age)))?;
            while self.size()? > bounds.size {
                let count: i64 =
                    self.connection.query_row("SELECT count(*) FROM calls", [], |row| row.get(0))?;
                if count == 0 {
                    break;
                }
                let until: i64 = self.connection.query_row(
                    "SELECT opened FROM calls ORDER BY opened LIMIT 1 OFFSET ?1",
                    params![count / SHARE],
                    |row| row.get(0),
                )?;
                self.remove_before(until + 1)?;
            }
            Ok(())
        })();
        pruned.map_err(|why: rusqlite::Error| self.error(&why))
    }

    fn remove_before(&mut self, opened: i64) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction()?;
        transaction.execute(
            "DELETE FROM sends WHERE (run, call) IN (SELECT run, call FROM calls WHERE opened < ?1)",
            params![opened],
        )?;
        transaction.execute("DELETE FROM calls WHERE opened < ?1", params![opened])?;
        transaction.execute(
            "DELETE FROM runs WHERE started < ?1 AND run NOT IN (SELECT run FROM calls) AND run < (SELECT max(run) FROM runs)",
            params![opened],
        )?;
        transaction.commit()?;
        self.connection.execute_batch("PRAGMA incremental_vacuum")
    }

    /// The bytes that are in use.
    fn size(&self) -> rusqlite::Result<u64> {
        let ask = |what: &str| self.connection.query_row(what, [], |row| row.get::<_, i64>(0));
        let pages = ask("PRAGMA page_count")? - ask("PRAGMA freelist_count")?;
        Ok(u64::try_from(pages.saturating_mul(ask("PRAGMA page_size")?)).unwrap_or(0))
    }

    fn error(&self, why: &rusqlite::Error) -> StoreError {
        StoreError::of(&self.path, why)
    }
}

/// The file, open for reading alone.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    connection: Connection,
}

impl Reader {
    /// Opens the file of a relay that may be running.
    ///
    /// # Errors
    /// Where there is none, or none that this program can read.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        // Where there is none, and can be none, that is why.
        match in_the_way(path) {
            Some(why) if !path.is_file() => return Err(StoreError::File { path: path.to_owned(), why }),
            None if !path.exists() => return Err(StoreError::Missing(path.to_owned())),
            Some(_) | None => {}
        }
        let error = |why: rusqlite::Error| StoreError::of(path, &why);
        // Not read-only: a write-ahead log that a killed relay left behind has to be put in its place.
        let connection =
            Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(error)?;
        connection.busy_timeout(BUSY).map_err(error)?;
        connection.pragma_update(None, "query_only", true).map_err(error)?;
        match schema::version(&connection).map_err(error)? {
            0 => Err(StoreError::Missing(path.to_owned())),
            schema::VERSION => Ok(Self { path: path.to_owned(), connection }),
            found if found > schema::VERSION => Err(StoreError::Newer { path: path.to_owned(), found }),
            // The relay itself brings it up to date; until then its tables are read by one that can.
            _ => Store::open(path)
                .map(|opened| Self { path: path.to_owned(), connection: opened.store.connection }),
        }
    }

    /// Whether it can be read by this program, now or once a relay has brought it up to date. Nothing is changed.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn look(path: &Path) -> Result<(), StoreError> {
        let error = |why: rusqlite::Error| StoreError::File { path: path.to_owned(), why: why.to_string() };
        let connection =
            Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(error)?;
        connection.busy_timeout(BUSY).map_err(error)?;
        match schema::version(&connection).map_err(error)? {
            0 => Err(StoreError::Missing(path.to_owned())),
            found if found > schema::VERSION => Err(StoreError::Newer { path: path.to_owned(), found }),
            _ => Ok(()),
        }
    }

    /// For questions of one's own.
    #[must_use]
    pub const fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Tells an error of a question.
    #[must_use]
    pub fn error(&self, why: &rusqlite::Error) -> StoreError {
        StoreError::of(&self.path, why)
    }

    /// The last calls that were accepted before this moment, the newest first.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn before(&self, opened: u64, most: usize) -> Result<Vec<CallRecord>, StoreError> {
        let filter = "opened < ?1 ORDER BY opened DESC, run DESC, call DESC LIMIT ?2";
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        rows::calls(&self.connection, filter, params![rows::whole(opened), most])
            .map_err(|why| self.error(&why))
    }

    /// The calls of a time, from `from` on and before `to`, the oldest first, one by one.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn each(&self, (from, to): (u64, u64), see: impl FnMut(CallRecord)) -> Result<(), StoreError> {
        let filter = "opened >= ?1 AND opened < ?2 ORDER BY opened, run, call";
        let bounds = params![rows::whole(from), rows::whole(to)];
        rows::each(&self.connection, filter, bounds, see).map_err(|why| self.error(&why))
    }

    /// The calls from this moment on, as far as sums need them, in no order.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn points(&self, from: u64, see: impl FnMut(Point)) -> Result<(), StoreError> {
        rows::points(&self.connection, rows::whole(from), see).map_err(|why| self.error(&why))
    }

    /// The calls of a run in their order, one by one.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn each_of_run(&self, run: i64, see: impl FnMut(CallRecord)) -> Result<(), StoreError> {
        rows::each(&self.connection, "run = ?1 ORDER BY call", params![run], see)
            .map_err(|why| self.error(&why))
    }

    /// The newest call that met a fault or was not served; where there is none, the newest.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn last(&self) -> Result<Option<CallRecord>, StoreError> {
        let newest = "ORDER BY opened DESC, run DESC, call DESC LIMIT 1";
        let met_a_fault = "(outcome IS NOT NULL AND outcome <> 'served') OR last_fault IS NOT NULL OR EXISTS \
                           (SELECT 1 FROM sends WHERE sends.run = calls.run AND sends.call = calls.call AND fault IS NOT NULL)";
        let find = |filter: &str| rows::calls(&self.connection, filter, []).map(|mut found| found.pop());
        let found = find(&format!("{met_a_fault} {newest}")).and_then(|found| match found {
            Some(call) => Ok(Some(call)),
            None => find(&format!("true {newest}")),
        });
        found.map_err(|why| self.error(&why))
    }

    /// A run.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn run(&self, number: i64) -> Result<Option<RunRecord>, StoreError> {
        rows::run(&self.connection, "run = ?1", params![number]).map_err(|why| self.error(&why))
    }

    /// The newest run.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn last_run(&self) -> Result<Option<RunRecord>, StoreError> {
        rows::run(&self.connection, "true ORDER BY run DESC LIMIT 1", []).map_err(|why| self.error(&why))
    }

    /// The calls that go by this name, the newest first; [`Name::Last`] is one call at most.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn named(&self, name: &Name, most: usize) -> Result<Vec<CallRecord>, StoreError> {
        const BY_ID: &str =
            "request_id = ?1 OR (run, call) IN (SELECT run, call FROM sends WHERE request_id = ?1)";
        const NEWEST: &str = "ORDER BY opened DESC, run DESC LIMIT ?2";
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let by_number = |call: u64| {
            let filter = format!("call = ?1 {NEWEST}");
            rows::calls(&self.connection, &filter, params![rows::whole(call), most])
        };
        let by_id =
            |id: &str| rows::calls(&self.connection, &format!("({BY_ID}) {NEWEST}"), params![id, most]);
        let found = match name {
            Name::Last => return Ok(self.last()?.into_iter().collect()),
            Name::Number { call, text, .. } => by_number(*call).and_then(|mut found| {
                found.retain(|record| name.fits(record));
                if found.is_empty() { by_id(text) } else { Ok(found) }
            }),
            Name::Snapshot { call, .. } => by_number(*call).map(|mut found| {
                found.retain(|record| name.fits(record));
                found
            }),
            Name::Id(id) => by_id(id),
        };
        found.map_err(|why| self.error(&why))
    }
}

/// SQLite gives what it makes the mode of the file, so that is made first.
fn make_private(path: &Path) -> io::Result<()> {
    // Asked before it is opened: opening a pipe would wait for its reader.
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return Err(io::Error::other("this is no file"));
    }
    let file = private::options().create(true).truncate(false).write(true).open(path)?;
    private::close_own(path, &file)
}

fn identity(path: &Path) -> Option<private::Identity> {
    fs::metadata(path).ok().as_ref().map(private::identity)
}

/// Puts a damaged file aside with what belongs to it, under a name that is free.
fn put_aside(path: &Path) -> io::Result<PathBuf> {
    let named = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    let aside = (1..1000)
        .map(|number| named(&format!(".damaged-{number}")))
        .find(|aside| !aside.exists())
        .ok_or_else(|| io::Error::other("too many damaged ones lie beside it"))?;
    fs::rename(path, &aside)?;
    for suffix in ["-wal", "-shm"] {
        // Without them the damaged one is no worse, and the new one must not find them.
        match fs::remove_file(named(suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(aside)
}

#[cfg(test)]
pub(super) mod tests;
