//! The relay.

pub mod cli;
pub mod settings;
