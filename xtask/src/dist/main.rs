//! What is handed out, made from one source of truth: the package's own description in `Cargo.toml`, the repository's
//! files, and the program itself, which prints its manual pages and completions.
//!
//! ```text
//! cargo xtask dist                          builds the program for this machine, and packs it
//! cargo xtask dist --binary FILE --target TRIPLE     packs one that was built elsewhere
//! cargo xtask dist --manifests              only those of package managers, for all archives that lie there
//!
//!  Cargo.toml --product--.                       .--> archive  .tar.gz, .zip
//!  program ---man, completions--> stage (files) -+--> deb      .deb with a user unit
//!  repository --README, LICENSE-'                +--> npm      launcher and platform package
//!  python/ --------------------------------------+--> wheel    for pip, with the program
//!  Cargo.lock ----------------------------sbom---'    container, manifests (Homebrew, Scoop, winget), SHA256SUMS
//! ```
//!
//! The same sources give the same bytes: every time in a file is that of the commit, every owner is root, every list is
//! sorted. Not here: whatever publishes.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a chore reports to the terminal it was started from"
)]

mod archive;
mod build;
mod container;
mod deb;
mod manifests;
mod npm;
mod product;
mod sbom;
mod stage;
mod sums;
mod target;
mod wheel;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

use self::product::Product;
use self::stage::{Needs, Stage};
use self::target::Target;

const USAGE: &str =
    "usage: cargo xtask dist [--target TRIPLE] [--binary FILE] [--out DIR] | dist --manifests [--out DIR]";

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// What is asked for.
struct Wanted {
    target: &'static Target,
    binary: Option<PathBuf>,
    out: PathBuf,
    manifests_only: bool,
}

impl Wanted {
    fn read(root: &Path, mut words: impl Iterator<Item = String>) -> Result<Self> {
        let mut wanted = Self {
            target: Target::host()?,
            binary: None,
            out: root.join("target/dist"),
            manifests_only: false,
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word} takes a value\n{USAGE}"));
            match word.as_str() {
                "--target" => wanted.target = Target::named(&value()?)?,
                "--binary" => wanted.binary = Some(value()?.into()),
                "--out" => wanted.out = value()?.into(),
                "--manifests" => wanted.manifests_only = true,
                _ => bail!("{word} is not understood\n{USAGE}"),
            }
        }
        Ok(wanted)
    }
}

fn run(words: impl Iterator<Item = String>) -> Result<()> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.parent().context("xtask lies in a folder of the repository")?;
    let wanted = Wanted::read(root, words)?;
    let product = Product::of(root)?;
    std::fs::create_dir_all(&wanted.out).with_context(|| format!("cannot make {}", wanted.out.display()))?;
    if !wanted.manifests_only {
        pack(root, &product, &wanted)?;
    }
    manifests::write(&product, &wanted.out)?;
    sums::write(&wanted.out)?;
    println!("in {}:", wanted.out.display());
    for (name, sum) in sums::all(&wanted.out)? {
        println!("{sum}  {name}");
    }
    Ok(())
}

/// Everything for one target.
fn pack(root: &Path, product: &Product, wanted: &Wanted) -> Result<()> {
    let Wanted { target, out, .. } = wanted;
    let binary = match &wanted.binary {
        Some(binary) => binary.clone(),
        None => build::program(root, product, target)?,
    };
    let stage = Stage::of(root, product, target, &binary)?;
    let needs = stage::needs(&stage.program()?.bytes, target)?;
    archive::write(product, target, &stage, out)?;
    if target.deb.is_some() {
        deb::write(product, target, &stage, &needs, out)?;
    }
    if needs == Needs::Nothing && target.container.is_some() {
        container::write(product, target, &stage, out)?;
    } else if target.container.is_some() {
        eprintln!("note: {} needs libraries of the system, so no container is made of it", binary.display());
    }
    npm::write(root, product, target, &stage, out)?;
    wheel::write(root, product, target, (&stage, &needs), out)?;
    sbom::write(root, product, target, out)
}
