//! Where the network cuts a stream, as chance that hangs on the stream alone.

use relay_core::SeededDice;

/// Dice that the bytes seed (FNV-1a).
pub(crate) fn dice(bytes: &[u8]) -> SeededDice {
    let seed = bytes.iter().fold(0xCBF2_9CE4_8422_2325_u64, |seed, byte| {
        (seed ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3)
    });
    SeededDice::new(seed)
}

/// A number from 0 up to, and without, `most`; 0 where that is 0.
pub(crate) fn below(dice: &mut SeededDice, most: usize) -> usize {
    let bits = usize::try_from(dice.bits() >> 33).expect("31 bits fit");
    bits.checked_rem(most).unwrap_or(0)
}

/// The stream in several cuttings: byte by byte, in small pieces, in large ones; some pieces are empty.
pub(crate) fn cuttings(stream: &[u8]) -> [Vec<&[u8]>; 3] {
    let mut dice = dice(stream);
    [1, 9, 300].map(|longest| {
        let (mut pieces, mut rest) = (Vec::new(), stream);
        while !rest.is_empty() {
            let length = if longest == 1 { 1 } else { below(&mut dice, longest + 1) };
            let (piece, after) = rest.split_at(length.min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        pieces
    })
}
