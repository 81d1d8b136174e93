//! The relay.
