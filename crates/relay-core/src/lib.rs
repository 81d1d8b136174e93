//! The deciding core of Steady Relay.

pub mod dice;
pub mod fault;
pub mod moment;

pub use dice::{Dice, SeededDice};
pub use fault::Fault;
pub use moment::Moment;
pub mod json;
pub mod profile;
pub mod retry_after;
pub mod sse;
pub use profile::{ClientLimit, Curve, Profile};
