//! Another model in place of the one that a call asks for, once that has taken no calls for as long as its owner wrote
//! down. When that is so is told by [`relay_core::closed`]; here is what is sent then, and how its answer is marked.
//!
//! Nobody gets another model unseen: a header says so, and a comment at the beginning of a stream, where the clients of
//! the dialect bear one.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};
use relay_core::config;
use relay_core::dialect::Dialect;
use relay_core::failure::label;
use relay_core::json::{model_places, model_value};

use crate::body::SendBody;
use crate::lanes::Places;
use crate::legs::Leg;
use crate::shared::Shared;
use crate::understand::lane_at;

/// Names the model that has answered, and the one that was asked for.
const MODEL: HeaderName = HeaderName::from_static("x-steady-model");

/// Headers that say something of the body as a whole: with another one they would be wrong.
const OF_THE_BODY: [&str; 8] = [
    "content-md5",
    "digest",
    "content-digest",
    "repr-digest",
    "signature",
    "signature-input",
    "x-amz-content-sha256",
    "x-amz-date",
];

/// Whether another body fits below these headers.
pub(crate) fn may_change(headers: &HeaderMap) -> bool {
    !OF_THE_BODY.iter().any(|name| headers.contains_key(*name))
}

/// What may answer in place of the model that a call asks for.
pub(crate) struct Fallback {
    asked: Box<str>,
    after: Duration,
    dialect: &'static dyn Dialect,
    streams: bool,
    /// Those that have no leg yet, each with the places that its route states.
    models: Vec<(String, Option<Places>)>,
}

impl Fallback {
    /// What the settings say of a model, if that is any other; `places`: those that the route of a call for such a one states.
    pub(crate) fn of(
        asked: &str,
        said: &config::Fallback,
        (dialect, streams): (&'static dyn Dialect, bool),
        places: impl Fn(&str) -> Option<Places>,
    ) -> Option<Self> {
        let models = said.to.iter().filter(|model| *model != asked);
        let models: Vec<_> = models.map(|model| (model.clone(), places(model))).collect();
        let (asked, after) = (label(asked), said.after);
        (!models.is_empty()).then_some(Self { asked, after, dialect, streams, models })
    }

    /// How long the model that was asked for has to take no calls before.
    pub(crate) const fn after(&self) -> Duration {
        self.after
    }

    /// The model that was asked for, as a label.
    pub(crate) fn asked(&self) -> Box<str> {
        self.asked.clone()
    }

    /// One leg for each model at each of these, which are there for the model that was asked for; made once. None where
    /// the body names no model, or where all models have one lane.
    pub(crate) fn legs(&mut self, shared: &Shared, body: &Bytes, all: &[&Leg]) -> Vec<Leg> {
        let models = std::mem::take(&mut self.models);
        let Some(places) = model_places(body).map(Arc::<[Range<usize>]>::from) else { return Vec::new() };
        let mut legs: Vec<Leg> = Vec::new();
        for (model, of_route) in models {
            let instead = Arc::new(Instead {
                model: label(&model),
                asked: self.asked.clone(),
                value: Bytes::from(model_value(&model)),
                places: Arc::clone(&places),
                comments: self.dialect.bears_comments(),
            });
            for leg in all {
                let leg = self.leg(shared, leg, (&model, of_route.clone()), (&instead, body));
                // Where all models of an upstream have one line, there is none to go to.
                let is_known = |known: &Leg| Arc::ptr_eq(&known.lane, &leg.lane);
                if !all.iter().any(|known| is_known(known)) && !legs.iter().any(is_known) {
                    legs.push(leg);
                }
            }
        }
        legs
    }

    fn leg(
        &self,
        shared: &Shared,
        leg: &Leg,
        (model, of_route): (&str, Option<Places>),
        (instead, body): (&Arc<Instead>, &Bytes),
    ) -> Leg {
        let upstream = &leg.target.upstream;
        let places = of_route.or_else(|| upstream.max_running.map(|most| Places { most, route: None }));
        let of = (&*leg.headers, leg.lent.as_ref(), leg.account);
        let lane = lane_at(shared, &leg.target, of, (Some(model), places));
        let mut headers = HeaderMap::clone(&leg.headers);
        if headers.contains_key(CONTENT_LENGTH) {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(instead.length(body)));
        }
        if self.streams {
            // Nothing can be said in a stream that is encoded.
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        Leg {
            target: leg.target.clone(),
            headers: headers.into(),
            lent: leg.lent.clone(),
            way: leg.way.clone(),
            account: leg.account,
            rules: Arc::clone(&leg.rules),
            lane,
            warms: upstream.warm.as_ref().is_some_and(|warm| warm.is_for(Some(model))),
            weight: leg.weight,
            instead: Some(Arc::clone(instead)),
        }
    }
}

/// Another model in the place of the one that was asked for.
pub(crate) struct Instead {
    model: Box<str>,
    asked: Box<str>,
    /// Its name as it is written in a body, and where.
    value: Bytes,
    places: Arc<[Range<usize>]>,
    comments: bool,
}

impl Instead {
    /// Its name as a label.
    pub(crate) fn model(&self) -> Box<str> {
        self.model.clone()
    }

