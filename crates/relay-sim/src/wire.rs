//! The HTTP/1.1 framing both ends share: heads kept as they came, and bodies freed from their chunks.
//!
//! Lenient on purpose: a head is never refused, because a test wants to look at what the relay wrote and
//! not to be told that it is wrong.

use std::io;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

/// More than any head a test has a reason to send.
const LONGEST_HEAD: usize = 4 << 20;

/// A start line with its headers, in the case and order of the wire.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    pub(crate) raw: Vec<u8>,
    pub(crate) start_line: String,
    pub(crate) headers: Vec<(String, String)>,
}

impl Head {
    fn parse(raw: Vec<u8>) -> Self {
        let text = String::from_utf8_lossy(&raw).into_owned();
        let mut lines = text.split("\r\n").filter(|line| !line.is_empty());
        let start_line = lines.next().unwrap_or_default().to_owned();
        let headers = lines
            .map(|line| line.split_once(':').unwrap_or((line, "")))
            .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
            .collect();
        Self { raw, start_line, headers }
    }

    /// What the headers say about the body that follows; `otherwise` where they say nothing.
    pub(crate) fn body(&self, otherwise: Body) -> Body {
        if find(&self.headers, "transfer-encoding").is_some_and(|value| has_token(value, "chunked")) {
            return Body::Chunked(Chunk::Size);
        }
        match find(&self.headers, "content-length").and_then(|value| value.parse().ok()) {
            Some(length) => Body::Length(length),
            None => otherwise,
        }
    }
}

/// The first value of a header, whatever its case.
pub(crate) fn find<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

/// Whether a comma-separated header value names `token`.
pub(crate) fn has_token(value: &str, token: &str) -> bool {
    value.split(',').any(|part| part.trim().eq_ignore_ascii_case(token))
}

/// What is still to come of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body {
    /// This many bytes.
    Length(u64),
    /// Chunks.
    Chunked(Chunk),
    /// Everything until the other side closes.
    UntilClose,
    /// Nothing: it is complete.
    Over,
}

/// Where in the chunked framing the reader stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chunk {
    /// Before a size line.
    Size,
    /// Inside data, with this many bytes to come.
    Data(u64),
    /// Before the line end that follows data.
    DataEnd,
    /// After the last chunk.
    Trailers,
}

impl Body {
    /// Moves what `from` holds of the body into `into`, until more bytes are needed or the body is over.
    pub(crate) fn take(
        &mut self,
        from: &mut BytesMut,
        into: &mut Vec<u8>,
        trailers: &mut Vec<(String, String)>,
    ) -> io::Result<()> {
        loop {
            match *self {
                Self::Over | Self::Length(0) => {
                    *self = Self::Over;
                    return Ok(());
                }
                Self::UntilClose => {
                    into.extend_from_slice(&from.split());
                    return Ok(());
                }
                Self::Length(left) => {
                    let moved = shift(from, into, left);
                    *self = Self::Length(left - moved);
                    if moved < left {
                        return Ok(());
                    }
                }
                Self::Chunked(Chunk::Data(left)) => {
                    let moved = shift(from, into, left);
                    let after = if moved < left { Chunk::Data(left - moved) } else { Chunk::DataEnd };
                    *self = Self::Chunked(after);
                    if moved < left {
                        return Ok(());
                    }
                }
                Self::Chunked(between) => {
                    let Some(line) = take_line(from) else { return Ok(()) };
                    *self = after_line(between, &line, trailers)?;
                }
            }
        }
    }
}

fn shift(from: &mut BytesMut, into: &mut Vec<u8>, most: u64) -> u64 {
    let count = usize::try_from(most).unwrap_or(usize::MAX).min(from.len());
    into.extend_from_slice(&from[..count]);
    from.advance(count);
    count as u64
}

fn take_line(from: &mut BytesMut) -> Option<String> {
    let end = from.iter().position(|&byte| byte == b'\n')?;
    let line = from.split_to(end + 1);
    Some(String::from_utf8_lossy(&line).trim_end().to_owned())
}

fn after_line(at: Chunk, line: &str, trailers: &mut Vec<(String, String)>) -> io::Result<Body> {
    match at {
        Chunk::DataEnd | Chunk::Data(_) if line.is_empty() => Ok(Body::Chunked(Chunk::Size)),
        Chunk::DataEnd | Chunk::Data(_) => Err(io::Error::other("a chunk is longer than its size line says")),
        Chunk::Trailers if line.is_empty() => Ok(Body::Over),
        Chunk::Trailers => {
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            trailers.push((name.to_owned(), value.trim().to_owned()));
            Ok(Body::Chunked(Chunk::Trailers))
        }
        Chunk::Size => {
            let digits = line.split(';').next().unwrap_or_default().trim();
            let size = u64::from_str_radix(digits, 16).map_err(io::Error::other)?;
            Ok(Body::Chunked(if size == 0 { Chunk::Trailers } else { Chunk::Data(size) }))
        }
    }
}

/// The receiving side of a connection, with what was read and not yet used.
#[derive(Debug)]
pub(crate) struct Inbox<R> {
    pub(crate) reader: R,
    pub(crate) held: BytesMut,
}

impl<R: AsyncRead + Unpin> Inbox<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self { reader, held: BytesMut::with_capacity(16 << 10) }
    }

    /// Waits for more bytes; zero when the other side has finished. Safe to drop half-way.
    pub(crate) async fn fill(&mut self) -> io::Result<usize> {
        self.held.reserve(16 << 10);
        self.reader.read_buf(&mut self.held).await
    }

    /// Takes one head, if it is complete.
    pub(crate) fn head(&mut self) -> io::Result<Option<Head>> {
        match self.held.windows(4).position(|window| window == b"\r\n\r\n") {
            Some(end) => Ok(Some(Head::parse(self.held.split_to(end + 4).to_vec()))),
            None if self.held.len() > LONGEST_HEAD => Err(io::Error::other("no end of the head in sight")),
            None => Ok(None),
        }
    }
}
