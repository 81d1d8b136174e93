//! The files of the page, as they were built (`dashboard/` in the repository) and compiled in.

use std::io::Write as _;
use std::sync::OnceLock;

use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use ring::digest::{SHA256, digest};

use crate::reply::{ReplyBody, typed};

/// One file, which never changes while the program runs.
pub(super) struct File {
    name: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
    /// The same in gzip, and what names its content.
    packed: OnceLock<(Vec<u8>, String)>,
}

static FILES: [File; 4] = [
    File::new("", "text/html; charset=utf-8", include_bytes!("../../../../dashboard/dist/index.html")),
    File::new(
        "app.js",
        "text/javascript; charset=utf-8",
        include_bytes!("../../../../dashboard/dist/app.js"),
    ),
    File::new("app.css", "text/css; charset=utf-8", include_bytes!("../../../../dashboard/dist/app.css")),
    File::new("icon.svg", "image/svg+xml", include_bytes!("../../../../dashboard/dist/icon.svg")),
];

/// The file of this name; the page itself has none.
pub(super) fn named(name: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.name == name)
}

impl File {
    const fn new(name: &'static str, kind: &'static str, bytes: &'static [u8]) -> Self {
        Self { name, kind, bytes, packed: OnceLock::new() }
    }

    fn packed(&self) -> &(Vec<u8>, String) {
        self.packed.get_or_init(|| {
            let hash = digest(&SHA256, self.bytes);
            let name = hash.as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
            let mut packer = GzEncoder::new(Vec::new(), Compression::best());
            let packed = packer.write_all(self.bytes).and_then(|()| packer.finish());
            // Writing to memory does not fail.
            (packed.unwrap_or_default(), name)
        })
    }

    /// As this client wants it.
    pub(super) fn answer(&self, headers: &HeaderMap) -> Response<ReplyBody> {
        let (packed, hash) = self.packed();
        let small = accepts_gzip(headers) && packed.len() < self.bytes.len() && !packed.is_empty();
        let tag = format!("\"{hash}{}\"", if small { "-gz" } else { "" });
        let mut response = if has(headers, &tag) {
            typed(StatusCode::NOT_MODIFIED, self.kind, Vec::new())
        } else {
            typed(StatusCode::OK, self.kind, if small { packed.clone() } else { self.bytes.to_vec() })
        };
        let to = response.headers_mut();
        if small {
            to.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        if let Ok(tag) = HeaderValue::try_from(tag) {
            to.insert(header::ETAG, tag);
        }
        // Asked for each time: another version of the relay has another page.
        to.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        to.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        response
    }
}

/// The members of a list header.
fn members(headers: &HeaderMap, name: header::HeaderName) -> impl Iterator<Item = &str> {
    let lists = headers.get_all(name).into_iter().filter_map(|list| list.to_str().ok());
    lists.flat_map(|list| list.split(',')).map(str::trim)
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    members(headers, header::ACCEPT_ENCODING).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let weight = weight.trim().strip_prefix("q=").map_or(Some(1.0), |q| q.trim().parse::<f32>().ok());
        name.trim().eq_ignore_ascii_case("gzip") && weight.is_some_and(|weight| weight > 0.0)
    })
}

/// Whether the client has what goes by this tag.
fn has(headers: &HeaderMap, tag: &str) -> bool {
    members(headers, header::IF_NONE_MATCH)
        .any(|given| given == "*" || given.strip_prefix("W/").unwrap_or(given) == tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(name: header::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_str(value).unwrap())])
    }

    #[test]
    fn gzip_goes_to_those_who_take_it() {
        for (accepts, expected) in [
            ("gzip", true),
            ("br, GZIP;q=0.5", true),
            ("gzip;q=0", false),
            ("gzip; q=0.0", false),
            ("gzip;q=x", false),
            ("identity", false),
            ("", false),
        ] {
            assert_eq!(accepts_gzip(&asking(header::ACCEPT_ENCODING, accepts)), expected, "{accepts}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }

    #[test]
    fn a_file_that_the_client_has_is_not_sent_again() {
        let file = named("app.js").unwrap();
        let plain = file.answer(&HeaderMap::new());
        let tag = plain.headers()[header::ETAG].to_str().unwrap().to_owned();
        assert_eq!((plain.status(), plain.headers().get(header::CONTENT_ENCODING)), (StatusCode::OK, None));
        let mut both = asking(header::ACCEPT_ENCODING, "gzip");
        let packed = file.answer(&both);
        assert_eq!(packed.headers()[header::CONTENT_ENCODING], "gzip");
        assert_ne!(packed.headers()[header::ETAG], tag, "other bytes, another name");
        for (known, status) in [
            (tag.clone(), StatusCode::NOT_MODIFIED),
            (format!("\"x\", W/{tag}"), StatusCode::NOT_MODIFIED),
            ("*".to_owned(), StatusCode::NOT_MODIFIED),
            ("\"x\"".to_owned(), StatusCode::OK),
        ] {
            assert_eq!(file.answer(&asking(header::IF_NONE_MATCH, &known)).status(), status, "{known}");
        }
        both.insert(header::IF_NONE_MATCH, HeaderValue::from_str(&tag).unwrap());
        assert_eq!(file.answer(&both).status(), StatusCode::OK);
        assert!(named("App.js").is_none() && named("../app.js").is_none());
    }

    #[test]
    fn the_page_loads_nothing_from_elsewhere() {
        for file in &FILES {
            let text = String::from_utf8_lossy(file.bytes);
            // The names of the formats of pictures are addresses, too.
            let addresses: Vec<_> = text
                .match_indices("://")
                .map(|(at, _)| &text[at.saturating_sub(5)..(at + 25).min(text.len())])
                .filter(|address| !address.contains("://www.w3.org/"))
                .collect();
            assert_eq!(addresses, [""; 0], "{}", file.name);
            assert!(!text.contains("<script>") && !text.contains(" style=\"") && !text.contains("eval("));
        }
    }
}
