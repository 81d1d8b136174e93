//! Cuts a `text/event-stream` into events while it passes by (WHATWG HTML, section 9.2 "Server-sent events").
//!
//! What it is not: a parser of what the events say (that is `json` and the dialects), and not on the way of
//! the bytes. The caller forwards its own chunks untouched; this only tells it which events they hold, and
//! where. An event that lies wholly in one chunk, with one data line, is handed over as slices of that chunk.
//! Anything else is put together in a buffer that never grows past the limit.
//!
//! ```text
//!  line start --first byte--> open line --line end--> line start --blank line--> event, if it has data
//! ```
//!
//! What an event is must not depend on how the network cut it. The one doubtful place is a blank line that
//! ends in CR, where an LF may follow in the next chunk. Where the line before it ended in CR LF, the
//! splitter waits for the next byte; where it did not, the event ends at the CR. So a stream with CR alone
//! loses no time, and one with CR LF has its ends where one expects them.

/// The most bytes of an event's name that are kept. The longest name known has under 60.
const NAME_LIMIT: usize = 256;

/// A UTF-8 byte order mark, which may open a stream and is no part of its first line.
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// One event of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// The value of its last `event` line, cut after 256 bytes; empty where there is none.
    pub name: &'a [u8],
    /// The values of its `data` lines, joined by LF.
    pub data: &'a [u8],
    /// Where it starts: the offset, in the whole stream, of the first byte of its first line. Comments before
    /// that line are no part of it.
    pub starts: u64,
    /// Where it ends: the offset, in the whole stream, of the first byte after its blank line. (Where line
    /// ends are mixed so that a blank CR LF follows a line that ended otherwise, its LF is no longer
    /// counted.)
    pub ends: u64,
    /// Its data was longer than the limit, and the rest was dropped.
    pub cut_short: bool,
}

/// What a line that is not yet complete has turned out to be so far.
#[derive(Debug, Clone, Copy)]
enum Open {
    /// No byte of it has come.
    Nothing,
    /// Too few bytes to tell: the first `.1` of `.0`.
    Unclear([u8; 8], usize),
    /// A data line; its value goes to the buffer.
    Data,
    /// A name line; its value goes to the buffer.
    Name,
    /// A comment, or a field that is of no use here.
    Ignored,
}

/// What a complete line says.
enum Line<'a> {
    Data(&'a [u8]),
    Name(&'a [u8]),
    Ignored,
}

/// The parts of the present event that lie in the present chunk and were not copied.
#[derive(Default)]
struct Here<'a> {
    name: Option<&'a [u8]>,
    data: Option<&'a [u8]>,
}

/// Splits a stream into events, chunk by chunk.
#[derive(Debug, Clone)]
pub struct Splitter {
    limit: usize,
    offset: u64,
    /// How much of the byte order mark has been seen; `None` once that is settled.
    mark: Option<usize>,
    open: Open,
    name: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    cut_short: bool,
    /// Where the present event starts; `None` between events.
    starts: Option<u64>,
    /// The last byte was a CR, so that an LF now belongs to it.
    after_cr: bool,
    /// The last line ended in CR LF.
    crlf: bool,
    /// The event is complete but for the LF that may belong to its last CR.
    awaits_lf: bool,
}

