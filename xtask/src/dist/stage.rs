//! The files of one package, in memory and in order: path, bytes, mode. What packs them decides where they go.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use crate::product::Product;
use crate::target::Target;
use xtask::command::output;

/// What kind of file it is, by which packagers know its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Program,
    /// Of the repository's top: licences, what changed, how to begin.
    Page,
    Manual,
    /// For this shell.
    Completion(Shell),
}

/// Whose completions are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
    Pwsh,
}

impl Shell {
    const ALL: [Self; 4] = [Self::Bash, Self::Zsh, Self::Fish, Self::Pwsh];

    /// What the program calls it, and how the shell wants the file named.
    fn names(self, program: &str) -> (&'static str, String) {
        match self {
            Self::Bash => ("bash", program.to_owned()),
            Self::Zsh => ("zsh", format!("_{program}")),
            Self::Fish => ("fish", format!("{program}.fish")),
            Self::Pwsh => ("powershell", format!("_{program}.ps1")),
        }
    }

    fn folder(self) -> &'static str {
        self.names("").0
    }
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Staged {
    pub(crate) kind: Kind,
    /// Its name without any folder.
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

impl Staged {
    /// Where it lies in an archive.
    pub(crate) fn place(&self) -> String {
        match self.kind {
            Kind::Program | Kind::Page => self.name.clone(),
            Kind::Manual => format!("man/man1/{}", self.name),
            Kind::Completion(shell) => format!("completions/{}/{}", shell.folder(), self.name),
        }
    }

    /// Its mode.
    pub(crate) const fn mode(&self) -> u32 {
        match self.kind {
            Kind::Program => 0o755,
            Kind::Page | Kind::Manual | Kind::Completion(_) => 0o644,
        }
    }
}

/// All of them, sorted by kind and name.
#[derive(Debug, Clone)]
pub(crate) struct Stage {
    pub(crate) files: Vec<Staged>,
}

/// What of the repository goes along.
const PAGES: [&str; 5] = ["README.md", "README.zh.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];

impl Stage {
    /// Those for `target`. Its manual and completions come from the program itself where this machine can start it, else
    /// from the one that was built for this machine.
    pub(crate) fn of(root: &Path, product: &Product, target: &Target, binary: &Path) -> Result<Self> {
        let bytes = fs::read(binary).with_context(|| format!("cannot read {}", binary.display()))?;
        ensure!(!bytes.is_empty(), "{} is empty", binary.display());
        let mut files = vec![Staged { kind: Kind::Program, name: target.program(&product.name), bytes }];
        for name in PAGES {
            let text = fs::read_to_string(root.join(name)).with_context(|| format!("cannot read {name}"))?;
            let bytes = standing_alone(&text, product).into_bytes();
            files.push(Staged { kind: Kind::Page, name: name.to_owned(), bytes });
        }
        let speaks = speaker(root, target, binary)?;
        manual(&speaks, &mut files)?;
        for shell in Shell::ALL {
            let (word, name) = shell.names(&product.name);
            let script = output(speaker_of(&speaks).args(["completions", word]))?;
            ensure!(script.contains(&product.name), "the completions for {word} are empty");
            files.push(Staged { kind: Kind::Completion(shell), name, bytes: script.into_bytes() });
        }
        files.sort();
        Ok(Self { files })
    }

    /// The program alone.
    pub(crate) fn program(&self) -> Result<&Staged> {
        self.files.iter().find(|file| file.kind == Kind::Program).context("a package holds the program")
    }
}

/// What a program needs of the system that it runs on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Nothing of Linux; one of another system is what it is.
    Nothing,
    /// The libraries of Linux, those of glibc from this version on.
    Glibc(String),
}

/// What this program needs.
///
/// # Errors
/// Where it is no program of the target's system and processor, as far as its head tells.
pub(crate) fn needs(program: &[u8], target: &Target) -> Result<Needs> {
    let is_arm = target.node.1 == "arm64";
    // Magic number, place of the processor, its number: ELF (elf(5)), Mach-O (mach-o/loader.h), and PE, whose header has
    // a place of its own (learn.microsoft.com, "PE Format").
    let (magic, at, processor): (&[u8], usize, u64) = match target.node.0 {
        "win32" => {
            (b"MZ", place(number(program, 60, 4)).saturating_add(4), if is_arm { 0xaa64 } else { 0x8664 })
        }
        "darwin" => (&[0xcf, 0xfa, 0xed, 0xfe], 4, if is_arm { 12 } else { 7 }),
        _ => (b"\x7fELF", 18, if is_arm { 183 } else { 62 }),
    };
    let fits = program.starts_with(magic) && number(program, at, 2) == processor;
    ensure!(fits, "this is no program for {}", target.triple);
    if target.node.0 != "linux" || !names_interpreter(program) {
        return Ok(Needs::Nothing);
    }
    let (major, minor) = newest_glibc(program).unwrap_or((2, 17));
    Ok(Needs::Glibc(format!("{major}.{minor}")))
}

/// The newest version of glibc that a program asks for by name (`GLIBC_2.34`); before those that it names no other runs it.
fn newest_glibc(program: &[u8]) -> Option<(u32, u32)> {
    const NAME: &[u8] = b"\0GLIBC_";
    let versions = program.windows(NAME.len()).enumerate().filter(|(_, bytes)| *bytes == NAME);
    let versions = versions.filter_map(|(at, _)| {
        let text = program.get(at + NAME.len()..)?.split(|byte| *byte == 0).next()?;
        let (major, minor) = std::str::from_utf8(text).ok()?.split_once('.')?;
        // Some have a third part, of a version long ago.
        Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
    });
    versions.max()
}

/// Whether a 64-bit ELF file (elf(5)) names a program that loads libraries into it: a header of type `PT_INTERP`.
fn names_interpreter(program: &[u8]) -> bool {
    const PT_INTERP: u32 = 3;
    let number = |at: usize, size: usize| number(program, at, size);
    let (first, size, many) = (place(number(32, 8)), place(number(54, 2)), place(number(56, 2)));
    (0..many).any(|header| number(first.saturating_add(header * size), 4) == u64::from(PT_INTERP))
}

/// A number of so many bytes there, the lowest first; 0 beyond the end.
fn number(program: &[u8], at: usize, size: usize) -> u64 {
    let bytes = at.checked_add(size).and_then(|end| program.get(at..end)).unwrap_or_default();
    bytes.iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte))
}

