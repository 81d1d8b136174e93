//! Escapes in a path that say nothing. What is forwarded keeps them; only what a path means is read without.

use std::borrow::Cow;

/// The path without the escapes of characters that need none, which are the same path (RFC 3986, section 6.2.2.2).
///
/// All others stay: a slash or a colon that was escaped is none that parts the path.
#[must_use]
pub fn unescaped(path: &str) -> Cow<'_, str> {
    if !path.contains('%') {
        return Cow::Borrowed(path);
    }
    let mut out = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(at) = rest.find('%') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let needless = escape.get(1..3).and_then(needless);
        out.push(needless.unwrap_or('%'));
        rest = escape.get(if needless.is_some() { 3 } else { 1 }..).unwrap_or_default();
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The character that two hex digits stand for, where it is one that needs no escape.
fn needless(digits: &str) -> Option<char> {
    // A sign would be read as part of the number.
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let letter = char::from(u8::from_str_radix(digits, 16).ok().filter(|_| is_hex)?);
    (letter.is_ascii_alphanumeric() || "-._~".contains(letter)).then_some(letter)
}

#[cfg(test)]
mod tests {
    use super::unescaped;

    #[test]
    fn only_needless_escapes_are_undone_and_only_once() {
        for (path, plain) in [
            ("/v1/responses", "/v1/responses"),
            ("/v1/%72esponses", "/v1/responses"),
            ("/%76%31/chat%2Dx%5f%7e%2e", "/v1/chat-x_~."),
            ("/a%2Fb%3Ac%25%20", "/a%2Fb%3Ac%25%20"),
            // What comes of it is not read again.
            ("/%2572", "/%2572"),
            ("/%%372", "/%72"),
            ("/%+1%7%zz%", "/%+1%7%zz%"),
            ("/%é%72é", "/%éré"),
        ] {
            assert_eq!(unescaped(path), plain, "{path}");
        }
    }
}
