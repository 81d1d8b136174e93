//! Takes secrets and private paths out of words that the relay shows: an upstream may echo a key, and an error
//! of the operating system may name a home folder.

mod bounded;
pub mod kept;

use std::borrow::Cow;

use crate::plain::is_unfit;

/// Starts of well-known secrets; what follows them up to a break is hidden.
const STARTS: &[&str] = &[
    "sk-",
    "sk_",
    "csk-",
    "pk-",
    "pk_live_",
    "rk-",
    "rk_live_",
    "eyJ",
    "AIza",
    "AQ.",
    "ya29.",
    "ghp_",
    "gho_",
    "ghr_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "xai-",
    "gsk_",
    "hf_",
    "nvapi-",
    "r8_",
    "tgp_v1_",
    "vck_",
    "lsv2_",
    "tvly-",
    "AKIA",
    "ASIA",
    "ABSK",
    "xapp-",
    "xoxa-",
    "xoxb-",
    "xoxc-",
    "xoxd-",
    "xoxe-",
    "xoxp-",
    "xoxr-",
    "xoxs-",
    "whsec_",
    "dckr_pat_",
    "pypi-AgE",
];

/// Starts that names have as well (`pplx-70b-online`, `npm_config_cache`): a secret goes on with this many letters and
/// digits in a row.
const STARTS_OF_NAMES: &[&str] = &["pplx-", "fw_", "npm_", "sess-"];
const IN_A_ROW: usize = 16;

/// No word has so many letters and digits in a row. What services call their errors has up to 38.
const NO_WORD: usize = 40;

/// What stands in the place of a secret.
const GONE: &str = "[redacted]";

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

/// Folders in which users' folders are.
const HOMES: &[&str] = &["home", "users"];

/// The words without secrets, and with `~` in place of home folders.
#[must_use]
pub fn redact(text: &str) -> Cow<'_, str> {
    match without_cookies(text) {
        Cow::Borrowed(text) => without_words(text, is_secret),
        Cow::Owned(text) => without_words(&text, is_secret).into_owned().into(),
    }
}

/// Whether a key of a kind that is known begins in one of the words.
#[must_use]
pub fn holds_a_key(text: &str) -> bool {
    text.split(is_break).any(starts_as_known)
}

/// Whether a secret, or a person, stands in what should be a name.
#[must_use]
pub(crate) fn names_a_secret(name: &str, is_random: fn(&str) -> bool) -> bool {
    let is_out = |word: &str| starts_as_known(word) || is_mail(word) || runs(word).any(is_random);
    // Most names are one word.
    if !name.contains(is_break) {
        return is_out(name);
    }
    let is_scheme = |word: &str| is_name(word, BEARER) || is_name(word, BASIC);
    let mut words = name.split_whitespace().rev();
    // Whatever follows it: a name has no such word.
    let follows = words.next().is_some() && words.any(is_scheme);
    follows || without_words(name, is_out).contains(GONE)
}

/// Whether letters and digits stand in a row as in a key. An id of a request may be as long, in hexadecimal digits.
#[must_use]
pub(crate) fn is_no_id(run: &str) -> bool {
    run.len() >= NO_WORD && !run.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The same for what is no id either.
#[must_use]
pub(crate) fn is_no_name(run: &str) -> bool {
    let has = |class: fn(&u8) -> bool| run.as_bytes().iter().any(class);
    run.len() >= NO_WORD || run.len() >= 32 && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic)
}

/// The text without those of its words that are secrets, by what stands before them or by themselves.
fn without_words(text: &str, is_secret: impl Fn(&str) -> bool) -> Cow<'_, str> {
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
            out.push_str(GONE);
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
    let plain = words.replace(is_unfit, " ");
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
    !before.ends_with(char::is_alphanumeric)
        || before.ends_with(['n', 'r', 't']) && ["\\n", "\\r", "\\t"].iter().any(|it| before.ends_with(it))
}

