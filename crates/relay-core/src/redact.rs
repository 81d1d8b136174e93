//! Takes secrets and private paths out of words that the relay shows: an upstream may echo a key, and an error
//! of the operating system may name a home folder.

mod bounded;
pub mod kept;

use std::borrow::Cow;

/// Starts of well-known secrets; what follows them up to a break is hidden.
const STARTS: &[&str] = &[
    "sk-",
    "sk_",
    "pk-",
    "rk-",
    "eyJ",
    "AIza",
    "ghp_",
    "gho_",
    "github_pat_",
    "xai-",
    "gsk_",
    "hf_",
    "ghs_",
    "ghu_",
    "AKIA",
    "xoxb-",
    "xoxp-",
    "glpat-",
    "ya29.",
];

/// The header whose value names a scheme and then a secret.
const HEADER: &[&str] = &["authorization"];

/// Schemes of it; by themselves they may also be words of a sentence.
const BEARER: &[&str] = &["bearer"];
const BASIC: &[&str] = &["basic"];

/// What sentences go on with after `bearer`. Any other word may be a token, which can look like anything.
const AFTER_BEARER: &[&str] = &[
    "access",
    "authentication",
    "authorization",
    "challenge",
    "credential",
    "credentials",
    "format",
    "header",
    "headers",
    "prefix",
    "scheme",
    "schemes",
    "tokens",
];

/// Ends of the names of secrets (`x-api-key`, `OPENAI_API_KEY`), where a value is assigned to them.
const LABELS: &[&str] = &["key", "apikey", "token", "password", "secret"];

/// Folders under which a user's name stands.
const HOMES: &[&str] = &["/home/", "/Users/", "\\Users\\", "/users/"];

/// The words without secrets, and with `~` in place of home folders.
#[must_use]
pub fn redact(text: &str) -> Cow<'_, str> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut next = Next::Shown;
    while !rest.is_empty() {
        let word_end = rest.find(is_break).unwrap_or(rest.len());
        let (word, after) = rest.split_at(word_end);
        let gap_end = after.find(|c| !is_break(c)).unwrap_or(after.len());
        let (gap, tail) = after.split_at(gap_end);
        // Punctuation alone, as the backslash before an escaped quote, says nothing; and once hidden is hidden.
        let bare = word.trim_end_matches(|c: char| !c.is_alphanumeric());
        let hidden = (next.hides(bare) && bare != "redacted") || is_secret(word);
        if hidden {
            out.push_str("[redacted]");
        } else {
            push_without_home(&mut out, word);
        }
        if !bare.is_empty() {
            let assigned = gap.contains(['=', ':']);
            let in_header = next == Next::Scheme;
            next = if is_name(bare, BEARER) {
                if in_header { Next::Secret } else { Next::Bearer }
            } else if is_name(bare, BASIC) {
                if in_header { Next::Secret } else { Next::Basic }
            } else if assigned && is_name(bare, LABELS) {
                Next::Secret
            } else if assigned && is_name(bare, HEADER) {
                Next::Scheme
            } else {
                Next::Shown
            };
        }
        out.push_str(gap);
        rest = tail;
    }
    if out == text { Cow::Borrowed(text) } else { Cow::Owned(out) }
}

/// Words from outside as they may be shown: without secrets, on one line, without what a terminal would obey, and at
/// most so many letters.
#[must_use]
pub fn in_one_line(words: &str, most: usize) -> String {
    let plain = words.replace(char::is_control, " ");
    let words = redact(&plain).split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().take(most).collect::<String>().trim_end().to_owned()
}

/// What the words so far say about the next one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Nothing.
    Shown,
    /// It is the value of a secret's name.
    Secret,
    /// It is the scheme of a header.
    Scheme,
    /// It follows `bearer`: a token, or the next word of a sentence.
    Bearer,
    /// It follows `basic`, likewise.
    Basic,
}

impl Next {
    fn hides(self, word: &str) -> bool {
        match self {
            Self::Shown | Self::Scheme => false,
            Self::Secret => word.len() >= 6,
            Self::Bearer => {
                word.len() >= 6 && !AFTER_BEARER.iter().any(|plain| plain.eq_ignore_ascii_case(word))
            }
            Self::Basic => holds_basic(word),
        }
    }
}

