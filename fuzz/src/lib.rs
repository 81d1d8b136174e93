//! What must hold for any bytes at all, as plain functions: they return, or they panic with what fell.
//!
//! A fuzzer calls them with bytes of its own making (`cargo xtask fuzz`), and `tests/replay.rs` with every file of
//! the committed corpora. What is random in them, such as where a stream is cut, comes from the bytes themselves,
//! so that a file is all it takes to see a failure again.

mod config;
mod cuts;
mod decode;
mod env_file;
mod json;
mod messages;
mod ndjson;
mod preamble;
mod redact;
mod retry_after;
mod setup;
mod sse;

pub use config::config;
pub use decode::decode;
pub use env_file::env_file;
pub use json::json;
pub use messages::messages;
pub use ndjson::ndjson;
pub use preamble::preamble;
pub use redact::redact;
pub use retry_after::retry_after;
pub use setup::setup;
pub use sse::sse;

/// A target: the name of its program and of its corpus, and its body.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: [Target; 11] = [
    ("config", config),
    ("decode", decode),
    ("env_file", env_file),
    ("json", json),
    ("messages", messages),
    ("ndjson", ndjson),
    ("preamble", preamble),
    ("redact", redact),
    ("retry_after", retry_after),
    ("setup", setup),
    ("sse", sse),
];
