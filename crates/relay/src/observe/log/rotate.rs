//! A log file that never grows past its limit: `relay.log`, before it `relay.log.1`, before that `relay.log.2`.
//! Only its owner can read it. Where somebody moves or deletes it, it is begun again.
//!
//! Written by ourselves. Of the crates, file-rotate takes a file that cannot be opened for one that was written, and
//! asserts on names that others take away; logroller and rolling-file bring a calendar and need more lines around
//! them than this file has.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use relay_core::Moment;

use super::queue::Sink;
use crate::clock::Clock;
use crate::private;

/// How often it is looked whether the path still leads to the file that is written.
const LOOK: Duration = Duration::from_secs(2);

/// The file that is written now.
pub(super) struct Rotating {
    path: PathBuf,
    max_size: u64,
    max_files: u32,
    around: Around,
    /// `None` after a failure: the next line tries again.
    open: Option<Open>,
    looked: Moment,
    /// Whether it has been said that the file cannot be begun.
    complained: bool,
}

/// What a log file needs of its surroundings.
pub(super) struct Around {
    /// The time.
    pub(super) clock: Arc<dyn Clock>,
    /// Says something elsewhere than in this file.
    pub(super) say: Box<dyn Fn(String) + Send>,
}

#[derive(Debug)]
struct Open {
    file: File,
    size: u64,
    identity: private::Identity,
}

impl Rotating {
    /// Opens the file, or begins it; what is missing of its folders is made.
    ///
    /// # Errors
    /// Where it cannot be written, or is something else than a file: a device would be renamed like a file.
    pub(super) fn open(path: &Path, max_size: u64, max_files: u32, around: Around) -> io::Result<Self> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            private::folder(folder)?;
        }
        let open = Some(open(path)?);
        let looked = around.clock.now();
        Ok(Self { path: path.to_owned(), max_size, max_files, around, open, looked, complained: false })
    }

    /// Drops the file where the path does not lead to it any more: what is written into it would be lost.
    fn look(&mut self) {
        self.looked = self.around.clock.now();
        let found = fs::metadata(&self.path).ok().filter(fs::Metadata::is_file);
        match (&mut self.open, found) {
            // Others may have made it shorter.
            (Some(open), Some(found)) if open.identity == private::identity(&found) => {
                open.size = found.len()
            }
            (open, _) => *open = None,
        }
    }

    fn begin(&mut self) -> io::Result<()> {
        match open(&self.path) {
            Ok(open) => {
                self.open = Some(open);
                self.complained = false;
                Ok(())
            }
            Err(error) => {
                if !self.complained {
                    self.complained = true;
                    let path = self.path.display();
                    (self.around.say)(format!(
                        "the log file {path} cannot be written until that is mended: {error}"
                    ));
                }
                Err(error)
            }
        }
    }

    fn numbered(&self, number: u32) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }

    /// Moves every file one number on; those past the last are deleted.
    fn rotate(&mut self) -> io::Result<()> {
        // Some systems rename no file that is open.
        self.open = None;
        let mut past = self.max_files.saturating_sub(1);
        if past == 0 {
            fs::remove_file(&self.path)?;
        } else {
            for number in (1..past).rev() {
                existing(fs::rename(self.numbered(number), self.numbered(number + 1)))?;
            }
            fs::rename(&self.path, self.numbered(1))?;
        }
        // Left over from a time with more files.
        while existing(fs::remove_file(self.numbered(past + 1)))? {
            past += 1;
        }
        self.begin()
    }
}

impl Sink for Rotating {
    fn write(&mut self, line: &str) -> io::Result<()> {
        let bytes = [line.as_bytes(), b"\n"].concat();
        let length = bytes.len() as u64;
        let max_size = self.max_size;
        let is_full = |open: &Open| open.size > 0 && open.size + length > max_size;
        // Before it is moved, too: something else may be in its place.
        if self.open.as_ref().is_some_and(is_full) || self.around.clock.now().since(self.looked) >= LOOK {
            self.look();
        }
        if self.open.is_none() {
            self.begin()?;
        }
        if self.open.as_ref().is_some_and(is_full) {
            self.rotate()?;
        }
        let Some(open) = &mut self.open else { return Err(io::ErrorKind::NotFound.into()) };
        if let Err(error) = open.file.write_all(&bytes) {
            // Half a line is worse than none.
            let _best_effort = open.file.set_len(open.size);
            self.open = None;
            return Err(error);
        }
        open.size += length;
        Ok(())
    }
}

