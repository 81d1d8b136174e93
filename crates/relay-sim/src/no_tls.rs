//! What stands in for `tls.rs` where the feature is off: an acceptor that nobody can make.

use std::convert::Infallible;
use std::io;

use tokio::net::TcpStream;

/// There is none.
#[derive(Clone)]
pub(crate) struct Acceptor(Infallible);

impl Acceptor {
    /// Never called.
    pub(crate) fn accept(&self, _stream: TcpStream) -> std::future::Ready<io::Result<TcpStream>> {
        match self.0 {}
    }
}
