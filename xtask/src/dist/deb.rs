//! A package for Debian and what comes from it: the `ar` archive of deb(5), with the program, its pages and completions
//! where the policy wants them, and a unit that a user may enable.

use std::path::Path;

use anyhow::{Context as _, Result};

use crate::archive::{gzipped, put, tarred};
use crate::product::Product;
use crate::stage::{Kind, Needs, Shell, Stage, Staged};
use crate::target::Target;

const UNIT: &str = include_str!("../../../packaging/systemd/steady-relay.service");

/// The name of a target's package.
pub(crate) fn name(product: &Product, deb: &str) -> String {
    format!("{}_{}_{deb}.deb", product.name, product.version)
}

/// Writes it.
pub(crate) fn write(
    product: &Product,
    target: &Target,
    stage: &Stage,
    needs: &Needs,
    out: &Path,
) -> Result<()> {
    let deb = target.deb.with_context(|| format!("Debian has no {}", target.triple))?;
    put(&out.join(name(product, deb)), &package(product, deb, stage, needs)?)
}

fn package(product: &Product, deb: &str, stage: &Stage, needs: &Needs) -> Result<Vec<u8>> {
    let files = placed(product, stage)?;
    let data = gzipped(&tarred(product, with_folders(&files))?)?;
    let sums: String = files.iter().map(|(path, _, bytes)| format!("{}  {path}\n", md5(bytes))).collect();
    let control = control(product, deb, &files, needs);
    let about = [
        ("./control".to_owned(), 0o644, control.as_bytes()),
        ("./md5sums".to_owned(), 0o644, sums.as_bytes()),
    ];
    let about = gzipped(&tarred(product, about)?)?;
    let mut package = b"!<arch>\n".to_vec();
    for (name, bytes) in
        [("debian-binary", b"2.0\n".as_slice()), ("control.tar.gz", &about), ("data.tar.gz", &data)]
    {
        let header =
            format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", product.epoch, 0, 0, "100644", bytes.len());
        package.extend_from_slice(header.as_bytes());
        package.extend_from_slice(bytes);
        if bytes.len() % 2 == 1 {
            package.push(b'\n');
        }
    }
    Ok(package)
}

type Placed = (String, u32, Vec<u8>);

/// Each file where it is to lie, sorted.
fn placed(product: &Product, stage: &Stage) -> Result<Vec<Placed>> {
    let name = &product.name;
    let mut files = Vec::new();
    for file in &stage.files {
        let path = match file.kind {
            Kind::Program => format!("usr/bin/{}", file.name),
            Kind::Manual => format!("usr/share/man/man1/{}.gz", file.name),
            Kind::Page if file.name == "CHANGELOG.md" => format!("usr/share/doc/{name}/changelog.gz"),
            Kind::Page => format!("usr/share/doc/{name}/{}", file.name),
            Kind::Completion(Shell::Bash) => format!("usr/share/bash-completion/completions/{}", file.name),
            Kind::Completion(Shell::Zsh) => format!("usr/share/zsh/vendor-completions/{}", file.name),
            Kind::Completion(Shell::Fish) => format!("usr/share/fish/vendor_completions.d/{}", file.name),
            Kind::Completion(Shell::Pwsh) => continue,
        };
        let bytes = if path.ends_with(".gz") { gzipped(&file.bytes)? } else { file.bytes.clone() };
        files.push((path, file.mode(), bytes));
    }
    files.push((format!("usr/lib/systemd/user/{name}.service"), 0o644, UNIT.as_bytes().to_vec()));
    files.push((format!("usr/share/doc/{name}/copyright"), 0o644, copyright(product, stage).into_bytes()));
    files.sort();
    Ok(files)
}

/// The same with the folders above them, which dpkg does not make by itself.
fn with_folders(files: &[Placed]) -> impl Iterator<Item = (String, u32, &[u8])> {
    let mut known = std::collections::BTreeSet::new();
    files.iter().flat_map(move |(path, mode, bytes)| {
        let above = path.match_indices('/').map(|(at, _)| format!("./{}", &path[..=at]));
        let new: Vec<_> = above.filter(|folder| known.insert(folder.clone())).collect();
        let folders = new.into_iter().map(|folder| (folder, 0o755, [].as_slice()));
        folders.chain([(format!("./{path}"), *mode, bytes.as_slice())])
    })
}

fn control(product: &Product, deb: &str, files: &[Placed], needs: &Needs) -> String {
    let Product { name, version, summary, homepage, maker, .. } = product;
    let kib: usize = files.iter().map(|(.., bytes)| bytes.len().div_ceil(1024)).sum();
    let depends = match needs {
        Needs::Nothing => String::new(),
        Needs::Glibc(oldest) => format!("Depends: libc6 (>= {oldest}), libgcc-s1\n"),
    };
    format!(
        "Package: {name}\nVersion: {version}\nArchitecture: {deb}\nMaintainer: {maker}\nInstalled-Size: {kib}\n{depends}\
         Recommends: ca-certificates\nSection: net\nPriority: optional\nHomepage: {homepage}\n\
         Description: {summary}\n It stands between a client and its service, waits where the service is short of capacity,\n \
         and hands back the real answer. Users start it with `steady-relay run`, or as a service of their own:\n \
         systemctl --user enable --now steady-relay\n"
    )
}

fn copyright(product: &Product, stage: &Stage) -> String {
    let text = |name: &str| {
        let is_it = |file: &&Staged| file.name == name;
        stage.files.iter().find(is_it).map(|file| String::from_utf8_lossy(&file.bytes).into_owned())
    };
    let licences = ["LICENSE-MIT", "LICENSE-APACHE"].into_iter().filter_map(text);
    let all: Vec<_> = licences.collect();
    format!("{} ({})\nLicence: {}\n\n{}", product.name, product.homepage, product.license, all.join("\n\n"))
}

/// As dpkg wants it, to find files that were damaged: nothing is trusted for it.
fn md5(bytes: &[u8]) -> String {
    format!("{:x}", md5::compute(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_starts_the_program_where_it_is_placed() {
        assert!(UNIT.contains("ExecStart=/usr/bin/steady-relay serve"));
    }

    #[test]
    fn every_folder_comes_once_and_before_what_lies_in_it() {
        let files = vec![
            ("usr/bin/x".to_owned(), 0o755, vec![1]),
            ("usr/share/doc/x/copyright".to_owned(), 0o644, vec![2]),
        ];
        let paths: Vec<_> = with_folders(&files).map(|(path, ..)| path).collect();
        let expected =
            ["./usr/", "./usr/bin/", "./usr/bin/x", "./usr/share/", "./usr/share/doc/", "./usr/share/doc/x/"];
        assert_eq!(paths[..6], expected);
        assert_eq!(paths.len(), 7);
    }
}
