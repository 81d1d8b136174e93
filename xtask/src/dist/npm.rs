//! Packages for Node: one that starts the program, and one for each platform that holds it, of which npm takes the
//! fitting one (`os` and `cpu` of package.json).

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Map, Value, json};

use crate::archive::{gzipped, put, tarred};
use crate::product::Product;
use crate::stage::{Kind, Stage};
use crate::target::Target;

/// Writes the package of this target and the one that starts it.
pub(crate) fn write(
    root: &Path,
    product: &Product,
    target: &Target,
    stage: &Stage,
    out: &Path,
) -> Result<()> {
    let (system, processor) = target.node;
    let file = format!("{}-{system}-{processor}-{}.tgz", product.name, product.version);
    put(&out.join(file), &platform(product, target, stage)?)?;
    put(&out.join(format!("{}-{}.tgz", product.name, product.version)), &launcher(root, product, stage)?)
}

fn scoped(product: &Product, target: &Target) -> String {
    let (system, processor) = target.node;
    format!("@{}/{system}-{processor}", product.name)
}

/// What both say of themselves.
fn about(product: &Product, name: &str) -> Map<String, Value> {
    let mut about = Map::new();
    let fields = [
        ("name", name),
        ("version", &product.version),
        ("description", &product.summary),
        ("license", &product.license),
        ("homepage", &product.homepage),
    ];
    about.extend(fields.map(|(name, value)| (name.to_owned(), json!(value))));
    about.insert(
        "repository".to_owned(),
        json!({ "type": "git", "url": format!("git+{}.git", product.homepage) }),
    );
    about
}

fn platform(product: &Product, target: &Target, stage: &Stage) -> Result<Vec<u8>> {
    let (system, processor) = target.node;
    let program = stage.program()?;
    let mut about = about(product, &scoped(product, target));
    about.insert("os".to_owned(), json!([system]));
    about.insert("cpu".to_owned(), json!([processor]));
    about.insert("files".to_owned(), json!(["bin"]));
    // Yarn would leave it in an archive, from which nothing can be started.
    about.insert("preferUnplugged".to_owned(), json!(true));
    let about = pretty(about)?;
    let mut files = vec![
        ("package/package.json".to_owned(), 0o644, about.as_bytes()),
        (format!("package/bin/{}", program.name), 0o755, &*program.bytes),
    ];
    files.extend(licences(stage));
    gzipped(&tarred(product, files)?)
}

fn launcher(root: &Path, product: &Product, stage: &Stage) -> Result<Vec<u8>> {
    let read = |name: &str| {
        let path = root.join("packaging/npm").join(name);
        fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let (script, page) = (read("steady-relay.js")?, read("README.md")?);
    let mut about = about(product, &product.name);
    about.insert("bin".to_owned(), json!({ &product.name: "bin/steady-relay.js" }));
    about.insert("files".to_owned(), json!(["bin"]));
    about.insert("engines".to_owned(), json!({ "node": ">=18" }));
    let platforms: Map<String, Value> =
        Target::all().iter().map(|target| (scoped(product, target), json!(product.version))).collect();
    about.insert("optionalDependencies".to_owned(), platforms.into());
    let about = pretty(about)?;
    let mut files = vec![
        ("package/package.json".to_owned(), 0o644, about.as_bytes()),
        ("package/bin/steady-relay.js".to_owned(), 0o755, &*script),
        ("package/README.md".to_owned(), 0o644, &*page),
    ];
    files.extend(licences(stage));
    gzipped(&tarred(product, files)?)
}

fn licences(stage: &Stage) -> impl Iterator<Item = (String, u32, &[u8])> {
    let licences =
        stage.files.iter().filter(|file| file.kind == Kind::Page && file.name.starts_with("LICENSE"));
    licences.map(|file| (format!("package/{}", file.name), file.mode(), &*file.bytes))
}

fn pretty(about: Map<String, Value>) -> Result<String> {
    Ok(serde_json::to_string_pretty(&Value::from(about))? + "\n")
}
