//! The machine as `setup` sees it, handed in: variables, files, folders, who listens. And the homes on it, of which a
//! Windows machine with WSL has several.
//! Not the real one (that is [`super::here`]).

use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::document::Flaw;
use crate::running::Who;

/// The families of systems that differ in where clients keep their settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    /// Linux and the like.
    Linux,
    /// macOS.
    Mac,
    /// Windows.
    Windows,
}

/// The machine.
#[derive(Clone)]
pub struct Machine<'a> {
    /// Its system.
    pub system: System,
    /// Whether it is a Linux inside Windows.
    pub in_wsl: bool,
    /// On Windows: the names of the Linux distributions in it.
    pub distros: Vec<String>,
    /// The environment.
    pub env: &'a dyn Fn(&str) -> Option<OsString>,
    /// Reads a file, within a limit.
    pub read: &'a dyn Fn(&Path) -> io::Result<Vec<u8>>,
    /// The names in a folder; none where there is no folder.
    pub list: &'a dyn Fn(&Path) -> Vec<String>,
    /// Whether there is anything at this path.
    pub exists: &'a dyn Fn(&Path) -> bool,
    /// Who listens at this address.
    pub who: &'a dyn Fn(SocketAddr) -> Who,
    /// The working folder.
    pub folder: PathBuf,
}

impl std::fmt::Debug for Machine<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Machine").field("system", &self.system).finish_non_exhaustive()
    }
}

/// A home folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Home {
    pub(super) path: PathBuf,
    /// The system whose programs use it.
    pub(super) system: System,
    pub(super) side: Side,
}

/// On which side of a Windows machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Side {
    /// The relay's own.
    #[default]
    Here,
    /// The Windows around this Linux.
    Windows,
    /// The Linux of this name inside this Windows.
    Wsl(String),
}

/// What a file held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Held {
    /// There is none.
    Nothing,
    /// Its text, without the mark that some editors put in front.
    Text(String),
    /// It cannot be used.
    Bad(Bad),
}

/// Why a file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bad {
    /// A folder, a pipe, a device.
    NoFile,
    /// It is larger than settings are.
    TooLarge,
    /// It may not be read, or not be written.
    Denied,
    /// It says something that is not its format.
    Flaw(Flaw),
    /// What the system said.
    System(String),
}

impl Bad {
    pub(super) fn of(error: &io::Error) -> Self {
        let is = |kinds: &[io::ErrorKind]| kinds.contains(&error.kind());
        if is(&[io::ErrorKind::IsADirectory, io::ErrorKind::Unsupported]) {
            Self::NoFile
        } else if is(&[io::ErrorKind::FileTooLarge]) {
            Self::TooLarge
        } else if is(&[io::ErrorKind::PermissionDenied]) {
            Self::Denied
        } else {
            Self::System(error.to_string())
        }
    }
}

/// The mark that some editors begin a file with.
pub(super) const MARK: &str = "\u{feff}";

impl Machine<'_> {
    /// A variable that is set to something.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        (self.env)(name)?.into_string().ok().filter(|value| !value.is_empty())
    }

    /// A folder that a variable names.
    pub(super) fn folder_of(&self, name: &str) -> Option<PathBuf> {
        self.variable(name).map(|value| self.folder.join(value))
    }

    pub(super) fn has(&self, path: &Path) -> bool {
        (self.exists)(path)
    }

    /// Whether a program is found by its bare name.
    pub(super) fn has_program(&self, name: &str) -> bool {
        let endings: &[&str] = if self.system == System::Windows { &[".exe", ".cmd"] } else { &[""] };
        let path = (self.env)("PATH").unwrap_or_default();
        let mut folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
        folders.any(|folder| endings.iter().any(|ending| self.has(&folder.join(format!("{name}{ending}")))))
    }

    pub(super) fn text(&self, path: &Path) -> Held {
        match (self.read)(path) {
            Ok(bytes) => held(&bytes),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Held::Nothing
            }
            Err(error) => Held::Bad(Bad::of(&error)),
        }
    }

    /// The homes on this machine: this user's, and those on the other side of Windows.
    pub(super) fn homes(&self) -> Vec<Home> {
        let names: &[&str] =
            if self.system == System::Windows { &["USERPROFILE", "HOME"] } else { &["HOME"] };
        let own = names.iter().find_map(|name| self.folder_of(name));
        let mut homes: Vec<Home> =
            own.into_iter().map(|path| Home { path, system: self.system, side: Side::Here }).collect();
        if self.in_wsl {
            let users = Path::new("/mnt/c/Users");
            let path = |name: &String| users.join(name);
            let nobody = ["Public", "Default", "Default User", "All Users"];
            homes.extend(
                (self.list)(users)
                    .iter()
                    .filter(|name| !nobody.contains(&name.as_str()))
                    .map(path)
                    .filter(|home| self.has(&home.join("AppData")))
                    .map(|path| Home { path, system: System::Windows, side: Side::Windows }),
            );
        }
        for distro in &self.distros {
            let users = PathBuf::from(format!(r"\\wsl.localhost\{distro}\home"));
            homes.extend((self.list)(&users).iter().map(|name| Home {
                path: users.join(name),
                system: System::Linux,
                side: Side::Wsl(distro.clone()),
            }));
        }
        homes
    }

    /// Whether a Linux inside this Windows reaches the loopback of Windows: only where both share one network.
    pub(super) fn wsl_shares_loopback(&self) -> bool {
        let Some(home) = self.folder_of("USERPROFILE") else { return false };
        let Held::Text(text) = self.text(&home.join(".wslconfig")) else { return false };
        text.lines().any(|line| {
            let line = line.to_ascii_lowercase().replace(' ', "");
            line.trim() == "networkingmode=mirrored"
        })
    }
}

/// The text of these bytes.
pub(super) fn held(bytes: &[u8]) -> Held {
    match std::str::from_utf8(bytes) {
        Ok(text) => Held::Text(text.strip_prefix(MARK).unwrap_or(text).to_owned()),
        Err(error) => {
            let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
            let text = String::from_utf8_lossy(valid);
            Held::Bad(Bad::Flaw(Flaw::at(&text, text.len(), "this is not UTF-8 text")))
        }
    }
}
