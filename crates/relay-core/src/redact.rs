//! Takes secrets and private paths out of words that the relay shows: an upstream may echo a key, and an error
//! of the operating system may name a home folder.

use std::borrow::Cow;

/// Starts of well-known secrets; what follows them up to a break is hidden.
const STARTS: &[&str] =
    &["sk-", "sk_", "pk-", "rk-", "eyJ", "AIza", "ghp_", "gho_", "github_pat_", "xai-", "gsk_", "hf_"];

/// Schemes of `Authorization`: the next word is a secret.
const SCHEMES: &[&str] = &["bearer", "basic"];

/// Words that are a secret's name, where a value is assigned to them.
const LABELS: &[&str] =
    &["api_key", "api-key", "apikey", "x-api-key", "token", "access_token", "password", "secret", "key"];

/// Folders under which a user's name stands.
const HOMES: &[&str] = &["/home/", "/Users/", "\\Users\\", "/users/"];

/// The words without secrets, and with `~` in place of home folders.
#[must_use]
pub fn redact(text: &str) -> Cow<'_, str> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut hide_next = false;
    while !rest.is_empty() {
        let word_end = rest.find(is_break).unwrap_or(rest.len());
        let (word, after) = rest.split_at(word_end);
        let gap_end = after.find(|c| !is_break(c)).unwrap_or(after.len());
        let (gap, tail) = after.split_at(gap_end);
        let hidden = (hide_next && word.len() >= 6) || is_secret(word);
        if hidden {
            out.push_str("[redacted]");
        } else {
            push_without_home(&mut out, word);
        }
        if !word.is_empty() {
            let scheme = SCHEMES.iter().any(|scheme| word.eq_ignore_ascii_case(scheme));
            let assigned = gap.contains(['=', ':']);
            hide_next = scheme || (assigned && LABELS.iter().any(|label| word.eq_ignore_ascii_case(label)));
        }
        out.push_str(gap);
        rest = tail;
    }
    if out == text { Cow::Borrowed(text) } else { Cow::Owned(out) }
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

/// Whether one of the words begins as well-known secrets do.
#[must_use]
pub(crate) fn starts_like_a_secret(text: &str) -> bool {
    text.split(is_break).any(starts_as_known)
}

fn starts_as_known(word: &str) -> bool {
    STARTS.iter().any(|start| word.starts_with(start) && word.len() >= start.len() + 4)
}

fn is_secret(word: &str) -> bool {
    let starts = starts_as_known(word);
    // A long run of letters and digits that no word and no path looks like.
    let random = word.len() >= 32
        && word.chars().all(|c| c.is_ascii_alphanumeric() || "_-.+/".contains(c))
        && word.chars().any(|c| c.is_ascii_digit())
        && word.chars().any(|c| c.is_ascii_uppercase())
        && !word.contains('/');
    // The account before an @ is a person; the host is not needed to act.
    let mail = word.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.'));
    starts || random || mail
}

fn push_without_home(out: &mut String, word: &str) {
    let home = HOMES.iter().filter_map(|home| word.find(home).map(|at| (at, *home))).min();
    let Some((at, home)) = home else {
        out.push_str(word);
        return;
    };
    let name = at + home.len();
    let name_end = word[name..].find(['/', '\\']).map_or(word.len(), |end| name + end);
    // A drive letter belongs to the home folder ("C:" stands before a break and stays).
    out.push_str(&word[..at]);
    out.push('~');
    out.push_str(&word[name_end..]);
}

#[cfg(test)]
mod tests {
    use super::redact;

    #[test]
    fn secrets_go() {
        for (text, shown) in [
            ("Authorization: Bearer sk-proj-abcdef12345", "Authorization: Bearer [redacted]"),
            ("key=qk-SECRET-777 refused", "key=[redacted] refused"),
            ("Bearer zzzzzzzzz", "Bearer [redacted]"),
            ("Incorrect API key provided: sk-abcd****wxyz.", "Incorrect API key provided: [redacted]"),
            ("token eyJhbGciOiJIUzI1NiJ9.e30.x", "token [redacted]"),
            ("mail jane.doe@example.com now", "mail [redacted] now"),
            ("id AbCd1234AbCd1234AbCd1234AbCd1234", "id [redacted]"),
        ] {
            assert_eq!(redact(text), shown);
        }
    }

    #[test]
    fn homes_become_a_tilde() {
        assert_eq!(redact("open /home/jane/.codex/auth.json failed"), "open ~/.codex/auth.json failed");
        assert_eq!(redact("/Users/jane"), "~");
        assert_eq!(redact(r"C:\Users\jane\codex"), r"C:~\codex");
    }

    #[test]
    fn plain_words_stay() {
        for text in [
            "Our servers are currently overloaded. Please try again later.",
            "Rate limit reached for gpt-5.6-sol on requests per min (RPM): Limit 3, Used 3, Requested 1.",
            "key",
            "",
            "服务繁忙，请稍后再试",
        ] {
            assert_eq!(redact(text), text);
        }
    }
}
