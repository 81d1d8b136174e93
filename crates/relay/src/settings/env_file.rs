//! Env files: `KEY=VALUE` lines as other tools write them, and as editors on Windows save them.
//! Not what a variable means (that is `layers`).
//!
//! Read by ourselves: the crate dotenvy replaces `$NAME` in values by the process environment, which cannot be
//! turned off and would change keys that hold a `$`, and its errors repeat the line, which may hold a secret.

use super::errors::{Findings, Place};
use super::{Env, Flags, ReadFile, file, layers};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// An env file that was read.
#[derive(Debug, Default)]
pub(super) struct EnvFile {
    pub(super) path: PathBuf,
    variables: BTreeMap<String, Variable>,
}

#[derive(Debug, PartialEq, Eq)]
struct Variable {
    value: String,
    line: usize,
}

/// The place of a variable in an env file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EnvPlace {
    pub(super) path: PathBuf,
    pub(super) line: usize,
    /// Empty where the line has no name that can be read.
    pub(super) name: String,
}

impl EnvFile {
    /// The variable, if it is set to something, and where.
    pub(super) fn get(&self, name: &str) -> Option<(&str, EnvPlace)> {
        let variable = self.variables.get(name).filter(|variable| !variable.value.is_empty())?;
        let place = EnvPlace { path: self.path.clone(), line: variable.line, name: name.to_owned() };
        Some((variable.value.as_str(), place))
    }

    /// The names of all variables, with their places.
    pub(super) fn names(&self) -> impl Iterator<Item = (&str, EnvPlace)> {
        self.variables.iter().map(|(name, variable)| {
            (name.as_str(), EnvPlace { path: self.path.clone(), line: variable.line, name: name.clone() })
        })
    }
}

/// Where the env file of the user's configuration folder is; `None` where the environment does not tell.
pub(super) fn usual_path(env: Env<'_>) -> Option<PathBuf> {
    file::usual_path(env, file::System::THIS).map(|path| path.with_file_name("env"))
}

/// Where env files are looked for: the one that is named, then the one in the user's folder. A `.env` in the
/// working directory is never one of them by itself: whoever wrote a repository could send your keys elsewhere.
pub(super) fn paths(flags: &Flags, env: Env<'_>) -> (Option<PathBuf>, Option<PathBuf>) {
    let from_env = || layers::present(env, "STEADY_RELAY_ENV_FILE").map(PathBuf::from);
    (flags.env_file.clone().or_else(from_env), usual_path(env))
}

/// Reads them, the stronger first. One that is named has to exist.
pub(super) fn open(flags: &Flags, env: Env<'_>, read: ReadFile<'_>, found: &mut Findings) -> Vec<EnvFile> {
    let (named, usual) = paths(flags, env);
    let mut files = Vec::new();
    for (path, is_named) in named.map(|path| (path, true)).into_iter().chain(usual.map(|path| (path, false)))
    {
        match read(&path) {
            Ok(bytes) => files.push(parse(path, &bytes, found)),
            Err(error) if error.kind() == ErrorKind::NotFound && !is_named => {}
            Err(error) => {
                let (what, hint) = file::unreadable(&error, "relay.env", "check the path");
                found.add(Place::WholeFile(path), what, hint);
            }
        }
    }
    files
}

fn parse(path: PathBuf, bytes: &[u8], found: &mut Findings) -> EnvFile {
    let mut variables = BTreeMap::new();
    let text = match decode(bytes) {
        Ok(text) => text,
        Err(what) => {
            found.add(Place::WholeFile(path.clone()), what, "save it as UTF-8, or as UTF-16 with its mark");
            String::new()
        }
    };
    for (line, content) in text.lines().enumerate().map(|(n, content)| (n + 1, content)) {
        match entry(content) {
            Ok(None) => {}
            // As in a shell, the last one holds.
            Ok(Some((name, value))) => {
                variables.insert(name.to_owned(), Variable { value, line });
            }
            Err(Slip { what, hint }) => found.add(at(&path, line, ""), what, hint),
        }
    }
    EnvFile { path, variables }
}

