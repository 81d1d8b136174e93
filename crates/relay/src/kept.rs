//! A kept request body: sent again as often as is right, and the mark by which a client's own re-send is known.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;

use crate::body::Place;
use crate::body_text::{Written, hash};

/// A kept request body, shared by a call and by those who must know whether theirs is the same.
pub(crate) struct KeptBody {
    credential: u64,
    written: Written,
    bytes: Mutex<Option<(Bytes, Place)>>,
    hash: OnceLock<Option<u64>>,
}

/// Without what people wrote.
impl fmt::Debug for KeptBody {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "KeptBody of {} bytes", self.len())
    }
}

impl KeptBody {
    /// `hash` where it is known already, which it is of every body that takes long to read.
    pub(crate) fn new(
        credential: u64,
        written: Written,
        bytes: Option<(Bytes, Place)>,
        hash: Option<Option<u64>>,
    ) -> Arc<Self> {
        let hash = hash.map_or_else(OnceLock::new, OnceLock::from);
        Arc::new(Self { credential, written, bytes: Mutex::new(bytes), hash })
    }

    /// The bytes as they came; `None` once they were dropped.
    pub(crate) fn bytes(&self) -> Option<Bytes> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|(bytes, _)| bytes.clone())
    }

    /// How many bytes there are; none of a body that passes.
    pub(crate) fn len(&self) -> usize {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map_or(0, |(bytes, _)| bytes.len())
    }

    /// The hash of the canonical form; `None` where the body is no JSON or is gone.
    pub(crate) fn hash(&self) -> Option<u64> {
        *self.hash.get_or_init(|| hash(&self.written.plain(&self.bytes()?)?))
    }

    /// Whether the hash is already known, so that asking costs nothing.
    pub(crate) fn known_hash(&self) -> Option<u64> {
        self.hash.get().copied().flatten()
    }

    pub(crate) const fn credential(&self) -> u64 {
        self.credential
    }

    /// The bytes and their place, which are not kept here any more.
    pub(crate) fn take_bytes(&self) -> Option<(Bytes, Place)> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Frees the bytes.
    pub(crate) fn drop_bytes(&self) {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}
