//! The relay.

pub mod cookies;
pub mod credential;
pub mod guard;
pub mod listen;
pub mod run;
pub mod target;