/// Whether credentials of the scheme `Basic` stand in a word: name and password with a colon between them, in base64
/// (RFC 7617, section 2). Next to no word of a sentence says that.
fn holds_basic(word: &str) -> bool {
    let says_so = |run: &str| {
        let plain = from_base64(run);
        plain.is_some_and(|plain| plain.contains(&b':') && !plain.iter().any(u8::is_ascii_control))
    };
    // Something may cling to it: an escaped line end, a sign of Markdown.
    let mut runs = word.split(|c: char| !c.is_ascii_alphanumeric() && !"+/-_".contains(c));
    runs.any(|run| says_so(run) || says_so(run.trim_matches(['-', '_', '/'])))
}

/// The bytes that base64 of either alphabet stands for, without its padding; `None` where it is none.
fn from_base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let (mut bits, mut count) = (0_u32, 0);
    for letter in text.bytes() {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count).to_le_bytes()[0]);
        }
    }
    // One letter alone, of the last four, makes no byte.
    (text.len() % 4 != 1).then_some(bytes)
}

const fn is_break(c: char) -> bool {
    c.is_whitespace()
        || matches!(
            c,
            '"' | '\''
                | '`'
                | ','
                | ';'
                | '='
                | ':'
                | '('
                | ')'
                | '['
                | ']'
                | '{'
                | '}'
                | '<'
                | '>'
                | '?'
                | '&'
        )
}

/// Whether the word is one of `names`, in any case, or ends in one after something that is no letter.
fn is_name(word: &str, names: &[&str]) -> bool {
    names.iter().any(|name| {
        let at = word.len().saturating_sub(name.len());
        word.get(at..).is_some_and(|end| end.eq_ignore_ascii_case(name)) && begins_at(word, at)
    })
}

/// Whether something new can begin here: at the word's start, after a sign, or after an escaped line end, as in the
/// words of a service that a gateway quotes.
fn begins_at(word: &str, at: usize) -> bool {
    let before = &word[..at];
    !before.ends_with(char::is_alphanumeric) || ["\\n", "\\r", "\\t"].iter().any(|it| before.ends_with(it))
}

/// Whether one of the words begins as well-known secrets do.
#[must_use]
pub(crate) fn starts_like_a_secret(text: &str) -> bool {
    text.split(is_break).any(starts_as_known)
}

/// Whether a well-known secret begins in the word.
fn starts_as_known(word: &str) -> bool {
    STARTS.iter().filter(|start| word.len() >= start.len() + 4).any(|start| {
        let mut places = word.match_indices(start);
        places.any(|(at, _)| begins_at(word, at) && word.len() - at >= start.len() + 4)
    })
}

fn is_secret(word: &str) -> bool {
    let starts = starts_as_known(word);
    // A long run of letters and digits that no word looks like.
    let mut runs = word.split(|c: char| !c.is_ascii_alphanumeric() && !"_-.+".contains(c));
    let random = runs.any(|run| {
        run.len() >= 32
            && run.chars().any(|c| c.is_ascii_digit())
            && run.chars().any(|c| c.is_ascii_uppercase())
    });
    // The account before an @ is a person; the host is not needed to act.
    let account = word.match_indices('@').find(|(at, _)| *at > 0);
    let mail = account.is_some_and(|(at, _)| word[at..].contains('.'));
    starts || random || mail
}

fn push_without_home(out: &mut String, mut word: &str) {
    // Every home begins with a slash of either kind; looking for each by itself would read the rest once for each.
    let home = |from: &str| HOMES.iter().find(|home| from.starts_with(**home)).map(|home| home.len());
    let next =
        |word: &str| word.match_indices(['/', '\\']).find_map(|(at, _)| Some((at, home(&word[at..])?)));
    while let Some((at, length)) = next(word) {
        let name = at + length;
        let name_end = word[name..].find(['/', '\\']).map_or(word.len(), |end| name + end);
        // A drive letter belongs to the home folder ("C:" stands before a break and stays).
        out.push_str(&word[..at]);
        out.push('~');
        word = &word[name_end..];
    }
    out.push_str(word);
}

#[cfg(test)]
mod tests {
    use super::{in_one_line, redact};

    #[test]
    fn words_from_outside_fill_one_line_and_command_no_terminal() {
        let words = "no\troom\r\nfor\u{7}sk-proj-abcdef12345\u{1b}[31m today";
        assert_eq!(in_one_line(words, 300), "no room for [redacted] [31m today");
        assert_eq!(in_one_line("one two", 4), "one");
    }

