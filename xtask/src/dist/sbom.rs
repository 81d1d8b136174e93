//! What the program is made of: a list in CycloneDX 1.5 (cyclonedx.org) of every crate that is linked into it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::archive::put;
use crate::product::Product;
use crate::target::Target;
use xtask::command::{cargo, output};

/// Writes it.
pub(crate) fn write(root: &Path, product: &Product, target: &Target, out: &Path) -> Result<()> {
    let line = format!("metadata --format-version 1 --locked --filter-platform {}", target.triple);
    let metadata: Value = serde_json::from_str(&output(&mut cargo(root, &line))?)?;
    let list = serde_json::to_string_pretty(&list(product, target, &metadata)?)? + "\n";
    put(&out.join(format!("{}.cdx.json", product.folder(target.triple))), list.as_bytes())
}

fn list(product: &Product, target: &Target, metadata: &Value) -> Result<Value> {
    let packages: BTreeMap<&str, &Value> =
        array(&metadata["packages"]).filter_map(|package| Some((package["id"].as_str()?, package))).collect();
    let nodes: BTreeMap<&str, &Value> =
        array(&metadata["resolve"]["nodes"]).filter_map(|node| Some((node["id"].as_str()?, node))).collect();
    let (top, _) = packages
        .iter()
        .find(|(_, package)| package["name"] == product.name.as_str())
        .context("the program is among the packages")?;
    let (mut found, mut next) = (BTreeSet::new(), vec![*top]);
    while let Some(id) = next.pop() {
        if found.insert(id) {
            let node = nodes.get(id).with_context(|| format!("{id} is resolved"))?;
            next.extend(linked(node));
        }
    }
    let component = |id: &&str| {
        let package = packages[*id];
        let (name, version) = (text(&package["name"]), text(&package["version"]));
        json!({
            "type": "library",
            "bom-ref": format!("pkg:cargo/{name}@{version}"),
            "name": name,
            "version": version,
            "purl": format!("pkg:cargo/{name}@{version}"),
            "licenses": [{ "expression": text(&package["license"]).replace('/', " OR ") }],
        })
    };
    let components: Vec<Value> = found.iter().filter(|id| *id != top).map(component).collect();
    let depends = |id: &&str| {
        let of = |id: &str| {
            let package = packages[id];
            format!("pkg:cargo/{}@{}", text(&package["name"]), text(&package["version"]))
        };
        let on: BTreeSet<String> = nodes.get(id).into_iter().flat_map(|node| linked(node)).map(of).collect();
        json!({ "ref": of(id), "dependsOn": on })
    };
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": {
            "type": "application",
            "bom-ref": format!("pkg:cargo/{}@{}", product.name, product.version),
            "name": product.name,
            "version": product.version,
            "licenses": [{ "expression": product.license }],
            "properties": [{ "name": "target", "value": target.triple }],
        } },
        "components": components,
        "dependencies": found.iter().map(depends).collect::<Vec<_>>(),
    }))
}

/// What is linked in because of it: what only builds or tests it is not.
fn linked(node: &Value) -> impl Iterator<Item = &str> {
    array(&node["deps"]).filter_map(|on| {
        let links = array(&on["dep_kinds"]).any(|kind| kind["kind"].is_null());
        on["pkg"].as_str().filter(|_| links)
    })
}

fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
