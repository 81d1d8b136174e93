//! What the program knows of itself: its version, the commit and the target it was built from, its features, and how it
//! came here, told by where it lies. Nobody is asked over the network whether there is a newer one.

use std::path::{Component, Path, PathBuf};

use serde::Serialize;

/// How it came here, and with that how a newer one would.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// A package of npm.
    Npm,
    /// A wheel, by pip.
    Pip,
    /// The same, in an environment of pipx.
    Pipx,
    /// The same, in one of `uv tool`.
    Uv,
    /// Homebrew.
    Homebrew,
    /// A package of Debian.
    Deb,
    /// `cargo install`.
    Cargo,
    /// Scoop.
    Scoop,
    /// winget.
    Winget,
    /// An image of a container.
    Container,
    /// An archive, or built by hand: nobody keeps track of it.
    #[default]
    ByHand,
}

impl Way {
    /// Every one.
    pub const ALL: [Self; 11] = [
        Self::Npm,
        Self::Pip,
        Self::Pipx,
        Self::Uv,
        Self::Homebrew,
        Self::Deb,
        Self::Cargo,
        Self::Scoop,
        Self::Winget,
        Self::Container,
        Self::ByHand,
    ];

    /// The one of a program that lies at `program`, links followed; `exists` tells of a file whether it is there,
    /// `is_wheel` whether the packages of Python beside it are those of its wheel.
    #[must_use]
    pub fn of(program: &Path, is_wheel: bool, exists: impl Fn(&Path) -> bool) -> Self {
        let folders: Vec<String> = program
            .components()
            .filter_map(|part| match part {
                Component::Normal(name) => Some(name.to_string_lossy().to_lowercase()),
                Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
            })
            .collect();
        let has = |names: &[&str]| folders.windows(names.len()).any(|found| found == names);
        // What makes an environment for a program alone leaves its own notes there.
        let environment = program.parent().and_then(Path::parent).unwrap_or(program);
        match () {
            () if exists(&environment.join("uv-receipt.toml")) => Self::Uv,
            () if exists(&environment.join("pipx_metadata.json")) => Self::Pipx,
            () if has(&["node_modules", "@steady-relay"]) => Self::Npm,
            () if has(&["pipx", "venvs"]) => Self::Pipx,
            () if has(&["uv", "tools"]) => Self::Uv,
            () if has(&["cellar"]) => Self::Homebrew,
            () if has(&["scoop", "apps"]) => Self::Scoop,
            () if has(&["winget", "packages"]) => Self::Winget,
            () if has(&[".cargo", "bin"]) => Self::Cargo,
            () if program == Path::new("/usr/bin/steady-relay")
                && exists(Path::new("/var/lib/dpkg/info/steady-relay.list")) =>
            {
                Self::Deb
            }
            () if program == Path::new("/steady-relay") => Self::Container,
            () if is_wheel => Self::Pip,
            () => Self::ByHand,
        }
    }

    /// Its name for people.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::Npm => Some("npm"),
            Self::Pip => Some("pip"),
            Self::Pipx => Some("pipx"),
            Self::Uv => Some("uv"),
            Self::Homebrew => Some("Homebrew"),
            Self::Deb => Some("dpkg"),
            Self::Cargo => Some("Cargo"),
            Self::Scoop => Some("Scoop"),
            Self::Winget => Some("winget"),
            Self::Container | Self::ByHand => None,
        }
    }

    /// The same of what an installer was given as a file: it keeps track of no newer one, and whoever gave the file does.
    fn is_from_file(self, program: &Path) -> bool {
        match self {
            Self::Pip | Self::Pipx | Self::Uv => is_direct(program),
            Self::Npm => node_project(program).is_some_and(|folder| is_local(&folder)),
            Self::Homebrew
            | Self::Deb
            | Self::Cargo
            | Self::Scoop
            | Self::Winget
            | Self::Container
            | Self::ByHand => false,
        }
    }

    /// What brings a newer one, to be typed; `None`: a newer one is put in the place of this one.
    #[must_use]
    pub const fn update(self) -> Option<&'static str> {
        match self {
            Self::Npm => Some("npm install -g steady-relay@latest"),
            Self::Pip => Some("pip install --upgrade steady-relay"),
            Self::Pipx => Some("pipx upgrade steady-relay"),
            Self::Uv => Some("uv tool upgrade steady-relay"),
            Self::Homebrew => Some("brew upgrade steady-relay"),
            Self::Cargo => {
                Some("cargo install --locked --git https://github.com/steady-relay/steady-relay steady-relay")
            }
            Self::Scoop => Some("scoop update steady-relay"),
            Self::Winget => Some("winget upgrade SteadyRelay.SteadyRelay"),
            Self::Deb | Self::Container | Self::ByHand => None,
        }
    }
}

