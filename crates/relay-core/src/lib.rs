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
//! # In a program of one's own
//! Whoever embeds the rules owns the clock and the sockets, and does for each request what is done here: say what it is
//! ([`dialect::route`], [`json::peek`]), make a [`call::Call`] of it, ask [`call::Call::next`] and do that one thing, show
//! each answer to a [`preamble::Preamble`] piece by piece, and tell the call what came of it. (For a stack of `tower`
//! services on tokio that is done already, in the crate `steady-relay-tower`.)
//!
//! ```
//! use std::time::{Duration, SystemTime};
//!
//! use http::{HeaderMap, HeaderValue, Method, StatusCode};
//! use relay_core::call::{Call, Ending, Plan, Step};
//! use relay_core::evidence::{Nature, Operation};
//! use relay_core::json::{Peek, peek};
//! use relay_core::preamble::{Asked, Head, Hold, Preamble, Verdict};
//! use relay_core::{Moment, Profile, SeededDice, dialect};
//!
//! // The service refuses once, names a time, and then answers.
//! let answers = [(429, r#"{"error":{"code":"rate_limit_exceeded"}}"#), (200, r#"{"output":[]}"#)];
//! let mut answers = answers.into_iter();
//!
//! // What is asked, and whether a second run would cost more than money.
//! let body = peek(br#"{"model":"m","input":"hello"}"#);
//! let route = dialect::route(&Method::POST, "/v1/responses");
//! let self_contained = body.as_ref().is_some_and(Peek::is_self_contained);
//! let nature = Nature { operation: route.operation, self_contained, kept: true };
//! let asked = Asked {
//!     dialect: route.dialect,
//!     generation: route.operation == Operation::Generation,
//!     streams: route.streams(body.and_then(|body| body.stream)),
//!     hold: Hold { bytes: 256 << 10, time: Some(Duration::from_secs(20)) },
//!     withhold: &[],
//! };
//!
//! // Here time only passes where the call waits. Outside, `now` is read from a clock, and a timer is set.
//! let (mut now, mut dice) = (Moment::ZERO, SeededDice::new(7));
//! let mut call = Call::new(Plan::alone(Profile::interactive(), nature), now);
//! let ending = loop {
//!     match call.next(now) {
//!         Step::Wait(waiting) => {
//!             now = waiting.not_before.unwrap_or(now);
//!             call.granted(now);
//!         }
//!         Step::Send { .. } => {
//!             let (status, body) = answers.next().expect("two sends are enough");
//!             let mut headers = HeaderMap::new();
//!             headers.insert("content-type", HeaderValue::from_static("application/json"));
//!             headers.insert("retry-after", HeaderValue::from_static("7"));
//!             let status = StatusCode::from_u16(status).expect("it is one");
//!             let head = Head { status, headers, bodiless: false, sent: now, arrived: now };
//!             let mut preamble = Preamble::new(asked, head, SystemTime::UNIX_EPOCH);
//!             let mut verdict = preamble.at_head();
//!             if verdict == Verdict::Hold {
//!                 verdict = preamble.hear(body.as_bytes(), body.len(), now);
//!             }
//!             if verdict == Verdict::Hold {
//!                 verdict = preamble.ended();
//!             }
//!             match verdict {
//!                 Verdict::Fault(failure) => call.failed(*failure, now, &mut dice),
//!                 Verdict::Pass | Verdict::Hold | Verdict::Cut { .. } => call.committed(),
//!             }
//!         }
//!         Step::End(ending) => break ending,
//!     }
//! };
//! assert_eq!((ending, call.sends()), (Ending::Committed, 2));
//! assert!(now.since_start() >= Duration::from_secs(7), "never early");
//! # let told: Vec<_> = call.take_events();
//! # assert_eq!(told.len(), 5, "{told:?}");
//! ```
//!
//! The rules for whoever drives a call: a send that failed is told before `next` is asked again; what an error of the
//! connection proves decides between [`Evidence::NeverSent`] and [`Evidence::MaybeRan`], and what proves nothing is
//! the latter; where bytes of an answer have been handed on, the call is committed. Calls that are to wait in one line
//! need a [`gate::Gate`] for each lane, which says who is sent next: the relay's `lanes` shows how.
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