impl Splitter {
    /// A splitter at the start of a stream that keeps at most `limit` bytes of an event's data.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self {
            limit,
            offset: 0,
            mark: Some(0),
            open: Open::Nothing,
            name: Vec::new(),
            data: Vec::new(),
            has_data: false,
            cut_short: false,
            starts: None,
            after_cr: false,
            crlf: false,
            awaits_lf: false,
        }
    }

    /// Takes the next bytes of the stream and hands over each event that they complete, in order.
    ///
    /// An event without a data line is none, by the standard.
    pub fn push(&mut self, chunk: &[u8], mut each: impl FnMut(Event<'_>)) {
        let mut here = Here::default();
        let mut at = self.skip_mark(chunk);
        while let Some(&first) = chunk.get(at) {
            if self.after_cr {
                self.after_cr = false;
                self.crlf = first == b'\n';
                at += usize::from(self.crlf);
                if self.awaits_lf {
                    self.dispatch(&mut here, self.offset + at as u64, &mut each);
                }
                continue;
            }
            let rest = &chunk[at..];
            let Some(length) = line_end(rest) else {
                self.note_start(rest, at);
                self.spill(&mut here);
                self.take(rest);
                break;
            };
            let line = &rest[..length];
            self.note_start(line, at);
            at += length + 1;
            self.after_cr = rest[length] == b'\r';
            if !self.close_line(line, &mut here) {
                // A blank line. After CR LF, another CR very probably has its LF too: wait for it.
                self.awaits_lf = self.after_cr && self.crlf && self.starts.is_some();
                if !self.awaits_lf {
                    self.dispatch(&mut here, self.offset + at as u64, &mut each);
                }
            }
            if !self.after_cr {
                self.crlf = false;
            }
        }
        self.spill(&mut here);
        self.offset += chunk.len() as u64;
    }

    /// How many bytes of the stream have been pushed.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether the stream, as far as it came, stops inside an event: one has started and its blank line has
    /// not come. A stream that ends here was cut.
    #[must_use]
    pub const fn is_mid_event(&self) -> bool {
        self.starts.is_some()
    }

    /// Steps over the byte order mark; answers where in `chunk` the lines begin.
    fn skip_mark(&mut self, chunk: &[u8]) -> usize {
        let Some(seen) = self.mark else { return 0 };
        let common = MARK[seen..].iter().zip(chunk).take_while(|(mark, byte)| mark == byte).count();
        if seen + common == MARK.len() {
            self.mark = None;
        } else if common == chunk.len() {
            self.mark = Some(seen + common);
        } else {
            self.mark = None;
            if seen + common > 0 {
                // It was no mark but the start of a line, and no field that matters starts so.
                self.open = Open::Ignored;
                self.starts = Some(0);
            }
        }
        common
    }

    /// Notes that an event starts here, if `line` is the beginning of the first line of one.
    fn note_start(&mut self, line: &[u8], at: usize) {
        let is_new = self.starts.is_none() && matches!(self.open, Open::Nothing);
        if is_new && line.first().is_some_and(|first| *first != b':') {
            self.starts = Some(self.offset + at as u64);
        }
    }

    /// Takes the bytes up to a line's end, which may be the whole line. Answers false for a blank line.
    fn close_line<'a>(&mut self, line: &'a [u8], here: &mut Here<'a>) -> bool {
        if matches!(self.open, Open::Nothing) {
            match read_line(line) {
                Line::Data(value) if self.has_data => {
                    self.spill(here);
                    self.begin_data();
                    self.keep_data(value);
                }
                Line::Data(value) => {
                    self.has_data = true;
                    self.cut_short = value.len() > self.limit;
                    here.data = Some(&value[..value.len().min(self.limit)]);
                }
                Line::Name(value) => {
                    self.name.clear();
                    here.name = Some(&value[..value.len().min(NAME_LIMIT)]);
                }
                Line::Ignored => {}
            }
            return !line.is_empty();
        }
        self.take(line);
        if let Open::Unclear(bytes, length) = self.open {
            self.begin(read_line(&bytes[..length]));
        }
        self.open = Open::Nothing;
        true
    }

    /// Takes bytes of a line that began in an earlier chunk, or goes on in the next one.
    fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match self.open {
                Open::Nothing => self.open = Open::Unclear([0; 8], 0),
                Open::Unclear(mut start, length) => {
                    start[length] = bytes[0];
                    bytes = &bytes[1..];
                    let length = length + 1;
                    self.open = Open::Unclear(start, length);
                    if is_clear(&start[..length]) {
                        self.open = self.begin(read_line(&start[..length]));
                    }
                }
                Open::Data => {
                    self.keep_data(bytes);
                    return;
                }
                Open::Name => {
                    keep(&mut self.name, bytes, NAME_LIMIT);
                    return;
                }
                Open::Ignored => return,
            }
        }
    }

    /// Starts a line in the buffers with what is known of it.
    fn begin(&mut self, line: Line<'_>) -> Open {
        match line {
            Line::Data(value) => {
                self.begin_data();
                self.keep_data(value);
                Open::Data
            }
            Line::Name(value) => {
                self.name.clear();
                keep(&mut self.name, value, NAME_LIMIT);
                Open::Name
            }
            Line::Ignored => Open::Ignored,
        }
    }

    fn begin_data(&mut self) {
        if self.has_data {
            self.keep_data(b"\n");
        }
        self.has_data = true;
    }

    fn keep_data(&mut self, bytes: &[u8]) {
        self.cut_short |= !keep(&mut self.data, bytes, self.limit);
    }

    /// Copies what still lies in the chunk into the buffers.
    fn spill(&mut self, here: &mut Here<'_>) {
        if let Some(name) = here.name.take() {
            keep(&mut self.name, name, NAME_LIMIT);
        }
        if let Some(data) = here.data.take() {
            keep(&mut self.data, data, self.limit);
        }
    }

    fn dispatch(&mut self, here: &mut Here<'_>, ends: u64, each: &mut impl FnMut(Event<'_>)) {
        let name = here.name.take().unwrap_or(&self.name);
        let data = here.data.take().unwrap_or(&self.data);
        if let (Some(starts), true) = (self.starts, self.has_data) {
            each(Event { name, data, starts, ends, cut_short: self.cut_short });
        }
        self.name.clear();
        self.data.clear();
        self.has_data = false;
        self.cut_short = false;
        self.starts = None;
        self.awaits_lf = false;
    }
}

