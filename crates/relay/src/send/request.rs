//! What is to be sent, read from the command line: the method, where to, the headers and the data. The one thing that
//! is looked at besides are the upstreams of the settings.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use http::{Method, Uri};
use relay_core::BaseUrl;
use relay_core::config::{self, Config, UpstreamChoice};
use relay_core::units::duration;

use super::Options;
use crate::admin;
use crate::headers::OUR_NAME;
use crate::standard_input::standard_input;
use crate::target::{Upstream, V1};
use crate::words::{lang, send, settings};

/// The longest file of headers.
const LONGEST_HEADERS: u64 = 1 << 20;
/// The most data that is taken from what is no file, and so has to be kept here: the length goes before it.
const MOST_PIPED: u64 = 128 << 20;
/// Headers that belong to a connection, and those that follow from what is sent.
const NOT_TO_GIVE: [&str; 9] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "expect",
    "upgrade",
    "te",
    "trailer",
    "x-steady-token",
];

/// What is sent.
pub struct Request {
    /// The method.
    pub method: Method,
    /// The path and query that the relay is asked for.
    pub path_and_query: String,
    /// Where it goes, if the URL says so.
    pub upstream: Option<Upstream>,
    /// The headers.
    pub headers: HeaderMap,
    /// The data.
    pub data: Data,
}

/// The data of a request.
pub enum Data {
    /// None.
    None,
    /// These bytes.
    Bytes(Bytes),
    /// So many bytes of this file, which are read as they are sent.
    File(File, u64),
}

/// Without query, headers and data: each may hold a credential or a prompt.
impl fmt::Debug for Request {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = out.debug_struct("Request");
        out.field("method", &self.method).field("headers", &self.headers.len());
        out.field("data", &self.data).finish_non_exhaustive()
    }
}

/// Without what they are.
impl fmt::Debug for Data {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = match self {
            Self::None => 0,
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File(_, length) => *length,
        };
        write!(out, "Data({length} bytes)")
    }
}

/// What cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unfit(String);

impl Request {
    /// Reads the command line, and the files that it names.
    ///
    /// # Errors
    /// [`Unfit`] where that is nothing to be sent.
    pub fn of(options: &Options, config: &Config) -> Result<Self, Unfit> {
        let (method, url) = method_and_url(options)?;
        let (upstream, path_and_query) = place(url, config)?;
        let mut headers = headers(options)?;
        let data = data(options)?;
        let method = match method {
            Some(method) => method,
            None if matches!(data, Data::None) => Method::GET,
            None => Method::POST,
        };
        if !matches!(data, Data::None) && !headers.contains_key(CONTENT_TYPE) {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some(patience) = &options.patience {
            duration(patience).map_err(|why| Unfit(send::patience(lang(), &why.why)))?;
            let value = HeaderValue::from_str(patience);
            let value = value.map_err(|odd| Unfit(send::patience(lang(), &odd.to_string())))?;
            headers.insert("x-steady-patience", value);
        }
        Ok(Self { method, path_and_query, upstream, headers, data })
    }
}

fn method_and_url(options: &Options) -> Result<(Option<Method>, &str), Unfit> {
    let (named, url) = match options.target.as_slice() {
        [method, url] => (Some(method.as_str()), url),
        [url] => (None, url),
        [] | [_, _, _, ..] => return Err(Unfit(send::no_url(lang()))),
    };
    let method = match (named, options.method.as_deref()) {
        (Some(_), Some(_)) => return Err(Unfit(send::method_twice(lang()))),
        (named, flag) => named.or(flag),
    };
    let Some(method) = method else { return Ok((None, url)) };
    let upper = method.to_ascii_uppercase();
    match Method::from_bytes(upper.as_bytes()) {
        Ok(method) if method != Method::CONNECT => Ok((Some(method), url)),
        Ok(_) | Err(_) => Err(Unfit(send::no_method(lang(), &method.escape_debug().to_string()))),
    }
}

/// Where a URL leads: the upstream, if the URL names one, and what the relay is asked for.
fn place(url: &str, config: &Config) -> Result<(Option<Upstream>, String), Unfit> {
    let url = url.split('#').next().unwrap_or_default();
    let uri: Uri = url.parse().map_err(|_not_one| Unfit(send::url_unread(lang())))?;
    let path = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    if url.starts_with('/') && !url.starts_with("//") {
        return Ok((None, path));
    }
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return Err(Unfit(send::url_without_scheme(lang())));
    };
    let base = format!("{scheme}://{authority}").parse::<BaseUrl>();
    let base = base.map_err(|why| Unfit(send::url_unfit(lang(), &settings::said_of(lang(), &why.why))))?;
    let mut upstream = upstream(base, uri.path(), config);
    let asked = if admin::is_ours(uri.path()) || path.starts_with("/to/") || path.starts_with("/~") {
        // The relay would take it for itself.
        "send".clone_into(&mut upstream.name);
        format!("/to/send{path}")
    } else {
        path
    };
    Ok((Some(upstream), asked))
}

