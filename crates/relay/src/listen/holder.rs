//! Which program holds a port. Linux tells (`/proc`); elsewhere there is no answer without another program,
//! and the message names that program instead.

use std::net::SocketAddr;

use super::Holder;

/// The program that listens where `at` would, if the system tells us.
#[cfg(not(target_os = "linux"))]
pub(super) fn of(_at: SocketAddr) -> Option<Holder> {
    None
}

/// The program that listens where `at` would, if the system tells us.
#[cfg(target_os = "linux")]
pub(super) fn of(at: SocketAddr) -> Option<Holder> {
    let inode = ["/proc/net/tcp", "/proc/net/tcp6"]
        .into_iter()
        .filter_map(|table| std::fs::read_to_string(table).ok())
        .find_map(|table| linux::inode_of_listener(&table, at))?;
    linux::process_with_socket(inode)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::OsStr;
    use std::fs;
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
    use std::path::Path;

    use super::Holder;

    /// The state "listening" in `/proc/net/tcp` (`TCP_LISTEN`).
    const LISTENING: &str = "0A";

    /// The socket in this table that is in the way of `at`: the same port, and the same or every address.
    pub(super) fn inode_of_listener(table: &str, at: SocketAddr) -> Option<u64> {
        table.lines().skip(1).find_map(|line| {
            let mut columns = line.split_ascii_whitespace();
            let (ip, port) = columns.nth(1)?.split_once(':')?;
            let state = columns.nth(1)?;
            let inode = columns.nth(5)?;
            let ip = address(ip)?;
            let in_the_way = ip == at.ip() || ip.is_unspecified() || at.ip().is_unspecified();
            (state == LISTENING && u16::from_str_radix(port, 16).ok()? == at.port() && in_the_way)
                .then(|| inode.parse().ok())?
        })
    }

    /// The kernel prints an address as 32-bit words in the order of the machine.
    fn address(hex: &str) -> Option<IpAddr> {
        let word = |from: usize| Some(u32::from_str_radix(hex.get(from..from + 8)?, 16).ok()?.to_ne_bytes());
        if hex.len() == 8 {
            return Some(IpAddr::V4(Ipv4Addr::from(word(0)?)));
        }
        let mut bytes = [0; 16];
        for (at, part) in bytes.chunks_exact_mut(4).enumerate() {
            part.copy_from_slice(&word(at * 8)?);
        }
        Some(IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical())
    }

    /// The process that has this socket open. Those of other users stay unseen without the right to look.
    pub(super) fn process_with_socket(inode: u64) -> Option<Holder> {
        let wanted = format!("socket:[{inode}]");
        fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let holds = has_open(&entry.path().join("fd"), wanted.as_ref());
            let name = holds.then(|| fs::read_to_string(entry.path().join("comm")).ok())??;
            Some(Holder { name: name.trim().escape_debug().to_string(), pid })
        })
    }

    fn has_open(descriptors: &Path, wanted: &OsStr) -> bool {
        let Ok(open) = fs::read_dir(descriptors) else { return false };
        open.flatten().any(|link| fs::read_link(link.path()).is_ok_and(|to| to.as_os_str() == wanted))
    }

    #[cfg(all(test, target_endian = "little"))]
    mod tests {
        use super::*;

        const TABLE: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:2253 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 111 1 0 100 0 0 10 0
   1: 0100007F:2254 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 222 1 0 20 4 30 10 -1
   2: 00000000:2255 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 333 1 0 100 0 0 10 0
   3: 00000000000000000000000001000000:2256 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 444 1 0 100 0 0 10 0
garbage
";

        #[test]
        fn the_listener_in_the_way_is_found() {
            let rows = [
                ("127.0.0.1:8787", Some(111)),
                ("127.0.0.2:8787", None),
                ("0.0.0.0:8787", Some(111)),
                ("127.0.0.1:8788", None),
                ("127.0.0.1:8789", Some(333)),
                ("[::1]:8790", Some(444)),
                ("127.0.0.1:9", None),
            ];
            for (at, inode) in rows {
                assert_eq!(inode_of_listener(TABLE, at.parse().unwrap()), inode, "{at}");
            }
        }
    }
}
