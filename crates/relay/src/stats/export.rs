//! Records as other tools read them, one by one.

use std::io::{self, Write};

use relay_core::{Fault, plain};
use serde_json::json;

use super::Form;
use crate::history::record::{CallRecord, SendRecord};

/// Writes records.
#[derive(Debug)]
pub struct Export<W> {
    to: W,
    form: Form,
    /// How a moment is written, given in milliseconds since 1970.
    moment: fn(u64) -> String,
    /// The next entry of a list is its first.
    first: bool,
}

impl<W: Write> Export<W> {
    /// To here, in this form.
    ///
    /// # Errors
    /// Where that cannot be written.
    pub fn start(mut to: W, form: Form, moment: fn(u64) -> String) -> io::Result<Self> {
        if form == Form::RetryStats {
            to.write_all(b"[")?;
        }
        Ok(Self { to, form, moment, first: true })
    }

    /// One more call.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn see(&mut self, call: &CallRecord) -> io::Result<()> {
        match self.form {
            Form::Jsonl => {
                let record = serde_json::to_string(call)?;
                writeln!(self.to, "{}", plain::json(&record))
            }
            Form::RetryStats => {
                let sends = call.sends.iter().zip(call.sends.iter().skip(1));
                sends.into_iter().try_for_each(|(before, retry)| self.retry(call, before, retry))
            }
        }
    }

    /// A send that is not the first, and the one that made it necessary.
    fn retry(&mut self, call: &CallRecord, before: &SendRecord, retry: &SendRecord) -> io::Result<()> {
        let Some(began) = retry.began else { return Ok(()) };
        let is_last = call.sends.last().is_some_and(|last| last.send == retry.send);
        let closed = call.closed.as_ref().filter(|_| is_last);
        let ended = retry.failed.as_ref().map(|failed| failed.at).or_else(|| Some(closed?.took));
        let success = retry.failed.is_none() && closed.is_some_and(|closed| closed.outcome == "served");
        let entry = json!({
            "timestamp": (self.moment)(call.opened.saturating_add(began)),
            "attempt": retry.send.saturating_sub(1),
            "reason": before.failed.as_ref().map_or("other", |failed| reason(&failed.fault)),
            "wait": retry.wait.as_ref().and_then(|wait| wait.took).map(seconds),
            "duration": ended.map(|ended| seconds(ended.saturating_sub(began))),
            "success": success,
        });
        self.to.write_all(if std::mem::take(&mut self.first) { b"\n" } else { b",\n" })?;
        serde_json::to_writer(&mut self.to, &entry).map_err(io::Error::from)
    }

    /// There are no more.
    ///
    /// # Errors
    /// Where that cannot be written.
    pub fn end(mut self) -> io::Result<()> {
        if self.form == Form::RetryStats {
            self.to.write_all(if self.first { b"]\n" } else { b"\n]\n" })?;
        }
        self.to.flush()
    }
}

#[expect(clippy::cast_precision_loss, reason = "no wait is that long")]
fn seconds(ms: u64) -> f64 {
    ms as f64 / 1000.0
}

/// The reason as codex-retry has them, with `other` for what it did not tell apart.
fn reason(fault: &str) -> &'static str {
    match Fault::ALL.into_iter().find(|known| known.name() == fault) {
        Some(fault) if fault.heals_by_waiting() => "overload",
        Some(Fault::NoAnswer) => "timeout",
        Some(_) | None => "other",
    }
}
