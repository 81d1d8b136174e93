//! Asks a relay in this process for one request, and streams the answer. Dropping what is under way closes the
//! connection, upon which the relay ends what it has under way upstream.

use std::fs::File;
use std::io::{self, Read as _, Write};
use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http::header::{CONTENT_LENGTH, HOST};
use http::{HeaderValue, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty, Full, StreamBody};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::{JoinSet, spawn_blocking};

use super::request::{Data, Request};
use crate::guard::TOKEN_HEADER;
use crate::run::SessionKey;

/// How much of a file is read at a time.
const PIECE: usize = 64 * 1024;
/// A head with this many lines is taken.
const MOST_HEADERS: usize = 512;

/// A relay that takes requests of this process alone.
#[derive(Debug, Clone, Copy)]
pub struct Door {
    /// Where it listens.
    pub addr: SocketAddr,
    /// What it asks for.
    pub key: SessionKey,
}

/// An answer that has begun.
#[derive(Debug)]
pub struct Answer {
    /// Its head, and what comes of its body.
    pub response: Response<Incoming>,
    #[expect(dead_code, reason = "it is there to be dropped: the connection ends with it")]
    connection: JoinSet<()>,
}

/// Asks, and waits for the head of the answer.
///
/// # Errors
/// Where the relay could not be asked, or hung up before it answered.
pub async fn ask(door: Door, request: Request) -> io::Result<Answer> {
    let stream = TcpStream::connect(door.addr).await?;
    let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
        .max_headers(MOST_HEADERS)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(io::Error::other)?;
    let mut carried = JoinSet::new();
    // What goes wrong on it is heard of by the one request.
    carried.spawn(async move { drop(connection.await) });
    let response = sender.send_request(written(door, request)?).await.map_err(io::Error::other)?;
    Ok(Answer { response, connection: carried })
}

type Body = UnsyncBoxBody<Bytes, io::Error>;

fn written(door: Door, request: Request) -> io::Result<http::Request<Body>> {
    let Request { method, path_and_query, mut headers, data, .. } = request;
    headers.insert(HOST, HeaderValue::try_from(door.addr.to_string()).map_err(io::Error::other)?);
    headers.insert(TOKEN_HEADER, HeaderValue::try_from(door.key.to_string()).map_err(io::Error::other)?);
    let body = match data {
        Data::None => Empty::new().map_err(|never| match never {}).boxed_unsync(),
        Data::Bytes(bytes) => Full::new(bytes).map_err(|never| match never {}).boxed_unsync(),
        Data::File(file, length) => {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
            of_file(file, length)
        }
    };
    let mut written = http::Request::new(body);
    *written.method_mut() = method;
    *written.uri_mut() = path_and_query.parse().map_err(io::Error::other)?;
    *written.headers_mut() = headers;
    Ok(written)
}

/// So many bytes of a file, piece by piece. Files are read where waiting for a disk holds nobody up.
fn of_file(file: File, length: u64) -> Body {
    let pieces = stream::try_unfold((file, length), async |(mut file, left)| {
        if left == 0 {
            return Ok(None);
        }
        let (piece, file) = spawn_blocking(move || {
            let mut piece = BytesMut::zeroed(PIECE.min(usize::try_from(left).unwrap_or(PIECE)));
            let read = file.read(&mut piece)?;
            piece.truncate(read);
            Ok::<_, io::Error>((piece.freeze(), file))
        })
        .await
        .map_err(io::Error::other)??;
        if piece.is_empty() {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file became shorter"));
        }
        let left = left - piece.len() as u64;
        Ok(Some((Frame::data(piece), (file, left))))
    });
    StreamBody::new(pieces).boxed_unsync()
}

/// How the writing of an answer ended.
#[derive(Debug)]
pub enum Written {
    /// All of it was written.
    Whole,
    /// The service, or the relay, broke it off.
    BrokeOff,
    /// Whoever reads has seen enough.
    Unwanted,
    /// It could not be written.
    Failed(io::Error),
}

impl Answer {
    /// The head, as it is printed.
    #[must_use]
    pub fn head(&self) -> Vec<u8> {
        let status = self.response.status();
        let mut head =
            format!("HTTP/1.1 {} {}\r\n", status.as_str(), status.canonical_reason().unwrap_or(""));
        for (name, value) in self.response.headers() {
            head.push_str(&format!("{name}: {}\r\n", String::from_utf8_lossy(value.as_bytes())));
        }
        head.push_str("\r\n");
        head.into_bytes()
    }

    /// Writes the answer, each piece as it comes, on a thread that a slow reader may hold up.
    pub async fn write<W: Write + Send + 'static>(mut self, first: Vec<u8>, mut out: W) -> Written {
        let mut next = Some(Bytes::from(first));
        loop {
            if let Some(piece) = next.take().filter(|piece| !piece.is_empty()) {
                let written = spawn_blocking(move || {
                    let written = out.write_all(&piece).and_then(|()| out.flush());
                    (out, written)
                });
                let result = match written.await {
                    Ok((kept, result)) => {
                        out = kept;
                        result
                    }
                    Err(error) => return Written::Failed(io::Error::other(error)),
                };
                match result {
                    Ok(()) => {}
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Written::Unwanted,
                    Err(error) => return Written::Failed(error),
                }
            }
            match self.response.body_mut().frame().await {
                None => break,
                Some(Ok(frame)) => next = frame.into_data().ok(),
                Some(Err(_broken)) => return Written::BrokeOff,
            }
        }
        Written::Whole
    }
}
