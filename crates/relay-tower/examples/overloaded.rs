//! A program that embeds the rules, and a pretend service that runs short: it refuses by its status, then inside a
//! stream, then loses a connection, and then answers. Nothing leaves this machine, and no account is needed.
//!
//! ```text
//! cargo run -p steady-relay-tower --example overloaded
//! ```

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::channel::Channel;
use http_body_util::{BodyExt as _, Full};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use steady_relay_tower::relay_core::event::Event;
use steady_relay_tower::relay_core::{Curve, Lang, Profile};
use steady_relay_tower::{BoxError, SteadyLayer, Summary};
use tokio::net::TcpListener;
use tower::{Layer as _, ServiceExt as _};

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example shows what happens")]
async fn main() -> Result<(), BoxError> {
    play(Arc::new(|line| println!("{line}"))).await
}

/// Who is shown what happens.
type Show = Arc<dyn Fn(&str) + Send + Sync>;

/// One call, from its first send to the last word of its answer.
pub(crate) async fn play(show: Show) -> Result<(), BoxError> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let service = tokio::spawn(serve(listener));

    // As it is in any program, but for the curve: nobody wants to look at an example for long.
    let curve = Curve {
        base: Duration::from_millis(200),
        jitter: Duration::from_millis(50),
        ..Profile::interactive().curve
    };
    let profile = Profile { curve, ..Profile::interactive() };
    let observer = Arc::clone(&show);
    let client = SteadyLayer::new(profile)
        .nothing_sent(|error| {
            // It had no connection to send anything on.
            error.downcast_ref::<hyper_util::client::legacy::Error>().is_some_and(|it| it.is_connect())
        })
        .observe(move |call, event| {
            if let Some(line) = line(event) {
                observer(&format!("{call} {line}"));
            }
        })
        .layer(Client::builder(TokioExecutor::new()).build_http());

    let request = Request::post(format!("http://{address}/v1/responses"))
        .header("content-type", "application/json")
        .body(Full::from(r#"{"model":"gpt-5","stream":true,"input":"hello"}"#))?;
    let mut response = client.oneshot(request).await?;

    show(&format!("the answer: {}", response.status()));
    while let Some(frame) = response.body_mut().frame().await {
        let frame = frame?;
        let words =
            frame.data_ref().map(|data| String::from_utf8_lossy(data).into_owned()).unwrap_or_default();
        for data in words.lines().filter(|line| line.starts_with("data: ")) {
            show(&format!("  {data}"));
        }
    }
    if let Some(summary) = response.extensions().get::<Summary>() {
        show(&format!("{} sends, of which these failed:", summary.sends));
        for attempt in &summary.attempts {
            show(&format!("  {}", attempt.words(Lang::English)));
        }
    }
    service.abort();
    Ok(())
}

/// What is worth a line.
fn line(event: &Event) -> Option<String> {
    match event {
        Event::CallOpened { labels, .. } => {
            Some(format!("opened: {} at {}", labels.dialect, labels.upstream))
        }
        Event::SendStarted { send } => Some(format!("send {send}")),
        Event::FaultSeen { fault, .. } => Some(format!("failed: {}", fault.meaning())),
        Event::WaitStarted { wait, .. } => Some(format!("waits for {:.1} s", wait.as_secs_f64())),
        Event::GrantTaken { .. } => Some("is granted another send, though this one may have run".to_owned()),
        Event::Committed { .. } => Some("is answered".to_owned()),
        Event::CallClosed(closing) => Some(format!("ended: {}", closing.outcome.name())),
        Event::WayTaken { .. }
        | Event::HeadArrived { .. }
        | Event::InLine { .. }
        | Event::HeldBack { .. }
        | Event::NoticeGiven { .. }
        | Event::Moved { .. }
        | Event::StreamCut { .. } => None,
    }
}

/// The service that runs short.
async fn serve(listener: TcpListener) {
    let asked = Arc::new(AtomicU32::new(0));
    while let Ok((socket, _)) = listener.accept().await {
        let asked = Arc::clone(&asked);
        let answers = service_fn(move |request: Request<hyper::body::Incoming>| {
            let asked = Arc::clone(&asked);
            async move {
                // A client may still be sending what a service answers early.
                let _whole = request.into_body().collect().await;
                answer(asked.fetch_add(1, Ordering::Relaxed)).await
            }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(socket), answers));
    }
}

async fn answer(asked: u32) -> Result<Response<Channel<Bytes, Infallible>>, BoxError> {
    let response = Response::builder();
    let (mut sender, body) = Channel::new(8);
    let response = match asked {
        0 => response.status(503).header("content-type", "application/json").header("retry-after-ms", "300"),
        2 => return Err("the service lost the connection".into()),
        _ => response.header("content-type", "text/event-stream"),
    };
    let said: &[&str] = match asked {
        0 => &[r#"{"error":{"message":"no room"}}"#],
        1 => &[
            "data: {\"type\":\"response.created\"}\n\n",
            "data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"server_is_overloaded\"}}}\n\n",
        ],
        _ => &[
            "data: {\"type\":\"response.created\"}\n\n",
            "data: {\"type\":\"response.output_text.delta\",\"delta\":\"hello\"}\n\n",
            "data: {\"type\":\"response.completed\"}\n\n",
        ],
    };
    for words in said {
        sender.send_data(Bytes::from_static(words.as_bytes())).await?;
    }
    Ok(response.body(body)?)
}
