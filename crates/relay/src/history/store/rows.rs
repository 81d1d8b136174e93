//! A record as rows, and rows as a record.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use rusqlite::types::{FromSql, Type};
use rusqlite::{Connection, OptionalExtension as _, Params, Row, Transaction, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{RunRecord, schema};
use crate::history::Point;
use crate::history::fate::{Fate, Way};
use crate::history::record::{
    CallRecord, ClosedRecord, FailedRecord, MovedRecord, SendRecord, Tokens, WaitRecord,
};

/// A number as SQLite keeps it.
pub(super) fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn maybe(number: Option<u64>) -> Option<i64> {
    number.map(whole)
}

/// The name that a value has in JSON.
fn name<T: Serialize>(value: T) -> Option<String> {
    serde_json::to_value(value).ok()?.as_str().map(str::to_owned)
}

const CALL: &str = "run, call, opened, client, dialect, operation, transport, upstream, model, profile, lane, request_id, \
     inherited_sends, state, left_out, committed, outcome, why, status, sends, waited, took, last_fault, \
     capacity_faults, maybe_billed_twice, received, sent, tokens_input, tokens_cached, tokens_output, pool, bound, \
     inherited_failed, inherited_resends";

const SEND: &str = "run, call, send, wait_why, wait_began, wait_planned, wait_took, wait_waiting, wait_notices, began, \
     may_run_twice, head, status, request_id, failed, fault, evidence, code, rule, told, tokens_input, tokens_cached, \
     tokens_output, moved_why, moved_upstream, moved_lane, moved_model, way";

/// Where each column stands: asking SQLite for a name means to compare it with all others, for each value that is read.
struct Columns(BTreeMap<&'static str, usize>);

impl Columns {
    fn of(names: &'static str) -> Self {
        Self(names.split(',').map(str::trim).zip(0..).collect())
    }
}

/// A row whose columns are found by name.
struct Found<'a> {
    row: &'a Row<'a>,
    columns: &'a Columns,
}

impl Found<'_> {
    fn get<T: FromSql>(&self, column: &str) -> rusqlite::Result<T> {
        let at = self.columns.0.get(column);
        self.row.get(*at.ok_or_else(|| rusqlite::Error::InvalidColumnName(column.to_owned()))?)
    }
}

/// Columns that came with a later version than the first.
const LATER: &[(&str, i64)] = &[
    ("pool", 2),
    ("bound", 2),
    ("moved_why", 2),
    ("moved_upstream", 2),
    ("moved_lane", 2),
    ("moved_model", 2),
    ("way", 2),
    ("inherited_failed", 3),
    ("inherited_resends", 3),
];

/// These columns as a file of this version has them: nothing stands in those that came later.
fn known_to(version: i64, columns: &str) -> String {
    let column = |name: &str| match LATER.iter().find(|(later, _)| *later == name) {
        Some((_, since)) if *since > version => format!("NULL AS {name}"),
        Some(_) | None => name.to_owned(),
    };
    columns.split(',').map(|name| column(name.trim())).collect::<Vec<_>>().join(", ")
}

/// `?1, ?2, …` for so many columns.
fn places(columns: &str) -> String {
    (1..=columns.split(',').count()).map(|place| format!("?{place}")).collect::<Vec<_>>().join(", ")
}

/// Puts one call.
static PUT_CALL: LazyLock<String> =
    LazyLock::new(|| format!("INSERT OR REPLACE INTO calls ({CALL}) VALUES ({})", places(CALL)));
/// Puts one send.
static PUT_SEND: LazyLock<String> =
    LazyLock::new(|| format!("INSERT OR REPLACE INTO sends ({SEND}) VALUES ({})", places(SEND)));

