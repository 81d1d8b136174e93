//! The token of whoever may change something at a relay on this machine: whoever can read a private file of its user. A
//! web page cannot.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Write as _};
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
    match read(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        read => return read.ok(),
    }
    let made = made()?;
    let write = || -> io::Result<()> {
        private::folder(folder)?;
        let mut file = private::options().write(true).create_new(true).open(&path)?;
        file.write_all(made.as_bytes())?;
        file.sync_all()
    };
    match write() {
        Ok(()) => Some(made),
        // Another relay was faster.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => read(&path).ok(),
        Err(_) => None,
    }
}

fn read(path: &Path) -> io::Result<String> {
    let kind = std::fs::metadata(path)?.file_type();
    if !kind.is_file() {
        return Err(ErrorKind::InvalidData.into());
    }
    let mut text = String::new();
    // A line's end may follow.
    File::open(path)?.take(DIGITS as u64 + 2).read_to_string(&mut text)?;
    let token = text.trim_end();
    let is_one = token.len() == DIGITS && token.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_one { Ok(token.to_owned()) } else { Err(ErrorKind::InvalidData.into()) }
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
    fn what_is_no_token_is_none_and_stays() {
        let folder = folder("odd");
        std::fs::create_dir_all(&folder).unwrap();
        for text in ["", "short", &"x".repeat(DIGITS), &"0".repeat(DIGITS + 1)] {
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
