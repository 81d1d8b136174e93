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