/// What pip, or what works like it, noted of the wheel that brought this program: in the packages of Python beside it.
fn notes_of_wheel(program: &Path) -> Option<PathBuf> {
    let environment = program.parent()?.parent()?;
    let named = |folder: PathBuf, begins: &'static str| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        entries.filter(move |path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(begins))
        })
    };
    let pythons = named(environment.join("lib"), "python3").chain([environment.join("Lib")]);
    // Debian's own Python looks for packages under another name.
    let packages = pythons.flat_map(|lib| [lib.join("site-packages"), lib.join("dist-packages")]);
    packages.flat_map(|folder| named(folder, "steady_relay-")).find(|notes| notes.join("RECORD").is_file())
}

/// Whether they say that it came from elsewhere than an index (PEP 610).
fn is_direct(program: &Path) -> bool {
    notes_of_wheel(program).is_some_and(|notes| notes.join("direct_url.json").is_file())
}

/// The `node_modules` of a project that npm installed it into; a global one keeps no list.
fn node_project(program: &Path) -> Option<PathBuf> {
    let modules = program.ancestors().filter(|folder| folder.ends_with("node_modules"));
    modules.map(Path::to_owned).find(|folder| folder.join(NODE_LIST).is_file())
}

/// npm's list of what it installed there.
const NODE_LIST: &str = ".package-lock.json";

/// Whether npm was given the package as a file.
fn is_local(modules: &Path) -> bool {
    let list = std::fs::read(modules.join(NODE_LIST)).unwrap_or_default();
    let list: serde_json::Value = serde_json::from_slice(&list).unwrap_or_default();
    let from = &list["packages"]["node_modules/steady-relay"]["resolved"];
    from.as_str().is_some_and(|from| from.starts_with("file:"))
}

/// All that it knows of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct About {
    /// The version of this form.
    pub v: u32,
    /// `steady-relay`
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The commit that it was built from, where whoever built it said so (`STEADY_RELAY_COMMIT`).
    pub commit: Option<&'static str>,
    /// System and processor that it was built for.
    pub platform: String,
    /// The features that it was built with.
    pub features: Vec<&'static str>,
    /// Where it lies.
    pub program: Option<PathBuf>,
    /// How it came there.
    pub installed: Way,
    /// What brings a newer one.
    pub update: Option<&'static str>,
}