/// Whether a well-known secret begins in the word. One look at each place where one can: it is asked of every name.
fn starts_as_known(word: &str) -> bool {
    let is_known = |rest: &str| {
        let first = rest.as_bytes().first();
        let longer = |start: &str, by: usize| {
            start.as_bytes().first() == first && rest.len() >= start.len() + by && rest.starts_with(start)
        };
        let in_a_row = |start: &str| {
            rest[start.len()..].bytes().take_while(u8::is_ascii_alphanumeric).count() >= IN_A_ROW
        };
        STARTS.iter().any(|start| longer(start, 4))
            || STARTS_OF_NAMES.iter().any(|start| longer(start, IN_A_ROW) && in_a_row(start))
    };
    let letters = word.bytes().enumerate().filter(|(_, letter)| letter.is_ascii_alphabetic());
    letters.into_iter().any(|(at, _)| begins_at(word, at) && is_known(&word[at..]))
}

fn is_secret(word: &str) -> bool {
    // A long run of letters and digits that no word looks like.
    let mut long = word.split(|c: char| !c.is_ascii_alphanumeric() && !"_-.+".contains(c));
    let random = long.any(|run| {
        run.len() >= 32
            && run.chars().any(|c| c.is_ascii_digit())
            && run.chars().any(|c| c.is_ascii_uppercase())
    });
    // The account before an @ is a person; the host is not needed to act.
    let account = word.match_indices('@').find(|(at, _)| *at > 0);
    let mail = account.is_some_and(|(at, _)| word[at..].contains('.'));
    starts_as_known(word) || random || mail || runs(word).any(is_no_id)
}

/// The letters and digits that stand in a row.
fn runs(word: &str) -> impl Iterator<Item = &str> {
    word.split(|c: char| !c.is_ascii_alphanumeric())
}

/// Whether the address of a person is in a name. What follows the `@` of a model is a version, or stands behind no account.
fn is_mail(name: &str) -> bool {
    name.match_indices('@').any(|(at, _)| {
        let account = name[..at].chars().next_back();
        let host = &name[at + 1..];
        let end = host.find(|c: char| !c.is_alphanumeric() && !".-".contains(c)).unwrap_or(host.len());
        let (before, last) = host[..end].trim_end_matches(['.', '-']).rsplit_once('.').unwrap_or_default();
        account.is_some_and(|c| c.is_alphanumeric() || "._%+-".contains(c))
            && !before.is_empty()
            && last.chars().count() >= 2
            && last.chars().all(char::is_alphabetic)
    })
}

/// The text without what follows `Cookie:` and `Set-Cookie:`, up to the end of the line or of the quotes it stands in.
fn without_cookies(text: &str) -> Cow<'_, str> {
    let small = text.to_ascii_lowercase();
    let is_around = |c: char| matches!(c, ' ' | '\t' | '"' | '\'' | '\\');
    let is_end = |c: char| matches!(c, '\n' | '\r' | '\\' | '"' | '\'' | '`');
    let mut out = String::new();
    let mut from = 0;
    for (at, name) in small.match_indices("cookie").filter(|(at, _)| text.is_char_boundary(*at)) {
        let after = text[at + name.len()..].trim_start_matches(is_around);
        let Some(value) = after.strip_prefix([':', '=']).map(|value| value.trim_start_matches(is_around))
        else {
            continue;
        };
        let start = text.len() - value.len();
        // Words of a sentence are no pairs. The name of the first one is not long.
        let near = &value[..value.floor_char_boundary(256)];
        let first = near.split(|c: char| c.is_whitespace() || is_end(c)).next().unwrap_or_default();
        if start >= from && first.contains('=') {
            out.push_str(&text[from..start]);
            out.push_str(GONE);
            from = start + value.find(is_end).unwrap_or(value.len());
        }
    }
    if from == 0 {
        return text.into();
    }
    out.push_str(&text[from..]);
    out.into()
}

/// The file that a path in somebody's home ends with: the rest of it says who that is. Anything else as it is.
pub(crate) fn without_path_at_home(name: &str) -> Cow<'_, str> {
    if !name.contains(['/', '\\']) {
        return name.into();
    }
    let mut homeless = String::with_capacity(name.len());
    push_without_home(&mut homeless, name);
    if homeless == name && !name.starts_with("/root/") {
        return name.into();
    }
    homeless.rsplit(['/', '\\']).next().unwrap_or_default().to_owned().into()
}

fn push_without_home(out: &mut String, mut word: &str) {
    while let Some((at, name)) = home_in(word) {
        let name_end = word[name..].find(['/', '\\']).map_or(word.len(), |end| name + end);
        // A drive letter belongs to the home folder ("C:" stands before a break and stays).
        out.push_str(&word[..at]);
        out.push('~');
        word = &word[name_end..];
    }
    out.push_str(word);
}

