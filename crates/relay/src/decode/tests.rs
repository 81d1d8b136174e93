use super::*;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use proptest::prelude::*;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

const ROOMY: DecodeLimits = DecodeLimits { per_push: 1 << 20, total: 1 << 22 };
const WAYS: [Way; 8] = [
    Way::Identity,
    Way::Gzip,
    Way::TwoGzipMembers,
    Way::Zlib,
    Way::RawDeflate,
    Way::Brotli,
    Way::ZstdBlocks,
    Way::ZstdFrames,
];

#[derive(Debug, Clone, Copy)]
enum Way {
    Identity,
    Gzip,
    TwoGzipMembers,
    Zlib,
    RawDeflate,
    Brotli,
    ZstdBlocks,
    ZstdFrames,
}

impl Way {
    fn encoding(self) -> Encoding {
        match self {
            Self::Identity => Encoding::Identity,
            Self::Gzip | Self::TwoGzipMembers => Encoding::Gzip,
            Self::Zlib | Self::RawDeflate => Encoding::Deflate,
            Self::Brotli => Encoding::Brotli,
            Self::ZstdBlocks | Self::ZstdFrames => Encoding::Zstd,
        }
    }

    fn encode(self, text: &[u8]) -> Vec<u8> {
        match self {
            Self::Identity => text.to_vec(),
            Self::Gzip => gzip(text),
            Self::TwoGzipMembers => {
                let (one, two) = text.split_at(text.len() / 2);
                [gzip(one), gzip(two)].concat()
            }
            Self::Zlib => {
                let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
                encoder.write_all(text).unwrap();
                encoder.finish().unwrap()
            }
            Self::RawDeflate => {
                let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
                encoder.write_all(text).unwrap();
                encoder.finish().unwrap()
            }
            Self::Brotli => {
                let mut encoder = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 20);
                encoder.write_all(text).unwrap();
                encoder.into_inner()
            }
            Self::ZstdBlocks => zstd_raw(text),
            Self::ZstdFrames => {
                let skippable = [0x50, 0x2A, 0x4D, 0x18, 3, 0, 0, 0, 1, 2, 3];
                let (one, two) = text.split_at(text.len() / 2);
                let packed = compress_to_vec(one, CompressionLevel::Fastest);
                [packed, skippable.to_vec(), zstd_raw(two)].concat()
            }
        }
    }
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// A frame of stored blocks, with no library's help.
fn zstd_raw(text: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x28, 0xB5, 0x2F, 0xFD, 0xA0];
    frame.extend(u32::try_from(text.len()).unwrap().to_le_bytes());
    let blocks: Vec<_> = if text.is_empty() { vec![text] } else { text.chunks(64 * 1024).collect() };
    for (index, block) in blocks.iter().enumerate() {
        let last = u32::from(index + 1 == blocks.len());
        let head = u32::try_from(block.len()).unwrap() << 3 | last;
        frame.extend(&head.to_le_bytes()[..3]);
        frame.extend(*block);
    }
    frame
}

