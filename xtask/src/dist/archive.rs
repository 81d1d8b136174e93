//! One archive that holds everything: `.tar.gz`, and `.zip` for Windows.

use std::fs::File;
use std::io::{Cursor, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result};
use flate2::{Compression, GzBuilder};
use zip::write::SimpleFileOptions;
use zip::{DateTime, ZipWriter};

use crate::product::Product;
use crate::stage::Stage;
use crate::target::Target;

/// The name of a target's archive.
pub(crate) fn name(product: &Product, target: &Target) -> String {
    let end = if target.is_windows() { "zip" } else { "tar.gz" };
    format!("{}.{end}", product.folder(target.triple))
}

/// Writes it.
pub(crate) fn write(product: &Product, target: &Target, stage: &Stage, out: &Path) -> Result<()> {
    let folder = product.folder(target.triple);
    let bytes = if target.is_windows() {
        zipped(&folder, stage)?
    } else {
        let files =
            stage.files.iter().map(|file| (format!("{folder}/{}", file.place()), file.mode(), &*file.bytes));
        gzipped(&tarred(product, files)?)?
    };
    put(&out.join(name(product, target)), &bytes)
}

/// Writes a file whole.
pub(crate) fn put(path: &Path, bytes: &[u8]) -> Result<()> {
    let written = File::create(path).and_then(|mut file| file.write_all(bytes));
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// A tar archive of these files: path, mode, bytes.
pub(crate) fn tarred<'a>(
    product: &Product,
    files: impl IntoIterator<Item = (String, u32, &'a [u8])>,
) -> Result<Vec<u8>> {
    let mut tar = tar::Builder::new(Vec::new());
    tar.mode(tar::HeaderMode::Deterministic);
    for (path, mode, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(mode);
        header.set_mtime(product.epoch);
        header.set_uid(0);
        header.set_gid(0);
        if path.ends_with('/') {
            header.set_entry_type(tar::EntryType::Directory);
        }
        tar.append_data(&mut header, &path, bytes).with_context(|| format!("cannot pack {path}"))?;
    }
    Ok(tar.into_inner()?)
}

/// The same, compressed, without a name or a time of its own.
pub(crate) fn gzipped(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut gzip = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    gzip.write_all(bytes)?;
    Ok(gzip.finish()?)
}

fn zipped(folder: &str, stage: &Stage) -> Result<Vec<u8>> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for file in &stage.files {
        // The earliest that the format knows: it has no zone, so that a real one would differ from place to place.
        let options = SimpleFileOptions::default()
            .unix_permissions(file.mode())
            .last_modified_time(DateTime::default());
        zip.start_file(format!("{folder}/{}", file.place()), options)?;
        zip.write_all(&file.bytes)?;
    }
    Ok(zip.finish()?.into_inner())
}
