//! The deciding core of Steady Relay.

pub mod base_url;
pub mod config;
pub mod dice;
pub mod fault;
pub mod listen;
pub mod moment;
pub mod overrides;
pub mod profile;
pub mod units;

pub use base_url::{BaseUrl, Scheme};
pub use config::Config;
pub use dice::{Dice, SeededDice};
pub use fault::Fault;
pub use listen::Listen;
pub use moment::Moment;
pub use overrides::ProfileOverrides;
pub use profile::{ClientLimit, Curve, Profile};
