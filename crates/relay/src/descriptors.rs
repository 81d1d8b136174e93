//! How many files and sockets the system lets this process hold open at a time. Many systems set a low limit that each
//! process may raise for itself, kept for the sake of old programs.
//! Not how many connections are taken (that is `limits.connections`).

use crate::words::{lang, start};

/// What one connection needs at most: a socket to its client, and one to the upstream.
const EACH: u64 = 2;
/// What the relay needs besides: files, sockets to listen on, connections that are being turned away.
const BESIDES: u64 = 64;

/// Raises the limit as far as the system allows. The limit that is then in force; `None` where there is none or the
/// system does not tell.
///
/// A client that the relay starts would inherit it, and some programs break above 1024: so not for `run`.
#[cfg(unix)]
#[must_use]
pub fn raise() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    /// The most that macOS takes where it says that there is no limit (`OPEN_MAX`).
    const OPEN_MAX: u64 = 10_240;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    for wanted in [maximum, Some(maximum.map_or(OPEN_MAX, |maximum| maximum.min(OPEN_MAX)))] {
        let is_more = current.is_some_and(|current| wanted.is_none_or(|wanted| wanted > current));
        if is_more && setrlimit(Resource::Nofile, Rlimit { current: wanted, maximum }).is_ok() {
            return wanted;
        }
    }
    current
}

/// Other systems have no such limit.
#[cfg(not(unix))]
#[must_use]
pub const fn raise() -> Option<u64> {
    None
}

/// What to say where the limit in force does not hold so many connections.
#[must_use]
pub fn lack(connections: u32, limit: Option<u64>) -> Option<String> {
    let limit = limit?;
    let needed = u64::from(connections) * EACH + BESIDES;
    let held = limit.saturating_sub(BESIDES) / EACH;
    (needed > limit).then(|| start::few_descriptors(lang(), connections, needed, limit, held.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_does_not_hold_the_connections_is_told_with_both_numbers() {
        assert_eq!((lack(1024, None), lack(1024, Some(2112))), (None, None));
        let told = lack(1024, Some(1024)).unwrap();
        for words in ["is 1024, which can take 2112 ", "allows 1024:", "LimitNOFILE=2112", "to 480 or less"] {
            assert!(told.contains(words), "{told}");
        }
        assert_eq!(lack(480, Some(1024)), None);
        assert!(lack(480, Some(10)).unwrap().contains("to 1 or less"));
    }
}
