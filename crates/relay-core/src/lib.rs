//! The deciding core of Steady Relay: which failures may be sent again, when, how often, and what a client is
//! told at the end. It does no I/O, reads no clock, rolls no dice of its own and writes no log: time
//! ([`Moment`]), the wall clock and chance ([`Dice`]) are handed in, and what happens comes out as [`Event`]s.
//!
//! # The words
//! A **call** is one client request, from accept to outcome. A **send** is one physical request to an upstream;
//! a call has 1..n. A **fault** is what went wrong upstream, as data; its **evidence** is what it says about
//! execution. A **floor** is the shortest wait the upstream asked for. The **preamble** is what is held of an
//! answer before **commit**, the point after which the answer belongs to the client and no resend is possible.
//! The **budget** is what may still be spent; **patience** the longest a client is kept waiting.
//!
//! # The promises
//! 1. **Never twice**: what may have run is not sent again but by a counted grant.
//! 2. **Never early**: no send before the moment the upstream asked for.
//! 3. **Never many**: at most `sends` physical sends per call, counted before each.
//! 4. **Never forever**: a client waits at most `patience`.
//! 5. **Never altered**: after commit every byte passes unchanged and at once.
//! 6. **Never leaked**: no secret and no prompt is in an event.
//!
//! `tests/world.rs` plays a million seeded calls against them, `tests/gate_world` as many events against the gate.
//!
//! # Where to go
//! [`call`] is the life of one call; it asks [`decide`] (the table), [`wait`] and [`budget`]. [`preamble`] listens
//! to an answer with the help of [`dialect`], which turns answers into [`failure`]s. [`answer`] says what a client
//! is told, [`client`] who it is, [`ledger`] what its earlier calls spent. Where there is more than one upstream, [`router`]
//! chooses, with what [`breaker`] and [`bound`] allow; [`closed`] says when
//! another model may answer. [`config`] holds every setting.

pub mod alert;
pub mod answer;
pub mod base_url;
pub mod bound;
pub mod breaker;
pub mod budget;
pub mod call;
pub mod client;
pub mod closed;
pub mod config;
pub mod decide;
pub mod dialect;
pub mod dice;
pub mod event;
pub mod evidence;
pub mod failure;
pub mod fault;
pub mod gate;
pub mod json;
pub mod ledger;
pub mod listen;
pub mod moment;
pub mod ndjson;
pub mod notice;
pub mod overrides;
pub mod plain;
pub mod preamble;
pub mod profile;
pub mod quota;
pub mod redact;
pub mod renewal;
pub mod retry_after;
pub mod router;
pub mod sse;
pub mod trace;
pub mod units;
pub mod usage;
pub mod wait;
pub mod warm;
pub mod ways;
pub mod words;

pub use base_url::{BaseUrl, Scheme};
pub use config::Config;
pub use dice::{Dice, SeededDice};
pub use event::Event;
pub use evidence::Evidence;
pub use fault::Fault;
pub use listen::Listen;
pub use moment::Moment;
pub use overrides::ProfileOverrides;
pub use profile::{ClientLimit, Curve, Profile};
pub use words::Lang;
