//! A [tower](https://docs.rs/tower) layer by the rules of Steady Relay: requests to model services that run out of
//! capacity wait and are sent again, where that is right, inside the program that makes them. No relay runs beside it.
//!
//! [`SteadyLayer`] goes around any service that sends an HTTP request and gets its answer. What a failure is, whether the
//! request may be sent again, when and how often: all that is decided by [`relay_core`], as in the relay itself. The layer
//! keeps the body, tells the time, holds the beginning of each answer until it is clear what it is, and then hands on the
//! real one, untouched.
//!
//! ```
//! use bytes::Bytes;
//! use http::{Request, Response};
//! use http_body_util::{BodyExt as _, Full};
//! use steady_relay_tower::relay_core::Profile;
//! use steady_relay_tower::{SendBody, SteadyLayer, Summary};
//! use tower::{Layer as _, ServiceExt as _, service_fn};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! // In a program: hyper's client, reqwest, or a stack of layers around one of them.
//! let mut refusals = 2;
//! let client = service_fn(move |_request: Request<SendBody<Full<Bytes>>>| {
//!     let status = if refusals > 0 { 503 } else { 200 };
//!     refusals -= 1;
//!     async move { Response::builder().status(status).body(Full::from(r#"{"output":[]}"#)) }
//! });
//!
//! let client = SteadyLayer::new(Profile::interactive())
//!     .observe(|call, event| println!("{call} {event:?}"))
//!     .layer(client);
//!
//! let request = Request::post("https://api.openai.com/v1/responses")
//!     .body(Full::from(r#"{"model":"gpt-5","input":"hello"}"#))?;
//! let response = client.oneshot(request).await?;
//! let summary = response.extensions().get::<Summary>().expect("each answer has one");
//! assert_eq!((response.status().as_u16(), summary.sends), (200, 3));
//! assert_eq!(response.into_body().collect().await?.to_bytes(), r#"{"output":[]}"#);
//! # Ok(())
//! # }
//! ```
//!
//! # What it does with a call
//! 1. The body is read and kept, up to [`SteadyLayer::keep`]. One that is larger passes as it comes; its request is sent
//!    once, whatever comes of it.
//! 2. Method, path and a few fields of the body say what is asked. Only a request that carries all it needs, and whose
//!    tools all run at the caller's side, may ever run twice; a body with a `content-encoding` is not read, and so never may.
//! 3. It is sent. Each send has a [`ThisSend`] among its extensions. The time in which the service inside gets ready counts as
//!    a part of its send.
//! 4. The answer is held until it is output, a failure, or past [`SteadyLayer::hold`]: 429 and 5xx, but also a 200 whose body or
//!    stream carries an error. One with a `content-encoding` is judged by its status and headers alone, since nothing is
//!    decoded here: ask for none, or put a layer that decodes inside this one.
//! 5. What may be sent again waits, as long as the service says or the profile's curve, and is sent again.
//! 6. The answer is handed on as it came: head, held bytes, then the rest as it comes, its trailers and its break. A
//!    [`Summary`] among its extensions says what was tried. Where all was in vain, that is the answer of the last send; if
//!    that one got none, the call ends with an [`Error`] that says why, though an earlier one may have been answered.
//!
//! # What it does not do
//! - Each call waits by itself. The gate of the relay, in which the calls of one lane wait in line, is a machine of the core
//!   ([`relay_core::gate`]), but to drive it takes queues of its own; a crowd of calls is better served by a relay.
//! - It sets no limit to the whole of a call. [`Profile::patience`](relay_core::Profile) bounds the waits, and
//!   [`SteadyLayer::first_byte`] each send; whoever wants less drops the future, which stops all of it at once: nothing
//!   runs in the background.
//! - After the answer has been handed on nothing is cut or sent again. An observer hears how it ended.
//! - It takes no error of the service inside for more than it is: [`SteadyLayer::nothing_sent`].
//!
//! Timers are tokio's: calls need a runtime whose time is enabled.

mod answer;
mod body;
mod clock;
mod drive;
mod layer;
mod open;
mod pieces;
mod request;
mod told;
mod words;

pub use body::SteadyBody;
pub use layer::{Steady, SteadyLayer};
pub use relay_core;
pub use request::{SendBody, ThisSend};
pub use told::{Attempt, BoxError, Ended, Error, Summary};

/// The code on the page about the libraries.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
struct Page;
