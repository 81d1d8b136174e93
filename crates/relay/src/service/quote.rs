//! How one word is written for each who reads a command line: systemd, a POSIX shell, a program on Windows.

/// A word in a unit: `%` and `$` mean something there, too.
pub(super) fn for_systemd(word: &str) -> String {
    program_for_systemd(word).replace('$', "$$")
}

/// The program of a command line in a unit, in which nothing is filled in but specifiers.
pub(super) fn program_for_systemd(word: &str) -> String {
    format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%"))
}

/// A word in a script.
pub(super) fn for_shell(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// A word in a command line of Windows, by the rules of its C runtime: backslashes count double before a quote.
pub(super) fn for_windows(word: &str) -> String {
    let mut quoted = String::from("\"");
    let mut slashes = 0;
    for sign in word.chars() {
        if sign == '"' {
            quoted.extend(std::iter::repeat_n('\\', slashes + 1));
        }
        slashes = if sign == '\\' { slashes + 1 } else { 0 };
        quoted.push(sign);
    }
    quoted.extend(std::iter::repeat_n('\\', slashes));
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_their_reader() {
        assert_eq!(for_systemd(r#"a %i $b "c" \d"#), r#""a %%i $$b \"c\" \\d""#);
        assert_eq!(program_for_systemd("/a $b/%c"), r#""/a $b/%%c""#);
        assert_eq!(for_shell("it's"), r"'it'\''s'");
        assert_eq!(for_windows(r#"C:\a b\"#), r#""C:\a b\\""#);
        assert_eq!(for_windows(r#"a\"b"#), r#""a\\\"b""#);
    }

    #[cfg(unix)]
    #[test]
    fn a_shell_reads_back_what_was_quoted() {
        for word in ["it's", "$HOME `x` \"y\" \\ *", "", "a\tb"] {
            let script = format!("printf %s {}", for_shell(word));
            let read = std::process::Command::new("/bin/sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&read.stdout), word);
        }
    }
}
