//! Where the relay listens: both loopback addresses on one port, or one address that was named.
//! Not the accept loop and not who may speak (that is [`crate::guard`]).
//!
//! A port that another program holds is an error that says which program. A machine without IPv6 is none:
//! the relay goes on with IPv4 and says so.

mod holder;
pub mod passed;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use crate::words::{lang, start};

/// How many connections may wait to be accepted: a burst of parallel agents must not be turned away.
const BACKLOG: i32 = 1024;
/// How often a port that is free on IPv4 may turn out to be taken on IPv6 before we stop looking.
const PORT_TRIES: u32 = 32;
/// How long the question "does anybody answer there?" may take on loopback.
const PROBE: Duration = Duration::from_millis(200);
/// How long the name of an upstream at a port of ours may take to be looked up.
const LOOK_UP: Duration = Duration::from_secs(2);

/// The addresses to listen on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// 127.0.0.1 and `[::1]` on this one port; 0: any port that is free on both.
    Loopback(u16),
    /// This address alone; port 0: any free one.
    At(SocketAddr),
}

/// Open, listening sockets.
#[derive(Debug)]
pub struct Bound {
    /// The sockets, IPv4 first. They do not block.
    pub sockets: Vec<tokio::net::TcpListener>,
    /// The port of all of them.
    pub port: u16,
    /// What the user should know, a sentence each.
    pub notices: Vec<String>,
}

impl Bound {
    /// The addresses as they are, the chosen port filled in.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.sockets.iter().filter_map(|socket| socket.local_addr().ok()).collect()
    }
}

/// Whether `host:port` leads back to one of the sockets at `ours`. A name is looked up, and only if the port is one
/// of ours.
pub async fn leads_back(host: &str, port: u16, ours: &[SocketAddr]) -> bool {
    let ours: Vec<IpAddr> = ours.iter().filter(|at| at.port() == port).map(SocketAddr::ip).collect();
    if ours.is_empty() {
        return false;
    }
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let looked_up = tokio::time::timeout(LOOK_UP, tokio::net::lookup_host((host, port))).await;
    let Ok(Ok(mut found)) = looked_up else { return false };
    found.any(|at| {
        let ip = at.ip().to_canonical();
        ours.iter().any(|own| *own == ip || own.is_unspecified() && is_of_this_machine(ip))
    })
}

/// Only an address of this machine can be bound.
fn is_of_this_machine(ip: IpAddr) -> bool {
    std::net::UdpSocket::bind((ip, 0)).is_ok()
}

/// An address that a client on this machine can be given: all of them at once is none.
#[must_use]
pub fn reached_at(listening: SocketAddr) -> SocketAddr {
    let loopback: IpAddr = match listening.ip() {
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    if listening.ip().is_unspecified() { SocketAddr::new(loopback, listening.port()) } else { listening }
}

/// The program that holds a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Its name, as the system shows it.
    pub name: String,
    /// Its process number.
    pub pid: u32,
}

/// The program that listens where `at` would, if the system tells.
#[must_use]
pub fn holder(at: SocketAddr) -> Option<Holder> {
    holder::of(at)
}

