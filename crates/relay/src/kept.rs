//! A kept request body: sent again as often as is right, and the mark by which a client's own re-send is known.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use relay_core::json;
use relay_core::ledger::CHANGEABLE;

use crate::body::Place;
use crate::decode::{Encoding, decode_all};

/// A kept request body, shared by a call and by those who must know whether theirs is the same.
#[derive(Debug)]
pub(crate) struct KeptBody {
    credential: u64,
    encoding: Option<Encoding>,
    limit: usize,
    bytes: Mutex<Option<(Bytes, Place)>>,
    hash: OnceLock<Option<u64>>,
}

impl KeptBody {
    pub(crate) fn new(
        credential: u64,
        encoding: Option<Encoding>,
        limit: usize,
        bytes: Option<(Bytes, Place)>,
    ) -> Arc<Self> {
        Arc::new(Self { credential, encoding, limit, bytes: Mutex::new(bytes), hash: OnceLock::new() })
    }

    /// The bytes as they came; `None` once they were dropped.
    pub(crate) fn bytes(&self) -> Option<Bytes> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|(bytes, _)| bytes.clone())
    }

    /// The decoded bytes.
    pub(crate) fn plain(&self) -> Option<Bytes> {
        let bytes = self.bytes()?;
        let encoding = self.encoding?;
        if encoding == Encoding::Identity {
            return Some(bytes);
        }
        decode_all(encoding, &bytes, self.limit).ok().map(Bytes::from)
    }

    /// The hash of the canonical form; `None` where the body is no JSON or is gone.
    pub(crate) fn hash(&self) -> Option<u64> {
        *self.hash.get_or_init(|| json::canonical_hash(&self.plain()?, CHANGEABLE))
    }

    /// Whether the hash is already known, so that asking costs nothing.
    pub(crate) fn known_hash(&self) -> Option<u64> {
        self.hash.get().copied().flatten()
    }

    pub(crate) const fn credential(&self) -> u64 {
        self.credential
    }

    /// Frees the bytes.
    pub(crate) fn drop_bytes(&self) {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}
