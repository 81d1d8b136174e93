//! The program as it is handed out: on Linux it needs nothing of the system, and the same sources give the same bytes.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::product::Product;
use crate::target::Target;
use xtask::command::{cargo, output, succeed, words};

/// Builds it for `target`, in a folder of its own: the flags are others than those of the repository's builds.
pub(crate) fn program(root: &Path, product: &Product, target: &Target) -> Result<PathBuf> {
    let folder = root.join("target/dist-build");
    let mut flags = vec!["-C target-feature=+crt-static".to_owned()];
    if !target.is_windows() && !target.triple.contains("linux") {
        // There is no such thing on macOS.
        flags.clear();
    }
    // Where the sources lie is nobody's business, and differs from machine to machine.
    let home = match std::env::var_os("CARGO_HOME") {
        Some(home) => PathBuf::from(home),
        None => std::env::home_dir().context("there is no home folder")?.join(".cargo"),
    };
    let toolchain = output(&mut words(root, "rustc --print sysroot"))?;
    for (from, to) in
        [(home.as_path(), "/cargo"), (Path::new(toolchain.trim()), "/rust"), (root, "/steady-relay")]
    {
        let from = from.to_str().with_context(|| format!("{} is no text", from.display()))?;
        ensure!(
            !from.contains(char::is_whitespace),
            "{from}: a path with spaces cannot be told to the compiler"
        );
        flags.push(format!("--remap-path-prefix={from}={to}"));
    }
    let c_flags = format!("-ffile-prefix-map={}=/cargo", home.display());
    let line = format!("build --release --locked --package {} --target {}", product.name, target.triple);
    let mut command = cargo(root, &line);
    command
        .env("CARGO_TARGET_DIR", &folder)
        .env("RUSTFLAGS", flags.join(" "))
        .env("STEADY_RELAY_COMMIT", commit(root)?)
        .env("SOURCE_DATE_EPOCH", product.epoch.to_string());
    if !target.is_windows() {
        command.env("CFLAGS", c_flags);
    }
    succeed(&mut command)?;
    Ok(folder.join(target.triple).join("release").join(target.program(&product.name)))
}

/// The commit that it is built from, and whether something was changed since.
fn commit(root: &Path) -> Result<String> {
    let commit = output(&mut words(root, "git rev-parse HEAD"))?;
    let changed = output(&mut words(root, "git status --porcelain --untracked-files=no"))?;
    Ok(format!("{}{}", commit.trim(), if changed.trim().is_empty() { "" } else { "-changed" }))
}
