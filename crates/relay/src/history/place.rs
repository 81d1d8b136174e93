//! Whether the history's file can be written where it is to be. Only looked at: nothing is made or changed.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

use crate::words::{history as words, lang};

/// What is in the way of writing there; `None`: nothing that can be seen.
#[must_use]
pub fn in_the_way(file: &Path) -> Option<String> {
    match fs::metadata(file) {
        Ok(there) if !there.is_file() => Some(words::no_file(lang())),
        Ok(_) => OpenOptions::new().append(true).open(file).err().map(|error| error.to_string()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Some(error.to_string()),
        Err(_) => {
            // The folders that are missing are made in the first one that is there.
            let folder = file.ancestors().skip(1).find(|folder| folder.symlink_metadata().is_ok())?;
            let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            let at = |why: &str| format!("{}: {why}", folder.display());
            match fs::metadata(folder) {
                Ok(there) if !there.is_dir() => Some(at(&words::no_place(lang()))),
                Ok(_) => may_write(folder).err().map(|error| at(&error.to_string())),
                Err(error) => Some(at(&error.to_string())),
            }
        }
    }
}

#[cfg(unix)]
fn may_write(folder: &Path) -> io::Result<()> {
    use rustix::fs::{Access, access};
    Ok(access(folder, Access::WRITE_OK | Access::EXEC_OK)?)
}

/// Rights are told apart there only by trying.
#[cfg(not(unix))]
fn may_write(_folder: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::clock::drawn;

    struct Folder(PathBuf);

    impl Drop for Folder {
        fn drop(&mut self) {
            let _best_effort = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_is_in_the_way_is_seen_without_a_trace() {
        let folder = Folder(std::env::temp_dir().join(format!("steady-place-{}", drawn())));
        fs::create_dir_all(&folder.0).unwrap();
        let at = |name: &str| folder.0.join(name);
        assert_eq!(in_the_way(&at("a/b/history.sqlite")), None);
        assert!(!at("a").exists(), "nothing is made");
        fs::write(at("plain"), "").unwrap();
        assert_eq!(in_the_way(&at("plain")), None);
        assert_eq!(in_the_way(&folder.0).as_deref(), Some("this is no file"));
        // The system tells of a file in place of a folder, or else we do.
        assert!(in_the_way(&at("plain/history.sqlite")).is_some());
        assert!(in_the_way(&at("plain/a/history.sqlite")).is_some());
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_may_not_be_written_is_in_the_way() {
        let folder = Path::new("/proc");
        if folder.is_dir() {
            let said = in_the_way(&folder.join("steady/history.sqlite"));
            // Whoever may do everything may do that, as far as anybody can tell.
            assert!(rustix::process::geteuid().is_root() || said.is_some(), "{said:?}");
        }
    }
}
