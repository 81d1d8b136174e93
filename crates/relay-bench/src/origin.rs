//! The service that is measured against: raw sockets, as little work as possible, so that what is seen is the
//! way and not the goal.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::websocket;

/// Prints its address and serves until it is killed.
#[expect(clippy::print_stdout, reason = "the address is what the caller reads")]
pub(crate) async fn serve() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(async move { drop(connection(stream).await) });
    }
}

async fn connection(mut stream: TcpStream) -> Result<()> {
    let mut buffer = Vec::with_capacity(64 * 1024);
    loop {
        let head = loop {
            if let Some(at) = find(&buffer, b"\r\n\r\n") {
                break at + 4;
            }
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        };
        let text = String::from_utf8_lossy(&buffer[..head]).into_owned();
        if let Some(key) = header(&text, "sec-websocket-key") {
            return websocket::answer(stream, key).await;
        }
        let length = header(&text, "content-length").and_then(|value| value.parse().ok()).unwrap_or(0_usize);
        let mut have = buffer.len() - head;
        while have < length {
            buffer.clear();
            let read = stream.read_buf(&mut buffer).await?;
            if read == 0 {
                return Ok(());
            }
            have += read;
        }
        buffer.clear();
        answer(&mut stream, &text).await?;
    }
}

async fn answer(stream: &mut TcpStream, head: &str) -> Result<()> {
    // What to do travels in a header, since the relay reads meaning into paths.
    let order = header(head, "x-bench").unwrap_or("answer");
    let (what, count) = order.split_once('=').unwrap_or((order, "1"));
    let count: usize = count.parse().unwrap_or(1);
    match what {
        "stream" => events(stream, count, Duration::ZERO).await,
        "paced" => events(stream, count, Duration::from_millis(1)).await,
        "hang" => {
            begin(stream).await?;
            chunk(stream, &event(0)).await?;
            std::future::pending().await
        }
        "busy" => {
            let body = r#"{"error":{"code":"server_is_overloaded","message":"busy"}}"#;
            let head = format!(
                "HTTP/1.1 503 Service Unavailable\r\nretry-after: 60\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            Ok(stream.write_all((head + body).as_bytes()).await?)
        }
        "bulk" => {
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\ncontent-length: {}\r\n\r\n",
                count << 20
            );
            stream.write_all(head.as_bytes()).await?;
            let block = vec![b'x'; 1 << 20];
            for _ in 0..count {
                stream.write_all(&block).await?;
            }
            Ok(())
        }
        _ => {
            let text = "y".repeat(600);
            let body = format!(
                r#"{{"id":"c","object":"chat.completion","choices":[{{"index":0,"finish_reason":"stop","message":{{"role":"assistant","content":"{text}"}}}}]}}"#
            );
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            Ok(stream.write_all((head + &body).as_bytes()).await?)
        }
    }
}

async fn begin(stream: &mut TcpStream) -> Result<()> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    Ok(stream.write_all(head.as_bytes()).await?)
}

/// An event that carries the time it was made, in nanoseconds.
fn event(number: usize) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!(
        "event: response.output_text.delta\ndata: {{\"type\":\"response.output_text.delta\",\"item_id\":\"m\",\"n\":{number},\"at\":\"{now}\",\"delta\":\"hello there\"}}\n\n"
    )
}

async fn events(stream: &mut TcpStream, count: usize, pace: Duration) -> Result<()> {
    begin(stream).await?;
    for number in 0..count {
        if !pace.is_zero() {
            tokio::time::sleep(pace).await;
        }
        chunk(stream, &event(number)).await?;
    }
    chunk(stream, "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{}}\n\n")
        .await?;
    Ok(stream.write_all(b"0\r\n\r\n").await?)
}

/// One event, one chunk, one write: what services do.
async fn chunk(stream: &mut TcpStream, event: &str) -> Result<()> {
    let chunk = format!("{:x}\r\n{event}\r\n", event.len());
    Ok(stream.write_all(chunk.as_bytes()).await?)
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().skip(1).find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}
