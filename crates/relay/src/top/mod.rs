//! `steady-relay top`: what a relay that runs is doing, on a terminal, as it happens. Nothing is changed by it.
//!
//! ```text
//!  relay --/__steady/status, /__steady/calls--> feed --> model --> draw --> screen
//!                                                keys -----^
//! ```
//!
//! `model`, `rows`, `text`, `layout` and `draw` are pure: the time is handed in. `feed` asks, `screen` has the terminal,
//! and `run` brings them together.

mod cursor;
pub mod draw;
pub mod feed;
mod layout;
pub mod model;
pub mod page;
mod rows;
pub mod run;
pub mod screen;
mod signals;
mod text;

pub use rows::Now;

#[cfg(test)]
mod tests;