/// Decodes `wire` cut into pieces of the given lengths, over and over.
fn decode_cut(encoding: Encoding, wire: &[u8], cuts: &[usize]) -> Result<Vec<u8>, Undecodable> {
    let mut decoder = Decoder::new(encoding, ROOMY);
    let (mut text, mut rest) = (Vec::new(), wire);
    let mut lengths = cuts.iter().cycle();
    while !rest.is_empty() {
        let length = lengths.next().copied().unwrap_or(1).clamp(1, rest.len());
        let (piece, after) = rest.split_at(length);
        decoder.push(piece, &mut text)?;
        rest = after;
    }
    decoder.finish(&mut text)?;
    Ok(text)
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    // Words repeat, so that the codings have something to refer back to.
    let words = prop::collection::vec(prop_oneof!["[a-d]{1,9}", "data: ", "\n\n", "[ -~]{0,40}"], 0..120);
    words.prop_map(|words| words.concat().into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_cutting_of_the_wire_gives_the_same_text(
        text in text(),
        cuts in prop::collection::vec(1_usize..50, 1..6),
        way in prop::sample::select(&WAYS[..]),
    ) {
        let wire = way.encode(&text);
        prop_assert_eq!(decode_cut(way.encoding(), &wire, &cuts), Ok(text.clone()));
        prop_assert_eq!(decode_all(way.encoding(), &wire, 1 << 20), Ok(text));
    }

    #[test]
    fn a_wire_cut_short_is_never_taken_for_whole(
        text in text().prop_filter("some text", |text| !text.is_empty()),
        share in 0.0_f64..1.0,
        way in prop::sample::select(&WAYS[1..]),
    ) {
        let wire = way.encode(&text);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a length")]
        let length = (wire.len() as f64 * share) as usize;
        if let Ok(short) = decode_all(way.encoding(), &wire[..length], 1 << 20) {
            // Between two members or frames the wire is whole, and so it is before the first byte.
            prop_assert!(text.starts_with(&short) && short.len() <= text.len().div_ceil(2));
        }
    }

    #[test]
    fn corrupt_bytes_never_panic(
        text in text(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cuts in prop::collection::vec(1_usize..50, 1..6),
        way in prop::sample::select(&WAYS[..]),
    ) {
        let mut wire = way.encode(&text);
        for (index, byte) in flips {
            if !wire.is_empty() {
                let at = index.index(wire.len());
                wire[at] = byte;
            }
        }
        // Whatever comes of it, it comes without a panic.
        prop_assert!(decode_cut(way.encoding(), &wire, &cuts).map_or(true, |text| text.len() <= ROOMY.total));
    }

    #[test]
    fn noise_never_panics(noise in prop::collection::vec(any::<u8>(), 0..400), way in prop::sample::select(&WAYS[..])) {
        prop_assert!(decode_all(way.encoding(), &noise, 1000).map_or(true, |text| text.len() <= 1000));
    }
}

#[test]
fn what_was_flushed_comes_out_at_once() {
    type Flusher = (Encoding, Box<dyn FnMut(&[u8]) -> Vec<u8>>);
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
    let mut raw = DeflateEncoder::new(Vec::new(), Compression::default());
    let mut brotli = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 20);
    let mut zstd_head = vec![0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x58];
    fn flush<W: Write>(to: &mut W, text: &[u8]) {
        to.write_all(text).unwrap();
        to.flush().unwrap();
    }
    let flushers: [Flusher; 5] = [
        (
            Encoding::Gzip,
            Box::new(move |text| {
                flush(&mut gzip, text);
                std::mem::take(gzip.get_mut())
            }),
        ),
        (
            Encoding::Deflate,
            Box::new(move |text| {
                flush(&mut zlib, text);
                std::mem::take(zlib.get_mut())
            }),
        ),
        (
            Encoding::Deflate,
            Box::new(move |text| {
                flush(&mut raw, text);
                std::mem::take(raw.get_mut())
            }),
        ),
        (
            Encoding::Brotli,
            Box::new(move |text| {
                flush(&mut brotli, text);
                std::mem::take(brotli.get_mut())
            }),
        ),
        (
            Encoding::Zstd,
            // One frame with a window of 2 MiB, each event a stored block.
            Box::new(move |text| {
                let mut wire = std::mem::take(&mut zstd_head);
                wire.extend(&(text.len() << 3).to_le_bytes()[..3]);
                wire.extend(text);
                wire
            }),
        ),
    ];
    for (encoding, mut flushed) in flushers {
        let mut decoder = Decoder::new(encoding, ROOMY);
        for turn in 0..200 {
            let event = format!("data: {{\"turn\":{turn},\"text\":\"again and again\"}}\n\n");
            let mut out = Vec::new();
            decoder.push(&flushed(event.as_bytes()), &mut out).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), event, "{encoding:?}");
        }
    }
}

/// Compressed blocks that refer back to earlier blocks still find them after their text was shown.
#[test]
fn a_zstd_block_can_refer_to_text_that_was_shown_already() {
    let text: Vec<u8> = (0..400_000_u32).flat_map(|n| format!("{} ", n % 9973).into_bytes()).collect();
    let wire = compress_to_vec(text.as_slice(), CompressionLevel::Fastest);
    assert!(wire.len() < text.len() / 2, "the text does repeat");
    let mut decoder = Decoder::new(Encoding::Zstd, ROOMY);
    let (mut out, mut pushes_with_text) = (Vec::new(), 0);
    for piece in wire.chunks(4096) {
        let before = out.len();
        decoder.push(piece, &mut out).unwrap();
        pushes_with_text += usize::from(out.len() > before);
    }
    decoder.finish(&mut out).unwrap();
    assert!(out == text && pushes_with_text > 5, "{pushes_with_text}");
}

