//! What the package managers read that fetch an archive: Homebrew, Scoop and winget. Each names the archives that lie in
//! the folder, with their sums; those of the other systems are put there first.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Map, Value, json};

use crate::archive::{self, put};
use crate::product::Product;
use crate::sums;
use crate::target::Target;

/// One archive that lies there.
struct Ready {
    target: &'static Target,
    url: String,
    sum: String,
}

/// Writes those for which there are archives.
pub(crate) fn write(product: &Product, out: &Path) -> Result<()> {
    let mut ready = Vec::new();
    for target in Target::all() {
        let name = archive::name(product, target);
        let path = out.join(&name);
        if path.is_file() {
            let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            ready.push(Ready { target, url: product.download(&name), sum: sums::of(&bytes) });
        }
    }
    let (windows, others): (Vec<_>, Vec<_>) = ready.iter().partition(|ready| ready.target.is_windows());
    if !others.is_empty() {
        put(&out.join(format!("{}.rb", product.name)), formula(product, &others)?.as_bytes())?;
    }
    if !windows.is_empty() {
        let scoop = serde_json::to_string_pretty(&scoop(product, &windows))? + "\n";
        put(&out.join(format!("{}.scoop.json", product.name)), scoop.as_bytes())?;
        for (name, text) in winget(product, &windows)? {
            put(&out.join(name), text.as_bytes())?;
        }
    }
    Ok(())
}

fn formula(product: &Product, ready: &[&Ready]) -> Result<String> {
    let Product { name, version, summary, homepage, license, .. } = product;
    let any_of: Vec<_> = license.split(" OR ").map(|one| format!("{one:?}")).collect();
    let mut text = format!(
        "class SteadyRelay < Formula\n  desc {:?}\n  homepage {homepage:?}\n  version {version:?}\n  license any_of: [{}]\n",
        summary.trim_start_matches("A ").trim_start_matches("An "),
        any_of.join(", ")
    );
    for (system, block) in [("darwin", "on_macos"), ("linux", "on_linux")] {
        let of_it: Vec<_> = ready.iter().filter(|ready| ready.target.node.0 == system).collect();
        if of_it.is_empty() {
            continue;
        }
        write!(text, "\n  {block} do\n")?;
        for Ready { target, url, sum } in of_it {
            let processor = if target.node.1 == "arm64" { "on_arm" } else { "on_intel" };
            write!(text, "    {processor} do\n      url {url:?}\n      sha256 {sum:?}\n    end\n")?;
        }
        text.push_str("  end\n");
    }
    write!(
        text,
        "\n  def install\n    bin.install {name:?}\n    man1.install Dir[\"man/man1/*\"]\n    \
         bash_completion.install \"completions/bash/{name}\"\n    zsh_completion.install \"completions/zsh/_{name}\"\n    \
         fish_completion.install \"completions/fish/{name}.fish\"\n  end\n\n  \
         service do\n    run [opt_bin/{name:?}, \"serve\"]\n    keep_alive true\n  end\n\n  \
         test do\n    assert_match version.to_s, shell_output(\"#{{bin}}/{name} --version\")\n  end\nend\n"
    )?;
    Ok(text)
}

fn scoop(product: &Product, ready: &[&Ready]) -> Value {
    let of = |Ready { target, url, sum }: &&Ready| {
        let processor = if target.node.1 == "arm64" { "arm64" } else { "64bit" };
        let found = json!({ "url": url, "hash": sum, "extract_dir": product.folder(target.triple) });
        (processor.to_owned(), found)
    };
    json!({
        "version": product.version,
        "description": product.summary,
        "homepage": product.homepage,
        "license": product.license.replace(" OR ", "|"),
        "architecture": ready.iter().map(of).collect::<Map<_, _>>(),
        "bin": format!("{}.exe", product.name),
    })
}

/// The three files that winget wants of a version.
fn winget(product: &Product, ready: &[&Ready]) -> Result<[(String, String); 3]> {
    const KIND: &str = "1.6.0";
    let Product { name, version, summary, homepage, license, maker, .. } = product;
    let id = "SteadyRelay.SteadyRelay";
    let head = format!("PackageIdentifier: {id}\nPackageVersion: {version}\n");
    let foot = |kind: &str| format!("ManifestType: {kind}\nManifestVersion: {KIND}\n");
    let mut installers = format!(
        "{head}InstallerType: zip\nNestedInstallerType: portable\nCommands:\n- {name}\nInstallers:\n"
    );
    for Ready { target, url, sum } in ready {
        let folder = product.folder(target.triple);
        write!(
            installers,
            "- Architecture: {}\n  NestedInstallerFiles:\n  - RelativeFilePath: {folder}\\{name}.exe\n    \
             PortableCommandAlias: {name}\n  InstallerUrl: {url}\n  InstallerSha256: {}\n",
            target.node.1,
            sum.to_uppercase()
        )?;
    }
    let locale = format!(
        "{head}PackageLocale: en-US\nPublisher: {maker}\nPackageName: Steady Relay\nPackageUrl: {homepage}\n\
         License: {license}\nShortDescription: {summary}\n{}",
        foot("defaultLocale")
    );
    Ok([
        (format!("{id}.yaml"), format!("{head}DefaultLocale: en-US\n{}", foot("version"))),
        (format!("{id}.installer.yaml"), format!("{installers}{}", foot("installer"))),
        (format!("{id}.locale.en-US.yaml"), locale),
    ])
}