fn place(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX / 2)
}

/// A program that this machine can start.
fn speaker(root: &Path, target: &Target, binary: &Path) -> Result<std::path::PathBuf> {
    if Target::host().is_ok_and(|host| host == target) {
        // A relative path would be looked up among the programs.
        return fs::canonicalize(binary).with_context(|| format!("cannot find {}", binary.display()));
    }
    let built = ["target/dist-build/release", "target/release", "target/debug"];
    let host = Target::host()?;
    let own =
        root.join("target/dist-build").join(host.triple).join("release").join(host.program("steady-relay"));
    let others = built.iter().map(|folder| root.join(folder).join(host.program("steady-relay")));
    std::iter::once(own).chain(others).find(|path| path.is_file()).with_context(|| {
        format!(
            "{} cannot be started here\nhint: `cargo build --release` first, for the manual",
            target.triple
        )
    })
}

/// It, to be asked in the language of the packages, whatever that of the packager is.
fn speaker_of(program: &Path) -> std::process::Command {
    let mut command = std::process::Command::new(program);
    command.env("STEADY_RELAY_LANG", "en");
    command
}

/// The README without the links into a repository that is not there.
pub(crate) fn standing_alone(text: &str, product: &Product) -> String {
    let there = format!("]({}/blob/v{}/", product.homepage, product.version);
    let elsewhere = ["docs/", "crates/", "CONTRIBUTING.md", "LICENSE)"];
    let text = &text.replace("](../docs/", "](docs/");
    elsewhere
        .iter()
        .fold(text.to_owned(), |text, path| text.replace(&format!("]({path}"), &format!("{there}{path}")))
}