    #[test]
    fn secrets_go() {
        for (text, shown) in [
            ("Authorization: Bearer sk-proj-abcdef12345", "Authorization: Bearer [redacted]"),
            ("key=qk-SECRET-777 refused", "key=[redacted] refused"),
            ("Bearer zzzzzzzzz", "Bearer [redacted]"),
            ("bearer tokenzzzz was refused", "bearer [redacted] was refused"),
            ("Authorization: Bearer tokens", "Authorization: Bearer [redacted]"),
            ("got Basic dXNlcjpwYXNz==, refused", "got Basic [redacted]==, refused"),
            ("basic YTpi", "basic [redacted]"),
            ("basic __dXNlcjpwYXNz__", "basic [redacted]"),
            // A name with an umlaut, in the encoding of old.
            ("Basic auo6aHVudGVyMg", "Basic [redacted]"),
            // Where it stands in its header, there is no doubt.
            ("Authorization: Basic notbase64", "Authorization: Basic [redacted]"),
            (r#"{"proxy-authorization":"basic zzzzzzzz"}"#, r#"{"proxy-authorization":"basic [redacted]"}"#),
            (r"sent:\nBasic dXNlcjpwYXNz\n", r"sent:\nBasic [redacted]"),
            ("Incorrect API key provided: sk-abcd****wxyz.", "Incorrect API key provided: [redacted]"),
            ("token eyJhbGciOiJIUzI1NiJ9.e30.x", "token [redacted]"),
            ("mail jane.doe@example.com now", "mail [redacted] now"),
            ("id AbCd1234AbCd1234AbCd1234AbCd1234", "id [redacted]"),
            // In the dress of Markdown, of a table, of a path.
            ("the key **sk-proj-abcdef12345** is wrong", "the key [redacted] is wrong"),
            ("|sk-proj-abcdef12345|", "[redacted]"),
            ("/keys/AbCd1234AbCd1234AbCd1234AbCd1234/x", "[redacted]"),
            ("@ops: /jane.doe@example.com", "@ops: [redacted]"),
            // Quoted by a gateway, with its quotes and line ends escaped.
            (r#"{\"api_key\": \"zzzzzzzz\"}"#, r#"{\"api_key\": \"[redacted]"}"#),
            (r"bad key:\nsk-proj-abcdef12345", "bad key:[redacted]"),
            (r"x\nAuthorization:\nBearer zzzzzzzzz", r"x\nAuthorization:\nBearer [redacted]"),
            // Under a longer name.
            ("AZURE_OPENAI_API_KEY=0123456789abcdef", "AZURE_OPENAI_API_KEY=[redacted]"),
            ("refresh_token: zzzzzzzzz", "refresh_token: [redacted]"),
        ] {
            assert_eq!(redact(text), shown);
            assert_eq!(redact(shown), shown, "once redacted is redacted");
        }
    }

    #[test]
    fn homes_become_a_tilde() {
        assert_eq!(redact("open /home/jane/.codex/auth.json failed"), "open ~/.codex/auth.json failed");
        assert_eq!(redact("/Users/jane"), "~");
        assert_eq!(redact(r"C:\Users\jane\codex"), r"C:~\codex");
        assert_eq!(redact("/home/jane|/home/joe/x"), "~~/x");
    }

    /// Read once over: an answer may be made so that each piece of it asks for all that follows.
    #[test]
    fn a_word_without_end_takes_no_time_without_end() {
        for (piece, shown) in
            [("/home/", "~~~"), ("\\Users\\x", "~~~"), ("a/users/b", "a~~~"), ("@", "@@@"), ("sk-", "[red")]
        {
            let word = piece.repeat((1 << 20) / piece.len());
            assert!(redact(&word).starts_with(shown), "{piece}");
        }
    }

    #[test]
    fn plain_words_stay() {
        for text in [
            "Our servers are currently overloaded. Please try again later.",
            "Rate limit reached for gpt-5.6-sol on requests per min (RPM): Limit 3, Used 3, Requested 1.",
            "key",
            "the task-force asks: is a desk-top monkey=bananas",
            "basic authentication is not supported here, nor is Basic Authentication with passwords",
            "this model has basic functionality, basic reasoning and basic understanding",
            "the bearer token was refused: bearer authentication needs the Bearer scheme",
            "Bearer credentials are missing; bearer tokens expire",
            "",
            "服务繁忙，请稍后再试",
        ] {
            assert_eq!(redact(text), text);
        }
    }
}
