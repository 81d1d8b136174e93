//! The place of a call in a trace that goes through many programs (W3C Trace Context): what a client's `traceparent`
//! says, and what the relay puts in its place. Numbers alone: a `tracestate` is text of a client, and never read.

/// The trace that a call belongs to, and its own span there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trace {
    /// The trace; never zero.
    pub id: u128,
    /// The client's span, where it stated one.
    pub parent: Option<u64>,
    /// The span of the call; never zero.
    pub span: u64,
    /// Whether those who record traces are to record this one.
    pub sampled: bool,
    /// Whether the client promises that the trace's number is drawn by chance.
    random: bool,
}

impl Trace {
    /// The place of a call whose client sent this `traceparent`, if it sent one, by numbers that were drawn. What is no
    /// valid `traceparent` begins a new trace, as none does.
    #[must_use]
    pub fn of(traceparent: Option<&str>, drawn: [u64; 3]) -> Self {
        let [high, low, span] = drawn;
        let span = span.max(1);
        match traceparent.and_then(parsed) {
            Some((id, parent, flags)) => Self {
                id,
                parent: Some(parent),
                span,
                sampled: flags & SAMPLED != 0,
                random: flags & RANDOM != 0,
            },
            None => {
                let id = (u128::from(high) << 64 | u128::from(low)).max(1);
                Self { id, parent: None, span, sampled: true, random: true }
            }
        }
    }

    /// The span of this send of the call; never zero. It follows from the call's span, so that whoever sends and whoever
    /// tells of it come to the same number.
    #[must_use]
    pub const fn send(&self, send: u32) -> u64 {
        // The finalizer of SplitMix64, which makes 0 of 0 alone.
        let mut z = self.span.wrapping_add((send as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        if z == 0 { 1 } else { z }
    }

    /// The `traceparent` of this send of the call.
    #[must_use]
    pub fn traceparent(&self, send: u32) -> String {
        format!("00-{:032x}-{:016x}-{:02x}", self.id, self.send(send), self.flags())
    }

    /// The flags as they go on.
    #[must_use]
    pub const fn flags(&self) -> u8 {
        (if self.sampled { SAMPLED } else { 0 }) | (if self.random { RANDOM } else { 0 })
    }
}

const SAMPLED: u8 = 1;
const RANDOM: u8 = 2;

/// The trace, the span and the flags of a valid `traceparent`. One of a later version begins as those of this one do.
fn parsed(text: &str) -> Option<(u128, u64, u8)> {
    let mut parts = text.trim_matches([' ', '\t']).split('-');
    let mut next = |digits: usize| parts.next().filter(|part| part.len() == digits && is_hex(part));
    let (version, id, parent, flags) = (next(2)?, next(32)?, next(16)?, next(2)?);
    if version == "ff" || (version == "00" && parts.next().is_some()) {
        return None;
    }
    let id = u128::from_str_radix(id, 16).ok().filter(|id| *id != 0)?;
    let parent = u64::from_str_radix(parent, 16).ok().filter(|parent| *parent != 0)?;
    Some((id, parent, u8::from_str_radix(flags, 16).ok()?))
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const DRAWN: [u64; 3] = [1, 2, 3];
    /// The example of the specification.
    const EXAMPLE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_valid_traceparent_is_the_parent() {
        let trace = Trace::of(Some(EXAMPLE), DRAWN);
        assert_eq!(trace.id, 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c);
        assert_eq!((trace.parent, trace.span, trace.sampled), (Some(0xb7ad_6b71_6920_3331), 3, true));
        let of = |flags: &str| Trace::of(Some(&EXAMPLE.replace("-01", flags)), DRAWN);
        assert!(!of("-00").sampled && of("-03").sampled);
        // Of the flags go on those that are known.
        assert_eq!(
            (of("-00").flags(), of("-02").flags(), of("-03").flags(), of("-ff").flags()),
            (0, 2, 3, 3)
        );
    }

    #[test]
    fn what_is_not_valid_begins_a_new_trace() {
        let anew = Trace::of(None, DRAWN);
        assert_eq!((anew.id, anew.parent, anew.span), (1 << 64 | 2, None, 3));
        assert!(anew.sampled && anew.flags() == 3);
        let rows = [
            "",
            "00",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
            "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ];
        for row in rows {
            assert_eq!(Trace::of(Some(row), DRAWN), anew, "{row}");
        }
        // What a later version adds is not known, and does no harm.
        let later = "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-may-be";
        assert!(Trace::of(Some(later), DRAWN).parent.is_some());
    }

    #[test]
    fn each_send_has_a_span_of_its_own_and_its_traceparent_can_be_read() {
        let trace = Trace::of(Some(EXAMPLE), DRAWN);
        let spans: BTreeSet<u64> = (0..1000).map(|send| trace.send(send)).collect();
        assert_eq!(spans.len(), 1000);
        assert!(!spans.contains(&trace.span) && !spans.contains(&0));
        let said = trace.traceparent(2);
        assert!(said.starts_with("00-0af7651916cd43dd8448eb211c80319c-") && said.ends_with("-01"));
        assert_eq!(Trace::of(Some(&said), DRAWN).parent, Some(trace.send(2)));
    }

    #[test]
    fn no_number_is_zero() {
        let zero = Trace::of(None, [0; 3]);
        assert!(zero.id != 0 && zero.span != 0 && zero.send(0) != 0);
    }

    proptest! {
        #[test]
        fn nothing_that_a_client_sends_stops_it(text in ".{0,80}") {
            let trace = Trace::of(Some(&text), DRAWN);
            prop_assert!(trace.id != 0 && trace.span != 0);
        }
    }
}
