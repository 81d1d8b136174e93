//! The text of a request's body, looked at and never sent: what the few fields say that matter, and the mark by which
//! the same request is known again.
//!
//! Reading is work for the processor, and an encoded body can grow a thousandfold. So what is more than a moment's
//! work is read away from the threads that serve, two bodies at a time: that bounds the memory of decoded copies to
//! two bodies of the largest size that is kept, and to twice that for zstd, whose decoder keeps its text as history.

use std::sync::Arc;

use bytes::Bytes;
pub(crate) use relay_core::json::Binds;
use relay_core::json::{self, Peek, peek};
use relay_core::ledger::CHANGEABLE;
use tokio::sync::Semaphore;

use crate::decode::{Encoding, decode_all};

/// So many bodies are read at a time.
const AT_ONCE: usize = 2;
/// What can be read in a moment: plain text, and encoded text.
const LIGHT: usize = 256 * 1024;
const LIGHT_ENCODED: usize = 4 * 1024;

/// An encoded body is read as far as so many times its bytes, or as a megabyte: a conversation packs ten times, and what
/// packs a hundred times is made to fill memory.
const DENSEST: usize = 100;
const DENSE_ANYWAY: usize = 1 << 20;

/// How a body is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Written {
    /// `None`: in a way that is not known here.
    pub(crate) encoding: Option<Encoding>,
    /// The most plain text that is made of it.
    pub(crate) limit: usize,
}

impl Written {
    /// The plain text; `None` where it cannot be read, or not within the limit.
    pub(crate) fn plain(self, bytes: &Bytes) -> Option<Bytes> {
        match self.encoding? {
            Encoding::Identity => Some(bytes.clone()),
            encoding @ (Encoding::Gzip | Encoding::Deflate | Encoding::Brotli | Encoding::Zstd) => {
                let limit = self.limit.min(bytes.len().saturating_mul(DENSEST).max(DENSE_ANYWAY));
                decode_all(encoding, bytes, limit).ok().map(Bytes::from)
            }
        }
    }

    fn is_light(self, bytes: &Bytes) -> bool {
        bytes.len() <= if self.encoding == Some(Encoding::Identity) { LIGHT } else { LIGHT_ENCODED }
    }
}

/// The mark of a plain text; `None` where it is no JSON.
pub(crate) fn hash(plain: &Bytes) -> Option<u64> {
    json::canonical_hash(plain, CHANGEABLE)
}

/// What a body says.
#[derive(Debug, Default)]
pub(crate) struct Read {
    /// The fields that matter.
    pub(crate) peeked: Option<Peek>,
    /// Its mark, if that was looked for: a light body's is made when somebody asks.
    pub(crate) hash: Option<Option<u64>>,
    /// What binds it to one service, if that was looked for.
    pub(crate) binds: Option<Binds>,
}

/// Reads bodies.
#[derive(Debug)]
pub(crate) struct Reader {
    places: Arc<Semaphore>,
}

impl Default for Reader {
    fn default() -> Self {
        Self { places: Arc::new(Semaphore::new(AT_ONCE)) }
    }
}

impl Reader {
    /// What a body says, and where that is looked for, what binds it to one service; nothing where it cannot be read.
    pub(crate) async fn read(&self, bytes: &Bytes, written: Written, looks_for_bonds: bool) -> Read {
        let binds = move |plain: &Bytes| looks_for_bonds.then(|| json::binding_member(plain));
        // What little bytes become may be anything but little.
        let light = Written { limit: written.limit.min(LIGHT), ..written };
        if written.is_light(bytes)
            && let Some(plain) = light.plain(bytes)
        {
            return Read { peeked: peek(&plain), hash: None, binds: binds(&plain) };
        }
        let bytes = bytes.clone();
        self.apart(move || {
            let plain = written.plain(&bytes);
            let peeked = plain.as_ref().and_then(|plain| peek(plain));
            Read { peeked, hash: Some(plain.as_ref().and_then(hash)), binds: plain.as_ref().and_then(binds) }
        })
        .await
        .unwrap_or_default()
    }

    /// Does heavy work on another thread, when it is its turn. Whoever goes away while it waits has it not done.
    async fn apart<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let place = Arc::clone(&self.places).acquire_owned().await.ok()?;
        let done = tokio::task::spawn_blocking(move || {
            let done = work();
            // Not before: the one who asked may be gone long since.
            drop(place);
            done
        });
        done.await.ok()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use super::*;

    fn zipped(plain: &[u8]) -> Bytes {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap().into()
    }

