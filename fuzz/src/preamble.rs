//! Answers: what is held, passed, failed or cut does not depend on how the network cut the bytes, and no more is
//! held than the limit allows.

use crate::cuts::{below, cuttings, dice};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use relay_core::Moment;
use relay_core::dialect::route;
use relay_core::evidence::Operation;
use relay_core::preamble::{Asked, Head, Hold, Preamble, Verdict};
use std::time::{Duration, UNIX_EPOCH};

const SENT: Moment = Moment::after_start(Duration::from_secs(100));
const ARRIVED: Moment = Moment::after_start(Duration::from_secs(101));
const FATAL: &[&str] = &["server_is_overloaded", "policy_capacity_unavailable", "flex_unavailable"];

/// More than any answer of a corpus.
const ROOMY: usize = 1 << 20;

/// An answer, and what is known of its request.
struct Answer<'d> {
    asked: Asked,
    head: Head,
    body: &'d [u8],
}

/// How the connection stops after the bytes.
#[derive(Debug, Clone, Copy)]
enum Stop {
    Tidy,
    Broken,
}

/// The bytes are `PATH STATUS [WORDS]`, lines of headers, an empty line, and the body. The words are `whole` (no
/// stream was asked for), `codex` (fatal events are withheld), `bodiless` and `late` (it took a minute).
pub fn preamble(data: &[u8]) {
    let Some(answer) = Answer::read(data) else { return };
    for stop in [Stop::Tidy, Stop::Broken] {
        let whole = answer.heard(&[answer.body], stop);
        for pieces in cuttings(answer.body) {
            assert_eq!(answer.heard(&pieces, stop), whole, "cut as {pieces:?}");
        }
    }
    let limit = below(&mut dice(data), answer.body.len() + 1);
    for pieces in cuttings(answer.body) {
        answer.within(limit, &pieces);
        answer.interrupted(&pieces);
    }
}

impl<'d> Answer<'d> {
    fn read(data: &'d [u8]) -> Option<Self> {
        let end = data.windows(2).position(|pair| pair == b"\n\n")?;
        let (head, body) = (std::str::from_utf8(&data[..end]).ok()?, &data[end + 2..]);
        let mut lines = head.lines();
        let mut words = lines.next()?.split(' ');
        let route = route(&Method::POST, words.next()?);
        let status = words.next()?.parse().ok().and_then(|status| StatusCode::from_u16(status).ok())?;
        let words: Vec<&str> = words.collect();
        let arrived = if words.contains(&"late") { SENT + Duration::from_secs(60) } else { ARRIVED };
        let asked = Asked {
            dialect: route.dialect,
            generation: route.operation == Operation::Generation,
            streams: !words.contains(&"whole"),
            hold: Hold { bytes: ROOMY, time: Some(Duration::from_secs(20)) },
            withhold: if words.contains(&"codex") { FATAL } else { &[] },
        };
        let bodiless = words.contains(&"bodiless");
        let head = Head { status, headers: headers(lines), bodiless, sent: SENT, arrived };
        Some(Self { asked, head, body: if bodiless { b"" } else { body } })
    }

    fn listener(&self, bytes: usize) -> Preamble {
        let hold = Hold { bytes, ..self.asked.hold };
        Preamble::new(Asked { hold, ..self.asked }, self.head.clone(), UNIX_EPOCH)
    }

    fn now(&self) -> Moment {
        self.head.arrived + Duration::from_secs(1)
    }

    /// What comes of the answer in the end: the last verdict, whether bytes pass, whether its end was heard.
    fn heard(&self, pieces: &[&[u8]], stop: Stop) -> (Verdict, bool, bool) {
        let mut listener = self.listener(ROOMY);
        let mut verdict = listener.at_head();
        for piece in pieces {
            if is_end(&verdict) {
                break;
            }
            verdict = listener.hear(piece, piece.len(), self.now());
        }
        if !is_end(&verdict) {
            verdict = end(&mut listener, stop);
        }
        (verdict, listener.is_passing(), listener.has_ended())
    }

    /// Nothing is held beyond the limit, or again once it passes; nothing is cut that has not come.
    fn within(&self, limit: usize, pieces: &[&[u8]]) {
        let mut listener = self.listener(limit);
        let (mut verdict, mut came, mut progress) = (listener.at_head(), 0, 0);
        for piece in pieces {
            if is_end(&verdict) {
                break;
            }
            let was_passing = listener.is_passing();
            assert_eq!(was_passing, verdict == Verdict::Pass);
            assert_eq!(listener.due().is_some(), !was_passing);
            verdict = listener.hear(piece, piece.len(), self.now());
            came += piece.len();
            assert!(verdict != Verdict::Hold || (came <= limit && !was_passing), "held {came} of {limit}");
            assert!(
                !matches!(verdict, Verdict::Cut { at, .. } if at >= came as u64 || self.asked.withhold.is_empty())
            );
            assert!(listener.progress() >= progress);
            progress = listener.progress();
        }
        if matches!(verdict, Verdict::Fault(_)) {
            // It goes back after all: from here on everything passes.
            listener.release();
            for piece in pieces {
                assert_eq!(listener.hear(piece, piece.len(), self.now()), Verdict::Pass);
            }
        } else if !is_end(&verdict) {
            assert_ne!(end(&mut listener, Stop::Tidy), Verdict::Hold);
        }
    }

    /// Time that runs out, or a copy that cannot be decoded, ends the holding wherever it happens.
    fn interrupted(&self, pieces: &[&[u8]]) {
        let mut dice = dice(self.body);
        for interrupt in [Preamble::timed_out as fn(&mut Preamble) -> Verdict, Preamble::undecodable] {
            let mut listener = self.listener(ROOMY);
            let mut verdict = listener.at_head();
            for piece in &pieces[..below(&mut dice, pieces.len() + 1)] {
                if is_end(&verdict) {
                    return;
                }
                verdict = listener.hear(piece, piece.len(), self.now());
            }
            if !is_end(&verdict) {
                assert!(matches!(interrupt(&mut listener), Verdict::Pass | Verdict::Fault(_)));
            }
        }
    }
}

fn headers<'a>(lines: impl Iterator<Item = &'a str>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in lines {
        let Some((name, value)) = line.split_once(':') else { continue };
        let name = HeaderName::from_bytes(name.trim().as_bytes());
        let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value.trim().as_bytes())) else {
            continue;
        };
        headers.append(name, value);
    }
    headers
}

fn is_end(verdict: &Verdict) -> bool {
    match verdict {
        Verdict::Fault(_) | Verdict::Cut { .. } => true,
        Verdict::Hold | Verdict::Pass => false,
    }
}

fn end(listener: &mut Preamble, stop: Stop) -> Verdict {
    match stop {
        Stop::Tidy => listener.ended(),
        Stop::Broken => listener.broke(),
    }
}
