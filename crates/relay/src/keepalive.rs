//! Notices peers that vanished without a word: a machine that lost its network says nothing, and a call that waits
//! for it, or an answer that is waited for without limit, would be held for ever.

use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;

/// Silence after which the peer is asked for a sign of life; then every [`AGAIN`], until the system gives it up.
const SILENCE: Duration = Duration::from_secs(60);
const AGAIN: Duration = Duration::from_secs(20);

/// Has the system watch over a connection. Where it cannot, time limits are left.
pub(crate) fn watch(stream: &TcpStream) {
    let keepalive = TcpKeepalive::new().with_time(SILENCE).with_interval(AGAIN);
    let _unsupported = SockRef::from(stream).set_tcp_keepalive(&keepalive);
}