impl About {
    /// The program that runs.
    #[must_use]
    pub fn this() -> Self {
        let program = std::env::current_exe().ok();
        let program = program.map(|path| path.canonicalize().unwrap_or(path));
        let installed = program
            .as_deref()
            .map_or(Way::ByHand, |path| Way::of(path, notes_of_wheel(path).is_some(), Path::exists));
        let update = program.as_deref().filter(|path| !installed.is_from_file(path)).and_then(|path| {
            let in_project = installed == Way::Npm && node_project(path).is_some();
            if in_project { Some("npm install steady-relay@latest") } else { installed.update() }
        });
        let features = [
            ("history", cfg!(feature = "history")),
            ("otlp", cfg!(feature = "otlp")),
            ("top", cfg!(feature = "top")),
        ];
        Self {
            v: 1,
            name: "steady-relay",
            version: env!("CARGO_PKG_VERSION"),
            commit: option_env!("STEADY_RELAY_COMMIT"),
            platform: format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH),
            features: features.into_iter().filter(|(_, is_in)| *is_in).map(|(name, _)| name).collect(),
            program,
            installed,
            update,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_it_lies_tells_how_it_came() {
        let cases = [
            (
                "/usr/lib/node_modules/steady-relay/node_modules/@steady-relay/linux-x64/bin/steady-relay",
                Way::Npm,
            ),
            ("/home/u/.npm/_npx/1/node_modules/@steady-relay/linux-x64/bin/steady-relay", Way::Npm),
            ("/home/u/.local/share/pipx/venvs/steady-relay/bin/steady-relay", Way::Pipx),
            ("/home/u/.local/share/uv/tools/steady-relay/bin/steady-relay", Way::Uv),
            ("/opt/homebrew/Cellar/steady-relay/0.1.0/bin/steady-relay", Way::Homebrew),
            ("/home/u/.cargo/bin/steady-relay", Way::Cargo),
            ("/home/u/scoop/apps/steady-relay/current/steady-relay.exe", Way::Scoop),
            ("/c/Users/u/AppData/Local/Microsoft/WinGet/Packages/SteadyRelay/steady-relay.exe", Way::Winget),
            ("/steady-relay", Way::Container),
            ("/usr/bin/steady-relay", Way::ByHand),
            ("/home/u/relay/target/release/steady-relay", Way::ByHand),
        ];
        for (path, way) in cases {
            assert_eq!(Way::of(Path::new(path), false, |_| false), way, "{path}");
        }
        let deb = |path: &Path| path == Path::new("/var/lib/dpkg/info/steady-relay.list");
        assert_eq!(Way::of(Path::new("/usr/bin/steady-relay"), false, deb), Way::Deb);
        assert_eq!(Way::of(Path::new("/home/u/venv/bin/steady-relay"), true, |_| false), Way::Pip);
    }

    #[test]
    fn notes_of_an_installer_tell_more_than_the_place() {
        let folder = std::env::temp_dir().join(format!("steady-relay-installed-{}", std::process::id()));
        let at = |path: &str| folder.join(path);
        let write = |path: &str, text: &str| {
            std::fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            std::fs::write(at(path), text).unwrap();
        };
        let program = at("tools/steady-relay/bin/steady-relay");
        for (note, way) in [("uv-receipt.toml", Way::Uv), ("pipx_metadata.json", Way::Pipx)] {
            write(&format!("tools/steady-relay/{note}"), "");
            assert_eq!(Way::of(&program, true, Path::exists), way);
            std::fs::remove_file(at(&format!("tools/steady-relay/{note}"))).unwrap();
        }
        assert_eq!(notes_of_wheel(&program), None);
        // An interpreter that happens to lie there says nothing.
        write("tools/steady-relay/bin/python3", "");
        assert_eq!(notes_of_wheel(&program), None);
        for folder in ["lib/python3.12/site-packages", "Lib/site-packages", "lib/python3.11/dist-packages"] {
            let notes = format!("tools/steady-relay/{folder}/steady_relay-0.1.0.dist-info");
            write(&format!("{notes}/RECORD"), "");
            assert_eq!(notes_of_wheel(&program), Some(at(&notes)));
            assert!(!Way::Pip.is_from_file(&program));
            write(&format!("{notes}/direct_url.json"), "{}");
            assert!(Way::Pip.is_from_file(&program));
            std::fs::remove_dir_all(at(&notes)).unwrap();
        }

        let program = at("site/node_modules/@steady-relay/linux-x64/bin/steady-relay");
        assert_eq!(node_project(&program), None);
        for (from, is_file) in [("file:steady-relay-0.1.0.tgz", true), ("https://r.example/x.tgz", false)] {
            let list = format!(r#"{{"packages":{{"node_modules/steady-relay":{{"resolved":"{from}"}}}}}}"#);
            write("site/node_modules/.package-lock.json", &list);
            assert_eq!(node_project(&program), Some(at("site/node_modules")));
            assert_eq!(Way::Npm.is_from_file(&program), is_file, "{from}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn whoever_keeps_track_of_it_has_a_command_that_names_it() {
        for way in Way::ALL {
            let by_hand = matches!(way, Way::Deb | Way::Container | Way::ByHand);
            assert_eq!(way.update().is_none(), by_hand, "{way:?}");
            assert!(
                way.update().is_none_or(|it| it.to_lowercase().replace('.', "-").contains("steady")),
                "{way:?}"
            );
        }
    }
}
