//! Sockets that a service manager opened and passes on: the port then answers while the relay restarts. The protocol is
//! systemd's (`sd_listen_fds`), which other managers speak, too: `LISTEN_FDS` says how many there are, `LISTEN_PID` for
//! whom, `LISTEN_FDNAMES` what each is called.

use std::net::{SocketAddr, TcpListener};

use super::Bound;

use crate::words::{lang, start};

/// More sockets than anybody passes to a relay: a number beyond it is garbage.
const MOST: usize = 16;

/// Sockets that this process is told to have.
#[derive(Debug, PartialEq, Eq)]
struct Announced {
    count: usize,
    names: Vec<String>,
}

/// Why sockets that were passed cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PassedError {
    /// The number of them is none.
    #[error("{}", start::passed_count(lang(), .0, MOST))]
    Count(String),
    /// One of them is something else.
    #[error("{}", start::passed_no_listener(lang(), .0, .1))]
    NotListening(String, String),
    /// One of them can be reached from other machines.
    #[error("{}", start::passed_beyond(lang(), .0, &.1.to_string()))]
    Beyond(String, SocketAddr),
}

/// Takes the sockets that were passed to this process, if any were. Call it once, and before there are threads: the
/// variables that announce them are removed.
///
/// # Errors
/// Where what was passed cannot be used.
pub fn take() -> Result<Option<Vec<TcpListener>>, PassedError> {
    match announced(std::process::id(), |name| std::env::var(name).ok())? {
        None => Ok(None),
        Some(announced) => taken(&announced).map(Some),
    }
}

/// What the variables say, if it is meant for this process: a variable that a parent has left over is not.
fn announced(
    own_pid: u32,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<Announced>, PassedError> {
    let is_ours = variable("LISTEN_PID").is_some_and(|pid| pid.trim().parse() == Ok(own_pid));
    let Some(count) = variable("LISTEN_FDS").filter(|_| is_ours) else { return Ok(None) };
    match count.trim().parse() {
        Ok(0) => Ok(None),
        Ok(number @ 1..=MOST) => {
            let names = variable("LISTEN_FDNAMES").unwrap_or_default();
            Ok(Some(Announced { count: number, names: names.split(':').map(str::to_owned).collect() }))
        }
        Ok(_) | Err(_) => Err(PassedError::Count(count.chars().take(20).collect())),
    }
}

impl Announced {
    /// How one of them is named to people.
    fn shown(&self, at: usize) -> String {
        match self.names.get(at).map(String::as_str) {
            None | Some("" | "unknown") => start::socket(lang(), at + 1),
            Some(name) => start::named_socket(lang(), at + 1, &name.escape_debug().to_string()),
        }
    }
}

#[cfg(unix)]
fn taken(announced: &Announced) -> Result<Vec<TcpListener>, PassedError> {
    let mut passed = listenfd::ListenFd::from_env();
    let one = |at| {
        let wrong = |why: String| PassedError::NotListening(announced.shown(at), why);
        let socket = match passed.take_tcp_listener(at) {
            Ok(Some(socket)) => socket,
            Ok(None) => return Err(wrong(String::new())),
            Err(error) => return Err(wrong(start::because(lang(), &error.to_string()))),
        };
        match rustix::net::sockopt::socket_acceptconn(&socket) {
            Ok(true) => Ok(socket),
            Ok(false) => Err(wrong(start::because(lang(), &start::does_not_listen(lang())))),
            Err(error) => Err(wrong(start::because(lang(), &error.to_string()))),
        }
    };
    (0..announced.count).map(one).collect()
}

/// Here no manager passes sockets.
#[cfg(not(unix))]
fn taken(announced: &Announced) -> Result<Vec<TcpListener>, PassedError> {
    Err(PassedError::NotListening(announced.shown(0), String::new()))
}

/// Listens on sockets that were passed, whatever the settings say; `port` is what they say. Call it inside a tokio
/// runtime with I/O.
///
/// # Errors
/// Where one of them is open to other machines and no token is set, or the system refuses it.
pub fn use_passed(sockets: Vec<TcpListener>, port: u16, has_token: bool) -> Result<Bound, PassedError> {
    let mut bound = Bound { sockets: Vec::new(), port: 0, notices: Vec::new() };
    for (at, socket) in sockets.into_iter().enumerate() {
        let named = start::socket(lang(), at + 1);
        let wrong = |error: std::io::Error| {
            PassedError::NotListening(named.clone(), start::because(lang(), &error.to_string()))
        };
        let address = socket.local_addr().map_err(wrong)?;
        if !address.ip().to_canonical().is_loopback() && !has_token {
            return Err(PassedError::Beyond(named, address));
        }
        // The manager's own descriptor shares this: it does not read from it while the relay lives.
        socket.set_nonblocking(true).map_err(wrong)?;
        let socket = tokio::net::TcpListener::from_std(socket).map_err(wrong)?;
        if bound.port == 0 {
            bound.port = address.port();
        }
        bound.sockets.push(socket);
    }
    if port != bound.port && port != 0 {
        bound.notices.push(start::passed_other_port(lang(), bound.port, port));
    }
    Ok(bound)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn announced_by(set: &[(&str, &str)]) -> Result<Option<Announced>, PassedError> {
        announced(7, |name| {
            set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn only_what_is_meant_for_this_process_counts() {
        assert_eq!(announced_by(&[]), Ok(None));
        assert_eq!(announced_by(&[("LISTEN_FDS", "1")]), Ok(None), "without a pid nobody is meant");
        assert_eq!(announced_by(&[("LISTEN_FDS", "1"), ("LISTEN_PID", "8")]), Ok(None));
        assert_eq!(announced_by(&[("LISTEN_FDS", "x"), ("LISTEN_PID", "8")]), Ok(None));
        assert_eq!(announced_by(&[("LISTEN_FDS", "0"), ("LISTEN_PID", "7")]), Ok(None));
        let two = announced_by(&[("LISTEN_FDS", "2"), ("LISTEN_PID", "7"), ("LISTEN_FDNAMES", "four:six")]);
        let two = two.unwrap().unwrap();
        assert_eq!((two.count, two.shown(1).as_str()), (2, "socket 2 (`six`)"));
    }

    #[test]
    fn a_number_that_is_none_is_told() {
        for count in ["-1", "many", "", "17", "99999999999999999999"] {
            let error = announced_by(&[("LISTEN_FDS", count), ("LISTEN_PID", "7")]).unwrap_err();
            assert!(error.to_string().contains("\nhint: "), "{count}: {error}");
        }
    }

    #[tokio::test]
    async fn beyond_loopback_a_token_is_needed_and_another_port_is_told() {
        let open = || vec![TcpListener::bind(("0.0.0.0", 0)).unwrap()];
        assert!(matches!(use_passed(open(), 0, false), Err(PassedError::Beyond(..))));
        assert_eq!(use_passed(open(), 0, true).unwrap().notices, [""; 0]);
        let own = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = own.local_addr().unwrap().port();
        let bound = use_passed(vec![own], 1, false).unwrap();
        assert_eq!((bound.port, bound.sockets.len()), (port, 1));
        assert!(bound.notices[0].contains("settings say 1"), "{:?}", bound.notices);
    }
}
