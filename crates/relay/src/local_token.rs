//! The token of whoever may change something at a relay on this machine: whoever can read a private file of its user. A
//! web page cannot.

use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::Path;

use ring::rand::{SecureRandom as _, SystemRandom};

use crate::private;

/// The file, in the state folder. It is made once and kept: every relay of this user takes the same token.
const NAME: &str = "token";
/// So many digits make a token, and no file of another length holds one.
const DIGITS: usize = 32;

/// The token of this folder, made if there is none. `None`: it can neither be read nor made, so nobody has one.
#[must_use]
pub(crate) fn local_token(folder: Option<&Path>) -> Option<String> {
    let folder = folder?;
    let path = folder.join(NAME);
    let write = match look(&path) {
        Found::Token(token) => return Some(token),
        Found::Other => return None,
        Found::Nothing => private::put,
        Found::Torn => private::replace,
    };
    let made = made()?;
    private::folder(folder).and_then(|()| write(&path, made.as_bytes())).ok()?;
    // Another relay may have been faster.
    match look(&path) {
        Found::Token(token) => Some(token),
        Found::Nothing | Found::Torn | Found::Other => None,
    }
}

/// The token of this folder, if there is one. Nothing is written.
#[must_use]
pub(crate) fn known(folder: &Path) -> Option<String> {
    match look(&folder.join(NAME)) {
        Found::Token(token) => Some(token),
        Found::Nothing | Found::Torn | Found::Other => None,
    }
}

/// What is where the file should be.
enum Found {
    Token(String),
    Nothing,
    /// A file that was not written to its end.
    Torn,
    /// What somebody else put there, or what cannot be read.
    Other,
}

fn look(path: &Path) -> Found {
    // A line's end may follow.
    let bytes = match private::read(path, DIGITS as u64 + 2) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Found::Nothing,
        Err(_) => return Found::Other,
    };
    let token = bytes.trim_ascii_end();
    // Of a file that was not written through before the machine stopped, some systems keep the length alone.
    let digits = token.iter().position(|byte| *byte == 0).map_or(token, |end| &token[..end]);
    let rest = &token[digits.len()..];
    let is_part = digits.iter().all(u8::is_ascii_hexdigit) && rest.iter().all(|byte| *byte == 0);
    match std::str::from_utf8(token) {
        Ok(token) if is_part && digits.len() == DIGITS && rest.is_empty() => Found::Token(token.to_owned()),
        _ if is_part && digits.len() < DIGITS => Found::Torn,
        Ok(_) | Err(_) => Found::Other,
    }
}

fn made() -> Option<String> {
    let mut bytes = [0; DIGITS / 2];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a text cannot fail.
        let _always = write!(text, "{byte:02x}");
        text
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("steady-relay-token-{}-{name}", std::process::id()));
        let _gone = std::fs::remove_dir_all(&folder);
        folder
    }

    #[test]
    fn a_token_is_made_once_and_private() {
        let folder = folder("made");
        let token = local_token(Some(&folder)).unwrap();
        assert_eq!((token.len(), local_token(Some(&folder)).as_deref()), (DIGITS, Some(token.as_str())));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&folder), mode(&folder.join(NAME))), (0o700, 0o600));
        }
        std::fs::write(folder.join(NAME), format!("{token}\n")).unwrap();
        assert_eq!(local_token(Some(&folder)), Some(token));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_torn_file_is_replaced() {
        let folder = folder("torn");
        std::fs::create_dir_all(&folder).unwrap();
        for text in ["", "\n", "0123abcd", &"0".repeat(DIGITS - 1), &"\0".repeat(DIGITS), "01\0\0"] {
            std::fs::write(folder.join(NAME), text).unwrap();
            let token = local_token(Some(&folder)).unwrap();
            assert_eq!(std::fs::read_to_string(folder.join(NAME)).unwrap(), token, "{text:?}");
            assert_eq!(token.len(), DIGITS);
        }
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "nothing else is left behind");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn relays_that_begin_at_the_same_time_have_the_same_token() {
        let folder = folder("together");
        let tokens: Vec<_> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(|| local_token(Some(&folder)))).collect();
            all.into_iter().map(|it| it.join().unwrap().unwrap()).collect()
        });
        assert!(tokens.iter().all(|token| *token == tokens[0]), "{tokens:?}");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn one_that_was_open_to_others_is_closed() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = folder("open");
        let token = local_token(Some(&folder));
        let path = folder.join(NAME);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(local_token(Some(&folder)), token);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_is_no_token_is_none_and_stays() {
        let folder = folder("odd");
        std::fs::create_dir_all(&folder).unwrap();
        for text in ["short", &"x".repeat(DIGITS), &"0".repeat(DIGITS + 1), &"0".repeat(99)] {
            std::fs::write(folder.join(NAME), text).unwrap();
            assert_eq!(local_token(Some(&folder)), None, "{text:?}");
            assert_eq!(std::fs::read_to_string(folder.join(NAME)).unwrap(), text);
        }
        std::fs::remove_file(folder.join(NAME)).unwrap();
        std::fs::create_dir(folder.join(NAME)).unwrap();
        assert_eq!((local_token(Some(&folder)), local_token(None)), (None, None));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
