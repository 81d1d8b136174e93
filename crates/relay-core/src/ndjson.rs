//! Cuts a stream of JSON values into values while it passes by: lines of JSON (`application/x-ndjson`, Ollama), or
//! the items of one list (`[{…},\n{…}]`, Gemini without `alt=sse`).
//!
//! What it is not: a parser of what the values say (that is `json` and the dialects), and not a check that they are
//! JSON. Like [`sse::Splitter`] it is not on the way of the bytes. A value is handed over as an [`Event`] without a
//! name, as soon as its last byte has come; one that lies wholly in one chunk is a slice of that chunk, any other
//! is put together in a buffer that never grows past the limit.
//!
//! ```text
//!  between values --{ or [--> inside, by depth --the bracket that closes it--> value
//!        |  \--"--> text --the quote that closes it--> value
//!        \--any other byte--> word --blank, comma or bracket--> value
//! ```
//!
//! A word at the end of the stream, with nothing after it, is no value. The bracket that opens the list, its commas and
//! the one that closes it are between values. So is all white space.
//!
//! [`sse::Splitter`]: crate::sse::Splitter

use crate::sse::Event;

/// Where in the stream the next byte is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// Between two values.
    Between,
    /// Inside an object or a list, this deep.
    Inside(u32),
    /// Inside a text, at this depth; 0: the text is the value.
    Text(u32),
    /// After a backslash in it.
    Escaped(u32),
    /// Inside anything else: a number, a word, or what is no JSON.
    Word,
}

/// Splits a stream into values, chunk by chunk.
#[derive(Debug, Clone)]
pub struct Splitter {
    limit: usize,
    offset: u64,
    at: At,
    /// The first bracket of a list has been seen: what follows are its items.
    in_list: bool,
    /// Anything at all has been seen.
    begun: bool,
    starts: u64,
    data: Vec<u8>,
    cut_short: bool,
}

impl Splitter {
    /// A splitter at the start of a stream that keeps at most `limit` bytes of a value.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self {
            limit,
            offset: 0,
            at: At::Between,
            in_list: false,
            begun: false,
            starts: 0,
            data: Vec::new(),
            cut_short: false,
        }
    }

    /// Takes the next bytes of the stream and hands over each value that they complete, in order.
    pub fn push(&mut self, chunk: &[u8], mut each: impl FnMut(Event<'_>)) {
        // Where the present value goes on in this chunk.
        let mut from = 0;
        let mut index = 0;
        while let Some(&byte) = chunk.get(index) {
            match self.at {
                At::Between => {
                    from = index;
                    self.begin(byte, index);
                }
                At::Inside(depth) => self.at = inside(byte, depth),
                At::Text(depth) => {
                    let skipped = plain(&chunk[index..]);
                    index += skipped;
                    match chunk.get(index) {
                        Some(b'\\') => self.at = At::Escaped(depth),
                        Some(_) if depth > 0 => self.at = At::Inside(depth),
                        Some(_) => self.at = At::Inside(0),
                        None => break,
                    }
                }
                At::Escaped(depth) => self.at = At::Text(depth),
                At::Word if is_between(byte) => {
                    self.hand_over(&chunk[from..index], index, &mut each);
                    self.at = At::Between;
                }
                At::Word => {}
            }
            index += 1;
            if self.at == At::Inside(0) {
                self.hand_over(&chunk[from..index], index, &mut each);
                self.at = At::Between;
            }
        }
        if self.at != At::Between {
            self.keep(&chunk[from..]);
        }
        self.offset += chunk.len() as u64;
    }

    /// Counts bytes that came before, and were blank.
    pub const fn skip(&mut self, bytes: u64) {
        self.offset += bytes;
    }

    /// How many bytes of the stream have been pushed.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Takes the first byte of a value, or one between values.
    fn begin(&mut self, byte: u8, index: usize) {
        let opens_list = byte == b'[' && !self.begun;
        if !byte.is_ascii_whitespace() && !MARK.contains(&byte) {
            self.begun = true;
        }
        if opens_list {
            self.in_list = true;
            return;
        }
        self.at = match byte {
            b'{' | b'[' => At::Inside(1),
            b'"' => At::Text(0),
            _ if is_between(byte) || MARK.contains(&byte) => return,
            _ => At::Word,
        };
        self.starts = self.offset + index as u64;
    }

    fn hand_over(&mut self, here: &[u8], end: usize, each: &mut impl FnMut(Event<'_>)) {
        let ends = self.offset + end as u64;
        let starts = self.starts;
        if self.data.is_empty() && !self.cut_short {
            let kept = here.len().min(self.limit);
            each(Event { name: b"", data: &here[..kept], starts, ends, cut_short: kept < here.len() });
        } else {
            self.keep(here);
            each(Event { name: b"", data: &self.data, starts, ends, cut_short: self.cut_short });
        }
        self.data.clear();
        self.cut_short = false;
    }

    /// Copies what fits under the limit.
    fn keep(&mut self, bytes: &[u8]) {
        let fits = bytes.len().min(self.limit - self.data.len());
        let needed = self.data.len() + fits;
        if needed > self.data.capacity() {
            let roomy = needed.max(self.data.capacity().saturating_mul(2)).min(self.limit);
            self.data.reserve_exact(roomy - self.data.len());
        }
        self.data.extend_from_slice(&bytes[..fits]);
        self.cut_short |= fits < bytes.len();
    }
}

/// The bytes of the mark that may open a stream; no value begins with one.
const MARK: &[u8] = b"\xEF\xBB\xBF";

const fn is_between(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b',' | b']' | b'}' | b'\0')
}

