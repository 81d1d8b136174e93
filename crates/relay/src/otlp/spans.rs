//! The spans of a call that is over: one for the call, one for each of its sends. Pure: made from the record that the
//! history has, and no more is in them.

use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::trace::v1::span::{Event, SpanKind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span, SpanFlags, Status};
use relay_core::evidence::Operation;
use relay_core::trace::Trace;

use super::resource::{is_so, number, seconds, text};
use crate::history::record::{CallRecord, ClosedRecord, FailedRecord, SendRecord, WaitRecord, WaitWhy};

/// The spans of a call in its trace, that of the call first; none of a call that is not over.
pub(super) fn spans(call: &CallRecord, trace: &Trace) -> Vec<Span> {
    let Some(closed) = &call.closed else { return Vec::new() };
    let of = Of { call, closed, trace };
    let began = call.sends.iter().enumerate().filter(|(_, send)| send.began.is_some());
    std::iter::once(of.whole()).chain(began.map(|(nth, send)| of.send(nth, send))).collect()
}

/// A call that is over.
struct Of<'a> {
    call: &'a CallRecord,
    closed: &'a ClosedRecord,
    trace: &'a Trace,
}

/// What a send asks of a model, in the words of the conventions.
struct Generates {
    provider: &'static str,
    operation: &'static str,
}

