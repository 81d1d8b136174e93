//! Collectors that are not there, hang, refuse; the program with the standard variables; and that nothing secret goes
//! to one.

use std::time::Duration;

use relay_sim::fixtures::codex as wire;
use relay_sim::{Refused, Reply, Request, Script, Upstream};
use steady_relay::observe::Notice;
use tokio::time::Instant;

use crate::collector::{collector, spans, spans_in, telling};
use crate::support::{Bench, SOON, TURN, ms, plain, towards};

async fn service() -> Upstream {
    Upstream::start(Script::by(|_, _| Reply::sse(wire::turn("x")))).await.unwrap()
}

/// Waits until the relay has said this.
async fn until(bench: &Bench, words: &str) {
    let by = Instant::now() + SOON;
    let has = |notice: &Notice| matches!(notice, Notice::Advice(said) if said.contains(words));
    while !bench.recorder().notices().iter().any(has) {
        assert!(Instant::now() < by, "never said {words:?}: {:#?}", bench.recorder().notices());
        tokio::time::sleep(ms(5)).await;
    }
}

#[tokio::test]
async fn a_dead_collector_slows_nothing_and_gets_it_all_once_it_is_there() {
    let up = service().await;
    let dead = Refused::port().unwrap();
    let bench = Bench::with(telling(towards(&up.url()), &dead.url())).await;
    for _ in 0..20 {
        let asked = Instant::now();
        assert_eq!(bench.ask(&plain(TURN)).await.status, 200);
        assert!(asked.elapsed() < Duration::from_secs(5));
    }
    until(&bench, "do not reach").await;
    let alive = dead.open(Script::by(|_, _| Reply::status(200))).unwrap();
    assert_eq!(spans(&alive, 40).await.len(), 40);
    until(&bench, "again").await;
    let told = bench.recorder().notices().iter().filter(|said| format!("{said:?}").contains("reach")).count();
    assert_eq!(told, 2, "each once: {:#?}", bench.recorder().notices());
}

#[tokio::test]
async fn a_collector_that_hangs_slows_nothing_and_holds_up_no_end() {
    let (up, hung) = (service().await, collector(|_| Reply::silence()).await);
    let bench = Bench::with(telling(towards(&up.url()), &hung.url())).await;
    assert_eq!(bench.ask(&plain(TURN)).await.status, 200);
    assert!(hung.wait_for_requests(1, SOON).await);
    for _ in 0..20 {
        assert_eq!(bench.ask(&plain(TURN)).await.status, 200);
    }
    let asked = Instant::now();
    bench.drain().await;
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
}

#[tokio::test]
async fn what_is_refused_for_good_is_lost_and_told_of_and_the_rest_is_tried_again() {
    let up = service().await;
    let refusing = Upstream::start(Script::by(|seen, number| match (seen.path(), number) {
        ("/v1/metrics", _) => Reply::status(200),
        (_, 0) => Reply::status(503).header("retry-after", "0"),
        (_, _) => Reply::status(400),
    }));
    let refusing = refusing.await.unwrap();
    let mut config = telling(towards(&up.url()), &refusing.url());
    config.otlp.metrics = false;
    let bench = Bench::with(config).await;
    assert_eq!(bench.ask(&plain(TURN)).await.status, 200);
    until(&bench, "it said 503").await;
    until(&bench, "2 events or spans were left out").await;
    let got = refusing.requests();
    assert!(got.len() >= 2 && spans_in(&got).len() >= 4, "it was tried again: {}", got.len());
}

#[cfg(unix)]
mod programs {
    use rustix::process::Signal;

    use super::*;
    use crate::collector::{metrics_in, said};
    use crate::started::{Folder, Serving, program};

    const CANARY: &str = "CANARY0SECRET";

