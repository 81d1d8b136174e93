//! The systems that the program is handed out for, and what each packager calls them.

use anyhow::{Context as _, Result};

/// One of them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Rust's name.
    pub(crate) triple: &'static str,
    /// Node's names of the system and of the processor.
    pub(crate) node: (&'static str, &'static str),
    /// Debian's name of the processor.
    pub(crate) deb: Option<&'static str>,
    /// The container world's name of the processor.
    pub(crate) container: Option<&'static str>,
    /// Python's names of the systems, between dots (packaging.python.org, "Platform compatibility tags"): a program that
    /// is linked statically runs on any Linux. On macOS the version is the oldest that Rust builds for.
    pub(crate) wheel: &'static str,
}

const ALL: [Target; 6] = [
    Target {
        triple: "x86_64-unknown-linux-gnu",
        node: ("linux", "x64"),
        deb: Some("amd64"),
        container: Some("amd64"),
        wheel: "manylinux2014_x86_64.manylinux_2_17_x86_64.musllinux_1_1_x86_64",
    },
    Target {
        triple: "aarch64-unknown-linux-gnu",
        node: ("linux", "arm64"),
        deb: Some("arm64"),
        container: Some("arm64"),
        wheel: "manylinux2014_aarch64.manylinux_2_17_aarch64.musllinux_1_1_aarch64",
    },
    Target {
        triple: "x86_64-apple-darwin",
        node: ("darwin", "x64"),
        deb: None,
        container: None,
        wheel: "macosx_10_12_x86_64",
    },
    Target {
        triple: "aarch64-apple-darwin",
        node: ("darwin", "arm64"),
        deb: None,
        container: None,
        wheel: "macosx_11_0_arm64",
    },
    Target {
        triple: "x86_64-pc-windows-msvc",
        node: ("win32", "x64"),
        deb: None,
        container: None,
        wheel: "win_amd64",
    },
    Target {
        triple: "aarch64-pc-windows-msvc",
        node: ("win32", "arm64"),
        deb: None,
        container: None,
        wheel: "win_arm64",
    },
];

impl Target {
    /// All of them.
    pub(crate) const fn all() -> &'static [Self] {
        &ALL
    }

    /// The one with this name of Rust's.
    pub(crate) fn named(triple: &str) -> Result<&'static Self> {
        let names = || ALL.iter().map(|target| target.triple).collect::<Vec<_>>().join(" ");
        ALL.iter()
            .find(|target| target.triple == triple)
            .with_context(|| format!("nothing is handed out for {triple}\ntargets: {}", names()))
    }

    /// That of this machine.
    pub(crate) fn host() -> Result<&'static Self> {
        let (system, processor) = (std::env::consts::OS, std::env::consts::ARCH);
        let node = match system {
            "macos" => "darwin",
            "windows" => "win32",
            other => other,
        };
        ALL.iter()
            .find(|target| target.node.0 == node && target.triple.starts_with(processor))
            .with_context(|| format!("nothing is handed out for {system} on {processor}"))
    }

    /// Whether it is one of Windows.
    pub(crate) fn is_windows(&self) -> bool {
        self.node.0 == "win32"
    }

    /// What Python calls a system like the one at hand, whatever its libraries are.
    pub(crate) fn wheel_of_its_own(&self) -> String {
        match self.node.0 {
            "linux" => format!("linux_{}", self.triple.split('-').next().unwrap_or_default()),
            _ => self.wheel.to_owned(),
        }
    }

    /// The name of a program's file.
    pub(crate) fn program(&self, name: &str) -> String {
        if self.is_windows() { format!("{name}.exe") } else { name.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_is_found_by_its_name_and_others_are_told_of() {
        for target in Target::all() {
            assert_eq!(Target::named(target.triple).ok(), Some(target));
        }
        let error = Target::named("sparc-sun-solaris").unwrap_err().to_string();
        assert!(error.contains("x86_64-unknown-linux-gnu aarch64"), "{error}");
        assert_eq!(Target::named("x86_64-pc-windows-msvc").unwrap().program("x"), "x.exe");
    }
}