impl Of<'_> {
    fn whole(&self) -> Span {
        let Self { closed, trace, .. } = self;
        Span {
            name: self.named("call"),
            kind: SpanKind::Server.into(),
            parent_span_id: trace.parent.map(|parent| parent.to_be_bytes().to_vec()).unwrap_or_default(),
            flags: self.flags(trace.parent.is_some()),
            end_time_unix_nano: self.at(closed.took),
            attributes: self.of_call(),
            events: self.events(),
            status: status(failed(closed)),
            ..self.span(trace.span, 0)
        }
    }

    fn send(&self, nth: usize, send: &SendRecord) -> Span {
        let began = send.began.unwrap_or_default();
        let is_last = nth + 1 == self.call.sends.len();
        // The last one lasts as long as its answer; one before it that did not fail ended with what came next.
        let next = self.call.sends.get(nth + 1);
        let next = next.and_then(|next| next.wait.as_ref().map(|wait| wait.began).or(next.began));
        let ended = send.failed.as_ref().map(|failed| failed.at).or(next).unwrap_or(self.closed.took);
        let why = send.failed.as_ref().map(|failed| failed.fault.clone());
        let why = why.or_else(|| failed(self.closed).filter(|_| is_last));
        Span {
            name: self.named(self.generates().map_or("send", |generates| generates.operation)),
            kind: SpanKind::Client.into(),
            parent_span_id: self.trace.span.to_be_bytes().to_vec(),
            flags: self.flags(false),
            end_time_unix_nano: self.at(ended.max(began)),
            attributes: self.of_send(send, is_last),
            events: send.head.map(|head| event("head", self.at(head), Vec::new())).into_iter().collect(),
            status: status(why),
            ..self.span(self.trace.send(send.send), began)
        }
    }

    fn span(&self, span: u64, began: u64) -> Span {
        Span {
            trace_id: self.trace.id.to_be_bytes().to_vec(),
            span_id: span.to_be_bytes().to_vec(),
            start_time_unix_nano: self.at(began),
            ..Span::default()
        }
    }

    /// A moment of the call, in nanoseconds since 1970.
    const fn at(&self, millis: u64) -> u64 {
        self.call.opened.saturating_add(millis).saturating_mul(1_000_000)
    }

    fn flags(&self, is_remote: bool) -> u32 {
        let remote = if is_remote { SpanFlags::ContextIsRemoteMask as u32 } else { 0 };
        u32::from(self.trace.flags()) | SpanFlags::ContextHasIsRemoteMask as u32 | remote
    }

    fn of_call(&self) -> Vec<KeyValue> {
        let Self { call, closed, .. } = self;
        let mut all = vec![
            text("steady_relay.call", &format!("c{}", call.call)),
            text("steady_relay.client", &call.client),
            text("steady_relay.dialect", &call.dialect),
            text("steady_relay.operation", &call.operation),
            text("steady_relay.transport", &call.transport),
            text("steady_relay.upstream", &call.upstream),
            text("steady_relay.profile", &call.profile),
            text("steady_relay.lane", &call.lane),
            text("steady_relay.outcome", &closed.outcome),
            number("steady_relay.sends", closed.sends.into()),
            seconds("steady_relay.waited", closed.waited),
            number("http.request.body.size", closed.received),
            number("http.response.body.size", closed.sent),
        ];
        all.extend(call.pool.as_ref().map(|pool| text("steady_relay.pool", pool)));
        all.extend(call.bound.as_ref().map(|bound| text("steady_relay.bound", bound)));
        all.extend(call.model.as_ref().map(|model| text("gen_ai.request.model", model)));
        all.extend(call.request_id.as_ref().map(|id| text("steady_relay.request_id", id)));
        all.extend(closed.why.as_ref().map(|why| text("steady_relay.why", why)));
        all.extend(closed.status.map(|status| number("http.response.status_code", status.into())));
        all.extend(failed(closed).map(|why| text("error.type", &why)));
        for (key, count) in [
            ("steady_relay.inherited_sends", call.inherited_sends),
            ("steady_relay.inherited_failed", call.inherited_failed),
            ("steady_relay.inherited_resends", call.inherited_resends),
            ("steady_relay.sends_left_out", call.left_out),
            ("steady_relay.capacity_faults", closed.capacity_faults),
            ("steady_relay.maybe_billed_twice", closed.maybe_billed_twice),
        ] {
            all.extend((count > 0).then(|| number(key, count.into())));
        }
        all
    }

    /// What is done to the model, and the model: so the conventions name a span.
    fn named(&self, what: &str) -> String {
        self.call.model.as_ref().map_or_else(|| what.to_owned(), |model| format!("{what} {model}"))
    }

    /// What the conventions call it, where a model is asked for an answer.
    fn generates(&self) -> Option<Generates> {
        let (provider, operation) = match self.call.dialect.as_str() {
            "openai_responses" | "openai_chat" => ("openai", "chat"),
            "anthropic" => ("anthropic", "chat"),
            "gemini" => ("gcp.gemini", "generate_content"),
            "ollama" => ("ollama", "chat"),
            _ => return None,
        };
        (self.call.operation == Operation::Generation.name()).then_some(Generates { provider, operation })
    }

    fn of_send(&self, send: &SendRecord, is_last: bool) -> Vec<KeyValue> {
        let moved =
            self.call.sends.iter().rev().filter(|of| of.send <= send.send).find_map(|of| of.moved.as_ref());
        let upstream = moved.map_or(&self.call.upstream, |moved| &moved.upstream);
        let mut all = vec![text("server.address", upstream)];
        all.extend(send.moved.as_ref().map(|moved| text("steady_relay.moved", &moved.why)));
        // By the conventions, how many went before it.
        all.extend((send.send > 1).then(|| number("http.request.resend_count", u64::from(send.send) - 1)));
        all.extend(send.status.map(|status| number("http.response.status_code", status.into())));
        all.extend(send.request_id.as_ref().map(|id| text("steady_relay.request_id", id)));
        all.extend(send.may_run_twice.then(|| is_so("steady_relay.may_run_twice")));
        if let Some(Generates { provider, operation }) = self.generates() {
            all.extend([text("gen_ai.provider.name", provider), text("gen_ai.operation.name", operation)]);
            let model = moved.and_then(|moved| moved.model.as_ref()).or(self.call.model.as_ref());
            all.extend(model.map(|model| text("gen_ai.request.model", model)));
        }
        // Those of an answer belong to the send that was answered, so that nobody adds them up twice.
        let of_failure = send.failed.as_ref().and_then(|failed| failed.tokens);
        if let Some(tokens) = of_failure.or(self.closed.tokens.filter(|_| is_last)) {
            all.push(number("gen_ai.usage.input_tokens", tokens.input));
            all.push(number("gen_ai.usage.output_tokens", tokens.output));
            all.push(number("gen_ai.usage.cache_read.input_tokens", tokens.cached));
        }
        if let Some(FailedRecord { fault, evidence, code, rule, told, tokens: _, at: _ }) = &send.failed {
            all.push(text("error.type", fault));
            all.push(text("steady_relay.evidence", evidence.as_deref().unwrap_or("final")));
            all.extend(code.as_ref().map(|code| text("steady_relay.code", code)));
            all.extend(rule.as_ref().map(|rule| text("steady_relay.rule", rule)));
            all.extend(told.map(|told| seconds("steady_relay.told", told)));
        }
        all
    }

    /// The waits, and the moment at which the answer began to go to the client.
    fn events(&self) -> Vec<Event> {
        let waits = self.call.sends.iter().filter_map(|send| send.wait.as_ref());
        let waits = waits.map(|wait| event("wait", self.at(wait.began), of_wait(wait)));
        let committed = self.call.committed.map(|at| event("committed", self.at(at), Vec::new()));
        waits.chain(committed).collect()
    }
}

fn of_wait(wait: &WaitRecord) -> Vec<KeyValue> {
    let WaitRecord { why, planned, took, waiting, notices, began: _ } = wait;
    let why = match why {
        WaitWhy::Told => "told",
        WaitWhy::Backoff => "backoff",
        WaitWhy::Line => "line",
        WaitWhy::Parked => "parked",
        WaitWhy::Circuit => "circuit",
        WaitWhy::Credential => "credential",
        WaitWhy::Cut => "cut",
    };
    let mut all = vec![text("steady_relay.why", why)];
    all.extend(planned.map(|planned| seconds("steady_relay.planned", planned)));
    all.extend(took.map(|took| seconds("steady_relay.took", took)));
    all.extend(waiting.map(|waiting| number("steady_relay.waiting", waiting as u64)));
    all.extend((*notices > 0).then(|| number("steady_relay.notices", (*notices).into())));
    all
}

