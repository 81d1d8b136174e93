//! The load: raw HTTP/1.1 clients that keep their connection.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// One client.
pub(crate) struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// What is asked for.
pub(crate) fn request(order: &str, body: &[u8]) -> Vec<u8> {
    let path = if order == "bulk" || order.starts_with("bulk=") { "/v1/files/x" } else { "/v1/responses" };
    let method = if path == "/v1/files/x" { "GET" } else { "POST" };
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: bench\r\nx-bench: {order}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// A request body of about `size` bytes, as a coding agent sends it.
pub(crate) fn body(size: usize, stream: bool) -> Vec<u8> {
    let text = "a line of some conversation, and then another one; ".repeat(size / 51 + 1);
    format!(
        r#"{{"model":"gpt-x","stream":{stream},"store":false,"input":[{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{text}"}}]}}]}}"#
    )
    .into_bytes()
}

impl Client {
    pub(crate) async fn connect(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::with_capacity(256 * 1024) })
    }

    async fn fill(&mut self) -> Result<()> {
        if self.stream.read_buf(&mut self.buffer).await? == 0 {
            bail!("the connection ended");
        }
        Ok(())
    }

    async fn head(&mut self) -> Result<String> {
        loop {
            if let Some(at) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&self.buffer[..at]).into_owned();
                self.buffer.drain(..at + 4);
                return Ok(head);
            }
            self.fill().await?;
        }
    }

    pub(crate) async fn send(&mut self, request: &[u8]) -> Result<()> {
        Ok(self.stream.write_all(request).await?)
    }

    /// Sends, and reads an answer that states its length. The bytes of its body.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> Result<usize> {
        self.send(request).await?;
        let head = self.head().await?.to_ascii_lowercase();
        let length: usize = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length:"))
            .context("a length")?
            .trim()
            .parse()?;
        let mut left = length;
        loop {
            let here = left.min(self.buffer.len());
            self.buffer.drain(..here);
            left -= here;
            if left == 0 {
                return Ok(length);
            }
            self.fill().await?;
        }
    }

    /// Sends, and reads a stream to its end; counts its events, and how long each was on its way, if it is asked.
    pub(crate) async fn stream(&mut self, request: &[u8], delays: Option<&mut Vec<f64>>) -> Result<usize> {
        self.send(request).await?;
        self.head().await?;
        let mut delays = delays;
        let mut events = 0;
        loop {
            while let Some(at) = find(&self.buffer, b"\n\n") {
                events += 1;
                if let Some(delays) = delays.as_deref_mut() {
                    delays.extend(age_us(&self.buffer[..at]));
                }
                self.buffer.drain(..at + 2);
            }
            if find(&self.buffer, b"0\r\n\r\n").is_some() {
                self.buffer.clear();
                return Ok(events);
            }
            self.fill().await?;
        }
    }

    /// Sends, and reads the first event of a stream that stays open.
    pub(crate) async fn open(&mut self, request: &[u8]) -> Result<()> {
        self.send(request).await?;
        self.head().await?;
        while find(&self.buffer, b"\n\n").is_none() {
            self.fill().await?;
        }
        Ok(())
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

/// How long ago an event was made, by the time it carries.
pub(crate) fn age_us(event: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(event).ok()?;
    let made: u128 = text.split_once("\"at\":\"")?.1.split_once('"')?.0.parse().ok()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_nanos();
    Some(now.saturating_sub(made) as f64 / 1000.0)
}

/// `clients` ask over and over for `span`. Requests, and the latency of each in microseconds.
pub(crate) async fn ask_for(address: &str, clients: usize, span: Duration) -> Result<(usize, Vec<f64>)> {
    let request = request("answer", &body(8 * 1024, false));
    let until = Instant::now() + span;
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..clients {
        let (request, mut client) = (request.clone(), Client::connect(address).await?);
        asking.spawn(async move {
            let mut latencies = Vec::new();
            while Instant::now() < until {
                let start = Instant::now();
                client.ask(&request).await?;
                latencies.push(start.elapsed().as_secs_f64() * 1e6);
            }
            anyhow::Ok(latencies)
        });
    }
    let mut latencies = Vec::new();
    while let Some(asked) = asking.join_next().await {
        latencies.extend(asked??);
    }
    Ok((latencies.len(), latencies))
}