/// What libzstd 1.5 (level 3, with a checksum) makes of eight events, flushed after each: compressed blocks that
/// refer to earlier text and reuse earlier tables.
#[test]
fn a_flushed_stream_of_libzstd_comes_out_event_by_event() {
    const FLUSHES: [&str; 8] = [
        "28b52ffd04589403008287191c604d750306c64aecc90e3dfab09d0c820e04bc94204d40890a146809e74cdc3ce6d00222851a03\
         21563b1971301408034100a016433aabdbb2dc7771526ae60937dfbae27d3a2e9d6cf563b3962065cbda61db785336f25d3be34e\
         a85c3e18e519a4fbfe78020042060146b31514",
        "7c00001831333703001bc36180983593b102",
        "6c000020653237340310001c86d84e42",
        "8400002865333131310300348b9b00ba9d001b",
        "84000028653431343803001cc34d00dd4e800d",
        "6c000020653538350310001c62b29d84",
        "740000286536323232031000dc846e2736",
        "6c000020653735390310001c62b29d84",
    ];
    let unhex = |text: &str| -> Vec<u8> {
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
    };
    let mut decoder = Decoder::new(Encoding::Zstd, ROOMY);
    for (turn, flushed) in FLUSHES.iter().enumerate() {
        let mut out = Vec::new();
        decoder.push(&unhex(flushed), &mut out).unwrap();
        let event = format!(
            "event: response.output_text.delta\ndata: {{\"type\":\"response.output_text.delta\",\"sequence_number\":{turn},\
             \"item_id\":\"msg_0123456789\",\"delta\":\"word {} of many\"}}\n\n",
            turn * 37
        );
        assert_eq!(String::from_utf8(out).unwrap(), event);
    }
    let mut out = Vec::new();
    decoder.push(&unhex("0100008cc9ba6c"), &mut out).unwrap();
    assert_eq!((decoder.finish(&mut out), out.len()), (Ok(()), 0));
}

#[test]
fn bombs_stop_at_the_limit() {
    let zeroes = vec![0_u8; 3 << 20];
    for way in WAYS {
        let wire = way.encode(&zeroes);
        assert_eq!(decode_all(way.encoding(), &wire, 1 << 20), Err(Undecodable::TooLarge), "{way:?}");
        let mut decoder = Decoder::new(way.encoding(), DecodeLimits { per_push: 1000, total: 1 << 30 });
        let mut out = Vec::new();
        let pushed = wire.chunks(1 << 17).try_for_each(|piece| decoder.push(piece, &mut out));
        assert_eq!(pushed, Err(Undecodable::TooLarge), "{way:?}");
        assert!(out.len() <= 1000, "{way:?}");
        assert_eq!(
            decoder.push(b"x", &mut out),
            Err(Undecodable::TooLarge),
            "{way:?}: the first failure stays"
        );
    }
}

#[test]
fn bytes_after_the_end_are_corrupt() {
    for way in [Way::Gzip, Way::Zlib, Way::RawDeflate, Way::Brotli, Way::ZstdBlocks] {
        let wire = [way.encode(b"text"), b"more than that".to_vec()].concat();
        assert_eq!(decode_all(way.encoding(), &wire, 1000), Err(Undecodable::Corrupt), "{way:?}");
    }
}

#[test]
fn the_coding_is_read_from_all_values() {
    let named = |values: &[&'static str]| {
        let values: Vec<_> = values.iter().map(|value| HeaderValue::from_static(value)).collect();
        Encoding::named(&values)
    };
    assert_eq!(named(&[]), Some(Encoding::Identity));
    assert_eq!(named(&["identity", "X-GZIP"]), Some(Encoding::Gzip));
    assert_eq!(named(&["br"]), Some(Encoding::Brotli));
    assert_eq!(named(&[" zstd "]), Some(Encoding::Zstd));
    assert_eq!(named(&["gzip, br"]), None);
    assert_eq!(named(&["compress"]), None);
}

#[test]
fn an_empty_wire_is_an_empty_text() {
    for way in WAYS {
        assert_eq!(decode_all(way.encoding(), b"", 10), Ok(Vec::new()), "{way:?}");
    }
}
