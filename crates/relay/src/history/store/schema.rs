//! The tables, and how those of an older relay become these. A released version never changes: a new one has a step of
//! its own in [`STEPS`].

use rusqlite::Connection;

/// The version that this program reads and writes (`PRAGMA user_version`).
pub(super) const VERSION: i64 = 3;

/// What makes each version of the one before.
const STEPS: [&str; 3] = [
    // Version 1. Times are milliseconds: `opened` since 1970, all others since the call was accepted, or spans.
    "CREATE TABLE runs (
        run INTEGER PRIMARY KEY AUTOINCREMENT,
        started INTEGER NOT NULL,
        ended INTEGER,
        kind TEXT NOT NULL,
        version TEXT NOT NULL,
        pid INTEGER NOT NULL
    );
    CREATE TABLE calls (
        run INTEGER NOT NULL,
        call INTEGER NOT NULL,
        opened INTEGER NOT NULL,
        client TEXT NOT NULL,
        dialect TEXT NOT NULL,
        operation TEXT NOT NULL,
        transport TEXT NOT NULL,
        upstream TEXT NOT NULL,
        model TEXT,
        profile TEXT NOT NULL,
        lane TEXT NOT NULL,
        request_id TEXT,
        inherited_sends INTEGER NOT NULL,
        state TEXT NOT NULL,
        left_out INTEGER NOT NULL,
        committed INTEGER,
        outcome TEXT,
        why TEXT,
        status INTEGER,
        sends INTEGER,
        waited INTEGER,
        took INTEGER,
        last_fault TEXT,
        capacity_faults INTEGER,
        maybe_billed_twice INTEGER,
        received INTEGER,
        sent INTEGER,
        tokens_input INTEGER,
        tokens_cached INTEGER,
        tokens_output INTEGER,
        PRIMARY KEY (run, call)
    ) WITHOUT ROWID;
    CREATE INDEX calls_opened ON calls (opened);
    CREATE INDEX calls_request_id ON calls (request_id) WHERE request_id IS NOT NULL;
    CREATE TABLE sends (
        run INTEGER NOT NULL,
        call INTEGER NOT NULL,
        send INTEGER NOT NULL,
        wait_why TEXT,
        wait_began INTEGER,
        wait_planned INTEGER,
        wait_took INTEGER,
        wait_waiting INTEGER,
        wait_notices INTEGER,
        began INTEGER,
        may_run_twice INTEGER NOT NULL,
        head INTEGER,
        status INTEGER,
        request_id TEXT,
        failed INTEGER,
        fault TEXT,
        evidence TEXT,
        code TEXT,
        rule TEXT,
        told INTEGER,
        tokens_input INTEGER,
        tokens_cached INTEGER,
        tokens_output INTEGER,
        PRIMARY KEY (run, call, send)
    ) WITHOUT ROWID;
    CREATE INDEX sends_request_id ON sends (request_id) WHERE request_id IS NOT NULL;",
    // Version 2: calls that go to another upstream, and how a send went where there are several ways, as JSON.
    "ALTER TABLE calls ADD COLUMN pool TEXT;
    ALTER TABLE calls ADD COLUMN bound TEXT;
    ALTER TABLE sends ADD COLUMN moved_why TEXT;
    ALTER TABLE sends ADD COLUMN moved_upstream TEXT;
    ALTER TABLE sends ADD COLUMN moved_lane TEXT;
    ALTER TABLE sends ADD COLUMN moved_model TEXT;
    ALTER TABLE sends ADD COLUMN way TEXT;",
    // Version 3: what of the budget of earlier calls counts, besides sends.
    "ALTER TABLE calls ADD COLUMN inherited_failed INTEGER;
    ALTER TABLE calls ADD COLUMN inherited_resends INTEGER;",
];

/// The version of what is there; 0: nothing is.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Makes the tables what this program knows.
pub(super) fn prepare(connection: &mut Connection) -> rusqlite::Result<()> {
    if version(connection)? == 0 {
        // Takes effect only before there is anything.
        connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL")?;
    }
    connection.query_row("PRAGMA journal_mode = WAL", [], |_mode| Ok(()))?;
    // The log is not waited for at each call: a loss of power may take the last ones, a kill takes none.
    connection.execute_batch("PRAGMA synchronous = NORMAL; PRAGMA journal_size_limit = 4194304")?;
    // Another relay may do the same at this moment: whoever is first does it.
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let found = version(&transaction)?;
    let done = usize::try_from(found).unwrap_or(0);
    for (step, number) in STEPS.iter().zip(1_i64..).skip(done) {
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "user_version", number)?;
    }
    transaction.commit()
}