fn manual(program: &Path, files: &mut Vec<Staged>) -> Result<()> {
    let folder = std::env::temp_dir().join(format!("steady-relay-man-{}", std::process::id()));
    let written = speaker_of(program).arg("man").arg("--dir").arg(&folder).output();
    let written = written.context("the program cannot be started").and_then(|done| {
        ensure!(
            done.status.success(),
            "the program has no manual: {}",
            String::from_utf8_lossy(&done.stderr)
        );
        Ok(())
    });
    let read = written.and_then(|()| {
        let entries = fs::read_dir(&folder).context("the program writes its manual")?;
        entries
            .map(|entry| {
                let entry = entry?;
                let name = entry.file_name().into_string().ok().context("a page has a name")?;
                Ok(Staged { kind: Kind::Manual, name, bytes: fs::read(entry.path())? })
            })
            .collect::<Result<Vec<_>>>()
    });
    let _gone = fs::remove_dir_all(&folder);
    files.extend(read?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linux() -> &'static Target {
        Target::named("x86_64-unknown-linux-gnu").unwrap()
    }

    #[test]
    fn a_program_that_needs_libraries_is_known() {
        let elf = |kind: u8| {
            let mut file = vec![0; 64 + 56];
            file[..4].copy_from_slice(b"\x7fELF");
            (file[18], file[32], file[54], file[56], file[64]) = (62, 64, 56, 1, kind);
            file
        };
        let names = |versions: &[u8]| [&elf(3), versions].concat();
        assert_eq!(needs(&elf(1), linux()).unwrap(), Needs::Nothing);
        let glibc = |oldest: &str| Needs::Glibc(oldest.to_owned());
        assert_eq!(needs(&elf(3), linux()).unwrap(), glibc("2.17"));
        let versions = b"\0GLIBC_2.9\0GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_PRIVATE\0XGLIBC_2.99\0";
        assert_eq!(needs(&names(versions), linux()).unwrap(), glibc("2.34"));
        assert!(needs(b"MZ", linux()).is_err());
        assert!(needs(b"\x7fELF", Target::named("x86_64-pc-windows-msvc").unwrap()).is_err());
        // One that is cut off names nothing.
        let cut = &elf(3)[..20];
        assert_eq!(needs(cut, linux()).unwrap(), Needs::Nothing);
    }

    #[test]
    fn a_program_for_another_processor_is_known() {
        let mut mach = vec![0xcf, 0xfa, 0xed, 0xfe, 7, 0, 0, 1];
        let mut pe = vec![0; 80];
        (pe[0], pe[1], pe[60], pe[68], pe[69]) = (b'M', b'Z', 64, 0x64, 0x86);
        let mut elf = vec![0; 20];
        elf[..4].copy_from_slice(b"\x7fELF");
        elf[18] = 62;
        for (file, arm, x86, other) in [
            (&mut mach, "aarch64-apple-darwin", "x86_64-apple-darwin", (4, 12)),
            (&mut pe, "aarch64-pc-windows-msvc", "x86_64-pc-windows-msvc", (69, 0xaa)),
            (&mut elf, "aarch64-unknown-linux-gnu", "x86_64-unknown-linux-gnu", (18, 183)),
        ] {
            let fits =
                |file: &[u8]| [x86, arm].map(|triple| needs(file, Target::named(triple).unwrap()).is_ok());
            assert_eq!(fits(file), [true, false], "{x86}");
            file[other.0] = other.1;
            assert_eq!(fits(file), [false, true], "{arm}");
            assert_eq!(fits(&file[..4]), [false, false], "cut off");
        }
    }
}