/// Puts a call there as it is now.
pub(super) fn put(to: &Transaction<'_>, run: i64, call: &CallRecord) -> rusqlite::Result<()> {
    let number = whole(call.call);
    let closed = call.closed.as_ref();
    let tokens = closed.and_then(|closed| closed.tokens);
    to.prepare_cached(&PUT_CALL)?.execute(params![
        run,
        number,
        whole(call.opened),
        call.client,
        call.dialect,
        call.operation,
        call.transport,
        call.upstream,
        call.model,
        call.profile,
        call.lane,
        call.request_id,
        call.inherited_sends,
        name(call.state),
        call.left_out,
        maybe(call.committed),
        closed.map(|closed| &closed.outcome),
        closed.and_then(|closed| closed.why.as_ref()),
        closed.and_then(|closed| closed.status),
        closed.map(|closed| closed.sends),
        closed.map(|closed| whole(closed.waited)),
        closed.map(|closed| whole(closed.took)),
        closed.and_then(|closed| closed.last_fault.as_ref()),
        closed.map(|closed| closed.capacity_faults),
        closed.map(|closed| closed.maybe_billed_twice),
        closed.map(|closed| whole(closed.received)),
        closed.map(|closed| whole(closed.sent)),
        tokens.map(|tokens| whole(tokens.input)),
        tokens.map(|tokens| whole(tokens.cached)),
        tokens.map(|tokens| whole(tokens.output)),
        call.pool,
        call.bound,
        call.inherited_failed,
        call.inherited_resends,
    ])?;
    if call.left_out > 0 {
        // Those in the middle of a long call are left out, here as in the record.
        to.prepare_cached("DELETE FROM sends WHERE run = ?1 AND call = ?2")?.execute(params![run, number])?;
    }
    call.sends.iter().try_for_each(|send| put_send(to, (run, number), send))
}

fn put_send(to: &Transaction<'_>, (run, call): (i64, i64), of: &SendRecord) -> rusqlite::Result<()> {
    let (wait, failed) = (of.wait.as_ref(), of.failed.as_ref());
    let tokens = failed.and_then(|failed| failed.tokens);
    to.prepare_cached(&PUT_SEND)?.execute(params![
        run,
        call,
        of.send,
        wait.and_then(|wait| name(wait.why)),
        wait.map(|wait| whole(wait.began)),
        wait.and_then(|wait| maybe(wait.planned)),
        wait.and_then(|wait| maybe(wait.took)),
        wait.and_then(|wait| wait.waiting.map(|many| whole(many as u64))),
        wait.map(|wait| wait.notices),
        maybe(of.began),
        of.may_run_twice,
        maybe(of.head),
        of.status,
        of.request_id,
        failed.map(|failed| whole(failed.at)),
        failed.map(|failed| &failed.fault),
        failed.and_then(|failed| failed.evidence.as_ref()),
        failed.and_then(|failed| failed.code.as_ref()),
        failed.and_then(|failed| failed.rule.as_ref()),
        failed.and_then(|failed| maybe(failed.told)),
        tokens.map(|tokens| whole(tokens.input)),
        tokens.map(|tokens| whole(tokens.cached)),
        tokens.map(|tokens| whole(tokens.output)),
        of.moved.as_ref().map(|moved| &moved.why),
        of.moved.as_ref().map(|moved| &moved.upstream),
        of.moved.as_ref().map(|moved| &moved.lane),
        of.moved.as_ref().and_then(|moved| moved.model.as_ref()),
        of.way.as_ref().and_then(|way| serde_json::to_string(way).ok()),
    ])?;
    Ok(())
}

/// The calls that a filter finds.
pub(super) fn calls(
    from: &Connection,
    filter: &str,
    values: impl Params,
) -> rusqlite::Result<Vec<CallRecord>> {
    let mut all = Vec::new();
    each(from, filter, values, |call| all.push(call))?;
    Ok(all)
}