/// Whether there was something to move or delete.
fn existing(result: io::Result<()>) -> io::Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn open(path: &Path) -> io::Result<Open> {
    // Asked before it is opened: opening a pipe would wait for its reader.
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => return Err(io::Error::other("this is a folder")),
        Ok(found) if !found.is_file() => return Err(io::Error::other("this is no file")),
        Ok(_) | Err(_) => {}
    }
    let file = private::options().append(true).create(true).open(path)?;
    private::close_own(path, &file)?;
    let found = file.metadata()?;
    Ok(Open { size: found.len(), identity: private::identity(&found), file })
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::SystemTime;

    use super::*;

    /// A clock that is set by hand, in seconds.
    #[derive(Default)]
    struct ByHand(AtomicU64);

    impl Clock for ByHand {
        fn now(&self) -> Moment {
            Moment::after_start(Duration::from_secs(self.0.load(Ordering::Relaxed)))
        }

        fn wall(&self) -> SystemTime {
            SystemTime::UNIX_EPOCH
        }
    }

    fn rotating(path: &Path, max_size: u64, max_files: u32) -> io::Result<Rotating> {
        let around = Around { clock: Arc::new(ByHand::default()), say: Box::new(drop) };
        Rotating::open(path, max_size, max_files, around)
    }

    /// A folder of this test alone, deleted at its end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("steady-relay-{}-{name}", std::process::id()));
            let _not_there = fs::remove_dir_all(&path);
            Self(path)
        }

        fn log(&self) -> PathBuf {
            self.0.join("logs").join("relay.log")
        }

        fn files(&self) -> Vec<(String, String)> {
            let mut files: Vec<_> = fs::read_dir(self.0.join("logs"))
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .map(|path| {
                    let name = path.file_name().unwrap().to_string_lossy().into_owned();
                    (name, fs::read_to_string(path).unwrap())
                })
                .collect();
            files.sort();
            files
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _gone = fs::remove_dir_all(&self.0);
        }
    }

    fn names_and(texts: &[(&str, &str)]) -> Vec<(String, String)> {
        texts.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn files_are_bounded_in_size_and_number_over_restarts() {
        let folder = Folder::new("bounded");
        for line in ["one", "two", "three", "four", "five", "six"] {
            // 8 bytes hold one line of four and one of three.
            let mut log = rotating(&folder.log(), 8, 3).unwrap();
            log.write(line).unwrap();
        }
        let expected = [("relay.log", "six\n"), ("relay.log.1", "five\n"), ("relay.log.2", "four\n")];
        assert_eq!(folder.files(), names_and(&expected));
        let mut fewer = rotating(&folder.log(), 8, 2).unwrap();
        fewer.write("seven").unwrap();
        assert_eq!(folder.files(), names_and(&[("relay.log", "seven\n"), ("relay.log.1", "six\n")]));
        let mut one = rotating(&folder.log(), 8, 1).unwrap();
        one.write("eight").unwrap();
        assert_eq!(folder.files(), names_and(&[("relay.log", "eight\n")]));
        one.write("a line longer than a file").unwrap();
        assert_eq!(folder.files(), names_and(&[("relay.log", "a line longer than a file\n")]));
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_it_whoever_made_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = Folder::new("private");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        drop(rotating(&folder.log(), 100, 2).unwrap());
        assert_eq!((mode(&folder.log()), mode(folder.log().parent().unwrap())), (0o600, 0o700));
        fs::set_permissions(folder.log(), fs::Permissions::from_mode(0o644)).unwrap();
        drop(rotating(&folder.log(), 100, 2).unwrap());
        assert_eq!(mode(&folder.log()), 0o600);
    }

    #[test]
    fn what_is_no_file_is_refused() {
        let folder = Folder::new("no-file");
        fs::create_dir_all(folder.log()).unwrap();
        assert!(rotating(&folder.log(), 100, 2).is_err());
        if cfg!(unix) {
            assert_eq!(
                rotating(Path::new("/dev/null"), 100, 2).err().unwrap().to_string(),
                "this is no file"
            );
        }
    }

    #[test]
    fn a_file_that_is_gone_is_begun_again_after_the_failure() {
        let folder = Folder::new("gone");
        let mut log = rotating(&folder.log(), 8, 2).unwrap();
        log.write("one").unwrap();
        fs::remove_dir_all(folder.log().parent().unwrap()).unwrap();
        assert!(log.write("a longer line").is_err(), "there is nothing to rename");
        assert!(log.write("two").is_err(), "the folder is gone");
        fs::create_dir_all(folder.log().parent().unwrap()).unwrap();
        log.write("three").unwrap();
        assert_eq!(folder.files(), names_and(&[("relay.log", "three\n")]));
    }

    #[test]
    fn a_file_that_is_moved_or_replaced_is_begun_again_after_two_seconds_and_a_folder_is_told_of_once() {
        let folder = Folder::new("moved");
        let (clock, said) = (Arc::new(ByHand::default()), Arc::new(Mutex::new(Vec::new())));
        let heard = Arc::clone(&said);
        let say = Box::new(move |words| heard.lock().unwrap().push(words));
        let around = Around { clock: clock.clone(), say };
        let mut log = Rotating::open(&folder.log(), 100, 2, around).unwrap();
        let later = || clock.0.fetch_add(2, Ordering::Relaxed);
        let moved = folder.log().with_file_name("moved");
        log.write("one").unwrap();
        if cfg!(windows) {
            return;
        }
        fs::rename(folder.log(), &moved).unwrap();
        log.write("two").unwrap();
        later();
        log.write("three").unwrap();
        assert_eq!(folder.files(), names_and(&[("moved", "one\ntwo\n"), ("relay.log", "three\n")]));
        // Another one is in its place, and has a length of its own.
        fs::rename(&moved, folder.log()).unwrap();
        later();
        log.write(&"4".repeat(91)).unwrap();
        let four = format!("one\ntwo\n{}\n", "4".repeat(91));
        assert_eq!(folder.files(), names_and(&[("relay.log", &four)]));
        fs::remove_file(folder.log()).unwrap();
        fs::create_dir(folder.log()).unwrap();
        for _ in 0..3 {
            later();
            assert!(log.write("lost").is_err());
        }
        assert!(folder.log().is_dir() && !folder.log().with_file_name("relay.log.1").exists());
        let words = format!(
            "the log file {} cannot be written until that is mended: this is a folder",
            folder.log().display()
        );
        assert_eq!(*said.lock().unwrap(), [words]);
        fs::remove_dir(folder.log()).unwrap();
        log.write("five").unwrap();
        assert_eq!(folder.files(), names_and(&[("relay.log", "five\n")]));
    }
}
