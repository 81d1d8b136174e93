//! `steady-relay setup` and `undo`: pointing clients at the relay for good, by their own settings files, and taking that
//! back.
//!
//! ```text
//!  Machine --> clients --> findings --> plan (pure) --> diff, consent --> journal --> files
//!                             '--> survey                                     |
//!                                                            undo <-----------'
//! ```
//!
//! What decides sees a [`Machine`] that is handed in, and texts; only [`here`] and `disk` touch the real one.

mod address;
#[expect(dead_code, reason = "env files are looked at by the verb")]
mod clients;
#[expect(dead_code, reason = "edits are made by the verb")]
mod document;
pub mod here;
mod machine;
mod survey;

pub use address::RelayAt;
pub use clients::Client;
pub use document::Flaw;
pub use machine::{Bad, Listener, Machine, Side, System};
pub use survey::{ClientState, Standing, survey};
