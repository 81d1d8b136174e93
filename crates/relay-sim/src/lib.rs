//! Pretend upstreams and clients: everything the relay meets on the wire, under a test's control.
//!
//! Of all this only the demo and the self-test are shipped, which need [`overload`], [`scene`] and [`sdk`], and a plain
//! [`Upstream`]. It speaks HTTP/1.1 over raw sockets and not through an HTTP library, for two reasons: it must be able
//! to misbehave (cut, reset, lie about lengths, fall silent), and it must see the exact bytes, header case and order
//! included. Real time and real sockets: never use it under paused time.
//!
//! ```text
//!  Client  --- the relay under test ---  Upstream <- Script <- Reply <- Event
//!  (client.rs)                          (upstream.rs)  (script.rs)
//! ```

pub mod busy;
pub mod client;
pub mod fixtures;
pub mod overload;
pub mod scene;
pub mod script;
pub mod sdk;
mod session;
#[cfg_attr(not(feature = "tls"), path = "no_tls.rs")]
mod tls;
pub mod upstream;
#[cfg(feature = "ws")]
pub mod websocket;
mod wire;

pub use client::{Answer, Client, Ending, Request};
pub use script::{Event, LineEnd, Reply, Script, Signal};
#[cfg(feature = "tls")]
pub use tls::Identity;
pub use upstream::{Refused, Seen, Upstream};