/// Where a home folder begins in a word, and where the name of its user does. Programs write the slashes of Windows
/// twice, and some those of others.
fn home_in(word: &str) -> Option<(usize, usize)> {
    let is_slash = |c: char| matches!(c, '/' | '\\');
    // Looked at once for each row of slashes, whatever its length.
    let mut rest = 0;
    while let Some(at) = word[rest..].find(is_slash).map(|at| rest + at) {
        let folder = at + slashes(&word[at..]);
        let end = word[folder..].find(is_slash).map(|end| folder + end)?;
        if HOMES.iter().any(|home| home.eq_ignore_ascii_case(&word[folder..end])) {
            return Some((at, end + slashes(&word[end..])));
        }
        rest = end;
    }
    None
}

/// How many slashes a text begins with.
fn slashes(text: &str) -> usize {
    text.len() - text.trim_start_matches(['/', '\\']).len()
}

/// Without percent escapes, and with a space for each plus.
pub(crate) fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains(['%', '+']) {
        return text.into();
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = |byte: u8| char::from(byte).to_digit(16);
        let escape = match tail {
            [one, two, ..] if *first == b'%' => hex(*one).zip(hex(*two)),
            _ => None,
        };
        match escape {
            Some((high, low)) => {
                bytes.push(u8::try_from(high * 16 + low).unwrap_or(b'?'));
                rest = tail.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(if *first == b'+' { b' ' } else { *first });
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned().into()
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

    /// Forty letters, as keys have them that begin with nothing that is known.
    const RANDOM: &str = "qzjxkvbwpfhgmtydnclsraeiouqzjxkvbwpfhgmt";

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
            ("a csk-abcdef12345, an nvapi-abcdef-12345", "a [redacted], an [redacted]"),
            ("AQ.Ab8RN6I-x xapp-1-A0 r8_abcdef tgp_v1_abcdef", "[redacted] [redacted] [redacted] [redacted]"),
            ("pplx-abcdefghijklmnop fw_abcdefghijklmnop", "[redacted] [redacted]"),
            ("npm_abcdefghijklmnop sess-abcdefghijklmnop", "[redacted] [redacted]"),
            (RANDOM, "[redacted]"),
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
            // Cookies are many words.
            ("got\nCookie: session=hunter2; theme=dark\nHost: x", "got\nCookie: [redacted]\nHost: x"),
            ("curl -H 'set-cookie: a=hunter2; Path=/' x", "curl -H 'set-cookie: [redacted]' x"),
            (r#"{\"Cookie\": \"a=hunter2\"}"#, r#"{\"Cookie\": \"[redacted]\"}"#),
            ("document.cookie = \"a=hunter2\"", "document.cookie = \"[redacted]\""),
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
        for path in [r"C:\\Users\\jane\\codex", r"C:\\\\Users\\\\jane\\codex", r"c:\users\jane\\codex"] {
            assert_eq!(redact(path).to_lowercase(), r"c:~\\codex");
        }
        assert_eq!(redact("//home//jane/x"), "~/x");
        assert_eq!(redact("C:/Users/jane/x"), "C:~/x");
    }

    /// Read once over: an answer may be made so that each piece of it asks for all that follows.
    #[test]
    fn a_word_without_end_takes_no_time_without_end() {
        for (piece, shown) in [
            ("/home/", "~~~"),
            ("\\Users\\x", "~~~"),
            ("a/users/b", "a~~~"),
            ("//", "//"),
            ("/home", "~~~"),
            ("@", "@@@"),
            ("@a.", "[red"),
            ("sk-", "[red"),
            ("cookie:", "cookie:"),
            ("cookie=", "cookie="),
        ] {
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
            "pplx-70b-online, npm_config_cache and sess-1 are names; ProvisionedThroughputExceededException too",
            "ask with req_4c3c9d2dd1a04eb2b4d18f8f5e1a0b6e, or with 4c3c9d2dd1a04eb2b4d18f8f5e1a0b6e4c3c9d2dd1",
            "a cookie: small, sweet; set cookies where you = want",
            "Bearer credentials are missing; bearer tokens expire",
            "",
            "服务繁忙，请稍后再试",
        ] {
            assert_eq!(redact(text), text);
        }
    }
}
