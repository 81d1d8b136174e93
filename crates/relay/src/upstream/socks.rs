//! SOCKS, versions 4, 4a and 5: has a proxy connect to an address. Spoken here and not by a library, since what counts
//! is why a proxy says no: one that forbids, or does not accept who we are, says so for ever; one that could not get
//! there may later.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::Cause;
use super::wire::Transport;

type Socket = Box<dyn Transport>;

/// Where the proxy is to connect to.
#[derive(Debug)]
pub(super) enum There<'a> {
    /// An address.
    At(SocketAddr),
    /// A name that the proxy looks up, and a port.
    Named(&'a str, u16),
}

impl<'a> There<'a> {
    /// A host as it is written: the proxy looks it up where it is a name.
    pub(super) fn of(host: &'a str, port: u16) -> Self {
        host.parse().map_or(Self::Named(host, port), |ip| Self::At(SocketAddr::new(ip, port)))
    }
}

/// Why the proxy did not connect: whether asking again may help, and in plain words.
pub(super) type No = (Cause, String);

fn failed(words: impl Into<String>) -> No {
    (Cause::ProxyFailed, words.into())
}

fn refused(words: impl Into<String>) -> No {
    (Cause::ProxyRefused, words.into())
}

fn broke(error: &std::io::Error) -> No {
    failed(format!("no answer to SOCKS: {error}"))
}

async fn say(socket: &mut Socket, bytes: &[u8]) -> Result<(), No> {
    socket.write_all(bytes).await.map_err(|error| broke(&error))?;
    socket.flush().await.map_err(|error| broke(&error))
}

async fn hear<const LENGTH: usize>(socket: &mut Socket) -> Result<[u8; LENGTH], No> {
    let mut bytes = [0; LENGTH];
    socket.read_exact(&mut bytes).await.map_err(|error| broke(&error))?;
    Ok(bytes)
}

/// A text that is announced by the byte before it.
fn counted(text: &str, what: &str) -> Result<Vec<u8>, No> {
    let length = u8::try_from(text.len())
        .map_err(|_longer| refused(format!("{what} is longer than the 255 bytes that SOCKS has for it")))?;
    Ok([&[length], text.as_bytes()].concat())
}

/// SOCKS 5 (RFC 1928), with name and password (RFC 1929) where there are some.
pub(super) async fn version5(
    login: Option<&(String, String)>,
    there: &There<'_>,
    mut socket: Socket,
) -> Result<Socket, No> {
    sign_in(login, &mut socket).await?;
    let (kind, address, port) = match there {
        There::At(SocketAddr::V4(at)) => (1, at.ip().octets().to_vec(), at.port()),
        There::At(SocketAddr::V6(at)) => (4, at.ip().octets().to_vec(), at.port()),
        There::Named(name, port) => (3, counted(name, "the host's name")?, *port),
    };
    say(&mut socket, &[&[5, 1, 0, kind][..], &address, &port.to_be_bytes()].concat()).await?;
    let [version, reply] = hear(&mut socket).await?;
    if version != 5 {
        return Err(failed("it does not speak SOCKS 5"));
    }
    if reply != 0 {
        return Err(said_no(reply));
    }
    // Where it connected from, which nobody needs to know.
    let [_reserved, kind] = hear(&mut socket).await?;
    let length = match kind {
        1 => 4,
        3 => usize::from(hear::<1>(&mut socket).await?[0]),
        4 => 16,
        _ => return Err(failed(format!("its answer has an address of kind {kind}"))),
    };
    let mut address = vec![0; length + 2];
    socket.read_exact(&mut address).await.map_err(|error| broke(&error))?;
    Ok(socket)
}

/// The first half of SOCKS 5: who we are.
async fn sign_in(login: Option<&(String, String)>, socket: &mut Socket) -> Result<(), No> {
    const OPEN: u8 = 0;
    const BY_PASSWORD: u8 = 2;
    let offered = if login.is_some() { BY_PASSWORD } else { OPEN };
    say(socket, &[5, 1, offered]).await?;
    let [version, chosen] = hear(socket).await?;
    match (version, chosen, login) {
        (5, OPEN, None) => Ok(()),
        (5, BY_PASSWORD, Some((name, password))) => {
            let (name, password) = (counted(name, "the user name")?, counted(password, "the password")?);
            say(socket, &[&[1][..], &name, &password].concat()).await?;
            match hear(socket).await? {
                [_version, 0] => Ok(()),
                [_version, status] => {
                    Err(refused(format!("it does not accept the user name and password (status {status})")))
                }
            }
        }
        (5, _, None) => Err(refused("it wants to know who asks, and no user name and password are set")),
        (5, _, Some(_)) => Err(refused("it takes no user name and password")),
        _ => Err(failed("it does not speak SOCKS 5")),
    }
}

/// The replies of RFC 1928, section 6.
fn said_no(reply: u8) -> No {
    let (no, words): (fn(String) -> No, _) = match reply {
        2 => (refused, "its rules do not allow this connection"),
        7 => (refused, "it does not connect for others"),
        8 => (refused, "it does not take this kind of address; with socks5h it gets the name instead"),
        3 => (failed, "the network cannot be reached from there"),
        4 => (failed, "the host cannot be reached from there"),
        5 => (failed, "the host refused its connection"),
        6 => (failed, "its connection took too long"),
        _ => (failed, "it failed"),
    };
    no(format!("{words} (SOCKS reply {reply})"))
}

/// SOCKS 4, and 4a where the proxy looks the name up.
pub(super) async fn version4(there: &There<'_>, mut socket: Socket) -> Result<Socket, No> {
    /// What no host has: the name comes behind.
    const BY_NAME: Ipv4Addr = Ipv4Addr::new(0, 0, 0, 255);
    let (ip, port, name) = match there {
        There::At(at) => match at.ip().to_canonical() {
            IpAddr::V4(ip) => (ip, at.port(), None),
            IpAddr::V6(_) => return Err(refused("SOCKS 4 has no IPv6 addresses; use socks5")),
        },
        There::Named(name, port) => (BY_NAME, *port, Some(name)),
    };
    let mut ask = [&[4, 1][..], &port.to_be_bytes(), &ip.octets(), &[0]].concat();
    if let Some(name) = name {
        ask.extend_from_slice(name.as_bytes());
        ask.push(0);
    }
    say(&mut socket, &ask).await?;
    match hear(&mut socket).await? {
        [0, 90] => hear::<6>(&mut socket).await.map(|_address| socket),
        [0, code @ (92 | 93)] => Err(refused(format!(
            "it wants to know who asks, which SOCKS 4 cannot tell it (SOCKS reply {code})"
        ))),
        [0, code] => Err(failed(format!("it refused or failed (SOCKS reply {code})"))),
        _ => Err(failed("it does not speak SOCKS 4")),
    }
}