    fn ask() -> Request {
        Request::post(&format!("/v1/responses?key={CANARY}"))
            .header("authorization", format!("Bearer sk-proj-{CANARY}"))
            .header("cookie", format!("a={CANARY}"))
            .header("tracestate", format!("v={CANARY}"))
            .header("traceparent", format!("00-{CANARY}"))
            .header("baggage", format!("user={CANARY}"))
            .header("x-request-id", format!("sk-proj-{CANARY}"))
            .header("user-agent", format!("x {CANARY}"))
            .json(format!(
                r#"{{"model":"sk-ant-{CANARY}","stream":true,"input":[{{"role":"user","content":"{CANARY}"}}]}}"#
            ))
    }

    fn replies(number: usize) -> Reply {
        let body = format!(
            r#"{{"error":{{"code":"sk-proj-{CANARY}","message":"{CANARY} sk-proj-{CANARY} in /home/{CANARY}"}}}}"#
        );
        let answer =
            |status| Reply::status(status).header("x-request-id", format!("sk-proj-{CANARY}")).json(&body);
        match number % 4 {
            0 => answer(503),
            1 => Reply::sse(wire::turn(CANARY)),
            2 => answer(400),
            _ => Reply::raw(format!("{CANARY}\r\n\r\n")).close(),
        }
    }

    /// The program, with everything told to the collector by the standard variables.
    async fn serving(home: &Folder, up: &Upstream, variables: &[(&str, &str)]) -> Serving {
        let mut command = program(home);
        command.args(["--listen", "127.0.0.1", "--port", "0", "--upstream", &up.url()]);
        command.envs(variables.iter().copied());
        Serving::start(&mut command).await
    }

    async fn calls(relay: &Serving, count: usize) {
        for _ in 0..count {
            let mut client = relay_sim::Client::connect(relay.addr).await.unwrap().patience(SOON);
            client.ask(&ask()).await.unwrap();
        }
    }

    #[tokio::test]
    async fn the_standard_variables_hold_and_the_last_call_is_sent_at_the_end_with_no_secret() {
        let up = Upstream::start(Script::by(|_, number| replies(number))).await.unwrap();
        let (collector, home) = (collector(|_| Reply::status(200)).await, Folder::new());
        let url = format!("{}/under/", collector.url());
        let variables = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str()),
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=s3cret%20value"),
            ("OTEL_SERVICE_NAME", "night-shift"),
        ];
        let mut relay = serving(&home, &up, &variables).await;
        calls(&relay, 3).await;
        relay.signal(Signal::TERM);
        assert_eq!(relay.end().await.code(), Some(0));
        let mut got = collector.requests();
        assert!(!got.is_empty(), "{}", relay.said());
        for request in &mut got {
            assert_eq!(request.header("x-key"), Some("s3cret value"));
            assert!(request.header("user-agent").unwrap().starts_with("steady-relay/"));
            assert!(!String::from_utf8_lossy(&request.body).contains(CANARY), "{}", request.text());
            request.target = request.target.replace("/under/", "/");
        }
        let names = String::from_utf8_lossy(&got[0].body).into_owned();
        assert!(names.contains("night-shift"), "{names}");
        let calls = spans_in(&got).iter().filter(|span| span.name.starts_with("call")).count();
        assert_eq!((calls, metrics_in(&got).contains_key("steady_relay_calls")), (3, true));
        assert!(spans_in(&got).iter().any(|span| said(span).contains_key("error.type")));
        assert!(!relay.said().contains("s3cret"), "{}", relay.said());
    }

    #[tokio::test]
    async fn a_variable_switches_it_off() {
        let up = service().await;
        let (collector, home) = (collector(|_| Reply::status(200)).await, Folder::new());
        let url = collector.url();
        let variables = [("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str()), ("OTEL_SDK_DISABLED", "true")];
        let mut relay = serving(&home, &up, &variables).await;
        calls(&relay, 1).await;
        relay.signal(Signal::TERM);
        assert_eq!(relay.end().await.code(), Some(0));
        assert_eq!(collector.connections(), 0);
    }
}
