//! This machine, for real: its files within a limit, its folders, who listens at an address.

use std::fs;
use std::path::Path;

use super::machine::{Machine, System};
use crate::files::Files;
use crate::running::who;
use crate::wsl::in_wsl;

/// More names than any folder that is looked at has.
const MOST_NAMES: usize = 4096;

/// The system that this program is made for.
pub(crate) const SYSTEM: System = if cfg!(windows) {
    System::Windows
} else if cfg!(target_os = "macos") {
    System::Mac
} else {
    System::Linux
};

/// This machine as it is now.
#[must_use]
pub fn machine() -> Machine<'static> {
    Machine {
        system: SYSTEM,
        in_wsl: in_wsl(),
        distros: distros(),
        env: &|name| std::env::var_os(name),
        read: &|path| Files::anew().read(path),
        list: &names,
        exists: &|path| path.exists(),
        who: &who::ask,
        folder: std::env::current_dir().unwrap_or_default(),
    }
}

fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.flatten().take(MOST_NAMES).filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// The Linux distributions in this Windows.
fn distros() -> Vec<String> {
    if !cfg!(windows) {
        return Vec::new();
    }
    let listed = std::process::Command::new("wsl.exe").args(["--list", "--quiet"]).output();
    listed.map_or_else(|_| Vec::new(), |listed| listed_distros(&listed.stdout))
}

/// The names that `wsl --list --quiet` prints, which it does in UTF-16.
fn listed_distros(printed: &[u8]) -> Vec<String> {
    let (pairs, _) = printed.as_chunks::<2>();
    let wide = printed.contains(&0);
    let text = match wide {
        true => {
            String::from_utf16_lossy(&pairs.iter().map(|pair| u16::from_le_bytes(*pair)).collect::<Vec<_>>())
        }
        false => String::from_utf8_lossy(printed).into_owned(),
    };
    let names = text.lines().map(|line| line.trim_matches(['\u{feff}', '\0', ' ', '\r'])).map(str::to_owned);
    // Docker's own have no homes.
    names.filter(|name| !name.is_empty() && !name.starts_with("docker-desktop")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_are_read_in_both_encodings() {
        let wide: Vec<u8> =
            "Ubuntu\r\ndocker-desktop\r\nDebian\r\n\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(listed_distros(&wide), ["Ubuntu", "Debian"]);
        assert_eq!(listed_distros(b"Ubuntu-24.04\n"), ["Ubuntu-24.04"]);
        assert_eq!(listed_distros(b""), [""; 0]);
    }
}
