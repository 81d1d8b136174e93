//! Events of a stream: those of the standard, at the same places wherever the network cuts.

use crate::cuts::cuttings;
use relay_core::sse::{Event, Splitter};

/// The most bytes of a name that are kept.
const NAME: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    name: Vec<u8>,
    data: Vec<u8>,
    starts: u64,
    ends: u64,
    cut_short: bool,
}

impl Seen {
    fn note(event: Event<'_>) -> Self {
        let Event { name, data, starts, ends, cut_short } = event;
        Self { name: name.to_vec(), data: data.to_vec(), starts, ends, cut_short }
    }
}

/// Any cutting gives the same events, in order, within the stream and the limit; and they are the standard's.
pub fn sse(stream: &[u8]) {
    for limit in [0, 20, 1 << 20] {
        let whole = split(limit, &[stream]);
        for pieces in cuttings(stream) {
            assert_eq!(split(limit, &pieces), whole, "cut as {pieces:?}");
        }
        let mut last = 0;
        for event in whole.0 {
            assert!(last <= event.starts && event.starts < event.ends && event.ends <= stream.len() as u64);
            assert!(event.data.len() <= limit && (!event.cut_short || event.data.len() == limit));
            last = event.ends;
        }
    }
    // A last CR after CR LF is where the splitter waits and the standard does not.
    let ended = [stream, b"\n"].concat();
    let seen: Vec<_> =
        split(1 << 20, &[&ended]).0.into_iter().map(|event| (event.name, event.data)).collect();
    assert_eq!(seen, by_the_book(&ended));
}

fn split(limit: usize, pieces: &[&[u8]]) -> (Vec<Seen>, bool, u64) {
    let (mut splitter, mut seen) = (Splitter::new(limit), Vec::new());
    for piece in pieces {
        splitter.push(piece, |event| seen.push(Seen::note(event)));
    }
    (seen, splitter.is_mid_event(), splitter.offset())
}

/// The standard's algorithm, as slow and plain as it is written there.
fn by_the_book(stream: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let (mut events, mut name, mut data) = (Vec::new(), Vec::new(), Vec::new());
    for line in lines(stream.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(stream)) {
        if line.is_empty() {
            if let Some(data) = data.strip_suffix(b"\n") {
                events.push((std::mem::take(&mut name), data.to_vec()));
            }
            name.clear();
            data.clear();
            continue;
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (field, value) = colon.map_or((line, b"".as_slice()), |at| (&line[..at], &line[at + 1..]));
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"event" => name = value[..value.len().min(NAME)].to_vec(),
            b"data" => data.extend([value, b"\n"].concat()),
            _ => {}
        }
    }
    events
}

/// The complete lines; CR, LF and CR LF end one.
fn lines(mut rest: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    while let Some(end) = rest.iter().position(|byte| b"\r\n".contains(byte)) {
        lines.push(&rest[..end]);
        let after = if rest[end..].starts_with(b"\r\n") { end + 2 } else { end + 1 };
        rest = &rest[after..];
    }
    lines
}
