//! zstd, frame by frame and block by block.
//!
//! `ruzstd` shows no text before it is older than the frame's window (often 2 to 8 MiB) or the frame has ended, so
//! in a stream of events nothing would be seen until the end. Two facts let us see each block at once, and a test
//! holds each of them: a decoder that was given an empty last block believes that its frame has ended, shows all
//! its text, and still decodes further blocks; and a writer that fails leaves the text where it is, as the history
//! that later blocks refer to. The price is that a frame's text stays in memory until the frame ends.
//!
//! ```text
//! Head --frame--> Block --last--> Tail (checksum, not checked) --> Head
//!      --skippable frame--> Skip --> Head
//! ```

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::{Sink, Stage};

const MAGIC: u32 = 0xFD2F_B528;
const SKIPPABLE: std::ops::RangeInclusive<u32> = 0x184D_2A50..=0x184D_2A5F;
/// RFC 8878, 3.1.1.2.4.
const LARGEST_BLOCK: usize = 128 * 1024;

/// Decodes zstd into its sink.
pub(super) struct Zstd {
    sink: Sink,
    /// Bytes of the wire that do not make a whole piece yet.
    pending: Vec<u8>,
    next: Next,
}

/// The piece of the wire that comes next.
enum Next {
    Head,
    Block(Box<Frame>),
    /// The last bytes of a frame, or a frame that means nothing to a decoder: this many.
    Skip(usize),
}

struct Frame {
    decoder: FrameDecoder,
    /// How much of the frame's text went to the sink.
    shown: usize,
    has_checksum: bool,
}

impl Zstd {
    pub(super) fn new(sink: Sink) -> Self {
        Self { sink, pending: Vec::new(), next: Next::Head }
    }

    /// Decodes the first whole piece of `wire`; says how long it was, or `None` where it is not whole yet.
    fn step(&mut self, wire: &[u8]) -> io::Result<Option<usize>> {
        match &mut self.next {
            Next::Head => self.head(wire),
            Next::Skip(left) => {
                let taken = wire.len().min(*left);
                *left -= taken;
                if *left == 0 {
                    self.next = Next::Head;
                }
                Ok((taken > 0 || matches!(self.next, Next::Head)).then_some(taken))
            }
            Next::Block(frame) => {
                let Some((length, last)) = block_length(wire)? else { return Ok(None) };
                let Some(block) = wire.get(..length) else { return Ok(None) };
                frame.decode(block)?;
                frame.show(&mut self.sink)?;
                if last {
                    self.next = if frame.has_checksum { Next::Skip(4) } else { Next::Head };
                }
                Ok(Some(length))
            }
        }
    }

    fn head(&mut self, wire: &[u8]) -> io::Result<Option<usize>> {
        let Some((magic, rest)) = wire.split_first_chunk() else { return Ok(None) };
        let magic = u32::from_le_bytes(*magic);
        if SKIPPABLE.contains(&magic) {
            let Some((length, _)) = rest.split_first_chunk() else { return Ok(None) };
            self.next = Next::Skip(usize::try_from(u32::from_le_bytes(*length)).map_err(io::Error::other)?);
            return Ok(Some(8));
        }
        if magic != MAGIC {
            return Err(corrupt());
        }
        let Some(descriptor) = rest.first() else { return Ok(None) };
        let length = head_length(*descriptor);
        let Some(head) = wire.get(..length) else { return Ok(None) };
        self.next = Next::Block(Box::new(Frame::new(head)?));
        Ok(Some(length))
    }
}

/// The length of a frame's head (RFC 8878, 3.1.1.1), magic number included.
fn head_length(descriptor: u8) -> usize {
    let single_segment = descriptor & 0x20 != 0;
    let window = usize::from(!single_segment);
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let content_size = [usize::from(single_segment), 2, 4, 8][usize::from(descriptor >> 6)];
    4 + 1 + window + dictionary + content_size
}

/// The length of a block, its head included, and whether it is the frame's last.
fn block_length(wire: &[u8]) -> io::Result<Option<(usize, bool)>> {
    let Some([a, b, c]) = wire.first_chunk() else { return Ok(None) };
    let head = usize::from(*a) | usize::from(*b) << 8 | usize::from(*c) << 16;
    let (last, kind, size) = (head & 1 == 1, head >> 1 & 3, head >> 3);
    if size > LARGEST_BLOCK {
        return Err(corrupt());
    }
    // A block of one repeated byte holds that byte; its size is how often.
    let held = if kind == 1 { 1 } else { size };
    Ok(Some((3 + held, last)))
}

impl Frame {
    fn new(head: &[u8]) -> io::Result<Self> {
        let mut head = head.to_vec();
        let has_checksum = head[4] & 4 != 0;
        // The checksum comes after the text is known, and nothing depends on it.
        head[4] &= !4;
        let mut decoder = FrameDecoder::new();
        // No memory is set aside for the window; the sink's limit bounds the text.
        decoder.set_max_window_size(u64::MAX);
        decoder.init(head.as_slice()).map_err(io::Error::other)?;
        let mut frame = Self { decoder, shown: 0, has_checksum };
        const EMPTY_LAST_BLOCK: [u8; 3] = [1, 0, 0];
        frame.decode(&EMPTY_LAST_BLOCK)?;
        Ok(frame)
    }

    /// `ruzstd` has assertions that corrupt input might reach; such input must not end a call.
    fn decode(&mut self, block: &[u8]) -> io::Result<()> {
        let decoder = &mut self.decoder;
        catch_unwind(AssertUnwindSafe(|| decoder.decode_blocks(block, BlockDecodingStrategy::UptoBlocks(1))))
            .map_err(|_panic| corrupt())?
            .map(|_whether_last| ())
            .map_err(io::Error::other)
    }

    /// Copies the text that is new to `sink` and leaves all of it in the decoder.
    fn show(&mut self, sink: &mut Sink) -> io::Result<()> {
        let mut peek = Peek { skip: self.shown, sink, seen: Ok(0) };
        if self.decoder.can_collect() == 0 || self.decoder.collect_to_writer(&mut peek).is_ok() {
            return Ok(());
        }
        self.shown += peek.seen?;
        Ok(())
    }
}

/// Takes a look and fails, so that the text stays where it is.
struct Peek<'a> {
    skip: usize,
    sink: &'a mut Sink,
    seen: io::Result<usize>,
}

impl Write for Peek<'_> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        if let Some(fresh) = text.get(self.skip..) {
            self.seen = self.sink.write_all(fresh).map(|()| fresh.len());
        }
        Err(io::Error::other("only looking"))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn corrupt() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

impl Write for Zstd {
    fn write(&mut self, wire: &[u8]) -> io::Result<usize> {
        let mut pending = std::mem::take(&mut self.pending);
        pending.extend_from_slice(wire);
        let mut done = 0;
        while let Some(taken) = self.step(&pending[done..])? {
            done += taken;
        }
        pending.drain(..done);
        self.pending = pending;
        Ok(wire.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stage for Zstd {
    fn sink(&mut self) -> &mut Sink {
        &mut self.sink
    }

    fn end(&mut self) -> io::Result<()> {
        match self.next {
            Next::Head if self.pending.is_empty() => Ok(()),
            Next::Head | Next::Block(_) | Next::Skip(_) => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}
