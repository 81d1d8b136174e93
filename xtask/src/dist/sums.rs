//! The checksums of all that was made.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use ring::digest::{SHA256, digest};

use crate::archive::put;

const FILE: &str = "SHA256SUMS";

/// That of these bytes.
pub(crate) fn of(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Every file in this folder with its sum, sorted by name.
pub(crate) fn all(out: &Path) -> Result<Vec<(String, String)>> {
    let entries = fs::read_dir(out).with_context(|| format!("cannot read {}", out.display()))?;
    let mut all = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_file() && name != FILE {
            all.push((name, of(&fs::read(entry.path())?)));
        }
    }
    all.sort();
    Ok(all)
}

/// Writes them as `sha256sum --check` reads them.
pub(crate) fn write(out: &Path) -> Result<()> {
    let lines: String = all(out)?.into_iter().map(|(name, sum)| format!("{sum}  {name}\n")).collect();
    put(&out.join(FILE), lines.as_bytes())
}
