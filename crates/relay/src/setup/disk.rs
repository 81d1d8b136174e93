//! What `setup` and `undo` do to files, one step at a time. A trait, so that a test can stop after any of them.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use crate::files::Files;
use crate::private;

/// Steps on files. Each is done wholly or not at all, except for [`Disk::write`], which makes a file that nobody reads
/// before it is renamed.
pub trait Disk {
    /// The bytes of a file, within a limit.
    ///
    /// # Errors
    /// Where it cannot be read, is too large or is no file.
    fn read(&mut self, path: &Path) -> io::Result<Vec<u8>>;

    /// The file that this path leads to, links followed; itself where there is nothing.
    ///
    /// # Errors
    /// Where a link leads nowhere, and where the file may not be written.
    fn target(&mut self, path: &Path) -> io::Result<PathBuf>;

    /// Writes a file and sees it through to the disk; with the mode of `like`, or else private.
    ///
    /// # Errors
    /// Where the system refuses.
    fn write(&mut self, path: &Path, bytes: &[u8], like: Option<&Path>) -> io::Result<()>;

    /// Renames, over what is there.
    ///
    /// # Errors
    /// Where the system refuses.
    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()>;

    /// Deletes a file.
    ///
    /// # Errors
    /// Where the system refuses.
    fn remove(&mut self, path: &Path) -> io::Result<()>;

    /// Makes a folder that only its owner can look into.
    ///
    /// # Errors
    /// Where the system refuses.
    fn make_folder(&mut self, path: &Path) -> io::Result<()>;

    /// Deletes a folder that is empty.
    ///
    /// # Errors
    /// Where the system refuses, and where something is in it.
    fn remove_folder(&mut self, path: &Path) -> io::Result<()>;
}

/// The machine's own.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn read(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        Files::anew().read(path)
    }

    fn target(&mut self, path: &Path) -> io::Result<PathBuf> {
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(path.to_owned()),
            Err(error) => return Err(error),
            Ok(_) => {}
        }
        let target = fs::canonicalize(path).map_err(|error| match error.kind() == ErrorKind::NotFound {
            true => io::Error::other("this is a link to a file that does not exist"),
            false => error,
        })?;
        // Whoever took the right to write away wants the file as it is, though a rename would not mind.
        match fs::metadata(&target)?.permissions().readonly() {
            true => Err(ErrorKind::PermissionDenied.into()),
            false => Ok(target),
        }
    }

    fn write(&mut self, path: &Path, bytes: &[u8], like: Option<&Path>) -> io::Result<()> {
        let mut file = private::options().write(true).create(true).truncate(true).open(path)?;
        if let Some(like) = like {
            take_after(&file, path, &fs::metadata(like)?)?;
        }
        file.write_all(bytes)?;
        file.sync_all()
    }

    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)?;
        sync_folder(to)
    }

    fn remove(&mut self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn make_folder(&mut self, path: &Path) -> io::Result<()> {
        private::folder(path)
    }

    fn remove_folder(&mut self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }
}

/// The file by whose lock two of us do not write at once, and the state folder that it is in.
///
/// # Errors
/// Where the system refuses.
pub fn lock_file(folder: &Path) -> io::Result<File> {
    private::folder(folder)?;
    private::options().create(true).append(true).open(folder.join("setup.lock"))
}

/// Gives a file the owner and the mode of another, where they differ: some file systems refuse any change.
fn take_after(file: &File, path: &Path, like: &fs::Metadata) -> io::Result<()> {
    let own = file.metadata()?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        if (own.uid(), own.gid()) != (like.uid(), like.gid()) {
            std::os::unix::fs::chown(path, Some(like.uid()), Some(like.gid()))?;
        }
    }
    #[cfg(not(unix))]
    let _no_owners = path;
    if own.permissions() == like.permissions() { Ok(()) } else { file.set_permissions(like.permissions()) }
}

/// Sees the new name in this file's folder through to the disk, where a folder can be opened for that.
fn sync_folder(file: &Path) -> io::Result<()> {
    if cfg!(unix)
        && let Some(folder) = file.parent()
    {
        // Some file systems know no such thing, and the name is there all the same.
        let _best_effort = File::open(folder).and_then(|folder| folder.sync_all());
    }
    Ok(())
}

/// The name under which a file is written before it takes its place. Always the same: what a program that was stopped
/// left behind is written over, or taken away.
fn fresh(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".steady-relay-new");
    path.with_file_name(name)
}

/// Takes away what a program that was stopped left beside this file.
pub(super) fn clear(disk: &mut dyn Disk, path: &Path) {
    let target = disk.target(path).unwrap_or_else(|_| path.to_owned());
    let _seldom_there = disk.remove(&fresh(&target));
}

/// Puts a file there whole, in place of what is there.
pub(super) fn replace(disk: &mut dyn Disk, path: &Path, bytes: &[u8], like: Option<&Path>) -> io::Result<()> {
    let fresh = fresh(path);
    let done = disk.write(&fresh, bytes, like).and_then(|()| disk.rename(&fresh, path));
    if done.is_err() {
        let _left_behind = disk.remove(&fresh);
    }
    done
}
