//! What a browser is shown whose reader was turned away: a page that asks for the token, or the way to the dashboard.
//! Only where somebody opens a page by hand; programs get the refusal as it is.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use ring::digest::{SHA256, digest};

use super::protect;
use crate::guard::{self, Guard};
use crate::reply::{ReplyBody, text, typed};
use crate::words::{door, lang};
use crate::{admin, sessions};

/// The token becomes part of the path. What a path cannot hold as it is no token of a path either.
const SCRIPT: &str = "document.querySelector('form').addEventListener('submit', (event) => {\n  \
    event.preventDefault();\n  \
    const token = document.querySelector('input').value.trim();\n  \
    if (token) location.assign('/~' + encodeURI(token) + '/__steady/');\n\
    });";

const STYLE: &str = ":root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }\n\
    body { margin: 12vh auto 0; max-width: 26rem; padding: 0 1rem; }\n\
    h1 { font-size: 1.25rem; }\n\
    input, button { font: inherit; padding: 0.5rem; }\n\
    input { box-sizing: border-box; display: block; margin: 0.25rem 0 0.75rem; width: 100%; }";

/// Nothing but the script and the style that stand in the page itself. The script sends the form.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let hash = |text: &str| BASE64_STANDARD.encode(digest(&SHA256, text.as_bytes()));
    let policy = format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'",
        hash(SCRIPT),
        hash(STYLE)
    );
    HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
});

/// The answer to a browser that opens a page of ours without the token, or the root where `leads_nowhere`: no upstream is
/// known for it. `None`: whoever asks gets the refusal.
pub(crate) fn answer(guard: &Guard, parts: &Parts, leads_nowhere: bool) -> Option<Response<ReplyBody>> {
    let full = guard::path_and_query(&parts.uri)?;
    // A key of a session is no token, and its refusal says what to do.
    if !is_opened(&parts.method, &parts.headers) || sessions::key_in(full).is_some() {
        return None;
    }
    let path = parts.uri.path();
    match guard.token(&parts.headers, full) {
        Err(refusal) if path == "/" || path.starts_with("/~") || admin::is_ours(path) => Some(ask(&refusal)),
        Err(_) => None,
        Ok(rest) => {
            let is_root = rest.as_deref().unwrap_or(full).split('?').next() == Some("/");
            (leads_nowhere && is_root).then(|| to_dashboard(path))
        }
    }
}

/// Whether a browser opens this as a page of its own. They say what it is for where they trust the way; on others, by what
/// they accept.
fn is_opened(method: &Method, headers: &HeaderMap) -> bool {
    let is_page = headers.get("sec-fetch-dest").is_none_or(|what| what.as_bytes() == b"document");
    let accepts = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or("");
    *method == Method::GET && is_page && accepts.starts_with("text/html")
}

fn ask(refusal: &guard::Refusal) -> Response<ReplyBody> {
    let lang = lang();
    let is_wrong = *refusal == guard::Refusal::TokenWrong;
    let wrong =
        if is_wrong { format!("<p role=\"alert\">{}</p>\n", door::token_wrong(lang)) } else { String::new() };
    let page = format!(
        "<!doctype html>\n<html lang=\"{}\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Steady Relay</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>Steady Relay</h1>\n<p>{}</p>\n{wrong}<form>\n\
         <label>{}\n<input type=\"password\" autocomplete=\"current-password\" required autofocus></label>\n\
         <button>{}</button>\n</form>\n</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n",
        lang.code(),
        door::page_asks(lang),
        door::page_token(lang),
        door::page_open(lang),
    );
    let mut response = typed(refusal.status(), "text/html; charset=utf-8", page.into_bytes());
    protect(response.headers_mut());
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, POLICY.clone());
    response
}

/// Relative, since a token may stand before it.
fn to_dashboard(path: &str) -> Response<ReplyBody> {
    let folder = path.rsplit('/').next().filter(|last| !last.is_empty());
    let place = folder.map_or_else(|| "__steady/".to_owned(), |last| format!("{last}/__steady/"));
    let mut response = text(StatusCode::SEE_OTHER, &door::page_is_beside(lang()));
    protect(response.headers_mut());
    if let Ok(place) = HeaderValue::try_from(place) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    response
}

#[cfg(test)]
mod tests {
    use http::Request;
    use relay_core::config::Secret;

    use super::*;

    const BROWSER: &str = "text/html,application/xhtml+xml,*/*;q=0.8";
    const TOKEN: &str = "0123456789abcdef";

    fn guard() -> Guard {
        Guard { token: Some(Secret::new(TOKEN.to_owned())), ..Guard::default() }
    }

    fn asked(path: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::get(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn status(guard: &Guard, path: &str, leads_nowhere: bool) -> Option<u16> {
        let parts = asked(path, &[("accept", BROWSER)]);
        answer(guard, &parts, leads_nowhere).map(|answer| answer.status().as_u16())
    }

    #[test]
    fn a_browser_is_asked_for_the_token_at_pages_of_ours_alone() {
        for (path, expected) in [
            ("/", Some(401)),
            ("/__steady/", Some(401)),
            ("/__steady/#calls", Some(401)),
            ("/healthz", Some(401)),
            ("/~wrong/__steady/", Some(403)),
            ("/v1/models", None),
            ("/~0123456789abcdef/v1/models", None),
        ] {
            assert_eq!(status(&guard(), path, false), expected, "{path}");
            assert_eq!(status(&Guard::default(), path, false), None, "{path}");
        }
    }

    #[test]
    fn the_root_leads_to_the_dashboard_where_it_leads_nowhere_else() {
        for (path, expected) in [
            ("/", "__steady/"),
            ("/~0123456789abcdef/", "__steady/"),
            ("/~0123456789abcdef", "~0123456789abcdef/__steady/"),
        ] {
            let guard = if path == "/" { Guard::default() } else { guard() };
            let found = answer(&guard, &asked(path, &[("accept", BROWSER)]), true).unwrap();
            assert_eq!(
                (found.status().as_u16(), &found.headers()["location"]),
                (303, &HeaderValue::from_static(expected))
            );
            assert_eq!(status(&guard, path, false), None, "it leads somewhere");
        }
        assert_eq!(status(&Guard::default(), "/v1/models", true), None);
    }

    #[test]
    fn programs_and_frames_get_what_they_always_got() {
        for headers in [
            &[][..],
            &[("accept", "*/*")],
            &[("accept", "application/json, text/html")],
            &[("accept", BROWSER), ("sec-fetch-dest", "iframe")],
        ] {
            assert!(answer(&guard(), &asked("/", headers), true).is_none(), "{headers:?}");
        }
        let mut posted = asked("/", &[("accept", BROWSER)]);
        posted.method = Method::POST;
        assert!(answer(&guard(), &posted, true).is_none());
    }
}
