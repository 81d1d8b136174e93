//! A file with a recorded answer: how it is read, and what is assumed where it does not say.

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use relay_core::dialect::{self, Dialect, Route, route};
use relay_core::evidence::Operation;
use serde_json::Value;

use super::{TestRule, Unreadable};
use crate::decode::{DecodeLimits, Decoder, Encoding};

/// An answer as it was recorded, and what is known of its request.
#[derive(Debug, Clone)]
pub(super) struct Recorded {
    pub(super) route: Route,
    pub(super) streams: bool,
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// The longest file that is read. What decides stands at the beginning, and every byte is heard by itself.
pub const LONGEST: usize = 16 << 20;

const RECORD_IT: &str = "record it with `curl -i … > FILE`: a status line, headers, a blank line, the body";

impl Unreadable {
    pub(super) fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what: what.into(), hint: hint.into() }
    }
}

/// Reads a file, and what had to be assumed: a sentence each.
pub(super) fn read(file: &[u8], asked: &TestRule) -> Result<(Recorded, Vec<String>), Unreadable> {
    if file.len() > LONGEST {
        let what = format!("the file is longer than the {} MiB that are read", LONGEST >> 20);
        let hint = "what decides stands at the beginning of an answer: `head -c 1000000 FILE > SHORT`";
        return Err(Unreadable::new(what, hint));
    }
    let file = file.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(file);
    let (notes, rest) = split_notes(file);
    let request = notes.iter().find_map(|note| note.strip_prefix("request:")).map(str::trim);
    let has_head = rest.starts_with(b"HTTP/");
    let (status, headers, body) = if has_head {
        head_and_body(rest, line_of(file, rest))?
    } else {
        body_alone(rest, asked)?;
        (None, HeaderMap::new(), rest.to_vec())
    };
    let body = plain(&headers, body)?;
    let given = asked.status.or(status);
    let status = given.unwrap_or(200);
    let status = StatusCode::from_u16(status).map_err(|_none| {
        Unreadable::new(format!("{status} is no status"), "a status is a number from 100 to 999")
    })?;
    let route = route_of(request, asked.dialect.as_deref())?;
    let mut recorded = Recorded { route, streams: false, status, headers, body };
    let mut assumed = Vec::new();
    if !recorded.headers.contains_key(header::CONTENT_TYPE) && !has_head {
        let kind = guessed_type(&recorded);
        let words = kind.to_str().unwrap_or_default();
        let and = if given.is_none() { " with status 200 (`--status` names another)" } else { "" };
        assumed.push(format!("the file has no head: taken for a body of {words}{and}"));
        recorded.headers.insert(header::CONTENT_TYPE, kind);
    }
    if request.is_none() && asked.dialect.is_none() {
        let words = "nothing says what was asked: heard as generic; name a `--dialect`, or put a line such as \
                     `# request: POST /v1/responses` at the top of the file";
        assumed.push(words.to_owned());
    }
    recorded.streams = streams(&recorded, request);
    Ok((recorded, assumed))
}

/// Whether what has no head can be the body of an answer.
fn body_alone(body: &[u8], asked: &TestRule) -> Result<(), Unreadable> {
    if body.trim_ascii().is_empty() && asked.status.is_none() {
        let hint = format!("{RECORD_IT}; where the answer had no body, its head is enough, or `--status N`");
        return Err(Unreadable::new("the file is empty", hint));
    }
    let text = std::str::from_utf8(body).ok().filter(|text| !text.contains('\0'));
    let Some(text) = text else {
        let what = "the file is no text, and no head says how it is encoded";
        return Err(Unreadable::new(what, format!("{RECORD_IT}; `--compressed` makes curl decode it")));
    };
    let is_verbose = |line: &str| line.starts_with("< HTTP/") || line.starts_with("> HTTP/");
    match text.lines().position(is_verbose) {
        Some(line) => {
            let what = format!("line {} looks like what `curl -v` prints", line + 1);
            Err(Unreadable::new(what, RECORD_IT))
        }
        None => Ok(()),
    }
}

/// The number of the line in which the rest of a file begins.
fn line_of(file: &[u8], rest: &[u8]) -> usize {
    let before = file.len().saturating_sub(rest.len());
    file.iter().take(before).filter(|byte| **byte == b'\n').count() + 1
}

/// The lines at the top that begin with `#`, without it, and the rest.
pub(super) fn split_notes(mut file: &[u8]) -> (Vec<&str>, &[u8]) {
    let mut notes = Vec::new();
    while file.first() == Some(&b'#') {
        let end = file.iter().position(|byte| *byte == b'\n').map_or(file.len(), |end| end + 1);
        notes.extend(std::str::from_utf8(&file[1..end]).ok().map(str::trim));
        file = &file[end..];
    }
    (notes, file)
}

/// The last of the heads that stand one after another: interim answers come before the one that counts. The first
/// line has this number.
fn head_and_body(
    mut rest: &[u8],
    mut number: usize,
) -> Result<(Option<u16>, HeaderMap, Vec<u8>), Unreadable> {
    loop {
        let (line, mut after) = next_line(rest);
        let status: u16 = line
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok().filter(|status| (100..1000).contains(status)))
            .ok_or_else(|| {
                let hint = "write it as it came: HTTP/1.1 503 Service Unavailable";
                Unreadable::new(format!("line {number} is no status line"), hint)
            })?;
        let mut headers = HeaderMap::new();
        loop {
            let (line, more) = next_line(after);
            (after, number) = (more, number + 1);
            if line.is_empty() {
                break;
            }
            let header = line.split_once(':').and_then(|(name, value)| {
                let name = HeaderName::from_bytes(name.trim().as_bytes()).ok()?;
                Some((name, HeaderValue::from_str(value.trim()).ok()?))
            });
            let Some((name, value)) = header else {
                let what = format!("line {number} stands in the head and is no header");
                return Err(Unreadable::new(what, "write NAME: VALUE, and a blank line before the body"));
            };
            headers.append(name, value);
        }
        if (100..200).contains(&status) && after.starts_with(b"HTTP/") {
            (rest, number) = (after, number + 1);
            continue;
        }
        return Ok((Some(status), headers, after.to_vec()));
    }
}

