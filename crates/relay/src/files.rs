//! How a file of settings is read: never more than 1 MiB of it, and from a pipe or a device only where somebody names
//! it at the start. A relay that runs must wait for nothing and take on nothing without an end.
//! Not where the files are, nor what they mean (that is [`crate::settings`]).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

/// The longest file that is read.
const LONGEST: u64 = 1 << 20;
/// What people name who want no file at all.
const NOTHING: &str = if cfg!(windows) { "NUL" } else { "/dev/null" };

/// One reading of all the files.
#[derive(Debug, Default)]
pub struct Files {
    /// What may be a pipe.
    named: Vec<PathBuf>,
    read: RefCell<BTreeMap<PathBuf, Found>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Found {
    /// It is not there, or it is empty.
    Nothing,
    Something,
    /// A pipe gives its bytes once, and they are asked for more than once.
    Piped(Vec<u8>),
}

impl Files {
    /// As a relay reads them that starts: what is named here may be a pipe.
    #[must_use]
    pub fn at_start(named: Vec<PathBuf>) -> Self {
        Self { named, ..Self::default() }
    }

    /// As a relay reads them that runs: files alone.
    #[must_use]
    pub fn anew() -> Self {
        Self::default()
    }

    /// The bytes of one of them.
    ///
    /// # Errors
    /// Where it cannot be read, is too large (`FileTooLarge`) or is no file (`Unsupported`).
    pub fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut read = self.read.borrow_mut();
        if let Some(Found::Piped(bytes)) = read.get(path) {
            return Ok(bytes.clone());
        }
        if path == Path::new(NOTHING) {
            return Ok(Vec::new());
        }
        let is_named = self.named.iter().any(|named| named == path);
        let found = match bytes_of(path, is_named) {
            Ok((bytes, true)) => Ok((bytes.clone(), Found::Piped(bytes))),
            Ok((bytes, false)) if bytes.trim_ascii().is_empty() => Ok((bytes, Found::Nothing)),
            Ok((bytes, false)) => Ok((bytes, Found::Something)),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                read.insert(path.to_owned(), Found::Nothing);
                return Err(error);
            }
            Err(error) => Err(error),
        };
        let (bytes, what) = found?;
        read.insert(path.to_owned(), what);
        Ok(bytes)
    }

    /// Whether a file that had something in it before is now empty or gone. It may be in the middle of being replaced.
    #[must_use]
    pub fn lack_what_was(&self, before: &Self) -> bool {
        let before = before.read.borrow();
        self.read.borrow().iter().any(|(path, found)| {
            *found == Found::Nothing && before.get(path).is_some_and(|before| *before == Found::Something)
        })
    }
}

/// The bytes, and whether they come from something that is no file.
fn bytes_of(path: &Path, may_be_pipe: bool) -> io::Result<(Vec<u8>, bool)> {
    // Asked before it is opened: opening a pipe would wait for its writer.
    let found = fs::metadata(path)?;
    regular(&found, may_be_pipe)?;
    let file = File::open(path)?;
    // Once more: it may have been replaced in between.
    let found = file.metadata()?;
    regular(&found, may_be_pipe)?;
    let mut bytes = Vec::new();
    if found.len() <= LONGEST {
        file.take(LONGEST + 1).read_to_end(&mut bytes)?;
    }
    if found.len() > LONGEST || bytes.len() as u64 > LONGEST {
        return Err(ErrorKind::FileTooLarge.into());
    }
    Ok((bytes, !found.is_file()))
}

fn regular(found: &fs::Metadata, may_be_pipe: bool) -> io::Result<()> {
    match (found.is_file(), found.is_dir()) {
        (true, _) => Ok(()),
        (_, true) => Err(ErrorKind::IsADirectory.into()),
        _ if may_be_pipe => Ok(()),
        _ => Err(ErrorKind::Unsupported.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of this test alone, deleted at its end.
    struct Temporary(PathBuf);

    impl Temporary {
        fn new(name: &str, bytes: &[u8]) -> Self {
            let path = std::env::temp_dir().join(format!("steady-relay-{}-files-{name}", std::process::id()));
            fs::write(&path, bytes).unwrap();
            Self(path)
        }
    }

    impl Drop for Temporary {
        fn drop(&mut self) {
            let _gone = fs::remove_file(&self.0);
        }
    }

    fn kind(read: io::Result<Vec<u8>>) -> Option<ErrorKind> {
        read.err().map(|error| error.kind())
    }

    #[test]
    fn a_file_of_1_mib_is_read_and_a_longer_one_is_not() {
        let file = Temporary::new("long", &vec![b'#'; 1 << 20]);
        assert_eq!(Files::anew().read(&file.0).unwrap().len(), 1 << 20);
        fs::write(&file.0, vec![b'#'; (1 << 20) + 1]).unwrap();
        let named = Files::at_start(vec![file.0.clone()]);
        assert_eq!(kind(named.read(&file.0)), Some(ErrorKind::FileTooLarge));
        assert_eq!(kind(Files::anew().read(&std::env::temp_dir())), Some(ErrorKind::IsADirectory));
        assert_eq!(kind(Files::anew().read(Path::new(NOTHING))), None);
    }

    #[cfg(unix)]
    #[test]
    fn what_never_ends_is_no_settings_file() {
        let zero = PathBuf::from("/dev/zero");
        assert_eq!(kind(Files::anew().read(&zero)), Some(ErrorKind::Unsupported));
        let named = Files::at_start(vec![zero.clone()]);
        assert_eq!(kind(named.read(&zero)), Some(ErrorKind::FileTooLarge));
    }

    #[test]
    fn a_file_that_had_something_and_has_nothing_is_missed() {
        let file = Temporary::new("missed", b"[relay]\n");
        let look = || {
            let files = Files::anew();
            let _bytes = files.read(&file.0);
            files
        };
        let before = look();
        assert!(!look().lack_what_was(&before));
        fs::write(&file.0, " \n").unwrap();
        let after = look();
        assert!(after.lack_what_was(&before));
        assert!(!look().lack_what_was(&after), "nothing was there before either");
        fs::remove_file(&file.0).unwrap();
        assert!(look().lack_what_was(&before));
    }
}