/// The same, one by one.
pub(super) fn each(
    from: &Connection,
    filter: &str,
    values: impl Params,
    mut see: impl FnMut(CallRecord),
) -> rusqlite::Result<()> {
    // One moment for all that is read, whatever is written meanwhile.
    let moment = from.unchecked_transaction()?;
    let version = schema::version(from)?;
    let (call, send) = (known_to(version, CALL), known_to(version, SEND));
    let mut found = moment.prepare(&format!("SELECT {call} FROM calls WHERE {filter}"))?;
    let mut sends =
        moment.prepare(&format!("SELECT {send} FROM sends WHERE run = ?1 AND call = ?2 ORDER BY send"))?;
    let mut rows = found.query(values)?;
    let (of_calls, of_sends) = (Columns::of(CALL), Columns::of(SEND));
    while let Some(row) = rows.next()? {
        let mut call = call_of(&Found { row, columns: &of_calls })?;
        let key = params![call.run, whole(call.call)];
        let send = |row: &Row<'_>| send_of(&Found { row, columns: &of_sends });
        call.sends = sends.query_map(key, send)?.collect::<rusqlite::Result<_>>()?;
        see(call);
    }
    Ok(())
}

/// What sums need of the calls from this moment on.
pub(super) fn points(from: &Connection, opened: i64, mut see: impl FnMut(Point)) -> rusqlite::Result<()> {
    const POINT: &str = "opened, model, outcome, sends, waited, last_fault, capacity_faults, after_cut";
    const AFTER_CUT: &str = "waited > 0 AND EXISTS (SELECT 1 FROM sends WHERE sends.run = calls.run \
         AND sends.call = calls.call AND wait_why = 'cut')";
    let columns = Columns::of(POINT);
    let named = POINT.replace("after_cut", &format!("{AFTER_CUT} AS after_cut"));
    let mut found = from.prepare(&format!("SELECT {named} FROM calls WHERE opened >= ?1"))?;
    let mut rows = found.query(params![opened])?;
    while let Some(row) = rows.next()? {
        let row = &Found { row, columns: &columns };
        let sends: u32 = or_default(row, "sends")?;
        let waited = number_or_none(row, "waited")?.unwrap_or(0);
        let has_met = row.get::<Option<String>>("last_fault")?.is_some();
        // Whatever was sent again had failed before.
        let was_helped = sends > 1 || or_default(row, "after_cut")?;
        let way = Way { was_helped, was_troubled: has_met || waited > 0 };
        see(Point {
            opened: number(row, "opened")?,
            model: row.get("model")?,
            fate: row.get::<Option<String>>("outcome")?.map(|outcome| Fate::named(&outcome, way)),
            sends,
            waited,
            capacity_faults: or_default(row, "capacity_faults")?,
        });
    }
    Ok(())
}

/// The first run that a filter finds.
pub(super) fn run(
    from: &Connection,
    filter: &str,
    values: impl Params,
) -> rusqlite::Result<Option<RunRecord>> {
    const RUN: &str = "run, started, ended, kind";
    let columns = Columns::of(RUN);
    let found = format!("SELECT {RUN} FROM runs WHERE {filter}");
    let run_of = |row: &Row<'_>| {
        let row = &Found { row, columns: &columns };
        let (started, ended) = (number(row, "started")?, number_or_none(row, "ended")?);
        Ok(RunRecord { run: row.get("run")?, started, ended, kind: row.get("kind")? })
    };
    from.query_row(&found, values, run_of).optional()
}

/// A number that cannot be negative; what somebody else wrote there may be.
fn number(row: &Found<'_>, column: &str) -> rusqlite::Result<u64> {
    Ok(u64::try_from(row.get::<i64>(column)?).unwrap_or(0))
}

fn number_or_none(row: &Found<'_>, column: &str) -> rusqlite::Result<Option<u64>> {
    Ok(row.get::<Option<i64>>(column)?.and_then(|number| u64::try_from(number).ok()))
}

/// The value of a name in JSON.
fn named<T: DeserializeOwned>(row: &Found<'_>, column: &str) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    serde_json::from_value(serde_json::Value::String(text))
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(error)))
}

