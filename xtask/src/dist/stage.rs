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
            let bytes = fs::read(root.join(name)).with_context(|| format!("cannot read {name}"))?;
            files.push(Staged { kind: Kind::Page, name: name.to_owned(), bytes });
        }
        let speaks = speaker(root, target, binary)?;
        manual(&speaks, &mut files)?;
        for shell in Shell::ALL {
            let (word, name) = shell.names(&product.name);
            let script = output(std::process::Command::new(&speaks).args(["completions", word]))?;
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

fn manual(program: &Path, files: &mut Vec<Staged>) -> Result<()> {
    let folder = std::env::temp_dir().join(format!("steady-relay-man-{}", std::process::id()));
    let written = output(std::process::Command::new(program).arg("man").arg("--dir").arg(&folder));
    let read = written.and_then(|_| {
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
