//! What stands in the file of a snapshot, and how it is made: without secrets, and no longer than it may be.

use std::io;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use relay_core::redact::kept;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Answered, Job, Kept, LONGEST, Requested};
use crate::decode::{Encoding, decode_all};
use crate::history::record::CallRecord;
use crate::hops::HOPS;
use crate::observe::log::timestamp_of;

/// The version of the file.
pub const VERSION: u32 = 1;
/// How long the texts of a body may be, in letters, until it fits; what is shorter says little.
const LENGTHS: [usize; 8] = [1 << 20, 1 << 16, 1 << 14, 1 << 12, 1 << 10, 256, 64, 16];

/// One call that ended badly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The version of this form.
    pub v: u32,
    /// Its name, which its file has too.
    pub id: String,
    /// When the call ended, in milliseconds since 1970.
    pub at: u64,
    /// The program that wrote it.
    pub version: String,
    /// How many before it found no room, or could not be written.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost_before: u64,
    /// What was asked.
    pub request: Request,
    /// What came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// The call, as in the history.
    pub record: CallRecord,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A request, as it went to its upstream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The method.
    pub method: String,
    /// The address.
    pub url: String,
    /// The headers.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Body,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The status, where there was one: a message of a WebSocket has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The headers.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Body,
}

/// A body: JSON, a text, or neither and why.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Body {
    /// Its bytes, as they came.
    pub bytes: u64,
    /// Where it is JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<Value>,
    /// Where it is any other text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Its texts are shortened to so many letters each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortened_to: Option<usize>,
    /// Why it is not here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
}

impl Snapshot {
    pub(super) fn of(job: Job, lost_before: u64) -> Self {
        let Job { at, asked, body, answered, record, settings, folder: _ } = job;
        let id = id_of(at, record.call);
        let request = request(&asked, body, record.closed.as_ref().map_or(0, |closed| closed.received));
        let answer = answered.map(|answered| answer(&answered));
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let mut snapshot = Self { v: VERSION, id, at, version, lost_before, request, answer, record };
        snapshot.fit(usize::try_from(settings.max_size).unwrap_or(usize::MAX));
        snapshot
    }

    /// The file.
    ///
    /// # Errors
    /// None that is known: all of it is text.
    pub fn text(&self) -> serde_json::Result<String> {
        Ok(format!("{}\n", serde_json::to_string_pretty(self)?))
    }

    /// How long the file is.
    fn len(&self) -> usize {
        let mut length = Length(0);
        serde_json::to_writer_pretty(&mut length, self).map_or(usize::MAX, |()| length.0 + 1)
    }

    /// Shortens the texts of the bodies until all of it fits, and leaves them out where it never does.
    fn fit(&mut self, most: usize) {
        for length in LENGTHS {
            if self.len() <= most {
                return;
            }
            self.request.body.shorten(length);
            if let Some(answer) = &mut self.answer {
                answer.body.shorten(length);
            }
        }
        if self.len() > most {
            self.request.body.leave_out();
        }
        if let (true, Some(answer)) = (self.len() > most, &mut self.answer) {
            answer.body.leave_out();
        }
        if self.len() > most {
            self.request.headers.clear();
            self.request.url.truncate(self.request.url.floor_char_boundary(1024));
            self.answer = None;
        }
    }
}

/// Counts what is written.
struct Length(usize);

