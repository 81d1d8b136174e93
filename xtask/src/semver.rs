//! Holds the interfaces of the libraries against the newest release: a change that breaks programs which use them needs a
//! version that says so.

use anyhow::{Context as _, Result};
use std::path::Path;
use std::process::Command;
use xtask::command::{cargo, download, output, succeed, words, works};

/// The crates that other programs are built with, and where they lie.
const LIBRARIES: [(&str, &str); 2] =
    [("relay-core", "crates/relay-core"), ("steady-relay-tower", "crates/relay-tower")];

/// What compares them. Built only where there is something to compare.
const TOOL: &str = "cargo-semver-checks";
const VERSION: &str = "0.51.0";

/// Compares each library with what it was in the newest release, if there is one.
#[expect(clippy::print_stderr, reason = "a chore reports to the terminal it was started from")]
pub(crate) fn check(root: &Path) -> Result<()> {
    let tags = output(&mut words(root, "git tag --list v*"))?;
    let Some(release) = newest(tags.lines()) else {
        eprintln!("nothing is released yet: there is no tag v1.2.3 to compare with");
        return Ok(());
    };
    let had = |(_, folder): &&(&str, &str)| {
        let object = format!("{release}:{folder}/Cargo.toml");
        works(Command::new("git").current_dir(root).args(["cat-file", "-e", &object]))
    };
    let (old, new): (Vec<_>, Vec<_>) = LIBRARIES.iter().partition(had);
    for (name, _) in new {
        eprintln!("{name} is new since {release}");
    }
    if old.is_empty() {
        return Ok(());
    }
    let tools = root.join("target/test-env/semver");
    let tool = tools.join("bin").join(TOOL);
    let has_version = output(Command::new(&tool).args(["semver-checks", "--version"]))
        .is_ok_and(|shown| shown.split_whitespace().any(|word| word == VERSION));
    if !has_version {
        download(|| {
            let mut install =
                cargo(root, &format!("install --locked --force --version {VERSION} {TOOL} --root"));
            install.arg(&tools);
            install
        })
        .context("what compares interfaces cannot be installed")?;
    }
    for (name, _) in old {
        let mut compare = Command::new(&tool);
        let line = ["semver-checks", "--package", name, "--baseline-rev", release];
        succeed(compare.current_dir(root).args(line))?;
    }
    Ok(())
}

/// The newest release among these tags; what comes before a release (`v1.2.3-rc.1`) is none.
fn newest<'a>(tags: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let number = |tag: &str| -> Option<Vec<u64>> {
        let parts: Vec<u64> =
            tag.strip_prefix('v')?.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
        (parts.len() == 3).then_some(parts)
    };
    tags.filter_map(|tag| Some((number(tag)?, tag))).max().map(|(_, tag)| tag)
}

#[cfg(test)]
mod tests {
    use super::newest;

    #[test]
    fn the_newest_release_is_found_by_its_number() {
        let tags = ["v0.9.0", "v0.10.0", "v0.11.0-rc.1", "vendored", "v1", "0.12.0", "v0.2.30"];
        assert_eq!(newest(tags.into_iter()), Some("v0.10.0"));
        assert_eq!(newest(["v0.1.0-rc.1"].into_iter()), None);
        assert_eq!(newest([].into_iter()), None);
    }
}
