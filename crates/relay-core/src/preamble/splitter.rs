//! What a stream is split by into its events.

use crate::{ndjson, sse};

/// What a stream is split by.
#[derive(Debug, Clone)]
pub(super) enum Splitter {
    Events(sse::Splitter),
    Values(ndjson::Splitter),
    /// It comes split: each piece is a message of a WebSocket. So many bytes came.
    Messages(u64),
}

impl Splitter {
    /// One for JSON values, of which one of this length is still read whole; so many bytes came before.
    pub(super) fn values(length: usize, before: u64) -> Self {
        let mut splitter = ndjson::Splitter::new(length);
        splitter.skip(before);
        Self::Values(splitter)
    }

    /// Takes in a piece, and hands each event in it to `each`.
    pub(super) fn push(&mut self, chunk: &[u8], mut each: impl FnMut(sse::Event<'_>)) {
        match self {
            Self::Events(splitter) => splitter.push(chunk, each),
            Self::Values(splitter) => splitter.push(chunk, each),
            Self::Messages(offset) => {
                let starts = *offset;
                *offset += chunk.len() as u64;
                each(sse::Event { name: b"", data: chunk, starts, ends: *offset, cut_short: false });
            }
        }
    }
}