/// Why the relay cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Somebody else listens there.
    #[error("{}", start::taken(lang(), .at.port(), &.at.ip().to_string(), &held_by(.holder.as_ref()), &way_out(*.at, .holder.as_ref(), flag)))]
    Taken {
        /// The address.
        at: SocketAddr,
        /// Who holds it, where the system tells us.
        holder: Option<Holder>,
        /// What names another port.
        flag: &'static str,
    },
    /// No port is free on 127.0.0.1 and `[::1]` alike.
    #[error("{}", start::no_shared_port(lang(), .0))]
    NoSharedPort(&'static str),
    /// The system refused for another reason.
    #[error("{}", start::cannot_listen(lang(), &at.to_string(), &source.to_string()))]
    System {
        /// The address.
        at: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
}

/// The flag for the port of the relay itself.
const FLAG: &str = "--port";

impl BindError {
    /// The same where another flag names the port.
    #[must_use]
    pub fn by_flag(self, flag: &'static str) -> Self {
        match self {
            Self::Taken { at, holder, .. } => Self::Taken { at, holder, flag },
            Self::NoSharedPort(_) => Self::NoSharedPort(flag),
            system @ Self::System { .. } => system,
        }
    }
}

fn held_by(holder: Option<&Holder>) -> String {
    holder.map_or_else(String::new, |holder| start::held_by(lang(), &holder.name, holder.pid))
}

fn way_out(at: SocketAddr, holder: Option<&Holder>, flag: &str) -> String {
    let port = at.port();
    if holder.is_some_and(|holder| holder.name == "systemd") {
        return start::systemd_holds_it(lang(), flag);
    }
    if holder.is_some() {
        return start::stop_it(lang(), flag);
    }
    let finder =
        if cfg!(windows) { format!("netstat -ano | findstr :{port}") } else { format!("lsof -i :{port}") };
    start::find_it(lang(), &finder, flag)
}

/// Opens the sockets of `place`. Call it inside a tokio runtime with I/O: the sockets are registered there.
///
/// # Errors
/// [`BindError`] where a port is taken or the system refuses; nothing stays open then.
pub fn bind(place: Place) -> Result<Bound, BindError> {
    let mut notices = Vec::new();
    let opened = match place {
        Place::At(at) => vec![open(at).map_err(|error| explain(at, error))?],
        Place::Loopback(port) => both(port, &mut open, &mut notices)?,
    };
    let mut port = 0;
    let mut sockets = Vec::with_capacity(opened.len());
    for socket in opened {
        let registered = socket.local_addr().and_then(|at| {
            port = at.port();
            tokio::net::TcpListener::from_std(socket)
        });
        let at = match place {
            Place::At(at) => at,
            Place::Loopback(port) => SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
        };
        sockets.push(registered.map_err(|source| BindError::System { at, source })?);
    }
    Ok(Bound { sockets, port, notices })
}

type Open<'a> = &'a mut dyn FnMut(SocketAddr) -> io::Result<TcpListener>;

fn both(port: u16, open: Open<'_>, notices: &mut Vec<String>) -> Result<Vec<TcpListener>, BindError> {
    for _ in 0..PORT_TRIES {
        let four = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let first = open(four).map_err(|error| explain(four, error))?;
        let chosen = first.local_addr().map_err(|source| BindError::System { at: four, source })?.port();
        let six = SocketAddr::from((Ipv6Addr::LOCALHOST, chosen));
        match open(six) {
            Ok(second) => return Ok(vec![first, second]),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && port == 0 => {}
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Err(explain(six, error)),
            Err(error) => {
                notices.push(start::no_ipv6(lang(), &error.to_string()));
                return Ok(vec![first]);
            }
        }
    }
    Err(BindError::NoSharedPort(FLAG))
}

fn open(at: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(at), Type::STREAM, Some(Protocol::TCP))?;
    if at.is_ipv6() {
        // One family per socket: otherwise [::] takes IPv4 as well on some systems and not on others.
        socket.set_only_v6(true)?;
    }
    if cfg!(unix) {
        // Connections of a relay that has just ended must not hold the port. (On Windows the same option
        // would let two programs share it.)
        socket.set_reuse_address(true)?;
    }
    if cfg!(all(unix, not(target_os = "linux"))) && answers(at) {
        // BSD lets a narrower address be taken from under a wildcard listener once the option above is set.
        return Err(io::ErrorKind::AddrInUse.into());
    }
    socket.bind(&at.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

fn answers(at: SocketAddr) -> bool {
    let ip = match at.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
    };
    at.port() != 0 && TcpStream::connect_timeout(&SocketAddr::from((ip, at.port())), PROBE).is_ok()
}

fn explain(at: SocketAddr, source: io::Error) -> BindError {
    if source.kind() == io::ErrorKind::AddrInUse {
        return BindError::Taken { at, holder: holder::of(at), flag: FLAG };
    }
    BindError::System { at, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loopback(port: u16) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, port))
    }

    #[tokio::test]
    async fn port_zero_is_one_port_on_both_addresses() {
        let bound = bind(Place::Loopback(0)).unwrap();
        assert_ne!(bound.port, 0);
        assert!(bound.addresses().iter().all(|at| at.port() == bound.port && at.ip().is_loopback()));
        assert_eq!(bound.addresses()[0], loopback(bound.port));
        assert_eq!(bound.sockets.len() + bound.notices.len(), 2);
    }

    #[tokio::test]
    async fn what_leads_back_is_known_by_its_addresses() {
        let unspecified = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 8787));
        let rows = [
            ("localhost", 8787, loopback(8787), true),
            ("localhost", 8788, loopback(8787), false),
            ("127.0.0.1", 8787, loopback(8787), true),
            ("[::ffff:127.0.0.1]", 8787, loopback(8787), true),
            ("127.0.0.1", 8787, unspecified, true),
            // Reserved for documentation: no machine has it.
            ("192.0.2.1", 8787, unspecified, false),
            ("192.0.2.1", 8787, loopback(8787), false),
        ];
        for (host, port, ours, leads) in rows {
            assert_eq!(leads_back(host, port, &[ours]).await, leads, "{host}:{port} {ours}");
        }
    }

    #[tokio::test]
    async fn both_sockets_accept_and_a_restart_takes_the_port_again() {
        let first = bind(Place::Loopback(0)).unwrap();
        let port = first.port;
        for (socket, at) in first.sockets.iter().zip(first.addresses()) {
            let client = tokio::net::TcpStream::connect(at).await.unwrap();
            let (served, _) = socket.accept().await.unwrap();
            // The side that closes first keeps the port in TIME_WAIT.
            drop(served);
            drop(client);
        }
        drop(first);
        assert_eq!(bind(Place::Loopback(port)).unwrap().port, port);
    }

    #[tokio::test]
    async fn a_port_in_use_fails_on_either_address_and_names_it() {
        for holder in [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)] {
            let Ok(taken) = TcpListener::bind((holder, 0)) else { continue };
            let port = taken.local_addr().unwrap().port();
            let error = bind(Place::Loopback(port)).unwrap_err();
            let BindError::Taken { at, .. } = &error else { panic!("{error}") };
            assert_eq!(*at, SocketAddr::from((holder, port)));
            let text = error.to_string();
            assert!(text.contains(&format!("port {port} is taken on {holder}")), "{text}");
            assert!(text.lines().count() <= 3 && text.contains("--port"), "{text}");
        }
    }

    #[tokio::test]
    async fn a_wildcard_listener_counts_as_in_use() {
        let taken = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        assert!(matches!(bind(Place::Loopback(port)), Err(BindError::Taken { .. })));
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn the_holder_is_named_on_linux() {
        let taken = bind(Place::Loopback(0)).unwrap();
        for at in taken.addresses() {
            let error = bind(Place::At(at)).unwrap_err();
            let BindError::Taken { holder: Some(holder), .. } = &error else { panic!("{error}") };
            assert_eq!(holder.pid, std::process::id());
            assert!(error.to_string().contains(&format!("(process {})", holder.pid)));
        }
    }

    #[tokio::test]
    async fn one_named_address_is_one_socket() {
        let bound = bind(Place::At(loopback(0))).unwrap();
        assert_eq!(bound.addresses(), [loopback(bound.port)]);
        assert!(bound.notices.is_empty());
    }

    #[test]
    fn without_ipv6_the_relay_goes_on_with_a_notice() {
        for kind in [io::ErrorKind::AddrNotAvailable, io::ErrorKind::Unsupported, io::ErrorKind::Other] {
            let mut notices = Vec::new();
            let mut four_only = |at: SocketAddr| {
                if at.is_ipv6() { Err(io::Error::from(kind)) } else { TcpListener::bind(at) }
            };
            let sockets = both(0, &mut four_only, &mut notices).unwrap();
            assert_eq!(sockets.len(), 1);
            assert!(notices[0].starts_with("no IPv6 on this machine"), "{notices:?}");
        }
    }

    #[test]
    fn a_free_port_is_looked_for_a_bounded_number_of_times() {
        let mut tries = 0;
        let mut six_taken = |at: SocketAddr| {
            if at.is_ipv4() {
                return TcpListener::bind(at);
            }
            tries += 1;
            Err(io::ErrorKind::AddrInUse.into())
        };
        let error = both(0, &mut six_taken, &mut Vec::new()).unwrap_err();
        assert!(matches!(error, BindError::NoSharedPort(_)));
        let text = error.by_flag("--metrics-port").to_string();
        assert!(text.ends_with("with --metrics-port"), "{text}");
        assert_eq!(tries, PORT_TRIES);
    }

    #[test]
    fn an_unknown_holder_leaves_a_way_to_find_it() {
        let text = BindError::Taken { at: loopback(8787), holder: None, flag: FLAG }.to_string();
        assert!(text.starts_with("port 8787 is taken on 127.0.0.1\nhint: find the program with `"), "{text}");
    }
}
