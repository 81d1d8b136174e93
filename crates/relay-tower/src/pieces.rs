//! Bytes that are held, in the pieces they came in. Crumbs are put together: kept apart, each would weigh many times
//! its bytes.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

/// A piece up to this size is copied to those before it.
const CRUMB: usize = 4 * 1024;

/// So much is put together at most.
const LUMP: usize = 64 * 1024;

/// Bytes in their order.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    whole: VecDeque<Bytes>,
    /// Crumbs that came behind all others.
    crumbs: BytesMut,
    len: usize,
}

impl Pieces {
    /// How many bytes there are.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Adds a piece behind all others.
    pub(crate) fn push(&mut self, piece: Bytes) {
        self.len += piece.len();
        if piece.len() <= CRUMB {
            self.crumbs.extend_from_slice(&piece);
            if self.crumbs.len() >= LUMP {
                self.sweep();
            }
            return;
        }
        self.sweep();
        self.whole.push_back(piece);
    }

    /// Takes the first.
    pub(crate) fn pop(&mut self) -> Option<Bytes> {
        let first = self.whole.pop_front().or_else(|| {
            let crumbs = std::mem::take(&mut self.crumbs);
            (!crumbs.is_empty()).then(|| crumbs.freeze())
        })?;
        self.len -= first.len();
        Some(first)
    }

    /// All of them as one.
    pub(crate) fn into_one(mut self) -> Bytes {
        self.sweep();
        if self.whole.len() > 1 {
            return Vec::from(self.whole).concat().into();
        }
        self.whole.pop_front().unwrap_or_default()
    }

    fn sweep(&mut self) {
        if !self.crumbs.is_empty() {
            self.whole.push_back(self.crumbs.split().freeze());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_comes_out_as_it_went_in_and_crumbs_weigh_little() {
        let sent: Vec<Vec<u8>> = (0..50_000_usize)
            .map(|at| vec![u8::try_from(at % 251).unwrap(); if at % 10_000 == 0 { CRUMB + 1 } else { 1 }])
            .collect();
        let (mut one, mut other) = (Pieces::default(), Pieces::default());
        for piece in &sent {
            one.push(piece.clone().into());
            other.push(piece.clone().into());
        }
        let all = sent.concat();
        assert_eq!(one.len(), all.len());
        assert!(one.whole.len() < 20, "{} pieces", one.whole.len());
        let mut came = Vec::new();
        while let Some(piece) = one.pop() {
            came.extend_from_slice(&piece);
        }
        assert!(came == all && one.len() == 0);
        assert!(other.into_one() == all);
        assert!(Pieces::default().into_one().is_empty());
    }
}
