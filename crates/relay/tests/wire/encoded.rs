//! Encoded bodies: they pass untouched, and a decoded copy is read all the same.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use relay_sim::fixtures::codex as wire;
use relay_sim::script::stream_bytes;
use relay_sim::{Ending, Event, LineEnd, Reply, Script, Upstream};

use crate::support::{Bench, TURN, bounded, codex, plain, towards};

/// A zstd frame that stores its text in raw blocks.
pub(crate) fn zstd(text: &[u8]) -> Vec<u8> {
    // Magic number, no checksum, no content size; a window of 1 MiB.
    let mut out = vec![0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x50];
    let blocks: Vec<&[u8]> = text.chunks(100).collect();
    for (number, block) in blocks.iter().enumerate() {
        let last = u32::from(number + 1 == blocks.len());
        let size = u32::try_from(block.len()).unwrap();
        out.extend_from_slice(&(last | size << 3).to_le_bytes()[..3]);
        out.extend_from_slice(block);
    }
    out
}

pub(crate) fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zlib(text: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn bare_deflate(text: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn brotli(text: &[u8]) -> Vec<u8> {
    let mut encoder = ::brotli::CompressorWriter::new(Vec::new(), 4096, 5, 20);
    encoder.write_all(text).unwrap();
    encoder.into_inner()
}

type Encode = fn(&[u8]) -> Vec<u8>;

const ENCODINGS: [(&str, Encode); 6] = [
    ("gzip", gzip),
    ("x-gzip", gzip),
    ("deflate", zlib),
    ("deflate", bare_deflate),
    ("br", brotli),
    ("zstd", zstd),
];

fn encoded(status: u16, name: &str, kind: &str, bytes: Vec<u8>) -> Reply {
    Reply::status(status).header("Content-Type", kind).header("Content-Encoding", name).bytes(bytes)
}

#[tokio::test]
async fn an_encoded_refusal_is_read_wherever_it_stands_and_an_encoded_answer_passes_untouched() {
    for (name, encode) in ENCODINGS {
        let good = encode(&stream_bytes(&wire::turn("hello")));
        let refused = encode(&stream_bytes(&wire::overloaded_stream()));
        let stream = |bytes: Vec<u8>| encoded(200, name, "text/event-stream", bytes).chunked();
        let up = Upstream::start(Script::of([
            encoded(503, name, "application/json", encode(wire::overloaded_body().as_bytes())),
            encoded(200, name, "application/json", encode(wire::overloaded_body().as_bytes())),
            stream(refused.clone()),
            stream(refused).cut([1]),
            stream(good.clone()).cut([3]),
        ]))
        .await
        .unwrap();
        let bench = Bench::to(&up).await;
        let answer = bench.ask(&plain(TURN).header("accept-encoding", name)).await;
        assert_eq!((answer.status, answer.ending), (200, Ending::Complete), "{name}");
        assert_eq!((answer.header("content-encoding"), &answer.body), (Some(name), &good), "{name}");
        let refusal = "at_capacity refused, wait";
        assert_eq!(
            bench.story(1).await,
            format!(
                "opened, send 1, 503, {refusal}, send 2, 200, {refusal}, send 3, 200, {refusal}, send 4, 200, \
                 {refusal}, send 5, 200, committed, served"
            ),
            "{name}"
        );
        assert!(up.requests().iter().all(|seen| seen.header("accept-encoding") == Some(name)));
    }
}

#[tokio::test]
async fn a_refusal_in_a_stream_is_read_wherever_it_is_cut() {
    let refusal = [Event::named("error", r#"{"error":{"code":"server_is_overloaded"}}"#)];
    for line_end in [LineEnd::Lf, LineEnd::CrLf, LineEnd::Cr] {
        let whole: Vec<u8> = refusal.iter().flat_map(|event| event.bytes(line_end)).collect();
        let length = whole.len();
        let up = Upstream::start(Script::by(move |_, number| {
            if number >= length {
                return Reply::sse(wire::turn("hi"));
            }
            let sizes = if number == 0 { vec![1] } else { vec![number, length] };
            Reply::status(200)
                .header("content-type", "text/event-stream")
                .bytes(whole.clone())
                .chunked()
                .cut(sizes)
        }))
        .await
        .unwrap();
        let mut config = towards(&up.url());
        for profile in config.profiles.values_mut() {
            profile.sends = None;
            profile.curve.base = std::time::Duration::from_millis(1);
            profile.curve.cap = profile.curve.base;
        }
        let bench = Bench::with(config).await;
        let answer = bench.ask(&plain(TURN)).await;
        assert_eq!(answer.body, stream_bytes(&wire::turn("hi")));
        assert_eq!(up.requests().len(), length + 1, "{line_end:?}");
    }
}

#[tokio::test]
async fn an_encoding_nobody_knows_passes_unread() {
    let bytes = vec![0, 159, 146, 150, 255];
    for (status, ending) in [(200, "committed, served"), (400, "final, passed")] {
        let reply = encoded(status, "x-own", "text/event-stream", bytes.clone());
        let up = Upstream::start(reply).await.unwrap();
        let bench = Bench::to(&up).await;
        let answer = bench.ask(&plain(TURN)).await;
        assert_eq!((answer.status, answer.ending, answer.body), (status, Ending::Complete, bytes.clone()));
        assert!(bench.story(1).await.ends_with(ending), "{}", bench.story(1).await);
    }
}

#[tokio::test]
async fn an_answer_that_lies_about_its_encoding_passes_untouched() {
    for (name, _) in ENCODINGS {
        let bytes = stream_bytes(&wire::turn("hello"));
        let up =
            Upstream::start(encoded(200, name, "text/event-stream", bytes.clone()).chunked()).await.unwrap();
        let bench = Bench::to(&up).await;
        let answer = bench.ask(&plain(TURN)).await;
        assert_eq!((answer.ending, answer.body), (Ending::Complete, bytes), "{name}");
    }
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_any_more_after_output_passes_to_its_end() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&stream_bytes(&wire::partial("hello"))).unwrap();
    encoder.flush().unwrap();
    let before = std::mem::take(encoder.get_mut());
    let after = vec![0xff; 300];
    let whole = [before.clone(), after.clone()].concat();
    let reply = Reply::status(200)
        .header("content-type", "text/event-stream")
        .header("content-encoding", "gzip")
        .bytes_stream(vec![before, after.clone(), after.clone()])
        .spaced(std::time::Duration::from_millis(5));
    let up = Upstream::start(reply).await.unwrap();
    let bench = Bench::to(&up).await;
    let answer = bench.ask(&plain(TURN)).await;
    assert_eq!((answer.ending, answer.body), (Ending::Complete, [whole, after].concat()));
    assert!(bench.story(1).await.ends_with("committed, served"));
}

#[tokio::test]
async fn an_encoded_request_is_understood_and_sent_as_it_came_each_time() {
    for (name, encode) in ENCODINGS {
        let body = encode(TURN.as_bytes());
        let up = Upstream::start(Script::of([
            wire::overloaded_503(),
            Reply::reset_after_request(),
            Reply::sse(wire::turn("hi")),
        ]))
        .await
        .unwrap();
        let bench = Bench::to(&up).await;
        let request = relay_sim::Request::post("/v1/responses")
            .header("Content-Type", "application/json")
            .header("Content-Encoding", name)
            .body(body.clone());
        assert_eq!(bench.ask(&request).await.status, 200, "{name}");
        let seen = up.requests();
        assert_eq!(seen.len(), 3);
        for sent in seen {
            assert_eq!((sent.header("content-encoding"), &sent.body), (Some(name), &body), "{name}");
        }
        // Only a body that was understood is known to be self-contained.
        assert_eq!(bench.totals().maybe_billed_twice, 1, "{name}");
    }
}

#[tokio::test]
async fn an_answer_of_our_own_keeps_nothing_of_the_encoding_before_it() {
    let refused = encoded(503, "gzip", "application/json", gzip(wire::overloaded_body().as_bytes()));
    let up = Upstream::start(refused).await.unwrap();
    let bench = Bench::with(bounded(&up.url(), |profile| profile.sends = Some(1))).await;
    let answer = bench.ask(&codex("t", TURN)).await;
    assert_eq!((answer.status, answer.ending), (200, Ending::Complete));
    assert_eq!(answer.header("content-encoding"), None);
    let announced = answer.header("content-length").map(|length| length.parse());
    assert!(announced.is_none_or(|length| length == Ok(answer.body.len())));
    assert!(answer.text().starts_with("event: response.failed\n"), "{}", answer.text());
}
