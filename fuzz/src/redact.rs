//! Secrets in words: none that is planted survives, and a home folder keeps no name.

use relay_core::redact::kept;

use crate::cuts::{below, dice};

/// Secrets in the shapes that exist, with what comes before them.
const SECRETS: &[(&str, &str)] = &[
    ("", "sk-proj-Planted7abcdefgh"),
    ("", "sk-ant-api03-Planted7abcdefgh"),
    ("", "sk_live_Planted7abcdefgh"),
    ("", "AIzaSyPlanted7abcdefgh"),
    ("", "ghp_Planted7abcdefgh"),
    ("", "hf_Planted7abcdefgh"),
    ("", "xai-Planted7abcdefgh"),
    ("", "gsk_Planted7abcdefgh"),
    ("", "eyJhbGciOiJIUzI1NiJ9.Planted7.abcdefgh"),
    ("", "Planted7abcdefghPlanted7abcdefgh"),
    ("", "Planted7.abcdefgh@mail.example"),
    ("Bearer ", "planted7abcdefgh"),
    ("authorization: basic ", "planted7abcdefgh"),
    ("api_key=", "planted7abcdefgh"),
    ("\"api-key\": \"", "planted7abcdefgh"),
    ("?key=", "planted7abcdefgh"),
    ("x-api-key: ", "planted7abcdefgh"),
    ("password = ", "planted7abcdefgh"),
    ("/home/", "planted7abcdefgh"),
    ("C:\\Users\\", "planted7abcdefgh"),
    ("file:///Users/", "planted7abcdefgh"),
];

/// What may stand around a secret.
const AROUND: &[(&str, &str)] = &[
    (" ", " "),
    ("\"", "\""),
    ("'", "'"),
    ("\n", "\n"),
    ("(", ")"),
    ("`", "`"),
    ("<", ">"),
    (":", ","),
    ("=", "&"),
    ("**", "**"),
    ("|", "|"),
    ("\\\"", "\\\""),
    ("\\n", "\\n"),
    ("#", "."),
    ("/", "/"),
];

/// The bytes are a text; secrets are planted into it in many dresses.
pub fn redact(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let shown = relay_core::redact::redact(&text);
    // Where a home folder went, a word is another one than before.
    if !shown.contains('~') {
        assert_eq!(relay_core::redact::redact(&shown), shown, "once redacted is redacted");
    }
    if text.to_ascii_lowercase().contains("planted7") {
        return;
    }
    // Nothing that comes makes it panic.
    let _any = (kept::url(&text), kept::body(None, data), kept::body(Some("text/plain"), data));
    let mut dice = dice(data);
    for (label, secret) in SECRETS {
        let (left, right) = AROUND[below(&mut dice, AROUND.len())];
        let mut place = below(&mut dice, text.len() + 1);
        while !text.is_char_boundary(place) {
            place -= 1;
        }
        let (before, after) = text.split_at(place);
        let planted = format!("{before}{left}{label}{secret}{right}{after}");
        let shown = relay_core::redact::redact(&planted);
        assert!(!shown.to_ascii_lowercase().contains("planted7"), "{planted:?} is shown as {shown:?}");
        // What is kept of a body or an address is looked at more closely still.
        let value = serde_json::json!({ "text": planted, "inner": serde_json::json!([planted]).to_string() });
        let kept =
            [kept::text(&planted), kept::json(value).to_string(), kept::answer_header("x-any", &planted)];
        for kept in kept {
            assert!(!kept.to_ascii_lowercase().contains("planted7"), "{planted:?} is kept as {kept:?}");
        }
    }
}