/// The next line as text, and what comes after it. Only heads are read so, and they are ASCII.
fn next_line(bytes: &[u8]) -> (std::borrow::Cow<'_, str>, &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let (line, rest) = match end {
        Some(end) => (&bytes[..end], &bytes[end + 1..]),
        None => (bytes, &[][..]),
    };
    (String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)), rest)
}

/// The body without its framing and its encoding.
fn plain(headers: &HeaderMap, body: Vec<u8>) -> Result<Vec<u8>, Unreadable> {
    let is_chunked = headers
        .get_all(header::TRANSFER_ENCODING)
        .iter()
        .any(|value| value.to_str().is_ok_and(|value| value.to_ascii_lowercase().contains("chunked")));
    // What curl prints has no chunks left, but still says so.
    let body = if is_chunked { unchunked(&body).unwrap_or(body) } else { body };
    let undecodable = || {
        let hint = "record it plain: `curl -i --compressed`, and leave the header out";
        Unreadable::new("the body does not follow its `content-encoding`", hint)
    };
    match Encoding::named(headers.get_all(header::CONTENT_ENCODING)) {
        // A recorder that decodes leaves the header: what reads as text is text.
        Some(Encoding::Identity) => Ok(body),
        _ if body.first().is_some_and(|byte| b"{[ed:<".contains(byte)) => Ok(body),
        Some(encoding) => {
            const LIMITS: DecodeLimits = DecodeLimits { per_push: 64 << 20, total: 64 << 20 };
            let mut text = Vec::new();
            let decoded = Decoder::new(encoding, LIMITS).push(&body, &mut text);
            // What is too short to be anything fails only by leaving nothing.
            let is_lost = decoded.is_err() || (text.is_empty() && !body.is_empty());
            if is_lost { Err(undecodable()) } else { Ok(text) }
        }
        None => Err(undecodable()),
    }
}

/// The content of chunks; `None` where these are none.
fn unchunked(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let (line, rest) = next_line(bytes);
        let size = usize::from_str_radix(line.split(';').next()?.trim(), 16).ok()?;
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(rest.get(..size)?);
        let rest = rest.get(size..)?;
        bytes = rest.strip_prefix(b"\r\n").or_else(|| rest.strip_prefix(b"\n"))?;
    }
}

fn route_of(request: Option<&str>, name: Option<&str>) -> Result<Route, Unreadable> {
    let by_request = request.map(by_request).transpose()?;
    let Some(name) = name else {
        let unknown = Route { dialect: generic(), operation: Operation::Generation, streams: None };
        return Ok(by_request.unwrap_or(unknown));
    };
    let dialect = dialect::named(name).ok_or_else(|| {
        let names = dialect::ALL.map(Dialect::name).join(", ");
        Unreadable::new(
            format!("there is no dialect `{}`", name.escape_default()),
            format!("dialects: {names}"),
        )
    })?;
    Ok(Route { dialect, operation: Operation::Generation, streams: None })
}

/// The route of a note such as `POST /v1/responses`.
fn by_request(request: &str) -> Result<Route, Unreadable> {
    let mut words = request.split_whitespace();
    let found = words.next().zip(words.next()).and_then(|(method, path)| {
        let path = path.split('?').next().filter(|path| path.starts_with('/'))?;
        Some(route(&method.parse::<Method>().ok()?, path))
    });
    found.ok_or_else(|| {
        let hint = "write `# request: POST /v1/responses`";
        Unreadable::new("the line `# request:` names no method and path", hint)
    })
}

fn generic() -> &'static dyn Dialect {
    route(&Method::POST, "").dialect
}

/// What a body alone most probably was labelled as.
fn guessed_type(recorded: &Recorded) -> HeaderValue {
    let body = recorded.body.trim_ascii_start();
    let first_line = body.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let is_lines = first_line.len() < body.trim_ascii_end().len()
        && serde_json::from_slice::<serde_json::Map<String, Value>>(first_line).is_ok();
    let is_events =
        [&b"data:"[..], b"event:", b"id:", b"retry:", b":"].iter().any(|field| body.starts_with(field));
    HeaderValue::from_static(match body.first() {
        Some(b'{') if is_lines => "application/x-ndjson",
        Some(b'{' | b'[') => "application/json",
        Some(b'<') => "text/html",
        _ if is_events => "text/event-stream",
        Some(_) | None => "text/plain",
    })
}

/// Whether the request asked for a stream: as it says, else as the answer looks.
fn streams(recorded: &Recorded, request: Option<&str>) -> bool {
    if recorded.route.operation != Operation::Generation {
        return false;
    }
    let said = request.and_then(|request| {
        let mut words = request.split_whitespace().skip(2);
        words.find_map(|word| match word {
            "stream" => Some(true),
            "whole" => Some(false),
            _ => None,
        })
    });
    if let Some(streams) = recorded.route.streams.or(said) {
        return streams;
    }
    let kind = recorded.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let is_list = recorded.body.trim_ascii_start().first() == Some(&b'[');
    kind.starts_with("text/event-stream")
        || kind.contains("ndjson")
        || (recorded.route.dialect.streams_values() && is_list)
}
