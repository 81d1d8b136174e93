//! The log on standard error: silent when healthy, one line per wait, one closing line per call that was retried.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use relay_core::Moment;
use relay_core::event::{CallId, Closing, Event, Labels, Outcome};

use super::{Notice, Observer};

/// Writes log lines.
#[derive(Debug, Default)]
pub struct Log {
    // The labels of open calls; events carry none but the first.
    labels: Mutex<BTreeMap<CallId, Labels>>,
}

impl Observer for Log {
    fn see(&self, call: CallId, _at: Moment, event: &Event) {
        let mut open = self.labels.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::CallOpened { labels, inherited_sends } => {
                if *inherited_sends > 0 {
                    debug(&format!("[resend] by=client sends_before={inherited_sends} id={call}"));
                }
                open.insert(call, labels.clone());
            }
            Event::WaitStarted { .. } | Event::StreamCut { .. } | Event::FaultSeen { .. } => {
                if let Some(line) = open.get(&call).and_then(|labels| line(call, labels, event)) {
                    info(&line);
                }
            }
            Event::CallClosed(closing) => {
                let labels = open.remove(&call);
                if let Some(line) = labels.and_then(|labels| closing_line(call, &labels, closing)) {
                    info(&line);
                }
            }
            Event::SendStarted { .. }
            | Event::HeadArrived { .. }
            | Event::GrantTaken { .. }
            | Event::Committed { .. } => {}
        }
    }

    fn notice(&self, notice: &Notice) {
        match notice {
            Notice::Listening { url } => info(&format!(
                "Steady Relay listening on {url}\n  \
                 next: point a client's base URL here, or start one with `steady-relay run -- codex`\n  \
                 look: {url}/__steady/status"
            )),
            Notice::Advice(words) => warn(words),
            Notice::Draining { open: 0, .. } => info("stopping: no call is open"),
            Notice::Draining { open, within } => info(&format!(
                "stopping: {open} {} open, waiting for {} at most {:.0} s; once more to stop now",
                if *open == 1 { "call is" } else { "calls are" },
                if *open == 1 { "it" } else { "them" },
                within.as_secs_f64()
            )),
            Notice::Stopping { open: 0 } => {}
            Notice::Stopping { open } => warn(&format!("stopped with {open} open calls dropped")),
            Notice::AcceptFailed(words) => warn(&format!("cannot accept connections for now: {words}")),
        }
    }
}

fn debug(line: &str) {
    tracing::event!(tracing::Level::DEBUG, "{line}");
}

fn info(line: &str) {
    tracing::event!(tracing::Level::INFO, "{line}");
}

fn warn(line: &str) {
    tracing::event!(tracing::Level::WARN, "{line}");
}

fn line(call: CallId, labels: &Labels, event: &Event) -> Option<String> {
    let model = labels.model.as_deref().unwrap_or("-");
    let upstream = &labels.upstream;
    match event {
        Event::WaitStarted { send, wait, fault, status } => Some(format!(
            "[retry] send={send} status={} fault={} wait={:.1}s model={model} upstream={upstream} id={call}",
            status.map_or_else(|| "-".to_owned(), |status| status.to_string()),
            fault.name(),
            wait.as_secs_f64()
        )),
        Event::StreamCut { fault, cuts } => Some(format!(
            "[cut] fault={} cuts={cuts} model={model} upstream={upstream} id={call}",
            fault.name()
        )),
        Event::CallOpened { .. }
        | Event::SendStarted { .. }
        | Event::HeadArrived { .. }
        | Event::FaultSeen { .. }
        | Event::GrantTaken { .. }
        | Event::Committed { .. }
        | Event::CallClosed(_) => None,
    }
}

/// One line for a call that was retried or that the relay did not serve; none for a healthy one.
fn closing_line(call: CallId, labels: &Labels, closing: &Closing) -> Option<String> {
    let quiet = match closing.outcome {
        Outcome::Served | Outcome::Passed | Outcome::ClientLeft => closing.sends < 2,
        Outcome::Returned | Outcome::Refused | Outcome::GaveUp | Outcome::Broken | Outcome::Cut => false,
    };
    if quiet {
        return None;
    }
    let fault = closing.last_fault.map_or("-", relay_core::Fault::name);
    let billed = match closing.maybe_billed_twice {
        0 => String::new(),
        count => format!(" maybe_billed_twice={count}"),
    };
    Some(format!(
        "[done] outcome={} sends={} waited={:.1}s fault={fault}{billed} model={} upstream={} id={call}",
        closing.outcome.name(),
        closing.sends,
        closing.waited.as_secs_f64(),
        labels.model.as_deref().unwrap_or("-"),
        labels.upstream,
    ))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use relay_core::Fault;
    use relay_core::evidence::Operation;

    use super::*;

    fn labels() -> Labels {
        Labels {
            client: "codex",
            dialect: "openai_responses",
            operation: Operation::Generation,
            upstream: "openai".into(),
            model: Some("gpt-x".into()),
            profile: "interactive".into(),
        }
    }

    fn closing(outcome: Outcome, sends: u32) -> Closing {
        Closing {
            outcome,
            sends,
            waited: Duration::from_millis(6300),
            last_fault: Some(Fault::AtCapacity),
            capacity_faults: 2,
            maybe_billed_twice: 0,
            took: Duration::from_secs(9),
        }
    }

    #[test]
    fn a_wait_is_one_line() {
        let event = Event::WaitStarted {
            send: 2,
            wait: Duration::from_millis(2100),
            fault: Fault::AtCapacity,
            status: Some(503),
        };
        insta::assert_snapshot!(
            line(CallId(7), &labels(), &event).unwrap(),
            @"[retry] send=2 status=503 fault=at_capacity wait=2.1s model=gpt-x upstream=openai id=c7"
        );
    }

    #[test]
    fn a_retried_call_closes_with_one_line_and_a_healthy_one_with_none() {
        insta::assert_snapshot!(
            closing_line(CallId(7), &labels(), &closing(Outcome::Served, 3)).unwrap(),
            @"[done] outcome=served sends=3 waited=6.3s fault=at_capacity model=gpt-x upstream=openai id=c7"
        );
        assert_eq!(closing_line(CallId(7), &labels(), &closing(Outcome::Served, 1)), None);
        assert!(closing_line(CallId(7), &labels(), &closing(Outcome::Broken, 1)).is_some());
    }
}
