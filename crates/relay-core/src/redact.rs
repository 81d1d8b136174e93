//! Takes secrets and private paths out of words that the relay shows: an upstream may echo a key, and an error
//! of the operating system may name a home folder.

use std::borrow::Cow;

/// Starts of well-known secrets; what follows them up to a break is hidden.
const STARTS: &[&str] =
    &["sk-", "sk_", "pk-", "rk-", "eyJ", "AIza", "ghp_", "gho_", "github_pat_", "xai-", "gsk_", "hf_"];

/// Schemes of `Authorization`: the next word is a secret.
const SCHEMES: &[&str] = &["bearer", "basic"];

/// Ends of the names of secrets (`x-api-key`, `OPENAI_API_KEY`), where a value is assigned to them.
const LABELS: &[&str] = &["key", "apikey", "token", "password", "secret"];

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
        // Punctuation alone, as the backslash before an escaped quote, says nothing; and once hidden is hidden.
        let bare = word.trim_end_matches(|c: char| !c.is_alphanumeric());
        let hidden = (hide_next && bare.len() >= 6 && bare != "redacted") || is_secret(word);
        if hidden {
            out.push_str("[redacted]");
        } else {
            push_without_home(&mut out, word);
        }
        if !bare.is_empty() {
            let assigned = gap.contains(['=', ':']);
            hide_next = is_name(bare, SCHEMES) || (assigned && is_name(bare, LABELS));
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
    let mail = word.match_indices('@').any(|(at, _)| at > 0 && word[at..].contains('.'));
    starts || random || mail
}

fn push_without_home(out: &mut String, mut word: &str) {
    let next = |word: &str| HOMES.iter().filter_map(|home| Some((word.find(home)?, home.len()))).min();
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

    #[test]
    fn plain_words_stay() {
        for text in [
            "Our servers are currently overloaded. Please try again later.",
            "Rate limit reached for gpt-5.6-sol on requests per min (RPM): Limit 3, Used 3, Requested 1.",
            "key",
            "the task-force asks: is a desk-top monkey=bananas",
            "",
            "服务繁忙，请稍后再试",
        ] {
            assert_eq!(redact(text), text);
        }
    }
}
