//! A transparent forwarder that stands between a client and whatever it talks to, and remembers every byte.
//!
//! Only it can say how often the *client* sent something. It takes part in nothing: a close is handed on as a
//! close, a reset as a reset.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// What one connection carried.
#[derive(Debug, Clone, Default)]
pub(crate) struct Carried {
    pub(crate) from_client: Vec<u8>,
    pub(crate) to_client: Vec<u8>,
}

type Log = Arc<Mutex<Vec<Carried>>>;

/// The forwarder. Dropping it closes its connections.
pub(crate) struct Front {
    addr: SocketAddr,
    log: Log,
    task: JoinHandle<()>,
}

impl Front {
    pub(crate) async fn to(target: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
        let addr = listener.local_addr()?;
        let log = Log::default();
        let task = tokio::spawn(accept(listener, target, Arc::clone(&log)));
        Ok(Self { addr, log, task })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    pub(crate) fn carried(&self) -> Vec<Carried> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Carried {
    /// How many interim answers came on this connection.
    pub(crate) fn interim_answers(&self) -> usize {
        let start: &[u8] = b"HTTP/1.1 102 ";
        self.to_client.windows(start.len()).filter(|window| *window == start).count()
    }

    /// The request lines of this connection, in order. Bodies are JSON or compressed and hold none.
    pub(crate) fn requests(&self) -> Vec<String> {
        let text = String::from_utf8_lossy(&self.from_client);
        let starts = text.split(" HTTP/1.1\r\n").collect::<Vec<_>>();
        let lines = starts.iter().take(starts.len() - 1).filter_map(|before| {
            let at = ["POST /", "GET /", "HEAD /"].iter().filter_map(|method| before.rfind(method)).max()?;
            Some(before[at..].to_owned())
        });
        lines.collect()
    }
}

/// A frame of a WebSocket, its payload unmasked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Frame {
    Text(String),
    /// With its code, if it has one.
    Close(Option<u16>),
    /// Its opcode.
    Other(u8),
}

/// The frames that follow the head of an upgrade. One that is cut off, or packed, ends the list: no client here sends
/// messages in pieces, and nobody negotiates an extension where these are asked for.
pub(crate) fn frames(bytes: &[u8]) -> Vec<Frame> {
    let head = bytes.windows(4).position(|window| window == b"\r\n\r\n");
    let mut rest = head.map_or(&[] as &[u8], |end| &bytes[end + 4..]);
    let mut frames = Vec::new();
    while let Some((frame, after)) = frame(rest) {
        frames.push(frame);
        rest = after;
    }
    frames
}

fn frame(bytes: &[u8]) -> Option<(Frame, &[u8])> {
    let (&[first, second], rest) = bytes.split_first_chunk()?;
    let (length, rest) = match second & 0x7f {
        126 => rest.split_first_chunk().map(|(long, rest)| (u64::from(u16::from_be_bytes(*long)), rest))?,
        127 => rest.split_first_chunk().map(|(long, rest)| (u64::from_be_bytes(*long), rest))?,
        short => (u64::from(short), rest),
    };
    let (key, rest) = match second & 0x80 {
        0 => ([0; 4], rest),
        _ => rest.split_first_chunk().map(|(key, rest)| (*key, rest))?,
    };
    let (masked, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    let payload: Vec<u8> = masked.iter().zip(key.iter().cycle()).map(|(byte, key)| byte ^ key).collect();
    let frame = match first {
        0x81 => Frame::Text(String::from_utf8(payload).ok()?),
        0x88 => Frame::Close(payload.first_chunk().map(|code| u16::from_be_bytes(*code))),
        0x82 | 0x89 | 0x8a => Frame::Other(first & 0xf),
        _ => return None,
    };
    Some((frame, rest))
}

async fn accept(listener: TcpListener, target: SocketAddr, log: Log) {
    let mut open = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let place = {
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            log.push(Carried::default());
            log.len() - 1
        };
        open.spawn(forward(client, target, Arc::clone(&log), place));
    }
}

async fn forward(client: TcpStream, target: SocketAddr, log: Log, place: usize) {
    let Ok(server) = TcpStream::connect(target).await else { return reset(&client) };
    let (mut client_read, mut client_write) = client.into_split();
    let (mut server_read, mut server_write) = server.into_split();
    let up = carry(&mut client_read, &mut server_write, |bytes| {
        note(&log, place, |carried| carried.from_client.extend_from_slice(bytes));
    });
    let down = carry(&mut server_read, &mut client_write, |bytes| {
        note(&log, place, |carried| carried.to_client.extend_from_slice(bytes));
    });
    let broken = tokio::try_join!(up, down).is_err();
    if broken {
        reset(client_write.as_ref());
        reset(server_write.as_ref());
    }
}

/// Moves bytes one way until the end, which is handed on.
async fn carry(from: &mut OwnedReadHalf, to: &mut OwnedWriteHalf, note: impl Fn(&[u8])) -> io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            return to.shutdown().await;
        }
        note(&buffer[..count]);
        to.write_all(&buffer[..count]).await?;
    }
}

fn note(log: &Log, place: usize, how: impl FnOnce(&mut Carried)) {
    how(&mut log.lock().unwrap_or_else(PoisonError::into_inner)[place]);
}

/// The connection will end with RST when it is dropped. A socket that cannot be told so closes in order.
fn reset(stream: &TcpStream) {
    drop(SockRef::from(stream).set_linger(Some(Duration::ZERO)));
}