fn at(path: &Path, line: usize, name: &str) -> Place {
    Place::EnvFile(EnvPlace { path: path.to_owned(), line, name: name.to_owned() })
}

/// The text of a file that begins with the mark of its encoding, or is UTF-8.
fn decode(bytes: &[u8]) -> Result<String, &'static str> {
    let utf16 = |bytes: &[u8], read: fn([u8; 2]) -> u16| {
        let (pairs, rest) = bytes.as_chunks::<2>();
        let units = pairs.iter().map(|pair| read(*pair));
        let text: Result<String, _> = char::decode_utf16(units).collect();
        text.ok().filter(|_| rest.is_empty()).ok_or("the file begins like UTF-16 and is none")
    };
    match bytes {
        [0xef, 0xbb, 0xbf, rest @ ..] => utf8(rest),
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        _ => utf8(bytes),
    }
}

fn utf8(bytes: &[u8]) -> Result<String, &'static str> {
    match std::str::from_utf8(bytes) {
        // UTF-16 without its mark is valid UTF-8 that is half zeros.
        Ok(text) if !text.contains('\0') => Ok(text.to_owned()),
        Ok(_) | Err(_) => Err("the file is not UTF-8 text"),
    }
}

/// What is wrong with a line. Never its content: that may be a secret.
#[derive(Debug, PartialEq, Eq)]
struct Slip {
    what: &'static str,
    hint: &'static str,
}

const NOT_CLOSED: Slip = Slip { what: "the quote is not closed", hint: "a value ends on its own line" };

/// The name and value of one line; `None` where it is blank or a comment.
fn entry(line: &str) -> Result<Option<(&str, String)>, Slip> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let exported = line.strip_prefix("export").filter(|rest| rest.starts_with([' ', '\t']));
    let line = exported.unwrap_or(line);
    let Some((name, value)) = line.split_once('=') else {
        return Err(Slip { what: "this line has no `=`", hint: "write NAME=value, and # before a comment" });
    };
    let name = name.trim();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    if name.is_empty() || !name.chars().all(is_name) || name.starts_with(|c: char| c.is_ascii_digit()) {
        let hint = "a name has letters, digits and underscores, and does not begin with a digit";
        return Err(Slip { what: "what stands before the `=` is no name", hint });
    }
    Ok(Some((name, value_of(value.trim())?)))
}

fn value_of(text: &str) -> Result<String, Slip> {
    if let Some(inner) = text.strip_prefix('\'') {
        let (value, after) = inner.split_once('\'').ok_or(NOT_CLOSED)?;
        return ends(after).map(|()| value.to_owned());
    }
    let Some(inner) = text.strip_prefix('"') else {
        let comment = text.char_indices().find(|(n, c)| {
            *c == '#'
                && text.get(..*n).is_some_and(|before| before.is_empty() || before.ends_with([' ', '\t']))
        });
        let value = comment.and_then(|(n, _)| text.get(..n)).unwrap_or(text);
        return Ok(value.trim_end().to_owned());
    };
    let mut value = String::new();
    let mut rest = inner.chars();
    loop {
        match rest.next() {
            None => return Err(NOT_CLOSED),
            Some('"') => return ends(rest.as_str()).map(|()| value),
            Some('\\') => value.push(match rest.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some(same @ ('\\' | '"' | '\'' | '$' | ' ')) => same,
                Some(_) | None => {
                    let hint = "put what holds a \\ into single quotes, such as 'C:\\ca.pem'";
                    return Err(Slip { what: "unknown escape in double quotes", hint });
                }
            }),
            Some(c) => value.push(c),
        }
    }
}

