//! Real clients in front of the relay, each scenario beside the same run without it.
//!
//! A scenario is a client, a script for a pretend model service, and two runs of them: [`Via::Direct`] shows what
//! the client's user suffers today, [`Via::Relay`] or [`Via::Run`] what the relay makes of it. Both are asserted,
//! so that a client which learns to wait by itself is noticed too.
//!
//! ```text
//!  client --- Front (counts its requests) ---+--- Upstream           Via::Direct
//!                                            +--- relay --- Upstream Via::Relay
//!  steady-relay run -- client  ------------------------- Upstream    Via::Run
//! ```
//!
//! Run them with `cargo xtask test --only clients`: it installs the clients and makes a network that has nothing
//! but loopback. Without its variables every test here fails.

mod answers;
mod claude;
mod codex;
mod codex_ws;
mod front;
mod gateway;
mod gemini;
mod home;
mod notices;
mod opencode;
mod scene;
mod screens;
mod sdks;
mod terminal;
#[path = "../support/tools.rs"]
mod tools;

pub(crate) use scene::{Client, Line, Ran, Via};