const fn inside(byte: u8, depth: u32) -> At {
    match byte {
        b'{' | b'[' => At::Inside(depth.saturating_add(1)),
        b'}' | b']' => At::Inside(depth - 1),
        b'"' => At::Text(depth),
        _ => At::Inside(depth),
    }
}

/// How many bytes of a text come before one that means something: a quote or a backslash.
fn plain(bytes: &[u8]) -> usize {
    let means = |byte: &u8| matches!(byte, b'"' | b'\\');
    // Whole blocks without a branch per byte: the compiler turns the inner loop into vector instructions.
    let (blocks, _) = bytes.as_chunks::<32>();
    let has_one = |block: &&[u8; 32]| block.iter().fold(false, |found, byte| found | means(byte));
    let clear = blocks.iter().take_while(|block| !has_one(block)).count() * 32;
    clear + bytes[clear..].iter().take_while(|byte| !means(byte)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone, PartialEq, Eq)]
    struct Seen {
        data: String,
        starts: u64,
        ends: u64,
        cut_short: bool,
    }

    fn split<'a>(limit: usize, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Seen> {
        let (mut splitter, mut seen) = (Splitter::new(limit), Vec::new());
        let mut note = |event: Event<'_>| {
            assert!(event.name.is_empty());
            seen.push(Seen {
                data: String::from_utf8_lossy(event.data).into_owned(),
                starts: event.starts,
                ends: event.ends,
                cut_short: event.cut_short,
            });
        };
        for chunk in chunks {
            splitter.push(chunk, &mut note);
            assert!(splitter.data.capacity() <= limit);
        }
        seen
    }

    fn values(stream: &str) -> Vec<String> {
        split(1 << 20, [stream.as_bytes()]).into_iter().map(|seen| seen.data).collect()
    }

    #[test]
    fn lines_and_lists() {
        for (stream, are) in [
            ("", vec![]),
            ("{\"a\":1}\n{\"b\":2}\n", vec!["{\"a\":1}", "{\"b\":2}"]),
            ("{\"a\":1}\r\n\r\n{\"b\":2}", vec!["{\"a\":1}", "{\"b\":2}"]),
            ("[{\"a\":1},\n{\"b\":[2,{}]}\n]\n", vec!["{\"a\":1}", "{\"b\":[2,{}]}"]),
            ("[{\n  \"a\": \"}]\\\"{\"\n}\n,\r\n{}]", vec!["{\n  \"a\": \"}]\\\"{\"\n}", "{}"]),
            ("[]", vec![]),
            ("[[1],[2]]", vec!["[1]", "[2]"]),
            ("{}{}", vec!["{}", "{}"]),
            ("\"a,b\" 12, true\n", vec!["\"a,b\"", "12", "true"]),
            ("no json\n{\"a\":1}", vec!["no", "json", "{\"a\":1}"]),
            ("\u{feff}{\"a\":1}", vec!["{\"a\":1}"]),
            ("{\"a\":", vec![]),
            ("\"open", vec![]),
            ("12", vec![]),
            ("}{}", vec!["{}"]),
        ] {
            assert_eq!(values(stream), are, "{stream}");
        }
    }

    #[test]
    fn a_value_is_there_with_its_last_byte() {
        let mut splitter = Splitter::new(64);
        let mut ends = Vec::new();
        splitter.push(b"[{\"a\":1}", |event| ends.push((event.starts, event.ends)));
        assert_eq!(ends, [(1, 8)]);
        assert_eq!(splitter.offset(), 8);
    }

    #[test]
    fn what_is_too_long_is_cut_and_the_next_value_is_not() {
        let stream = format!("{{\"a\":\"{}\"}}\n{{\"b\":2}}\n", "x".repeat(100));
        for chunks in [vec![stream.as_bytes()], stream.as_bytes().chunks(7).collect()] {
            let seen = split(16, chunks);
            assert_eq!(seen.len(), 2);
            assert!(seen[0].cut_short && seen[0].data.len() == 16 && seen[0].ends == 108);
            assert!(!seen[1].cut_short && seen[1].data == "{\"b\":2}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn the_cuts_do_not_matter(
            stream in "([{}\\[\\],:\"\\\\ \n]|ab|\"x\"|\u{feff}){0,60}",
            cuts in proptest::collection::vec(0_usize..80, 0..6),
            limit in 1_usize..40,
        ) {
            let bytes = stream.as_bytes();
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            let mut from = 0;
            let mut chunks = Vec::new();
            for cut in cuts {
                chunks.push(&bytes[from..cut]);
                from = cut;
            }
            chunks.push(&bytes[from..]);
            prop_assert_eq!(split(limit, chunks), split(limit, [bytes]));
        }

        #[test]
        fn json_comes_out_as_it_went_in(
            values in proptest::collection::vec("[a-z\"\\\\{}\\[\\],: \n]{0,20}", 0..5),
            in_list in any::<bool>(),
        ) {
            let values: Vec<_> = values
                .iter()
                .map(|text| serde_json::json!({ "text": text, "list": [text, {}] }).to_string())
                .collect();
            let stream =
                if in_list { format!("[{}]", values.join(",\r\n")) } else { values.join("\n") + "\n" };
            prop_assert_eq!(super::tests::values(&stream), values);
        }
    }
}
