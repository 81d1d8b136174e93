//! What a frame of a WebSocket costs: the relay, which ends the protocol on both sides, beside a direct connection and
//! a plain tunnel, round after round as in the other scenes.
//!
//! A call is what Codex makes of it: the client sends `response.create`, the service answers `response.created`, some
//! frames of `response.output_text.delta`, and `response.completed`. What the service is to do stands in the call.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail, ensure};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use crate::load::age_us;
use crate::process::Measured;
use crate::report::{Goal, Report, percentile};
use crate::scenes::{HowLong, Ways, cpu_of, how_long};

/// What is called large here.
const LARGE: usize = 16 << 20;

/// A connection, as client or as service.
type Socket = WebSocketStream<TcpStream>;

fn limits() -> WebSocketConfig {
    WebSocketConfig::default().max_message_size(Some(4 * LARGE)).max_frame_size(Some(4 * LARGE))
}

/// The service: agrees to the upgrade, and answers each call.
pub(crate) async fn answer(mut stream: TcpStream, key: &str) -> Result<()> {
    let head = format!(
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: {}\r\n\r\n",
        derive_accept_key(key.as_bytes())
    );
    stream.write_all(head.as_bytes()).await?;
    let mut socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(limits())).await;
    while let Some(message) = socket.next().await {
        let Message::Text(call) = message? else { continue };
        let order = call.split_once("\"bench\":\"").and_then(|(_, rest)| rest.split_once('"'));
        let (what, count) = order.and_then(|(order, _)| order.split_once('=')).context("an order")?;
        let count: usize = count.parse()?;
        socket.send(Message::text(r#"{"type":"response.created","response":{"id":"r"}}"#)).await?;
        if what == "large" {
            socket.send(Message::text(delta(0, &"d".repeat(count)))).await?;
        } else {
            for number in 0..count {
                if what == "paced" {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                socket.send(Message::text(delta(number, "hello there"))).await?;
            }
        }
        socket.send(Message::text(r#"{"type":"response.completed","response":{"id":"r"}}"#)).await?;
    }
    Ok(())
}

/// A frame of an answer that carries the time it was made, in nanoseconds.
fn delta(number: usize, text: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!(
        r#"{{"type":"response.output_text.delta","item_id":"m","n":{number},"at":"{now}","delta":"{text}"}}"#
    )
}

/// The text of a call of about `size` bytes.
fn call(order: &str, size: usize) -> String {
    let text = "a line of some conversation, and then another one; ".repeat(size / 51);
    format!(
        r#"{{"type":"response.create","metadata":{{"bench":"{order}"}},"model":"gpt-x","store":false,"input":[{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{text}"}}]}}]}}"#
    )
}

async fn connect(address: &str) -> Result<Socket> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let url = format!("ws://{address}/v1/responses");
    let opened = tokio_tungstenite::client_async_with_config(url, stream, Some(limits())).await;
    Ok(opened.context("the WebSocket was refused")?.0)
}

/// Makes a call and reads the answer to its end; how long each of its frames was on its way, in microseconds.
async fn ask(socket: &mut Socket, call: &str) -> Result<Vec<f64>> {
    socket.send(Message::text(call)).await?;
    let mut ages = Vec::new();
    while let Some(message) = socket.next().await {
        let Message::Text(event) = message? else { continue };
        // A large one has its type and its time in front as well.
        let front = event.as_bytes().get(..160).unwrap_or(event.as_bytes());
        if contains(front, b"\"response.completed\"") {
            return Ok(ages);
        }
        if contains(front, b"\"error\"") {
            bail!("instead of an answer came {event}");
        }
        ages.extend(age_us(front));
    }
    bail!("the connection ended")
}

fn contains(bytes: &[u8], what: &[u8]) -> bool {
    bytes.windows(what.len()).any(|window| window == what)
}

fn start(relay: &str) -> Result<Ways> {
    let me = std::env::current_exe()?;
    let origin = Measured::start(Command::new(&me).arg("origin"))?;
    let upstream = format!("http://{}", origin.address);
    let bare = Measured::start(Command::new(&me).args(["tunnel", &upstream]))?;
    let relay =
        Measured::start_relay(Command::new(relay).args(["serve", "--port", "0", "--upstream", &upstream]))?;
    Ok(Ways { origin, bare, relay })
}

/// Measures the relay at `relay` and prints the table.
pub(crate) async fn run(relay: &str, options: &[&str]) -> Result<()> {
    let HowLong { quick, rounds, rest } = how_long(options)?;
    ensure!(rest.is_empty(), "there is no {}", rest.join(" "));
    let ways = start(relay)?;
    let scale = if quick { 1 } else { 4 };
    let mut report = Report::default();
    for round in 0..rounds {
        for (way, address, process) in ways.all(round) {
            flood(&mut report, way, address, process, 5000 * scale).await?;
            large(&mut report, way, address, process).await?;
        }
        calls(&mut report, &ways, round, 200 * scale).await?;
        delays(&mut report, &ways, round).await?;
    }
    drop(ways);
    // What has carried a flood has room for another, which would hide what a connection takes.
    memory(&mut report, &start(relay)?).await?;
    // There are no goals for these yet, and none can be missed.
    report.print("bare tunnel", &|_| Goal::None);
    Ok(())
}

/// Four answers at once, each as fast as it is taken.
async fn flood(
    report: &mut Report,
    way: &'static str,
    address: &str,
    process: Option<&Measured>,
    frames: usize,
) -> Result<()> {
    let call = call(&format!("flood={frames}"), 8 << 10);
    let mut asking = tokio::task::JoinSet::new();
    let start = Instant::now();
    let reading = async {
        for _ in 0..4 {
            let (call, mut socket) = (call.clone(), connect(address).await?);
            asking.spawn(async move { ask(&mut socket, &call).await });
        }
        let mut ages = Vec::new();
        while let Some(asked) = asking.join_next().await {
            ages.extend(asked??);
        }
        Ok(ages)
    };
    let (mut ages, cpu) = cpu_of(process, reading).await?;
    report.add("frames/s in a flood", way, ages.len() as f64 / start.elapsed().as_secs_f64());
    if let Some(cpu) = cpu {
        report.add("CPU per frame in a flood, us", way, cpu / ages.len() as f64);
    }
    report.add("delay in a flood p50, us", way, percentile(&mut ages, 0.5));
    report.add("delay in a flood p99, us", way, percentile(&mut ages, 0.99));
    Ok(())
}

/// One large message up, and one down.
async fn large(
    report: &mut Report,
    way: &'static str,
    address: &str,
    process: Option<&Measured>,
) -> Result<()> {
    let megabytes = LARGE as f64 / f64::from(1 << 20);
    let orders = [
        ("MB/s up", "CPU per MB up, us", "flood=0".to_owned(), LARGE),
        ("MB/s down", "CPU per MB down, us", format!("large={LARGE}"), 100),
    ];
    for (speed, cost, order, size) in orders {
        let (mut socket, call) = (connect(address).await?, call(&order, size));
        let start = Instant::now();
        let (_, cpu) = cpu_of(process, ask(&mut socket, &call)).await?;
        report.add(speed, way, megabytes / start.elapsed().as_secs_f64());
        if let Some(cpu) = cpu {
            report.add(cost, way, cpu / megabytes);
        }
    }
    Ok(())
}

/// One client that calls again and again on its connection, 8 KiB each, and hears two frames.
async fn calls(report: &mut Report, ways: &Ways, round: usize, count: usize) -> Result<()> {
    let call = call("flood=0", 8 << 10);
    let mut halves = BTreeMap::new();
    for (way, address, process) in ways.all(round) {
        let mut socket = connect(address).await?;
        let asking = async {
            let mut times = Vec::new();
            for _ in 0..count {
                let start = Instant::now();
                ask(&mut socket, &call).await?;
                times.push(start.elapsed().as_secs_f64() * 1e6);
            }
            Ok(times)
        };
        let (mut times, cpu) = cpu_of(process, asking).await?;
        halves.insert(way, percentile(&mut times, 0.5));
        report.add("call p50, us", way, halves[way]);
        if let Some(cpu) = cpu {
            report.add("CPU per call, us", way, cpu / count as f64);
        }
    }
    for way in ["bare", "relay"] {
        report.add("added to a call p50, us", way, halves[way] - halves["direct"]);
    }
    Ok(())
}

/// A frame each millisecond: how long each is on its way, and how much longer than over a direct connection.
async fn delays(report: &mut Report, ways: &Ways, round: usize) -> Result<()> {
    const FRAMES: usize = 300;
    let call = call(&format!("paced={FRAMES}"), 8 << 10);
    let mut shares = BTreeMap::new();
    for (way, address, process) in ways.all(round) {
        let mut socket = connect(address).await?;
        let (mut ages, cpu) = cpu_of(process, ask(&mut socket, &call)).await?;
        let (half, most) = (percentile(&mut ages, 0.5), percentile(&mut ages, 0.99));
        report.add("delay at one per ms p50, us", way, half);
        report.add("delay at one per ms p99, us", way, most);
        if let Some(cpu) = cpu {
            report.add("CPU per frame at one per ms, us", way, cpu / FRAMES as f64);
        }
        shares.insert(way, (half, most));
    }
    let direct = shares["direct"];
    for way in ["bare", "relay"] {
        report.add("added at one per ms p50, us", way, shares[way].0 - direct.0);
        report.add("added at one per ms p99, us", way, shares[way].1 - direct.1);
    }
    Ok(())
}

/// Memory per connection with nothing going on, after one call each.
async fn memory(report: &mut Report, ways: &Ways) -> Result<()> {
    const CONNECTIONS: usize = 200;
    let call = call("flood=1", 8 << 10);
    for (way, process) in [("bare", &ways.bare), ("relay", &ways.relay)] {
        let before = process.rss_kib()?;
        let mut open = Vec::new();
        for _ in 0..CONNECTIONS {
            let mut socket = connect(&process.address).await?;
            ask(&mut socket, &call).await?;
            open.push(socket);
        }
        report.add("KiB per open connection", way, (process.rss_kib()? - before) / CONNECTIONS as f64);
        drop(open);
    }
    Ok(())
}
