//! The wheel for Python (the format is that of packaging.python.org, "Binary distribution format"): the package's own
//! files as they are, and the program, which pip puts on the PATH. What it says of itself is what `python/pyproject.toml`
//! says, which maturin reads where somebody builds it from the sources.

use std::fs;
use std::io::{Cursor, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use toml::Table;
use zip::write::SimpleFileOptions;
use zip::{DateTime, ZipWriter};

use crate::archive::put;
use crate::product::Product;
use crate::stage::{Kind, Needs, Stage, standing_alone};
use crate::target::Target;

/// Writes it.
pub(crate) fn write(
    root: &Path,
    product: &Product,
    target: &Target,
    (stage, needs): (&Stage, &Needs),
    out: &Path,
) -> Result<()> {
    let name = product.name.replace('-', "_");
    let about = format!("{name}-{}.dist-info", product.version);
    // A program that asks for libraries is for systems like this one alone; PyPI takes no such wheel.
    let tag = match needs {
        Needs::Nothing => target.wheel.to_owned(),
        Needs::Glibc(_) => target.wheel_of_its_own(),
    };
    let mut files = Vec::new();
    for package in ["codex_retry", "steady_relay"] {
        sources(&root.join("python/src").join(package), package, &mut files)?;
    }
    let program = stage.program()?;
    files.push((
        format!("{name}-{}.data/scripts/{}", product.version, program.name),
        program.mode(),
        program.bytes.clone(),
    ));
    for page in stage.files.iter().filter(|file| file.kind == Kind::Page && file.name.starts_with("LICENSE"))
    {
        files.push((format!("{about}/licenses/{}", page.name), page.mode(), page.bytes.clone()));
    }
    files.push((format!("{about}/METADATA"), 0o644, metadata(root, product)?.into_bytes()));
    let kind: String = tag.split('.').map(|tag| format!("Tag: py3-none-{tag}\n")).collect();
    let kind = format!("Wheel-Version: 1.0\nGenerator: {}\nRoot-Is-Purelib: false\n{kind}", product.name);
    files.push((format!("{about}/WHEEL"), 0o644, kind.into_bytes()));
    let record: String = files.iter().map(|(path, _, bytes)| line(path, bytes)).collect();
    files.push((format!("{about}/RECORD"), 0o644, format!("{record}{about}/RECORD,,\n").into_bytes()));
    put(&out.join(format!("{name}-{}-py3-none-{tag}.whl", product.version)), &zipped(&files)?)
}

/// A file in the wheel: path, mode, bytes.
type Packed = (String, u32, Vec<u8>);

/// The files of a package of Python, sorted by name.
fn sources(folder: &Path, package: &str, files: &mut Vec<Packed>) -> Result<()> {
    let unread = || format!("cannot read {}", folder.display());
    let entries = fs::read_dir(folder).with_context(unread)?.collect::<Result<Vec<_>, _>>();
    let mut entries = entries.with_context(unread)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        // What Python leaves behind where it was run is none of it.
        if path.is_file() && (name.ends_with(".py") || name == "py.typed") {
            let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            files.push((format!("{package}/{name}"), 0o644, bytes));
        }
    }
    Ok(())
}

/// A line of `RECORD`.
fn line(path: &str, bytes: &[u8]) -> String {
    format!("{path},sha256={},{}\n", URL_SAFE_NO_PAD.encode(digest(&SHA256, bytes)), bytes.len())
}

/// What the package says of itself, as the core metadata of packaging.python.org, version 2.4.
fn metadata(root: &Path, product: &Product) -> Result<String> {
    let path = root.join("python/pyproject.toml");
    let unread = || format!("cannot read {}", path.display());
    let project: Table = fs::read_to_string(&path).with_context(unread)?.parse().with_context(unread)?;
    let project = project.get("project").and_then(|it| it.as_table()).with_context(unread)?;
    let text = |name: &str| {
        let text = project.get(name).and_then(|it| it.as_str());
        text.with_context(|| format!("{} has no project.{name}", path.display()))
    };
    let list = |name: &str| {
        let list = project.get(name).and_then(|it| it.as_array());
        let list = list.with_context(|| format!("{} has no project.{name}", path.display()))?;
        Ok::<Vec<_>, anyhow::Error>(list.iter().filter_map(|it| it.as_str()).collect())
    };
    ensure!(text("name")? == product.name, "{} names another package", path.display());
    let page = root.join("python").join(text("readme")?);
    let page = fs::read_to_string(&page).with_context(|| format!("cannot read {}", page.display()))?;
    let mut lines = vec![
        "Metadata-Version: 2.4".to_owned(),
        format!("Name: {}", product.name),
        format!("Version: {}", product.version),
        format!("Summary: {}", text("description")?),
        format!("Keywords: {}", list("keywords")?.join(",")),
    ];
    lines.extend(list("classifiers")?.into_iter().map(|it| format!("Classifier: {it}")));
    lines.extend(list("dependencies")?.into_iter().map(|it| format!("Requires-Dist: {it}")));
    lines.extend([
        format!("License-Expression: {}", product.license),
        "License-File: LICENSE-APACHE".to_owned(),
        "License-File: LICENSE-MIT".to_owned(),
        format!("Requires-Python: {}", text("requires-python")?),
        format!("Project-URL: Homepage, {}", product.homepage),
        "Description-Content-Type: text/markdown; charset=UTF-8".to_owned(),
    ]);
    Ok(lines.join("\n") + "\n\n" + &standing_alone(&page, product))
}

fn zipped(files: &[Packed]) -> Result<Vec<u8>> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (path, mode, bytes) in files {
        // As in archives: the earliest time that the format knows.
        let options =
            SimpleFileOptions::default().unix_permissions(*mode).last_modified_time(DateTime::default());
        zip.start_file(path, options)?;
        zip.write_all(bytes)?;
    }
    Ok(zip.finish()?.into_inner())
}
