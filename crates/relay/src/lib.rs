//! The relay.

pub mod clock;
pub mod decode;
pub mod headers;
pub mod tls;
pub mod upstream;