fn tokens_of(row: &Found<'_>) -> rusqlite::Result<Option<Tokens>> {
    let Some(input) = number_or_none(row, "tokens_input")? else { return Ok(None) };
    let (cached, output) = (number(row, "tokens_cached")?, number(row, "tokens_output")?);
    Ok(Some(Tokens { input, cached, output }))
}

/// What stands in a column where the call is over.
fn or_default<T: FromSql + Default>(row: &Found<'_>, column: &str) -> rusqlite::Result<T> {
    Ok(row.get::<Option<T>>(column)?.unwrap_or_default())
}

fn call_of(row: &Found<'_>) -> rusqlite::Result<CallRecord> {
    let closed = match row.get::<Option<String>>("outcome")? {
        None => None,
        Some(outcome) => Some(ClosedRecord {
            outcome,
            why: row.get("why")?,
            status: row.get("status")?,
            sends: or_default(row, "sends")?,
            waited: number_or_none(row, "waited")?.unwrap_or(0),
            took: number_or_none(row, "took")?.unwrap_or(0),
            last_fault: row.get("last_fault")?,
            capacity_faults: or_default(row, "capacity_faults")?,
            maybe_billed_twice: or_default(row, "maybe_billed_twice")?,
            received: number_or_none(row, "received")?.unwrap_or(0),
            sent: number_or_none(row, "sent")?.unwrap_or(0),
            tokens: tokens_of(row)?,
        }),
    };
    Ok(CallRecord {
        run: row.get("run")?,
        call: number(row, "call")?,
        opened: number(row, "opened")?,
        client: row.get("client")?,
        dialect: row.get("dialect")?,
        operation: row.get("operation")?,
        transport: row.get("transport")?,
        upstream: row.get("upstream")?,
        model: row.get("model")?,
        profile: row.get("profile")?,
        lane: row.get("lane")?,
        request_id: row.get("request_id")?,
        pool: row.get("pool")?,
        bound: row.get("bound")?,
        inherited_sends: row.get("inherited_sends")?,
        inherited_failed: or_default(row, "inherited_failed")?,
        inherited_resends: or_default(row, "inherited_resends")?,
        state: named(row, "state")?,
        sends: Vec::new(),
        left_out: row.get("left_out")?,
        committed: number_or_none(row, "committed")?,
        closed,
    })
}

fn send_of(row: &Found<'_>) -> rusqlite::Result<SendRecord> {
    let wait = match number_or_none(row, "wait_began")? {
        None => None,
        Some(began) => Some(WaitRecord {
            why: named(row, "wait_why")?,
            began,
            planned: number_or_none(row, "wait_planned")?,
            took: number_or_none(row, "wait_took")?,
            waiting: number_or_none(row, "wait_waiting")?.and_then(|many| usize::try_from(many).ok()),
            notices: or_default(row, "wait_notices")?,
        }),
    };
    let failed = match row.get::<Option<String>>("fault")? {
        None => None,
        Some(fault) => Some(FailedRecord {
            at: number_or_none(row, "failed")?.unwrap_or(0),
            fault,
            evidence: row.get("evidence")?,
            code: row.get("code")?,
            rule: row.get("rule")?,
            told: number_or_none(row, "told")?,
            tokens: tokens_of(row)?,
        }),
    };
    let moved = match row.get::<Option<String>>("moved_why")? {
        None => None,
        Some(why) => Some(MovedRecord {
            upstream: row.get("moved_upstream")?,
            lane: row.get("moved_lane")?,
            model: row.get("moved_model")?,
            why,
        }),
    };
    Ok(SendRecord {
        send: row.get("send")?,
        wait,
        began: number_or_none(row, "began")?,
        moved,
        may_run_twice: row.get("may_run_twice")?,
        // What somebody else wrote there is nothing.
        way: row.get::<Option<String>>("way")?.and_then(|way| serde_json::from_str(&way).ok()),
        head: number_or_none(row, "head")?,
        status: row.get("status")?,
        request_id: row.get("request_id")?,
        failed,
    })
}