    #[tokio::test]
    async fn light_and_heavy_bodies_say_the_same() {
        let text = |length: usize| {
            let words: String = (0..length).map(|at| char::from(b'a' + (at * at % 23) as u8)).collect();
            format!(r#"{{"model":"gpt-x","stream":true,"input":"{words}"}}"#).into_bytes()
        };
        let reader = Reader::default();
        for length in [10, LIGHT + 10] {
            for encoding in [Encoding::Identity, Encoding::Gzip] {
                let plain = text(length);
                let bytes = if encoding == Encoding::Gzip { zipped(&plain) } else { plain.clone().into() };
                let written = Written { encoding: Some(encoding), limit: 1 << 20 };
                let read = reader.read(&bytes, written, false).await;
                let peeked = read.peeked.unwrap();
                assert_eq!((peeked.model.as_deref(), peeked.stream), (Some("gpt-x"), Some(true)));
                let mark = read.hash.unwrap_or_else(|| hash(&written.plain(&bytes).unwrap()));
                assert_eq!(mark, hash(&plain.into()));
            }
        }
    }

    #[tokio::test]
    async fn a_small_body_that_decodes_to_a_large_one_is_read_apart() {
        let reader = Reader::default();
        let small = zipped(&vec![b' '; LIGHT * 2]);
        assert!(small.len() <= LIGHT_ENCODED, "{}", small.len());
        let written = Written { encoding: Some(Encoding::Gzip), limit: 1 << 20 };
        let places = Arc::clone(&reader.places).acquire_many_owned(AT_ONCE as u32).await.unwrap();
        let mut reading = Box::pin(reader.read(&small, written, false));
        assert!(polled_once(&mut reading).await.is_pending());
        drop(places);
        assert_eq!(reading.await.hash, Some(None));
    }

    #[tokio::test]
    async fn what_is_unreadable_or_beyond_the_limit_says_nothing() {
        let reader = Reader::default();
        let bomb = zipped(&vec![b' '; 8 << 20]);
        assert!(bomb.len() > LIGHT_ENCODED, "{}", bomb.len());
        for (bytes, encoding) in [
            (bomb, Some(Encoding::Gzip)),
            (vec![b'x'; LIGHT * 2].into(), Some(Encoding::Zstd)),
            (vec![b'x'; LIGHT * 2].into(), None),
        ] {
            let read = reader.read(&bytes, Written { encoding, limit: 1 << 20 }, false).await;
            assert!(read.peeked.is_none() && read.hash == Some(None), "{encoding:?}: {read:?}");
        }
    }

    #[test]
    fn what_packs_too_well_to_be_a_conversation_is_not_unpacked() {
        let conversation = |turns: usize| {
            let turn =
                |number: usize| format!("{{\"role\":\"user\",\"content\":\"turn {number} of many\"}},");
            (0..turns).map(turn).collect::<String>()
        };
        let limit = 64 << 20;
        for (plain, is_read) in [
            (vec![b' '; DENSE_ANYWAY], true),
            (conversation(400_000).into_bytes(), true),
            (vec![b' '; 32 << 20], false),
        ] {
            let bytes = zipped(&plain);
            let written = Written { encoding: Some(Encoding::Gzip), limit };
            let read = written.plain(&bytes).map(|read| read.len());
            assert_eq!(read, is_read.then_some(plain.len()), "{} of {}", bytes.len(), plain.len());
        }
    }

    #[tokio::test]
    async fn so_many_are_read_at_a_time_and_no_more_although_their_clients_left() {
        let reader = Reader::default();
        let running = Arc::new(AtomicUsize::new(0));
        let (began, begun) = mpsc::channel();
        let mut ends = Vec::new();
        let mut readings = Vec::new();
        for _ in 0..4 {
            let (end, ended) = mpsc::channel::<()>();
            ends.push(end);
            let (running, began) = (Arc::clone(&running), began.clone());
            readings.push(Box::pin(reader.apart(move || {
                running.fetch_add(1, Ordering::SeqCst);
                began.send(()).unwrap();
                let _ended = ended.recv();
                running.fetch_sub(1, Ordering::SeqCst);
            })));
        }
        let all = async {
            for reading in &mut readings {
                assert!(polled_once(reading).await.is_pending());
            }
        };
        all.await;
        // Two have begun; those who asked for the first and the third go away.
        let begun = tokio::task::spawn_blocking(move || {
            begun.recv().unwrap();
            begun.recv().unwrap();
            begun
        })
        .await
        .unwrap();
        drop(readings.remove(2));
        drop(readings.remove(0));
        assert_eq!((reader.places.available_permits(), running.load(Ordering::SeqCst)), (0, 2));
        // The first ends: the fourth begins, and the third never will.
        drop(ends.remove(0));
        assert!(polled_once(&mut readings[1]).await.is_pending());
        drop(ends);
        for reading in readings {
            reading.await.unwrap();
        }
        assert_eq!(begun.try_iter().count(), 1);
    }

    /// Polls once.
    async fn polled_once<F: Future + Unpin>(future: &mut F) -> std::task::Poll<F::Output> {
        let mut future = Some(future);
        std::future::poll_fn(|cx| {
            std::task::Poll::Ready(match future.take() {
                Some(future) => std::pin::Pin::new(future).poll(cx),
                None => std::task::Poll::Pending,
            })
        })
        .await
    }
}