fn event(name: &str, time_unix_nano: u64, attributes: Vec<KeyValue>) -> Event {
    Event { time_unix_nano, name: name.to_owned(), attributes, dropped_attributes_count: 0 }
}

/// What went wrong with a call, in one word. A client that leaves, and a definite answer that what it asked for is
/// wrong, are no failure of the relay or of the service.
fn failed(closed: &ClosedRecord) -> Option<String> {
    let is_failed = match closed.outcome.as_str() {
        "returned" | "refused" | "gave_up" | "broken" => true,
        "passed" => closed.status.is_some_and(|status| status >= 500),
        _ => false,
    };
    is_failed.then(|| closed.last_fault.clone().unwrap_or_else(|| closed.outcome.clone()))
}

/// What went well has no status, as the conventions have it.
fn status(why: Option<String>) -> Option<Status> {
    why.map(|message| Status { message, code: StatusCode::Error.into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::record::{MovedRecord, State, Tokens};
    use crate::history::tests::call;

    fn trace() -> Trace {
        Trace::of(None, [1, 2, 3])
    }

    fn closed(outcome: &str, status: Option<u16>) -> ClosedRecord {
        ClosedRecord {
            outcome: outcome.to_owned(),
            why: None,
            status,
            sends: 2,
            waited: 10,
            took: 100,
            last_fault: Some("overloaded".to_owned()),
            capacity_faults: 1,
            maybe_billed_twice: 0,
            received: 1,
            sent: 2,
            tokens: Some(Tokens { input: 7, cached: 3, output: 5 }),
        }
    }

    fn send(number: u32, began: Option<u64>) -> SendRecord {
        SendRecord { send: number, began, ..SendRecord::default() }
    }

    fn ended(outcome: &str, status: Option<u16>) -> CallRecord {
        let closed = Some(closed(outcome, status));
        CallRecord { sends: vec![send(1, Some(0)), send(2, Some(40))], closed, ..call(1, State::Closed) }
    }

    #[test]
    fn what_failed_is_an_error_and_what_a_client_did_is_none() {
        let rows = [
            ("served", Some(200), false),
            ("passed", Some(400), false),
            ("passed", Some(503), true),
            ("returned", Some(429), true),
            ("refused", Some(503), true),
            ("gave_up", Some(503), true),
            ("broken", Some(200), true),
            ("cut", Some(200), false),
            ("client_left", None, false),
        ];
        for (outcome, status, is_error) in rows {
            let all = spans(&ended(outcome, status), &trace());
            let said: Vec<_> = all.iter().map(|span| span.status.is_some()).collect();
            // The call and the send that it ended with; the one before says for itself whether it failed.
            assert_eq!(said, [is_error, false, is_error], "{outcome} {status:?}");
        }
    }

    #[test]
    fn a_send_is_told_where_it_went() {
        let mut record = ended("served", Some(200));
        record.sends.push(send(3, Some(80)));
        let (upstream, lane, model) = ("second".to_owned(), "1f".to_owned(), Some("gpt-y".to_owned()));
        record.sends[1].moved = Some(MovedRecord { upstream, lane, model, why: "failed".to_owned() });
        let told: Vec<_> =
            spans(&record, &trace()).iter().map(|span| format!("{:?}", span.attributes)).collect();
        let goes = |text: &str| {
            (text.contains("\"second\""), text.contains("\"gpt-y\""), text.contains("\"failed\""))
        };
        let of_sends: Vec<_> = told[1..].iter().map(|text| goes(text)).collect();
        assert_eq!(of_sends, [(false, false, false), (true, true, true), (true, true, false)], "{told:?}");
    }

    #[test]
    fn a_send_ends_with_what_came_next_and_one_that_never_began_is_none() {
        let mut record = ended("client_left", None);
        record.sends.push(send(3, None));
        let all = spans(&record, &trace());
        let times = |span: &Span| {
            let since = |at: u64| at / 1_000_000 - record.opened;
            (since(span.start_time_unix_nano), since(span.end_time_unix_nano))
        };
        assert_eq!(all.iter().map(times).collect::<Vec<_>>(), [(0, 100), (0, 40), (40, 100)]);
        assert_eq!(spans(&call(1, State::Streaming), &trace()), [], "it is not over");
    }

    #[test]
    fn tokens_are_told_once() {
        let all = spans(&ended("served", Some(200)), &trace());
        let told = all.iter().flat_map(|span| &span.attributes);
        let told = told.filter(|value| value.key == "gen_ai.usage.output_tokens");
        assert_eq!(told.collect::<Vec<_>>(), [&number("gen_ai.usage.output_tokens", 5)]);
    }
}
