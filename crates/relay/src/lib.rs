//! The relay.

pub mod clock;
pub mod headers;