impl io::Write for Length {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0 += text.len();
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Body {
    fn of(kind: Option<&str>, bytes: &[u8], came: u64) -> Self {
        let body = Self { bytes: came, ..Self::default() };
        if bytes.is_empty() {
            return body;
        }
        match kept::body(kind, bytes) {
            Some(kept::Body::Json(json)) => Self { json: Some(json), ..body },
            Some(kept::Body::Text(text)) => Self { text: Some(text), ..body },
            None => Self { left_out: Some("it is no text of a kind that is known".to_owned()), ..body },
        }
    }

    fn without(why: &str, bytes: u64) -> Self {
        Self { bytes, left_out: Some(why.to_owned()), ..Self::default() }
    }

    fn shorten(&mut self, most: usize) {
        let json = self.json.as_mut().is_some_and(|json| shorten(json, most));
        let text = self.text.as_mut().is_some_and(|text| cut(text, most));
        if json || text {
            self.shortened_to = Some(most);
        }
    }

    fn leave_out(&mut self) {
        *self = Self::without("it does not fit", self.bytes);
    }
}

/// In a list that is longer than all texts together may be, the middle goes. Whether anything did.
fn shorten(value: &mut Value, most: usize) -> bool {
    match value {
        Value::String(text) => cut(text, most),
        Value::Array(all) => {
            let least = most.max(64);
            let is_long = all.len() > least;
            if is_long {
                let left_out = all.len() - least;
                let tail = all.split_off(all.len() - least / 2);
                all.truncate(least - least / 2);
                all.push(format!("[{left_out} more]").into());
                all.extend(tail);
            }
            all.iter_mut().fold(is_long, |changed, one| shorten(one, most) | changed)
        }
        Value::Object(fields) => fields.values_mut().fold(false, |changed, one| shorten(one, most) | changed),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// A text that was cut ends in a mark, which is not counted again. Whether it was cut.
fn cut(text: &mut String, most: usize) -> bool {
    const MARK: &str = " […]";
    let end = text.floor_char_boundary(most);
    let is_long = end + MARK.len() < text.len();
    if is_long {
        text.truncate(end);
        text.push_str(MARK);
    }
    is_long
}

/// The name of a snapshot: when, and which call. They sort as they came.
pub(crate) fn id_of(at: u64, call: u64) -> String {
    let plain: String = timestamp_of(at).chars().filter(char::is_ascii_digit).collect();
    let (day, time) = plain.split_at(plain.len().saturating_sub(9));
    format!("{day}-{time}-c{call}")
}

fn request(asked: &Requested, body: Kept, received: u64) -> Request {
    let Requested { method, upstream, path_and_query, headers, written } = asked;
    let url = format!("{}{path_and_query}", upstream.shown());
    let body = match &body {
        Kept::Body(bytes, _) => {
            let limited = crate::body_text::Written { limit: written.limit.min(LONGEST), ..*written };
            match limited.plain(bytes) {
                Some(plain) => Body::of(kind_of(headers), &plain, bytes.len() as u64),
                None => Body::without("it is encoded in a way that cannot be read", bytes.len() as u64),
            }
        }
        Kept::Not(why) => Body::without(why, received),
    };
    let shown = shown(headers, kept::request_header);
    Request { method: method.to_string(), url: kept::url(&url), headers: shown, body }
}

fn answer(answered: &Answered) -> Answer {
    let Answered { status, headers, body, kind } = answered;
    let bytes = body.concat();
    let came = bytes.len() as u64;
    let plain = match Encoding::named(headers.get_all(CONTENT_ENCODING)) {
        Some(Encoding::Identity) => Some(Bytes::from(bytes)),
        // Of what came only in part, nothing can be read.
        Some(encoding) => decode_all(encoding, &bytes, LONGEST).ok().map(Bytes::from),
        None => None,
    };
    let body = match plain {
        Some(plain) => Body::of(kind.or_else(|| kind_of(headers)), &plain, came),
        None => Body::without("it is encoded in a way that cannot be read", came),
    };
    Answer { status: *status, headers: shown(headers, kept::answer_header), body }
}

fn kind_of(headers: &HeaderMap) -> Option<&str> {
    headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok())
}

/// Each with its value, as far as that may be shown. A name that is no usual one may be a secret itself.
fn shown(headers: &HeaderMap, value: fn(&str, &str) -> String) -> Vec<(String, String)> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let one = |(name, found): (&http::HeaderName, &HeaderValue)| {
        (kept::text(name.as_str()), value(name.as_str(), &text(found)))
    };
    // The relay's own mark against loops is no part of what was asked.
    headers.iter().filter(|(name, _)| **name != HOPS).map(one).collect()
}
