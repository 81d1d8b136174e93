//! What was answered when a lane was parked. Whoever comes later and does not wait that long gets it without a send.
//! Not when a lane is parked (that is `relay_core::gate`), nor who is told what (`relay_core::answer`).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AGE, CONTENT_ENCODING, CONTENT_LENGTH, SET_COOKIE, TRAILER};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use relay_core::dialect::responses_socket::wrap;
use relay_core::failure::{Failure, Told};
use relay_core::{Evidence, Fault, Moment};
use tokio_tungstenite::tungstenite::Utf8Bytes;

use crate::answer::Answer;
use crate::decode::{DecodeLimits, Decoder, Encoding};
use crate::headers::forwardable_answer;
use crate::open::OpenCall;
use crate::reply::ReplyBody;
use crate::snapshots::Answered;

/// No more is remembered of an answer; what is longer is told in our words.
const MOST: usize = 64 << 10;

/// An answer is remembered just before its lane hears of it.
const SETTLED: Duration = Duration::from_secs(10);

/// The answer that parked a lane.
pub(crate) struct Spent {
    pub(crate) failure: Failure,
    form: Form,
    by: Speech,
    at: Moment,
}

/// Whom an answer was for: only what asks alike can be told alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Speech {
    pub(crate) dialect: &'static str,
    pub(crate) streams: bool,
}

/// An answer as it came.
enum Form {
    Http(StatusCode, HeaderMap, Bytes),
    /// On a WebSocket.
    Messages(Vec<Utf8Bytes>),
    /// It cannot be told again: it was too long, or nobody could read it.
    Lost,
}

impl Spent {
    /// Of an answer over HTTP, read as far as that is worth it.
    pub(crate) async fn told(
        open: &OpenCall,
        by: Speech,
        failure: &Failure,
        answer: Option<&mut Answer>,
    ) -> Self {
        let mut form = Form::Lost;
        if let Some(answer) = answer
            && answer.read_rest().await
        {
            form = Form::of(answer.so_far());
        }
        Self { failure: failure.clone(), form, by, at: open.now() }
    }

    /// Of one in messages.
    pub(crate) fn in_messages(open: &OpenCall, by: Speech, failure: &Failure, texts: Vec<Utf8Bytes>) -> Self {
        let fits = !texts.is_empty() && texts.iter().map(|text| text.len()).sum::<usize>() <= MOST;
        let form = if fits { Form::Messages(texts) } else { Form::Lost };
        Self { failure: failure.clone(), form, by, at: open.now() }
    }

    /// Whether the lane that it is to park has heard of it by now.
    pub(crate) fn is_old(&self, now: Moment) -> bool {
        now.since(self.at) > SETTLED
    }

    /// A failure told by a status means the same however its answer was to come.
    fn is_for(&self, by: Speech) -> bool {
        let streams_alike = self.by.streams == by.streams || self.failure.told == Told::ByStatus;
        self.by.dialect == by.dialect && streams_alike
    }

    /// The answer for a request over HTTP that asked like this; `None`: there is none for it.
    pub(crate) fn response(&self, by: Speech, now: Moment) -> Option<Response<ReplyBody>> {
        let Form::Http(status, headers, body) = &self.form else { return None };
        if !self.is_for(by) {
            return None;
        }
        let mut response = Response::new(ReplyBody::own(body.clone()));
        *response.status_mut() = *status;
        *response.headers_mut() = headers.clone();
        // RFC 9111, section 5.1: what is told again says for how long it has been known.
        response.headers_mut().insert(AGE, HeaderValue::from(now.since(self.at).as_secs()));
        Some(response)
    }

    /// The same for one on a WebSocket.
    pub(crate) fn messages(&self, by: Speech) -> Option<Vec<Utf8Bytes>> {
        match &self.form {
            Form::Messages(texts) if self.is_for(by) => Some(texts.clone()),
            Form::Http(status, headers, body) if self.by.dialect == by.dialect && !status.is_success() => {
                Some(vec![wrap(status.as_u16(), headers, body).into()])
            }
            Form::Messages(_) | Form::Http(..) | Form::Lost => None,
        }
    }
}

impl Form {
    fn of(answered: Answered) -> Self {
        let status = answered.status.and_then(|status| StatusCode::from_u16(status).ok());
        let wire = answered.body.concat();
        let (Some(status), Some(text)) = (status, plain(&answered.headers, &wire)) else { return Self::Lost };
        let mut headers = forwardable_answer(answered.headers);
        // It is told anew: in plain text, with a length of its own, to somebody whose cookies these are not.
        for name in [CONTENT_ENCODING, CONTENT_LENGTH, SET_COOKIE, TRAILER] {
            headers.remove(name);
        }
        Self::Http(status, headers, text)
    }
}

/// The plain text of an answer's body: not everyone who comes later reads the same encodings.
fn plain(headers: &HeaderMap, wire: &[u8]) -> Option<Bytes> {
    let encoding = Encoding::named(headers.get_all(CONTENT_ENCODING))?;
    let mut text = Vec::new();
    let limits = DecodeLimits { per_push: MOST, total: MOST };
    Decoder::new(encoding, limits).push(wire, &mut text).ok()?;
    Some(text.into())
}

/// What is said where nobody remembers the answer.
pub(crate) fn unknown() -> Failure {
    let failure = Failure::of_transport(Fault::QuotaSpent, Evidence::Refused);
    Failure { evidence: None, told: Told::ByStatus, status: Some(429), ..failure }
}

/// What one lane remembers.
pub(crate) type Remembered = Option<Arc<Spent>>;