/// The upstream at `base`, with all that the settings say of the one that has this path below it: its headers, its key
/// and the proxy on the way. What is meant for one place goes to no other.
fn upstream(base: BaseUrl, path: &str, config: &Config) -> Upstream {
    let chosen = match &config.upstream {
        Some(choice @ UpstreamChoice::Url(entry)) => Some((choice.name(), entry)),
        Some(UpstreamChoice::Named(_) | UpstreamChoice::Pool(_)) | None => None,
    };
    let named = config.upstreams.iter().map(|(name, entry)| (name.clone(), entry));
    let fits = |entry: &config::Upstream| {
        let below = path.strip_prefix(entry.url.path());
        entry.url.scheme() == base.scheme()
            && entry.url.authority() == base.authority()
            && below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let known = chosen.into_iter().chain(named).filter(|(_, entry)| fits(entry));
    // Of several the longest path is meant, and of two alike the first.
    let known = known.reduce(
        |best, next| {
            if next.1.url.path().len() > best.1.url.path().len() { next } else { best }
        },
    );
    let mut upstream = match known {
        Some((name, entry)) => Upstream::of(&name, &config::Upstream { url: base, ..entry.clone() }),
        None => Upstream::of(&base.authority(), &config::Upstream::at(base)),
    };
    upstream.v1 = V1::Keep;
    upstream
}

fn headers(options: &Options) -> Result<HeaderMap, Unfit> {
    let mut headers = HeaderMap::new();
    for given in &options.headers {
        match given.strip_prefix('@') {
            None => add(given, "-H", &mut headers)?,
            Some(file) => {
                let text = bounded(Path::new(file), LONGEST_HEADERS)?;
                let text =
                    String::from_utf8(text).map_err(|_odd| Unfit(send::headers_no_text(lang(), file)))?;
                for line in text.lines().filter(|line| !line.trim().is_empty()) {
                    add(line, file, &mut headers)?;
                }
            }
        }
    }
    let usual = [(USER_AGENT, OUR_NAME.clone()), (ACCEPT, HeaderValue::from_static("*/*"))];
    for (name, value) in usual {
        headers.entry(name).or_insert(value);
    }
    Ok(headers)
}

/// What stands in a header may be a secret: it is never repeated.
fn add(line: &str, place: &str, headers: &mut HeaderMap) -> Result<(), Unfit> {
    let Some((name, value)) = line.split_once(':') else {
        return Err(Unfit(send::header_without_colon(lang(), place)));
    };
    let Ok(name) = HeaderName::from_bytes(name.trim().as_bytes()) else {
        return Err(Unfit(send::header_without_name(lang(), place)));
    };
    if NOT_TO_GIVE.contains(&name.as_str()) {
        return Err(Unfit(send::header_not_to_give(lang(), place, name.as_str())));
    }
    let Ok(mut value) = HeaderValue::from_str(value.trim()) else {
        return Err(Unfit(send::header_unfit(lang(), place, name.as_str())));
    };
    value.set_sensitive(true);
    headers.append(name, value);
    Ok(())
}

fn data(options: &Options) -> Result<Data, Unfit> {
    let file = match (&options.data, &options.data_file) {
        (Some(data), _) => match data.strip_prefix('@') {
            Some("-") => return from_pipe("standard input", standard_input()),
            Some(file) => Path::new(file),
            None => return Ok(Data::Bytes(data.clone().into())),
        },
        (None, Some(file)) => file.as_path(),
        (None, None) => return Ok(Data::None),
    };
    let shown = file.display().to_string();
    let open = File::open(file).map_err(|error| unread(&shown, &error))?;
    let found = open.metadata().map_err(|error| unread(&shown, &error))?;
    if found.is_dir() {
        return Err(Unfit(send::folder(lang(), &shown)));
    }
    if found.is_file() { Ok(Data::File(open, found.len())) } else { from_pipe(&shown, open) }
}

fn from_pipe(shown: &str, pipe: impl Read) -> Result<Data, Unfit> {
    let mut bytes = Vec::new();
    let read = pipe.take(MOST_PIPED + 1).read_to_end(&mut bytes);
    read.map_err(|error| unread(shown, &error))?;
    if bytes.len() as u64 > MOST_PIPED {
        return Err(Unfit(send::piped_too_much(lang(), shown, MOST_PIPED >> 20)));
    }
    Ok(Data::Bytes(bytes.into()))
}

fn bounded(file: &Path, most: u64) -> Result<Vec<u8>, Unfit> {
    let shown = file.display().to_string();
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|open| open.take(most + 1).read_to_end(&mut bytes));
    read.map_err(|error| unread(&shown, &error))?;
    if bytes.len() as u64 > most {
        return Err(Unfit(send::too_long(lang(), &shown, most >> 10)));
    }
    Ok(bytes)
}

