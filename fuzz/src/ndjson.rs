//! Values of a stream of JSON: the same at the same places wherever the network cuts, and lines of JSON come out as
//! they went in.

use crate::cuts::cuttings;
use relay_core::ndjson::Splitter;

/// A value: its bytes, where it starts and ends, whether it was cut short.
type Seen = (Vec<u8>, u64, u64, bool);

/// Any cutting gives the same values, in order, within the stream and the limit; whole objects are found as they are.
pub fn ndjson(stream: &[u8]) {
    for limit in [0, 20, 1 << 20] {
        let whole = split(limit, &[stream]);
        for pieces in cuttings(stream) {
            assert_eq!(split(limit, &pieces), whole, "cut as {pieces:?}");
        }
        let mut last = 0;
        for (data, starts, ends, cut_short) in whole {
            assert!(last <= starts && starts < ends && ends <= stream.len() as u64);
            assert!(data.len() <= limit && (!cut_short || data.len() == limit));
            let (from, to) = (usize::try_from(starts), usize::try_from(ends));
            let bytes = from.ok().zip(to.ok()).and_then(|(from, to)| stream.get(from..to));
            assert!(bytes.is_some_and(|bytes| bytes.starts_with(&data) && (cut_short || bytes == data)));
            last = ends;
        }
    }
    let objects: Vec<&[u8]> = stream.split(|byte| *byte == b'\n').filter_map(object).collect();
    for (before, between, after) in [("", "\n", "\n"), ("[", ",\r\n", "]"), ("\u{FEFF}\n", "", "")] {
        let joined = [before.as_bytes(), &objects.join(between.as_bytes()), after.as_bytes()].concat();
        let seen: Vec<_> = split(1 << 20, &[&joined]).into_iter().map(|(data, ..)| data).collect();
        assert_eq!(seen, objects, "of {:?}", String::from_utf8_lossy(&joined));
    }
}

fn split(limit: usize, pieces: &[&[u8]]) -> Vec<Seen> {
    let (mut splitter, mut seen) = (Splitter::new(limit), Vec::new());
    for piece in pieces {
        splitter.push(piece, |event| {
            assert!(event.name.is_empty());
            seen.push((event.data.to_vec(), event.starts, event.ends, event.cut_short));
        });
    }
    assert_eq!(splitter.offset(), pieces.iter().map(|piece| piece.len() as u64).sum::<u64>());
    seen
}

/// The line, if it is an object.
fn object(line: &[u8]) -> Option<&[u8]> {
    let line = line.trim_ascii();
    let is_object = line.starts_with(b"{") && serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok();
    is_object.then_some(line)
}
