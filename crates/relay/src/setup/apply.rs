//! Carrying a plan out: the journal first, then each file, whole or not at all.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use relay_core::Lang;

use super::disk::{Disk, replace};
use super::journal::{self, Journal, Unusable};
use super::machine::{Bad, Held, MARK, held};
use super::plan::{FileEdit, Plan};
use crate::words::setup as words;

/// Where the journal is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notebook {
    /// The state folder.
    folder: PathBuf,
}

/// Why the journal is of no use.
#[derive(Debug)]
pub enum NotebookError {
    /// What is in it.
    Unusable(PathBuf, Unusable),
    /// What the system said.
    System(PathBuf, io::Error),
}

impl NotebookError {
    /// For a person.
    #[must_use]
    pub fn said(&self, lang: Lang) -> String {
        match self {
            Self::Unusable(path, why) => {
                let path = path.display().to_string();
                match why {
                    Unusable::Broken => words::journal_broken(lang, &path),
                    Unusable::Newer => words::journal_newer(lang, &path),
                    Unusable::Full => words::journal_full(lang, &path),
                }
            }
            Self::System(path, error) => {
                words::journal_system(lang, &path.display().to_string(), &error.to_string())
            }
        }
    }
}

impl Notebook {
    /// In this state folder.
    #[must_use]
    pub fn in_folder(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    fn path(&self) -> PathBuf {
        self.folder.join(journal::NAME)
    }

    pub(super) fn read(&self, disk: &mut dyn Disk) -> Result<Journal, NotebookError> {
        let path = self.path();
        match disk.read(&path) {
            Ok(bytes) => Journal::read(&bytes).map_err(|why| NotebookError::Unusable(path, why)),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                Ok(Journal::default())
            }
            Err(error) => Err(NotebookError::System(path, error)),
        }
    }

    pub(super) fn write(&self, disk: &mut dyn Disk, journal: &Journal) -> Result<(), NotebookError> {
        let path = self.path();
        let bytes = journal.bytes().map_err(|why| NotebookError::Unusable(path.clone(), why))?;
        let written = disk.make_folder(&self.folder).and_then(|()| replace(disk, &path, &bytes, None));
        written.map_err(|error| NotebookError::System(path, error))
    }
}

/// A file that was not written, and why.
pub(super) type Failed = (PathBuf, String);

/// Writes all files of a plan. One that cannot be written is told, and what its client has after it is left as it is;
/// the files of other clients are written all the same.
///
/// # Errors
/// Where the journal cannot be written: then no file is touched any more.
pub(super) fn apply(
    lang: Lang,
    disk: &mut dyn Disk,
    notebook: &Notebook,
    plan: &Plan,
) -> Result<Vec<Failed>, NotebookError> {
    let mut failed = Vec::new();
    let mut given_up = None;
    for edit in &plan.files {
        if given_up == Some(edit.group) {
            failed.push((edit.file.clone(), words::needs_the_other(lang)));
            continue;
        }
        let mut journal = notebook.read(disk)?;
        if let Err(why) = unchanged(disk, edit) {
            failed.push((edit.file.clone(), why.said(lang)));
            given_up = Some(edit.group);
            if plan.first.as_ref() == Some(&edit.file) {
                break;
            }
            continue;
        }
        journal.put(&edit.entries);
        notebook.write(disk, &journal)?;
        if let Err(error) = write(disk, edit) {
            failed.push((edit.file.clone(), Bad::of(&error).said_of_writing(lang)));
            given_up = Some(edit.group);
            if plan.first.as_ref() == Some(&edit.file) {
                // What the relay does not know of, clients must not be sent to.
                break;
            }
        }
    }
    Ok(failed)
}

/// Why a file is not written.
enum Meanwhile {
    Changed,
    Cannot(io::Error),
}

impl Meanwhile {
    fn said(&self, lang: Lang) -> String {
        match self {
            Self::Changed => words::changed_meanwhile(lang),
            Self::Cannot(error) => Bad::of(error).said_of_writing(lang),
        }
    }
}

impl Bad {
    pub(super) fn said_of_writing(&self, lang: Lang) -> String {
        match self {
            Self::Denied => words::may_not_write(lang),
            Self::NoFile | Self::TooLarge | Self::Flaw(_) | Self::System(_) => self.said(lang),
        }
    }
}

/// Whether the file is still what the plan was made for.
fn unchanged(disk: &mut dyn Disk, edit: &FileEdit) -> Result<(), Meanwhile> {
    let target = disk.target(&edit.file).map_err(Meanwhile::Cannot)?;
    let now = match disk.read(&target) {
        Ok(bytes) => match held(&bytes) {
            Held::Text(text) => Some(text),
            Held::Nothing | Held::Bad(_) => return Err(Meanwhile::Changed),
        },
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => None,
        Err(error) => return Err(Meanwhile::Cannot(error)),
    };
    if now == edit.before { Ok(()) } else { Err(Meanwhile::Changed) }
}

fn write(disk: &mut dyn Disk, edit: &FileEdit) -> io::Result<()> {
    let target = disk.target(&edit.file)?;
    if edit.before.is_none() {
        for folder in edit.entries.iter().flat_map(|entry| &entry.made_folders) {
            disk.make_folder(folder)?;
        }
    }
    put_text(disk, &target, &edit.after)
}

/// Writes a text in place of another, with the mark in front that was there, and its mode.
pub(super) fn put_text(disk: &mut dyn Disk, target: &Path, text: &str) -> io::Result<()> {
    let (mark, like) = match disk.read(target) {
        Ok(bytes) if bytes.starts_with(MARK.as_bytes()) => (MARK, Some(target)),
        Ok(_) => ("", Some(target)),
        Err(error) if error.kind() == ErrorKind::NotFound => ("", None),
        Err(error) => return Err(error),
    };
    replace(disk, target, [mark, text].concat().as_bytes(), like)
}
