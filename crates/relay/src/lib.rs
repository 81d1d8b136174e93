//! The relay.

pub mod clock;
