//! Builds `relay-worlds` as it runs fast, and starts it.

use anyhow::Result;
use std::path::Path;
use xtask::command::{cargo, succeed};

/// Plays the gate in virtual time; all words go on to `relay-worlds`.
pub(crate) fn run(root: &Path, words: &[&str]) -> Result<()> {
    succeed(cargo(root, "run --release --locked --quiet -p relay-worlds --").args(words))
}