/// Where the first line end lies in `bytes`.
fn line_end(bytes: &[u8]) -> Option<usize> {
    let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
    // Whole blocks without a branch per byte: the compiler turns the inner loop into vector instructions.
    let (blocks, _) = bytes.as_chunks::<32>();
    let has_end = |block: &&[u8; 32]| block.iter().fold(false, |found, byte| found | is_end(byte));
    let clear = blocks.iter().take_while(|block| !has_end(block)).count() * 32;
    bytes[clear..].iter().position(is_end).map(|place| clear + place)
}

/// Reads a complete line, or enough of one to be clear.
fn read_line(line: &[u8]) -> Line<'_> {
    if let Some(value) = value_of(line, b"data") {
        Line::Data(value)
    } else if let Some(value) = value_of(line, b"event") {
        Line::Name(value)
    } else {
        Line::Ignored
    }
}

/// The value of a line that has the field `name`: what follows the colon, less one space.
fn value_of<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let rest = line.strip_prefix(name)?;
    if rest.is_empty() {
        return Some(rest);
    }
    let value = rest.strip_prefix(b":")?;
    Some(value.strip_prefix(b" ").unwrap_or(value))
}

/// Whether the start of a line shows which field it is, and where its value starts.
fn is_clear(start: &[u8]) -> bool {
    [b"data:".as_slice(), b"event:"].iter().all(|field| {
        let known = start.len().min(field.len());
        // The byte after the colon has to be there too: a space is not part of the value.
        start[..known] != field[..known] || start.len() > field.len()
    })
}