fn unread(shown: &str, error: &io::Error) -> Unfit {
    Unfit(send::unread(lang(), shown, &error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Flags, NO_VARIABLES, load};

    fn config(text: &str) -> Config {
        let flags = Flags { config: Some("config.toml".into()), ..Flags::default() };
        load(&flags, &NO_VARIABLES, &|_| Ok(text.as_bytes().to_vec())).unwrap().config
    }

    fn of(target: &[&str]) -> Options {
        Options { target: target.iter().map(|word| (*word).to_owned()).collect(), ..Options::default() }
    }

    fn request(options: &Options) -> Result<Request, Unfit> {
        Request::of(options, &Config::default())
    }

    #[test]
    fn what_is_sent_is_not_shown() {
        let options = Options {
            headers: vec!["authorization: Bearer hunter2".to_owned()],
            data: Some("hunter2".to_owned()),
            ..of(&["https://a.example/?key=hunter2"])
        };
        let shown = format!("{options:?} {:?}", request(&options).unwrap());
        assert!(!shown.contains("hunter2"), "{shown}");
    }

    #[test]
    fn the_method_follows_from_the_data_unless_it_is_named() {
        let url = "https://a.example/v1/models";
        let with = |target: &[&str], flag: Option<&str>, data: Option<&str>| {
            let owned = |text: Option<&str>| text.map(str::to_owned);
            let options = Options { method: owned(flag), data: owned(data), ..of(target) };
            request(&options).map(|request| request.method.to_string()).map_err(|why| why.to_string())
        };
        let rows = [
            (&[url][..], None, None, Ok("GET")),
            (&[url], None, Some("{}"), Ok("POST")),
            (&["put", url], None, Some("{}"), Ok("PUT")),
            (&[url], Some("DELETE"), None, Ok("DELETE")),
            (&["GET", url], Some("GET"), None, Err("the method is named twice")),
            (&["CONNECT", url], None, None, Err("`CONNECT` is no method that can be sent")),
            (&["a b", url], None, None, Err("`a b` is no method that can be sent")),
        ];
        for (target, flag, data, expected) in rows {
            match (with(target, flag, data), expected) {
                (Ok(method), expected) => assert_eq!(Ok(method.as_str()), expected),
                (Err(why), expected) => assert_eq!(Err(why.lines().next().unwrap()), expected),
            }
        }
    }

    #[test]
    fn a_url_is_asked_as_it_is() {
        let rows = [
            ("https://a.example/v1/responses?x=%2F#top", "https://a.example", "/v1/responses?x=%2F"),
            ("http://[::1]:9/x", "http://[::1]:9", "/x"),
            ("https://a.example", "https://a.example", "/"),
            ("https://a.example?x", "https://a.example", "/?x"),
            ("https://a.example/healthz", "https://a.example", "/to/send/healthz"),
            ("https://a.example/__steady/status", "https://a.example", "/to/send/__steady/status"),
            ("https://a.example/to/b", "https://a.example", "/to/send/to/b"),
            ("http://127.0.0.1:1/~0a/v1", "http://127.0.0.1:1", "/to/send/~0a/v1"),
        ];
        for (url, origin, asked) in rows {
            let request = request(&of(&[url])).unwrap();
            let upstream = request.upstream.unwrap();
            assert_eq!(
                (upstream.shown().as_str(), request.path_and_query.as_str()),
                (origin, asked),
                "{url}"
            );
            assert_eq!(upstream.v1, V1::Keep);
        }
        let routed = request(&of(&["/v1/models?a"])).unwrap();
        assert!(routed.upstream.is_none() && routed.path_and_query == "/v1/models?a");
        for url in
            ["a.example/x", "", "ftp://a.example/", "https://", "https://u:p@a.example/", "//a/b", "a b"]
        {
            let error = request(&of(&[url])).unwrap_err().to_string();
            assert!(error.starts_with("the URL ") && error.contains("\nhint: "), "{url}: {error}");
            assert!(!error.contains("u:p"), "{error}");
        }
    }

    #[test]
    fn what_the_settings_say_of_a_place_goes_there_and_nowhere_else() {
        let config = config(
            "[upstream.wide]\nurl = \"https://gw.example\"\nheaders = { x = \"wide\" }\n\
             [upstream.team]\nurl = \"https://gw.example/team/v1\"\napi_key = \"sk-team\"\n",
        );
        let name = |url: &str| {
            let upstream = Request::of(&of(&[url]), &config).unwrap().upstream.unwrap();
            (upstream.name.clone(), upstream.api_key.is_some(), upstream.headers.len())
        };
        assert_eq!(name("https://gw.example/team/v1/responses"), ("team".to_owned(), true, 0));
        assert_eq!(name("https://gw.example/team/v12"), ("wide".to_owned(), false, 1));
        assert_eq!(name("https://gw.example/x"), ("wide".to_owned(), false, 1));
        for url in ["http://gw.example/team/v1", "https://gw.example:444/team/v1", "https://gw.example.evil/"]
        {
            let (_, has_key, headers) = name(url);
            assert!(!has_key && headers == 0, "{url}");
        }
    }

    #[test]
    fn headers_are_read_and_their_values_are_never_shown() {
        let with = |headers: &[&str]| {
            let headers = headers.iter().map(|header| (*header).to_owned()).collect();
            request(&Options { headers, ..of(&["https://a.example/"]) })
        };
        let headers = with(&["Authorization: Bearer sk-1", "x: ", "a:b:c", "a: d"]).unwrap().headers;
        assert_eq!(headers["authorization"], "Bearer sk-1");
        assert_eq!((&headers["x"], headers.get_all("a").iter().count()), (&HeaderValue::from_static(""), 2));
        assert!(headers["user-agent"].to_str().unwrap().starts_with("steady-relay/"));
        for (header, what) in [
            ("hunter2", "-H: a header has no colon"),
            ("hun ter2: x", "-H: a header has no name that can be sent"),
            ("x: hunter2\u{1}", "-H: the value of `x` cannot be sent"),
            ("Host: hunter2", "-H: the header `host` follows from what is sent"),
            ("@/nowhere/at/all", "/nowhere/at/all: "),
        ] {
            let error = with(&[header]).unwrap_err().to_string();
            assert!(error.starts_with(what) && !error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn patience_is_a_time() {
        let with = |patience: &str| {
            request(&Options { patience: Some(patience.to_owned()), ..of(&["https://a.example/"]) })
        };
        assert_eq!(with("30s").unwrap().headers["x-steady-patience"], "30s");
        for odd in ["30", "soon", "\n"] {
            assert!(with(odd).unwrap_err().to_string().starts_with("--patience: "), "{odd}");
        }
    }
}
