//! Looks into a *copy* of encoded bytes. What it is not: part of forwarding, which passes the wire's bytes on
//! whatever happens here. Bytes that cannot be decoded, or not within the limits, are opaque to the relay.
//!
//! A stream is decoded as it comes: what the sender flushed comes out of the same [`Decoder::push`] that brought
//! its last byte, since a refusal in a compressed stream has to be seen before it is passed on.

use std::fmt;
use std::io::{self, Write};

use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use http::HeaderValue;

mod zstd;

/// A content coding that can be looked into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// None: the bytes are the text.
    Identity,
    /// `gzip` and `x-gzip`, of one or more members.
    Gzip,
    /// `deflate`: zlib by the standard, the raw format by some senders.
    Deflate,
    /// `br`.
    Brotli,
    /// `zstd`, of one or more frames.
    Zstd,
}

impl Encoding {
    /// The coding that the values of all `Content-Encoding` headers name together; `None` where it is unknown
    /// or more than one is stacked, which no service or client of ours does.
    #[must_use]
    pub fn named<'a>(values: impl IntoIterator<Item = &'a HeaderValue>) -> Option<Self> {
        let mut found = Self::Identity;
        for value in values {
            for name in value.to_str().ok()?.split(',') {
                match (Self::of(name.trim())?, found) {
                    (Self::Identity, _) => {}
                    (coding, Self::Identity) => found = coding,
                    (_, Self::Gzip | Self::Deflate | Self::Brotli | Self::Zstd) => return None,
                }
            }
        }
        Some(found)
    }

    fn of(name: &str) -> Option<Self> {
        const NAMES: [(&str, Encoding); 7] = [
            ("", Encoding::Identity),
            ("identity", Encoding::Identity),
            ("gzip", Encoding::Gzip),
            ("x-gzip", Encoding::Gzip),
            ("deflate", Encoding::Deflate),
            ("br", Encoding::Brotli),
            ("zstd", Encoding::Zstd),
        ];
        NAMES.iter().find(|(known, _)| name.eq_ignore_ascii_case(known)).map(|(_, coding)| *coding)
    }
}

/// Why bytes stay opaque.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Undecodable {
    /// The bytes do not follow the coding they claim.
    #[error("the bytes do not follow their content encoding")]
    Corrupt,
    /// The plain text is larger than the relay is willing to look at.
    #[error("the decoded text is larger than the limit")]
    TooLarge,
    /// The bytes end before the coding's own end.
    #[error("the encoded bytes end too early")]
    Truncated,
}

/// How much plain text a decoder makes at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeLimits {
    /// Out of one push.
    pub per_push: usize,
    /// In all. A zstd stream keeps its plain text in memory until its frame ends, up to this.
    pub total: usize,
}

/// Decodes one stream as it comes.
pub struct Decoder {
    stage: Box<dyn Stage>,
    per_push: usize,
    /// Set once by the first failure: what follows it has no meaning.
    failed: Option<Undecodable>,
    began: bool,
}

impl Decoder {
    /// A decoder for one stream of `encoding`.
    #[must_use]
    pub fn new(encoding: Encoding, limits: DecodeLimits) -> Self {
        let sink = Sink { text: Vec::new(), left_of_push: 0, left_of_total: limits.total, over: false };
        let stage: Box<dyn Stage> = match encoding {
            Encoding::Identity => Box::new(sink),
            Encoding::Gzip => Box::new(MultiGzDecoder::new(sink)),
            Encoding::Deflate => Box::new(Deflate::Unknown { first: None, sink }),
            Encoding::Brotli => Box::new(brotli::DecompressorWriter::new(sink, 16 * 1024)),
            Encoding::Zstd => Box::new(zstd::Zstd::new(sink)),
        };
        Self { stage, per_push: limits.per_push, failed: None, began: false }
    }

    /// Takes the next bytes of the wire and appends to `out` all the plain text that can be known by now.
    ///
    /// # Errors
    /// Where the bytes are corrupt or over a limit; `out` still gets what came before. Each later push fails alike.
    pub fn push(&mut self, wire: &[u8], out: &mut Vec<u8>) -> Result<(), Undecodable> {
        if let Some(failed) = self.failed {
            return Err(failed);
        }
        if wire.is_empty() {
            return Ok(());
        }
        self.began = true;
        self.stage.sink().left_of_push = self.per_push;
        let written = self.stage.write_all(wire).and_then(|()| self.stage.flush());
        self.settle(written, Undecodable::Corrupt, out)
    }

    /// Says that the wire has ended, which some codings can check.
    ///
    /// # Errors
    /// Where the coding's own end has not come.
    pub fn finish(mut self, out: &mut Vec<u8>) -> Result<(), Undecodable> {
        match self.failed {
            Some(failed) => return Err(failed),
            // An answer to HEAD, a 204: the header is there and no byte of the coding is.
            None if !self.began => return Ok(()),
            None => {}
        }
        self.stage.sink().left_of_push = self.per_push;
        let ended = self.stage.end();
        self.settle(ended, Undecodable::Truncated, out)
    }