/// Behind a closing quote only a comment may follow.
fn ends(after: &str) -> Result<(), Slip> {
    let rest = after.trim_start();
    if rest.is_empty() || (rest.starts_with('#') && rest.len() < after.len()) {
        return Ok(());
    }
    Err(Slip { what: "something follows the closing quote", hint: "quote the whole value, or nothing of it" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(bytes: &[u8]) -> (Vec<(String, String)>, usize) {
        let mut found = Findings::default();
        let file = parse("x.env".into(), bytes, &mut found);
        let pairs = file.variables.into_iter().map(|(name, variable)| (name, variable.value)).collect();
        let errors = found.into_error(Path::new(""), "").map_or(0, |error| error.issues.len());
        (pairs, errors)
    }

    #[test]
    fn a_line_is_read_as_other_tools_write_it() {
        for (line, value) in [
            ("A=1", "1"),
            ("  A = 1  ", "1"),
            ("export A=1", "1"),
            ("export\tA=1", "1"),
            ("A=", ""),
            ("A= # nothing", ""),
            ("A=#x", ""),
            ("A=a#b", "a#b"),
            ("A=a # b", "a"),
            ("A=a b\tc", "a b\tc"),
            ("A=$HOME\\n", "$HOME\\n"),
            ("A='$HOME \\n \"x\" # y'", "$HOME \\n \"x\" # y"),
            ("A='a' # b", "a"),
            (r#"A="a\tb\n\"c\" \\ \$d # e""#, "a\tb\n\"c\" \\ $d # e"),
            ("A=\"\"", ""),
            ("A=it's", "it's"),
        ] {
            assert_eq!(entry(line), Ok(Some(("A", value.to_owned()))), "{line}");
        }
        for line in ["", "   ", "# A=1", "\t# x"] {
            assert_eq!(entry(line), Ok(None), "{line}");
        }
        assert_eq!(entry("export=1").map(|pair| pair.map(|(name, _)| name)), Ok(Some("export")));
    }

    #[test]
    fn a_slip_is_told_without_the_line() {
        for line in ["hunter2", "A B=hunter2", "=hunter2", "9A=hunter2", "A='hunter2", "A=\"hunter2\\"] {
            assert!(!format!("{:?}", entry(line).unwrap_err()).contains("hunter2"), "{line}");
        }
        for line in ["A='a'b", "A=\"a\" b", "A=\"\\q\"", "A='a'#b"] {
            assert!(entry(line).is_err(), "{line}");
        }
    }

    #[test]
    fn the_marks_and_line_ends_of_windows_are_understood() {
        let text = "A=1\r\n\r\nB='\u{e9}'\r\n";
        let wide = |bytes: fn(u16) -> [u8; 2]| {
            format!("\u{feff}{text}").encode_utf16().flat_map(bytes).collect::<Vec<u8>>()
        };
        let expected = vec![("A".to_owned(), "1".to_owned()), ("B".to_owned(), "\u{e9}".to_owned())];
        for bytes in [
            text.as_bytes().to_vec(),
            format!("\u{feff}{text}").into_bytes(),
            wide(u16::to_le_bytes),
            wide(u16::to_be_bytes),
        ] {
            assert_eq!(read(&bytes), (expected.clone(), 0));
        }
        let no_mark: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        for bytes in [&no_mark[..], b"\xff\xfeA", b"\xff\xfe\x00\xd8", b"A=\xe9"] {
            assert_eq!(read(bytes), (vec![], 1));
        }
    }

    #[test]
    fn the_last_of_one_name_holds() {
        assert_eq!(read(b"A=1\nA=2\noops\nA='\n"), (vec![("A".to_owned(), "2".to_owned())], 2));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn what_is_quoted_is_read_as_the_same(value in "[^'\r\n]{0,20}") {
            let line = format!("A='{value}'");
            prop_assert_eq!(entry(&line), Ok(Some(("A", value.clone()))));
            let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
            let line = format!("A=\"{escaped}\"");
            prop_assert_eq!(entry(&line), Ok(Some(("A", value))));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            read(&bytes);
        }
    }
}
