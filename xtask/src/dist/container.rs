//! What an image is built from: a folder with the program and its `Containerfile`, packed.
//! `tar -x … && podman build .` (or docker) makes the image; nothing is fetched for it.

use std::path::Path;

use anyhow::{Context as _, Result};

use crate::archive::{gzipped, put, tarred};
use crate::product::Product;
use crate::stage::Stage;
use crate::target::Target;

const FILE: &str = include_str!("../../../packaging/container/Containerfile");

/// Writes it.
pub(crate) fn write(product: &Product, target: &Target, stage: &Stage, out: &Path) -> Result<()> {
    let processor =
        target.container.with_context(|| format!("there are no containers of {}", target.triple))?;
    let program = stage.program()?;
    let folder = format!("{}-{}-container-{processor}", product.name, product.version);
    let files = [
        (format!("{folder}/Containerfile"), 0o644, FILE.as_bytes()),
        (format!("{folder}/{}", program.name), 0o755, &*program.bytes),
    ];
    put(&out.join(format!("{folder}.tar.gz")), &gzipped(&tarred(product, files)?)?)
}
