//! Files and folders that only their owner can read. Where a system knows no modes, as they come.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use crate::clock::drawn;

/// Makes this folder, and what is missing above it. One that is there stays as it is.
pub(crate) fn folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// A file that is made with these options is private from its beginning.
pub(crate) fn options() -> OpenOptions {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "only modes change it"))]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Takes a file that is there from all but its owner.
pub(crate) fn close(file: &File) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        if file.metadata()?.permissions().mode() & 0o077 != 0 {
            file.set_permissions(fs::Permissions::from_mode(0o600))?;
        }
    }
    #[cfg(not(unix))]
    let _no_modes = file;
    Ok(())
}

/// The same, unless a link leads to it: that has the mode which somebody gave it, and may be others' business.
pub(crate) fn close_own(path: &Path, file: &File) -> io::Result<()> {
    if fs::symlink_metadata(path)?.is_symlink() { Ok(()) } else { close(file) }
}

/// What tells one file from another.
#[cfg(unix)]
pub(crate) type Identity = (u64, u64);
/// Nothing tells one file from another, so only one that is gone is noticed.
#[cfg(not(unix))]
pub(crate) type Identity = ();

#[cfg(unix)]
pub(crate) fn identity(found: &fs::Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt as _;
    (found.dev(), found.ino())
}

#[cfg(not(unix))]
pub(crate) const fn identity(_found: &fs::Metadata) -> Identity {}

/// Reads a file, and closes it to others. What is no file, or holds more than `most` bytes, is an error.
pub(crate) fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let (file, bytes) = opened(path, most)?;
    // One that came from elsewhere may be open to others. Whose it is who may not change that can still be read.
    let _best_effort = close(&file);
    Ok(bytes)
}

/// The same with a file that is no secret: its mode stays.
pub(crate) fn read_open(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    opened(path, most).map(|(_, bytes)| bytes)
}

fn opened(path: &Path, most: u64) -> io::Result<(File, Vec<u8>)> {
    // Asked before it is opened: opening a pipe would wait for its writer.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("this is no file"));
    }
    let file = File::open(path)?;
    let mut bytes = Vec::new();
    (&file).take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(ErrorKind::FileTooLarge.into()) } else { Ok((file, bytes)) }
}

/// Puts a file there whole, in place of what is there.
pub(crate) fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let fresh = beside(path, text)?;
    fs::rename(&fresh, path).inspect_err(|_| discard(&fresh))
}

/// The same where there is none yet. One that another put there meanwhile stays.
pub(crate) fn put(path: &Path, text: &[u8]) -> io::Result<()> {
    let fresh = beside(path, text)?;
    match fs::hard_link(&fresh, path) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        // Not every file system has links.
        Err(_) => return fs::rename(&fresh, path).inspect_err(|_| discard(&fresh)),
    }
    discard(&fresh);
    Ok(())
}

/// A file with this text in the same folder, written through to the disk.
fn beside(path: &Path, text: &[u8]) -> io::Result<PathBuf> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{:016x}", drawn()));
    let fresh = path.with_file_name(name);
    let written = options().write(true).create_new(true).open(&fresh).and_then(|mut file| {
        file.write_all(text)?;
        file.sync_all()
    });
    written.inspect_err(|_| discard(&fresh))?;
    Ok(fresh)
}

/// What cannot be deleted harms nobody.
fn discard(file: &Path) {
    let _harmless = fs::remove_file(file);
}
