//! Encoded bytes: whatever they are and however they are cut, the decoder fails or tells the same text.

use crate::cuts::{below, cuttings, dice};
use steady_relay::decode::{DecodeLimits, Decoder, Encoding, Undecodable, decode_all};

const ENCODINGS: [Encoding; 5] =
    [Encoding::Identity, Encoding::Gzip, Encoding::Deflate, Encoding::Brotli, Encoding::Zstd];

/// More than the bytes of a corpus decode to, unless they are made to explode.
const ROOMY: usize = 1 << 20;

/// The bytes are taken for every encoding that there is.
pub fn decode(wire: &[u8]) {
    for encoding in ENCODINGS {
        let whole = run(encoding, &[wire], ROOMY);
        if whole.1.is_ok() {
            assert_eq!(decode_all(encoding, wire, ROOMY), Ok(whole.0.clone()), "{encoding:?}");
        }
        for pieces in cuttings(wire) {
            let cut = run(encoding, &pieces, ROOMY);
            let (short, long) = if cut.0.len() < whole.0.len() { (&cut, &whole) } else { (&whole, &cut) };
            assert!(long.0.starts_with(&short.0), "{encoding:?} {pieces:?}");
            if whole.1 != Err(Undecodable::TooLarge) {
                assert_eq!(cut.1.is_ok(), whole.1.is_ok(), "{encoding:?} {cut:?} {whole:?}");
            }
            if whole.1.is_ok() {
                assert_eq!(cut.0, whole.0, "{encoding:?} {pieces:?}");
            }
        }
        let limit = below(&mut dice(wire), 100);
        let (text, _ended) = run(encoding, &[wire], limit);
        assert!(text.len() <= limit, "{encoding:?} made {} of {limit}", text.len());
    }
    assert_eq!(run(Encoding::Identity, &[wire], ROOMY), (wire.to_vec(), Ok(())));
}

/// The text, and how the decoding ended.
fn run(encoding: Encoding, pieces: &[&[u8]], limit: usize) -> (Vec<u8>, Result<(), Undecodable>) {
    let mut decoder = Decoder::new(encoding, DecodeLimits { per_push: limit, total: limit });
    let mut text = Vec::new();
    for piece in pieces {
        if let Err(error) = decoder.push(piece, &mut text) {
            let so_far = text.len();
            assert_eq!(decoder.push(b"more", &mut text), Err(error));
            assert_eq!(decoder.finish(&mut text), Err(error));
            assert_eq!(text.len(), so_far);
            return (text, Err(error));
        }
    }
    let ended = decoder.finish(&mut text);
    (text, ended)
}
