//! What is handed out: its name and version and words, as `Cargo.toml` has them, and the time of the commit.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use xtask::command::{cargo, output, words};

/// The program as every package names it.
#[derive(Debug, Clone)]
pub(crate) struct Product {
    pub(crate) name: String,
    pub(crate) version: String,
    /// One line.
    pub(crate) summary: String,
    pub(crate) homepage: String,
    /// As an SPDX expression.
    pub(crate) license: String,
    pub(crate) maker: String,
    /// When the commit was made, in seconds since 1970: the time of every file.
    pub(crate) epoch: u64,
}

impl Product {
    /// That of this repository.
    pub(crate) fn of(root: &Path) -> Result<Self> {
        let metadata = output(&mut cargo(root, "metadata --format-version 1 --no-deps"))?;
        let metadata: Value = serde_json::from_str(&metadata).context("what cargo metadata prints")?;
        let packages = metadata["packages"].as_array().context("cargo metadata names packages")?;
        let package = packages
            .iter()
            .find(|package| package["name"] == "steady-relay")
            .context("there is a package steady-relay")?;
        let text = |name: &str| {
            let text = package[name].as_str().map(str::trim).unwrap_or_default();
            ensure!(!text.is_empty(), "the package steady-relay has no `{name}` in its Cargo.toml");
            Ok(text.to_owned())
        };
        let maker = package["authors"][0].as_str().context("the package steady-relay has `authors`")?;
        Ok(Self {
            name: text("name")?,
            version: text("version")?,
            summary: text("description")?.trim_end_matches('.').to_owned(),
            homepage: text("repository")?,
            license: text("license")?,
            maker: maker.to_owned(),
            epoch: epoch(root)?,
        })
    }

    /// `steady-relay-1.2.3-x86_64-unknown-linux-gnu`
    pub(crate) fn folder(&self, triple: &str) -> String {
        format!("{}-{}-{triple}", self.name, self.version)
    }

    /// Where the archive of this name can be had once it is published.
    pub(crate) fn download(&self, file: &str) -> String {
        format!("{}/releases/download/v{}/{file}", self.homepage, self.version)
    }
}

/// `SOURCE_DATE_EPOCH` (reproducible-builds.org), else the time of the commit.
fn epoch(root: &Path) -> Result<u64> {
    let told = std::env::var("SOURCE_DATE_EPOCH").ok();
    let text = match told {
        Some(told) => told,
        None => output(&mut words(root, "git log -1 --format=%ct"))?,
    };
    let epoch = text.trim().parse().with_context(|| format!("{text:?} is no time in seconds since 1970"))?;
    // A head of tar has room for eleven octal digits.
    ensure!(epoch < 1 << 33, "{epoch} seconds since 1970 is later than an archive can tell");
    Ok(epoch)
}