    fn length(&self, body: &Bytes) -> usize {
        let names: usize = self.places.iter().map(Range::len).sum();
        body.len() - names + self.value.len() * self.places.len()
    }

    /// The body that names this model, in pieces of the one that came.
    pub(crate) fn body(&self, came: &Bytes) -> SendBody {
        let mut from = 0;
        let mut pieces = Vec::with_capacity(2 * self.places.len() + 1);
        for place in self.places.iter() {
            pieces.push(came.slice(from..place.start));
            pieces.push(self.value.clone());
            from = place.end;
        }
        pieces.push(came.slice(from..));
        SendBody::Pieces(pieces.into())
    }

    /// Marks an answer's head. What its stream begins with, where something can be said there.
    pub(crate) fn mark(&self, headers: &mut HeaderMap) -> Option<Bytes> {
        let Self { model, asked, .. } = self;
        if let Ok(value) = HeaderValue::from_str(&format!("{model}; instead-of={asked}")) {
            headers.insert(MODEL, value);
        }
        let is = |name: HeaderName, wanted: &str| {
            let value = headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or(wanted);
            let value = value.split(';').next().unwrap_or_default().trim();
            value.eq_ignore_ascii_case(wanted)
        };
        let is_stream = headers.contains_key(CONTENT_TYPE) && is(CONTENT_TYPE, "text/event-stream");
        (self.comments && is_stream && is(CONTENT_ENCODING, "identity"))
            .then(|| Bytes::from(format!(": steady-relay: {model} answers instead of {asked}\n\n")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instead(places: Vec<Range<usize>>, comments: bool) -> Instead {
        let (model, asked, value) = (label("gpt-y"), label("gpt-x"), Bytes::from_static(b"\"gpt-y\""));
        Instead { model, asked, value, places: places.into(), comments }
    }

    #[test]
    fn a_body_with_another_model_is_as_long_as_it_says() {
        let body = Bytes::from_static(br#"{"model":"x","model":"longer"}"#);
        let instead = instead(model_places(&body).unwrap(), true);
        let SendBody::Pieces(pieces) = instead.body(&body) else { panic!("in pieces") };
        let whole: Vec<u8> = pieces.iter().flatten().copied().collect();
        assert_eq!(whole, br#"{"model":"gpt-y","model":"gpt-y"}"#);
        assert_eq!(instead.length(&body), whole.len());
    }

    #[test]
    fn every_answer_is_marked_and_a_stream_says_so_where_it_can() {
        let marked = |kind: &'static str, encoding: Option<&'static str>, comments| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
            headers.extend(encoding.map(|name| (CONTENT_ENCODING, HeaderValue::from_static(name))));
            let comment = instead(Vec::new(), comments).mark(&mut headers);
            assert_eq!(headers[MODEL], "gpt-y; instead-of=gpt-x");
            comment
        };
        let comment = Bytes::from_static(b": steady-relay: gpt-y answers instead of gpt-x\n\n");
        assert_eq!(marked("text/event-stream", None, true), Some(comment.clone()));
        assert_eq!(marked("Text/Event-Stream; charset=utf-8", Some("identity"), true), Some(comment));
        assert_eq!(marked("text/event-stream", Some("gzip"), true), None);
        assert_eq!(marked("text/event-stream", None, false), None);
        assert_eq!(marked("application/json", None, true), None);
        assert_eq!(instead(Vec::new(), true).mark(&mut HeaderMap::new()), None);
    }

    #[test]
    fn comments_go_where_clients_skip_them() {
        for (path, bears) in [
            ("/v1/responses", true),
            ("/v1/chat/completions", true),
            ("/v1/messages", true),
            ("/v1internal:streamGenerateContent", false),
            ("/api/chat", false),
        ] {
            let dialect = relay_core::dialect::route(&http::Method::POST, path).dialect;
            assert_eq!(dialect.bears_comments(), bears, "{path} {}", dialect.name());
        }
    }

    #[test]
    fn what_is_signed_stays_as_it_is() {
        let mut headers = HeaderMap::new();
        headers.insert("authorization", HeaderValue::from_static("Bearer x"));
        assert!(may_change(&headers));
        headers.insert("content-digest", HeaderValue::from_static("sha-256=:x:"));
        assert!(!may_change(&headers));
    }
}