/// Appends what fits under `limit`; answers whether all did. The buffer never takes more memory than the
/// limit.
fn keep(buffer: &mut Vec<u8>, bytes: &[u8], limit: usize) -> bool {
    let fits = bytes.len().min(limit.saturating_sub(buffer.len()));
    let needed = buffer.len() + fits;
    if needed > buffer.capacity() {
        let roomy = needed.max(buffer.capacity().saturating_mul(2)).min(limit);
        buffer.reserve_exact(roomy - buffer.len());
    }
    buffer.extend_from_slice(&bytes[..fits]);
    fits == bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone, PartialEq, Eq)]
    struct Seen {
        name: String,
        data: String,
        starts: u64,
        ends: u64,
        cut_short: bool,
    }

    fn note(event: Event<'_>) -> Seen {
        Seen {
            name: String::from_utf8_lossy(event.name).into_owned(),
            data: String::from_utf8_lossy(event.data).into_owned(),
            starts: event.starts,
            ends: event.ends,
            cut_short: event.cut_short,
        }
    }

    fn split<'a>(limit: usize, chunks: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Seen>, bool) {
        let (mut splitter, mut seen) = (Splitter::new(limit), Vec::new());
        for chunk in chunks {
            splitter.push(chunk, |event| seen.push(note(event)));
            assert!(splitter.data.capacity() <= limit && splitter.name.capacity() <= NAME_LIMIT);
        }
        (seen, splitter.is_mid_event())
    }

    fn whole(stream: &[u8]) -> Vec<(String, String)> {
        split(1 << 20, [stream]).0.into_iter().map(|seen| (seen.name, seen.data)).collect()
    }

    /// The standard's algorithm, as slow and plain as it is written there.
    fn by_the_book(stream: &str) -> Vec<(String, String)> {
        let stream = stream.strip_prefix('\u{FEFF}').unwrap_or(stream);
        let ended = stream.replace("\r\n", "\n").replace('\r', "\n");
        let mut lines: Vec<&str> = ended.split('\n').collect();
        lines.pop();
        let (mut events, mut name, mut data) = (Vec::new(), String::new(), String::new());
        for line in lines {
            if line.is_empty() {
                if let Some(data) = data.strip_suffix('\n') {
                    events.push((name.clone(), data.to_owned()));
                }
                name.clear();
                data.clear();
                continue;
            }
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "event" => value.clone_into(&mut name),
                "data" => data.extend([value, "\n"]),
                _ => {}
            }
        }
        events
    }

    #[test]
    fn the_examples_of_the_standard() {
        for (stream, events) in [
            ("data: YHOO\ndata: +2\ndata: 10\n\n", vec![("", "YHOO\n+2\n10")]),
            (
                ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third\n\n",
                vec![("", "first event"), ("", "second event"), ("", " third")],
            ),
            ("data\n\ndata\ndata\n\ndata:", vec![("", ""), ("", "\n")]),
            ("data:test\n\ndata: test\n\n", vec![("", "test"), ("", "test")]),
            ("event: add\ndata: 73857293\n\nevent: remove\n\n", vec![("add", "73857293")]),
            ("event: a\nevent: b\ndata: x\n\ndata: y\n\n", vec![("b", "x"), ("", "y")]),
            ("\u{FEFF}data: x\n\n", vec![("", "x")]),
            ("\u{FEFF}\u{FEFF}data: x\n\n", vec![]),
            ("retry: 5\ndatas: x\ndat: x\n data: x\nevents: x\ndata: z\n\n", vec![("", "z")]),
        ] {
            let events: Vec<_> = events.iter().map(|(n, d)| ((*n).to_owned(), (*d).to_owned())).collect();
            assert_eq!(whole(stream.as_bytes()), events, "{stream:?}");
        }
    }

    #[test]
    fn an_event_in_one_chunk_is_borrowed() {
        let chunk = b"event: ping\r\ndata: {\"type\":\"ping\"}\r\n\r\ndata: [DONE]\n\n".as_slice();
        let (mut splitter, mut count) = (Splitter::new(1024), 0);
        splitter.push(chunk, |event| {
            count += 1;
            assert!(chunk.as_ptr_range().contains(&event.data.as_ptr()));
        });
        assert_eq!((count, splitter.data.capacity(), splitter.name.capacity()), (2, 0, 0));
    }

    #[test]
    fn offsets_span_from_the_first_field_line_to_after_the_blank_line() {
        let stream = b"\xEF\xBB\xBF: hello\n\nid: 1\ndata: a\n\n\n\ndata: b\r\n\r\n: bye\ndata: c\r\rdata";
        let (seen, mid_event) = split(1024, [stream.as_slice()]);
        let spans: Vec<&[u8]> = seen.iter().map(|e| &stream[e.starts as usize..e.ends as usize]).collect();
        assert_eq!(spans, [b"id: 1\ndata: a\n\n".as_slice(), b"data: b\r\n\r\n", b"data: c\r\r"]);
        assert!(mid_event);
    }

    #[test]
    fn a_stream_of_cr_alone_is_not_held_up() {
        let (seen, mid_event) = split(64, [b"data: a\r\r".as_slice()]);
        assert_eq!((seen.len(), mid_event), (1, false));
        let (seen, mid_event) = split(64, [b"data: a\r\n\r".as_slice()]);
        assert_eq!((seen.len(), mid_event), (0, true));
    }

    #[test]
    fn a_comment_starts_no_event() {
        assert_eq!(split(64, [b": OPENROUTER PROCESSING\n".as_slice()]), (vec![], false));
        assert_eq!(split(64, [b"data: x\n".as_slice()]), (vec![], true));
        assert_eq!(split(64, [b"d".as_slice()]), (vec![], true));
    }

    #[test]
    fn data_over_the_limit_is_cut_and_says_so() {
        for (limit, data, cut_short) in
            [(4, "abcd", true), (5, "abcd\n", true), (7, "abcd\nef", false), (0, "", true)]
        {
            let (seen, _) = split(limit, [b"data: abcd\ndata: ef\n\n".as_slice(), b"data:\n\n"]);
            assert_eq!((seen[0].data.as_str(), seen[0].cut_short), (data, cut_short));
            assert!(!seen[1].cut_short);
        }
    }

    /// Streams made of the pieces that matter, so that chance finds the corners.
    fn streams() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            8 => Just(b"\n".to_vec()), 4 => Just(b"\r\n".to_vec()), 3 => Just(b"\r".to_vec()),
            6 => Just(b"data:".to_vec()), 3 => Just(b"event: ".to_vec()), 2 => Just(b"data".to_vec()),
            1 => Just(b"event".to_vec()), 2 => Just(b": ping".to_vec()), 1 => Just(b"id: 7".to_vec()),
            3 => Just(b" ".to_vec()), 1 => Just(b"\xEF\xBB\xBF".to_vec()), 1 => Just(b"\xEF\xBB".to_vec()),
            4 => "[a-z:]{0,40}".prop_map(String::into_bytes),
            1 => proptest::collection::vec(any::<u8>(), 0..8),
        ];
        proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn any_cutting_gives_the_same_events_at_the_same_places(
            stream in streams(), size in 1_usize..9, limit in 0_usize..60, place in 0_usize..200,
        ) {
            let at_once = split(limit, [stream.as_slice()]);
            prop_assert_eq!(&split(limit, stream.chunks(size)), &at_once);
            let (one, other) = stream.split_at(place.min(stream.len()));
            prop_assert_eq!(&split(limit, [one, b"", other]), &at_once);
        }

        #[test]
        fn the_events_are_those_of_the_standard(text in "(\u{FEFF}|data|event|:| |\r|\n|\r\n|[a-c]){0,60}") {
            // A last CR after CR LF is where this waits and the book does not: give it the byte it waits for.
            let text = format!("{text}\n");
            prop_assert_eq!(whole(text.as_bytes()), by_the_book(&text));
        }

        #[test]
        fn the_three_line_ends_give_the_same_events(
            lines in proptest::collection::vec("(|data:[a-c ]*|event: [a-c]|:x)", 0..30),
        ) {
            let by = |end: &str| whole(format!("{}{end}{end}", lines.join(end)).as_bytes());
            prop_assert_eq!(by("\n"), by("\r"));
            // The byte that the last CR LF waits for is its LF, so nothing is missing here either.
            prop_assert_eq!(by("\n"), by("\r\n"));
        }

        #[test]
        fn arbitrary_bytes_do_no_harm(
            bytes in proptest::collection::vec(any::<u8>(), 0..300), size in 1_usize..64,
        ) {
            let (mut splitter, mut last) = (Splitter::new(16), 0);
            for chunk in bytes.chunks(size) {
                splitter.push(chunk, |event| {
                    assert!(last <= event.starts && event.starts < event.ends && event.data.len() <= 16);
                    last = event.ends;
                });
                prop_assert!(last <= splitter.offset());
            }
            prop_assert_eq!(splitter.offset(), bytes.len() as u64);
        }
    }
}