    fn settle(
        &mut self,
        done: io::Result<()>,
        why: Undecodable,
        out: &mut Vec<u8>,
    ) -> Result<(), Undecodable> {
        let sink = self.stage.sink();
        if out.is_empty() {
            // No copy of what may be a hundred megabytes.
            std::mem::swap(out, &mut sink.text);
        } else {
            out.append(&mut sink.text);
        }
        let why = if sink.over { Undecodable::TooLarge } else { why };
        if done.is_err() {
            self.failed = Some(why);
            return Err(why);
        }
        Ok(())
    }
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder").field("failed", &self.failed).finish_non_exhaustive()
    }
}

/// Decodes a whole body: a request's, or a short answer's.
///
/// # Errors
/// Where the bytes are corrupt or cut short, or the text is longer than `limit`.
pub fn decode_all(encoding: Encoding, bytes: &[u8], limit: usize) -> Result<Vec<u8>, Undecodable> {
    let mut decoder = Decoder::new(encoding, DecodeLimits { per_push: limit, total: limit });
    let mut text = Vec::new();
    decoder.push(bytes, &mut text)?;
    decoder.finish(&mut text)?;
    Ok(text)
}

/// Where a coding's plain text goes: a buffer that refuses to grow past the limits.
#[derive(Debug)]
struct Sink {
    text: Vec<u8>,
    left_of_push: usize,
    left_of_total: usize,
    over: bool,
}

impl Write for Sink {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let fits = text.len().min(self.left_of_push).min(self.left_of_total);
        self.text.extend_from_slice(&text[..fits]);
        self.left_of_push -= fits;
        self.left_of_total -= fits;
        if fits < text.len() {
            self.over = true;
            return Err(io::Error::other("over the limit"));
        }
        Ok(fits)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A coding that is written to and writes its plain text to its sink.
trait Stage: Write + Send {
    fn sink(&mut self) -> &mut Sink;

    /// Fails if the coding's own end has not come.
    fn end(&mut self) -> io::Result<()>;
}

impl Stage for Sink {
    fn sink(&mut self) -> &mut Sink {
        self
    }

    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stage for MultiGzDecoder<Sink> {
    fn sink(&mut self) -> &mut Sink {
        self.get_mut()
    }

    fn end(&mut self) -> io::Result<()> {
        self.try_finish()
    }
}

impl Stage for brotli::DecompressorWriter<Sink> {
    fn sink(&mut self) -> &mut Sink {
        self.get_mut()
    }

    fn end(&mut self) -> io::Result<()> {
        self.close()
    }
}

/// `deflate` by its first two bytes: a zlib header is a multiple of 31 whose low four bits are 8. A raw stream
/// cannot start so unless its first block is a stored one with a padding bit set, which no encoder does.
enum Deflate {
    Unknown { first: Option<u8>, sink: Sink },
    Zlib(ZlibDecoder<Sink>),
    Raw(DeflateDecoder<Sink>),
}

impl Deflate {
    /// Chooses the format at the second byte, and gives the bytes taken so far to its decoder.
    fn choose(&mut self, second: u8) -> io::Result<()> {
        let Self::Unknown { first: Some(first), sink } = self else { return Ok(()) };
        let head = [*first, second];
        let empty = Sink { text: Vec::new(), left_of_push: 0, left_of_total: 0, over: false };
        let sink = std::mem::replace(sink, empty);
        let is_zlib = head[0] & 0x0F == 8 && u16::from_be_bytes(head).is_multiple_of(31);
        *self =
            if is_zlib { Self::Zlib(ZlibDecoder::new(sink)) } else { Self::Raw(DeflateDecoder::new(sink)) };
        self.write_all(&head)
    }
}

impl Write for Deflate {
    fn write(&mut self, wire: &[u8]) -> io::Result<usize> {
        match (&mut *self, wire) {
            (Self::Zlib(zlib), _) => zlib.write(wire),
            (Self::Raw(raw), _) => raw.write(wire),
            (Self::Unknown { .. }, []) => Ok(0),
            (Self::Unknown { first: first @ None, .. }, [byte, ..]) => {
                *first = Some(*byte);
                Ok(1)
            }
            (Self::Unknown { first: Some(_), .. }, [byte, ..]) => {
                self.choose(*byte)?;
                Ok(1)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Zlib(zlib) => zlib.flush(),
            Self::Raw(raw) => raw.flush(),
            Self::Unknown { .. } => Ok(()),
        }
    }
}

impl Stage for Deflate {
    fn sink(&mut self) -> &mut Sink {
        match self {
            Self::Zlib(zlib) => zlib.get_mut(),
            Self::Raw(raw) => raw.get_mut(),
            Self::Unknown { sink, .. } => sink,
        }
    }

    fn end(&mut self) -> io::Result<()> {
        match self {
            Self::Zlib(zlib) => zlib.try_finish(),
            Self::Raw(raw) => raw.try_finish(),
            Self::Unknown { .. } => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

#[cfg(test)]
mod tests;
